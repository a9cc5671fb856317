"""Corpora whose every checksum holds, whose texts are not those of their documents; files that would fill memory."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import SUFFIXES, provenance_schema
from refinery.loader.format.parquet import batches as parquet_batches
from refinery.loader.format.parquet.batches import bounded_parquet
from refinery.pipelines.corpus.verify.pieces import SAMPLES
from refinery.pipelines.corpus.verify.verify import verify
from refinery.transforms.core.document import TEXT_ID_SINCE, document_id
from tests.corpus_factory import (
    COLUMNS,
    TEXTS,
    build_corpus,
    edit_manifest,
    encode,
    provenance_row,
)
from tests.pipelines.corpus.verify.test_verify_faults import edit_provenance, rewrite, set_column

WEB0, WEB1 = (f"train/web/shard-0000{i}-of-00003" for i in range(2))
OTHER = "an other day"  # as many bytes as "one fine day"
Lie = Callable[[Path], None]


def note(texts: list[str]) -> Callable[[pa.Table], pa.Table]:
    return set_column("meta", [json.dumps({"text_id": document_id(text).hex()}) for text in texts])


def noted(root: Path, shards_of: Mapping[tuple[str, str], Sequence[Sequence[str]]] = TEXTS) -> Path:
    """The factory's corpus, as if its texts had been cut after they got their ids."""
    build_corpus(root, shards_of)

    def name_version(payload: dict) -> None:
        for stage in payload["stages"]:
            stage["version"] = TEXT_ID_SINCE[1] if stage["name"] == TEXT_ID_SINCE[0] else 1

    for (split, domain), shards in shards_of.items():
        for index, texts in enumerate(shards):
            edit_provenance(f"{split}/{domain}/shard-{index:05d}-of-{len(shards):05d}", note(list(texts)))(root)
    edit_manifest(root, name_version)
    return root


def texts_of(name: str, *texts: str) -> Lie:
    """Other tokens of the same lengths, and an index that fits."""

    def change(root: Path) -> None:
        rewrite(root, name, [encode(text) for text in texts])
        edit_manifest(root)

    return change


@pytest.mark.parametrize(
    ("lie", "problem"),
    [
        (texts_of(WEB0, OTHER, *TEXTS["train", "web"][0][1:]), f"{WEB0}.bin: document 0: its text has the id"),
        (edit_provenance(WEB0, note([OTHER, *TEXTS["train", "web"][0][1:]])), f"{WEB0}.bin: document 0: its text has"),
        (edit_provenance(WEB0, set_column("meta", ["{}"] * 3)), f"{WEB0}.bin: document 2: its text has the id"),
        (
            edit_provenance(WEB0, set_column("meta", ['{"text_id": "00"}', '{"text_id": 7}', '{"text_id": "0x"}'])),
            f"{WEB0}.provenance.parquet: 3 rows whose text_id is not an id; the first: row 0",
        ),
    ],
    ids=["text-replaced", "note-replaced", "notes-gone", "no-ids"],
)
def test_a_text_that_is_not_its_documents(tmp_path: Path, lie: Lie, problem: str) -> None:
    root = noted(tmp_path)
    assert verify(str(root)).failures == []
    lie(root)
    assert [line for line in verify(str(root)).failures if line.startswith(problem)]


def test_a_text_without_a_note_is_that_of_its_id(tmp_path: Path) -> None:
    """Older corpora have no notes, and nothing can be said of their texts."""
    root = build_corpus(tmp_path)
    assert verify(str(root)).failures == []
    noted(tmp_path / "noted")
    edit_provenance(WEB1, set_column("meta", ["{}"] * 3))(tmp_path / "noted")
    found = verify(str(tmp_path / "noted")).failures
    assert len(found) == 3 and all("its text has the id" in line for line in found)


def test_a_sample_may_miss_what_full_finds(tmp_path: Path) -> None:
    texts = [f"text number {number:03d}" for number in range(40)]
    root = build_corpus(tmp_path, {**TEXTS, ("train", "code"): [texts]})
    name = "train/code/shard-00000-of-00001"
    edit_provenance(name, note(texts))(root)
    for (split, domain), shards in TEXTS.items():
        for index, some in enumerate(shards if domain != "code" else ()):
            edit_provenance(f"{split}/{domain}/shard-{index:05d}-of-{len(shards):05d}", note(list(some)))(root)
    edit_manifest(root, lambda m: [s.update(version=2) for s in m["stages"] if s["name"] == "encode"])
    rewrite(root, name, [encode(text) for text in (*texts[::-1],)])  # any two have changed places
    edit_manifest(root)
    assert 0 < len(verify(str(root)).failures) < 40
    full = verify(str(root), samples=1 << 62)
    assert full.decoded == sum(len(some) for shards in TEXTS.values() for some in shards) - 1 + 40
    assert len(full.failures) == 40


# --- files that would fill memory -----------------------------------------------------------------------------------


