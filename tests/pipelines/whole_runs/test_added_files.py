"""Adding files to a source costs those files: waves of another run are taken over, and the corpus is the same as that
of a run from nothing on all files, byte for byte.
"""

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from refinery.loader.format.manifest import seal, unseal
from refinery.pipelines.cli.command_line import execute
from tests.fork_server import ForkServer, Outcome
from tests.pipelines.small_runs import check_corpus, command, digests, folder_files, rows
from tests.sampling import FILE_ON_ONE_COMMIT_IN_FOUR, sampled

pytestmark = FILE_ON_ONE_COMMIT_IN_FOUR

Fresh = Callable[[str], dict[str, str]]

WAVES = ["--set", "run.wave_files=1"]
NUMBERS = {"a": range(8), "b": range(5, 12), "c": range(3, 20, 2), "d": range(50, 53)}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """a to d, which share texts; b has a damaged line."""
    folder = tmp_path_factory.mktemp("files")
    for name, numbers in NUMBERS.items():
        broken = '{"text": "broken\n' if name == "b" else ""
        (folder / f"{name}.jsonl").write_text(rows(name, numbers) + broken)
    return folder


@pytest.fixture(scope="module")
def old(small: Path, files: Path, forks: ForkServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run on b and c, in two waves."""
    prefix = tmp_path_factory.mktemp("old") / "out"
    assert refine(forks, small, prefix, files, "bc").code == 0
    return prefix


def refine(
    forks: ForkServer, small: Path, prefix: Path, files: Path, names: str, *more: object, workers: int = 0
) -> Outcome:
    line = command(small, prefix, "--input", files / f"[{names}].jsonl", *WAVES, *more)
    line[line.index("--workers") + 1] = workers
    return forks.run(*line)


def waves_of_its_own(prefix: Path) -> int:
    """Waves that the run has read itself."""
    reports = [json.loads(path.read_text()) for path in (prefix / "work/clean").glob("wave-*.json")]
    return sum(not any("root" in part for parts in r["parts"].values() for part in parts) for r in reports)


@pytest.fixture(scope="module")
def fresh(small: Path, files: Path, forks: ForkServer, tmp_path_factory: pytest.TempPathFactory) -> Fresh:
    """What a run from nothing publishes of some of the files; each is made once."""

    @functools.cache
    def run(names: str) -> dict[str, str]:
        prefix = tmp_path_factory.mktemp("fresh") / names
        assert refine(forks, small, prefix, files, names).code == 0
        return digests(folder_files(prefix))

    return run


@pytest.mark.parametrize(
    ("names", "workers", "read", "said"),
    sampled(
        "files that were added",
        [
            ("bcd", 0, 1, "2 waves of the clean phase reused"),
            ("abc", 2, 1, "2 waves of the clean phase reused"),  # the added file comes first, so places of files change
            ("ad", 0, 2, "no wave of the clean phase can be reused"),
            ("b", 0, 0, "1 wave of the clean phase reused"),
        ],
        1,
    ),
)
def test_it_is_the_corpus_of_a_run_from_nothing(
    small: Path,
    files: Path,
    old: Path,
    forks: ForkServer,
    fresh: Fresh,
    tmp_path: Path,
    names: str,
    workers: int,
    read: int,
    said: str,
) -> None:
    before = {path: path.stat().st_mtime_ns for path in old.rglob("*")}
    done = refine(forks, small, tmp_path / "new", files, names, "--reuse", old, workers=workers)
    assert done.code == 0, done.err
    assert f"reuse: {said}" in done.out and "reuse: clean differs, so it runs again: " in done.out
    assert waves_of_its_own(tmp_path / "new") == read
    made = folder_files(tmp_path / "new")
    check_corpus(made)
    assert digests(made) == fresh(names)
    assert forks.run("verify", tmp_path / "new").code == 0
    assert {path: path.stat().st_mtime_ns for path in old.rglob("*")} == before


def test_what_is_to_be_read_is_said(small: Path, files: Path, old: Path, forks: ForkServer, tmp_path: Path) -> None:
    done = refine(forks, small, tmp_path / "new", files, "abcd", "--reuse", old)
    sizes = [sum((files / f"{name}.jsonl").stat().st_size for name in names) / 1000 for names in ("bc", "ad")]
    assert f"reused from {old} (2 files, {sizes[0]:.1f} kB); 2 files, {sizes[1]:.1f} kB to read" in done.out
    assert f"  waves reused from {old}/work\n" in forks.run("inspect", tmp_path / "new").out
    assert f"2 input files not there ({files}/a.jsonl, {files}/d.jsonl)" in done.out
    assert "clean: 2 waves are done, 2 to go" in done.out


def test_chains_lead_to_the_end_in_one_step(
    small: Path, files: Path, old: Path, forks: ForkServer, tmp_path: Path
) -> None:
    """c and b from the first run, d from the second, a from nobody; then a new tokenizer's run on the third."""
    for number, names in ((1, "bcd"), (2, "abcd")):
        reuse = old if number == 1 else tmp_path / "1"
        assert refine(forks, small, tmp_path / str(number), files, names, "--reuse", reuse).code == 0
    assert waves_of_its_own(tmp_path / "2") == 1
    reports = [json.loads(path.read_text()) for path in (tmp_path / "2/work/clean").glob("wave-*.json")]
    roots = {part["root"] for report in reports for part in report["parts"]["documents"] if "root" in part}
    assert roots == {str(old / "work"), str(tmp_path / "1/work")}
    done = refine(forks, small, tmp_path / "3", files, "abcd", "--reuse", tmp_path / "2", "--set", "shards.seed=9")
    assert done.code == 0 and "reuse: dedup reused" in done.out, done.err
    assert refine(forks, small, tmp_path / "fresh", files, "abcd", "--set", "shards.seed=9").code == 0
    assert digests(folder_files(tmp_path / "3")) == digests(folder_files(tmp_path / "fresh"))
    assert forks.run("verify", tmp_path / "3").code == 0


def test_parts_are_found_where_they_are(small: Path, files: Path, old: Path, forks: ForkServer, tmp_path: Path) -> None:
    """trace looks into documents/, a recipe compares with signatures/, --discard-work removes what is its own."""
    assert refine(forks, small, tmp_path / "new", files, "bcd", "--reuse", old, "--discard-work").code == 0
    assert (old / "work/clean.json").exists() and not (tmp_path / "new/work/clean.json").exists()
    assert refine(forks, small, tmp_path / "kept", files, "bcd", "--reuse", old).code == 0
    traced = forks.run("trace", tmp_path / "kept", "--url", "https://b.example/5", "--json")
    assert traced.code == 0 and '"url": "https://b.example/5"' in traced.out, traced.out
    corpora = json.dumps([{"prefix": str(tmp_path / "kept")}])
    done = refine(forks, small, tmp_path / "next", files, "a", "--set", f"reference_corpora={corpora}")
    assert done.code == 0, done.err
    known = set(NUMBERS["b"]) | set(NUMBERS["c"]) | set(NUMBERS["d"])
    documents = check_corpus(folder_files(tmp_path / "next")).totals["documents"]
    assert documents == len(set(NUMBERS["a"]) - known) > 0


def test_a_killed_take_over_goes_on(
    small: Path, files: Path, old: Path, forks: ForkServer, fresh: Fresh, tmp_path: Path
) -> None:
    arguments = command(small, tmp_path / "new", "--input", files / "[bcd].jsonl", *WAVES, "--reuse", old)
    kill = ("kill_at", {"root": str(tmp_path / "new"), "what": "link", "name": "wave-00001"})
    assert forks.run(*arguments, faults=[kill]).was_killed
    done = forks.run(*arguments)
    assert done.code == 0 and "reuse: 1 wave of the clean phase reused" in done.out, done.err
    assert waves_of_its_own(tmp_path / "new") == 1
    assert digests(folder_files(tmp_path / "new")) == fresh("bcd")


@pytest.mark.parametrize(
    ("setting", "waves"),
    sampled(
        "settings of a run that reuses another",
        [
            ("shards.seed=5", 2),  # nothing of phase 1
            ("near_dup={threshold: 0.9}", 2),
            ("rank.prefer=newest", 0),
            ("limits.max_meta_bytes=5000", 0),
            ("line_dup=on", 0),
            ("sources.s.priority=3", 0),
            ("sources.s.domain=other", 0),
            ("sources.s.text_field=url", 0),
            ("run.part_bytes=1000", 2),  # how parts are cut decides nothing
            ("sources.s.cap=1000", 0),
        ],
        4,
        lambda cell: cell[1:],
    ),
)
def test_what_decides_phase_1_must_be_the_same(
    small: Path, files: Path, old: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], setting: str, waves: int
) -> None:
    """In this process, as --dry-run tells it."""
    line = command(small, tmp_path / "new", "--input", files / "[bcd].jsonl", *WAVES, "--reuse", old, "--set", setting)
    assert execute([str(word) for word in [*line, "--dry-run"]]) == 0
    said = capsys.readouterr().out
    assert (f"{waves} waves of the clean phase reused" if waves else "no wave of the clean phase can be reused") in said
    assert f"clean: {3 - waves} wave" in said and not (tmp_path / "new").exists()


