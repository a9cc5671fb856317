"""What a batch says about its documents: labels, loss mask, positions, document numbers, cu_seqlens.

Everything comes from the document starts in the index, never from looking for an EOS in the tokens, so documents
without EOS work too. No dense attention mask: `doc_ids` is what FlexAttention's mask function needs, `cu_seqlens` what
variable-length FlashAttention takes.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Batch = dict[str, Any]

IGNORE = -100  # the default ignore_index of PyTorch's cross entropy
PADDING = -1  # doc_ids of padding


@dataclass(frozen=True, slots=True)
class MaskParams:
    """Which arrays a batch carries, and which labels are not learned.

    loss_mask, position_ids, doc_ids, cu_seqlens: add these arrays.
    ignore_labels: labels are a copy with IGNORE wherever the loss mask is false; else a view of the tokens.
    ignore_cross_document: the first token of a document is not predicted from the document before it.
    ignore_eos: the EOS at a document's end is not learned. (The format allows it nowhere else.)
    """

    loss_mask: bool = True
    position_ids: bool = True
    doc_ids: bool = True
    cu_seqlens: bool = True
    ignore_labels: bool = True
    ignore_cross_document: bool = False
    ignore_eos: bool = False
    eos_id: int | None = None

    def __post_init__(self) -> None:
        if self.ignore_eos and self.eos_id is None:
            raise ValueError("ignore_eos: True given without an eos_id, False is allowed")
        if self.eos_id is not None and self.eos_id < 0:
            raise ValueError(f"eos_id: {self.eos_id} given, 0 or more is allowed")
        if (self.ignore_cross_document or self.ignore_eos) and not (self.loss_mask or self.ignore_labels):
            raise ValueError(
                "ignore_cross_document, ignore_eos: given with neither loss_mask nor ignore_labels to show it"
            )


def fill(tokens: Array, starts: Array, counts: Array, valid: Array, params: MaskParams) -> Batch:
    """A batch from assembled tokens and the document starts inside its rows.

    tokens: any integer dtype, [B, S + 1], contiguous; row b's inputs are its first S tokens, its labels the last S.
    starts: integers [sum(counts)]; per row, ascending, the offsets 0 to S at which documents start. Empty documents
        give equal starts. A row whose document began before it has no start 0.
    counts: integers [B], how many of `starts` belong to each row.
    valid: integers [B], 0 to S + 1, how many tokens of each row are real; the rest is padding.

    The batch has, as `params` asks:
    input_ids    view of tokens, [B, S]
    labels       int64 [B, S], or a view of tokens where ignore_labels is off
    loss_mask    bool [B, S], true where the label is learned. One byte per token: a fourth of float32 on the way to the
                 device, usable as an index and as a factor
    position_ids int32 [B, S], from 0 in each document and at each row's start and padding
    doc_ids      int32 [B, S], from 0 in each row, numbering documents with at least one token; PADDING for padding
    cu_seqlens   int32 [n + 1], cumulative lengths of the n runs of equal doc_ids in the rows laid end to end: from 0 to
                 B * S; `max_seqlen` (int) beside it

    Raises ValueError for shapes that do not fit or 2^31 tokens and more; `starts` and `valid` are trusted. Cost: one or
    two vectorised passes per array, 1 to 1.7 ns per token for everything at once; no loop over rows or documents. All
    arrays but the views are new: a batch may be kept.
    """
    if tokens.ndim != 2 or tokens.shape[1] < 2 or counts.shape != valid.shape or counts.shape != tokens.shape[:1]:
        raise ValueError(
            f"tokens, counts, valid: shapes {tokens.shape}, {counts.shape}, {valid.shape} given, "
            "[B, S + 1], [B], [B] is allowed"
        )
    rows, length = tokens.shape[0], tokens.shape[1] - 1
    base, ramp = _frame(rows, length)
    short = np.flatnonzero(valid <= length)  # rows with padding or without a last label
    flat = starts + base.repeat(counts)
    batch: Batch = {"input_ids": tokens[:, :-1]}
    _add_labels(batch, tokens, starts, flat, counts, valid, short, params)
    if not (params.position_ids or params.doc_ids or params.cu_seqlens):
        return batch
    if len(short):
        inputs = np.minimum(valid, length)
        runs = [base, flat[starts < inputs.repeat(counts)], (base + inputs)[short], ramp[-1:] + np.int64(1)]
    else:
        runs = [base, flat[starts < length], ramp[-1:] + np.int64(1)]
    ends = np.concatenate(runs)
    ends.sort()
    lengths = ends[1:] - ends[:-1]
    if not lengths.all():  # a start 0, empty documents, or no padding after all
        ends = np.concatenate([ends[:-1][lengths > 0], ends[-1:]])
        lengths = ends[1:] - ends[:-1]
    first = ends[:-1].astype(np.int32)
    if params.doc_ids:
        row = first // np.int32(length)
        ids = ramp[: len(first)] - first.searchsorted(base.astype(np.int32)).astype(np.int32)[row]
        if len(short):
            ids[first - base[row] >= valid[row]] = PADDING
        batch["doc_ids"] = ids.repeat(lengths).reshape(rows, length)
    if params.position_ids:
        positions = first.repeat(lengths)
        batch["position_ids"] = np.subtract(ramp, positions, out=positions).reshape(rows, length)
    if params.cu_seqlens:
        batch["cu_seqlens"] = ends.astype(np.int32)
        batch["max_seqlen"] = int(lengths.max())
    return batch


def _add_labels(
    batch: Batch,
    tokens: Array,
    starts: Array,
    flat: Array,
    counts: Array,
    valid: Array,
    short: Array,
    params: MaskParams,
) -> None:
    """Put labels and loss_mask into `batch`. flat: `starts`, counted from the first row's first input. short: rows."""
    rows, length = tokens.shape[0], tokens.shape[1] - 1
    shown: list[tuple[Array, int]] = []  # arrays that mark what is not learned, and their mark
    batch["labels"] = tokens[:, 1:]
    if params.ignore_labels:
        batch["labels"] = np.empty((rows, length), np.int64)
        batch["labels"][:] = tokens[:, 1:]
        shown.append((batch["labels"], IGNORE))
    if params.loss_mask:
        batch["loss_mask"] = np.empty((rows, length), np.bool_)
        batch["loss_mask"].fill(True)
        shown.append((batch["loss_mask"], False))
    if not shown:
        return
    ignored = []
    if params.ignore_cross_document:
        ignored.append(flat[starts > 0] - 1)  # a start at S is the label of its row's last input
    if params.ignore_eos:
        ignored += _eos_labels(tokens, starts, flat, counts, valid, short, params.eos_id)
    for array, mark in shown:
        for where in ignored:
            array.reshape(-1)[where] = mark
        for row in short.tolist():
            array[row, max(int(valid[row]) - 1, 0) :] = mark


