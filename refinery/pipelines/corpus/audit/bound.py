"""What a sample without, or with few, differences says about the whole: Clopper and Pearson's exact upper bound."""

import math

CONFIDENCE = 0.95
STEPS = 200  # halvings: to the last bit of a float


def upper_bound(units: int, differing: int, confidence: float = CONFIDENCE) -> float:
    """The largest share of differing units at which a sample of so many shows no more than `differing` of them with a
    probability of at least 1 - confidence; 1 for an empty sample (Clopper and Pearson 1934, one side).

    >>> f"{upper_bound(59, 0):.3f} {upper_bound(299, 0):.4f} {upper_bound(20, 1):.4f}"
    '0.050 0.0100 0.2161'
    """
    if not 0 <= differing <= units:
        raise ValueError(f"differing: {differing} of {units} given, 0 to all of them is allowed")
    if differing == units:
        return 1.0
    if not differing:
        return -math.expm1(math.log1p(-confidence) / units)
    low, high = differing / units, 1.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        if at_most(units, differing, middle) > 1 - confidence:
            low = middle
        else:
            high = middle
    return high


def at_most(units: int, most: int, share: float) -> float:
    """The probability that of so many units at most `most` differ, each with that probability."""
    if share >= 1:
        return float(most >= units)
    yes, no = math.log(share), math.log1p(-share)
    total = math.lgamma(units + 1)
    logs = (
        total - math.lgamma(k + 1) - math.lgamma(units - k + 1) + k * yes + (units - k) * no for k in range(most + 1)
    )
    return min(1.0, math.fsum(map(math.exp, logs)))
