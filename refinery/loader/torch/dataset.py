"""The batches of a stream as tensors: a data set for PyTorch's loaders."""

import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Unpack, cast

import numpy as np
import torch
from torch.utils.data import IterableDataset, get_worker_info

from refinery.loader.order.arrays import TokenBatch
from refinery.loader.order.buffers import owns_memory
from refinery.loader.stream.options import check_keywords
from refinery.loader.stream.packed.packed_stream import PackedStream
from refinery.loader.stream.stream import TokenStream
from refinery.loader.torch.batches import TensorBatch
from refinery.loader.torch.options import DatasetOptions, PackedOptions
from refinery.loader.torch.ranks import default_rank, rank_in, warn_of_groups

State = dict[str, Any]

STATE = "loader_state"  # added to a batch in its worker process, removed by the data loader
INSTEAD = "refinery.loader.torch.adapter.build_dataloader(prefix, num_workers=...)"
TRAINER = (
    "for transformers write class CorpusTrainer(refinery.loader.torch.trainer.CorpusLoaders, Trainer) and "
    "train_dataset=build_dataloader(...)"
)


def as_tensors(batch: TokenBatch) -> TensorBatch:
    """The batch as contiguous tensors, each with memory of its own, so writing to one changes no other."""
    made = {name: _tensor(value) if isinstance(value, np.ndarray) else value for name, value in batch.items()}
    return cast(TensorBatch, made)


def _tensor(value: np.ndarray[Any, Any]) -> torch.Tensor:
    own = owns_memory(value) and value.flags.c_contiguous and value.flags.writeable
    return torch.from_numpy(value if own else np.array(value, order="C"))


