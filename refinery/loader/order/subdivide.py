"""Rows as several shorter rows each."""

import numpy as np

from refinery.loader.order.arrays import I64


def cut(tokens: I64, parts: int) -> I64:
    """Tokens [B, S + 1] as [B x parts, S / parts + 1], contiguous: every row has the token after it, as before."""
    rows, length = tokens.shape[0], (tokens.shape[1] - 1) // parts
    found = np.empty((rows, parts, length + 1), np.int64)
    found[:, :, :-1] = tokens[:, :-1].reshape(rows, parts, length)
    found[:, :, -1] = tokens[:, length::length]
    return found.reshape(rows * parts, length + 1)


def cut_documents(starts: I64, counts: I64, valid: I64, length: int, parts: int) -> tuple[I64, I64, I64]:
    """(starts, counts, valid), as masks.fill takes them, of the rows that `cut` makes. length: theirs.

    A document that starts at a row's border starts in both: there it is the label after the last input.
    """
    row = np.repeat(np.arange(len(counts)), counts)
    there = starts < valid[row]  # those behind the end have no tokens
    row, offset = row[there], starts[there]
    part, inside = offset // length, offset % length
    first, border = part < parts, (inside == 0) & (part > 0)
    rows = np.concatenate([(row * parts + part)[first], (row * parts + part - 1)[border]])
    offsets = np.concatenate([inside[first], np.full(int(border.sum()), length)])
    rest = np.clip(valid[:, None] - length * np.arange(parts), 0, length + 1).ravel()
    return offsets[np.lexsort((offsets, rows))], np.bincount(rows, minlength=len(counts) * parts), rest
