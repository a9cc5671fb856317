"""`refinery.loader.stream.masks.fill` in plain numpy: whole arrays at once, without loops over rows or documents."""

from typing import Any

import numpy as np
import numpy.typing as npt

from refinery.loader.stream.masks import IGNORE, PADDING, MaskParams

Array = npt.NDArray[Any]
Batch = dict[str, Any]


def fill(tokens: Array, starts: Array, counts: Array, valid: Array, params: MaskParams) -> Batch:
    """As `refinery.loader.stream.masks.fill`; `starts` and `valid` are not checked."""
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
    """Put labels and loss_mask into `batch`. flat: `starts`, counted from the first row's first input. short: rows
    with padding or without a last label."""
    rows, length = tokens.shape[0], tokens.shape[1] - 1
    shown: list[tuple[Array, int]] = []  # arrays that mark ignored labels, and the mark
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
    """Flat positions whose label is EOS. Only the last tokens of documents can be EOS."""
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


def _frame(rows: int, length: int) -> tuple[Array, Array]:
    """Flat position of each row's start, int64 [B], and of every token, int32 [B * S]."""
    return np.arange(rows, dtype=np.int64) * length, np.arange(rows * length, dtype=np.int32)
