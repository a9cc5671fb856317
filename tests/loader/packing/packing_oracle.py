"""Rows of documents packed by best fit in plain Python, for corpora of tests.loader.numbered."""

from collections.abc import Iterable, Iterator
from typing import Any

from tests.loader.numbered import Lengths

IGNORE, PADDING = -100, -1
Piece = tuple[int, int, bool]  # first token, tokens, whether its document goes on
Row = tuple[Piece, ...]


def documents(lengths: Lengths, domains: Iterable[str]) -> Iterator[tuple[int, int, int]]:
    """(first token, first token counted in these domains alone, tokens) of each document that has any."""
    first = own = 0
    for domain, shards in lengths.items():
        for length in [length for shard in shards for length in shard]:
            if length and domain in domains:
                yield first, own, length
                own += length
            first += length


def expected_rows(lengths: Lengths, domains: Iterable[str], length: int, block: int) -> list[Row]:
    """All rows, sorted; their pieces by first token."""
    blocks: dict[int, list[Piece]] = {}
    for first, own, size in documents(lengths, list(domains)):
        for start in range(0, size, length):
            piece = first + start, min(length, size - start), start + length < size
            blocks.setdefault(own // block, []).append(piece)
    return sorted(row for pieces in blocks.values() for row in pack(pieces, length))


def pack(pieces: list[Piece], length: int) -> list[Row]:
    rows: list[list[Piece]] = []
    since: list[int] = []
    for turn, piece in enumerate(sorted(pieces, key=lambda piece: (-piece[1], piece[0]))):
        room = [length - sum(size for _, size, _ in row) for row in rows]
        fits = [i for i in range(len(rows)) if room[i] >= piece[1]]
        i = min(fits, key=lambda i: (room[i], since[i])) if fits else len(rows)
        if not fits:
            rows.append([])
            since.append(0)
        rows[i].append(piece)
        since[i] = turn
    return [tuple(sorted(row)) for row in rows]


def delivered_rows(batch: dict[str, Any]) -> list[Row]:
    """The rows of a batch that are not empty; every array is checked against what it must be for these pieces."""
    found = []
    names = ("input_ids", "labels", "doc_ids", "position_ids", "loss_mask")
    for inputs, labels, ids, positions, mask in zip(*(batch[name].tolist() for name in names), strict=True):
        row: list[Piece] = []
        place = 0
        while place < len(ids) and ids[place] != PADDING:
            size = ids.count(len(row))
            first, last = inputs[place], place + size - 1
            assert inputs[place : last + 1] == list(range(first, first + size))
            assert positions[place : last + 1] == list(range(size))
            assert ids[place : last + 1] == [len(row)] * size
            assert labels[place:last] == inputs[place + 1 : last + 1]
            assert labels[last] in (IGNORE, first + size)
            row.append((first, size, labels[last] != IGNORE))
            place += size
        assert ids[place:] == [PADDING] * (len(ids) - place) and labels[place:] == [IGNORE] * (len(ids) - place)
        assert positions[place:] == list(range(len(ids) - place))
        assert mask == [label != IGNORE for label in labels]
        found += [tuple(row)] * bool(row)
    return found
