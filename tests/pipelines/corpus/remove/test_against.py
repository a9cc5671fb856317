"""A version beside the one before it: every difference is told, in the same words by one process, several or shares."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import MANIFEST, ShardEntry, read_manifest
from refinery.loader.format.parquet import batches as parquet_batches
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.cli.command_line import execute
from refinery.pipelines.corpus.checks.file_checks import collect
from refinery.pipelines.corpus.verify.as_job import verify_as_job
from refinery.pipelines.corpus.verify.before import Before
from refinery.pipelines.corpus.verify.partials import Share
from refinery.pipelines.corpus.verify.pieces import Finding
from refinery.pipelines.corpus.verify.shard_before import compare_shard
from refinery.pipelines.corpus.verify.verify import verify, verify_merged, verify_share
from refinery.pipelines.runners.runner import Runner
from refinery.pipelines.shell.exit_codes import ExitCode
from tests.corpus_factory import edit_manifest
from tests.pipelines.corpus.remove.test_verify_takedown import REMOVED, edit, edit_listing
from tests.pipelines.corpus.verify.test_ways import compared
from tests.sampling import FILE_ON_ONE_COMMIT_IN_FOUR, sampled

pytestmark = FILE_ON_ONE_COMMIT_IN_FOUR

Row = dict[str, Any]
Lie = Callable[[Path, Path], Any]


def rewritten(new: Path) -> ShardEntry:
    """A shard of the new version from which something went, and in which something is left."""
    rows: list[Row] = []
    edit_listing(new, rows.extend)
    places = {(row["split"], row["domain"], row["index"]) for row in rows}
    shards = read_manifest(open_store(str(new))).shards
    return next(s for s in shards if (s.split, s.domain, s.index) in places and s.documents > 1)


def untouched(new: Path, old: Path) -> ShardEntry:
    shards = (read_manifest(open_store(str(prefix))).shards for prefix in (new, old))
    found: ShardEntry = next(now for now, before in zip(*shards, strict=False) if now == before)
    return found


def flip(path: Path, at: int = -1) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.unlink()  # it may be a link
    path.write_bytes(data)


def listing(change: Callable[[Row], Any]) -> Lie:
    """Something else of the first document that is listed of a shard."""

    def lie(new: Path, old: Path) -> None:
        edit_listing(new, lambda listed: change(next(row for row in listed if row["split"])))

    return lie


def of_new(suffix: str) -> Lie:
    """Another byte in a file of a rewritten shard, with the checksums of now."""

    def lie(new: Path, old: Path) -> None:
        name = rewritten(new).bin.path.removesuffix(".bin")
        flip(new / f"{name}{suffix}")
        edit_manifest(new)

    return lie


def of_old(suffix: str) -> Lie:
    def lie(new: Path, old: Path) -> None:
        flip(old / f"{rewritten(new).bin.path.removesuffix('.bin')}{suffix}", 40)

    return lie


def reverse(new: Path, old: Path) -> None:
    """What counts of a row is its place, not where in the list it stands."""
    edit_listing(new, lambda listed: listed.reverse())


def other_file(new: Path, old: Path) -> None:
    flip(new / untouched(new, old).bin.path)
    edit_manifest(new)


def without_list(new: Path, old: Path) -> None:
    edit(new, lambda payload: payload.update(files=[f for f in payload["files"] if f["path"] != REMOVED]))


def fewer_shards(new: Path, old: Path) -> None:
    shard = rewritten(new)
    edit(new, lambda m: m.update(shards=[s for s in m["shards"] if s["files"]["bin"]["path"] != shard.bin.path]))


LIES: dict[str, tuple[Lie, str]] = {
    "none": (lambda new, old: None, ""),
    "rows out of order": (reverse, ""),
    "another token": (of_new(".bin"), r"\.bin: tokens \d+ to \d+ are not those of before, from \d+ on"),
    "another token before": (of_old(".bin"), r"\.bin: .*\.bin: crc32c \w+ found, "),
    "another index before": (of_old(".idx"), r"\.bin: .*\.idx: crc32c \w+ found, "),
    "no file before": (lambda new, old: (old / rewritten(new).bin.path).unlink(), r"\.bin: .*\.bin: missing, "),
    "no rows before": (lambda new, old: (old / rewritten(new).provenance.path).unlink(), r"\.bin: \[Errno 2\]"),
    "a longer document": (listing(lambda row: row.update(token_count=row["token_count"] + 1)), r"were there$"),
    "another row": (
        listing(lambda row: row.update(row=row["row"] + 1)),
        r"do not have their former lengths$|is not the document",
    ),
    "another id": (
        listing(lambda row: row.update(id=bytes(16))),
        "^takedowns/.*: 1 documents are listed that were not in",
    ),
    "no place": (
        listing(lambda row: row.update(token_offset=-1)),
        ": a place that no document can have$",
    ),
    "not its place": (listing(lambda row: row.update(token_offset=10**6)), ": .* cannot have had$"),
    "no such shard": (listing(lambda row: row.update(index=99)), "/99 is listed, but there is no such shard$"),
    "another file": (other_file, r"\.bin: no document was removed or reinstated, but the file differs$"),
    "no list": (without_list, "^.*: not in the manifest, which names it among its takedowns$"),
    "a list cut off": (lambda new, old: (new / REMOVED).write_bytes(b"PAR1"), r": size 4 found, \d+ expected; crc32c "),
    "no listings before": (lambda new, old: shutil.rmtree(old / "manifests"), ": missing, "),
    "fewer shards": (fewer_shards, ": its shards are not those of "),
    "no manifest before": (lambda new, old: (old / MANIFEST).write_bytes(b"{}"), "^--against .*"),
}


@pytest.fixture
def pair(versions: list[Path], tmp_path: Path) -> tuple[Path, Path]:
    """Copies of the version after a takedown in which documents came back, and of that before."""
    for number, name in ((1, "new"), (0, "old")):
        shutil.copytree(versions[number], tmp_path / name, ignore=shutil.ignore_patterns("work"))
    return tmp_path / "new", tmp_path / "old"


def differences(new: Path, old: Path) -> list[str]:
    """What is told of the two, by the functions that every way of checking uses."""
    store = open_store(str(new))
    pair, found = Before(store, read_manifest(store), str(old)), dict[Any, Finding]()
    for changed in pair.changed_shards:
        finding = found[changed.place] = Finding()
        finding.content += collect(changed.name, compare_shard(pair, changed, finding.facts))
    return collect(pair.prefix, pair.judge(found))


@pytest.mark.parametrize("lie", sampled("differences from the corpus before", LIES, 6))
def test_differences_are_told(pair: tuple[Path, Path], lie: str) -> None:
    tell, said = LIES[lie]
    tell(*pair)
    failures = differences(*pair)
    assert any(re.search(said, failure) for failure in failures) if said else failures == [], failures


def test_pages_are_looked_at_before_they_are_read(pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = parquet_batches.check_pages
    for where in ("shard-0", "takedowns/"):

        def pages(stream: Any, path: str, *more: Any, where: str = where) -> Any:
            if where in path:
                raise FormatError(f"{path}: has a page of 999 GB")
            return allowed(stream, path, *more)

        monkeypatch.setattr(parquet_batches, "check_pages", pages)
        assert any("has a page of 999 GB" in failure for failure in differences(*pair))


def test_every_way_tells_the_same(pair: tuple[Path, Path], tmp_path: Path) -> None:
    """One process, two, shares that are merged, and a job, of versions that differ in many things."""
    new, old = map(str, pair)
    for lie in ("another token", "another row", "another id", "another file"):
        LIES[lie][0](*pair)
    whole = verify(new, decode=False, against=old)
    assert len(differences(*pair)) > 2 and set(differences(*pair)) < set(whole.failures)
    assert compared(verify(new, decode=False, against=old, workers=2, worth=0)) == compared(whole)
    for number in range(3):
        verify_share(new, Share(number, 3), str(tmp_path / "parts"), samples=0, against=old)
    assert compared(verify_merged(new, str(tmp_path / "parts"), samples=0, against=old)) == compared(whole)
    with Runner("local", workers=0, quiet=True).open() as runner:
        by_job = verify_as_job(new, str(tmp_path / "job"), runner, samples=0, against=old)
    assert compared(by_job) == compared(whole)
    with pytest.raises(ValueError, match=r"another check \(pieces differ\): .* with or without --full or --against"):
        verify_merged(new, str(tmp_path / "parts"), samples=0)


def test_the_commands_of_shares(pair: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new, old, parts = *map(str, pair), str(tmp_path / "parts")
    verify_this = ["verify", new, "--against", old]
    for share in ("0/2", "1/2"):
        assert execute([*verify_this, "--shards", share, "--partial", parts]) == ExitCode.DONE
    assert f"refinery verify {new} --merge {parts} --against {old}" in capsys.readouterr().out
    assert execute([*verify_this, "--merge", parts]) == ExitCode.DONE
    assert f"compared with {old}" in capsys.readouterr().out
