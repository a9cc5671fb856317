"""What is lost on the way fails a phase before anything counts, and leaves nothing that blocks the same command."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from refinery.loader.format.manifest import seal, unseal
from tests.fork_server import ForkServer
from tests.pipelines.inputs import corpus_bytes
from tests.sampling import FILE_ON_ONE_COMMIT_IN_FOUR

pytestmark = FILE_ON_ONE_COMMIT_IN_FOUR

LOST = "the counts do not reconcile"


def test_a_launcher_that_flushes_by_time_loses_nothing(
    forks: ForkServer, corpus: Path, inputs: Path, tmp_path: Path
) -> None:
    """Every phase, with the limit at a millisecond: only names cross the launcher, and files count without them."""
    faults = [("flush_by_time", {"milliseconds": 1})]
    words = ("refine", inputs / "recipe.yaml", "--output", tmp_path / "out", "--workers", 2)
    done = forks.run(*words, faults=faults)
    assert done.code == 0, done.err
    assert corpus_bytes(tmp_path / "out") == corpus_bytes(corpus)


def shorten(prefix: Path, phase: str, stage: str) -> None:
    """Let a phase look as an earlier version left it that had lost a document behind the stage."""
    (prefix / "manifest.json").unlink()
    for name in (f"{phase}/report.json", f"{phase}.json"):
        path = prefix / "work" / name
        payload = unseal(path.read_bytes(), str(path))
        counter = next(c for c in payload["counters"] if (c["stage"], c["outcome"]) == (stage, "kept"))
        counter["documents"] += 1
        entered = next(c for c in payload["counters"] if (c["stage"], c["outcome"]) == (stage, "in"))
        entered["documents"] += 1
        path.write_bytes(seal({key: value for key, value in payload.items() if key != "sha256"}))


def test_a_prefix_with_short_shards_is_freed_by_the_same_command(
    forks: ForkServer, small: Path, tmp_path: Path
) -> None:
    """An earlier version wrote the report of phase 3 before the sums were checked, and stopped there for ever."""
    words = ("refine", small / "recipe.yaml", "--output", tmp_path / "out", "--workers", 0)
    assert forks.run(*words).code == 0
    right = corpus_bytes(tmp_path / "out")
    shorten(tmp_path / "out", "shards", "encode")
    shard = next((tmp_path / "out" / "train").rglob("*.bin"))
    shard.write_bytes(shard.read_bytes()[:-2])  # under its final name, with other bytes
    done = forks.run(*words)
    assert done.code == 0, done.err
    assert "an earlier attempt lost documents" in done.out
    assert corpus_bytes(tmp_path / "out") == right


def test_verdicts_of_a_refused_attempt_do_not_block_the_next(forks: ForkServer, small: Path, tmp_path: Path) -> None:
    """They have a name of their own where the part's name is taken; what nothing claims is removed."""
    words = ("refine", small / "recipe.yaml", "--output", tmp_path / "out", "--workers", 0)
    assert forks.run(*words).code == 0
    right = corpus_bytes(tmp_path / "out")
    for name in ("manifest.json", "work/dedup.json", "work/dedup/report.json", "work/shards.json"):
        (tmp_path / "out" / name).unlink()
    (tmp_path / "out" / "work" / "shards" / "report.json").unlink()
    taken = next((tmp_path / "out" / "work" / "verdicts").iterdir())
    pq.write_table(pq.read_table(taken).slice(1), taken)
    done = forks.run(*words)
    assert done.code == 0, done.err
    assert corpus_bytes(tmp_path / "out") == right
    assert not taken.exists()
    report = json.loads((tmp_path / "out" / "work" / "dedup" / "report.json").read_bytes())
    paths = [part["path"] for part in report["parts"]["verdicts"]]
    assert {path.name for path in taken.parent.iterdir()} == {path.rpartition("/")[2] for path in paths}


@pytest.mark.parametrize("phase", ["clean", "dedup", "shards"])
def test_sums_are_checked_before_a_report_is_published(
    forks: ForkServer, small: Path, tmp_path: Path, phase: str
) -> None:
    """A job whose counters lose a document publishes no report; the same command succeeds once they do not."""
    words = ("refine", small / "recipe.yaml", "--output", tmp_path / "out", "--workers", 0)
    stage = {"clean": "extract", "dedup": "exact-duplicates", "shards": "encode"}[phase]
    done = forks.run(*words, faults=[("miscount", {"stage": stage})])
    assert done.code == 1 and LOST in done.err, done.err
    assert not list((tmp_path / "out" / "work" / phase).glob("*.json"))
    assert not (tmp_path / "out" / "work" / f"{phase}.json").exists()
    assert forks.run(*words).code == 0
