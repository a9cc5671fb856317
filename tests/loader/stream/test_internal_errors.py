"""What a kernel refuses is named as a bug, what a caller's codec raises as the codec's; the stream goes on."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from refinery.loader import CodecError, FillInMiddleParams, InternalError, OrderParams, TokenStream
from refinery.loader.packing import layouts
from refinery.loader.read.samples import Domain
from tests.loader.numbered import build_numbered


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_numbered(tmp_path_factory.mktemp("corpus"), {"a": [[40, 3], [70]], "b": [[55]]})


def stream(corpus: Path, **options: Any) -> TokenStream:
    shape: dict[str, Any] = {"sequence_length": 7, "batch_size": 3, "order": OrderParams(2, 4, 2), "prefetch": 0}
    return TokenStream(corpus, epochs=1, **(shape | options))


@pytest.mark.parametrize("prefetch", [False, True])
def test_numbers_that_a_kernel_refuses(corpus: Path, monkeypatch: pytest.MonkeyPatch, prefetch: bool) -> None:
    one = stream(corpus, prefetch=int(prefetch))
    expected = [batch["input_ids"].tolist() for batch in stream(corpus)]
    pieces = Domain.pieces
    monkeypatch.setattr(Domain, "pieces", lambda domain, samples: pieces(domain, samples) + np.array([0, 0, 0, 9, 0]))
    with pytest.raises(InternalError, match=r"the batch after epoch 0, position 0: .*\(pieces: .*report it") as caught:
        next(one)
    assert type(caught.value.__cause__) is ValueError
    monkeypatch.undo()
    assert [batch["input_ids"].tolist() for batch in one] == expected


def test_a_table_of_rows_that_does_not_fit(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = stream(corpus, packing="best_fit")
    monkeypatch.setattr(layouts, "epoch_key", lambda epoch, noise: -1)
    with pytest.raises(InternalError, match=r"packed rows: .*\(key: -1 given"):
        next(one)
    monkeypatch.undo()
    assert len(list(one)) == one.steps


def test_what_a_codec_raises(corpus: Path) -> None:
    def encode(text: str) -> list[int]:
        raise ValueError(f"no encoding of {text}")

    infill = FillInMiddleParams(60_000, 60_001, 60_002, vocab_size=60_003, rate=1.0)
    one = stream(corpus, sequence_length=32, fill_in_middle=infill, codec=(encode, lambda ids: "x" * len(ids)))
    with pytest.raises(CodecError, match="codec: no encoding of x"):
        next(one)
