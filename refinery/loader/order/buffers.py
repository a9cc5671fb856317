"""Memory of batches that nobody uses any more, for the next batches.

The arrays of a batch are large enough for the C library to give their memory back to the kernel when they are dropped.
The next batch then waits for every page of it again, which takes longer than all arrays take to fill.
"""

import contextlib
import math
import mmap
from typing import Any

import numpy as np
import numpy.typing as npt

from refinery.loader.order.arrays import Array

LEAST = 1 << 17  # bytes: smaller arrays come from the C library, which keeps theirs
LARGE = 1 << 21  # bytes of a large page of memory, of which one entry of the processor's table has 512 small ones
KEPT = 4  # pieces of memory of one size that wait for a next use


class _Memory(np.ndarray[Any, Any]):
    """Bytes that arrays are made in. A class of its own, so that numpy keeps `_Lent` as the base of these arrays."""


class _Lent(np.ndarray[Any, Any]):
    """A view of a _Memory that returns it when the last array in it is dropped."""

    home: "list[_Memory] | None" = None

    def __del__(self) -> None:
        if self.home is not None and len(self.home) < KEPT:
            self.home.append(self.base)  # type: ignore[arg-type] # always the _Memory


def _allocate(size: int) -> _Memory:
    """New memory, in large pages where the system has them. A fork has its own: by default mmap would share it."""
    if size < LARGE or not hasattr(mmap, "MAP_PRIVATE"):
        return _Memory(size, np.uint8)
    mapped = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # a kernel without
            mapped.madvise(mmap.MADV_HUGEPAGE, 0, size // LARGE * LARGE)
    return np.frombuffer(mapped, np.uint8).view(_Memory)


class Buffers:
    """Makes arrays as np.empty does, in memory of earlier ones of its own where these are gone.

    An array may be kept as long as any other: its memory is used again only when no array, view or tensor in it is
    left. Any thread may make and drop arrays. Memory: for each size up to KEPT arrays that are not in use.
    """

    def __init__(self) -> None:
        self._homes: dict[Any, list[_Memory] | None] = {}  # of a shape and a type: what is free; None for small ones
        self._sizes: dict[int, list[_Memory]] = {}

    def empty(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        """An uninitialized, contiguous array. Cost: 1 us."""
        try:
            home = self._homes[shape, dtype]
        except KeyError:
            size = math.prod(shape) * np.dtype(dtype).itemsize
            home = None if size < LEAST else self._sizes.setdefault(size, [])
            self._homes[shape, dtype] = home
        if home is None:
            return np.empty(shape, dtype)
        try:
            memory = home.pop()
        except IndexError:
            memory = _allocate(math.prod(shape) * np.dtype(dtype).itemsize)
        lent = memory.view(_Lent)
        lent.home = home
        return np.ndarray(shape, dtype, lent)


def owns_memory(array: Array) -> bool:
    """Whether all of an array's memory is its own, so writing to it changes no other array."""
    return array.base is None or isinstance(array.base, _Lent)
