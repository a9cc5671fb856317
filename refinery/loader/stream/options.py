"""The keywords of TokenStream in three groups: what a batch has, which rows there are in which order, how to read them.

Each keyword is declared once, in its group. `FlatOptions`, which type checkers read where keywords are handed on,
repeats names and types, since no type can be derived from a dataclass; a test compares both. What other loaders call
them is at the end.

    TokenStream(prefix, 4096, batch=BatchOptions(position_ids=True), rows=RowOptions(packing="best_fit"))
    TokenStream(prefix, 4096, position_ids=True, packing="best_fit")      # the same
"""

import difflib
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import Field, dataclass, fields
from typing import Any, TypedDict, TypeVar

from refinery.loader.arguments import MOST, flag, of_kind, whole
from refinery.loader.order.batch_stages import BatchStage
from refinery.loader.order.context_parallel import ContextSlice
from refinery.loader.order.length_stages import LengthStage
from refinery.loader.order.mix_params import MixParams, MixStage
from refinery.loader.order.order import OrderParams
from refinery.loader.order.subset import check_subset
from refinery.loader.packing.buckets import LengthBuckets
from refinery.loader.packing.packing import BestFitParams, packing_params
from refinery.loader.read.damage import ON_DAMAGE
from refinery.loader.read.remote.blocks import RemoteParams
from refinery.loader.stream.assemble import Codec
from refinery.loader.stream.fill_in_middle import FillInMiddleParams
from refinery.loader.stream.masks import MaskParams

Init = TypeVar("Init", bound=Callable[..., None])


@dataclass(frozen=True, kw_only=True)
class BatchOptions:
    """What a batch has: arrays, labels, and the part of every row (docs/loader/batches.md)."""

    labels: str = "shifted"
    mask_labels: bool = True
    loss_mask: bool = False
    position_ids: bool = False
    doc_ids: bool = False
    cu_seqlens: bool = False
    cu_seqlens_size: int | None = None
    ignore_cross_document: bool = False
    ignore_eos: bool = False
    domain_ids: bool = False
    sample_ids: bool = False
    fill_in_middle: FillInMiddleParams | None = None
    codec: Codec | None = None
    cp_rank: int = 0
    cp_size: int = 1
    cp_layout: str = "zigzag"

    def __post_init__(self) -> None:
        for each in fields(self):
            if isinstance(each.default, bool):
                object.__setattr__(self, each.name, flag(each.name, getattr(self, each.name)))
        of_kind("fill_in_middle", self.fill_in_middle, FillInMiddleParams)
        codec = self.codec
        if codec is not None and not (isinstance(codec, Sequence) and len(codec) == 2 and all(map(callable, codec))):
            raise ValueError(f"codec: {codec!r:.80} given, (encode, decode) or None is allowed")
        if not self.mask_labels and (not self.loss_mask or self.labels == "unshifted"):
            raise ValueError(
                "mask_labels: False given without loss_mask=True and labels='shifted', True is allowed, since "
                "otherwise nothing says what is excluded from the loss"
            )
        _ = self.context

    @property
    def context(self) -> ContextSlice:
        """The part of every row."""
        return ContextSlice(self.cp_rank, self.cp_size, self.cp_layout)

    @property
    def ids(self) -> dict[str, bool]:
        """Which arrays say where rows are from."""
        return {"domain_ids": self.domain_ids, "sample_ids": self.sample_ids}

    def masks(self, eos_id: int | None, whole_documents: bool, of_data: bool = False) -> MaskParams:
        """What depends on the borders of documents. whole_documents: no label crosses one. of_data: the corpus says
        which tokens are trained."""
        cross = self.ignore_cross_document or whole_documents
        return MaskParams(
            loss_mask=self.loss_mask,
            position_ids=self.position_ids,
            doc_ids=self.doc_ids,
            cu_seqlens=self.cu_seqlens,
            ignore_labels=self.mask_labels and (cross or self.ignore_eos or of_data),
            ignore_cross_document=cross,
            ignore_eos=self.ignore_eos,
            eos_id=eos_id,
            cu_seqlens_size=self.cu_seqlens_size,
        )


