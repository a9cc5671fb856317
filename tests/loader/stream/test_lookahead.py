"""Tokens are announced before they are read and released once after it; remote streams equal local ones."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from refinery.loader import TokenStream
from refinery.loader.order.order import OrderParams
from refinery.loader.read.local.local_source import LocalSource
from refinery.loader.read.remote.blocks import RemoteParams
from refinery.loader.storage.fetch import FetchParams
from refinery.loader.view import opened as opened_module
from tests.corpus_factory import build_corpus
from tests.loader.range_server import RangeServer, range_server

TEXTS = {
    ("train", "web"): [[f"page {i} " * (i % 9 + 1) for i in range(40)], ["a" * 300, ""], [], ["x" * 531]],
    ("train", "code"): [[f"def f{i}(): return {i}" for i in range(50)]],
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_corpus(tmp_path_factory.mktemp("corpus"), TEXTS)


class Recorder:
    """A source that fails on reads of tokens that were not announced, and counts reads of released ones."""

    def __init__(self, inner: LocalSource) -> None:
        self._inner = inner
        self.needed: set[tuple[int, int]] = set()  # (shard, token)
        self.done: list[tuple[int, int, int]] = []
        self.released: set[tuple[int, int]] = set()
        self.repeated = 0

    @staticmethod
    def _tokens(ranges: Any) -> Iterator[tuple[int, int]]:
        return ((shard, token) for shard, start, stop in np.asarray(ranges).tolist() for token in range(start, stop))

    def read_into(self, shard: int, start: int, out: np.ndarray) -> None:
        asked = set(self._tokens([(shard, start, start + len(out))]))
        assert asked <= self.needed
        self.repeated += len(asked & self.released)
        self._inner.read_into(shard, start, out)

    def read_pieces(self, pieces: np.ndarray, row: int, out: np.ndarray) -> None:
        for its, shard, start, count, place in pieces.tolist():
            self.read_into(shard, start, out[its - row, place : place + count])

    def will_need(self, ranges: Any) -> None:
        assert all(0 <= start < stop for _, start, stop in ranges)
        self.needed |= set(self._tokens(ranges))

    def done_with(self, ranges: Any) -> None:
        self.done += map(tuple, np.asarray(ranges).tolist())
        self.released |= set(self._tokens(ranges))

    def close(self) -> None:
        self._inner.close()


@pytest.mark.parametrize("order", [OrderParams(3, 4, 2), OrderParams(1, 256, 16), OrderParams(5, 1, 1), OrderParams()])
@pytest.mark.parametrize("options", [{}, {"weights": {"web": 1, "code": 3}}], ids=["epochs", "mixed"])
def test_reads_are_announced_and_released_once(
    corpus: Path, monkeypatch: pytest.MonkeyPatch, order: OrderParams, options: dict[str, Any]
) -> None:
    recorders = []

    def recorded(*args: Any, **kwargs: Any) -> Recorder:
        recorders.append(Recorder(LocalSource(*args)))
        return recorders[-1]

    monkeypatch.setattr(opened_module, "open_token_source", lambda *args, **_: recorded(*args))
    monkeypatch.setattr(opened_module.OpenedCorpus, "is_remote", True)
    with TokenStream(str(corpus), 16, 2, epochs=1, order=order, prefetch=0, **options) as batches:
        steps = len(list(batches))
        (source,) = recorders
        found = sorted(source.done)
        # No token is released twice, and released ones are read only as the label of the previous sample.
        assert len(list(source._tokens(found))) == len(source.released)
        assert source.repeated <= steps * 2
        if not options:
            tokens = {entry.bin.path: entry.tokens for entry in batches.manifest.shards if entry.split == "train"}
            assert len(source.released) == sum(tokens.values())


@pytest.fixture(scope="module")
def server(corpus: Path) -> Iterator[RangeServer]:
    with range_server() as running:
        running.files = {str(p.relative_to(corpus)): p.read_bytes() for p in corpus.rglob("*") if p.is_file()}
        yield running


@pytest.mark.parametrize("options", [{}, {"weights": {"web": 1, "code": 3}}], ids=["epochs", "mixed"])
def test_a_remote_stream_equals_the_local_one(
    corpus: Path, server: RangeServer, tmp_path: Path, options: dict[str, Any]
) -> None:
    order = OrderParams(block=1)  # whose default differs between the two
    shape: dict[str, Any] = {"sequence_length": 16, "batch_size": 4, "epochs": 2, "doc_ids": True, "order": order}
    shape |= options
    params = RemoteParams(cache=tmp_path, fetch=FetchParams(deadline=20, first_delay=0.01, max_delay=0.05))
    with TokenStream(str(corpus), **shape) as local, TokenStream(server.url, remote=params, **shape) as remote:
        for here, there in zip(local, remote, strict=True):
            assert here.keys() == there.keys()
            for name in here:
                assert np.array_equal(here[name], there[name])
        assert local.state_dict() == remote.state_dict()
        assert remote.telemetry.snapshot()["counters"]["requests"] > 0
