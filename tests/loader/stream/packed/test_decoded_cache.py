"""The cache of decoded row groups: the same batches, decoded once; what is damaged, foreign or too large is decoded."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from refinery.loader import DecodedParams, PackedStream
from refinery.loader.format.packed import STRUCTURE
from refinery.loader.storage.fetch import ReadCounters
from refinery.loader.storage.publish_new import TEMPORARY
from refinery.loader.stream.packed.decoded_cache import DecodedCache, DecodedGroup
from refinery.loader.stream.packed.packed_source import PackedSource
from tests.corpus_factory import build_corpus
from tests.loader.streams import TEXTS
from tests.packed_factory import add_packed_rows
from tests.pipelines.small_runs import folder_files

L = 24


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return add_packed_rows(build_corpus(tmp_path_factory.mktemp("packed") / "corpus", TEXTS), L)


@pytest.fixture
def decodes(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Which groups were decoded from Parquet."""
    seen: list[tuple[int, int]] = []
    decode = PackedSource._decode

    def watched(self: PackedSource, number: int, index: int) -> DecodedGroup:
        seen.append((number, index))
        return decode(self, number, index)

    monkeypatch.setattr(PackedSource, "_decode", watched)
    return seen


def batches(corpus: Path, folder: Path | None, **params: Any) -> list[Any]:
    """All of two epochs; without a folder, without a cache."""
    decoded = None if folder is None else DecodedParams(folder, **params)
    with PackedStream(str(corpus), L, batch_size=3, epochs=2, loss_mask=True, decoded=decoded) as stream:
        return [{name: value.tolist() for name, value in batch.items()} for batch in stream]


def test_decoded_once(corpus: Path, tmp_path: Path, decodes: list[tuple[int, int]]) -> None:
    """By the first process alone; neither memory nor a later process changes what is delivered."""
    expected = batches(corpus, None)
    count = len(decodes)
    assert count == len(set(decodes))
    for memory_bytes in (0, 1 << 30):
        assert batches(corpus, tmp_path, memory_bytes=memory_bytes) == expected
    assert len(decodes) == 2 * count
    names = list(folder_files(tmp_path))
    assert len(names) == count and all(name.endswith(".rows") for name in names)


def test_columns(corpus: Path, tmp_path: Path, decodes: list[tuple[int, int]]) -> None:
    """Streams with other columns of tokens have files of their own."""
    for columns in ((), ("chunk_kind",), ()):
        decoded = DecodedParams(tmp_path)
        with PackedStream(str(corpus), L, batch_size=3, epochs=1, columns=columns, decoded=decoded) as stream:
            assert all(set(columns) <= set(batch) for batch in stream)
    assert len(decodes) == len(folder_files(tmp_path)) == 2 * len(set(decodes))


def flip(place: int) -> Callable[[bytes], bytes]:
    return lambda data: data[:place] + bytes([data[place] ^ 1]) + data[place:][1:]


@pytest.mark.parametrize(
    "damage",
    [flip(0), flip(9), flip(44), flip(80), flip(200), flip(-1), lambda d: d[:-1], lambda d: d + b"x", lambda d: b"",
     lambda d: d[:50], lambda d: b"RFROWS01" + bytes(200)],
)  # fmt: skip
def test_damage(corpus: Path, tmp_path: Path, decodes: list[tuple[int, int]], damage: Callable[[bytes], bytes]) -> None:
    """Every file is made anew, once."""
    expected = batches(corpus, tmp_path)
    good = folder_files(tmp_path)
    for name, data in good.items():
        (tmp_path / name).write_bytes(damage(data))
    before = len(decodes)
    assert batches(corpus, tmp_path) == expected
    assert len(decodes) == 2 * before
    assert folder_files(tmp_path) == good


def test_foreign_files(corpus: Path, tmp_path: Path, decodes: list[tuple[int, int]]) -> None:
    """A sound file under the name of another is not taken."""
    expected = batches(corpus, tmp_path)
    good = folder_files(tmp_path)
    names = sorted(good)
    for name, other in zip(names, [*names[1:], names[0]], strict=True):
        (tmp_path / name).write_bytes(good[other])
    assert batches(corpus, tmp_path) == expected
    assert folder_files(tmp_path) == good


def test_two_corpora(corpus: Path, tmp_path: Path) -> None:
    """One with the same names, lengths and sizes; each has its own files."""
    texts = {key: [[text.swapcase() for text in shard] for shard in shards] for key, shards in TEXTS.items()}
    other = add_packed_rows(build_corpus(tmp_path / "other", texts), L)
    alone = batches(corpus, None), batches(other, None)
    assert alone[0] != alone[1]
    for _ in range(2):
        assert (batches(corpus, tmp_path / "cache"), batches(other, tmp_path / "cache")) == alone
    assert len(list((tmp_path / "cache").iterdir())) == 2