@dataclass(frozen=True, kw_only=True)
class RowOptions:
    """Which rows there are, and in which order they come (docs/loader/order.md)."""

    loop: str = "continue"
    shuffle: bool = True
    order: OrderParams | None = None
    packing: str | BestFitParams | LengthBuckets | None = None
    shards: Sequence[str] | None = None
    subset: int | float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "shuffle", flag("shuffle", self.shuffle))
        of_kind("order", self.order, OrderParams)
        if self.order is not None and not self.shuffle:
            raise ValueError("order: given with shuffle=False, None is allowed, since it is the shape of the shuffle")
        packing_params(self.packing)
        check_subset(self.subset)


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """How the corpus is read (docs/loader/remote.md, docs/loader/damage.md)."""

    prefetch: int = 1
    remote: RemoteParams | None = None
    on_damage: str = "error"

    def __post_init__(self) -> None:
        object.__setattr__(self, "prefetch", whole("prefetch", self.prefetch, 0, MOST))
        of_kind("remote", self.remote, RemoteParams)
        if self.on_damage not in ON_DAMAGE:
            allowed = " or ".join(map(repr, ON_DAMAGE))
            raise ValueError(f"on_damage: {self.on_damage!r:.80} given, {allowed} is allowed")


GROUPS: Mapping[str, type[Any]] = {"batch": BatchOptions, "rows": RowOptions, "reading": ReadOptions}
FLAT: Mapping[str, Field[Any]] = {each.name: each for kind in GROUPS.values() for each in fields(kind)}


class FlatOptions(TypedDict, total=False):
    """The fields of all groups as keywords."""

    labels: str
    mask_labels: bool
    loss_mask: bool
    position_ids: bool
    doc_ids: bool
    cu_seqlens: bool
    cu_seqlens_size: int | None
    ignore_cross_document: bool
    ignore_eos: bool
    domain_ids: bool
    sample_ids: bool
    fill_in_middle: FillInMiddleParams | None
    codec: Codec | None
    cp_rank: int
    cp_size: int
    cp_layout: str
    loop: str
    shuffle: bool
    order: OrderParams | None
    packing: str | BestFitParams | LengthBuckets | None
    shards: Sequence[str] | None
    subset: int | float | None
    prefetch: int
    remote: RemoteParams | None
    on_damage: str


class StreamOptions(FlatOptions, total=False):
    """All keywords of TokenStream but the corpus and what adapters decide: rank, world_size, worker, workers."""

    sequence_length: int | Sequence[LengthStage]
    batch_size: int | Sequence[BatchStage]
    seed: int
    epochs: int | None
    split: str
    weights: Mapping[str, float] | Sequence[MixStage] | MixParams | None
    batch: BatchOptions | None
    rows: RowOptions | None
    reading: ReadOptions | None


def grouped(given: Mapping[str, Any]) -> tuple[BatchOptions, RowOptions, ReadOptions]:
    """The groups among a stream's keywords, from a group itself or from its fields. Raises ValueError for both."""
    found = []
    for name, kind in GROUPS.items():
        group = of_kind(name, given.get(name), kind)
        own = {each.name: given[each.name] for each in fields(kind) if each.name in given}
        if group is not None and own:
            raise ValueError(
                f"{next(iter(own))}: given beside {name}={kind.__name__}(...), which has it; one of them is allowed"
            )
        found.append(kind(**own) if group is None else group)
    return found[0], found[1], found[2]


def shows_options(init: Init) -> Init:
    """For a method that takes **options: help() and inspect.signature name each of them, with its default."""
    shown = inspect.signature(init)
    own = [each for each in shown.parameters.values() if each.kind is not inspect.Parameter.VAR_KEYWORD]
    kind = inspect.Parameter.KEYWORD_ONLY
    flat = [inspect.Parameter(name, kind, default=each.default, annotation=each.type) for name, each in FLAT.items()]
    vars(init)["__signature__"] = shown.replace(parameters=[*own, *flat])
    return init


