"""Arrays that depend on document boundaries: labels, loss mask, positions, document numbers, cu_seqlens.

Boundaries come from the index, not from EOS tokens, so documents without EOS work too. There is no dense attention
mask: `doc_ids` is what a FlexAttention mask function compares, `cu_seqlens` what variable-length FlashAttention takes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from refinery.loader.arguments import MOST, whole
from refinery.loader.native import masks as kernel
from refinery.loader.order.arrays import Array, Batch

IGNORE = -100  # the default ignore_index of PyTorch's cross entropy
PADDING = -1  # doc_ids of padding
_CROSS_DOCUMENT, _EOS, _COPIED = 1, 2, 4  # option bits of the kernel


@dataclass(frozen=True, slots=True)
class MaskParams:
    """Which arrays a batch has, and which labels are excluded from the loss.

    loss_mask, position_ids, doc_ids, cu_seqlens: add these arrays.
    ignore_labels: labels are a copy with IGNORE wherever the loss mask is false; else both they and the input ids are
        read-only views of the tokens (SharedRows).
    ignore_cross_document: exclude a document's first token, which would be predicted from the previous document.
    ignore_eos: exclude the EOS at a document's end. (The format allows EOS nowhere else.)
    cu_seqlens_size: entries of cu_seqlens in every batch, so a compiled model sees one shape; None for as many as
        there are. Runs of length 0 fill it up, and max_seqlen is S, an upper bound.
    """

    loss_mask: bool = True
    position_ids: bool = True
    doc_ids: bool = True
    cu_seqlens: bool = True
    ignore_labels: bool = True
    ignore_cross_document: bool = False
    ignore_eos: bool = False
    eos_id: int | None = None
    cu_seqlens_size: int | None = None

    def __post_init__(self) -> None:
        if self.ignore_eos and self.eos_id is None:
            raise ValueError("ignore_eos: True given without an eos_id, False is allowed")
        if self.eos_id is not None and self.eos_id < 0:
            raise ValueError(f"eos_id: {self.eos_id} given, 0 or more is allowed")
        if self.cu_seqlens_size is not None:
            if not self.cu_seqlens:
                raise ValueError("cu_seqlens_size: given without cu_seqlens, None is allowed")
            object.__setattr__(self, "cu_seqlens_size", whole("cu_seqlens_size", self.cu_seqlens_size, 2, MOST))
        if (self.ignore_cross_document or self.ignore_eos) and not (self.loss_mask or self.ignore_labels):
            raise ValueError(
                "ignore_cross_document, ignore_eos: given without loss_mask or ignore_labels, which would apply them"
            )


class TooManyRuns(ValueError):
    """A batch has more documents than cu_seqlens_size has room for; the message says how much it needs."""


class SharedRows(np.ndarray[Any, Any]):
    """input_ids or labels of a batch in which both are views of the same tokens: read-only, and an attempt to write
    says why. `copy` and calculations return ordinary arrays and numbers."""

    def __setitem__(self, key: Any, value: Any) -> None:
        if not self.flags.writeable:
            raise ValueError(
                "input_ids, labels: read-only in this batch, since they share memory, so writing to one would "
                'change the other; write to a copy, such as labels = batch["labels"].copy()'
            )
        super().__setitem__(key, value)

    def __array_wrap__(self, array: Array, context: Any = None, return_scalar: bool = False) -> Any:
        return array[()] if return_scalar else array  # sums as numbers, which can be hashed, rounded and saved

    def copy(self, order: Any = "C") -> Array:  # type: ignore[override]
        return np.array(self, order=order)


def shared(tokens: Array) -> tuple[Array, Array]:
    """(input_ids, labels) of tokens [B, S + 1], as read-only views of them. Cost: 0.5 us."""
    locked = tokens.view(SharedRows)
    locked.flags.writeable = False
    return locked[:, :-1], locked[:, 1:]


def _padded(bounds: Array, size: int, end: int) -> Array:
    """cu_seqlens with `size` entries. Raises TooManyRuns if it has more."""
    if len(bounds) > size:
        raise TooManyRuns(
            f"cu_seqlens_size: {size} given, but this batch has {len(bounds) - 1} documents and parts of such, so "
            f"{len(bounds)} or more is allowed; open the stream with that and load its last state"
        )
    found = np.full(size, end, np.int32)
    found[: len(bounds)] = bounds
    return found


def fill(
    tokens: Array,
    starts: Array,
    counts: Array,
    valid: Array,
    params: MaskParams,
) -> Batch:
    """A batch from assembled tokens and the document starts inside its rows.

    tokens: any integer dtype, [B, S + 1]; row b's inputs are its first S tokens, its labels the last S. Fastest as
        contiguous int64, which needs no conversion.
    starts: integers [sum(counts)]; per row, ascending, the offsets 0 to S at which documents start. Empty documents
        give equal starts. A row whose document began before it has no start 0.
    counts: integers [B], how many of `starts` belong to each row.
    valid: integers [B], 0 to S + 1, how many tokens of each row are real; the rest is padding.

    The batch has, as requested by `params`:
    input_ids    view of tokens, [B, S]
    labels       int64 [B, S]; where ignore_labels is off a view of tokens, and both are read-only
    loss_mask    bool [B, S], true where the label counts in the loss. One byte per token: a quarter of float32 to copy
                 to the device, usable as an index and as a factor
    position_ids int32 [B, S], from 0 in each document and at each row's start and padding
    doc_ids      int32 [B, S], from 0 in each row, numbering documents with at least one token; PADDING for padding
    cu_seqlens   int32 [n + 1], cumulative lengths of the n runs of equal doc_ids in the concatenated rows, from 0 to
                 B * S; with `max_seqlen` (int), the longest run. With cu_seqlens_size [cu_seqlens_size], B * S from
                 entry n on; TooManyRuns for a batch of more

    Raises ValueError for shapes that do not match, for 2^31 tokens or more, and for starts, counts or valid that are
    not as above. Cost: one pass over the runs in C, without the GIL; all arrays together take 0.3 ns per token if they
    are in the CPU cache, about 0.7 in a stream. No array but the views shares memory with another, so a batch may be
    kept.
    """
    if tokens.ndim != 2 or tokens.shape[1] < 2 or counts.shape != valid.shape or counts.shape != tokens.shape[:1]:
        raise ValueError(
            f"tokens, counts, valid: shapes {tokens.shape}, {counts.shape}, {valid.shape} given, "
            "[B, S + 1], [B], [B] is allowed"
        )
    rows, length = tokens.shape[0], tokens.shape[1] - 1
    if rows * length >= 2**31:
        raise ValueError(f"tokens: {rows} rows of {length} given, up to {2**31 - 1} tokens are allowed")
    batch = fill_read(
        np.ascontiguousarray(tokens, np.int64),
        np.ascontiguousarray(starts, np.int64),
        np.ascontiguousarray(counts, np.int64),
        np.ascontiguousarray(valid, np.int64),
        params,
    )
    batch["input_ids"] = tokens[:, :-1]
    if not params.ignore_labels:
        batch["input_ids"], batch["labels"] = shared(tokens)
    return batch


def fill_read(
    tokens: Array,
    starts: Array,
    counts: Array,
    valid: Array,
    params: MaskParams,
    empty: Callable[..., Array] = np.empty,
    labels: Array | None = None,
) -> Batch:
    """As `fill`, of contiguous int64 arrays whose shapes fit each other, as a stream reads them.

    empty: makes the arrays of the batch's shape, as np.empty does (refinery.loader.order.buffers). labels: int64
    [B, S] that hold the last S tokens of each row up to its `valid`; they become the batch's.
    """
    shape = rows, length = tokens.shape[0], tokens.shape[1] - 1
    options = params.ignore_cross_document * _CROSS_DOCUMENT + params.ignore_eos * _EOS
    if labels is not None:
        options += _COPIED
    elif params.ignore_labels:
        labels = empty(shape, np.int64)
    loss = empty(shape, np.bool_) if params.loss_mask else None
    positions = empty(shape, np.int32) if params.position_ids else None
    documents = empty(shape, np.int32) if params.doc_ids else None
    bounds = np.empty(len(starts) + 2 * rows + 1, np.int32) if params.cu_seqlens else None
    eos = params.eos_id or 0
    runs, longest = kernel.fill(tokens, starts, counts, valid, options, eos, labels, loss, positions, documents, bounds)
    inputs, labels = shared(tokens) if labels is None else (tokens[:, :-1], labels)
    batch: Batch = {"input_ids": inputs, "labels": labels}
    if loss is not None:
        batch["loss_mask"] = loss
    if documents is not None:
        batch["doc_ids"] = documents
    if positions is not None:
        batch["position_ids"] = positions
    if bounds is not None:
        size = params.cu_seqlens_size
        if size is not None:
            bounds, longest, runs = _padded(bounds[: runs + 1], size, rows * length), length, size - 1
        batch["cu_seqlens"], batch["max_seqlen"] = bounds[: runs + 1], longest
    return batch