def test_a_small_provenance_file_does_not_fill_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One long value that each of many rows repeats: 9 KB of file, 200 GB of text."""
    monkeypatch.setattr(parquet_batches, "MAX_BATCH", 1 << 24)
    root = build_corpus(tmp_path)
    row = provenance_row("x", WEB0, 0, 1) | {"url": "u" * (1 << 20)}
    schema = provenance_schema(COLUMNS)
    column = {name: pa.array([row[name]], schema.field(name).type) for name in schema.names}
    many = pa.array(np.zeros(200_000, np.int32))
    table = pa.table(
        {
            name: pa.DictionaryArray.from_arrays(many, values) if name == "url" else values.take(many)
            for name, values in column.items()
        }
    )
    path = root / f"{WEB0}{SUFFIXES['provenance']}"
    pq.write_table(table, path, compression="zstd", store_schema=False)
    assert path.stat().st_size < 64_000
    with path.open("rb") as stream, bounded_parquet(stream, "it") as (_, batches):
        batch = next(batches)
        assert batch.num_rows >= 1 and batch.nbytes <= 1 << 24


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"url": "u" * (2 << 20)}, r"row group 0 has a page of [0-9,]+ bytes, 1,048,576 or less expected"),
        ({"sources": ["web"] * (1 << 16)}, r"more than 65,536 values in one column"),
    ],
    ids=["page", "list"],
)
def test_pages_and_lists_of_any_size_are_refused(
    tmp_path: Path, value: dict, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_batches, "MAX_PAGE", 1 << 20)
    monkeypatch.setattr(parquet_batches, "MAX_VALUES", 1 << 16)
    rows = [provenance_row("x", WEB0, 0, 1), provenance_row("x", WEB0, 0, 1) | value]
    path = tmp_path / "it.parquet"
    pq.write_table(pa.Table.from_pylist(rows, schema=provenance_schema(COLUMNS)), path, compression="zstd")
    assert path.stat().st_size < 64_000
    with path.open("rb") as stream, pytest.raises(FormatError, match=problem), bounded_parquet(stream, "it") as _:
        raise AssertionError


def test_what_is_refused_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_batches, "MAX_PAGE", 1 << 22)
    root = build_corpus(tmp_path)
    rows = [provenance_row("x", WEB0, 0, 1) | {"meta": "{" + " " * (5 << 20) + "}"}]
    table = pa.Table.from_pylist(rows, schema=provenance_schema(COLUMNS))
    pq.write_table(table, root / f"{WEB0}{SUFFIXES['provenance']}", compression="zstd")
    edit_manifest(root)
    found = verify(str(root)).failures
    assert any(line.startswith(f"{WEB0}.provenance.parquet: row group 0 has a page of") for line in found)


def test_damaged_pages_are_a_failure(tmp_path: Path) -> None:
    path = tmp_path / "it.parquet"
    path.write_bytes(b"PAR1" + bytes(20) + b"PAR1")
    problem = pytest.raises(FormatError, match=r"^it: not a readable Parquet file: no footer of Parquet")
    with path.open("rb") as stream, problem, bounded_parquet(stream, "it"):
        raise AssertionError


def exchange(root: Path, name: str, a: int, b: int, size: int) -> None:
    """Two documents of `size` bytes of tokens each, in each other's place, under right checksums."""
    data = bytearray((root / f"{name}.bin").read_bytes())
    first, second = (slice(number * size, (number + 1) * size) for number in (a, b))
    data[first], data[second] = data[second], data[first]
    (root / f"{name}.bin").write_bytes(data)
    edit_manifest(root)


def test_exchanged_texts_outside_the_sample_need_all_texts(tmp_path: Path) -> None:
    """And verify says that it did not look at them."""
    root, documents = tmp_path / "corpus", 2 * SAMPLES + 2
    noted(root, {("train", "web"): [[f"the page with the number {number:02d}" for number in range(documents)]]})
    name = "train/web/shard-00000-of-00001"
    size = (root / f"{name}.bin").stat().st_size // documents
    sound = verify(str(root))
    assert 0 < sound.decoded <= SAMPLES
    others = documents - sound.decoded
    unseen = f"not decoded: {others} documents; texts exchanged among them are seen with --full only"
    assert sound.failures == [] and unseen in sound.summary_lines()
    whole = verify(str(root), samples=sys.maxsize)
    assert whole.failures == [] and "not decoded" not in "\n".join(whole.summary_lines())
    found = 0
    for place in range(0, documents, 2):
        exchange(root, name, place, place + 1, size)
        report = verify(str(root))
        found += bool(report.failures)
        assert report.failures or unseen in report.summary_lines()
        failures = verify(str(root), samples=sys.maxsize).failures
        assert [f"{name}.bin: document {number}: its text has the id" for number in (place, place + 1)] == [
            failure.partition(" has the id")[0] + " has the id" for failure in failures
        ]
        exchange(root, name, place, place + 1, size)
    assert 0 < found < documents // 2
