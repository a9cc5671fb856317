"""The inputs of a run as `_run.json` lists them: what a run that was cut into slices reads, whatever became of them."""

from typing import Any

from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import RUN, unseal
from refinery.loader.storage.store import Store


def sealed_inputs(store: Store) -> list[dict[str, Any]]:
    """An entry for each file that the run at a prefix reads, of `describe_inputs`. Raises FormatError where the run's
    description is gone or damaged."""
    if store.size(RUN) is None:
        raise FormatError(
            f"{store.url(RUN)} is gone, which says what the run reads; put it back, or choose another --output"
        )
    inputs = unseal(store.read(RUN), store.url(RUN)).get("inputs")
    if not isinstance(inputs, list):
        raise FormatError(f"{store.url(RUN)}: inputs: a list is needed")
    return inputs
