"""One verdict, whoever checks: this process, several, or shares that are merged; and partial results that are not."""

import dataclasses
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import seal, unseal
from refinery.loader.storage.store import size_and_crc32c
from refinery.pipelines.cli.command_line import execute
from refinery.pipelines.corpus.verify.partials import Share
from refinery.pipelines.corpus.verify.verify import verify, verify_merged, verify_share
from refinery.pipelines.corpus.verify.whole import Report
from refinery.pipelines.shell.exit_codes import ExitCode
from tests.corpus_factory import ByteTokenizer, build_corpus, edit_manifest
from tests.pipelines.corpus.verify import test_verify_faults as faults
from tests.pipelines.corpus.verify import test_verify_lies as lies
from tests.pipelines.corpus.verify import test_verify_removals_files as removals
from tests.pipelines.removals_factory import build_removed
from tests.sampling import one_commit_in_four, sampled

SHARES = 3
WEB0, CODE = faults.WEB0, faults.CODE
FIRST = "partial-00000-of-00003"


def load_bytes(path: str) -> Any:
    return ByteTokenizer()


def compared(report: Report) -> dict[str, Any]:
    return dataclasses.asdict(report) | {"seconds": 0}


def write_shares(root: Path, partials: Path, **options: Any) -> int:
    return sum(
        verify_share(str(root), Share(number, SHARES), str(partials), load=load_bytes, **options)
        for number in range(SHARES)
    )


def merged(root: Path, partials: Path) -> Report:
    return verify_merged(str(root), str(partials), load=load_bytes)


# One of every check that needs more than one piece, and of every kind of piece.
FORGERIES: dict[str, tuple[Callable[[Path], Path], Callable[[Path], Any]]] = {
    "none": (build_removed, lambda root: None),
    "id twice": (build_corpus, faults.FAULTS["id twice"][0]),
    "target": (build_corpus, lies.LIES["target"][0]),
    "dead twice": (build_corpus, lies.LIES["dead twice"][0]),
    "part damaged": (build_corpus, faults.FAULTS["part damaged"][0]),
    "FIFO phase": (build_corpus, lies.LIES["FIFO phase"][0]),
    "vocabulary": (build_corpus, faults.FAULTS["vocabulary"][0]),
    "missing tokenizer": (build_corpus, faults.FAULTS["missing tokenizer"][0]),
    "not Parquet": (build_corpus, faults.FAULTS["not Parquet"][0]),
    "address twice": (
        lambda path: build_removed(path, urls=True),
        lambda root: edit_manifest(root, lambda m: m["recipe"].update(url_dup={"prefer": "newest"})),
    ),
    **{
        name: (build_removed, removals.LIES[name][0])
        for name in ("a cycle", "removed twice", "removed and in the corpus", "unsorted", "in the wrong file",
                     "a kept document that is nowhere", "a row lost", "a file left out", "truncated", "columns")
    },
}  # fmt: skip


@pytest.mark.parametrize("forgery", sampled("forgeries that shares of verify name", FORGERIES, 6))
def test_shares_merge_to_the_same_report(tmp_path: Path, forgery: str) -> None:
    build, tell = FORGERIES[forgery]
    root = build(tmp_path / "corpus")
    tell(root)
    whole = verify(str(root), load=load_bytes)
    assert bool(whole.failures) == (forgery != "none")
    write_shares(root, tmp_path / "partials")
    assert compared(merged(root, tmp_path / "partials")) == compared(whole)


def test_shares_need_listings(tmp_path: Path) -> None:
    """What the pieces are is not known without them: an error at once, with the words of the whole check."""
    root = build_corpus(tmp_path / "corpus")
    faults.FAULTS["shard twice"][0](root)
    (failure,) = verify(str(root), load=load_bytes).failures
    with pytest.raises(FormatError, match=re.escape(failure)):
        write_shares(root, tmp_path / "partials")
    with pytest.raises(FormatError, match=re.escape(failure)):
        merged(root, tmp_path / "partials")


def test_order_of_removals_from_file_to_file(tmp_path: Path) -> None:
    """The last row of a file and the first of the next are in different pieces."""
    root = build_removed(tmp_path / "corpus", 2)
    first, second = sorted((root / "removals").iterdir())
    data = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(data)
    edit_manifest(root)
    failures = verify(str(root), load=load_bytes).failures
    assert any("1 rows out of order; the first: row " in failure for failure in failures), failures


def forge_much(root: Path) -> None:
    """Failures of many pieces and joins at once."""
    removals.LIES["a cycle"][0](root)
    faults.FAULTS["id twice"][0](root)
    faults.FAULTS["total tokens"][0](root)
    lies.LIES["dead twice"][0](root)
    (root / f"{CODE}.bin").unlink()
    (root / "train/web/notes.txt").touch()


@one_commit_in_four
def test_processes_say_the_same(tmp_path: Path) -> None:
    root = build_removed(tmp_path / "corpus", 3)
    forge_much(root)
    alone = verify(str(root))
    assert len(alone.failures) > 7
    assert compared(verify(str(root), workers=3, worth=0)) == compared(alone)


@pytest.fixture
def shared(tmp_path: Path) -> tuple[Path, Path]:
    """A good corpus and all its partial results."""
    root, partials = build_removed(tmp_path / "corpus"), tmp_path / "partials"
    assert write_shares(root, partials) == 0
    return root, partials


def test_a_share_is_checked_once(shared: tuple[Path, Path]) -> None:
    root, partials = shared
    before = {path: path.stat().st_mtime_ns for path in partials.rglob("*")}
    (root / f"{WEB0}.bin").unlink()  # would be seen
    assert write_shares(root, partials) == 0
    assert {path: path.stat().st_mtime_ns for path in partials.rglob("*")} == before
    (partials / f"{FIRST}.json").unlink()  # as if killed before its end: what it left does not matter
    verify_share(str(root), Share(0, SHARES), str(partials), load=load_bytes)
    assert (partials / f"{FIRST}.json").exists()


