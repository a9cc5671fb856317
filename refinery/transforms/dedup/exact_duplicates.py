"""Deduplication by equal keys: captures of one address, then documents of one id; the first in rank is kept.

Only keys, ranks and locators are shuffled. For each address, a part sends only its best capture and receives the
best of all parts; for each id it sends the first document of each source and their number. So an address or a text
that ten million documents have costs a row for each part, and no step holds all its documents."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from refinery.transforms.core.address.normalise import ADDRESS_BYTES
from refinery.transforms.core.document import ID_BYTES
from refinery.transforms.dedup.records.rank import RANK_BYTES, WORST
from refinery.transforms.dedup.records.record_batch import (
    CAPTURE,
    CAPTURES,
    CHOICE,
    CHOSEN,
    COPIES,
    COPY,
    CORPUS,
    EXACT,
    IDENTITIES,
    IDENTITY,
    OF_FIRST_COPY,
    REFERENCE_IDS,
    REMOVAL,
    REMOVALS,
    URL_DUP,
    KeyedBatch,
    Rows,
    add_up,
    cut,
    gather,
    part_of,
    ranges,
    read_header,
    row_of,
    scatter,
    set_id,
    set_numbers,
    set_rank,
    sort_by,
    split_repeated,
    starts_of,
)
from refinery.transforms.dedup.reference_corpora import REFERENCE_ID, Parts
from refinery.transforms.dedup.signatures import fixed_width, name_codes, read_signature_part

IDENTITY_RANK = ("priority", "preference", "tie", "locator")
CAPTURE_ORDER = ("address_high", "address_low", "first", "second", "third", "id_high", "id_low", "tie", "locator")


def capture_batches(
    part: int, batches: list[bytes], prefer: str, parts: Parts, partitions: int
) -> Iterator[KeyedBatch]:
    """A part's header -> its best CAPTURE row of every address, by range of address.

    Reference corpora send nothing: only the run's own captures are compared. 76 bytes per distinct address cross the
    shuffle. Memory: the rows of the part.
    """
    if parts.is_reference(part):
        return
    url, rows = read_header(batches)
    captures = np.zeros(rows, CAPTURE)
    ranks = np.zeros(rows, IDENTITY)
    for first, table in read_signature_part(url, rows, ("id", "rank", "bytes", "address", "date")):
        window = captures[first : first + table.num_rows]
        set_id(window, fixed_width(table["id"], ID_BYTES))
        set_numbers(window, ("address_high", "address_low"), fixed_width(table["address"], ADDRESS_BYTES))
        set_rank(ranks[first : first + table.num_rows], fixed_width(table["rank"], RANK_BYTES))
        window["first"] = WORST - table["date"].to_numpy().astype(np.uint64)
        window["third"] = WORST - table["bytes"].to_numpy().astype(np.uint64)
    captures["second"], captures["tie"] = ranks["priority"], ranks["tie"]
    if prefer == "longest":
        columns = (captures[name].copy() for name in ("third", "first", "second"))
        captures["first"], captures["second"], captures["third"] = columns
    captures["locator"] = np.uint64(part << 32) | np.arange(rows, dtype=np.uint64)
    captures = captures[(captures["address_high"] | captures["address_low"]) != 0]  # others have no address
    captures = sort_by(captures, *CAPTURE_ORDER)
    best = np.flatnonzero(starts_of(captures["address_high"], captures["address_low"]))
    chosen = captures[best]
    chosen["documents"] = np.diff(np.append(best, len(captures)))
    yield from scatter(ranges(chosen["address_high"], partitions), CAPTURES, chosen)


def choose_captures(partition: int, batches: list[bytes]) -> Iterator[KeyedBatch]:
    """CAPTURE rows of a range of addresses -> by part, a CHOICE row of each address that several documents have.

    Cost: one sort. Memory: the rows, at most one for each address and part.
    """
    captures = sort_by(gather(batches, CAPTURES, CAPTURE), *CAPTURE_ORDER)
    if not len(captures):
        return
    first = starts_of(captures["address_high"], captures["address_low"])
    begin = np.flatnonzero(first)
    documents = np.add.reduceat(captures["documents"].astype(np.int64), begin)
    group = np.cumsum(first) - 1
    several = documents[group] > 1
    choices = np.empty(len(captures), CHOICE)
    for name in CHOICE.names or ():
        choices[name] = captures[name][begin[group]]
    yield from scatter(part_of(captures["locator"][several]), CHOSEN, choices[several])


def capture_removals(part: int, batches: list[bytes]) -> Iterator[KeyedBatch]:
    """A part's header and CHOICE rows -> REMOVAL rows of its other captures.

    Documents made of the record that is kept stay, all of them. Cost: the part's addresses are read again where one is
    shared. Memory: one row group.
    """
    choices = sort_by(gather(batches, CHOSEN, CHOICE), "address_high", "address_low")
    if not len(choices):
        return
    url, rows = read_header(batches)
    known = np.stack([choices["address_high"], choices["address_low"]], axis=1).astype(">u8").view("S16").reshape(-1)
    for first, table in read_signature_part(url, rows, ("address", "rank")):
        addresses = np.ascontiguousarray(fixed_width(table["address"], ADDRESS_BYTES)).view("S16").reshape(-1)
        place = np.minimum(np.searchsorted(known, addresses), len(known) - 1)
        ranks = np.zeros(table.num_rows, IDENTITY)
        set_rank(ranks, fixed_width(table["rank"], RANK_BYTES))
        gone = np.flatnonzero((known[place] == addresses) & (choices["tie"][place] != ranks["tie"]))
        removals = np.zeros(len(gone), REMOVAL)
        removals["locator"] = np.uint64(part << 32) | (first + gone).astype(np.uint64)
        for name in ("id_high", "id_low"):
            removals[name] = choices[name][place[gone]]
        removals["reason"], removals["scope"] = URL_DUP, CORPUS  # similarity 0: the texts are not compared
        yield from cut(part, REMOVALS, removals)


def identity_batches(
    part: int, batches: list[bytes], sources: tuple[str, ...], parts: Parts, partitions: int
) -> Iterator[KeyedBatch]:
    """A part's header and REMOVAL rows -> of its other documents the IDENTITY rows of the first of each id and source,
    by range of id, and by part the REMOVAL rows of those after them.

    56 bytes per id, source and part cross the shuffle. Memory: the rows of the part.
    """
    url, rows = read_header(batches)
    identities = np.zeros(rows, IDENTITY)
    for first, table in read_signature_part(url, rows, ("id", "rank", "source")):
        window = identities[first : first + table.num_rows]
        set_id(window, fixed_width(table["id"], ID_BYTES))
        parts.set_rank(part, window, fixed_width(table["rank"], RANK_BYTES))
        if not parts.is_reference(part):  # another corpus has sources of its own
            window["source"] = name_codes(table["source"], sources)
    identities["locator"] = np.uint64(part << 32) | np.arange(rows, dtype=np.uint64)
    identities = np.delete(identities, row_of(gather(batches, REMOVALS, REMOVAL)["locator"]))
    firsts, later = first_copies(identities)
    yield from scatter(ranges(firsts["id_high"], partitions), IDENTITIES, firsts)
    yield from exact_removals(later, OF_FIRST_COPY)


def first_copies(identities: Rows) -> tuple[Rows, Rows]:
    """(the first row of each id and source, with their number as its `documents`; all other rows).

    Time: one sort of 64-bit numbers; the full order only among rows that share their first 8 bytes.
    """
    single, several = split_repeated(identities["id_high"])
    ordered = sort_by(identities[several], "id_high", "id_low", "source", *IDENTITY_RANK)
    first = starts_of(ordered["id_high"], ordered["id_low"], ordered["source"])
    begins = np.flatnonzero(first)
    firsts = np.concatenate([identities[single], ordered[begins]])
    firsts["documents"] = np.concatenate([np.ones(len(single), np.int64), np.diff(np.append(begins, len(ordered)))])
    return firsts, ordered[~first]


def keep_first(partition: int, batches: list[bytes], parts: Parts) -> Iterator[KeyedBatch]:
    """IDENTITY rows of a range of ids -> by part, the REMOVAL rows of later copies and the COPY rows of kept documents.

    Rows of reference corpora whose ids are not among REFERENCE_IDS are removed first: their documents are not in that
    corpus. Time: one sort of 64-bit numbers; the full order only among rows that share their first 8 bytes. Memory:
    about four times the rows; of one id, 56 bytes for each part and source.
    """
    identities = gather(batches, IDENTITIES, IDENTITY)
    if parts.reference_parts:
        listed = gather(batches, REFERENCE_IDS, REFERENCE_ID)
        locators = identities["locator"]
        take_part = ~parts.in_reference(locators) | parts.in_withheld(locators)
        take_part |= is_in_shards(identities, listed, parts)
        unlisted = identities[~take_part]
        yield from exact_removals(unlisted, parts.scope_of(unlisted["locator"], CORPUS))
        identities = identities[take_part]
    single, several = split_repeated(identities["id_high"])
    with_copies = single[identities["documents"][single] > 1]
    rows = sort_by(identities[np.concatenate([with_copies, several])], "id_high", "id_low", *IDENTITY_RANK)
    first = starts_of(rows["id_high"], rows["id_low"])
    kept = np.flatnonzero(first)[np.cumsum(first) - 1] if len(rows) else np.empty(0, np.int64)
    scopes = parts.scope_of(rows["locator"][kept], CORPUS)
    yield from exact_removals(rows[~first], scopes[~first])

    copies = np.empty(len(rows), COPY)
    copies["locator"], copies["source"] = rows["locator"][kept], rows["source"]
    copies["documents"] = rows["documents"] - first  # the kept document is not a copy of itself
    copies = add_up(copies[~parts.in_reference(copies["locator"]) & (copies["documents"] > 0)])
    yield from scatter(part_of(copies["locator"]), COPIES, copies)


def exact_removals(removed: Rows, scope: NDArray[np.uint8] | int) -> Iterator[KeyedBatch]:
    """REMOVAL rows of exact copies, by part."""
    removals = np.empty(len(removed), REMOVAL)
    for name in ("locator", "id_high", "id_low"):
        removals[name] = removed[name]
    removals["similarity"] = 1.0
    removals["reason"] = EXACT
    removals["scope"] = scope
    yield from scatter(part_of(removals["locator"]), REMOVALS, removals)


def is_in_shards(identities: Rows, listed: Rows, parts: Parts) -> NDArray[np.bool_]:
    """True where a row of a reference corpus is in the shards of that corpus. Cost: a sort of both."""
    scope = np.concatenate([listed["scope"], parts.scope_of(identities["locator"], CORPUS)])
    high, low = (np.concatenate([listed[name], identities[name]]) for name in ("id_high", "id_low"))
    order = np.lexsort([scope, low, high])
    code = np.empty(len(order), np.int64)
    code[order] = np.cumsum(starts_of(high[order], low[order], scope[order]))
    known = np.zeros(len(order) + 1, np.bool_)
    known[code[: len(listed)]] = True
    return known[code[len(listed) :]]
