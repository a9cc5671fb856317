"""Numbers by language from a data file: thresholds that differ from language to language, as FineWeb2's do.

A CSV or TSV file, UTF-8, with a header whose first column is `language`; the others hold numbers under names of their
own. An empty cell says nothing of its language, lines that begin with # are comments. Source of the idea: Penedo et al.
2025, "FineWeb2", section 3: one set of thresholds does not fit a thousand languages.

    language,language_score,edu
    en,0.65,0.3
    sw,0.3,
"""

import math
from collections import Counter
from collections.abc import Mapping

from refinery.transforms.core.languages.codes import canonical, with_script
from refinery.transforms.core.read_table import read_column
from refinery.transforms.core.wording import given


def read_language_numbers(path: str, column: str = "") -> dict[str, float]:
    """Language -> number, of the file at `path`, local, `gs://` or `s3://`. column: which one; "" for the only one.

    Languages are `en`, or `en_Latn` for one in that script (a table may say `eng_Latn`); where a table has a language
    in one script alone, the number is also that of the language.

    Raises ValueError, one line, for a file that cannot be read, has no such column, names a language twice, or has a
    cell that is not a finite number. Linear; memory of the table.
    """
    found: dict[str, float] = {}
    for where, name, cell in read_column(path, "language", column):
        code = canonical(name)
        if not code or code in found:
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


def _number(cell: str, where: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"{where}: {given(cell)} given, a number is allowed")
    return value
