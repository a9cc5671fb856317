"""Records that kill the worker process that has them in hand: each is found and lost alone, and nothing else is."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from tests.fork_server import ForkServer
from tests.pipelines.small_runs import check_corpus, check_work, command, digests, folder_files, text_of
from tests.pipelines.whole_runs.faults.outcomes import Faults, Record, check_clear, check_refused, placed
from tests.sampling import one_commit_in_four, sampled
from tests.transforms.read_fixtures import http, warc_record

RECORDS = range(10)
POISON = (0, 4, 9)  # the first record of the file, one inside it, the last one


def url_of(number: int) -> str:
    return f"https://p.example/{number}"


def write_jsonl(path: Path) -> None:
    path.write_text("".join(json.dumps({"text": text_of(n), "url": url_of(n)}) + "\n" for n in RECORDS))


def write_warc(path: Path) -> None:
    """A member each, as crawlers write them."""
    bodies = [http(text_of(number).encode(), ["Content-Type: text/plain"]) for number in RECORDS]
    members = [gzip.compress(warc_record(body, url=url_of(n)), mtime=0) for n, body in enumerate(bodies)]
    path.write_bytes(b"".join(members))


def write_parquet(path: Path) -> None:
    table = pa.table({"text": list(map(text_of, RECORDS)), "url": list(map(url_of, RECORDS))})
    pq.write_table(table, path, row_group_size=4)


FORMATS: dict[str, Callable[[Path], None]] = {
    "b.jsonl": write_jsonl,
    "b.warc.gz": write_warc,
    "b.parquet": write_parquet,
}


def make_inputs(folder: Path, small: Path, name: str) -> Path:
    """The poisoned file between two others, and a recipe."""
    folder.mkdir()
    FORMATS[name](folder / name)
    for other, numbers in (("a.jsonl", range(20, 24)), ("c.jsonl", range(24, 28))):
        rows = [{"text": text_of(number), "url": f"https://o.example/{number}"} for number in numbers]
        (folder / other).write_text("".join(json.dumps(row) + "\n" for row in rows))
    recipe = yaml.safe_load((small / "recipe.yaml").read_text())
    paths = [str(folder / "a.jsonl"), str(folder / name), str(folder / "c.jsonl")]
    recipe["sources"] = [{"name": f"s{number}", "paths": [path]} for number, path in enumerate(paths)]
    (folder / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    return folder


def in_workers(kill_by: str) -> Faults:
    """The fault in every worker process."""
    fault = ("die_in_stage", {"stage": "extract", "urls": [url_of(number) for number in POISON], "by": kill_by})
    return [("arm_workers", {"folder": "ROOT.armed", "faults": [fault]})]


def allow(number: int) -> tuple[str, ...]:
    return "--set", f"failures.poison_files={number}"


def poison_rows(prefix: Path) -> list[dict[str, Any]]:
    tables = [pq.read_table(path).to_pylist() for path in sorted((prefix / "dead_letters").glob("*.parquet"))]
    return [row for table in tables for row in table if row["error"] == "PoisonRecord"]


def check_found(prefix: Path, blank: Path, inputs: Path, name: str) -> dict[str, str]:
    """The other records are published as by a run in which these fail in their stage, and these are named. The digests
    of all that is published."""
    files, others = folder_files(prefix), folder_files(blank)
    check_corpus(files)
    check_work(files)
    data = [path for path in others if path.split("/")[0] in ("train", "removals")]
    assert data and {path: files[path] for path in data} == {path: others[path] for path in data}
    rows = {row["stage"]: row for row in json.loads(files["manifest.json"])["funnel"] if row["source"] == "s1"}
    assert (rows["read"]["in"]["documents"], rows["read"]["kept"]["documents"]) == (len(RECORDS), 7)
    assert {error: entry["documents"] for error, entry in rows["read"]["dead"].items()} == {"PoisonRecord": 3}
    mine = poison_rows(prefix)
    assert {row["origin"].rpartition("@")[0] for row in mine} == {str(inputs / name)}
    failed = [pq.read_table(path).to_pylist() for path in sorted((blank / "dead_letters").glob("*.parquet"))]
    assert sorted(row["origin"] for row in mine) == sorted(row["origin"] for part in failed for row in part)
    assert sorted(row["sha256"] for row in mine) == sorted(row["sha256"] for part in failed for row in part)
    return digests(files)


@one_commit_in_four
def test_a_file_that_kills_before_its_first_record(
    small: Path, forks: ForkServer, tmp_path: Path, record_property: Record
) -> None:
    """No record is at fault, so the file is lost as a whole, and counts as one."""
    inputs, prefix = make_inputs(tmp_path / "inputs", small, "b.jsonl"), tmp_path / "out"
    fault = ("kill_at", {"root": str(inputs), "what": "read", "name": r"b\.jsonl"})
    faults: Faults = [("arm_workers", {"folder": f"{prefix}.armed", "faults": [fault]})]
    emptied = "--set", "failures.allow_empty=true"  # the file is all that its source has
    done = forks.run(*command(inputs, prefix, "--workers", 1, *allow(1), *emptied), faults=faults)
    assert done.code == 0, done.err
    files = folder_files(prefix)
    check_corpus(files)
    rows = {row["source"]: row for row in json.loads(files["manifest.json"])["funnel"] if row["stage"] == "read"}
    assert {error: entry["documents"] for error, entry in rows["s1"]["dead"].items()} == {"PoisonFile": 1}
    assert rows["s0"]["kept"]["documents"] == rows["s2"]["kept"]["documents"] == 4
    record_property("fault cell", "a file kills its workers before its first record")


@one_commit_in_four
@pytest.mark.parametrize("name", sampled("files with records that kill", FORMATS, 1))
def test_records_that_kill(name: str, small: Path, forks: ForkServer, tmp_path: Path, record_property: Record) -> None:
    """More of them than allowed end the run. It goes on with other workers, which do not look for them again."""
    inputs = make_inputs(tmp_path / "inputs", small, name)
    failing: Faults = [("raise_in_stage", {"stage": "extract", "urls": [url_of(number) for number in POISON]})]
    assert forks.run(*command(inputs, tmp_path / "blank"), faults=failing).code == 0
    one = tmp_path / "one"
    faults = placed(in_workers("SIGKILL"), one)
    done = forks.run(*command(inputs, one, "--workers", 1, *allow(2)), faults=faults)
    check_clear(done, r"died twice while they read .*@\d+ \(stage extract\).*--set failures\.poison_files=3 counts")
    check_refused(one)
    done = forks.run(*command(inputs, one, "--workers", 2, *allow(3)))
    assert done.code == 0, done.err
    assert f"left out because worker processes died on them: {inputs / name}@" in done.out
    found = check_found(one, tmp_path / "blank", inputs, name)
    again = forks.run(*command(inputs, one, "--workers", 1))
    assert again.code == 0 and "nothing to do" in again.out + again.err
    for look in (("verify", one, "--full"), ("audit", one, "--sample", 1)):
        done = forks.run(*look)
        assert done.code == 0, done.out + done.err
    origin = poison_rows(one)[0]["origin"]
    done = forks.run("trace", one, "--origin", origin)
    assert done.code == 0 and "worker processes died on this record, so it is not judged again" in done.out, done.err
    if name == "b.jsonl":
        two = tmp_path / "two"
        done = forks.run(*command(inputs, two, "--workers", 2, *allow(3)), faults=placed(in_workers("SIGSEGV"), two))
        assert done.code == 0, done.err
        assert check_found(two, tmp_path / "blank", inputs, name) == found
    record_property("fault cell", f"records of {name} kill their workers")
