"""Lines that too many documents share: counted by hash, reported by position. Texts are not read.

The same for other units of text (sentences, paragraphs) whose hashes phase 1 has in a column: `count_lines`.

    part -> its distinct lines, each with the number of documents that have it -> sums by hash -> lines above the limit,
    back to every part that has them -> their positions in the documents

A part sends a line once, however many of its documents have it, so a ubiquitous line costs one row per part.

No `from __future__ import annotations` here: Beam reads these hints.
"""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import apache_beam as beam
import numpy as np
from numpy.typing import NDArray

from refinery.transforms.core.exchange.exchange import Exchange
from refinery.transforms.dedup.cut_lines import LINES as CUT_PASS
from refinery.transforms.dedup.cut_lines import LineParams, list_values, word_counts
from refinery.transforms.dedup.cutting_pass import Compared, CuttingPass
from refinery.transforms.dedup.records.lots import merge_in_lots
from refinery.transforms.dedup.records.map_record_batches import MapRecordBatches
from refinery.transforms.dedup.records.record_batch import (
    CUT,
    CUTS,
    LINES,
    REMOVAL,
    REMOVALS,
    KeyedBatch,
    cut,
    gather,
    ranges,
    read_header,
    row_of,
    scatter,
    starts_of,
)
from refinery.transforms.dedup.reference_corpora import Parts
from refinery.transforms.dedup.signatures import Key, name_codes, no_key, read_signature_part

STAGE = CUT_PASS.name
COLUMN = CUT_PASS.hashed.columns[0].name
# A distinct line of a part, and how many of the part's documents have it.
LINE = np.dtype([("hash", "<u8"), ("part", "<u4"), ("documents", "<u4")])
HELD_LINES = 4 << 20  # distinct lines that a part buffers before it sends them: 250 MB with sorting
SPREAD = 16  # shuffle keys per partition: a document has more lines than other steps have rows


@dataclass(frozen=True)
class Places:
    """Lines of kept documents: hash (with the source mixed in where sources are counted separately), row of the part,
    number in the document.
    """

    hashes: NDArray[np.uint64]
    rows: NDArray[np.int64]
    numbers: NDArray[np.int64]


def mix_sources(hashes: NDArray[np.uint64], codes: NDArray[np.uint32], sources: int, key: bytes) -> NDArray[np.uint64]:
    """Hashes of lines with the sources mixed in: of each source by a function of its own, drawn from the key (h * odd +
    any, modulo 2^64), so nobody without the key can write a line for one source that counts in another one."""
    drawn = b"".join(hashlib.blake2b(b"%d" % code, key=key, digest_size=16).digest() for code in range(sources))
    factors, steps = np.frombuffer(drawn, "<u8").reshape(-1, 2).T
    mixed: NDArray[np.uint64] = hashes * (factors | np.uint64(1))[codes] + steps[codes]
    return mixed


def read_places(
    url: str,
    rows: int,
    alive: NDArray[np.bool_],
    params: LineParams,
    sources: tuple[str, ...],
    key: Key = no_key,
    column: str = COLUMN,
) -> Iterator[Places]:
    """The lines of a part's kept documents that are counted, a row group at a time, in order of rows and lines.

    Lines without a word, or with fewer than `min_line_words`, are left out. Memory: one row group.
    """
    by_source = params.scope == "source"
    for first, table in read_signature_part(url, rows, (column, "source") if by_source else (column,)):
        offsets, hashes = list_values(table[column])
        owners = np.repeat(np.arange(table.num_rows), np.diff(offsets))
        chosen = np.flatnonzero((word_counts(hashes) >= params.min_line_words) & alive[first + owners])
        owners, hashes = owners[chosen], hashes[chosen]
        if by_source:
            hashes = mix_sources(hashes, name_codes(table["source"], sources)[owners], len(sources), key())
        yield Places(hashes, first + owners, chosen - offsets[owners])


