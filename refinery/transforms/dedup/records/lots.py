"""Arrays that come piece by piece, merged into few lots of bounded size."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

Lot = TypeVar("Lot", bound=tuple[Any, ...])  # arrays of one length


def merge_in_lots(pieces: Iterable[Lot], merge: Callable[[list[Lot]], Lot], most: int) -> Iterator[Lot]:
    """The pieces in lots, each merged. merge: several as one, which may be shorter than all together.

    A lot that is still half of `most` rows or more when `most` were held is given away; a shorter one stays, and gets
    what comes next. Memory: `most` rows and a piece.
    """
    held: list[Lot] = []
    size = 0
    for piece in pieces:
        held.append(piece)
        size += len(piece[0])
        if size < most:
            continue
        held = [merge(held)]
        size = len(held[0][0])
        if size >= most // 2:
            yield held.pop()
            size = 0
    if held:
        yield merge(held)
