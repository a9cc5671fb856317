"""Memory of responses: used again when nobody refers to it, never before, and bounded."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from refinery.loader.storage.receive import Buffers


def test_memory_is_used_again_once_nobody_refers_to_it() -> None:
    buffers = Buffers(200)
    first = buffers.take(40)
    at = id(first.obj)
    first[:] = b"a" * 40
    views: list[memoryview | np.ndarray] = [first[3:5], np.frombuffer(first[8:16], np.int64)]
    del first
    assert id(buffers.take(40).obj) != at  # both views are alive
    views.pop()
    assert id(buffers.take(40).obj) != at
    assert bytes(views.pop()) == b"aa"
    assert id(buffers.take(33).obj) == at
    assert len(buffers.take(33)) == 33


@pytest.mark.parametrize("sizes", [[60, 60, 60], [10] * 30, [60, 30, 20, 50, 90], [200, 1, 0]])
def test_what_is_kept_is_bounded(sizes: list[int]) -> None:
    buffers = Buffers(100)
    held = [buffers.take(size) for size in sizes]
    assert [len(buffer) for buffer in held] == sizes
    assert len({id(buffer.obj) for buffer in held}) == len(held)
    assert sum(map(len, buffers._kept)) <= 100
    held = held[:1]
    again = [buffers.take(size) for size in reversed(sizes)]
    assert [len(buffer) for buffer in again] == sizes[::-1]
    assert id(held[0].obj) not in {id(buffer.obj) for buffer in again}
    assert sum(map(len, buffers._kept)) <= 100


def test_no_two_threads_have_the_same_memory() -> None:
    buffers = Buffers(64)

    def fill(value: int) -> bool:
        same = True
        for _ in range(50):
            mine = buffers.take(16)
            mine[:] = bytes([value]) * 16
            same &= set(mine) == {value}
        return same

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(fill, range(8)))
