"""The batches of a stream as tensors: a data set for PyTorch's loaders."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch.utils.data import IterableDataset, get_worker_info

from refinery.loader.order.arrays import Batch
from refinery.loader.packed.packed_stream import PackedStream
from refinery.loader.stream.stream import TokenStream
from refinery.loader.torch.ranks import default_rank

State = dict[str, Any]

STATE = "loader_state"  # added to a batch in its worker process, removed by the data loader


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
