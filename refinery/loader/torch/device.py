"""Batches on their device: the next one is copied while the current one is used."""

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import torch

from refinery.loader.stream.telemetry import Telemetry
from refinery.loader.torch.batches import TensorBatch
from refinery.loader.torch.dataset import State

CUDA: Any = torch.cuda  # only partly typed


class DevicePrefetcher:
    """Batches on `device`; the next one is copied while the current one is used. See `device_prefetch`."""

    def __init__(self, batches: Iterable[TensorBatch], device: str | torch.device) -> None:
        self.device = torch.device(device)
        self._batches = batches
        self._telemetry: Telemetry | None = getattr(batches, "telemetry", None)
        self._copy_stream = CUDA.Stream(self.device) if self.device.type == "cuda" else None
        self._source: Iterator[TensorBatch] | None = None
        self._ahead: _Copied | None = None
        self._state: State | None = None
        self._staging = 0  # nanoseconds, of the batch that is being copied
        self._moved = False  # the position was set since the last batch

    def __len__(self) -> int:
        """That of the batches. Raises TypeError if they have none."""
        return len(self._batches)  # type: ignore[arg-type]

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[TensorBatch]:
        how, self._moved = getattr(self._batches, "loop", None), False
        if how == "restart":
            self._ahead = None
        if self._source is None or (how is not None and self._ahead is None):
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
            if self._moved:
                self._moved, self._source = False, iter(self._batches)
                self._ahead = self._start_copy()
                continue
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
            return _Copied(cast(TensorBatch, moved), state, host_ns=time.perf_counter_ns() - started)
        events = CUDA.Event(enable_timing=True), CUDA.Event(enable_timing=True)
        with CUDA.stream(self._copy_stream):
            events[0].record()
            self._staging = 0
            moved = {name: self._copy(v) if isinstance(v, torch.Tensor) else v for name, v in batch.items()}
            events[1].record()
        return _Copied(cast(TensorBatch, moved), state, events=events, staging_ns=self._staging)

    def _copy(self, value: torch.Tensor) -> torch.Tensor:
        """Non-blocking copies need contiguous pinned memory, which PyTorch's allocator keeps until they are done."""
        if not (value.is_pinned() and value.is_contiguous()):  # inputs and labels are views of one buffer
            started = time.perf_counter_ns()
            value = torch.empty(value.shape, dtype=value.dtype, pin_memory=True).copy_(value)
            self._staging += time.perf_counter_ns() - started
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
            if copied.staging_ns:
                self._telemetry.staged(copied.staging_ns)
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
        """Continue from `state`; a batch that was copied ahead is dropped."""
        self._stateful().load_state_dict(state)
        self._forget()

    def restart(self) -> None:
        """Go back to the beginning of the TokenLoader."""
        self._stateful().restart()
        self._forget()

    def skip(self, batches: int) -> int:
        """Pass over this many batches of the TokenLoader, unread; returns how many there were."""
        if self._state is not None:
            self.load_state_dict(self._state)  # without the batch that was copied ahead
        found: int = self._stateful().skip(batches)
        self._forget()
        return found

    def _forget(self) -> None:
        self._source, self._ahead, self._state, self._moved = None, None, None, True

    def _stateful(self) -> Any:
        if not hasattr(self._batches, "state_dict"):
            raise TypeError(f"batches: {type(self._batches).__name__} given, it has no state_dict")
        return self._batches


@dataclass(frozen=True, slots=True)
class _Copied:
    """A batch on the device or being copied to it. events: around the copy, on CUDA. host_ns: copy time elsewhere.
    staging_ns: spent on putting it into pinned memory before."""

    batch: TensorBatch
    state: State | None
    events: tuple[Any, Any] | None = None
    host_ns: int = 0
    staging_ns: int = 0


def device_prefetch(batches: Iterable[TensorBatch], device: str | torch.device) -> DevicePrefetcher:
    """Iterate over `batches` (dicts of tensors) on `device`.

    On CUDA the next batch is copied from pinned memory on a separate CUDA stream while the caller uses the current one;
    an error of the source is raised after the batches before it. On other devices batches are moved when requested.
    Save the state of the returned object, not that of `batches`, which is one batch ahead. A second loop continues with
    the next batch.
    """
    return DevicePrefetcher(batches, device)
