"""The keywords of streams as a type, so a type checker finds one that is misspelt where an adapter hands them on."""

import difflib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict

from refinery.loader.order.length_stages import LengthStage
from refinery.loader.order.mix_params import MixParams, MixStage
from refinery.loader.order.order import OrderParams
from refinery.loader.packing.packing import BestFitParams
from refinery.loader.read.remote.blocks import RemoteParams
from refinery.loader.stream.assemble import Codec
from refinery.loader.stream.fill_in_middle import FillInMiddleParams
from refinery.loader.stream.packed.decoded_cache import DecodedParams


class StreamOptions(TypedDict, total=False):
    """Those of TokenStream but the corpus and what adapters decide: rank, world_size, worker, workers."""

    sequence_length: int | Sequence[LengthStage]
    batch_size: int
    seed: int
    epochs: int | None
    split: str
    weights: Mapping[str, float] | Sequence[MixStage] | MixParams | None
    loop: str
    labels: str
    loss_mask: bool
    position_ids: bool
    doc_ids: bool
    cu_seqlens: bool
    ignore_cross_document: bool
    ignore_eos: bool
    fill_in_middle: FillInMiddleParams | None
    codec: Codec | None
    order: OrderParams | None
    prefetch: int
    remote: RemoteParams | None
    shards: Sequence[str] | None
    subset: int | float | None
    domain_ids: bool
    sample_ids: bool
    packing: str | BestFitParams | None
    cu_seqlens_size: int | None
    cp_rank: int
    cp_size: int
    cp_layout: str
    on_damage: str


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


# What other loaders call it, and what to write here.
ELSEWHERE = {
    "collate_fn": "an item is a batch already",
    "context_length": "sequence_length",
    "drop_last": "no batch is dropped: the last one of an epoch is filled with empty rows",
    "max_length": "sequence_length",
    "sampler": "rank and world_size, or group, say which rows are read",
    "seq_len": "sequence_length",
    "seq_length": "sequence_length",
    "shuffle": "rows are always shuffled, by seed; order=OrderParams(...) says how",
    "shuffle_seed": "seed",
}


def check_keywords(given: Mapping[str, object]) -> None:
    """Raise TypeError for a keyword that no stream takes, with the one that is meant if that can be said."""
    known = DatasetOptions.__annotations__.keys() | PackedOptions.__annotations__.keys()
    known |= StreamOptions.__annotations__.keys()
    for name in given:
        if name in known:
            continue
        near = difflib.get_close_matches(name, known, 1)
        hint = ELSEWHERE.get(name) or (f"did you mean {near[0]}?" if near else "docs/loader/arguments.md lists them")
        raise TypeError(f"{name}: no argument of a stream; {hint}")
