"""What a stream says of rows that it packs while loading: how full they are, and how many documents are cut."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from refinery.loader import BestFitParams, LengthBuckets, TokenStream
from tests.loader.numbered import Lengths, build_numbered
from tests.loader.packing.packing_oracle import documents

S = 16
# Of a row exactly, one token more and one less; far longer; none; many short ones.
LAYOUT: Lengths = {"a": [[16, 17, 15, 0, 200], [3, 5, 1, 16]], "b": [[33, 32, 31], [], [7] * 9]}
SIZES = [size for *_, size in documents(LAYOUT, LAYOUT)]
PIECES = [min(S, size - start) for size in SIZES for start in range(0, size, S)]
CROPPED = sum(size > S for size in SIZES) / len(SIZES)
KINDS: list[Any] = ["best_fit", BestFitParams(block=40), BestFitParams(repack=False), LengthBuckets((4, 8))]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_numbered(tmp_path_factory.mktemp("figures") / "corpus", LAYOUT)


def stream(corpus: Path, **options: Any) -> TokenStream:
    how: dict[str, Any] = {"sequence_length": S, "batch_size": 3, "epochs": 1, "prefetch": 0, "packing": "best_fit"}
    return TokenStream(corpus, **(how | options))


@pytest.mark.parametrize("packing", KINDS, ids=lambda kind: type(kind).__name__)
def test_figures_of_an_epoch(corpus: Path, packing: Any) -> None:
    with stream(corpus, packing=packing, doc_ids=True) as batches:
        known = batches.packing
        assert known == {
            "rows": 0,
            "utilisation": 0.0,
            "documents_per_row": 0.0,
            "document_tokens": 0.0,
            "cropped_doc_frac": CROPPED,
        }
        rows = places = 0
        for batch in batches:
            filled = (batch["doc_ids"] >= 0).any(axis=1)
            rows, places = rows + int(filled.sum()), places + int(filled.sum()) * batch["doc_ids"].shape[1]
        found = batches.packing
    assert found["rows"] == rows and found["cropped_doc_frac"] == CROPPED
    assert found["utilisation"] == sum(SIZES) / places
    assert found["documents_per_row"] == len(PIECES) / rows
    assert found["document_tokens"] == sum(SIZES) / len(PIECES)


@pytest.mark.parametrize("prefetch", [0, 3])
def test_what_was_delivered_counts_once(corpus: Path, prefetch: int) -> None:
    """Not what was made ahead; a state that is loaded takes nothing back."""
    with stream(corpus, prefetch=prefetch) as batches:
        next(batches)
        assert batches.packing["rows"] == 3
        batches.load_state_dict(batches.state_dict())
        list(batches)
        whole = batches.packing
    ranks = [stream(corpus, prefetch=prefetch, batch_size=1, rank=rank, world_size=2) for rank in range(2)]
    each = []
    for rank in ranks:
        with rank:
            list(rank)
            each.append(rank.packing)
    assert sum(one["rows"] for one in each) == whole["rows"]
    pieces = sum(one["rows"] * one["documents_per_row"] for one in each)
    assert pieces == pytest.approx(whole["rows"] * whole["documents_per_row"]) == len(PIECES)


def test_of_a_subset_and_of_a_mixture(corpus: Path) -> None:
    """How many documents are cut is a figure of the split, or of the domains that are drawn from."""
    with stream(corpus, subset=2) as some, stream(corpus, weights={"a": 1}) as mixed:
        list(some), list(mixed)
        assert some.packing["rows"] == 2 and some.packing["cropped_doc_frac"] == CROPPED
        assert mixed.packing["document_tokens"] > 0


@pytest.mark.parametrize("length", [2, 16, 17, 200])
def test_cut_documents_by_length(corpus: Path, length: int) -> None:
    with stream(corpus, sequence_length=length) as batches:
        assert batches.packing["cropped_doc_frac"] == np.mean(np.array(SIZES) > length)


def test_rows_that_are_not_packed_have_no_figures(corpus: Path) -> None:
    with stream(corpus, packing=None) as batches:
        next(batches)
        assert batches.packing == {}
