"""Memory for responses that is used again: new memory costs the kernel about as much as receiving the bytes."""

import os
import sys
import threading

import numpy as np
import numpy.typing as npt

Memory = npt.NDArray[np.uint8]


class Buffers:
    """Buffers that nobody refers to any more, given out again. Safe to share between threads.

    most_bytes: kept at most, in use or not; what is asked for beyond that is new, and freed as any other object.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._kept: list[Memory] = []  # their sizes are powers of two, so that few kinds are needed
        self._begin()

    def _begin(self) -> None:
        self._process, self._lock = os.getpid(), threading.Lock()

    def take(self, size: int) -> memoryview:
        """`size` bytes of any content, the caller's for as long as anything refers to them.

        Cost: some microseconds; new memory if none of that size is free.
        """
        if self._process != os.getpid():  # a thread of the parent may have taken the lock
            self._begin()
        room = 1 << max(size - 1, 0).bit_length()
        with self._lock:
            free = [i for i in range(len(self._kept)) if sys.getrefcount(self._kept[i]) == _UNUSED]
            for i in free:
                if len(self._kept[i]) == room:
                    return self._kept[i].data[:size]
            buffer = np.empty(room, np.uint8)  # not a bytearray, which is filled with zeros first
            left = self._most - room - sum(map(len, self._kept))
            for i in reversed(free):  # those of other sizes make room
                if left >= 0 or room > self._most:
                    break
                left += len(self._kept.pop(i))
            if left >= 0:
                self._kept.append(buffer)
            return buffer.data[:size]


def _count_of_unused() -> int:
    """What sys.getrefcount says in `take` of an object that only the list refers to."""
    kept = [np.empty(0, np.uint8)]
    return sys.getrefcount(kept[0])


_UNUSED = _count_of_unused()
