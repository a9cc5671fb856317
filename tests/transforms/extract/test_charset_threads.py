"""Workers of many engines are threads: what they share must not change what they find."""

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from refinery.transforms.extract.charsets import letters as module
from refinery.transforms.extract.charsets.letters import load

SIGNS = [chr(code) for code in (*range(0xE0, 0x180), *range(0x400, 0x460), *range(0x61, 0x7B))]


def texts() -> Iterator[list[tuple[str, str]]]:
    chosen = random.Random(1)
    for _ in range(400):
        yield [(chosen.choice(SIGNS), chosen.choice(SIGNS)) for _ in range(60)]


def test_threads_find_what_one_finds() -> None:
    """So few rows are held that threads take them from each other all the time."""
    shared = load()
    expected = [shared._log_pairs(pairs).astype(np.int32) for pairs in texts()]
    held, logarithms = shared._held, shared._logarithms
    before = module._HELD
    try:
        module._HELD = 256  # type: ignore[misc]  # a constant
        shared._held, shared._logarithms = {}, np.zeros((256, logarithms.shape[1]), np.int16)
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(shared.rows, texts()))
    finally:
        module._HELD = before  # type: ignore[misc]  # a constant
        shared._held, shared._logarithms = held, logarithms
        shared._of_bytes.clear()
    assert all(np.array_equal(ours, theirs) for ours, theirs in zip(found, expected, strict=True))
