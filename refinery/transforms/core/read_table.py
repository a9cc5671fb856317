"""Data files of recipes: CSV and TSV tables with a header, in which lines that begin with # are comments.

One format for all of them: it is that of spreadsheets and of the tables that papers publish. YAML is for recipes.
"""

import csv
from collections.abc import Iterator
from typing import NamedTuple

from refinery.transforms.core.resources import read_list_file
from refinery.transforms.core.wording import given, nearest

MAX_LINES = 100_000  # ISO 639-3 has 8,000 languages, each in several scripts at most; SPDX 700 licences


class Cell(NamedTuple):
    """A line: where it is, for messages, its first cell, and that of the column which was asked for."""

    where: str
    key: str
    value: str


def read_column(path: str, key: str, column: str = "") -> Iterator[Cell]:
    """The lines of the table at `path`, local, `gs://` or `s3://`. key: name of its first column. column: which of the
    others; "" for the only one.

    Raises ValueError, one line, for a file that cannot be read, has another header or no such column, for a line of
    more or fewer cells, and for more than MAX_LINES.
    """
    try:
        text = read_list_file(path).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: cannot be read ({error})") from None
    rows = _rows(text, path)
    header = next(rows, (0, []))[1]
    columns = header[1:]
    if header[:1] != [key] or not columns or len(set(header)) < len(header):
        told = given(",".join(header))
        raise ValueError(f"{path}: the header {told} given, {key} and names of other columns are needed")
    if not column and len(columns) > 1:
        raise ValueError(f"{path}: columns {', '.join(columns)} found, one of them must be named with `column`")
    if column and column not in columns:
        raise ValueError(f"{path}: column {given(column)} given, {nearest(column, columns)}")
    at = header.index(column or columns[0])
    for number, cells in rows:
        where = f"{path}, line {number}"
        if len(cells) != len(header):
            raise ValueError(f"{where}: {len(cells)} cells found, {len(header)} are needed")
        if number > MAX_LINES:
            raise ValueError(f"{where}: {MAX_LINES:,} lines are allowed")
        yield Cell(where, cells[0], cells[at])


def _rows(text: str, path: str) -> Iterator[tuple[int, list[str]]]:
    """(number of the line, its cells without blanks around them) of each that is neither empty nor a comment."""
    delimiter = "\t" if path.lower().endswith(".tsv") else ","
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip() and not line.startswith("#"):
            try:
                cells = next(csv.reader([line], delimiter=delimiter, strict=True))
            except csv.Error as error:
                raise ValueError(f"{path}, line {number}: {error}") from None
            yield number, [cell.strip() for cell in cells]
