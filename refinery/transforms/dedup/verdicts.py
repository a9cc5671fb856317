"""Verdicts: what deduplication decided about every document, row-aligned with the part that holds it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from refinery.loader.format.document_fields import VERDICTS, columns_of
from refinery.loader.format.removals import WITHHELD
from refinery.transforms.core.counters import Counters, count_metric
from refinery.transforms.core.document import ID_BYTES
from refinery.transforms.core.exchange.records import side_output_record
from refinery.transforms.core.live import LIVE
from refinery.transforms.dedup.cut_lines import LINE_CUTS
from refinery.transforms.dedup.cut_substrings import SPAN_CUTS
from refinery.transforms.dedup.cutting_pass import OWN_TAG, Cuts
from refinery.transforms.dedup.records.record_batch import (
    COPIES,
    COPY,
    COPY_OF_DENIED,
    CORPUS,
    EXACT,
    NEAR,
    NEAR_IN_SOURCE,
    OF_FIRST_COPY,
    REASONS,
    REFERENCE,
    REMOVAL,
    REMOVALS,
    URL_DUP,
    Rows,
    add_up,
    gather,
    read_header,
    row_of,
    sort_by,
)
from refinery.transforms.dedup.signatures import name_codes, read_signature_part
from refinery.transforms.dedup.stages import (
    COPIES_OF_DENIED,
    EXACT_DUPLICATES,
    NEAR_DUPLICATES,
    NEAR_DUPLICATES_IN_SOURCE,
    URL_DUPLICATES,
)

EVERY = (LINE_CUTS, SPAN_CUTS)  # of which verdicts have the columns, whatever is on; those of other passes follow
NAME = b"part"  # metadata key of serialized verdicts: the name of their part

STAGES = {
    COPY_OF_DENIED: COPIES_OF_DENIED.name,
    URL_DUP: URL_DUPLICATES.name,
    EXACT: EXACT_DUPLICATES.name,
    NEAR_IN_SOURCE: NEAR_DUPLICATES_IN_SOURCE.name,
    NEAR: NEAR_DUPLICATES.name,
}


def _facts(source: pa.DataType) -> list[pa.Field]:
    return [each.with_type(pa.list_(source)) if each.name == "sources" else each for each in columns_of(VERDICTS)]


def all_cuts(cuts: Sequence[Cuts]) -> tuple[Cuts, ...]:
    """The cuts that verdicts have columns for, where these are looked for. Raises ValueError where columns or kinds of
    record batches would not tell them from one another, or from what else verdicts are made of."""
    found = tuple(dict.fromkeys((*EVERY, *cuts)))
    columns = [*(field.name for field in _facts(CODE)), *(each.column for each in found)]
    tags = [each.tag for each in found]
    for each in found:
        if columns.count(each.column) > 1:
            raise ValueError(f"cuts {each.column}: another column of verdicts/ has that name")
        if tags.count(each.tag) > 1 or (each.tag < OWN_TAG and each not in EVERY):
            allowed = f"{OWN_TAG} to 255 is allowed"
            raise ValueError(f"cuts {each.column}: tag {each.tag} given, which other record batches have; {allowed}")
    return found


def verdicts_schema(source: pa.DataType, cuts: Sequence[Cuts] = ()) -> pa.Schema:
    """The columns of verdicts. cuts: that are looked for; what is to be cut out is empty for a removed document."""
    listed = (pa.field(each.column, pa.list_(pa.uint32()), nullable=False) for each in all_cuts(cuts))
    return pa.schema([*_facts(source), *listed])


CODE = pa.uint32()  # between the two transforms sources are positions in the list of sources
VERDICTS_SCHEMA = verdicts_schema(pa.string())


@dataclass(frozen=True)
class PartFacts:
    """Per row of a part: code of its source, code of its domain in `domains`, bytes of text, reason of its verdict."""

    sources: NDArray[np.uint32]
    domain: NDArray[np.uint32]
    domains: tuple[str, ...]
    sizes: NDArray[np.int64]
    reasons: NDArray[np.uint8]


def part_verdicts(
    batches: list[bytes], sources: Sequence[str], scopes: Sequence[str], cuts: Sequence[Cuts] = ()
) -> tuple[pa.RecordBatch, PartFacts]:
    """A part's header, REMOVAL and COPY rows and those of `cuts` -> verdicts of its rows, sources as CODE, and what
    counters need.

    Raises ValueError when a document is removed twice. Memory: about 100 bytes per row of the part.
    """
    url, rows = read_header(batches)
    read = [table for _, table in read_signature_part(url, rows, ("source", "domain", "bytes"))]
    source = np.concatenate([name_codes(table["source"], sources) for table in read] or [np.empty(0, np.uint32)])
    sizes = np.concatenate([table["bytes"].to_numpy() for table in read] or [np.empty(0, np.int64)])
    domains = tuple(sorted({name for table in read for name in pc.unique(table["domain"]).to_pylist()}))
    domain = np.concatenate([name_codes(table["domain"], domains) for table in read] or [np.empty(0, np.uint32)])

    removals = settle_scopes(gather(batches, REMOVALS, REMOVAL))
    if WITHHELD in scopes[REFERENCE : REFERENCE + 1]:
        removals = removals.copy()
        removals["reason"][removals["scope"] == REFERENCE] = COPY_OF_DENIED
    gone = row_of(removals["locator"])
    if len(np.unique(gone)) != len(gone):
        raise ValueError(f"{url}: a document is removed twice")
    reasons = np.zeros(rows, np.uint8)
    reasons[gone] = removals["reason"]
    representative = np.zeros((rows, 2), ">u8")
    representative[gone, 0], representative[gone, 1] = removals["id_high"], removals["id_low"]
    similarity = np.zeros(rows, np.float32)
    similarity[gone] = removals["similarity"]
    scope = np.zeros(rows, np.uint8)
    scope[gone] = removals["scope"]
    facts = PartFacts(source, domain, domains, sizes, reasons)
    removal_columns = [
        pa.array(reasons != 0),
        pa.array(REASONS).take(pa.array(reasons)),
        _ids(representative, reasons == 0),
        pa.array(similarity, mask=reasons == 0),
        pa.array(scopes, pa.string()).take(pa.array(scope)),
    ]
    copies = _copy_columns(facts, gather(batches, COPIES, COPY))
    columns = [*removal_columns, *copies, *(cut_column(rows, batches, each) for each in all_cuts(cuts))]
    return pa.RecordBatch.from_arrays(columns, schema=verdicts_schema(CODE, cuts)), facts


def settle_scopes(removals: Rows) -> Rows:
    """REMOVAL rows of a part with OF_FIRST_COPY replaced by the scope meant."""
    of_first = removals["scope"] == OF_FIRST_COPY
    if not of_first.any():
        return removals
    settled = removals.copy()
    settled["scope"][of_first] = CORPUS
    elsewhere = sort_by(removals[~of_first & (removals["reason"] == EXACT)], "id_high", "id_low")
    if len(elsewhere):
        known, wanted = _id_strings(elsewhere), _id_strings(removals)
        place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        found = of_first & (known[place] == wanted)
        settled["scope"][found] = elsewhere["scope"][place[found]]
    return settled


def _id_strings(rows: Rows) -> NDArray[Any]:
    """The ids of rows, as strings of 16 bytes."""
    return np.stack([rows["id_high"], rows["id_low"]], axis=1).astype(">u8").view("S16").reshape(-1)


def _ids(ids: NDArray[Any], absent: NDArray[np.bool_]) -> pa.Array:
    """Big-endian 64-bit pairs as binary(16), null where absent."""
    values = pa.FixedSizeBinaryArray.from_buffers(pa.binary(ID_BYTES), len(ids), [None, pa.py_buffer(ids.tobytes())])
    return pc.if_else(pa.array(absent), pa.scalar(None, values.type), values)


def _copy_columns(facts: PartFacts, copies: Rows) -> list[pa.Array]:
    """copies and sources of every row."""
    rows = len(facts.reasons)
    removed = facts.reasons != 0
    own = np.empty(rows, COPY)
    own["locator"], own["source"], own["documents"] = np.arange(rows), facts.sources, 1
    others = copies.copy()
    others["locator"] = row_of(copies["locator"])
    # the copies of a removed document have been moved to its representative
    total = add_up(np.concatenate([own, others]))
    total = total[~removed[row_of(total["locator"])]]
    row = row_of(total["locator"])
    counts = np.zeros(rows, np.int64)
    np.add.at(counts, row, total["documents"].astype(np.int64))
    return [pa.array(counts.astype(np.uint32)), _lists(row, total["source"], rows)]


def cut_column(rows: int, batches: list[bytes], cuts: Cuts) -> pa.Array:
    """What is cut of every row: the numbers of its rows in batches of that kind, ascending."""
    found = sort_by(gather(batches, cuts.tag, cuts.dtype), "locator", *cuts.numbers)
    numbers = np.stack([found[name] for name in cuts.numbers], axis=1).reshape(-1)
    return _lists(np.repeat(row_of(found["locator"]), len(cuts.numbers)), numbers, rows)


def _lists(row: NDArray[np.int64], values: NDArray[np.uint32], rows: int) -> pa.Array:
    """Values of ascending rows as one list per row."""
    offsets = np.zeros(rows + 1, np.int32)
    offsets[1:] = np.cumsum(np.bincount(row, minlength=rows))
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(np.ascontiguousarray(values)))


def counter_records(
    facts: PartFacts, stages: Sequence[int], sources: Sequence[str], labels: bool = False
) -> Iterator[bytes]:
    """Side-output records of a part: counters per stage and source (in = kept + dropped), kept documents per domain.
    labels: all are kept, and those that would have been dropped are counted as found."""
    alive = np.ones(len(facts.reasons), np.bool_)
    for stage in stages:
        counters = Counters(STAGES[stage])
        dropped = alive & (facts.reasons == stage)
        kept = alive if labels else alive & ~dropped
        told = ("found", f"would-drop/{REASONS[stage]}") if labels else ("dropped", REASONS[stage])
        for outcome, reason, rows in (("in", "", alive), (*told, dropped), ("kept", "", kept)):
            for code, documents, size in _sums(facts.sources[rows], facts.sizes[rows]):
                counters.add(sources[code], outcome, reason, size, documents)
            count = int(np.count_nonzero(rows))
            count_metric(STAGES[stage], outcome, count)
            LIVE[STAGES[stage], outcome] += count
        yield from counters.records()
        alive = kept
    for code, documents, size in _sums(facts.domain[alive], facts.sizes[alive]):
        yield side_output_record("kept", domain=facts.domains[code], documents=documents, bytes=size)


def _sums(codes: NDArray[Any], sizes: NDArray[np.int64]) -> Iterator[tuple[int, int, int]]:
    """(code, rows, sum of sizes) for each code there is."""
    for code in np.unique(codes).tolist():
        chosen = codes == code
        yield code, int(np.count_nonzero(chosen)), int(sizes[chosen].sum())


def part_name(url: str) -> str:
    """The name of a part in every folder: the last segment of its url up to the first dot."""
    return url.rpartition("/")[2].partition(".")[0]


def serialize_verdicts(batch: pa.RecordBatch, name: str) -> bytes:
    """Verdicts of the part `name` as one Arrow IPC stream, compressed: a few bytes per row where most rows are kept."""
    sink = pa.BufferOutputStream()
    named = batch.replace_schema_metadata({NAME: name})
    with pa.ipc.new_stream(sink, named.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_batch(named)
    return bytes(sink.getvalue())


def deserialize_verdicts(data: bytes, sources: Sequence[str]) -> tuple[str, pa.Table]:
    """(name of the part, its verdicts as a table of VERDICTS_SCHEMA, sources by name)."""
    table = pa.ipc.open_stream(data).read_all().combine_chunks()
    name = table.schema.metadata[NAME].decode()
    table = table.replace_schema_metadata(None)
    codes = table["sources"].combine_chunks()
    codes = codes.chunk(0) if isinstance(codes, pa.ChunkedArray) else codes
    names = pa.array(sources, pa.string()).take(codes.values)
    column = pa.ListArray.from_arrays(codes.offsets, names)
    return name, table.set_column(table.schema.get_field_index("sources"), VERDICTS_SCHEMA.field("sources"), column)
