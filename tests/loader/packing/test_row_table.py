"""Tables of rows: made in pieces as in one, kept in files that may be damaged, foreign, or not to be had."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from refinery.loader import BestFitParams, TokenStream
from refinery.loader.packing import packing, row_file, row_table
from refinery.loader.packing.row_file import _arrays, kept_table
from refinery.loader.packing.row_table import RowTable
from tests.loader.numbered import build_numbered


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    chance = np.random.default_rng(7)
    shards = [chance.integers(0, 90, 40).tolist() for _ in range(5)]
    return build_numbered(tmp_path_factory.mktemp("corpus"), {"a": shards, "b": [[3000, 1]]})


def table_of(corpus: Path, **params: Any) -> list[list[int]]:
    one = TokenStream(corpus, 32, packing=BestFitParams(**{"block": 70, **params}), prefetch=0)
    return [array.tolist() for array in _arrays(one._schedule.domains[0]._layouts._table)]  # type: ignore[attr-defined]


def test_documents_of_a_block_are_never_apart(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Packed 70 tokens at a time as in one call; a document of 3,000 tokens goes through many of them."""
    whole = table_of(corpus)
    monkeypatch.setattr(row_table, "_CHUNK", 1)
    assert table_of(corpus) == whole


def test_a_block_of_too_many_pieces(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """3,001 tokens in rows of 32."""
    monkeypatch.setattr(row_table, "MOST_PIECES", 96)
    with pytest.raises(ValueError, match=r"blocks of 4000 tokens given, which have up to \d+ pieces of documents"):
        table_of(corpus, block=4000)
    table_of(corpus, block=70)


def made() -> RowTable:
    return RowTable(np.array([5, 9, 40]), np.array([4, 3, 9], np.int32), np.array([0, 2, 3]), np.array([0, 1, 2]))


def never() -> RowTable:
    raise AssertionError("made again")


def same(one: RowTable, other: RowTable) -> bool:
    pairs = zip(_arrays(one), _arrays(other), strict=True)
    return all(a.dtype == b.dtype and a.tolist() == b.tolist() for a, b in pairs)


def test_a_table_is_made_once(tmp_path: Path) -> None:
    assert same(kept_table(tmp_path, "key", made), made())
    assert same(kept_table(tmp_path, "key", never), made())
    with pytest.raises(AssertionError, match="made again"):
        kept_table(tmp_path, "other", never)


def test_golden_bytes(tmp_path: Path) -> None:
    """Another layout, or another way to pack, must have another magic number."""
    kept_table(tmp_path, "key", made)
    (path,) = tmp_path.glob("*/rows")
    data = path.read_bytes()
    assert data[:8] == b"RFTABLE2" and len(data) == 64 + 24 + 24 + 24 + 12
    assert np.frombuffer(data, "<i8", 9, 64).tolist() == [0, 2, 3, 0, 1, 2, 5, 9, 40]
    assert np.frombuffer(data, "<i4", 3, 136).tolist() == [4, 3, 9]


@pytest.mark.parametrize("place", [0, 9, 41, 49, 57, 64, -1])
def test_a_damaged_file_is_made_again(tmp_path: Path, place: int, caplog: pytest.LogCaptureFixture) -> None:
    kept_table(tmp_path, "key", made)
    (path,) = tmp_path.glob("*/rows")
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)
    assert same(kept_table(tmp_path, "key", made), made())
    assert "damaged" in caplog.text
    assert same(kept_table(tmp_path, "key", never), made())


@pytest.mark.parametrize("size", [0, 63, 64, 100])
def test_a_cut_file_is_made_again(tmp_path: Path, size: int) -> None:
    kept_table(tmp_path, "key", made)
    (path,) = tmp_path.glob("*/rows")
    os.truncate(path, size)
    assert same(kept_table(tmp_path, "key", made), made())


def test_a_folder_that_is_none_is_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_bytes(b"")
    for _ in range(2):
        assert same(kept_table(tmp_path / "file" / "packing", "key", made), made())
    assert "are packed again at the next start" in caplog.text


def test_old_tables_go_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_file, "MOST_BYTES", 350)
    for i, key in enumerate("abc"):
        kept_table(tmp_path, key, made)
        (newest,) = [path for path in tmp_path.glob("*/rows") if path.stat().st_mtime > 10]
        os.utime(newest, (i + 1, i + 1))
    assert len(list(tmp_path.glob("*/rows"))) == 2
    assert same(kept_table(tmp_path, "c", never), made()) and same(kept_table(tmp_path, "b", never), made())


def test_a_kept_table_reads_no_index(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = table_of(corpus)
    monkeypatch.setattr(packing, "KEPT", 1)
    assert table_of(corpus, folder=tmp_path) == plain
    monkeypatch.setattr("refinery.loader.view.opened.load_index", never)
    assert table_of(corpus, folder=tmp_path) == plain
    with pytest.raises(TypeError):
        table_of(corpus, folder=tmp_path, block=71)
