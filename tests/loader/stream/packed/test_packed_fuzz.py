"""Packed rows that are damaged or wrong anywhere: an error, or exactly the rows of the file; never others, no hang."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import read_manifest
from refinery.loader.format.packed import COUNTS, PLACES, REQUIRED, PackedFormat
from refinery.loader.storage.open_store import open_store
from refinery.loader.stream.packed.packed_source import PackedSource, RowFile, row_files
from tests.corpus_factory import BOS, EOS, VOCABULARY, build_corpus, edit_manifest
from tests.packed_factory import add_packed_rows
from tests.sampling import examples

L = 12
WEB0 = "packed/train/web/rows-00000-of-00003-00000.parquet"
HUGE = 2**31 - 1


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return add_packed_rows(build_corpus(tmp_path_factory.mktemp("packed") / "corpus"), L)


@pytest.fixture(scope="module")
def good(corpus: Path) -> bytes:
    return (corpus / WEB0).read_bytes()


def read_all(corpus: Path) -> list[list[int]]:
    """Tokens of all rows of the file. Raises FormatError."""
    manifest = read_manifest(open_store(corpus))
    assert manifest.packed is not None
    files = [f for f in row_files(manifest.shards, manifest.packed) if f.bin.path == WEB0]
    return decode(corpus, files, manifest.packed)


def decode(corpus: Path, files: list[RowFile], layout: PackedFormat) -> list[list[int]]:
    source = PackedSource(open_store(corpus), files, layout)
    try:
        count = files[0].bin.rows or 0
        groups = [source._group(0, index) for index in range(-(-count // layout.group_rows))]
        return [row for group in groups for row in group.tokens[:, :-1].tolist()]
    finally:
        source.close()


@settings(max_examples=examples(300), deadline=None)
@given(data=st.data())
def test_any_damage(corpus: Path, good: bytes, data: st.DataObject) -> None:
    """Bytes changed, cut off or added: noticed before Parquet's reader sees them."""
    damaged = bytearray(good)
    for place in data.draw(st.lists(st.integers(0, len(good) - 1), max_size=3, unique=True)):
        damaged[place] ^= data.draw(st.integers(1, 255))
    cut = data.draw(st.one_of(st.just(len(good)), st.integers(0, len(good))))
    damaged = damaged[:cut] + data.draw(st.binary(max_size=3))
    (corpus / WEB0).write_bytes(damaged)
    try:
        if damaged == good:
            assert len(read_all(corpus)) > 3
        else:
            with pytest.raises(FormatError):
                read_all(corpus)
    finally:
        (corpus / WEB0).write_bytes(good)


def is_valid(row: dict[str, Any]) -> bool:
    """The contract, in this test's own words."""
    valid, docs, ids, loss = row["valid_token_count"], row["doc_ids"], row["input_ids"], row["loss_mask"]
    if not 1 <= valid <= L or row["slack_tokens"] != L - valid or any(len(row[name]) != L for name in PLACES):
        return False
    if not all(0 <= token < VOCABULARY for name in ("input_ids", "target_ids") for token in row[name]):
        return False
    if docs[valid:] != [-1] * (L - valid) or ids[valid:] != [EOS] * (L - valid) or docs[0] != 0:
        return False
    for place in range(valid):
        is_first = place == 0 or docs[place] == docs[place - 1] + 1
        if (not is_first and docs[place] != docs[place - 1]) or (ids[place] == BOS) != is_first:
            return False
    if row["num_docs"] != docs[valid - 1] + 1:
        return False
    inside = [place + 1 < valid and docs[place] == docs[place + 1] for place in range(L)]
    return all(
        not has or (inside[place] and row["target_ids"][place] == ids[place + 1]) for place, has in enumerate(loss)
    )


VALUES = st.sampled_from([-1, 0, 1, 2, L, L + 1, 65, BOS, EOS, VOCABULARY, HUGE, -HUGE, None])


@settings(max_examples=examples(200), deadline=None)
@given(data=st.data())
def test_any_values(corpus: Path, good: bytes, data: st.DataObject) -> None:
    """Sound Parquet of other values, lengths and types, with the checksums of its own."""
    table = pq.read_table(corpus / WEB0)
    rows = table.select(list(REQUIRED)).to_pylist()
    for _ in range(data.draw(st.integers(0, 3))):
        row, name = data.draw(st.integers(0, len(rows) - 1)), data.draw(st.sampled_from(REQUIRED))
        value = data.draw(st.booleans() if name == "loss_mask" else VALUES)
        if name in COUNTS:
            rows[row][name] = value
        elif data.draw(st.integers(0, 5)):
            rows[row][name][data.draw(st.integers(0, len(rows[row][name]) - 1))] = value
        elif rows[row][name]:
            rows[row][name].pop()
            break  # shorter by one: an index drawn from it could be none
    kind = data.draw(st.sampled_from([pa.int32(), pa.int64(), pa.int16()]))
    lists = data.draw(st.sampled_from([pa.list_, pa.large_list]))
    edited = {name: [row[name] for row in rows] for name in REQUIRED}
    try:
        columns = {
            name: pa.array(values, kind if name in COUNTS else lists(pa.bool_() if name == "loss_mask" else kind))
            for name, values in edited.items()
        }
    except pa.ArrowInvalid:
        return  # a value that this type cannot hold
    try:
        pq.write_table(pa.table(columns), corpus / WEB0, row_group_size=1024)
        edit_manifest(corpus)
        nulls = any(None in (row[name] if name in PLACES else [row[name]]) for row in rows for name in REQUIRED)
        if not nulls and all(map(is_valid, rows)):
            assert read_all(corpus) == [row["input_ids"] for row in rows]
        else:
            with pytest.raises(FormatError):
                read_all(corpus)
    finally:
        (corpus / WEB0).write_bytes(good)
        edit_manifest(corpus)
