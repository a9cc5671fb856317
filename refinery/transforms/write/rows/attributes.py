"""Labels beside the rows, as Dolma's toolkit keeps them: for each file of the inputs one of JSON Lines, with an object
for each row, in their order.

    {"id": "a 17", "attributes": {"pii__pii_spans__email": [[120, 143, 1.0]], "pii__pii__score": [[0, 911, 1.0]]}}

A value says of text[start:end] what its score is; what is true of a row is said of all of its text. Keys are
EXPERIMENT__LABEL__KIND. The kind is that of a span, or the label's value where that is one of few words; numbers, true
and false have the kind `score`. The form: https://github.com/allenai/dolma/blob/main/docs/data-format.md.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import orjson

from refinery.loader.storage.full_disk import naming_full_disk
from refinery.transforms.core.document import Scalar
from refinery.transforms.read.byte_source import MemberStream
from refinery.transforms.read.members import GZIP
from refinery.transforms.read.task import LimitParams, ReadTask
from refinery.transforms.write.rows.compressed import compressed, compression_of
from refinery.transforms.write.rows.copy_rows import BUFFER, opened_input
from refinery.transforms.write.rows.json_spans import spelt
from refinery.transforms.write.rows.labels import LabelOf
from refinery.transforms.write.rows.row_values import read_row_values
from refinery.transforms.write.rows.rows import RowError
from refinery.transforms.write.rows.spans import read_spans

ENDING = ".jsonl.gz"  # behind the names of files of other formats than JSON Lines
OTHER = re.compile(r"[^A-Za-z0-9_]+")  # what is no part of a key
SCORE = "score"

NO_VALUES: tuple[int, Sequence[Scalar]] = (-1, ())  # behind the last row
Attributes = dict[str, list[list[float]]]


def attributes_ending(task: ReadTask) -> str:
    """What comes behind the name of a file, for its attributes."""
    return "" if task.format == "jsonl" else ENDING


def attribute_key(experiment: str, label: str, kind: str) -> str:
    """The key of an attribute: names in which readers of such files find no sign of their own."""
    return "__".join(OTHER.sub("_", part).strip("_") for part in (experiment, label, kind))


def row_attributes(experiment: str, labels: Sequence[LabelOf], values: Sequence[Scalar], length: int) -> Attributes:
    """The attributes of a row. values: of its labels. length: of its text, in characters. Labels of free text, such as
    the id of another row, are none."""
    found: Attributes = {}
    for label, value in zip(labels, values, strict=True):
        name = label.label.name
        if label.has_places:
            for start, end, kind in read_spans(str(value)):
                found.setdefault(attribute_key(experiment, name, kind), []).append([start, end, 1.0])
        elif not isinstance(value, str):
            found[attribute_key(experiment, name, SCORE)] = [[0, length, float(value)]]
        elif label.is_category and value:
            found[attribute_key(experiment, name, value)] = [[0, length, 1.0]]
    return found


def write_attributes(
    task: ReadTask,
    out: Path,
    experiment: str,
    labels: Sequence[LabelOf],
    values: Iterable[tuple[int, Sequence[Scalar]]],
    limits: LimitParams,
) -> int:
    """Write to `out`, which must not be there, the attributes of each row of the task's file; returns their number.

    values: of the labels, for rows in their order; a row that is not among them has no attributes. A row without an id
    is named by its place, file@offset. Compression: the input's where that is JSON Lines, else gzip. Raises what
    `copy_rows` raises.
    """
    given = iter(values)
    row, its_values = next(given, NO_VALUES)
    count = 0
    with naming_full_disk(out), open(out, "xb", buffering=BUFFER) as file, opened_input(task, limits) as source:
        is_lines = task.format == "jsonl"
        magic = compression_of(source, MemberStream(source)) if is_lines else GZIP
        with compressed(file, magic) as write:
            for each in read_row_values(task, source, limits):
                found: Attributes = {}
                if each.row == row:
                    found = row_attributes(experiment, labels, its_values, len(each.text or ""))
                    row, its_values = next(given, NO_VALUES)
                name = each.id or spelt(task.origin(each.row))
                write(b'{"id":%b,"attributes":%b}\n' % (name, orjson.dumps(found)))
                count += 1
        if row != NO_VALUES[0]:
            raise RowError(task, row, "the file has no such row")
    return count
