"""Read documents/ parts beside their row-aligned verdicts, and yield the documents that deduplication kept."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import repeat
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from refinery.loader.format.document_fields import DOCUMENTS, names_of
from refinery.loader.storage.open_store import open_store
from refinery.transforms.core.counters import work_done
from refinery.transforms.core.document import COPIES, Document
from refinery.transforms.core.job.task_list import TaskList, write_task_list
from refinery.transforms.core.live import LIVE
from refinery.transforms.core.names import LABEL_ORIGINAL, LABEL_REASON
from refinery.transforms.core.part_errors import UnreadablePart, naming
from refinery.transforms.dedup.cut_lines import list_values
from refinery.transforms.dedup.cutting_pass import Cuts

BATCH_ROWS = 256
COLUMNS = list(names_of(DOCUMENTS))  # the fields of `Document`, of which `meta` is the last
SOURCE = COLUMNS.index("source")
JUDGED = ("removed", "copies", "sources")  # what verdicts say of a document
WHY = ("reason", "kept_id")  # and of one that gets labels


@dataclass(frozen=True)
class PartPair:
    """Where a part's documents and verdicts are: the roots of two stores and the paths in them. verdicts "": keep all.

    groups: row groups of its documents.
    """

    documents_root: str
    documents: str
    verdicts_root: str
    verdicts: str
    groups: int


def read_kept_documents(pair: PartPair, group: int, cuts: Sequence[Cuts], labels: bool = False) -> Iterator[Document]:
    """The kept documents of one row group, in row order; meta gains "copies" (int), "copy_sources" ("a,b"), and the
    note of each of `cuts` that there are of a document. labels: the others, too, with notes that say why.

    Raises ValueError when the two files disagree on the number of rows, UnreadablePart when one is damaged. Memory: one
    row group.
    """
    store = open_store(pair.documents_root)
    with store.open(pair.documents) as stream, naming(store.url(pair.documents)):
        documents = pq.ParquetFile(stream, page_checksum_verification=True)
        groups = [documents.metadata.row_group(i).num_rows for i in range(documents.metadata.num_row_groups)]
        row = sum(groups[:group]) - 1
        if pair.verdicts:
            verdicts, found = read_verdicts(pair, sum(groups), cuts, (*JUDGED, *WHY) if labels else JUDGED)
        batches = documents.iter_batches(batch_size=BATCH_ROWS, row_groups=[group], columns=COLUMNS, use_threads=False)
        for batch in batches:
            columns = [batch.column(name).to_pylist() for name in COLUMNS]
            rows = range(row + 1, row + 1 + len(batch))
            judged: Iterable[Any] = repeat((False, 1, None), len(batch))
            if pair.verdicts:
                judged = zip(*verdicts.slice(rows.start, len(batch)).to_pydict().values(), strict=True)
            for row, (removed, copies, sources, *why), *values, noted in zip(rows, judged, *columns, strict=True):
                if removed and not labels:
                    continue
                meta = orjson.loads(noted)
                if removed:
                    reason, kept = why
                    meta = {LABEL_REASON: reason, **meta, LABEL_ORIGINAL: kept.hex()}
                meta[COPIES] = copies
                meta["copy_sources"] = ",".join(sources) if sources else values[SOURCE]
                for each, (places, numbers) in zip(cuts, found, strict=True) if pair.verdicts else ():
                    if places[row] < places[row + 1]:
                        meta[each.note] = each.noted(numbers[places[row] : places[row + 1]].tolist())
                LIVE["kept-documents", "read"] += 1
                yield Document(*[*values, meta])
            work_done("rows", len(batch))
        if row + 1 != sum(groups[: group + 1]):  # page checksums leave the heads of pages out
            raise UnreadablePart(f"{store.url(pair.documents)}: rows of group {group} are missing")


def read_verdicts(
    pair: PartPair, rows: int, cuts: Sequence[Cuts], judged: Sequence[str] = JUDGED
) -> tuple[pa.Table, list[tuple[Any, Any]]]:
    """These columns of every row of the part, and of each of `cuts` its numbers: offsets by row, and all values."""
    columns = [*judged, *(each.column for each in cuts)]
    store = open_store(pair.verdicts_root)
    with store.open(pair.verdicts) as stream, naming(store.url(pair.verdicts)):
        verdicts = pq.read_table(stream, columns=columns, page_checksum_verification=True, use_threads=False)
    if verdicts.num_rows != rows:
        raise ValueError(f"{pair.verdicts}: {verdicts.num_rows} verdicts for {rows} documents")
    return verdicts.select(judged), [list_values(verdicts[each.column]) for each in cuts]


def write_pairs(location: str, pairs: Sequence[PartPair]) -> TaskList:
    """Publish the pairs in that work location, for `ReadKeptDocuments` and `WriteRemovals`."""
    return write_task_list(
        location, "shards", [orjson.dumps(asdict(pair), option=orjson.OPT_SORT_KEYS) for pair in pairs]
    )


def parse_pair(line: bytes) -> PartPair:
    """A line of what `write_pairs` published."""
    return PartPair(**orjson.loads(line))
