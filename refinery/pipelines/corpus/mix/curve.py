"""A curve of upsampling: a formula of the quantile q, from 0 to 1, that says how often documents are delivered there.

It is an arithmetic expression in the language of rules (refinery.transforms.filter.rules.expression), with two
functions more: `power(x, y)` of an x of 0 or more, and `exp(x)`. A bin of several quantiles is delivered as often as
the formula says on average between its ends: the mean of its values in the middle of 64 equal parts. Nothing is
executed but that, and the same formula gives the same bits on every machine: power and exp are computed in decimal, to
30 digits.
"""

import math
import re
from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, Context, Decimal, DecimalException
from functools import lru_cache

from refinery.transforms.filter.rules.expression import ExpressionError, compile_formula
from refinery.transforms.filter.rules.grammar import Functions

PARTS = 64  # of a bin at whose middles a curve is taken
MOST_CALLS = 8  # of power and exp, which take 0.1 ms each
_DECIMAL = Context(prec=30, rounding=ROUND_HALF_EVEN, Emin=-10_000, Emax=10_000)


def _power(x: float, y: float) -> float | None:
    if x < 0 or (x == 0 and y < 0):
        return None
    if y == 0 or x == 0:  # decimal does not say what 0 to the power of 0 is
        return 1.0 if y == 0 else 0.0
    return _decimal(lambda: _DECIMAL.power(Decimal(x), Decimal(y)))


def _exp(x: float) -> float | None:
    return _decimal(lambda: _DECIMAL.exp(Decimal(x)))


def _decimal(compute: Callable[[], Decimal]) -> float | None:
    try:
        value = float(compute())
    except (DecimalException, OverflowError):
        return None
    return value if math.isfinite(value) else None


FUNCTIONS: Functions = {"power": (2, _power), "exp": (1, _exp)}
_CALL = re.compile(rf"\b({'|'.join(FUNCTIONS)})\b")


@lru_cache(maxsize=32)
def factors_of(curve: str, quantiles: int, most: float) -> tuple[float, ...]:
    """How often each of so many bins of equal weight is delivered, the lowest quantiles first.

    Raises ValueError for a formula that is not understood, or whose value somewhere is not a number from 0 to `most`.
    """
    try:
        formula = compile_formula(curve, {"q": "double"}, FUNCTIONS)
    except ExpressionError as error:
        raise ValueError(f"{error}; a formula of q is allowed, as in power(max(q - 0.4, 0), 2)") from None
    if (calls := len(_CALL.findall(curve))) > MOST_CALLS:
        raise ValueError(
            f"{curve[:80]!r} has {calls} calls of {' and '.join(FUNCTIONS)}, at most {MOST_CALLS} are allowed"
        )
    found = []
    for number in range(quantiles):
        values = []
        for part in range(PARTS):
            q = (2 * (number * PARTS + part) + 1) / (2 * quantiles * PARTS)
            value = formula({"q": q})
            if value is None or not 0 <= value <= most:
                raise ValueError(
                    f"{curve[:80]!r} is {'not a number' if value is None else f'{value:g}'} at q = {q:g}, "
                    f"numbers from 0 to {most:g} are allowed; max(0, …) and min(…) bound it"
                )
            values.append(value)
        found.append(math.fsum(values) / PARTS)
    return tuple(found)
