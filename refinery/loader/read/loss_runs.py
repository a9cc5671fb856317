"""Which tokens of a document are trained: a column of the provenance, as runs of tokens.

    "12-40 61-70": tokens 12 to 39 and 61 to 69 of the document are trained, counted with its BOS; all others are not.

A corpus has the column where its writer says so (refinery.loader.format.written.MASKED); others train every token.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from refinery.loader.errors import FormatError

I64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

COLUMN = "trained_tokens"


def write_runs(mask: Bools) -> str:
    """The column's value of a document. mask: of its tokens, [tokens].

    >>> write_runs(np.array([False, True, True, False, True]))
    '1-3 4-5'
    """
    steps = np.diff(mask.astype(np.int8), prepend=0, append=0)
    starts, ends = np.flatnonzero(steps == 1).tolist(), np.flatnonzero(steps == -1).tolist()
    return " ".join(f"{start}-{end}" for start, end in zip(starts, ends, strict=True))


def read_runs(values: Sequence[str], offsets: I64, what: str) -> tuple[I64, I64]:
    """(starts, ends) of all runs of a shard, int64 [runs] each, counted over its tokens. values: the column. offsets:
    the first token of each document, and the end, int64 [documents + 1].

    Raises FormatError for runs that do not ascend inside their document. Cost: some 60 ns a run.
    """
    counts = np.fromiter((value.count("-") for value in values), np.int64, len(values))
    try:
        flat = np.array(" ".join(values).replace("-", " ").split(), np.int64)
    except (ValueError, OverflowError):
        flat = np.full(1, -1, np.int64)
    if len(flat) != 2 * int(counts.sum()) or len(values) + 1 != len(offsets):
        raise FormatError(f"{what}: {COLUMN}: START-END, with one space between, expected")
    document = np.repeat(np.arange(len(values)), counts)
    first = np.append(True, document[1:] != document[:-1])[: len(document)]
    starts, ends = flat[::2], flat[1::2]
    before = np.where(first, -1, np.append(-1, ends[:-1])[: len(ends)])
    if (starts <= before).any() or (starts >= ends).any() or (ends > np.diff(offsets)[document]).any():
        raise FormatError(f"{what}: {COLUMN}: runs that ascend inside their documents expected")
    return starts + offsets[document], ends + offsets[document]


def mask_of(value: str, length: int, what: str) -> Bools:
    """The mask of one document of so many tokens, [tokens]. Raises FormatError."""
    starts, ends = read_runs([value], np.array([0, length], np.int64), what)
    steps = np.zeros(length + 1, np.int8)
    np.add.at(steps, starts, 1)
    np.add.at(steps, ends, -1)
    found: Bools = np.cumsum(steps[:-1]).astype(np.bool_)
    return found