def _eos_labels(
    tokens: Array, starts: Array, flat: Array, counts: Array, valid: Array, short: Array, eos_id: int | None
) -> list[Array]:
    """Flat positions whose label is EOS. Only the last tokens of documents are looked at: nothing else holds one."""
    rows, length = tokens.shape[0], tokens.shape[1] - 1
    base, _ = _frame(rows, length)
    before = starts > 1
    labels = flat[before] - 2
    ids = tokens.reshape(-1)[labels + labels // length + 1]  # a row of tokens is one longer than a row of labels
    found = [labels[ids == eos_id]]
    last = np.flatnonzero(tokens[:, -1] == eos_id)
    if len(last):
        found.append(base[last] + (length - 1))
    if len(short):
        ended = short[valid[short] > 1]  # the domain's last token
        found.append((base + valid - 2)[ended][tokens[ended, valid[ended] - 1] == eos_id])
    return found


@lru_cache(maxsize=4)
def _frame(rows: int, length: int) -> tuple[Array, Array]:
    """Flat position of each row's start, int64 [B], and of every token, int32 [B * S]."""
    if rows * length >= 2**31:
        raise ValueError(f"tokens: {rows} rows of {length} given, up to {2**31 - 1} tokens are allowed")
    return np.arange(rows, dtype=np.int64) * length, np.arange(rows * length, dtype=np.int32)
