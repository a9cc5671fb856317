"""Texts that kept documents have word for word, found without any machine holding the corpus or an index of it.

    part -> its anchors (substring_hashes.py), each with the number of its places -> sums by anchor -> anchors of two
    places or more, back to every part that has them
    -> windows that begin with such an anchor, each with the best document of the part that has it -> by window the best
    document of all, back to every part that has the window
    -> runs of words to cut, as spans of characters

A window is a run of `min_words` words. Equal windows begin with equal anchors, so every window that occurs twice, in
two kept documents or in one, is found; what is shorter is not looked for. The first document in rank keeps it, at its
first place there; every other place is cut. A word that is cut therefore also occurs in a place of better rank, or
earlier in the same document, and the best of these places is not cut: all words of a repeat remain once, though not
always in one piece.

A part sends a window once, however many of its documents have it: a licence in every document costs one row a part.
Windows travel by the range of their anchor, so those of one document and anchor share one row of facts; anchors of
more than HOT_PLACES places (a notice that differs in what follows) send theirs by the windows' own hashes instead.

Two windows are taken for one when anchor and hash agree: 63 and 61 bits. A part recognises its own windows by hash
among those with a repeated anchor: 40 million of them in a part (256 MB of text) that are all repeats have one pair of
equal hashes in about 2,900 such parts.

No `from __future__ import annotations` here: Beam reads these hints.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import apache_beam as beam
import numpy as np
from numpy.typing import NDArray

from refinery.transforms.core.document import ID_BYTES
from refinery.transforms.core.exchange.exchange import Exchange
from refinery.transforms.dedup.cut_lines import list_values
from refinery.transforms.dedup.cut_substrings import SUBSTRINGS, SubstringParams
from refinery.transforms.dedup.cutting_pass import Compared, CuttingPass
from refinery.transforms.dedup.exact_jaccard import check_ids, documents_url
from refinery.transforms.dedup.line_duplicates import LINE, kept_rows, sum_by_hash, sum_in_lots
from refinery.transforms.dedup.records.lots import merge_in_lots
from refinery.transforms.dedup.records.map_record_batches import MapRecordBatches
from refinery.transforms.dedup.records.rank import RANK_BYTES
from refinery.transforms.dedup.records.record_batch import (
    ANCHORS,
    BATCH_BYTES,
    ID,
    LINES,
    RANK,
    REPEATS,
    SPAN,
    SPANS,
    WINDOWS,
    KeyedBatch,
    Rows,
    cut,
    gather,
    part_of,
    ranges,
    read_header,
    scatter,
    set_id,
    set_rank,
    sort_by,
    split_repeated,
    starts_of,
)
from refinery.transforms.dedup.reference_corpora import Parts
from refinery.transforms.dedup.signatures import Key, fixed_width, no_key, read_signature_part
from refinery.transforms.dedup.substring_hashes import Windows, hash_windows, window_key

STAGE = SUBSTRINGS.name
SPREAD = 64  # shuffle keys per partition: a document has thousands of windows
HELD_WINDOWS = 4 << 20  # windows that a part buffers before it sends them: 300 MB with sorting
HOT_PLACES = 4096  # an anchor of more places deals its windows out: others bring a key at most 26 times as many
RUN_WINDOWS = 1024  # of a row of facts, at most
FLAG = np.uint64(1)  # lowest bit: of an anchor sent back, that it is hot; of a window, that its part has it twice

# A kept document of a part that has repeated anchors, in the order of rank.
CANDIDATE = np.dtype([*RANK, *ID, ("locator", "<u8")])
RANK_ORDER = ("priority", "preference", "tie", "id_high", "id_low", "locator")
# `count` windows of the document at `locator` that begin with the anchor; their hashes follow.
RUN = np.dtype([("anchor", "<u8"), *CANDIDATE.descr, ("count", "<u4")])
# The window with this hash stays in the document at `locator` alone.
REPEAT = np.dtype([("hash", "<u8"), ("locator", "<u8")])
HEAD_BYTES = 5  # of a batch of windows: its tag and the number of runs

Held = tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint32]]  # anchors, hashes with FLAG, place in rank


def anchor_batches(part: int, batches: list[bytes], parts: Parts, partitions: int) -> Iterator[KeyedBatch]:
    """A part's header and REMOVAL rows -> LINE rows of its kept documents' anchors, by range of anchor.

    16 bytes per distinct anchor of the part cross the shuffle. Memory: as `line_batches`. Reference corpora send
    nothing: what repeats their text is not looked for.
    """
    if parts.is_reference(part):
        return
    url, rows = read_header(batches)
    yield from sum_in_lots(part, _counts(url, rows, kept_rows(rows, batches)), partitions)


def _counts(url: str, rows: int, alive: NDArray[np.bool_]) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.int64]]]:
    for first, table in read_signature_part(url, rows, ("anchors",)):
        offsets, anchors = list_values(table["anchors"])
        kept = anchors[np.repeat(alive[first : first + table.num_rows], np.diff(offsets))]
        yield sum_by_hash(kept, np.ones(len(kept), np.int64))


def repeated_batches(key: int, batches: list[bytes]) -> Iterator[KeyedBatch]:
    """LINE rows of a range of anchors -> those of two places or more, to each part that has them; FLAG where hot.

    Memory: about four times the rows of the key.
    """
    rows = gather(batches, LINES, LINE)
    rows = rows[np.argsort(rows["hash"])]
    if not len(rows):
        return
    starts = starts_of(rows["hash"])
    places = np.add.reduceat(rows["documents"].astype(np.int64), np.flatnonzero(starts))[np.cumsum(starts) - 1]
    rows, places = rows[places > 1], places[places > 1]
    yield from scatter(rows["part"].astype(np.int64), ANCHORS, rows["hash"] | (places > HOT_PLACES).astype(np.uint64))


@dataclass(frozen=True)
class Candidate:
    """A document: the number of its CANDIDATE row, its windows, which of them begin with repeated anchors, and these
    anchors, with FLAG.
    """

    number: int
    windows: Windows
    chosen: NDArray[np.int64]
    anchors: NDArray[np.uint64]


def read_candidates(part: int, batches: list[bytes], size: int, key: Key) -> Iterator[tuple[Rows, Iterator[Candidate]]]:
    """Of a part's header, REMOVAL rows and repeated anchors: nothing without any of these, else once CANDIDATE rows of
    the kept documents that have some, by row, and these documents.

    Reads the texts of these documents from documents/. Memory: one row group, 48 bytes per candidate, the windows of
    one document. Raises ValueError when documents/ and signatures/ are not aligned.
    """
    repeated = np.unique(gather(batches, ANCHORS, "<u8"))
    if not len(repeated):
        return
    url, rows = read_header(batches)
    alive = kept_rows(rows, batches)
    found = [np.empty(0, CANDIDATE)]
    for first, table in read_signature_part(url, rows, ("id", "rank", "anchors")):
        offsets, anchors = list_values(table["anchors"])
        hits = np.append(0, np.cumsum(is_among(anchors, repeated)))
        wanted = np.flatnonzero((np.diff(hits[offsets]) > 0) & alive[first : first + table.num_rows])
        candidates = np.empty(len(wanted), CANDIDATE)
        set_id(candidates, fixed_width(table["id"], ID_BYTES)[wanted])
        set_rank(candidates, fixed_width(table["rank"], RANK_BYTES)[wanted])
        candidates["locator"] = np.uint64(part << 32) | (first + wanted).astype(np.uint64)
        found.append(candidates)
    candidates = np.concatenate(found)
    hash_text = partial(hash_windows, size=size, key=window_key(key()))
    yield candidates, _read_texts(documents_url(url), rows, candidates, repeated, hash_text)


def _read_texts(
    url: str, rows: int, candidates: Rows, repeated: NDArray[np.uint64], hash_text: Callable[[str], Windows]
) -> Iterator[Candidate]:
    wanted = (candidates["locator"] & np.uint64(0xFFFFFFFF)).astype(np.int64)
    for first, table in read_signature_part(url, rows, ("id", "text"), wanted):
        begin, end = np.searchsorted(wanted, [first, first + table.num_rows]).tolist()
        check_ids(url, table, wanted[begin:end] - first, candidates[begin:end])
        for number in range(begin, end):
            windows = hash_text(table["text"][int(wanted[number]) - first].as_py())
            yield Candidate(number, windows, *choose_windows(windows.anchors, repeated))


def choose_windows(
    anchors: NDArray[np.uint64], repeated: NDArray[np.uint64]
) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Which windows with these anchors begin with a repeated one, and the latter, with FLAG. Windows in a row mostly
    have the same anchor, which is looked up once.
    """
    begins = np.flatnonzero(starts_of(anchors))
    sizes = np.diff(np.append(begins, len(anchors)))
    found = is_among(anchors[begins], repeated)
    flagged = repeated[np.searchsorted(repeated, anchors[begins[found]])]
    return np.flatnonzero(np.repeat(found, sizes)), np.repeat(flagged, sizes[found])


