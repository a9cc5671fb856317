import numpy as np
from numpy.typing import NDArray

BLOCK_COLUMNS: int
ELEMENT_COLUMNS: int
GROUPS: int
PROBES: int  # slots in which a word of a lexicon may lie
LEAST_SLOTS: int  # of a lexicon
MOST_SLOTS: int
FEATURES: int  # of a block, before the values of its page

def utf8_length(data: bytes) -> int: ...
def parse(html: str | bytes, most: int) -> tuple[bytes, bytes, bytes, bytes, list[tuple[int, str]], int]: ...
def words(text: bytes, blocks: bytes) -> tuple[bytes, bytes]: ...
def say(text: bytes, blocks: bytes, lexicon: NDArray[np.int32]) -> bytes: ...
def features(
    blocks: bytes,
    groups: bytes,
    elements: bytes,
    said: bytes,
    values: NDArray[np.uint32],
    titles: NDArray[np.uint32],
    source: int,
) -> bytearray: ...
def score(
    blocks: bytes,
    groups: bytes,
    elements: bytes,
    said: bytes,
    values: NDArray[np.uint32],
    titles: NDArray[np.uint32],
    source: int,
    features: NDArray[np.uint16],
    edges: NDArray[np.uint32],
    leaves: NDArray[np.int32],
    depth: int,
    out: NDArray[np.int32],
) -> None: ...
