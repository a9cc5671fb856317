"""The PyTorch adapter against the plain stream: same batches and states, with and without workers."""

import contextlib
import json
import multiprocessing
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.corpus_factory import build_corpus
from tests.packed_factory import add_packed_rows

torch = pytest.importorskip("torch", reason="the extra [torch] is not installed")

from refinery.loader.stream.packed.packed_stream import PackedStream  # noqa: E402
from refinery.loader.stream.stream import TokenStream  # noqa: E402
from refinery.loader.stream.telemetry import Telemetry  # noqa: E402
from refinery.loader.torch import device as torch_device  # noqa: E402 - what follows needs torch
from refinery.loader.torch.adapter import (  # noqa: E402
    STATE,
    DevicePrefetcher,
    TokenDataset,
    build_dataloader,
    default_rank,
    device_prefetch,
)

OPTIONS: dict[str, Any] = {"sequence_length": 32, "batch_size": 2, "seed": 5, "epochs": 2, "loss_mask": True}

pytestmark = [
    pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning"),  # more workers than cores
    pytest.mark.filterwarnings("ignore:'set_vital' is deprecated:UserWarning"),  # torchdata calls it
]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> str:
    texts = {("train", "web"): [[f"document {i} " * (i % 7 + 1) for i in range(k, k + 40)] for k in (0, 40)]}
    return str(build_corpus(tmp_path_factory.mktemp("corpus"), texts))


def key(batch: dict[str, Any]) -> tuple[bytes, ...]:
    """A batch as comparable bytes."""
    arrays = (batch[name] for name in ("input_ids", "labels", "loss_mask"))
    return tuple(np.ascontiguousarray(a.numpy() if isinstance(a, torch.Tensor) else a).tobytes() for a in arrays)


def plain(corpus: str, **changes: Any) -> list[tuple[bytes, ...]]:
    return [key(batch) for batch in TokenStream(corpus, **(OPTIONS | changes))]


def test_batches_are_the_streams_as_tensors(corpus: str) -> None:
    dataset = TokenDataset(corpus, **OPTIONS)
    batches = list(dataset)
    assert [key(batch) for batch in batches] == plain(corpus) and len(batches) > 20
    first = batches[0]
    assert first["input_ids"].dtype == first["labels"].dtype == torch.int64 and first["loss_mask"].dtype == torch.bool
    assert tuple(first["input_ids"].shape) == (2, 32)


@pytest.mark.parametrize("workers", [0, 1, 2, 3])
def test_the_order_is_the_same_with_workers(corpus: str, workers: int) -> None:
    loader = build_dataloader(corpus, num_workers=workers, **OPTIONS)
    batches = list(loader)
    assert [key(batch) for batch in batches] == plain(corpus)
    assert all(STATE not in batch for batch in batches)
    seen = loader.telemetry.snapshot()
    assert seen["tokens"] == 64 * len(batches) and seen["shapes"] == {"2 x 32": len(batches)}


@pytest.mark.parametrize("workers", [0, 2])
def test_ranks_together_are_the_whole(corpus: str, workers: int) -> None:
    for rank in range(2):
        loader = build_dataloader(corpus, num_workers=workers, rank=rank, world_size=2, **OPTIONS)
        assert [key(batch) for batch in loader] == plain(corpus, rank=rank, world_size=2)


