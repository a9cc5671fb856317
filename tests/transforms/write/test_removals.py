"""Removals: every removed document once, sorted, the same bytes however the documents fell into parts and groups."""

import hashlib
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from refinery.loader.format.removals import REASONS, REMOVALS_SCHEMA, removals_file, removals_name
from refinery.loader.storage.store import StorageConflict
from refinery.transforms.core.exchange.side_outputs import take_side_outputs
from refinery.transforms.core.job.report import merge_records, write_part
from refinery.transforms.core.job.task_list import read_task_list
from refinery.transforms.core.spill import sorted_tables
from refinery.transforms.dedup.records import record_batch
from refinery.transforms.dedup.verdicts import VERDICTS_SCHEMA
from refinery.transforms.write import removals as module
from refinery.transforms.write import table_batches
from refinery.transforms.write.documents import DOCUMENTS_SCHEMA
from refinery.transforms.write.kept_documents import PartPair, write_pairs
from refinery.transforms.write.removals import WriteRemovals, count_files, read_removals
from refinery.transforms.write.table_batches import deserialize_batch
from tests.beam import run_and_collect
from tests.sampling import one_commit_in_four

Row = dict[str, Any]  # a document's columns and its verdict's


def make_rows(count: int, seed: int, copies: int = 3) -> list[Row]:
    """Documents of which about half are removed; some ids have several copies."""
    rng = random.Random(seed)
    ids = [rng.randbytes(16) for _ in range(count)]
    rows = []
    for i in range(count):
        removed = rng.random() < 0.5
        id_ = ids[i % copies] if i % 5 == 0 else ids[i]
        rows.append(
            {
                "id": id_,
                "url": rng.choice(["", f"https://e.org/{rng.randrange(9)}?q=%\n'*"]),
                "source": rng.choice(["crawl", "notes"]),
                "origin": f"in/a.warc.gz@{i}",
                "removed": removed,
                "kept_id": rng.choice([id_, rng.choice(ids)]) if removed else None,
                "similarity": rng.choice([1.0, 0.75, 0.8]) if removed else None,
                "reason": rng.choice(REASONS) if removed else "",
                "scope": "corpus" if removed else "",
            }
        )
    return rows


