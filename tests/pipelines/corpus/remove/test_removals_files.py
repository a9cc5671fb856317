"""The files of removals in a new version: the bytes that all their rows would make, read and written piece by piece."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import FileEntry
from refinery.loader.format.parquet import batches
from refinery.loader.format.removals import REMOVALS_SCHEMA, column_ids, removals_file, removals_name, write_removals
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import checksums
from refinery.pipelines.corpus.remove import files
from refinery.pipelines.corpus.remove.rows import key_of
from refinery.transforms.core.spill.sorted_tables import sort_rows

PER_FILE = 100


def some_rows(count: int, seed: int) -> list[dict[str, Any]]:
    """Rows of which some have the id of others."""
    rng = np.random.default_rng(seed)
    ids = [rng.bytes(16) for _ in range(max(1, count // 2))]
    return [
        {
            "id": ids[int(rng.integers(len(ids)))],
            "kept_id": rng.bytes(16),
            "similarity": 1.0,
            "reason": "exact-duplicate",
            "scope": "corpus",
            "url": f"https://{seed}.example/{number}",
            "source": "web",
            "origin": f"pages@{seed}-{number}",
        }
        for number in range(count)
    ]


def write(root: Path, rows: list[dict[str, Any]]) -> list[FileEntry]:
    """Files as a run writes them."""
    table = sort_rows([pa.Table.from_pylist(rows, schema=REMOVALS_SCHEMA)])
    count = -(-len(rows) // PER_FILE)
    number = removals_file(column_ids(table["id"]), count) if rows else np.empty(0)
    found = []
    for index in range(count):
        path = root / removals_name(index, count)
        path.parent.mkdir(parents=True, exist_ok=True)
        part = table.filter(pa.array(number == index))
        write_removals(path, [part])
        found.append(FileEntry(removals_name(index, count), *checksums(path), rows=part.num_rows))
    return found


@pytest.mark.parametrize(
    ("count", "goes", "comes"),
    [
        (450, slice(0, 0), 0),
        (450, slice(7, 8), 0),
        (450, slice(0, 450, 90), 5),
        (450, slice(0, 1), 2),
        (450, slice(0, 120), 3),  # fewer files
        (450, slice(0, 3), 160),  # more
        (90, slice(0, 90), 0),  # none
        (0, slice(0, 0), 130),
    ],
)
def test_bytes_of_all_rows(
    count: int, goes: slice, comes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "count_files", lambda removed: -(-removed // PER_FILE))
    monkeypatch.setattr(batches, "BATCH_ROWS", 16)
    rows, more = some_rows(count, 1), some_rows(comes, 2)
    gone = [key_of(row) for row in rows[goes]]
    old, new = open_store(str(tmp_path / "old")), open_store(str(tmp_path / "new"))
    manifest: Any = SimpleNamespace(removals=write(tmp_path / "old", rows))
    read, opens = [], old.open

    def noted(name: str) -> Any:
        read.append(name)
        return opens(name)

    monkeypatch.setattr(old, "open", noted)
    found = files.rewrite_removals(old, new, manifest, gone, more)
    stays = [row for row in rows if key_of(row) not in set(gone)]
    expected = write(tmp_path / "expected", [*stays, *more])
    assert [(each["path"], each["sha256"], each["rows"]) for each in found] == [
        (each.path, each.sha256, each.rows) for each in expected
    ]
    for each in expected:
        assert (tmp_path / "new" / each.path).read_bytes() == (tmp_path / "expected" / each.path).read_bytes()
    if (goes, comes) == (slice(7, 8), 0):
        assert len(read) == 1  # of five files


def test_rows_in_another_order_are_an_error(tmp_path: Path) -> None:
    rows = some_rows(60, 1)
    (entry,) = write(tmp_path, rows)
    (tmp_path / entry.path).unlink()
    write_removals(tmp_path / entry.path, [pa.Table.from_pylist(rows, schema=REMOVALS_SCHEMA)])
    old, new = open_store(str(tmp_path)), open_store(str(tmp_path / "new"))
    manifest: Any = SimpleNamespace(removals=[entry])
    with pytest.raises(FormatError, match=r"removals: rows are not in the order .* run `refinery verify` for details"):
        files.rewrite_removals(old, new, manifest, [key_of(rows[0])], [])
    assert not list((tmp_path / "new").rglob("*.parquet"))