def test_a_wave_whose_files_have_changed_is_read_again(
    small: Path, files: Path, old: Path, forks: ForkServer, tmp_path: Path
) -> None:
    """Other bytes of the same size in the same place, seen by the digest; and parts that are gone."""
    changed = files / "c.jsonl"
    data = changed.read_bytes()
    changed.write_bytes(data.replace(b"word7", b"WORD7"))
    try:
        done = refine(forks, small, tmp_path / "new", files, "bc", "--reuse", old)
        assert f"1 input file with other bytes ({changed})" in done.out
        assert "1 wave of the clean phase reused" in done.out
        assert refine(forks, small, tmp_path / "fresh", files, "bc").code == 0
        assert digests(folder_files(tmp_path / "new")) == digests(folder_files(tmp_path / "fresh"))
    finally:
        changed.write_bytes(data)
    done = refine(forks, small, tmp_path / "again", files, "bc", "--reuse", old)  # written anew, with the same bytes
    assert "2 waves of the clean phase reused" in done.out or "reuse: clean reused" in done.out, done.out


def test_parts_that_are_gone_are_not_taken_over(small: Path, files: Path, forks: ForkServer, tmp_path: Path) -> None:
    assert refine(forks, small, tmp_path / "old", files, "bc").code == 0
    next((tmp_path / "old/work/documents").iterdir()).unlink()
    done = refine(forks, small, tmp_path / "new", files, "bcd", "--reuse", tmp_path / "old")
    assert done.code == 0 and "1 wave of the clean phase reused" in done.out, done.err