def is_among(anchors: NDArray[np.uint64], repeated: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which anchors are among the repeated ones, FLAG aside."""
    index = np.minimum(np.searchsorted(repeated, anchors), len(repeated) - 1)
    # a flagged anchor stands right behind the place of the plain one
    found: NDArray[np.bool_] = (repeated[index] & ~FLAG) == anchors
    return found


def window_batches(
    part: int, batches: list[bytes], params: SubstringParams, partitions: int, key: Key = no_key
) -> Iterator[KeyedBatch]:
    """A part's header, REMOVAL rows and repeated anchors -> its windows that begin with one, with the best of its
    documents that has each, by range of anchor.

    8 bytes per window and 68 per document and anchor cross the shuffle. Memory: as `read_candidates`,
    HELD_WINDOWS windows.
    """
    for candidates, documents in read_candidates(part, batches, params.min_words, key):
        order = np.lexsort([candidates[name] for name in reversed(RANK_ORDER)])
        place = np.empty(len(order), np.uint32)
        place[order] = np.arange(len(order), dtype=np.uint32)
        ranked = candidates[order]
        pieces = (
            (doc.anchors, doc.windows.hashes[doc.chosen], np.full(len(doc.chosen), place[doc.number]))
            for doc in documents
        )
        for lot in merge_in_lots(pieces, merge_windows, HELD_WINDOWS):
            yield from _send(ranked, *lot, partitions)


def merge_windows(held: list[Held]) -> Held:
    """Each distinct (anchor, hash) once, with the best place in rank, and FLAG in its hash if it was there twice.

    Time: one sort of 64-bit numbers; the full order only among windows whose hash some other has, too.
    """
    anchors, hashes, places = (np.concatenate(column) for column in zip(*held, strict=True))
    bare = hashes & ~FLAG
    single, several = split_repeated(bare)
    several = several[np.lexsort((places[several], anchors[several], bare[several]))]
    first = np.flatnonzero(starts_of(bare[several], anchors[several]))
    flags = np.bitwise_or.reduceat(hashes[several], first) & FLAG
    flags |= (np.diff(np.append(first, len(several))) > 1).astype(np.uint64)
    best = several[first]
    chosen = np.concatenate([single, best])
    return anchors[chosen], np.concatenate([hashes[single], bare[best] | flags]), places[chosen]


def _send(
    ranked: Rows, anchors: NDArray[np.uint64], hashes: NDArray[np.uint64], places: NDArray[np.uint32], partitions: int
) -> Iterator[KeyedBatch]:
    keys = ranges(np.where(anchors & FLAG, hashes, anchors), partitions)
    order = np.lexsort((places, anchors, keys))
    keys, anchors, hashes, places = keys[order], anchors[order], hashes[order], places[order]
    starts = starts_of(keys, anchors, places)
    starts[::RUN_WINDOWS] = True
    begins = np.flatnonzero(starts)
    runs = np.empty(len(begins), RUN)
    runs["anchor"] = anchors[begins]
    for name in RANK_ORDER:
        runs[name] = ranked[name][places[begins]]
    runs["count"] = np.diff(np.append(begins, len(anchors)))
    yield from pack_runs(keys[begins], runs, hashes)


def pack_runs(keys: NDArray[np.int64], runs: Rows, hashes: NDArray[np.uint64]) -> Iterator[KeyedBatch]:
    """RUN rows of ascending keys, and their hashes one after the other, as batches: tag, number of runs (uint32), runs,
    hashes.
    """
    if not len(runs):
        return
    room = BATCH_BYTES - HEAD_BYTES - RUN.itemsize - 8 * RUN_WINDOWS  # a batch may go over by less than one run
    counts = runs["count"].astype(np.int64)
    sizes = RUN.itemsize + 8 * counts
    batch = (np.cumsum(sizes) - sizes) // room
    begins = np.flatnonzero(starts_of(keys, batch))
    ends = np.cumsum(counts)
    for begin, end in zip(begins.tolist(), [*begins[1:].tolist(), len(runs)], strict=True):
        some = hashes[int(ends[begin] - counts[begin]) : int(ends[end - 1])]
        head = bytes([WINDOWS]) + (end - begin).to_bytes(4, "little")
        yield int(keys[begin]), b"".join([head, runs[begin:end].tobytes(), some.astype("<u8").tobytes()])


def unpack_runs(batches: list[bytes]) -> tuple[Rows, NDArray[np.uint64]]:
    """All RUN rows, and all their hashes in the same order."""
    found = [batch for batch in batches if batch[0] == WINDOWS]
    runs = [np.frombuffer(batch, RUN, int.from_bytes(batch[1:HEAD_BYTES], "little"), HEAD_BYTES) for batch in found]
    hashes = [np.frombuffer(b, "<u8", -1, HEAD_BYTES + rows.nbytes) for b, rows in zip(found, runs, strict=True)]
    return np.concatenate([np.empty(0, RUN), *runs]), np.concatenate([np.empty(0, "<u8"), *hashes])


def repeat_batches(key: int, batches: list[bytes]) -> Iterator[KeyedBatch]:
    """Windows of a range of anchors -> REPEAT rows of those in two places or more, to each part that has them.

    Memory: about 60 bytes per window of the key.
    """
    runs, hashes = unpack_runs(batches)
    if not len(runs):
        return
    order = np.lexsort([runs[name] for name in reversed(RANK_ORDER)])
    runs_in_order = np.empty(len(order), np.uint32)
    runs_in_order[order] = np.arange(len(order), dtype=np.uint32)
    owner = np.repeat(np.arange(len(runs)), runs["count"])
    bare, twice = hashes & ~FLAG, (hashes & FLAG).astype(np.bool_)
    single, several = split_repeated(bare)
    rows = np.concatenate([single[twice[single]], several])
    rows = rows[np.lexsort((runs_in_order[owner[rows]], runs["anchor"][owner[rows]], bare[rows]))]
    hashes, twice, locators = bare[rows], twice[rows], runs["locator"][owner[rows]]
    starts = starts_of(hashes, runs["anchor"][owner[rows]])
    first = np.flatnonzero(starts)
    repeated = (np.diff(np.append(first, len(rows))) > 1) | np.logical_or.reduceat(twice, first)
    group = np.cumsum(starts) - 1
    chosen = np.flatnonzero(repeated[group] & (twice | ~starts))  # nothing is cut where only the best place is
    out = np.empty(len(chosen), REPEAT)
    out["hash"], out["locator"] = hashes[chosen], locators[first][group[chosen]]
    to = part_of(locators[chosen])
    yield from scatter(to, REPEATS, out)


def span_batches(part: int, batches: list[bytes], params: SubstringParams, key: Key = no_key) -> Iterator[KeyedBatch]:
    """A part's header, REMOVAL rows, repeated anchors and REPEAT rows -> SPAN rows of its kept documents, in order.

    Parts without a REPEAT row are not read. Memory: as `read_candidates`, and 60 bytes per REPEAT row.
    """
    repeats = sort_by(gather(batches, REPEATS, REPEAT), "hash", "locator")
    if not len(repeats):
        return
    repeats = repeats[starts_of(repeats["hash"])]
    known, winners = np.ascontiguousarray(repeats["hash"]), np.ascontiguousarray(repeats["locator"])
    for candidates, documents in read_candidates(part, batches, params.min_words, key):
        for doc in documents:
            locator = candidates["locator"][doc.number]
            spans = repeated_spans(doc, known, winners, locator, params.min_words)
            out = np.empty(len(spans), SPAN)
            out["locator"], out["begin"], out["end"] = locator, spans[:, 0], spans[:, 1]
            yield from cut(part, SPANS, out)


def repeated_spans(
    doc: Candidate, known: NDArray[np.uint64], winners: NDArray[np.uint64], locator: np.uint64, size: int
) -> NDArray[np.uint32]:
    """(begin, end) in characters of the runs of words of a document that are covered by windows which stay elsewhere:
    in another document, or earlier in this one.

    known: hashes of repeated windows, ascending; winners: the locators of the documents where they stay.
    """
    places, hashes = doc.windows.places, doc.windows.hashes[doc.chosen]
    index = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
    found = known[index] == hashes
    hits = doc.chosen[found]
    own = winners[index[found]] == locator
    _, first = np.unique(hashes[found], return_index=True)
    stays = np.zeros(len(hits), np.bool_)
    stays[first] = True
    gone = hits[~(own & stays)]
    steps = np.zeros(len(places) + 1, np.int64)
    np.add.at(steps, gone, 1)
    np.add.at(steps, gone + size, -1)
    covered = np.concatenate([[False], np.cumsum(steps[:-1]) > 0, [False]])
    edges = np.flatnonzero(covered[1:] != covered[:-1])  # first word of a run, word behind it, ...
    return np.stack([places[edges[::2], 0], places[edges[1::2] - 1, 1]], axis=1)


@dataclass
class FindSubstrings(beam.PTransform):
    """(headers of parts, removals and copies by part, ...) -> by part, the SPAN rows of text that stays elsewhere.

    parts: numbering of the parts; the run's own need their column `anchors` and the documents/ beside them.
    partitions: as in `Deduplicate`. key: of the windows' hashes.
    """

    params: SubstringParams
    parts: Parts
    partitions: int
    key: Key = no_key

    def __post_init__(self) -> None:
        super().__init__(STAGE)

    def expand(self, decided: Any) -> beam.PCollection:
        partitions = SPREAD * self.partitions
        read = partial(anchor_batches, parts=self.parts, partitions=partitions)
        make_windows = partial(window_batches, params=self.params, partitions=partitions, key=self.key)
        find = partial(span_batches, params=self.params, key=self.key)

        placed = decided | Exchange("kept")  # (part, header, removals)
        counted = placed | MapRecordBatches(STAGE, "anchors", read, by_part=True)  # (range of anchors, anchors)
        grouped = counted | Exchange("by anchor")
        repeated = grouped | MapRecordBatches(STAGE, "repeated", repeated_batches)  # (part, repeated anchors)
        wanted = (*decided, repeated) | Exchange("by part")
        windows = wanted | MapRecordBatches(STAGE, "windows", make_windows, by_part=True)  # (range of anchors, windows)
        met = windows | Exchange("by window")
        repeats = met | MapRecordBatches(STAGE, "repeats", repeat_batches)  # (part, repeats)
        found = (*decided, repeated, repeats) | Exchange("of part")
        return found | MapRecordBatches(STAGE, "spans", find, by_part=True)  # (part, spans)


def find_substrings(stage: CuttingPass[Any], params: SubstringParams, compared: Compared) -> FindSubstrings:
    """What `SUBSTRINGS` declares to find them."""
    return FindSubstrings(params, compared.parts, compared.partitions, compared.key)