@pytest.mark.parametrize(("before", "after"), [(0, 2), (2, 0), (3, 2)])
def test_a_state_is_that_of_the_last_batch_and_fits_any_number_of_workers(corpus: str, before: int, after: int) -> None:
    """Also while workers are ahead, across epochs, and for a plain stream."""
    want = plain(corpus)
    for stop in (0, len(want) // 2 + 1, len(want) - 1):
        loader = build_dataloader(corpus, num_workers=before, **OPTIONS)
        batches = iter(loader)
        seen = [key(next(batches)) for _ in range(stop)]
        state = json.loads(json.dumps(loader.state_dict()))
        assert loader.receipt()["state"] == state
        del batches
        rest = build_dataloader(corpus, num_workers=after, **OPTIONS)
        rest.load_state_dict(state)
        assert seen + [key(batch) for batch in rest] == want
        stream = TokenStream(corpus, **OPTIONS)
        stream.load_state_dict(state)
        assert seen + [key(batch) for batch in stream] == want


@pytest.mark.parametrize("workers", [0, 2])
def test_a_second_loop_continues(corpus: str, workers: int) -> None:
    loader = build_dataloader(corpus, num_workers=workers, **OPTIONS)
    seen = []
    for stop in (3, 4, 10**9):
        for i, batch in enumerate(loader, 1):
            seen.append(key(batch))
            if i == stop:
                break
    assert seen == plain(corpus)
    assert list(loader) == []


@pytest.mark.parametrize("workers", [0, 2])
def test_packed_rows(tmp_path: Path, workers: int) -> None:
    """The same of packed rows: batches, and a state from workers to none."""
    corpus = str(add_packed_rows(build_corpus(tmp_path / "corpus"), 32))
    want = [key(batch) for batch in PackedStream(corpus, **OPTIONS)]
    first = build_dataloader(corpus, num_workers=workers, packed=True, **OPTIONS)
    batches = iter(first)
    head = [key(next(batches)) for _ in range(5)]
    again = build_dataloader(corpus, packed=True, **OPTIONS)
    again.load_state_dict(first.state_dict())
    assert head + [key(batch) for batch in again] == want
    assert head + [key(batch) for batch in batches] == want


def test_spawned_workers_get_arguments_and_position(corpus: str) -> None:
    """spawn pickles the data set, without its open stream."""
    context = multiprocessing.get_context("spawn")
    loader = build_dataloader(corpus, num_workers=1, dataloader={"multiprocessing_context": context}, **OPTIONS)
    first = build_dataloader(corpus, **OPTIONS)
    batches = iter(first)
    head = [key(next(batches)) for _ in range(3)]
    loader.load_state_dict(first.state_dict())
    assert head + [key(batch) for batch in loader] == plain(corpus)


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_torchdatas_stateful_loader(corpus: str, workers: int) -> None:
    stateful = pytest.importorskip("torchdata.stateful_dataloader", reason="torchdata is not installed")

    def loader() -> Any:
        return stateful.StatefulDataLoader(TokenDataset(corpus, **OPTIONS), batch_size=None, num_workers=workers)

    want = plain(corpus)
    for stop in (1, 8):
        first = loader()
        batches = iter(first)
        seen = [key(next(batches)) for _ in range(stop)]
        state = first.state_dict()
        del batches
        second = loader()
        second.load_state_dict(state)
        assert seen + [key(batch) for batch in second] == want


def test_a_worker_does_not_take_another_workers_state(corpus: str) -> None:
    dataset = TokenDataset(corpus, **OPTIONS)
    state = dataset._worker_state(1, 4)
    with pytest.raises(ValueError, match="of worker 1 of 4, this is worker 0 of 2"):
        dataset._worker_state(0, 2)
    with pytest.raises(ValueError, match="of worker 1 of 4, this is the main process"):
        dataset.load_state_dict(state)


def test_invalid_arguments_and_states_fail_immediately(corpus: str) -> None:
    loader = build_dataloader(corpus, num_workers=2, **OPTIONS)
    other = TokenStream(corpus, **(OPTIONS | {"seed": 6})).state_dict()
    with pytest.raises(ValueError, match="seed"):
        loader.load_state_dict(other)
    with pytest.raises(ValueError, match="persistent_workers"):
        build_dataloader(corpus, num_workers=2, dataloader={"persistent_workers": True}, **OPTIONS)
    with pytest.raises(ValueError, match="rank, world_size: 1, None given"):
        TokenDataset(corpus, rank=1, **OPTIONS)


def test_a_loader_as_the_data_set_of_another_one_says_what_to_write(corpus: str) -> None:
    """As a plain Trainer of transformers does with train_dataset=build_dataloader(...)."""
    outer: Any = torch.utils.data.DataLoader(build_dataloader(corpus, **OPTIONS))
    with pytest.raises(TypeError, match=r"TokenLoader: no data set with items.*class CorpusTrainer\("):
        next(iter(outer))


def test_default_rank(corpus: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    assert default_rank() == (0, 1)
    monkeypatch.setenv("RANK", "1")
    with pytest.raises(ValueError, match="RANK, WORLD_SIZE: 1, None given"):
        default_rank()
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert default_rank() == (1, 2)
    assert [key(batch) for batch in TokenDataset(corpus, **OPTIONS)] == plain(corpus, rank=1, world_size=2)
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/meet", rank=0, world_size=1)
    try:
        assert default_rank() == (0, 1)
    finally:
        torch.distributed.destroy_process_group()


# --- copies to the device --------------------------------------------------------------------------------------------


class Source:
    """Batches filled with one number, and a state."""

    def __init__(self, count: int, fail_at: int | None = None) -> None:
        self.at, self.count, self.fail_at = 0, count, fail_at
        self.telemetry = Telemetry()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        while self.at < self.count:
            if self.at == self.fail_at:
                raise ZeroDivisionError("in the source")
            self.at += 1
            yield {"input_ids": torch.full((2, 3), self.at - 1), "max_seqlen": 3}

    def state_dict(self) -> dict[str, Any]:
        return {"at": self.at}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.at = state["at"]


class SimulatedCuda:
    """The part of torch.cuda that the adapter uses, without a device: logs the order of calls."""

    def __init__(self) -> None:
        self.log: list[str] = []

    def Stream(self, device: Any) -> str:
        return "side"

    def stream(self, side: str) -> Any:
        assert side == "side"
        return contextlib.nullcontext()

    def Event(self, enable_timing: bool) -> Any:
        return SimpleNamespace(
            record=lambda: self.log.append("event"), query=lambda: True, elapsed_time=lambda other: 1.5
        )

    def current_stream(self, device: Any) -> Any:
        return SimpleNamespace(wait_event=lambda event: self.log.append("wait"))


@pytest.fixture(params=["cpu", "simulated", "cuda"])
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    if request.param == "simulated":
        simulate(monkeypatch)
    return "cpu" if request.param == "cpu" else "cuda"


def simulate(monkeypatch: pytest.MonkeyPatch) -> SimulatedCuda:
    cuda = SimulatedCuda()
    monkeypatch.setattr(torch_device, "CUDA", cuda)

    def copy(self: DevicePrefetcher, value: Any) -> Any:
        cuda.log.append("copy")
        self._staging += 7_000_000
        return value.clone()

    monkeypatch.setattr(DevicePrefetcher, "_copy", copy)
    monkeypatch.setattr(torch.Tensor, "record_stream", lambda self, stream: cuda.log.append("own"))
    return cuda


def number(batch: dict[str, Any]) -> int:
    assert batch["max_seqlen"] == 3 and (batch["input_ids"] == batch["input_ids"][0, 0]).all()
    return int(batch["input_ids"][0, 0])


@pytest.mark.parametrize("count", [0, 1, 5])
def test_batches_arrive_on_the_device_with_their_states(device: str, count: int) -> None:
    source = Source(count)
    steps, seen = device_prefetch(source, device), []
    assert isinstance(steps, DevicePrefetcher) and steps.state_dict() == {"at": 0}
    for batch in steps:
        seen.append(number(batch))
        assert steps.state_dict() == {"at": len(seen)}  # after the last delivery, not after the copy ahead
    assert seen == list(range(count))
    assert list(steps) == []
    stages = source.telemetry.snapshot()["stages"]
    assert (stages["copy"]["max_ms"] > 0) == (count > 0)
    if torch_device.CUDA is not torch.cuda:  # simulated: 7 ms for each tensor of a batch, of which there is one
        assert stages["staging"]["total_s"] == pytest.approx(count * 0.007)


def test_the_next_copy_starts_before_this_batch_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = simulate(monkeypatch)
    for batch in device_prefetch(Source(2), "cuda"):
        cuda.log.append(f"use {number(batch)}")
    copy, hand_over = ["event", "copy", "event"], ["wait", "own"]
    assert cuda.log == [*copy, *copy, *hand_over, "use 0", *hand_over, "use 1"]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_copies_from_views_and_pageable_memory_are_right_on_cuda() -> None:
    for pinned in (False, True):
        buffers = [torch.randint(1000, (4, 129)) for _ in range(20)]
        batches = [{"input_ids": b[:, :-1], "labels": b[:, 1:]} for b in buffers]
        if pinned:
            batches = [{name: value.pin_memory() for name, value in batch.items()} for batch in batches]
        for i, batch in enumerate(device_prefetch(batches, "cuda")):
            assert batch["input_ids"].is_cuda and batch["input_ids"].is_contiguous()
            assert torch.equal(batch["labels"].cpu(), buffers[i][:, 1:])


def test_a_second_device_loop_continues(device: str) -> None:
    steps, seen = device_prefetch(Source(6), device), []
    for stop in (2, 3, 99):
        for i, batch in enumerate(steps, 1):
            seen.append(number(batch))
            if i == stop:
                break
    assert seen == list(range(6))
    steps.load_state_dict({"at": 4})
    assert [number(batch) for batch in steps] == [4, 5]


def test_an_error_comes_after_the_batches_before_it(device: str) -> None:
    seen = []
    with pytest.raises(ZeroDivisionError):
        for batch in device_prefetch(Source(5, fail_at=3), device):
            seen.append(number(batch))
    assert seen == [0, 1, 2]


def test_batches_without_a_state() -> None:
    steps = device_prefetch([{"input_ids": torch.zeros(1)}], "cpu")
    assert len(list(steps)) == 1
    with pytest.raises(TypeError, match="list given, it has no state_dict"):
        steps.state_dict()
