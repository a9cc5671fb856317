"""Where a source text may be cut that has no syntax tree: its lines, by the braces that are open before them."""

import numpy as np
import numpy.typing as npt

from refinery.transforms.code.languages import OTHER
from refinery.transforms.code.units import SOFT, Unit

MANY_LINES, BUCKET = 200_000, 32


def line_starts(data: bytes, begin: int, end: int) -> npt.NDArray[np.int64]:
    """Offsets of lines that begin inside (begin, end), ascending; of very many, one per BUCKET bytes."""
    found = np.flatnonzero(np.frombuffer(data, np.uint8)[begin : max(begin, end - 1)] == 0x0A) + (begin + 1)
    if len(found) > MANY_LINES:
        found = found[np.append(found[1:] // BUCKET != found[:-1] // BUCKET, True)]
    return found


def brace_units(data: bytes) -> list[Unit]:
    """Units of a file that does not parse: its lines. A cut costs the number of braces that are open before the line,
    and half a brace more where no blank line stands before it. Braces in strings and comments count, too. Linear.
    """
    array = np.frombuffer(data, np.uint8)
    starts = np.concatenate([np.zeros(1, np.int64), line_starts(data, 0, len(data))])
    braces = (array == 0x7B).astype(np.int64) - (array == 0x7D)
    opened = np.concatenate([np.zeros(1, np.int64), np.cumsum(braces)])
    depths = opened[starts]
    depths -= np.minimum(np.minimum.accumulate(depths), 0)  # a brace too many closes nothing
    units, after_blank = [], True
    for start, end, depth in zip(starts.tolist(), [*starts[1:].tolist(), len(data)], depths.tolist(), strict=True):
        line = data[start : min(end, start + 100)].strip()
        level = 2 * depth + (0 if after_blank else 1) + (SOFT if line[:1] in (b"{", b"}", b")") else 0)
        units.append(Unit(start, level, OTHER, depth, False))
        after_blank = not line
    return units