class TokenDataset(IterableDataset[TensorBatch]):
    """The batches of a TokenStream as tensors. Takes the stream's arguments, and its state.

    packed: of a PackedStream instead. Pass it to a DataLoader with batch_size=None, since an item is already a batch;
    `build_dataloader` does.

    group: the process group or DeviceMesh of the ranks that read different data, for data parallelism beside tensor,
    context or pipeline parallelism. rank, world_size: the same as numbers. By default every process reads different
    data (`default_rank`), with a warning if there are groups of some ranks; it is determined now, so create the data
    set when torch.distributed has been initialized.

    Loops have the stream's meanings. But a DataLoader with worker processes does not say what it has delivered, so only
    a TokenLoader (`build_dataloader`) goes on in a second loop: other loaders with workers raise RuntimeError there,
    unless loop="restart". In a worker process of torchdata's StatefulDataLoader `state_dict` includes the worker's
    number, and only the worker with that number can load it.
    """

    def __init__(
        self,
        prefix: str,
        *,
        rank: int | None = None,
        world_size: int | None = None,
        group: Any = None,
        packed: bool = False,
        **options: Unpack[PackedOptions],
    ) -> None:
        super().__init__()
        check_keywords(options, DatasetOptions.__annotations__)
        if (rank is None) != (world_size is None):
            raise ValueError(f"rank, world_size: {rank}, {world_size} given, both or neither is allowed")
        if group is not None and rank is not None:
            raise ValueError("group, rank: both given, one of them is allowed")
        self._by_default = group is None and rank is None
        if self._by_default:
            rank, world_size = default_rank()
            warn_of_groups()
        elif group is not None:
            rank, world_size = rank_in(group)
        self.prefix = prefix
        self._kind = PackedStream if packed else TokenStream
        self.options: dict[str, Any] = {**options, "rank": rank, "world_size": world_size}
        self.carry_state = False  # add STATE to batches made in worker processes
        self._loops = 0  # that may begin in worker processes: one, and one for each time the position is set here
        self._begun = torch.zeros(1, dtype=torch.int64).share_memory_()  # last of them that did
        self._state: State | None = None  # in a spawned worker process: where to start
        self._of_worker: State | None = None  # in a worker: the position of its stream
        self._stream: TokenStream | None = self._kind(prefix, **self.options)  # invalid arguments fail immediately
        self._loop = self._stream.loop

    @property
    def stream(self) -> TokenStream:
        """The stream of this process."""
        if self._stream is None:
            self._stream = self._kind(self.prefix, **self.options)
            if self._state is not None:
                self._stream.load_state_dict(self._state)
        return self._stream

    @property
    def loop(self) -> str:
        """What a `for` loop delivers: "continue", "epoch" or "restart"."""
        return self._loop

    def __len__(self) -> int:
        """Batches of a whole loop, wherever the stream is. Raises TypeError if it has no end."""
        if self.stream.steps is None:
            raise TypeError("len(): the stream has no end, one with epochs, or with loop='epoch', is allowed")
        return self.stream.steps

    def __bool__(self) -> bool:
        return True

    def __getstate__(self) -> State:
        """For worker processes: the arguments and the position, without open files and threads."""
        return self.__dict__ | {"_stream": None, "_state": self.stream.state_dict()}

    def __iter__(self) -> Iterator[TensorBatch]:
        fetcher = sys._getframe(1).f_locals.get("self")  # of a DataLoader, which says nothing else to a data set
        if getattr(fetcher, "auto_collation", False):
            raise RuntimeError(
                f"TokenDataset: an item is a batch already, so a DataLoader needs batch_size=None, as in {INSTEAD}; "
                + TRAINER
            )
        info = get_worker_info()
        if info is not None:
            return self._batches_of_worker(info.id, info.num_workers)
        self.check_rank()
        return map(as_tensors, self.stream)

    def check_rank(self) -> None:
        """Raise RuntimeError if the rank was taken from torch.distributed, and is another one now."""
        given = self.options["rank"], self.options["world_size"]
        if self._by_default and default_rank() != given:
            raise RuntimeError(
                "TokenDataset: made as rank {} of {}, now this process is rank {} of {}; make it after "
                "torch.distributed has been initialized (Lightning: in train_dataloader())".format(
                    *given, *default_rank()
                )
            )

    def set_epoch(self, epoch: int) -> None:
        """Nothing: the stream counts epochs. But Accelerate's loaders call it, which must not divide a rank's batches.

        Raises RuntimeError when one that would is about to begin.
        """
        caller = str(sys._getframe(1).f_globals.get("__name__"))
        if caller.startswith("accelerate.") and self.options["world_size"] > 1:
            raise RuntimeError(
                "TokenDataset: these are one rank's batches, and Accelerate would divide them among all ranks again, "
                f"which loses tokens; write accelerator.prepare(loader) with loader = {INSTEAD}"
            )

    def _batches_of_worker(self, worker: int, workers: int) -> Iterator[TensorBatch]:
        if worker == 0:
            if self._of_worker is None and int(self._begun) > self._loops and self._loop != "restart":
                raise RuntimeError(
                    "TokenDataset: a second loop with worker processes would repeat batches, since a DataLoader does "
                    f"not say which were delivered; use {INSTEAD}, or num_workers=0, or loop='restart' for evaluation"
                )
            self._begun[0] = self._loops + 1
        fresh = self._of_worker is None
        state = self._worker_state(worker, workers)
        stream = self._kind(self.prefix, **self.options, worker=state["offset"], workers=workers)
        try:
            stream.load_state_dict(state["stream"])
            if fresh and stream.loop == "restart" and stream.steps_left == 0:
                stream.restart()  # the end of a loop is the beginning of the next one
            while (batch := next(stream, None)) is not None:  # not a loop, which might begin anew
                now = stream.state_dict()
                self._of_worker = {"stream": now, "worker": worker, "workers": workers, "offset": workers - 1}
                tensors = as_tensors(batch)
                if self.carry_state:
                    tensors[STATE] = json.dumps(now)  # type: ignore[literal-required] # the loader takes it out again
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
        """State after the last batch delivered; in the main process, the stream's.

        Raises RuntimeError in the main process if worker processes make the batches: their loader knows the state.
        """
        info = get_worker_info()
        if info is not None:
            return self._worker_state(info.id, info.num_workers)
        if int(self._begun) > self._loops:
            raise RuntimeError(
                f"state: unknown to the data set, worker processes made the batches; take that of the loader, {INSTEAD}"
            )
        return self.stream.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state`. Raises what the stream raises for a state that does not fit."""
        if "offset" not in state:
            self.stream.load_state_dict(dict(state))
            self.moved()
        elif get_worker_info() is None:
            raise ValueError(f"state: of worker {state['worker']} of {state['workers']}, this is the main process")
        else:
            self._of_worker = dict(state)

    def moved(self) -> None:
        """The position was set in this process, so a loop with worker processes may begin."""
        self._of_worker = None
        self._loops = int(self._begun)

    def restart(self) -> None:
        """Go back to the beginning."""
        self.stream.restart()
        self.moved()

    def skip(self, batches: int) -> int:
        """Pass over this many batches, unread; returns how many there were."""
        found = self.stream.skip(batches)
        self.moved()
        return found
