"""What other loaders call a stream's keywords and methods, and what to write here instead."""

import difflib
from collections.abc import Collection, Mapping
from typing import Any

from refinery.loader.stream.options import FLAT, GROUPS

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