def test_an_unfinished_run_is_worth_its_waves(small: Path, files: Path, forks: ForkServer, tmp_path: Path) -> None:
    """Killed after a wave; another prefix takes that wave over."""
    arguments = command(small, tmp_path / "old", "--input", files / "[bcd].jsonl", *WAVES)
    kill = ("kill_at", {"root": str(tmp_path / "old"), "what": "link", "name": "wave-00001"})
    assert forks.run(*arguments, faults=[kill]).was_killed
    done = refine(forks, small, tmp_path / "new", files, "bcd", "--reuse", tmp_path / "old")
    assert done.code == 0 and "reuse: clean is not finished there" in done.out, done.err
    assert "1 wave of the clean phase reused" in done.out and waves_of_its_own(tmp_path / "new") == 2


def test_where_order_decides_places_must_be_the_same(
    small: Path, files: Path, forks: ForkServer, tmp_path: Path
) -> None:
    """With `rank.prefer: first` a file that comes before the others changes who is kept."""
    first = ["--set", "rank.prefer=first"]
    assert refine(forks, small, tmp_path / "old", files, "bc", *first).code == 0
    said = {"abc": "no wave of the clean phase can be reused", "bcd": "2 waves of the clean phase reused"}
    for names, waves in said.items():
        reuse = ["--reuse", tmp_path / "old", "--dry-run"]
        done = refine(forks, small, tmp_path / names, files, names, *first, *reuse)
        assert done.code == 0 and waves in done.out, done.err


@pytest.mark.parametrize("root", sampled("forged roots", ["https://192.0.2.1/work", "", 7], 1))
def test_a_forged_root_leads_nowhere(
    small: Path, files: Path, old: Path, forks: ForkServer, tmp_path: Path, root: Any
) -> None:
    assert refine(forks, small, tmp_path / "new", files, "bcd", "--reuse", old).code == 0
    clean = tmp_path / "new/work/clean.json"
    payload = unseal(clean.read_bytes(), "clean.json")
    for part in payload["parts"]["documents"]:
        part["root"] = root
    clean.write_bytes(seal(payload))
    for name in ("manifest.json", "work/shards.json", "work/shards/report.json"):
        (tmp_path / "new" / name).unlink()
    done = refine(forks, small, tmp_path / "new", files, "bcd")
    assert done.code != 0 and "no run writes that here" in done.err, done.err