def sum_by_hash(
    hashes: NDArray[np.uint64], documents: NDArray[np.int64]
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Distinct hashes, ascending, and the sum of `documents` of each."""
    if not len(hashes):
        return hashes, documents
    order = np.argsort(hashes)
    ordered = hashes[order]
    first = np.flatnonzero(starts_of(ordered))
    return ordered[first], np.add.reduceat(documents[order], first)


def documents_per_line(places: Places) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Distinct hashes, ascending, and how many rows have each; a row that repeats a line counts once."""
    order = np.argsort(places.hashes, kind="stable")  # stable: rows stay ascending inside a hash
    hashes, rows = places.hashes[order], places.rows[order]
    hashes = hashes[starts_of(hashes, rows)]
    first = np.flatnonzero(starts_of(hashes))
    return hashes[first], np.diff(np.append(first, len(hashes)))


def line_batches(
    part: int,
    batches: list[bytes],
    params: LineParams,
    sources: tuple[str, ...],
    parts: Parts,
    partitions: int,
    key: Key = no_key,
    column: str = COLUMN,
) -> Iterator[KeyedBatch]:
    """A part's header and REMOVAL rows -> its LINE rows by range of hash: the lines that its kept documents have.

    16 bytes per distinct line of the part cross the shuffle. Memory: one row group and HELD_LINES distinct lines; a
    part with more sends them in several lots. Reference corpora send nothing: their lines are not counted.
    """
    if parts.is_reference(part):
        return
    url, rows = read_header(batches)
    places = read_places(url, rows, kept_rows(rows, batches), params, sources, key, column)
    yield from sum_in_lots(part, map(documents_per_line, places), partitions)


def sum_in_lots(
    part: int, counts: Iterable[tuple[NDArray[np.uint64], NDArray[np.int64]]], partitions: int
) -> Iterator[KeyedBatch]:
    """Distinct hashes of a part and how often each occurs, a row group at a time -> its LINE rows by range of hash.

    Memory: HELD_LINES distinct hashes; a part with more sends them in several lots.
    """
    for lot in merge_in_lots(counts, _merge, HELD_LINES):
        yield from _send(part, *lot, partitions)


def _merge(lots: list[tuple[NDArray[np.uint64], NDArray[np.int64]]]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    hashes, documents = zip(*lots, strict=True)
    return sum_by_hash(np.concatenate(hashes), np.concatenate(documents))


def _send(part: int, hashes: NDArray[np.uint64], documents: NDArray[np.int64], partitions: int) -> Iterator[KeyedBatch]:
    out = np.empty(len(hashes), LINE)
    out["hash"], out["part"], out["documents"] = hashes, part, documents
    yield from scatter(ranges(hashes, partitions), LINES, out)


def kept_rows(rows: int, batches: list[bytes]) -> NDArray[np.bool_]:
    """Which rows of a part are kept: True for each that no REMOVAL row names."""
    alive = np.ones(rows, np.bool_)
    alive[row_of(gather(batches, REMOVALS, REMOVAL)["locator"])] = False
    return alive


def hot_batches(key: int, batches: list[bytes], max_documents: int) -> Iterator[KeyedBatch]:
    """LINE rows of a range of hashes -> the hashes of more than `max_documents` documents, to each part that has them.

    Memory: about four times the rows of the key.
    """
    rows = gather(batches, LINES, LINE)
    rows = rows[np.argsort(rows["hash"])]
    if not len(rows):
        return
    starts = starts_of(rows["hash"])
    documents = np.add.reduceat(rows["documents"].astype(np.int64), np.flatnonzero(starts))
    hot = rows[(documents > max_documents)[np.cumsum(starts) - 1]]
    yield from scatter(hot["part"].astype(np.int64), LINES, np.ascontiguousarray(hot["hash"]))


def cut_batches(
    part: int,
    batches: list[bytes],
    params: LineParams,
    sources: tuple[str, ...],
    key: Key = no_key,
    column: str = COLUMN,
    tag: int = CUTS,
) -> Iterator[KeyedBatch]:
    """A part's header, REMOVAL rows and hot hashes -> CUT rows of its kept documents, in order of rows and lines.

    Parts without a hot line are not read. Memory: one row group and the part's hot hashes.
    """
    hot = np.unique(gather(batches, LINES, "<u8"))
    if not len(hot):
        return
    url, rows = read_header(batches)
    for places in read_places(url, rows, kept_rows(rows, batches), params, sources, key, column):
        index = np.minimum(np.searchsorted(hot, places.hashes), len(hot) - 1)
        found = np.flatnonzero(hot[index] == places.hashes)
        out = np.empty(len(found), CUT)
        out["locator"] = np.uint64(part << 32) | places.rows[found].astype(np.uint64)
        out["line"] = places.numbers[found]
        yield from cut(part, tag, out)


@dataclass
class CountLines(beam.PTransform):
    """(headers of parts, removals and copies by part, ...) -> by part, the CUT rows of lines in too many kept
    documents.

    sources: names of all sources, sorted. parts: numbering of the parts; the run's own need `column`, a hash of every
    line. partitions: as in `Deduplicate`; about 500,000 lines a shuffle key where a document has 30. key: of
    `mix_sources`. tag: kind of the rows that say what is cut. stage: whose time it is.
    """

    params: LineParams
    sources: tuple[str, ...]
    parts: Parts
    partitions: int
    key: Key = no_key
    column: str = COLUMN
    tag: int = CUTS
    stage: str = STAGE

    def __post_init__(self) -> None:
        super().__init__(self.stage)

    def expand(self, decided: Any) -> beam.PCollection:
        partitions = SPREAD * self.partitions
        common: dict[str, Any] = {"params": self.params, "sources": self.sources, "key": self.key}
        common["column"] = self.column
        read = partial(line_batches, parts=self.parts, partitions=partitions, **common)
        judge = partial(hot_batches, max_documents=self.params.max_documents)
        find = partial(cut_batches, tag=self.tag, **common)

        placed = decided | Exchange("kept")  # (part, header, removals)
        counted = placed | MapRecordBatches(
            self.stage, "lines", read, by_part=True
        )  # (range of hashes, distinct lines)
        hot = counted | Exchange("by hash") | MapRecordBatches(self.stage, "count", judge)  # (part, hot hashes)
        wanted = (*decided, hot) | Exchange("by part")
        return wanted | MapRecordBatches(self.stage, "cuts", find, by_part=True)  # (part, cuts)


def count_lines(stage: CuttingPass[Any], params: LineParams, compared: Compared) -> CountLines:
    """What finds the units of a text that too many documents share, for a pass that says which unit: its only column
    has the hash of each unit (`hash_lines`), and its cuts have the dtype CUT, the number of each unit from 0."""
    columns = stage.hashed.columns
    if len(columns) != 1 or stage.cuts.dtype != CUT or not isinstance(params, LineParams):
        raise ValueError(
            f"{len(columns)} columns, cuts of {stage.cuts.dtype} and {type(params).__name__} given, "
            f"one column, cuts of {CUT} and a class derived from LineParams are needed to count lines"
        )
    return CountLines(
        params,
        compared.sources,
        compared.parts,
        compared.partitions,
        compared.key,
        columns[0].name,
        stage.cuts.tag,
        stage.name,
    )
