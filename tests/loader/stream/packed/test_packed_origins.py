"""Packed rows know their documents, as the files and the provenance say."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from refinery.loader import PackedStream
from refinery.loader.format.manifest import read_manifest
from refinery.loader.storage.open_store import open_store
from refinery.loader.stream.packed.packed_origins import LISTS
from tests.corpus_factory import build_corpus
from tests.loader.streams import TEXTS
from tests.packed_factory import add_packed_rows, rewrite_packed

L = 24


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return add_packed_rows(build_corpus(tmp_path / "corpus", TEXTS), L)


def test_every_row(corpus: Path) -> None:
    provenance = {}
    for entry in read_manifest(open_store(corpus)).shards:
        for number, row in enumerate(pq.read_table(corpus / entry.provenance.path).to_pylist()):
            provenance[row["id"].hex()] = entry.domain, number, row["url"], row["origin"]
    stored = {}
    for path in (corpus / "packed/train").glob("*/*.parquet"):
        stored[str(path.relative_to(corpus))] = pq.read_table(path).to_pylist()
    numbers: set[int] = set()
    with PackedStream(corpus, L, 3, epochs=1, sample_ids=True, domain_ids=True, doc_ids=True) as stream:
        for batch in stream:
            for row, number in enumerate(batch["sample_ids"].tolist()):
                if number < 0:
                    continue
                parts, ids = stream.locate(number), batch["doc_ids"][row].tolist()
                same = [r for r in stored[parts[0].shard] if r["input_ids"] == batch["input_ids"][row].tolist()]
                named = [[part.id for part in parts], [part.source for part in parts], [part.first for part in parts]]
                lists = [[[i.hex() for i in r["document_ids"]], *(r[name] for name in LISTS[1:])] for r in same]
                assert named in lists
                numbers.add(number)
                for place, part in enumerate(parts):
                    assert ids[part.start : part.stop] == [place] * (part.stop - part.start)
                    assert (part.domain, part.document, part.url, part.origin) == provenance[part.id]
                    assert stream.domain_names[batch["domain_ids"][row]] == part.domain
                assert sum(place >= 0 for place in ids) == parts[-1].stop
    assert len(numbers) == sum(map(len, stored.values()))


def test_a_file_without_its_documents(corpus: Path) -> None:
    """The lists are not required: places are known, and nothing else."""
    path = "packed/train/code/rows-00000-of-00001-00000.parquet"
    rewrite_packed(corpus, path, lambda table: table.drop(["document_ids", "document_sources", "document_starts"]))
    with PackedStream(corpus, L, 1, sample_ids=True, weights={"code": 1}) as stream:
        (part, *_) = stream.locate(int(next(stream)["sample_ids"][0]))
        assert (part.start, part.document, part.id, part.url, part.shard) == (0, -1, "", "", path)
