"""The keywords of streams as a type, so a type checker finds one that is misspelt where an adapter hands them on."""

from collections.abc import Callable, Sequence
from typing import Any

from refinery.loader.stream.options import StreamOptions
from refinery.loader.stream.packed.decoded_cache import DecodedParams


class PackedOptions(StreamOptions, total=False):
    """Those of PackedStream, too."""

    columns: Sequence[str]
    decoded: DecodedParams | None
    check_first: bool
    packing_every: int
    report: Callable[[dict[str, float]], None] | None


class DatasetOptions(PackedOptions, total=False):
    """Those of refinery.loader.torch.dataset.TokenDataset, too."""

    rank: int | None
    world_size: int | None
    group: Any
    packed: bool
