"""One capture of every address: against brute force, whatever the layout; and an address that all documents have."""

import random
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from refinery.transforms.core.document import Document
from refinery.transforms.dedup.deduplicate import DedupParams
from refinery.transforms.dedup.exact_duplicates import capture_batches, capture_removals, choose_captures
from refinery.transforms.dedup.records.record_batch import (
    CAPTURE,
    CAPTURES,
    CHOICE,
    CHOSEN,
    REMOVAL,
    REMOVALS,
    form_batches,
    gather,
    header,
)
from refinery.transforms.dedup.reference_corpora import Parts
from refinery.transforms.dedup.stages import UrlDupParams
from tests.beam import make_document
from tests.sampling import FILE_ON_ONE_COMMIT_IN_FOUR, sampled
from tests.transforms.dedup_oracle import (
    brute_force,
    check_conservation,
    corpus,
    deduplicate,
    layout_of,
    publish,
    write_parts,
)

pytestmark = FILE_ON_ONE_COMMIT_IN_FOUR

ADDRESSES = (
    *("http://a.example/1", "https://a.example/1/", "https://A.example:443/1?utm_source=x", "https://a.example/2"),
    *(
        "https://a.example/2#part",
        "https://b.example/?q=1&p=2",
        "https://b.example/?p=2&q=1",
        "https://c.example/alone",
    ),
    *("", "doc-1", "doc-1", "urn:x:1", "urn:x:1"),  # no web addresses: never compared
)
DATES = ("", "2020-01-01T00:00:00Z", "2021-06-01T00:00:00Z", "2021-06-01T00:00:00Z", "no date")
URLS = {"newest": UrlDupParams(), "longest": UrlDupParams(prefer="longest")}


def captures(seed: int) -> list[Document]:
    """The corpus of the other tests, with addresses that many share and dates that some do."""
    rng = random.Random(seed)
    dates = [{"date": rng.choice(DATES)} for _ in range(1000)]
    return [replace(d, url=rng.choice(ADDRESSES), meta=rng.choice(dates)) for d in corpus(seed)]


BESIDE: dict[str, dict[str, Any]] = {"all": {}, "exact": {"near": None}, "alone": {"exact": False, "near": None}}


@pytest.mark.parametrize(
    ("prefer", "beside"), sampled("ways to deduplicate by address", product(URLS, BESIDE), 3, lambda cell: cell)
)
def test_equals_brute_force(tmp_path: Path, prefer: str, beside: str) -> None:
    docs, params = captures(5), DedupParams(urls=URLS[prefer], **BESIDE[beside])
    outcome = deduplicate(tmp_path, layout_of(docs, 4, 1), params, partitions=3)
    assert outcome.verdicts == brute_force(docs, params)
    assert sum(v["reason"] == "url-duplicate" for v in outcome.verdicts.values()) > 30
    check_conservation(docs, outcome, params)


def test_layout_partitions_and_replayed_bundles_do_not_matter(tmp_path: Path) -> None:
    docs, params = captures(6), DedupParams(urls=UrlDupParams())
    runs = [
        deduplicate(tmp_path / "a", [docs], params),
        deduplicate(
            tmp_path / "b", layout_of(docs, 40, 8), params, partitions=5, flags=["--direct_runner_bundle_repeat=2"]
        ),
    ]
    assert runs[0].verdicts == runs[1].verdicts
    assert runs[0].report["counters"] == runs[1].report["counters"]


def test_documents_of_one_record_stay_together(tmp_path: Path) -> None:
    """What a splitting stage made of a page has its address, too."""
    new, old = ({"date": f"202{year}-01-01"} for year in (4, 2))
    docs = [
        *(
            make_document(f"part {i} of the new page", "new", url="http://a.b/c", source="web", meta=new)
            for i in range(3)
        ),
        *(
            make_document(f"part {i} of the old page", f"old{i}", url="https://a.b/c/", source="web", meta=old)
            for i in range(3)
        ),
    ]
    layout = [docs[:1], docs[1:4], docs[4:]]
    parts = write_parts(tmp_path, layout)
    gone = [(part, row) for part, row, _ in removals_of(parts)]
    assert gone == [(1, 2), (2, 0), (2, 1)]


def removals_of(parts: list[tuple[str, int]], prefer: str = "newest") -> list[tuple[int, int, int]]:
    """(part, row, first half of the kept id) of what the three steps remove, by hand."""
    headers = dict(header(i, *part) for i, part in enumerate(parts))
    sent = [
        b for i, h in headers.items() for _, b in form_batches(capture_batches(i, [h], prefer, Parts(len(parts)), 1))
    ]
    found = []
    for part, batch in form_batches(choose_captures(0, sent)):
        for key, removed in capture_removals(part, [headers[part], batch]):
            rows = gather([removed], REMOVALS, REMOVAL)
            found += [(key, int(row["locator"]) & 0xFFFFFFFF, int(row["id_high"])) for row in rows]
    return sorted(found)


def test_one_address_many_times(tmp_path: Path) -> None:
    """Of an address that all documents have, a row a part crosses each shuffle, and one document is kept."""
    docs = [
        make_document(f"text {i}", f"o{i}", url="https://a.b/", source="web", meta={"date": f"{2000 + i % 20}-01-01"})
        for i in range(2000)
    ]
    parts = write_parts(tmp_path, [docs[k::5] for k in range(5)])
    batches = [
        batch
        for i, part in enumerate(parts)
        for _, batch in form_batches(capture_batches(i, [header(i, *part)[1]], "newest", Parts(5), 1))
    ]
    rows = gather(batches, CAPTURES, CAPTURE)
    assert len(rows) == 5
    assert rows["documents"].sum() == 2000
    chosen = gather([batch for _, batch in form_batches(choose_captures(0, batches))], CHOSEN, CHOICE)
    assert len(chosen) == 5
    assert len(np.unique(chosen)) == 1
    assert len(removals_of(parts)) == 1999


def test_reference_corpora_are_not_compared(tmp_path: Path) -> None:
    """They say nothing of their addresses, and may have been made without them."""
    theirs = [make_document("their page", "theirs", url="https://a.b/c", source="web", meta={"date": "2025-01-01"})]
    ours = [make_document("our page", "ours", url="https://a.b/c", source="web")]
    reference = publish(tmp_path / "theirs", theirs)
    params = DedupParams(urls=UrlDupParams())
    outcome = deduplicate(tmp_path / "ours", [ours], params, reference_corpora=(reference,))
    assert not outcome.verdicts["ours"]["removed"]
