"""Memory that batches use again: never while an array of an earlier batch is left."""

import os
import threading
import weakref
from typing import Any

import numpy as np
import pytest

from benchmarks.loader_corpus import EOS, Corpus, make_corpus
from refinery.loader import TokenStream
from refinery.loader.format.manifest import IndexedReader
from refinery.loader.order.buffers import KEPT, LARGE, LEAST, Buffers, owns_memory
from refinery.loader.stream.masks import MaskParams
from tests.loader import masks_oracle

SHAPE = (4, LEAST)


def address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


@pytest.mark.parametrize("size", [LEAST, LARGE, LARGE + 12_345])
def test_memory_is_used_again_when_an_array_is_gone(size: int) -> None:
    buffers = Buffers()
    array = buffers.empty((size,), np.uint8)
    assert array.flags.c_contiguous and array.flags.writeable and array.shape == (size,) and owns_memory(array)
    first = address(array)
    other = buffers.empty((size,), np.uint8)
    assert not np.shares_memory(array, other)
    del array
    assert address(buffers.empty((size,), np.uint8)) == first


def test_types_of_one_size_share_what_is_free() -> None:
    buffers = Buffers()
    first = address(buffers.empty(SHAPE, np.int32))
    array = buffers.empty((2, *SHAPE), np.int16)
    assert address(array) == first and array.dtype == np.int16


@pytest.mark.parametrize(
    "keep",
    [
        lambda array: array[1:, 5:],
        lambda array: array.view(np.uint8).reshape(-1)[-1:],
        lambda array: memoryview(array),
        lambda array: array.T.astype(np.int64, copy=False),
        lambda array: np.asarray(array, copy=False),
        lambda array: np.from_dlpack(array),
    ],
)
def test_memory_is_not_used_again_while_anything_in_it_is_left(keep: Any) -> None:
    buffers = Buffers()
    array = buffers.empty(SHAPE, np.int64)
    array[:] = 7
    kept = keep(array)
    first = address(array)
    del array
    later = [buffers.empty(SHAPE, np.int64) for _ in range(2 * KEPT)]
    assert first not in map(address, later)
    for other in later:
        other[:] = 8
    assert set(np.asarray(kept).tobytes()) <= {0, 7}
    del kept
    assert address(buffers.empty(SHAPE, np.int64)) == first


def test_small_arrays_are_ordinary_ones() -> None:
    array = Buffers().empty((3, 5), np.int32)
    assert array.base is None and owns_memory(array)
    assert not owns_memory(array[1:])


def test_what_is_free_is_bounded_and_ends_with_its_owner() -> None:
    buffers = Buffers()
    several = [buffers.empty(SHAPE, np.uint8) for _ in range(3 * KEPT)]
    places = {address(array) for array in several}
    memories = [weakref.ref(array.base.base) for array in several]
    del several
    assert sum(found() is not None for found in memories) == KEPT
    again = [buffers.empty(SHAPE, np.uint8) for _ in range(KEPT)]
    assert {address(array) for array in again} <= places
    del buffers
    again[0][:] = 1
    del again
    assert all(found() is None for found in memories)


def test_threads_never_get_the_same_memory() -> None:
    buffers, wrong = Buffers(), []

    def work(number: int) -> None:
        for _ in range(300):
            array = buffers.empty((LEAST,), np.uint8)
            array[:] = number
            if not (array == number).all():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


ASKED = dict.fromkeys(
    ("loss_mask", "position_ids", "doc_ids", "cu_seqlens", "ignore_cross_document", "sample_ids"), True
)
LENGTH, ROWS = 5_000, 8  # labels of 320 kB


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return make_corpus(tmp_path_factory.mktemp("large"), 9 * LENGTH * ROWS + 1234)


@pytest.mark.parametrize(("prefetch", "packing"), [(0, None), (1, None), (1, "best_fit")])
def test_batches_that_are_kept_stay_what_they_are(corpus: Corpus, prefetch: int, packing: str | None) -> None:
    how: Any = {"epochs": 2, "prefetch": prefetch, "packing": packing, **ASKED}
    with (
        TokenStream(str(corpus.folder), LENGTH, ROWS, **how) as one,
        TokenStream(str(corpus.folder), LENGTH, ROWS, **how) as two,
    ):
        kept = list(one)
        for batch, other in zip(kept, two, strict=True):
            assert batch.keys() == other.keys()
            assert all(np.array_equal(batch[name], array) for name, array in other.items())
            assert not np.shares_memory(batch["input_ids"], batch["labels"])
            assert all(owns_memory(batch[name]) for name in ("labels", "loss_mask", "position_ids", "doc_ids"))


def test_large_batches_are_what_numpy_makes_of_the_files(corpus: Corpus) -> None:
    tokens = np.append(corpus.open(), np.zeros(LENGTH, np.int32))
    begins = np.cumsum([0, *IndexedReader(corpus.bin).index.lengths])[:-1]
    with TokenStream(str(corpus.folder), LENGTH, ROWS, epochs=1, **ASKED) as stream:
        for batch in stream:
            rows, starts, valid = [], [], []
            for sample in batch.pop("sample_ids").tolist():
                first = max(sample, 0) * LENGTH
                valid.append(min(corpus.tokens - first, LENGTH + 1) if sample >= 0 else 0)
                rows.append(tokens[first : first + LENGTH + 1] if sample >= 0 else np.zeros(LENGTH + 1, np.int32))
                rows[-1][valid[-1] :] = EOS  # what pads
                inside = begins[(begins >= first) & (begins < first + valid[-1])] - first
                starts.append(inside[inside <= LENGTH])
            counts = np.array([len(each) for each in starts])
            params = MaskParams(ignore_cross_document=True)
            want = masks_oracle.fill(np.stack(rows), np.concatenate(starts), counts, np.array(valid), params)
            assert batch.keys() == want.keys()
            assert all(np.array_equal(batch[name], array) for name, array in want.items())


@pytest.mark.parametrize("size", [LEAST, 2 * LARGE])
def test_a_fork_has_memory_of_its_own(size: int) -> None:
    """What a forked worker writes into a batch, or into memory that is free, its parent does not see."""
    buffers = Buffers()
    kept, free = buffers.empty((size,), np.uint8), buffers.empty((size,), np.uint8)
    kept[:], free[:] = 1, 2
    place = address(free)
    del free
    child = os.fork()
    if not child:
        kept[:] = 9
        buffers.empty((size,), np.uint8)[:] = 9
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert (kept == 1).all()
    again = buffers.empty((size,), np.uint8)
    assert address(again) == place and (again == 2).all()
