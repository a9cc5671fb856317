"""Published rejects and dead letters: every row once, the same files however rows fell into parts, whoever writes."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyarrow import Table

from refinery.transforms.core.exchange.side_outputs import take_side_outputs
from refinery.transforms.core.job.report import REJECT_SCHEMA, merge_records, write_part
from refinery.transforms.core.part_errors import UnreadablePart
from refinery.transforms.core.spill.sorted_tables import sort_rows
from refinery.transforms.write import records as module
from refinery.transforms.write.records import (
    KIND,
    PublishedFiles,
    WriteRecords,
    count_record_files,
    publish_file,
    read_records,
    record_file_name,
    write_record_tasks,
)
from tests.beam import run_and_collect
from tests.sampling import one_commit_in_four

Row = dict[str, str]


def make_rows(count: int) -> list[Row]:
    """Some origins were dropped twice: a page of two sources, a chunk of two stages."""
    shared = {"stage": "url", "source": "crawl", "excerpt": "a\n\"b'", "found": ""}
    return [
        {**shared, "reason": f"reason-{i % 3}", "url": f"https://e.org/{i % 7}", "origin": f"in/a.warc.gz@{i // 2}"}
        for i in range(count)
    ]


def write_parts(work: Path, layout: Sequence[Sequence[Row]]) -> list[tuple[str, str]]:
    for number, rows in enumerate(layout):
        write_part(str(work), "rejects", f"part-{number:032x}", Table.from_pylist(list(rows), schema=REJECT_SCHEMA))
    return [(str(work), f"rejects/part-{number:032x}.parquet") for number in range(len(layout))]


def run(work: Path, parts: list[tuple[str, str]], files: int, out: Path, *flags: str) -> list[dict[str, Any]]:
    def build(pipeline: Any) -> Any:
        pipeline | WriteRecords("rejects", write_record_tasks(str(work), parts), files, str(out))
        return take_side_outputs(pipeline)

    found = (record for side in run_and_collect(build, *flags) for record in side)
    return list(merge_records(found, {KIND: PublishedFiles})[KIND])


def file_of(origin: str, count: int) -> int:
    """The rule of docs/format.md, written again."""
    digest = hashlib.blake2b(digest_size=8)
    for part in (b"record-file", origin.encode()):
        digest.update(len(part).to_bytes(4, "little") + part)
    return int.from_bytes(digest.digest(), "big") * count >> 64


@one_commit_in_four
@pytest.mark.parametrize("files", [1, 3])
def test_every_row_once_and_the_same_bytes_for_every_layout(tmp_path: Path, files: int) -> None:
    rows = make_rows(300)
    layouts = [[rows], [rows[::-1][:90], rows[::-1][90:]], [rows[i::5] for i in range(5)]]
    seen = []
    for number, layout in enumerate(layouts):
        work, out = tmp_path / f"work{number}", tmp_path / f"out{number}"
        flags = ["--direct_runner_bundle_repeat=2"] if number == 1 else []
        seen.append(run(work, write_parts(work, layout), files, out, *flags))
        for file in seen[-1]:
            data = (out / file["path"]).read_bytes()
            assert (len(data), hashlib.sha256(data).hexdigest()) == (file["size"], file["sha256"])
    assert seen[1:] == seen[:-1]
    assert [file["path"] for file in seen[0]] == [record_file_name("rejects", index) for index in range(files)]
    for index, file in enumerate(seen[0]):
        found = [tuple(row.values()) for row in pq.read_table(tmp_path / "out0" / file["path"]).to_pylist()]
        here = (row for row in rows if file_of(row["origin"], files) == index)
        due = [tuple(row[name] for name in REJECT_SCHEMA.names) for row in here]
        assert found == sorted(due) and found


def test_the_launcher_and_a_job_write_the_same_file(tmp_path: Path) -> None:
    parts = write_parts(tmp_path / "work", [make_rows(50), make_rows(20)[::-1]])
    table = sort_rows(read_records(*part, REJECT_SCHEMA) for part in parts)
    assert [publish_file("rejects", 0, [table], str(tmp_path / "one"))] == run(
        tmp_path / "work", parts, 1, tmp_path / "two"
    )


def test_a_damaged_part_is_named(tmp_path: Path) -> None:
    ((root, path),) = write_parts(tmp_path, [make_rows(20)])
    data = (tmp_path / path).read_bytes()
    (tmp_path / path).write_bytes(data[: len(data) // 2])
    with pytest.raises(UnreadablePart, match="rejects/part-0000"):
        read_records(root, path, REJECT_SCHEMA)


@pytest.mark.parametrize(
    ("rows", "excerpt_chars", "files"),
    [(0, 0, 0), (1, 0, 1), (1_000_000, 0, 1), (1_000_001, 0, 2), (100_000, 2_000, 2), (5, 10**9, 5)],
)
def test_number_of_files(rows: int, excerpt_chars: int, files: int) -> None:
    assert count_record_files(rows, excerpt_chars) == files


def test_files_are_found_by_origin() -> None:
    origins = [f"in/a.warc.gz@{i}" for i in range(1000)]
    assert module.record_files(origins, 7).tolist() == [file_of(origin, 7) for origin in origins]
    assert not module.record_files(origins, 1).any()
