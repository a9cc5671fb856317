"""Shards in a local folder: every token, and files that are damaged, truncated, replaced or overwritten during use."""

import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from refinery.loader.errors import CorruptShard, FormatError
from refinery.loader.format.block_checksums import CHECKSUM_BLOCK
from refinery.loader.read.local.local_source import LocalSource
from refinery.loader.read.token_source import open_token_source
from refinery.loader.storage.open_store import open_store
from tests.loader.remote_split import SIZES, TOKENS, check, check_everything, entries, name_of


@pytest.fixture
def local(tmp_path: Path) -> Path:
    for shard, tokens in enumerate(TOKENS):
        path = tmp_path / name_of(shard)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(tokens.tobytes())
        path.with_suffix(".idx").write_bytes(b"index")
    return tmp_path


def test_local(local: Path) -> None:
    source = open_token_source(open_store(local), entries(), np.uint16, corpus="c")
    assert isinstance(source, LocalSource)
    ranges = [(shard, 0, len(tokens)) for shard, tokens in enumerate(TOKENS)]
    source.will_need([*ranges, (0, 5000, 5001), (0, 7, 7)])
    check_everything(source)
    check(source, 0, 5, 7, np.int32)
    check(source, 2, 0, 0)
    source.done_with(ranges)
    for start, count in ((-1, 2), (1499, 2)):
        with pytest.raises(ValueError, match="0 to 1500 is allowed"):
            source.read_into(1, start, np.empty(count, np.int64))
    source.close()


def test_more_shards_than_may_be_open(local: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Maps are evicted; verified blocks stay verified unless the file is replaced."""
    source = LocalSource(open_store(local), entries(), np.uint16)
    source._most_open = 2
    check_everything(source)
    assert len(source._open) == 2
    monkeypatch.setattr("google_crc32c.value", None)
    check_everything(source)
    monkeypatch.undo()
    source._most_open = 1
    check(source, 1, 0, 10)
    path = local / name_of(0)
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data[:100] + bytes([data[100] ^ 1]) + data[101:])
    with pytest.raises(CorruptShard, match=r"shard-00000-of-00004\.bin: bytes 0 to 1048576 have crc32c"):
        check(source, 0, 0, 10)
    source.close()


def test_a_closed_source_refuses_reads(local: Path) -> None:
    source = LocalSource(open_store(local), entries(), np.uint16)
    check(source, 0, 0, 10)
    source.close()
    for shard in (0, 2):
        with pytest.raises(RuntimeError, match="closed"):
            check(source, shard, 0, 0)


@pytest.mark.parametrize("suffix", [".bin", ".idx"])
@pytest.mark.parametrize("size", [None, 1, 4000])
def test_local_files_of_another_size(local: Path, suffix: str, size: int | None) -> None:
    path = (local / name_of(1)).with_suffix(suffix)
    expected = path.stat().st_size
    if size is None:
        path.unlink()
    else:
        os.truncate(path, size)
    found = "no file" if size is None else f"{size} bytes"
    with pytest.raises(FormatError, match=f"{suffix}: {found} found, {expected} expected"):
        LocalSource(open_store(local), entries(), np.uint16)


def test_a_file_truncated_after_opening(local: Path) -> None:
    source = LocalSource(open_store(local), entries(), np.uint16)
    os.truncate(local / name_of(0), 100)
    with pytest.raises(FormatError, match="size has changed"):
        check(source, 0, 0, 10)
    source.close()


def test_manifest_that_contradicts_itself(local: Path) -> None:
    with pytest.raises(FormatError, match=r"\d+ expected for \d+ tokens"):
        LocalSource(open_store(local), entries(), np.int32)


def check_now(source: LocalSource) -> None:
    """Make the next read check for changes, as if a millisecond had passed."""
    for opened in source._open.values():
        opened.check_at = 0.0


@pytest.mark.parametrize("size", [0, 100, CHECKSUM_BLOCK + 7, SIZES[0] + 1])
def test_a_file_truncated_or_extended_while_mapped(local: Path, size: int) -> None:
    """Detected before the map is read, verified or not. With its size restored, it is verified again."""
    source = LocalSource(open_store(local), entries(), np.uint16)
    check(source, 0, 0, 10)
    path = local / name_of(0)
    os.truncate(path, size)
    check_now(source)
    for _ in range(2):
        with pytest.raises(FormatError, match=f"{path}: its size has changed, {size} bytes found, {SIZES[0]} expected"):
            check(source, 0, 0, 10)
    check(source, 1, 0, 10)
    os.truncate(path, SIZES[0])
    if size < SIZES[0]:
        with pytest.raises(CorruptShard, match=r"shard-00000-of-00004\.bin: bytes \d+ to \d+ have crc32c"):
            check_everything(source)
    path.write_bytes(TOKENS[0].tobytes())
    check_everything(source)
    source.close()


def test_a_file_truncated_before_a_block_is_hashed(local: Path) -> None:
    source = LocalSource(open_store(local), entries(), np.uint16)
    check(source, 0, 0, 10)
    os.truncate(local / name_of(0), CHECKSUM_BLOCK)
    source._open[0].check_at = float("inf")
    with pytest.raises(FormatError, match="its size has changed"):
        check(source, 0, CHECKSUM_BLOCK, 10)
    source.close()


def test_an_overwritten_file_is_verified_again(local: Path) -> None:
    source = LocalSource(open_store(local), entries(), np.uint16)
    check_everything(source)
    path = local / name_of(0)
    data = path.read_bytes()
    with path.open("r+b") as stream:
        stream.write(bytes([data[0] ^ 1]))
    os.utime(path, ns=(0, 0))
    check_now(source)
    with pytest.raises(CorruptShard, match=r"bytes 0 to 1048576 have crc32c"):
        check(source, 0, 0, 10)
    check(source, 0, CHECKSUM_BLOCK, 10)
    source.close()


def test_a_replaced_or_removed_file_stays_readable(local: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The map still refers to the verified file, whatever is at its path now."""
    source = LocalSource(open_store(local), entries(), np.uint16)
    check_everything(source)
    path = local / name_of(0)
    (local / "other").write_bytes(bytes(SIZES[0]))
    (local / "other").replace(path)
    (local / name_of(1)).unlink()
    check_now(source)
    monkeypatch.setattr("google_crc32c.value", None)
    check_everything(source)
    source.close()


@pytest.mark.parametrize("seconds, pause", [(0.000001, 0.001), (0.25, 12.5)])
def test_checks_are_rare(local: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, pause: float) -> None:
    """Once per millisecond, and at most a fiftieth of the time if they are slow."""
    source = LocalSource(open_store(local), entries(), np.uint16)
    monkeypatch.setattr(
        "refinery.loader.read.local.mapped_file.time", SimpleNamespace(monotonic=lambda: 100.0 + seconds)
    )
    source.verified(1, 0, 10, 100.0)
    opened = source._open[1]
    assert opened.check_at == pytest.approx(100.0 + pause)
    source.verified(1, 0, 10, 100.0 + 0.9 * pause)
    assert opened.check_at == pytest.approx(100.0 + pause)
    source.verified(1, 0, 10, 100.0 + pause)
    assert opened.check_at >= 100.0 + pause + 0.001
    source.close()
