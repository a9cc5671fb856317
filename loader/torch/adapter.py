"""The stream for PyTorch: data set, data loader, and prefetching to the device. Only this module imports torch.

    loader = build_dataloader("gs://bucket/corpus", sequence_length=4096, batch_size=8, seed=1)
    for batch in (steps := device_prefetch(loader, "cuda")):
        ...                                   # batch: dict of tensors on the device
        torch.save({"model": ..., "loader": steps.state_dict()}, path)

num_workers=0 is fastest: the stream prefetches on a thread, and batches are not sent between processes. With N worker
processes each makes every N-th step of its rank, and batches arrive in the same order as without workers. The state is
that of the stream: it can be loaded with any number of workers and ranks, or into a plain TokenStream.
"""

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from refinery.loader.order.arrays import Batch
from refinery.loader.packed.packed_stream import PackedStream
from refinery.loader.stream.stream import TokenStream
from refinery.loader.stream.telemetry import Telemetry

State = dict[str, Any]

CUDA: Any = torch.cuda  # only partly typed
STATE = "loader_state"  # added to a batch in its worker process, removed by the data loader


def default_rank() -> tuple[int, int]:
    """Rank and world size: of torch.distributed if initialized, else RANK and WORLD_SIZE as set by torchrun, else 0, 1.

    Raises ValueError if only one of the variables is set.
    """
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    rank, world = os.environ.get("RANK"), os.environ.get("WORLD_SIZE")
    if (rank is None) != (world is None):
        raise ValueError(f"RANK, WORLD_SIZE: {rank}, {world} given, both or neither is allowed")
    return (0, 1) if rank is None or world is None else (int(rank), int(world))


def as_tensors(batch: Mapping[str, Any]) -> Batch:
    """The batch with tensors that share the arrays' memory."""
    return {name: torch.from_numpy(value) if hasattr(value, "dtype") else value for name, value in batch.items()}


