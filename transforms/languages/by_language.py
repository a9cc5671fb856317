"""Numbers by language from a data file: thresholds that differ from language to language, as FineWeb2's do.

A CSV or TSV file, UTF-8, with a header whose first column is `language`; the others hold numbers under names of their
own. An empty cell says nothing of its language, lines that begin with # are comments. Source of the idea: Penedo et al.
2025, "FineWeb2", section 3: one set of thresholds does not fit a thousand languages.

    language,language_score,edu
    en,0.65,0.3
    sw,0.3,
"""

import csv
import math
from collections import Counter
from collections.abc import Iterator, Mapping

from refinery.transforms.core.params import given, nearest
from refinery.transforms.core.resources import read_list_file
from refinery.transforms.languages.codes import canonical, with_script

MAX_ROWS = 100_000  # ISO 639-3 has 8,000 languages; each may be in several scripts


def read_language_numbers(path: str, column: str = "") -> dict[str, float]:
    """Language -> number, of the file at `path`, local or `gs://`. column: which one; "" for the only one.

    Languages are `en`, or `en_Latn` for one in that script (a table may say `eng_Latn`); where a table has a language
    in one script alone, the number is also that of the language.

    Raises ValueError, one line, for a file that cannot be read, has no such column, names a language twice, or has a
    cell that is no finite number. Linear; memory of the table.
    """
    try:
        text = read_list_file(path).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: cannot be read ({error})") from None
    rows = _rows(text, path)
    header = next(rows, (0, []))[1]
    columns = header[1:]
    if header[:1] != ["language"] or not columns or len(set(header)) < len(header):
        told = given(",".join(header))
        raise ValueError(f"{path}: the header {told} given, language and names of other columns are needed")
    if not column and len(columns) > 1:
        raise ValueError(f"{path}: columns {', '.join(columns)} found, one of them must be named with `column`")
    if column and column not in columns:
        raise ValueError(f"{path}: column {given(column)} given, {nearest(column, columns)}")
    at = header.index(column or columns[0])
    found: dict[str, float] = {}
    for number, cells in rows:
        where = f"{path}, line {number}"
        if len(cells) != len(header):
            raise ValueError(f"{where}: {len(cells)} cells found, {len(header)} are needed")
        code, cell = canonical(cells[0]), cells[at]
        if not code or code in found or number > MAX_ROWS:
            raise ValueError(f"{where}: {given(code)} given, a language that no line before has is needed")
        if cell:
            found[code] = _number(cell, where)
    if not found:
        raise ValueError(f"{path}: no number found")
    scripts = Counter(name.partition("_")[0] for name in found if "_" in name)
    alone = {code: number for name, number in found.items() if scripts[code := name.partition("_")[0]] == 1}
    return alone | found


def number_of(numbers: Mapping[str, float], code: str, script: str = "") -> float | None:
    """That of the language in its script, else of the language; None where the table has neither."""
    own = numbers.get(with_script(code, script))
    return numbers.get(code) if own is None else own


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


def _number(cell: str, where: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"{where}: {given(cell)} given, a number is allowed")
    return value