def test_a_bound(corpus: Path, tmp_path: Path, decodes: list[tuple[int, int]]) -> None:
    """What does not fit is decoded in each process; files of other corpora go first, own ones stay."""
    expected = batches(corpus, None)
    groups = len(decodes)
    sizes = sorted(len(data) for data in folder_files_of(corpus, tmp_path / "all").values())
    bound = sum(sizes[:2]) + sizes[-1] // 2
    (tmp_path / "cache/older").mkdir(parents=True)
    (tmp_path / "cache/older/x.rows").write_bytes(bytes(bound))
    for _ in range(2):
        decodes.clear()
        assert batches(corpus, tmp_path / "cache", most_bytes=bound) == expected
        held = folder_files(tmp_path / "cache")
        assert 0 < sum(map(len, held.values())) <= bound and "older/x.rows" not in held
    assert len(decodes) == groups - len(held)
    assert batches(corpus, tmp_path / "none", most_bytes=0) == expected
    assert folder_files(tmp_path / "none") == {}


def folder_files_of(corpus: Path, folder: Path) -> dict[str, bytes]:
    batches(corpus, folder)
    return folder_files(folder)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EIO])
def test_a_disk_that_fails(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, code: int
) -> None:
    """A warning, once, and the batches of a stream without a cache."""
    expected = batches(corpus, None)

    def fail(*args: Any) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "link", fail)
    assert batches(corpus, tmp_path) == expected
    assert [record.message for record in caplog.records if "decoded rows are not kept" in record.message] != []
    assert len(caplog.records) == 1
    assert folder_files(tmp_path) == {}


def test_damage_that_stays(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder where nothing can be removed, a damaged file is never trusted, however often it is looked at."""
    expected = batches(corpus, tmp_path)
    for path in tmp_path.rglob("*.rows"):
        path.write_bytes(flip(200)(path.read_bytes()))

    def refuse(*args: Any, **options: Any) -> None:
        raise PermissionError(errno.EPERM, "no")

    monkeypatch.setattr(Path, "unlink", refuse)
    for memory_bytes in (0, 1 << 30):
        assert batches(corpus, tmp_path, memory_bytes=memory_bytes) == expected


def test_a_folder_that_cannot_be_made(corpus: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").touch()
    assert batches(corpus, tmp_path / "file/cache") == batches(corpus, None)
    assert "decoded rows are not kept" in caplog.text


def test_many_processes(corpus: Path, tmp_path: Path) -> None:
    """All at once, some killed while they write: nobody reads anything but what is right."""
    expected = batches(corpus, None)

    def child(number: int) -> int:
        pid = os.fork()
        if pid:
            return pid
        try:
            if number % 3 == 0:
                link = os.link

                def dies(*args: Any) -> None:
                    link(*args) if number else None
                    os._exit(9)

                os.link = dies  # type: ignore[assignment]
            os._exit(0 if batches(corpus, tmp_path) == expected else 1)
        finally:
            os._exit(2)

    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in [child(number) for number in range(6)]]
    assert set(codes) <= {0, 9} and codes.count(0) >= 4
    assert batches(corpus, tmp_path) == expected
    assert not [name for name in folder_files(tmp_path) if TEMPORARY in name]  # of the killed: swept


@pytest.mark.parametrize("has_loss", [False, True])
@pytest.mark.parametrize("columns", [(), ("chunk_kind",), ("nesting_depth", "char_end"), tuple(STRUCTURE)])
def test_groups(tmp_path: Path, has_loss: bool, columns: tuple[str, ...]) -> None:
    """Arrays come back as they were, at multiples of 64 bytes; a name that was not stored is not there."""
    bounds = np.array([0, 1, 3])
    loss = np.array([[True, False], [False, True]]) if has_loss else None
    further = {name: np.array([[1, 2], [-1, n]], STRUCTURE[name]) for n, name in enumerate(columns)}
    tokens = np.arange(6, dtype=np.int32).reshape(2, 3)
    group = DecodedGroup(tokens, np.array([0, 0, 1]), bounds, bounds[1:], loss, further)
    cache = DecodedCache(DecodedParams(tmp_path), "c" * 64, ReadCounters())
    assert cache.load("a") is None
    assert cache.store("a", group) and cache.store("a", group)  # as by another process
    found = cache.load("a")
    assert found is not None and cache.load("b") is None
    assert (found.loss is not None, tuple(found.columns)) == (has_loss, columns)
    for array, expected in zip(found.arrays, group.arrays, strict=True):
        np.testing.assert_array_equal(array, expected)
        assert array.ctypes.data % 8 == 0 and array.dtype == expected.dtype and not array.flags.writeable


@pytest.mark.parametrize("name", ["most_bytes", "memory_bytes"])
def test_params(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name}: -1 given, 0 or more is allowed"):
        DecodedParams(**{name: -1})