class TokenDataset(IterableDataset[Batch]):
    """The batches of a TokenStream as tensors. Takes the stream's arguments, and its state.

    packed: of a PackedStream instead.
    rank, world_size: by default those of this process (`default_rank`) when the data set is created. Pass it to a
    DataLoader with batch_size=None, since an item is already a batch; `build_dataloader` does. It works with
    torchdata's StatefulDataLoader: in a worker process, `state_dict` includes the worker's number, and only the worker
    with that number can load it.
    """

    def __init__(
        self,
        prefix: str,
        *,
        rank: int | None = None,
        world_size: int | None = None,
        packed: bool = False,
        **options: Any,
    ) -> None:
        super().__init__()
        if (rank is None) != (world_size is None):
            raise ValueError(f"rank, world_size: {rank}, {world_size} given, both or neither is allowed")
        here, count = default_rank() if rank is None or world_size is None else (rank, world_size)
        self.prefix = prefix
        self._kind = PackedStream if packed else TokenStream
        self.options = options | {"rank": here, "world_size": count}
        self.carry_state = False  # add STATE to batches made in worker processes
        self._state: State | None = None  # in a spawned worker process: where to start
        self._of_worker: State | None = None  # in a worker: the position of its stream
        self._stream: TokenStream | None = self._kind(prefix, **self.options)  # invalid arguments fail immediately

    @property
    def stream(self) -> TokenStream:
        """The stream of this process."""
        if self._stream is None:
            self._stream = self._kind(self.prefix, **self.options)
            if self._state is not None:
                self._stream.load_state_dict(self._state)
        return self._stream

    def __getstate__(self) -> State:
        """For worker processes: the arguments and the position, without open files and threads."""
        return self.__dict__ | {"_stream": None, "_state": self.state_dict()}

    def __iter__(self) -> Iterator[Batch]:
        info = get_worker_info()
        if info is None:
            yield from map(as_tensors, self.stream)
        else:
            yield from self._batches_of_worker(info.id, info.num_workers)

    def _batches_of_worker(self, worker: int, workers: int) -> Iterator[Batch]:
        state = self._worker_state(worker, workers)
        stream = self._kind(self.prefix, **self.options, worker=state["offset"], workers=workers)
        try:
            stream.load_state_dict(state["stream"])
            for batch in stream:
                now = stream.state_dict()
                self._of_worker = {"stream": now, "worker": worker, "workers": workers, "offset": workers - 1}
                tensors = as_tensors(batch)
                if self.carry_state:
                    tensors[STATE] = json.dumps(now)
                yield tensors
        finally:
            stream.close()

    def _worker_state(self, worker: int, workers: int) -> State:
        """The position of worker `worker`. offset: steps from the state to its next step."""
        if self._of_worker is None:
            start = self._state if self._stream is None and self._state is not None else self.stream.state_dict()
            self._of_worker = {"stream": start, "worker": worker, "workers": workers, "offset": worker}
        found = self._of_worker["worker"], self._of_worker["workers"]
        if found != (worker, workers):
            raise ValueError(f"state: of worker {found[0]} of {found[1]}, this is worker {worker} of {workers}")
        return self._of_worker

    def state_dict(self) -> State:
        """State after the last batch delivered; in the main process, the stream's."""
        info = get_worker_info()
        return self.stream.state_dict() if info is None else self._worker_state(info.id, info.num_workers)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state`. Raises what the stream raises for a state that does not fit."""
        if "offset" not in state:
            self.stream.load_state_dict(dict(state))
            self._of_worker = None
        elif get_worker_info() is None:
            raise ValueError(f"state: of worker {state['worker']} of {state['workers']}, this is the main process")
        else:
            self._of_worker = dict(state)


class TokenLoader(DataLoader[Batch]):
    """A DataLoader over a TokenDataset whose state is that after the last batch delivered, also with workers.

    A second loop continues after the last batch delivered. `telemetry` is the stream's; with workers it is the loader's
    own, which has only waiting times and tokens.
    """

    def __init__(self, dataset: TokenDataset, **options: Any) -> None:
        if options.get("persistent_workers"):
            raise ValueError("persistent_workers: True given, False is allowed: workers start from the loader's state")
        dataset.carry_state = True
        super().__init__(dataset, batch_size=None, collate_fn=_unchanged, **options)
        self.token_dataset = dataset
        self.telemetry: Telemetry = Telemetry() if self.num_workers else dataset.stream.telemetry
        self._last: str | None = None  # state of the last batch delivered, with workers

    def __iter__(self) -> Iterator[Batch]:  # type: ignore[override,unused-ignore]
        if self._last is not None:
            self.token_dataset.load_state_dict(json.loads(self._last))
        batches = super().__iter__()
        while True:
            asked = time.perf_counter_ns()
            try:
                batch = next(batches)
            except StopIteration:
                return
            if self.num_workers:
                self._last = batch.pop(STATE)
                self.telemetry.record(batch["input_ids"].numel(), wait=time.perf_counter_ns() - asked)
            yield batch

    def state_dict(self) -> State:
        """The stream's state after the last batch delivered: JSON-able, about 300 bytes."""
        return dict(self.token_dataset.state_dict() if self._last is None else json.loads(self._last))

    def receipt(self) -> dict[str, Any]:
        """The stream's receipt after the last batch delivered, to store with a checkpoint."""
        return {**self.token_dataset.stream.receipt(), "state": self.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """The next loop continues from `state`, saved with any number of workers and ranks."""
        self.token_dataset.load_state_dict(state)
        self._last = None


def _unchanged(batch: Any) -> Any:
    return batch


def build_dataloader(
    prefix: str,
    *,
    num_workers: int = 0,
    pin_memory: bool | None = None,
    dataloader: Mapping[str, Any] | None = None,
    **options: Any,
) -> TokenLoader:
    """A data loader over the corpus at `prefix`. options: those of TokenStream, and `packed` of TokenDataset.

    pin_memory: by default if CUDA is available. dataloader: more arguments of torch's DataLoader (prefetch_factor,
    multiprocessing_context, timeout, ...).
    """
    pin = torch.cuda.is_available() if pin_memory is None else pin_memory
    return TokenLoader(TokenDataset(prefix, **options), num_workers=num_workers, pin_memory=pin, **(dataloader or {}))


class DevicePrefetcher:
    """Batches on `device`; the next one is copied while the current one is used. See `device_prefetch`."""

    def __init__(self, batches: Iterable[Batch], device: str | torch.device) -> None:
        self.device = torch.device(device)
        self._batches = batches
        self._telemetry: Telemetry | None = getattr(batches, "telemetry", None)
        self._copy_stream = CUDA.Stream(self.device) if self.device.type == "cuda" else None
        self._source: Iterator[Batch] | None = None
        self._ahead: _Copied | None = None
        self._state: State | None = None

    def __iter__(self) -> Iterator[Batch]:
        if self._source is None:
            self._source = iter(self._batches)
        if self._ahead is None:
            self._ahead = self._start_copy()
        while self._ahead is not None:
            now, failure = self._ahead, None
            try:
                self._ahead = self._start_copy() if self._copy_stream is not None else None
            except Exception as error:  # noqa: BLE001 - raised below, after the current batch
                self._ahead, failure = None, error
            self._deliver(now)
            self._state = now.state
            yield now.batch
            self._record_copy(now)
            if failure is not None:
                self._source = None
                raise failure
            if self._copy_stream is None:
                self._ahead = self._start_copy()
        self._source = None

    def _start_copy(self) -> "_Copied | None":
        """Start copying the next batch to the device; None at the end."""
        batch = next(self._source, None) if self._source is not None else None
        if batch is None:
            return None
        state = self._batches.state_dict() if hasattr(self._batches, "state_dict") else None
        if self._copy_stream is None:
            started = time.perf_counter_ns()
            moved = {name: v.to(self.device) if isinstance(v, torch.Tensor) else v for name, v in batch.items()}
            return _Copied(moved, state, host_ns=time.perf_counter_ns() - started)
        events = CUDA.Event(enable_timing=True), CUDA.Event(enable_timing=True)
        with CUDA.stream(self._copy_stream):
            events[0].record()
            moved = {name: self._copy(v) if isinstance(v, torch.Tensor) else v for name, v in batch.items()}
            events[1].record()
        return _Copied(moved, state, events=events)

    def _copy(self, value: torch.Tensor) -> torch.Tensor:
        """Non-blocking copies need contiguous pinned memory, which PyTorch's allocator keeps until they are done."""
        if not (value.is_pinned() and value.is_contiguous()):  # inputs and labels are views of one buffer
            value = torch.empty(value.shape, dtype=value.dtype, pin_memory=True).copy_(value)
        return value.to(self.device, non_blocking=True)

    def _deliver(self, copied: "_Copied") -> None:
        """Make the caller's CUDA stream wait for the copy, and mark the memory as used by it."""
        if copied.events is not None:
            current = CUDA.current_stream(self.device)
            current.wait_event(copied.events[1])
            for value in copied.batch.values():
                if isinstance(value, torch.Tensor):
                    value.record_stream(current)

    def _record_copy(self, copied: "_Copied") -> None:
        if self._telemetry is not None:
            if copied.events is None:
                self._telemetry.copied(copied.host_ns)
            elif copied.events[1].query():  # nearly always true a step later; otherwise the time is skipped
                self._telemetry.copied(int(copied.events[0].elapsed_time(copied.events[1]) * 1e6))

    def state_dict(self) -> State:
        """State after the last batch delivered, not after the one copied ahead."""
        return dict(self._stateful().state_dict() if self._state is None else self._state)

    def receipt(self) -> dict[str, Any]:
        """The TokenLoader's receipt, with the state after the last batch delivered."""
        return {**self._stateful().receipt(), "state": self.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """The next loop continues from `state`; a batch that was copied ahead is dropped."""
        self._stateful().load_state_dict(state)
        self._source, self._ahead, self._state = None, None, None

    def _stateful(self) -> Any:
        if not hasattr(self._batches, "state_dict"):
            raise TypeError(f"batches: {type(self._batches).__name__} given, it has no state_dict")
        return self._batches


@dataclass(frozen=True, slots=True)
class _Copied:
    """A batch on the device or being copied to it. events: around the copy, on CUDA. host_ns: copy time elsewhere."""

    batch: Batch
    state: State | None
    events: tuple[Any, Any] | None = None
    host_ns: int = 0


def device_prefetch(batches: Iterable[Batch], device: str | torch.device) -> DevicePrefetcher:
    """Iterate over `batches` (dicts of tensors) on `device`.

    On CUDA the next batch is copied from pinned memory on a separate CUDA stream while the caller uses the current one;
    an error of the source is raised after the batches before it. On other devices batches are moved when requested.
    Save the state of the returned object, not that of `batches`, which is one batch ahead. A second loop continues with
    the next batch.
    """
    return DevicePrefetcher(batches, device)
