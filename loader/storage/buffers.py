"""Memory for responses that is used again: new memory costs the kernel about as much as receiving the bytes."""

import sys
import threading


class Buffers:
    """Buffers that nobody refers to any more, given out again. Safe to share between threads.

    most_bytes: kept at most, in use or not; what is asked for beyond that is new, and freed as any other object.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._kept: list[bytearray] = []
        self._lock = threading.Lock()

    def take(self, size: int) -> bytearray:
        """`size` bytes of any content. They are the caller's for as long as it, or a view of them, refers to them.

        Cost: some microseconds; zeroing `size` bytes if none of that size is free.
        """
        with self._lock:
            free = [i for i in range(len(self._kept)) if sys.getrefcount(self._kept[i]) == _UNUSED]
            for i in free:
                if len(self._kept[i]) == size:
                    return self._kept[i]
            buffer = bytearray(size)
            room = self._most - size - sum(map(len, self._kept))
            for i in reversed(free):  # those of other sizes make room
                if room >= 0 or size > self._most:
                    break
                room += len(self._kept.pop(i))
            if room >= 0:
                self._kept.append(buffer)
            return buffer


def _count_of_unused() -> int:
    """What sys.getrefcount says in `take` of an object that only the list refers to."""
    kept = [bytearray()]
    return [sys.getrefcount(kept[i]) for i in range(len(kept))][0]


_UNUSED = _count_of_unused()
