"""A DataLoader over a TokenDataset: it knows which batch was delivered last, also with worker processes."""

import json
import time
from collections.abc import Iterator, Mapping
from typing import Any

from torch.utils.data import DataLoader

from refinery.loader.order.arrays import Batch
from refinery.loader.stream.telemetry import Telemetry
from refinery.loader.torch.dataset import STATE, State, TokenDataset


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
