"""The labels of each row of a file: of those with a document, and of those of which none was made."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import repeat

import orjson

from refinery.transforms.core.answers import Damaged, Skipped
from refinery.transforms.core.document import COPIES, Document, Drop, RawDocument, Scalar, text_bytes
from refinery.transforms.core.names import LABEL_ORIGINAL as ORIGINAL
from refinery.transforms.core.names import LABEL_REASON as REASON
from refinery.transforms.core.safe_text import printable
from refinery.transforms.extract.clean_text import clean_text
from refinery.transforms.extract.extract import ExtractParams, extract_document
from refinery.transforms.read.fields import clean
from refinery.transforms.read.sources import read_task
from refinery.transforms.read.task import ReadTask
from refinery.transforms.write.rows.copy_rows import opened_input
from refinery.transforms.write.rows.files_job import FilesJob
from refinery.transforms.write.rows.labels import CLUSTER, CLUSTER_SIZE, LabelOf
from refinery.transforms.write.rows.originals import Original, own_name
from refinery.transforms.write.rows.row_values import RowValues, read_row_values
from refinery.transforms.write.rows.spans import moved_spans
from refinery.transforms.write.rows.text_places import Places
from refinery.transforms.write.shard_documents import ShardDocuments

NO_TEXT = ("empty",)  # reasons of a reader, and of extraction, for rows without a text
OVER_LIMITS = ("too-large", "meta-too-large")  # reasons of a reader for rows that nobody has looked at: they stay
NO_COLUMN = "MissingField"  # error of a reader of tables; a line without the field is one without a text

Labelled = tuple[int, tuple[Scalar, ...]]  # a row, and a value for each label


def rows_beside(task: ReadTask, known: set[int], job: FilesJob) -> Iterator[tuple[int, str]]:
    """Rows of a file of which no document was made, since they have no text or exceed the limits; ascending, with the
    reason. With labels, also those of which extraction made none. known: rows that stay in any case. Cost: the file is
    read once more. Raises ValueError for a table without the column of texts: nothing says which rows stay."""
    for one in read_task(task, job.limits):
        offset = one.origin.rpartition("@")[2]
        if not offset.isdigit() or int(offset) in known:
            continue
        if isinstance(one, Skipped):
            reason = one.reason if one.reason in (*NO_TEXT, *OVER_LIMITS) else ""
        elif isinstance(one, Damaged):
            if one.error == NO_COLUMN:
                raise ValueError(
                    f"{printable(task.path)}: no column {task.text_field!r}; name the one of the texts (`text_field`), "
                    "or leave the file out"
                )
            reason = ""
        elif job.labels:
            reason = _extraction(one, job.extract)
        elif isinstance(one.content, str) and text_bytes(one.content) > job.extract.max_raw_bytes:
            reason = OVER_LIMITS[0]
        else:
            is_empty = isinstance(one.content, str) and not one.is_html and not clean_text(one.content, from_html=False)
            reason = NO_TEXT[0] if is_empty else ""
        if reason:
            yield int(offset), reason


def _extraction(raw: RawDocument, params: ExtractParams) -> str:
    """Why no text was made of a record; "" for one that has a text."""
    try:
        found = extract_document(raw, params)
    except Exception as error:  # noqa: BLE001 - a dead letter of that stage
        return type(error).__name__
    return found.reason if isinstance(found, Drop) else ""


def row_labels(
    task: ReadTask,
    documents: ShardDocuments,
    originals: Mapping[int, Original],
    others: Mapping[int, str],
    job: FilesJob,
) -> Iterator[Labelled]:
    """The labels of the rows of a file, in their order: `job.into`, if there is one, then `job.labels`. others: rows
    without a document, each with the reason. Places are those of the text in the file; where a row has any, the file is
    read once more, up to the last of them."""
    found = merge(_of_documents(documents, originals, job), _of_others(others, job))
    places = [number for number, each in enumerate(job.labels, job.into is not None) if each.has_places]
    if not places or task.content == "html":  # then they are places of the text that was extracted
        yield from found
        return
    with opened_input(task, job.limits) as source:
        yield from _placed(found, places, read_row_values(task, source, job.limits), job.extract)


def _of_documents(documents: ShardDocuments, originals: Mapping[int, Original], job: FilesJob) -> Iterator[Labelled]:
    facts = (documents.facts[name].to_pylist() for name in ("order", "origin", "meta"))
    texts = repeat(()) if job.into is None else ((text.decode(),) for text in documents.values("tokens"))
    for (offset, origin, meta), text in zip(zip(*facts, strict=True), texts, strict=False):
        noted = orjson.loads(meta)
        if original := originals.get(offset):
            noted |= {ORIGINAL: original.name, CLUSTER: original.name, CLUSTER_SIZE: original.size}
        else:
            noted |= {CLUSTER: own_name(noted, origin), CLUSTER_SIZE: noted[COPIES]}
        yield offset, (*text, *_values(job.labels, noted))


def _of_others(others: Mapping[int, str], job: FilesJob) -> Iterator[Labelled]:
    text = () if job.into is None else ("",)
    for offset, reason in others.items():
        yield offset, (*text, *_values(job.labels, {REASON: reason}))


def _values(labels: Sequence[LabelOf], noted: Mapping[str, Scalar]) -> Iterator[Scalar]:
    return (each.value(noted) for each in labels)


def _placed(
    found: Iterable[Labelled], places: Sequence[int], rows: Iterator[RowValues], params: ExtractParams
) -> Iterator[Labelled]:
    """Labels with the places of the text that was written. places: which of the values are such."""
    for row, values in found:
        if any(values[number] for number in places):
            written = next((each.text for each in rows if each.row == row), None) or ""
            moved = Places(written, cleaned(written, params))
            values = tuple(
                moved_spans(str(value), moved.of) if number in places else value for number, value in enumerate(values)
            )
        yield row, values


def cleaned(text: str, params: ExtractParams) -> str:
    """A row's text as stages see it; "" where there is none."""
    found = extract_document(RawDocument(clean(text), False, "", "", "", "", 0), params)
    return found.text if isinstance(found, Document) else ""