def write_parts(folder: Path, layout: Sequence[Sequence[Row]], group: int) -> list[PartPair]:
    """documents/ and verdicts/ as the phases write them, and a pair for every part."""
    pairs = []
    (folder / "documents").mkdir(parents=True)
    for number, rows in enumerate(layout):
        name = f"part-{number:032x}"
        documents = [{"text": "x" * 50, "position": 0, "meta": "{}"} | r for r in rows]
        table = pa.Table.from_pylist(documents, schema=DOCUMENTS_SCHEMA)
        pq.write_table(table, folder / "documents" / f"{name}.parquet", row_group_size=group, write_page_checksum=True)
        rest = {"copies": 1, "sources": ["crawl"]}
        rest |= {name: [] for name in VERDICTS_SCHEMA.names if name not in {*rest, *(rows[0] if rows else ())}}
        verdicts = pa.Table.from_pylist([rest | r for r in rows], schema=VERDICTS_SCHEMA)
        write_part(str(folder), "verdicts", name, verdicts)
        places = (str(folder), f"documents/{name}.parquet", str(folder), f"verdicts/{name}.parquet")
        pairs.append(PartPair(*places, groups=-(-len(rows) // group)))
    return pairs


def run(pairs: list[PartPair], files: int, out: Path, *flags: str) -> dict[str, Any]:
    def build(pipeline: Any) -> Any:
        pipeline | WriteRemovals(write_pairs(f"{out}-work", pairs), files, str(out))
        return take_side_outputs(pipeline)

    return merge_records(record for side in run_and_collect(build, *flags) for record in side)


def published(out: Path) -> dict[str, str]:
    return {p.relative_to(out).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest() for p in out.rglob("*.parquet")}


def expected_rows(rows: Sequence[Row]) -> list[tuple[Any, ...]]:
    """Brute force: the removed rows, sorted by all columns."""
    return sorted(tuple(r[name] for name in REMOVALS_SCHEMA.names) for r in rows if r["removed"])


@one_commit_in_four
@pytest.mark.parametrize("files", [1, 3])
def test_every_removal_once_and_the_same_bytes_for_every_layout(tmp_path: Path, files: int) -> None:
    rows = make_rows(300, 7)
    layouts = [([rows], 300), ([rows[::-1][:90], [], rows[::-1][90:]], 7), ([rows[i::5] for i in range(5)], 64)]
    seen = []
    for number, (layout, group) in enumerate(layouts):
        pairs = write_parts(tmp_path / f"work{number}", layout, group)
        out = tmp_path / f"out{number}"
        flags = ["--direct_runner_bundle_repeat=2"] if number == 1 else []
        report = run(pairs, files, out, *flags)["removals"]
        assert [file["path"] for file in report] == [removals_name(i, files) for i in range(files)]
        assert published(out) == {file["path"]: file["sha256"] for file in report}
        seen.append(report)
    assert seen[1:] == seen[:-1]
    tables = [pq.read_table(tmp_path / "out0" / file["path"]) for file in seen[0]]
    assert all(table.schema.equals(REMOVALS_SCHEMA) for table in tables)
    assert [table.num_rows for table in tables] == [file["rows"] for file in seen[0]]
    found = [tuple(row.values()) for table in tables for row in table.to_pylist()]
    rounded = [(*r[:2], float(np.float32(r[2])), *r[3:]) for r in expected_rows(rows)]
    assert found == rounded and len(found) > 100


def test_no_files_without_removals(tmp_path: Path) -> None:
    pairs = write_parts(tmp_path / "work", [make_rows(5, 1)], 5)
    assert run(pairs, 0, tmp_path / "out")["removals"] == []
    assert run([PartPair("nowhere", "x", "nowhere", "", 1)], 0, tmp_path / "out")["removals"] == []
    assert not (tmp_path / "out").exists()


def test_a_file_that_no_row_falls_into_is_written(tmp_path: Path) -> None:
    rows = [row | {"id": bytes(16)} for row in make_rows(9, 2)]
    report = run(write_parts(tmp_path / "work", [rows], 4), 2, tmp_path / "out")["removals"]
    assert [file["rows"] for file in report] == [len(expected_rows(rows)), 0]


def test_other_bytes_are_never_replaced(tmp_path: Path) -> None:
    pairs = write_parts(tmp_path / "work", [make_rows(20, 3)], 20)
    first = run(pairs, 1, tmp_path / "out")
    assert run(pairs, 1, tmp_path / "out") == first  # the same bytes: a success
    pairs = write_parts(tmp_path / "other", [make_rows(20, 4)], 20)
    with pytest.raises(StorageConflict, match="exists with other bytes"):
        run(pairs, 1, tmp_path / "out")


def test_verdicts_of_another_length_are_an_error(tmp_path: Path) -> None:
    (pair,) = write_parts(tmp_path / "work", [make_rows(10, 5)], 10)
    path = tmp_path / "work" / pair.verdicts
    pq.write_table(pq.read_table(path, partitioning=None).slice(1), path)
    with pytest.raises(ValueError, match="9 verdicts for 10 documents"):
        list(read_removals(pair))


def test_batches_are_small_and_lose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = make_rows(400, 6)
    pairs = write_parts(tmp_path / "work", [rows], 50)
    monkeypatch.setattr(table_batches, "BATCH_BYTES", 2_000)
    monkeypatch.setattr(table_batches, "HELD_BYTES", 5_000)
    dofn = module._BatchRemovals(4)
    dofn.start_bundle()
    (line, *_) = read_task_list(write_pairs(str(tmp_path), pairs))
    batches = list(dofn.process(line))
    batches += [element.value for element in dofn.finish_bundle()]
    tables = [(file, deserialize_batch(batch)) for file, batch in batches]
    assert sum(table.num_rows for _, table in tables) == len(expected_rows(rows))
    assert all(table.nbytes <= 5_000 for _, table in tables) and len(tables) >= 10
    for file, table in tables:
        assert {file} == {int(i[:4].hex(), 16) * 4 >> 32 for i in table["id"].to_pylist()}


def test_files_are_equal_ranges_of_ids() -> None:
    ids = [bytes.fromhex(head) + bytes(12) for head in ("00000000", "55555555", "55555556", "aaaaaaab", "ffffffff")]
    raw = np.frombuffer(b"".join(ids), np.uint8).reshape(-1, 16)
    assert removals_file(raw, 3).tolist() == [0, 0, 1, 2, 2]
    assert removals_file(raw, 1).tolist() == [0] * 5
    assert removals_file(raw[:0], 3).tolist() == []


@pytest.mark.parametrize(("removed", "files"), [(0, 0), (1, 1), (1_000_000, 1), (1_000_001, 2), (2_500_000, 3)])
def test_number_of_files(removed: int, files: int) -> None:
    assert count_files(removed) == files


def test_reasons_are_those_of_deduplication() -> None:
    assert ("", *REASONS) == record_batch.REASONS


def test_a_file_that_does_not_fit_in_memory_has_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """2,000 copies of one text, which are in one file, sorted on disk in lots of 20 kB."""
    rows = [row | {"id": bytes(16), "kept_id": bytes(16)} for row in make_rows(4_000, 5)]
    report = run(write_parts(tmp_path / "work", [rows[::2], rows[1::2]], 100), 2, tmp_path / "out")["removals"]
    monkeypatch.setattr(sorted_tables, "SORT_BYTES", 20_000)
    monkeypatch.setattr(sorted_tables, "WINDOW_BYTES", 3_000)
    pairs = write_parts(tmp_path / "again", [rows], 64)
    assert run(pairs, 2, tmp_path / "spilled")["removals"] == report
    assert [file["rows"] for file in report] == [len(expected_rows(rows)), 0] and report[0]["rows"] > 1_000
