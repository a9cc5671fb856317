"""A part of a split for evaluation: the first rows of each domain.

A domain's documents are in the order of a keyed hash of their ids, so its first ones are a sample by chance that does
not depend on anything but the ids: a share of 0.1 has the documents whose hash is in the first tenth, before and after
the corpus has grown. (So is a bottom-k sketch: Cohen and Kaplan 2007, "Summarizing data using bottom-k sketches".)
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from refinery.loader.arguments import whole


def check_subset(subset: Any) -> int | float | None:
    """`subset` itself: a number of rows, a share of them, or None. Raises ValueError."""
    if subset is None:
        return None
    if isinstance(subset, float | np.floating):
        if not 0 < subset <= 1:
            raise ValueError(f"subset: {subset} given, a share above 0 and up to 1.0, or a number of rows, is allowed")
        return float(subset)
    return whole("subset", subset, 1)


def rows_of_domains(subset: int | float | None, rows: Sequence[int]) -> list[int]:
    """How many of each domain's rows are in the subset: the first so many.

    A share is taken of each domain, rounded up. A number is divided by the domains' rows (largest remainders, of equal
    ones the first). Raises ValueError for more rows than there are.

    >>> rows_of_domains(0.1, [1000, 15]), rows_of_domains(10, [1000, 400, 15])
    ([100, 2], [7, 3, 0])
    """
    if subset is None:
        return list(rows)
    if isinstance(subset, float):
        share = Fraction(str(subset))  # what was written: 0.1 of 1,000 are 100
        return [-(-n * share.numerator // share.denominator) for n in rows]
    total = sum(rows)
    if subset > total:
        raise ValueError(f"subset: {subset} rows given, 1 to {total}, what there are, is allowed")
    found = [subset * n // total for n in rows]
    by_remainder = sorted(range(len(rows)), key=lambda i: (-(subset * rows[i] % total), i))
    for i in by_remainder[: subset - sum(found)]:
        found[i] += 1
    return found