# --- what other loaders call it ---------------------------------------------------------------------------------------

_EPOCHS = "the stream counts its epochs itself, each in another order; loop='epoch' ends a loop with an epoch"
_LAST = "no batch is dropped: the last one of an epoch is filled with empty rows"
_LENGTH, _RANK, _WORLD = "sequence_length", "rank", "world_size"
_ROWS = "an item is a batch already"
_SAMPLER = "rank and world_size, or group, say which rows are read"

# Of PyTorch, transformers and TRL, Megatron, torchtitan, litgpt and Mosaic.
ELSEWHERE: Mapping[str, str] = {
    "batch_sampler": _SAMPLER,
    "block_size": _LENGTH,
    "collate_fn": _ROWS,
    "context_length": _LENGTH,
    "context_parallel_rank": "cp_rank",
    "context_parallel_size": "cp_size",
    "data_parallel_rank": _RANK,
    "data_parallel_size": _WORLD,
    "data_path": "the first argument, prefix",
    "dataloader_drop_last": _LAST,
    "dp_rank": _RANK,
    "dp_world_size": _WORLD,
    "drop_last": _LAST,
    "eod_mask_loss": "ignore_eos",
    "epoch": _EPOCHS,
    "global_batch_size": "batch_size, which is of one rank",
    "infinite": "epochs=None has no end",
    "local_batch_size": "batch_size",
    "max_length": _LENGTH,
    "max_seq_len": _LENGTH,
    "max_seq_length": _LENGTH,
    "micro_batch_size": "batch_size",
    "num_epochs": "epochs",
    "num_replicas": _WORLD,
    "num_train_epochs": "epochs",
    "per_device_train_batch_size": "batch_size",
    "rampup_batch_size": "batch_size=[BatchStage(...), ...]",
    "random_seed": "seed",
    "reset_attention_mask": "doc_ids or cu_seqlens says where documents begin",
    "reset_position_ids": "position_ids, which begin at 0 in every document",
    "sampler": _SAMPLER,
    "seq_len": _LENGTH,
    "seq_length": _LENGTH,
    "set_epoch": _EPOCHS,
    "shuffle_buffer_size": "OrderParams(window=...)",
    "shuffle_seed": "seed",
}
_CORE = ("prefix", "sequence_length", "batch_size", "seed", "epochs", "rank", "world_size", "split", "weights",
         "worker", "workers")  # fmt: skip
_METHODS = {"set_epoch": _EPOCHS, "sampler": _SAMPLER, "drop_last": _LAST}
_MEANT = "write it as an argument of build_dataloader itself"
_TORCH = {"batch_size": _MEANT, "shuffle": _MEANT, "num_workers": _MEANT, "pin_memory": _MEANT}


def check_keywords(given: Collection[str], more: Collection[str] = ()) -> None:
    """Raise TypeError for a keyword that no stream takes, with the one that is meant if that can be said. more: those
    of an adapter."""
    known = {*_CORE, *GROUPS, *FLAT, *more}
    for name in given:
        if name in known:
            continue
        near = difflib.get_close_matches(name, known, 1)
        hint = ELSEWHERE.get(name) or (f"did you mean {near[0]}?" if near else "docs/loader/arguments.md lists them")
        raise TypeError(f"{name}: no argument of a stream; {hint}")


def check_dataloader(given: Mapping[str, Any]) -> None:
    """Raise TypeError for an argument of PyTorch's DataLoader that the stream decides."""
    for name in given:
        hint = _TORCH.get(name) or ELSEWHERE.get(name)
        if hint:
            raise TypeError(f"dataloader: {name} given, which the stream decides; {hint}")


def no_attribute(owner: object, name: str) -> AttributeError:
    """The error for a name that an object does not have, with what is meant if users of other loaders expect it."""
    hint = f"; {_METHODS[name]}" if name in _METHODS else ""
    return AttributeError(f"{type(owner).__name__!r} object has no attribute {name!r}{hint}", name=name, obj=owner)