def sealed(edit: Callable[[dict[str, Any]], Any]) -> Callable[[Path, Path], None]:
    def change(root: Path, partials: Path) -> None:
        payload = unseal((partials / f"{FIRST}.json").read_bytes(), "")
        edit(payload)
        (partials / f"{FIRST}.json").write_bytes(seal(payload))

    return change


def first_run(partials: Path) -> Path:
    return partials / json.loads((partials / f"{FIRST}.json").read_bytes())["runs"][0]["name"]


def rerun(edit: Callable[[bytes], bytes]) -> Callable[[Path, Path], None]:
    """The first run with other bytes, whose checksums its partial has."""

    def change(root: Path, partials: Path) -> None:
        path = first_run(partials)
        path.write_bytes(edit(path.read_bytes()))
        size, crc32c = size_and_crc32c(path)
        sealed(lambda p: p["runs"][0].update(size=size, crc32c=crc32c))(root, partials)

    return change


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


SPOILED: dict[str, tuple[Callable[[Path, Path], Any], str]] = {
    "none": (lambda root, partials: shutil.rmtree(partials), "none is there; all of one check are expected: `refinery"),
    "one missing": (
        lambda root, partials: (partials / "partial-00001-of-00003.json").unlink(),
        r"1 of 3 shares are missing: 1; run `refinery verify .* --shards 1/3`",
    ),
    "of two checks": (
        lambda root, partials: verify_share(str(root), Share(0, 2), str(partials), load=load_bytes),
        "partial results of 2 and of 3 shares are there",
    ),
    "one twice": (
        lambda root, partials: shutil.copy(partials / "partial-00001-of-00003.json", partials / f"{FIRST}.json"),
        "it is share '1/3' under the name of another",
    ),
    "another corpus": (
        lambda root, partials: edit_manifest(root, lambda m: m["totals"].update(bytes=1)),
        r"another check \(manifest differ\)",
    ),
    "other parts": (
        lambda root, partials: shutil.rmtree(root / "work"),
        r"another check \(pieces differ\)",
    ),
    "damaged": (lambda root, partials: flip(partials / f"{FIRST}.json"), f"{FIRST}.json: "),
    "a run damaged": (
        lambda root, partials: flip(first_run(partials)),
        "rows: .* found; .* expected; remove partial-0",
    ),
    "a run missing": (lambda root, partials: first_run(partials).unlink(), "rows: missing; remove partial-00000"),
    "a run elsewhere": (sealed(lambda p: p["runs"][0].update(name="../../x")), "a field is missing or wrong"),
    "an empty run": (rerun(lambda data: b""), "rows: no rows of 1 partitions; remove partial-00000"),
    "part of a row": (rerun(lambda data: data[:-3]), "rows: no rows of 1 partitions"),
    "rows that no partition has": (rerun(lambda data: bytes(16) + data[16:]), "rows: no rows of 1 partitions"),
    "a partition beyond all": (rerun(lambda data: bytes(8) + b"\xff" * 8 + data[16:]), "no rows of 1 partitions"),
    "failures that are none": (sealed(lambda p: p["findings"][0].update(failures=[1])), "a field is missing or wrong"),
    "no runs": (sealed(lambda p: p.pop("runs")), "a field is missing or wrong"),
    "a finding less": (sealed(lambda p: p["findings"].pop()), r"\d findings, \d expected"),
    "another kind": (sealed(lambda p: p.update(kind="x")), "no partial result of `refinery verify`"),
    "another version": (sealed(lambda p: p.update(schema_version=1)), "schema version 1 found, 2 expected"),
}


@pytest.mark.parametrize("spoiled", sampled("partial results that cannot be merged", SPOILED, 6))
def test_partial_results_that_cannot_be_merged(shared: tuple[Path, Path], spoiled: str) -> None:
    root, partials = shared
    spoil, message = SPOILED[spoiled]
    spoil(root, partials)
    with pytest.raises(ValueError, match=message):
        merged(root, partials)


def test_samples_are_part_of_the_question(shared: tuple[Path, Path]) -> None:
    root, partials = shared
    with pytest.raises(ValueError, match=r"another check \(samples differ\)"):
        verify_share(str(root), Share(0, SHARES), str(partials), samples=9, load=load_bytes)


@pytest.mark.parametrize("text", ["", "1", "3/3", "-1/3", "1/0", "a/b", "1/2/3", "٣/٤", "1/9999999"])
def test_shares_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"--shards: .* is expected"):
        Share.parse(text)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root, partials = str(build_corpus(tmp_path / "corpus")), str(tmp_path / "partials")
    (tmp_path / "corpus" / f"{WEB0}.idx").unlink()
    for share in ("0/2", "1/2"):
        assert execute(["verify", root, "--shards", share, "--partial", partials]) == ExitCode.DONE
    told = capsys.readouterr().out
    assert "share 0 of 2: " in told and f"refinery verify {root} --merge {partials}" in told
    assert execute(["verify", root, "--merge", partials]) == ExitCode.FAILED
    assert f"{WEB0}.idx: missing" in capsys.readouterr().out
    for flags in (["--shards", "0/2"], ["--partial", partials], ["--merge", partials, "--full"], ["--workers", "-1"],
                  ["--shards", "0/2", "--partial", partials, "--merge", partials]):  # fmt: skip
        assert execute(["verify", root, *flags]) == ExitCode.USAGE
