"""A DataLoader over a TokenDataset: it knows which batch was delivered last, also with worker processes."""

import json
import sys
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, cast

from torch.utils.data import DataLoader

from refinery.loader.stream.options import no_attribute
from refinery.loader.stream.telemetry import Telemetry
from refinery.loader.torch.batches import TensorBatch
from refinery.loader.torch.dataset import STATE, TRAINER, State, TokenDataset


class TokenLoader(DataLoader[TensorBatch]):
    """A DataLoader over a TokenDataset whose state is that after the last batch delivered, also with workers.

    Loops, lengths, `skip` and `restart` are the stream's, with any number of workers, inside a loop, too. `telemetry`
    is the stream's; with workers it is the loader's own, which has only waiting times and tokens.

    Accelerate's `prepare` returns it unchanged: it reads its own rank's rows already. Batches stay where they are.
    """

    _is_accelerate_prepared = True  # Accelerate would divide this rank's batches among all ranks again
    end_of_dataloader, remainder = False, -1  # what Accelerate asks, to step after the last batch of a loop

    def __init__(self, dataset: TokenDataset, **options: Any) -> None:
        if options.get("persistent_workers"):
            raise ValueError("persistent_workers: True given, False is allowed; workers start from the loader's state")
        super().__init__(dataset, batch_size=None, collate_fn=_unchanged, **options)
        self.token_dataset = dataset
        self.telemetry: Telemetry = Telemetry() if self.num_workers else dataset.stream.telemetry
        self._last: str | None = None  # state of the last batch delivered, with workers
        self._moved = True  # the position was set, so workers have to begin there

    if not TYPE_CHECKING:  # a checker would take every name for one that there is

        def __getattr__(self, name):
            raise no_attribute(self, name)

    @property
    def loop(self) -> str:
        """What a `for` loop delivers: "continue", "epoch" or "restart"."""
        return self.token_dataset.loop

    def __len__(self) -> int:
        """Batches of a whole loop, wherever the loader is; all are delivered. Raises TypeError if it has no end."""
        return len(self.token_dataset)

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, index: Any) -> NoReturn:
        """Raises TypeError: another DataLoader asks for items, that of a plain Trainer too."""
        raise TypeError(f"TokenLoader: no data set with items, but a loader that delivers batches; {TRAINER}")

    @property
    def steps_per_epoch(self) -> int | None:
        """Batches of a whole epoch; with weights, of all of the mixture. None if it has no end."""
        return self.token_dataset.stream.steps_per_epoch

    @property
    def steps_left(self) -> int | None:
        """Batches from here to the end of the loop; after the last one of an epoch, those of the next. None: no end."""
        return self._at_last().stream.steps_left

    def _at_last(self) -> TokenDataset:
        """The data set, its stream after the last batch delivered."""
        if self._last is not None:
            self.token_dataset.load_state_dict(json.loads(self._last))
            self._last = None
        return self.token_dataset

    def __iter__(self) -> Iterator[TensorBatch]:  # type: ignore[override,unused-ignore] # typed batches
        self.token_dataset.check_rank()
        if self.num_workers and self.loop == "restart" and (not self._moved or self.steps_left == 0):
            self.restart()
        batches = self._begin()
        left = self.steps_left
        gradients = self._gradient_state()
        try:
            while True:
                asked = time.perf_counter_ns()
                try:
                    batch = next(batches)
                except StopIteration:
                    return
                if self.num_workers:
                    self._last = cast(dict[str, Any], batch).pop(STATE)  # added in a worker process
                    waited, inputs = time.perf_counter_ns() - asked, batch["input_ids"]
                    shape = tuple(inputs.shape)
                    self.telemetry.record(inputs.numel(), wait=waited, queue_wait=waited, shape=shape)
                left = None if left is None else left - 1
                self.end_of_dataloader = left == 0
                yield batch
                if self._moved:
                    batches = self._begin() if self.num_workers else batches
                    left, self._moved = self.steps_left, False
        finally:
            if gradients is not None:
                gradients._remove_dataloader(self)

    def _begin(self) -> Iterator[TensorBatch]:
        """Batches from the last one delivered on."""
        dataset = self._at_last()
        dataset.moved()
        self._moved, dataset.carry_state = False, True
        try:
            return iter(super().__iter__())
        finally:
            dataset.carry_state = False  # other loaders would hand it on

    def _gradient_state(self) -> Any:
        """Accelerate's, if the process uses it: it has to know when a loop ends."""
        module = sys.modules.get("accelerate.state")
        if module is None or not module.GradientState._shared_state:
            return None
        found = module.GradientState()
        found._add_dataloader(self)
        return found

    def state_dict(self) -> State:
        """The stream's state after the last batch delivered: JSON-able, about 300 bytes."""
        return dict(self.token_dataset.stream.state_dict() if self._last is None else json.loads(self._last))

    def receipt(self) -> dict[str, Any]:
        """The stream's receipt after the last batch delivered, to store with a checkpoint."""
        return {**self.token_dataset.stream.receipt(), "state": self.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state`, saved with any number of workers and ranks."""
        self.token_dataset.load_state_dict(state)
        self._last, self._moved = None, True

    def restart(self) -> None:
        """Go back to the beginning: the next batch is the first one of the first epoch."""
        self.token_dataset.restart()
        self._last, self._moved = None, True

    def skip(self, batches: int) -> int:
        """Pass over this many batches, unread, as if they had been delivered; returns how many there were."""
        found = self._at_last().skip(batches)
        self._moved = True
        return found


def _unchanged(batch: Any) -> Any:
    return batch
