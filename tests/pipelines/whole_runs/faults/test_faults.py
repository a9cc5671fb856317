"""Faults of runners, folders, inputs and processes, one cell each: the same bytes, or a clear failure, then the same.

A cell that fails must say why in the last line that it prints; what it leaves is refused by the loader; and the same
command, without the fault, brings the bytes of a run that nothing happened to. Stages that raise are in
test_faults_in_stages.py, buckets in test_faults_of_buckets.py, files that are damaged between phases in
test_damage_between_phases.py.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fork_server import ForkServer
from tests.pipelines.small_runs import check_corpus, command, folder_files
from tests.pipelines.whole_runs.faults.outcomes import Faults, Record, check_clear, check_refused, check_same, placed
from tests.pipelines.whole_runs.faults.test_damage_between_phases import BETWEEN
from tests.sampling import one_commit_in_four, sampled

DIRECT = ("--runner", "DirectRunner")
DOCUMENT = "https://b.example/8"


# --- what a run tolerates -----------------------------------------------------------------------------------------


def once(what: str, name: str) -> Faults:
    """A bundle fails when it is nearly done; DirectRunner runs it again."""
    return [("refuse", {"root": "ROOT", "what": what, "name": name, "code": "EIO", "times": 1})]


TOLERATED: dict[str, tuple[Faults, tuple[str, ...]]] = {
    "every bundle replayed once": ([], ("--direct_runner_bundle_repeat=1",)),
    "every bundle replayed three times": ([], ("--direct_runner_bundle_repeat=3",)),
    "elements out of order": ([("shuffle_bundles", {"seed": 1, "most": 1})], ()),
    "bundles split and out of order": ([("shuffle_bundles", {"seed": 2, "most": 4})], ()),
    "bundles split small, out of order, replayed": (
        [("shuffle_bundles", {"seed": 3, "most": 12})],
        ("--direct_runner_bundle_repeat=1",),
    ),
    "bundles of another runner": ([], DIRECT),
    "a bundle of clean fails after its documents are written": (once("link", "work/signatures"), DIRECT),
    "a bundle of dedup fails after its verdicts are written": (once("remove", "work/verdicts"), DIRECT),
    "a bundle of shards fails after a file is written": (once("link", r"train/.*\.idx"), DIRECT),
    "a report fails once": (once("link", r"work/clean/wave-\d+\.json$"), DIRECT),
}


@pytest.mark.parametrize("cell", sampled("faults that runs tolerate", TOLERATED, 2))
def test_tolerated(
    cell: str, small: Path, forks: ForkServer, reference: dict[str, bytes], tmp_path: Path, record_property: Record
) -> None:
    faults, flags = TOLERATED[cell]
    prefix = tmp_path / "out"
    done = forks.run(*command(small, prefix, *flags), faults=placed(faults, prefix))
    assert done.code == 0, done.err
    check_same(prefix, reference)
    record_property("fault cell", cell)


# --- what a run fails of ------------------------------------------------------------------------------------------


def refuse(what: str, name: str, code: str) -> Faults:
    return [("refuse", {"root": "ROOT", "what": what, "name": name, "code": code})]


def in_worker(fault: str, **arguments: Any) -> Faults:
    """The fault in the one worker process of the pool, while the launcher lives."""
    return [("arm_workers", {"folder": "ROOT.armed", "faults": [(fault, arguments)]})]


POOL = ("--workers", 1)
KILLED = "worker process 0 ended with signal 9"
ROOM = r" \(\d[\d.]* [kMGT]?B free in /.*\)"  # at the place of the file that is named
NO_SPACE, IO = r"\[Errno 28\] No space left on device: .*", r"\[Errno 5\] Input/output error: .*"

FAILED: dict[str, tuple[Faults, tuple[object, ...], str]] = {
    "disk full in clean, half a file written": (
        refuse("fill", "work/documents", "ENOSPC"),
        (),
        NO_SPACE + r"/documents/part-\w+\.parquet" + ROOM,
    ),
    "disk full in dedup": (
        refuse("make", "work/verdicts", "ENOSPC"),
        (),
        NO_SPACE + r"/verdicts/part-\w+\.parquet" + ROOM,
    ),
    "disk full in shards, half a file written": (
        refuse("fill", "train/", "ENOSPC"),
        (),
        NO_SPACE + r"/train/s/shard-.*" + ROOM,
    ),
    "disk full at the manifest": (
        refuse("link", r"^manifest\.json", "ENOSPC"),
        (),
        NO_SPACE + r"/manifest\.json" + ROOM,
    ),
    "quota spent at a list": (refuse("make", "clean/.tmp", "EDQUOT"), (), r"\[Errno 122\] .*clean/list-.*" + ROOM),
    "disk fails as parts are synced": (refuse("sync", "work/signatures/.tmp", "EIO"), (), IO),
    "disk fails as signatures are read": (refuse("read", "work/signatures/part", "EIO"), (), IO + "work/signatures"),
    "disk fails as documents are read": (refuse("read", "work/documents/part", "EIO"), (), IO + "work/documents"),
    "disk fails as verdicts are read": (refuse("read", "work/verdicts/part", "EIO"), (), IO + "work/verdicts"),
    "disk fails again and again, with retries": (refuse("link", r"train/.*\.bin", "EIO"), DIRECT, IO + r"\.bin"),
    "files may not grow": (
        [("limit_file_size", {"size": 8192})],  # _run.json, with every parameter of the recipe, fits
        (),
        r"\[Errno 27\].*File too large: .*parquet" + ROOM,
    ),
    "a worker is killed in clean": (
        in_worker("kill_at", root="ROOT", what="link", name="work/documents"),
        POOL,
        KILLED,
    ),
    "a worker is killed in dedup": (in_worker("kill_at", root="ROOT", what="link", name="work/verdicts"), POOL, KILLED),
    "a worker is killed in shards": (in_worker("kill_at", root="ROOT", what="link", name="train/"), POOL, KILLED),
    "a document kills its worker": (in_worker("die_in_stage", stage="encode", urls=[DOCUMENT]), POOL, KILLED),
}


@pytest.mark.parametrize("cell", sampled("faults that end runs", FAILED, 2))
def test_failed_and_started_again(
    cell: str, small: Path, forks: ForkServer, reference: dict[str, bytes], tmp_path: Path, record_property: Record
) -> None:
    faults, flags, reason = FAILED[cell]
    prefix = tmp_path / "out"
    done = forks.run(*command(small, prefix, *flags), faults=placed(faults, prefix))
    check_clear(done, reason)
    check_refused(prefix)
    again = forks.run(*command(small, prefix))
    assert again.code == 0, again.err
    check_same(prefix, reference)
    record_property("fault cell", cell)


# --- killed with all that it is ---------------------------------------------------------------------------------------

DYING: dict[str, Faults] = {
    "a document kills the whole run in clean": [("die_in_stage", {"stage": "extract", "urls": [DOCUMENT]})],
    "a document kills the whole run in shards": [("die_in_stage", {"stage": "encode", "urls": [DOCUMENT]})],
}


@pytest.mark.parametrize("cell", sampled("documents that kill runs", DYING, 1))
def test_a_document_that_kills(
    cell: str, small: Path, forks: ForkServer, reference: dict[str, bytes], tmp_path: Path, record_property: Record
) -> None:
    """As often as it is read, until what kills it is fixed: no attempt leaves anything that is taken for a corpus."""
    prefix = tmp_path / "out"
    for _ in range(2):
        assert forks.run(*command(small, prefix), faults=DYING[cell]).was_killed
        check_refused(prefix)
    assert forks.run(*command(small, prefix)).code == 0
    check_same(prefix, reference)
    record_property("fault cell", cell)


@one_commit_in_four
def test_a_file_that_kills_its_workers(small: Path, forks: ForkServer, tmp_path: Path, record_property: Record) -> None:
    """Named each time, from the second on with the record in hand; then named as the cause; the record alone is left
    out where the recipe says so."""
    prefix, fault = tmp_path / "out", in_worker("die_in_stage", stage="extract", urls=[DOCUMENT])
    file = re.escape(str(small / "b.jsonl"))
    at_record = f", at the record {file}@\\d+ in the stage extract"
    for record in ("", at_record):
        done = forks.run(*command(small, prefix, *POOL), faults=placed(fault, prefix))
        check_clear(
            done, f"{KILLED} while it read {file}{record};.*with --set failures.poison_files=1 it finds the record"
        )
    done = forks.run(*command(small, prefix, *POOL))
    check_clear(done, f"worker processes died twice while they read {file}\\. .*--set failures.poison_files=1")
    done = forks.run(*command(small, prefix, *POOL, "--set", "failures.poison_files=1"), faults=placed(fault, prefix))
    assert done.code == 0, done.err
    expected = blank_run(small, forks, tmp_path / "blank", "b.jsonl", lambda line: DOCUMENT.encode() in line)
    check_dead(prefix, expected, "read", {"PoisonRecord": 1, "BadJson": 1})
    record_property("fault cell", "a file kills its workers")


# --- folders and inputs -------------------------------------------------------------------------------------------


FOLDERS = [".", "work", "train"]


@pytest.mark.parametrize("folder", sampled("folders that are read-only", FOLDERS, 1))
def test_a_folder_that_is_read_only(
    folder: str, small: Path, forks: ForkServer, reference: dict[str, bytes], tmp_path: Path, record_property: Record
) -> None:
    prefix = tmp_path / "out"
    (prefix / folder).mkdir(parents=True)
    (prefix / folder).chmod(0o555)
    done = forks.run(*command(small, prefix), faults=[("obey_permissions", {})])
    check_clear(done, r"\[Errno 13\] Permission denied: .*" + re.escape(str((prefix / folder).resolve())))
    check_refused(prefix)
    (prefix / folder).chmod(0o755)
    assert forks.run(*command(small, prefix)).code == 0
    check_same(prefix, reference)
    record_property("fault cell", f"{folder} is read-only")


CUTS = {"to nothing": 0, "inside a line": 300, "at the end of a line": -2}


@pytest.mark.parametrize("cut", sampled("inputs that are cut", CUTS, 1))
def test_an_input_is_cut_after_the_planning(
    cut: str, small: Path, forks: ForkServer, reference: dict[str, bytes], tmp_path: Path, record_property: Record
) -> None:
    """Its documents would be gone without a trace: that is no corpus of the inputs that it names."""
    path = small / "a.jsonl"
    whole = path.read_bytes()
    size = whole.rindex(b'{"text": "broken') if CUTS[cut] < 0 else CUTS[cut]
    prefix = tmp_path / "out"
    try:
        done = forks.run(*command(small, prefix), faults=[("after_planning", {"path": str(path), "size": size})])
        assert path.stat().st_size == size
    finally:
        path.write_bytes(whole)
    check_clear(done, f"{re.escape(str(path))}.*{size} bytes.*{len(whole)}")
    check_refused(prefix)
    assert forks.run(*command(small, prefix)).code == 0
    check_same(prefix, reference)
    record_property("fault cell", f"an input cut {cut}")


def blank_run(small: Path, forks: ForkServer, prefix: Path, file: str, lines: Callable[[bytes], bool]) -> Path:
    """A run with these lines of an input file blank, each as long as before."""
    path = small / file
    whole = path.read_bytes()
    blank = [b" " * (len(line) - 1) + b"\n" if lines(line) else line for line in whole.splitlines(keepends=True)]
    try:
        path.write_bytes(b"".join(blank))
        done = forks.run(*command(small, prefix))
    finally:
        path.write_bytes(whole)
    assert done.code == 0, done.err
    return prefix


def check_dead(prefix: Path, expected: Path, stage: str, dead: dict[str, int]) -> None:
    """The shards and removals of `expected`; the manifest has these dead letters, and balances."""
    files, others = folder_files(prefix), folder_files(expected)
    check_corpus(files)
    data = [name for name in others if name.split("/")[0] in ("train", "removals")]
    assert {name: files[name] for name in data} == {name: others[name] for name in data}
    rows = {row["stage"]: row for row in json.loads(files["manifest.json"])["funnel"]}
    assert {error: entry["documents"] for error, entry in rows[stage]["dead"].items()} == dead


def test_an_input_is_gone_after_the_planning(
    small: Path, forks: ForkServer, tmp_path: Path, record_property: Record
) -> None:
    """The run fails, and names the file; with it back, the same command goes on."""
    path = small / "a.jsonl"
    whole = path.read_bytes()
    try:
        fault = ("after_planning", {"path": str(path), "size": -1})
        done = forks.run(*command(small, tmp_path / "gone"), faults=[fault])
    finally:
        path.write_bytes(whole)
    assert done.code == 1 and f"{path}: gone since the run was planned; put it back" in done.err
    assert not (tmp_path / "gone/manifest.json").exists()
    assert forks.run(*command(small, tmp_path / "gone")).code == 0
    record_property("fault cell", "an input is gone")


# --- memory -------------------------------------------------------------------------------------------------------


def test_a_document_takes_more_memory_than_there_is(
    small: Path, forks: ForkServer, tmp_path: Path, record_property: Record
) -> None:
    """The run ends and names it: what fits into memory does not decide what is in the corpus."""
    faults: Faults = [("leak_in_stage", {"stage": "extract", "urls": [DOCUMENT], "size": 1 << 40})]
    done = forks.run(*command(small, tmp_path / "out"), faults=[*faults, ("limit_memory", {"more": 4 << 30})])
    check_clear(done, r"extract: out of memory at .*b\.jsonl@\d+; give the workers more")
    check_refused(tmp_path / "out")
    record_property("fault cell", "a document takes more memory than there is")


@one_commit_in_four
def test_memory_runs_out(
    small: Path, forks: ForkServer, reference: dict[str, bytes], tmp_path: Path, record_property: Record
) -> None:
    """A leak, a little with each document. Another prefix is as if nothing had been."""
    faults: Faults = [("leak_in_stage", {"stage": "extract", "urls": ["*"], "size": 200 << 20})]
    arguments = command(small, tmp_path / "out", "--set", "failures.grace=1")
    done = forks.run(*arguments, faults=[*faults, ("limit_memory", {"more": 1 << 30})])
    check_clear(done, r"extract: out of memory at .*@\d+; give the workers more")
    check_refused(tmp_path / "out")
    assert forks.run(*command(small, tmp_path / "other")).code == 0
    check_same(tmp_path / "other", reference)
    record_property("fault cell", "memory runs out")


def test_there_are_enough_cells() -> None:
    """The count that the summary prints is of cells that passed; these are those of runs on one machine."""
    assert len(TOLERATED) + len(FAILED) + len(DYING) + len(BETWEEN) + len(FOLDERS) + len(CUTS) + 3 >= 24
