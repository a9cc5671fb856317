"""Files that are lost or damaged between two phases of a run: the failure names the file, and nothing reads on."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.fork_server import ForkServer
from tests.pipelines.small_runs import command
from tests.pipelines.whole_runs.faults.outcomes import Record, check_clear, check_refused, check_same
from tests.sampling import sampled

MOMENTS = {"dedup": r"^work/verdicts", "shards": r"^train", "publishing": r"^tokenizer"}  # killed as it begins to write


@pytest.fixture(scope="module")
def before(small: Path, forks: ForkServer, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """moment -> a run that was killed then."""
    folder = tmp_path_factory.mktemp("moments")

    def make(moment: str) -> Path:
        prefix = folder / moment
        if not prefix.exists():
            fault = ("kill_at", {"root": str(prefix), "what": "mkdir", "name": MOMENTS[moment]})
            assert forks.run(*command(small, prefix), faults=[fault]).was_killed
        return prefix

    return make


def remove(path: Path) -> None:
    path.unlink()


def flip(path: Path, offset: int = -1) -> None:
    """One bit: in the middle, or of the byte at `offset`."""
    data = bytearray(path.read_bytes())
    data[offset if offset >= 0 else len(data) // 2] ^= 16
    path.write_bytes(data)


def flip_page_head(path: Path) -> None:
    """What kind the first page of a Parquet file is, which no checksum covers."""
    flip(path, 5)


def flip_page(path: Path) -> None:
    """At the end of a Parquet file's first page."""
    column = pq.read_metadata(path).row_group(0).column(0)
    flip(path, column.data_page_offset + column.total_compressed_size - 1)


def flip_name(path: Path) -> None:
    """A column's name in a Parquet file's footer, which no checksum covers."""
    data = path.read_bytes()
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    flip(path, data.index({"documents": b"origin", "verdicts": b"copies"}[path.parent.name], footer))


def halve(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


BETWEEN: dict[str, tuple[str, str, Callable[[Path], None]]] = {
    "signatures lost before dedup": ("dedup", "work/signatures/*", remove),
    "signatures damaged before dedup": ("dedup", "work/signatures/*", flip_page),
    "the report of clean damaged": ("dedup", "work/clean.json", flip),
    "documents lost before shards": ("shards", "work/documents/*", remove),
    "documents damaged before shards": ("shards", "work/documents/*", flip_page),
    "documents damaged where a page begins": ("shards", "work/documents/*", flip_page_head),
    "documents damaged in a column's name": ("shards", "work/documents/*", flip_name),
    "documents halved before shards": ("shards", "work/documents/*", halve),
    "verdicts lost before shards": ("shards", "work/verdicts/*", remove),
    "verdicts damaged before shards": ("shards", "work/verdicts/*", flip_page),
    "verdicts damaged in a column's name": ("shards", "work/verdicts/*", flip_name),
    "the report of dedup damaged": ("shards", "work/dedup.json", halve),
    "dead letters lost before publishing": ("publishing", "work/dead_letters/*", remove),
    "a shard lost before publishing": ("publishing", "train/*/*.bin", remove),
    "removals lost before publishing": ("publishing", "removals/*", remove),
}


@pytest.mark.parametrize("cell", sampled("damage between phases", BETWEEN, 2))
def test_between_phases(
    cell: str,
    small: Path,
    forks: ForkServer,
    reference: dict[str, bytes],
    before: Callable[[str], Path],
    tmp_path: Path,
    record_property: Record,
) -> None:
    """The failure names the file; with the file put back, the same command goes on to the same bytes."""
    moment, pattern, harm = BETWEEN[cell]
    prefix = tmp_path / "out"
    shutil.copytree(before(moment), prefix)
    path = next(iter(sorted(prefix.glob(pattern))))
    whole = path.read_bytes()
    harm(path)
    done = forks.run(*command(small, prefix))
    check_clear(done, re.escape(path.name))
    check_refused(prefix)
    path.write_bytes(whole)
    again = forks.run(*command(small, prefix))
    assert again.code == 0, again.err
    check_same(prefix, reference)
    record_property("fault cell", cell)
