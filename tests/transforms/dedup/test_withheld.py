"""What is dropped with its copies takes part in deduplication, wins, and is written nowhere."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from refinery.loader.format.removals import WITHHELD
from refinery.transforms.core.document import Document
from refinery.transforms.core.exchange.side_outputs import take_side_outputs
from refinery.transforms.core.job.report import merge_records
from refinery.transforms.dedup.deduplicate import Deduplicate, DedupParams, WriteVerdicts, list_parts
from refinery.transforms.dedup.near_duplicates import NearParams
from refinery.transforms.dedup.reference_corpora import Parts, ReferenceCorpus
from tests.beam import make_document, run_and_collect
from tests.transforms.dedup_oracle import SIGNATURE, SOURCES
from tests.transforms.dedup_parts import sign_texts, write_parts

WORDS = " ".join(f"word{number}" for number in range(200))
DENIED = f"{WORDS} denied"
PARAMS = DedupParams(near=NearParams(threshold=0.7, verify="signature"), withheld=True)


def document(text: str, origin: str) -> Document:
    return make_document(text, source=SOURCES[0], origin=origin, url=f"https://a.example/{origin}")


def decide(folder: Path, docs: list[Document], withheld: list[Document]) -> tuple[dict[str, dict], list[dict]]:
    """Origin -> its verdict, and the counters."""
    parts = write_parts(folder / "own", [docs[::2], docs[1::2]], sign_texts, 50)
    gone = write_parts(folder / "gone", [withheld], sign_texts, 50) if withheld else []
    lists = list_parts(str(folder / "own"), parts, (), gone)

    def build(pipeline):
        decided = pipeline | Deduplicate(PARAMS, SIGNATURE, SOURCES, lists, 3)
        return [decided | WriteVerdicts(str(folder / "own"), SOURCES), *take_side_outputs(pipeline)]

    _, *sides = run_and_collect(build)
    verdicts: dict[str, dict] = {}
    for (url, _), dealt in zip(parts, (docs[::2], docs[1::2]), strict=True):
        rows = pq.read_table(url.replace("signatures", "verdicts"), partitioning=None).to_pylist()
        verdicts |= {doc.origin: row for doc, row in zip(dealt, rows, strict=True)}
    return verdicts, merge_records(record for side in sides for record in side)["counters"]


def test_exact_and_near_copies_of_what_is_withheld_go_and_say_of_what(tmp_path: Path) -> None:
    denied = document(DENIED, "denied")
    docs = [
        document(DENIED, "exact"),
        document(f"{DENIED} and one more", "near"),
        document(f"{DENIED} and one more", "near-again"),
        document("something else that nobody has denied, of a few words", "other"),
        document("something else that nobody has denied, of a few words", "other-copy"),
    ]
    verdicts, counters = decide(tmp_path, docs, [denied])
    for origin in ("exact", "near", "near-again"):
        row = verdicts[origin]
        if row["reason"] != "exact-duplicate":  # of a copy that went itself
            assert (row["reason"], row["kept_id"], row["scope"]) == ("copy-of-denied", denied.id, WITHHELD)
    assert sum(verdicts[origin]["reason"] == "copy-of-denied" for origin in ("exact", "near", "near-again")) == 2
    kept = [origin for origin, row in verdicts.items() if not row["removed"]]
    assert len(kept) == 1 and kept[0].startswith("other")
    sums = {(c["stage"], c["outcome"]): c["documents"] for c in counters}
    assert sums["copies-of-denied", "in"] == len(docs)
    assert sums["copies-of-denied", "dropped"] == 2
    assert sums["copies-of-denied", "kept"] == sums["exact-duplicates", "in"] == len(docs) - 2
    assert sums["near-duplicates", "kept"] == 1


def test_without_anything_withheld_nothing_changes(tmp_path: Path) -> None:
    docs = [document(DENIED, "a"), document(DENIED, "b")]
    verdicts, counters = decide(tmp_path, docs, [])
    assert sorted(row["reason"] for row in verdicts.values()) == ["", "exact-duplicate"]
    assert [c["documents"] for c in counters if (c["stage"], c["outcome"]) == ("copies-of-denied", "kept")] == [2]


def test_a_corpus_may_not_have_the_name_of_that_scope(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'withheld' given"):
        list_parts(str(tmp_path), [], (ReferenceCorpus("withheld", (), ()),), [("part.parquet", 1)])


def test_places_of_what_is_withheld() -> None:
    import numpy as np

    places = np.array([0, 2, 3, 4], np.uint64) << np.uint64(32)
    assert Parts(2, (2, 1), withheld=True).in_withheld(places).tolist() == [False, True, True, False]
    assert Parts(2, (2, 1)).in_withheld(places).tolist() == [False, False, False, False]
