"""Rows of documents packed by best fit in plain Python, for corpora of tests.loader.numbered."""

from collections.abc import Iterable, Iterator
from typing import Any

from tests.loader.numbered import Lengths

IGNORE, PADDING = -100, -1
Piece = tuple[int, int, bool]  # first token, tokens, whether its document goes on
Row = tuple[Piece, ...]
PADDING_PIECE = 0, 0, False
GOLDEN, NOISE, SPARE = 0x9E3779B97F4A7C15, 3 << 14, 300


def documents(lengths: Lengths, domains: Iterable[str]) -> Iterator[tuple[int, int, int]]:
    """(first token, first token counted in these domains alone, tokens) of each document that has any."""
    first = own = 0
    for domain, shards in lengths.items():
        for length in [length for shard in shards for length in shard]:
            if length and domain in domains:
                yield first, own, length
                own += length
            first += length


def expected_rows(
    lengths: Lengths, domains: Iterable[str], length: int, block: int, epoch: int | None = None, spare: int = SPARE
) -> list[Row]:
    """All rows of an epoch, sorted; their pieces by first token. Without an epoch those of best fit decreasing. spare:
    rows of a block for which it has one more, if it has more pieces than rows."""
    blocks: dict[int, list[tuple[int, Piece]]] = {}
    for first, own, size in documents(lengths, list(domains)):
        for start in range(0, size, length):
            piece = first + start, min(length, size - start), start + length < size
            blocks.setdefault(own // block, []).append((own + start, piece))
    return sorted(row for its in blocks.values() for row in rows_of_block(its, length, epoch, spare))


def rows_of_block(its: list[tuple[int, Piece]], length: int, epoch: int | None, spare: int) -> list[Row]:
    """its: pieces with the tokens of the domain that they begin with."""
    pieces = [piece for _, piece in its]
    best = pack(pieces, [size for _, size, _ in pieces], length)
    if epoch is None:
        return [tuple(sorted(row)) for row in best]
    wanted, rows = min(len(best) + len(best) // spare, len(pieces)), [[PADDING_PIECE]] * (len(pieces) + 1)
    key, noise, turn = hashed((epoch + 2) * GOLDEN) >> 1, NOISE, 0
    while len(rows) > wanted:
        turn += 1
        noise = 0 if turn > 4 else NOISE >> (turn - 1)
        salt = hashed(key + turn)
        chances = [hashed(token * GOLDEN + salt) % 2**16 for token, _ in its]
        keys = [piece[1] - (piece[1] * chance * noise >> 32) for piece, chance in zip(pieces, chances, strict=True)]
        rows = pack(pieces, keys, length)
    for piece in pieces:
        its_row = next(row for row in rows if piece in row)
        if len(rows) < wanted and its_row[0] != piece:
            its_row.remove(piece)
            rows.append([piece])
    return [tuple(sorted(row)) for row in rows]


def hashed(x: int) -> int:
    """SplitMix64's finalizer."""
    x %= 2**64
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ x >> 27) * 0x94D049BB133111EB % 2**64
    return x ^ x >> 31


def pack(pieces: list[Piece], keys: list[int], length: int) -> list[list[Piece]]:
    """Best fit, the piece of the greatest key first; a row's first piece is the one that opened it."""
    rows: list[list[Piece]] = []
    since: list[int] = []
    turns = sorted(range(len(pieces)), key=lambda i: (-keys[i], pieces[i][0]))
    for turn, piece in enumerate(pieces[i] for i in turns):
        room = [length - sum(size for _, size, _ in row) for row in rows]
        fits = [i for i in range(len(rows)) if room[i] >= piece[1]]
        i = min(fits, key=lambda i: (room[i], since[i])) if fits else len(rows)
        if not fits:
            rows.append([])
            since.append(0)
        rows[i].append(piece)
        since[i] = turn
    return rows


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
