"""Shards in input order: kept bytes are the same however documents lie in parts, and borders follow from them."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.core.document import OFFSET_BITS, Document, document_id
from refinery.transforms.tokenize.encode import EncodedDocument
from refinery.transforms.write.documents import documents_table
from refinery.transforms.write.input_order import (
    BEHIND_ALL,
    MOST_FILES,
    InputPlaces,
    Stretch,
    domain_stretches,
    find_borders,
    first_files,
    place_of,
    write_borders,
)
from refinery.transforms.write.kept_documents import PartPair
from refinery.transforms.write.kept_sizes import KeptSizes, count_offsets, count_part, merge_sizes, stretch_bits

DOCUMENTS = st.lists(st.tuples(st.integers(0, 1 << 38), st.integers(0, 1000)), min_size=1, max_size=40)


def count(documents: Sequence[tuple[int, int]], bits: int) -> KeptSizes:
    offsets, sizes = np.array(documents, np.int64).reshape(-1, 2).T
    return count_offsets(offsets, sizes, bits)


@given(DOCUMENTS, st.integers(0, 6), st.data())
def test_sums_do_not_depend_on_parts(documents: list[tuple[int, int]], bits: int, data: st.DataObject) -> None:
    whole = count(documents, bits)
    shuffled = data.draw(st.permutations(documents))
    cut = data.draw(st.integers(0, len(documents)))
    merged = merge_sizes(count(part, bits) for part in (shuffled[:cut], shuffled[cut:]) if part)
    assert (merged.shift, merged.stretches.tolist(), merged.sizes.tolist()) == (
        whole.shift,
        whole.stretches.tolist(),
        whole.sizes.tolist(),
    )
    assert len(whole.stretches) <= 1 << bits
    expected: dict[int, int] = {}
    for offset, size in documents:
        expected[offset >> whole.shift] = expected.get(offset >> whole.shift, 0) + size
    assert dict(zip(whole.stretches.tolist(), whole.sizes.tolist(), strict=True)) == expected
    starts, sizes = whole.joined(500)
    assert sum(sizes) == sum(size for _, size in documents) and starts == sorted(starts)
    assert all(size >= 500 for size in sizes[:-1])


def test_stretches_are_fine_enough() -> None:
    assert stretch_bits(0, 100) == 0
    assert 1 << stretch_bits(100_000, 100) > 8 * 1000


@given(st.lists(st.integers(0, 50), max_size=30), st.integers(1, 9))
def test_borders(sizes: list[int], shards: int) -> None:
    """Against brute force: a stretch is in the shard of the share of all bytes before it."""
    stretches = [Stretch(10 * number, size) for number, size in enumerate(sizes)]
    borders = find_borders(stretches, shards)
    assert len(borders) == shards - 1 and borders == sorted(borders)
    for number, each in enumerate(stretches):
        share = sum(sizes[:number]) * shards // sum(sizes) if sum(sizes) else shards - 1
        assert sum(border <= each.start for border in borders) == min(share, shards - 1)


def test_places_go_source_by_source(tmp_path: Path) -> None:
    firsts = first_files({"late": 2, "early": 3})
    assert firsts == {"late": 0, "early": 2}
    domains = {"late": "web", "early": "web"}
    sizes = [(("early", 1), [0, 50], [10, 10]), (("late", 1), [7], [30]), (("late", 0), [0], [10])]
    stretches = domain_stretches(sizes, firsts, domains)
    starts = [(each.start >> OFFSET_BITS, each.start & 0xFF, each.size) for each in stretches["web"]]
    assert starts == [(0, 0, 10), (1, 7, 30), (3, 0, 10), (3, 50, 10)]
    counts = {"train/web": 3, "validation/web": 1, "train/none": 2}
    places = InputPlaces(write_borders(str(tmp_path), stretches, counts, firsts))

    def index(source: str, file: int, offset: int) -> int:
        doc = EncodedDocument(b"", np.empty(0, np.uint8), source, "", "", 0, {}, position=file << OFFSET_BITS | offset)
        return places.index("train/web", places.order(doc))

    assert [index(*each) for each in (("late", 0, 9), ("late", 1, 6), ("late", 1, 7), ("early", 1, 49))] == [0, 0, 0, 2]
    assert [index(*each) for each in (("early", 0, 0), ("early", 2, 0))] == [0, 2]
    assert places.index("validation/web", 5) == 0 and places.borders["train/none"] == [BEHIND_ALL]


def test_too_many_files() -> None:
    assert place_of(MOST_FILES - 1, (1 << OFFSET_BITS) - 1) == BEHIND_ALL
    with pytest.raises(ValueError, match=r"shards.order: input given for 16,777,217 files, up to 16,777,216"):
        first_files({"a": MOST_FILES, "b": 1})


def test_a_part_is_counted_without_what_was_removed(tmp_path: Path) -> None:
    docs = [Document(document_id(f"{n}"), "", "", "ab"[n % 2], f"f@{n}", (n % 3) << OFFSET_BITS | n) for n in range(12)]
    (tmp_path / "documents").mkdir()
    (tmp_path / "signatures").mkdir()
    (tmp_path / "verdicts").mkdir()
    names = [f"{folder}/part-0.parquet" for folder in ("documents", "signatures", "verdicts")]
    pq.write_table(documents_table(docs), tmp_path / names[0], write_page_checksum=True)
    pq.write_table(pa.table({"bytes": pa.array(range(12), pa.int64())}), tmp_path / names[1], write_page_checksum=True)
    removed = {"removed": [n >= 6 for n in range(12)], "copies": [1] * 12, "sources": [[]] * 12}
    pq.write_table(pa.table(removed), tmp_path / names[2], write_page_checksum=True)
    root = str(tmp_path)
    found = {file: sizes.sizes.tolist() for file, sizes in count_part(PartPair(root, names[0], root, names[2], 1), 4)}
    assert found == {("a", 0): [0], ("b", 0): [3], ("a", 1): [4], ("b", 1): [1], ("a", 2): [2], ("b", 2): [5]}
    every = dict(count_part(PartPair(root, names[0], root, "", 1), 4))
    assert sum(int(sizes.sizes.sum()) for sizes in every.values()) == sum(range(12))
