"""From a sample of input files to the whole: tokens, with an interval. Pure arithmetic on a `Sample`.

Two things grow differently, and are kept apart.

**What a file gives.** Documents of one file are alike (one host, one hour of a crawl), so files are drawn, not
documents: cluster sampling with the ratio estimator, tokens over bytes (Cochran, Sampling Techniques, 1977, chapters 6
and 9A). Its variance is the jackknife's over files, on the logarithm, since a ratio of sizes is skewed; Student's t
with as many degrees of freedom as files of one size would give, and the correction for a finite whole.

**What deduplication leaves.** A larger corpus has more copies of everything, so this share cannot be extrapolated
linearly, nor at all without an assumption beyond about log(n) times the sample (Orlitsky, Suresh, Wu 2016, PNAS 113).
What a sample does tell without bias is pairs: a document's mean number of other files that have it, too, grows exactly
with the number of files. From it follow bounds that need no model:

- at most the share of the sample, with its own jackknife: what one copy represents can only become more;
- at least 1 / (1 + mean number of other files), by Jensen's inequality: families of one size are the worst case.

Between them, the estimate is the extended negative binomial (Engen 1974) that has the sample's share and mean number.
Copies that were never seen are not taken for absent: Poisson's upper limit for the number of families counts. That
takes families for independent; whole files that mirror others are noticed once the sample has both of a pair.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from refinery.pipelines.reports.plan.sample import Sample

LEAST_FILES = 8  # fewer say nothing of how files differ
RISK = 0.0125  # of each of the four limits, two above and two below: together at most 5 %


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and its limits, all in one unit. By the method above at most 5 % of such intervals miss the truth."""

    low: float
    middle: float
    high: float

    def times(self, factor: float) -> "Interval":
        """All three by a factor that is known exactly."""
        return Interval(self.low * factor, self.middle * factor, self.high * factor)


@dataclass(frozen=True, slots=True)
class Forecast:
    """tokens: of the whole. rest: of what the sample has not read. distinct: share of tokens that deduplication across
    files leaves; in_sample: that share in the sample."""

    tokens: Interval
    rest: Interval
    distinct: Interval
    in_sample: float


@dataclass(frozen=True, slots=True)
class Copies:
    """What a sample says of copies in other files. share: of its tokens that deduplication across files leaves; error:
    its standard error. other: mean number of other files that have a document, too, by tokens; most: its upper limit.
    """

    share: float
    error: float
    other: float
    most: float


def why_none(sample: Sample) -> str:
    """Why no interval can be computed from a sample; "" if one can."""
    gave = np.count_nonzero(sample.weights)
    if sample.files >= LEAST_FILES and gave >= 2:
        if sample.effective_files < LEAST_FILES:
            alike = f"{sample.files:,} input files of so different sizes that they say as much as"
            return f"{alike} {sample.effective_files:.1f} of one size; it takes {LEAST_FILES}"
        return ""
    return (
        f"{sample.files} input file{'s' * (sample.files != 1)}, of which {gave} gave tokens; it takes {LEAST_FILES}, "
        "2 of them with tokens: documents of one file are not independent"
    )


def forecast(sample: Sample, times: float, copies: Copies | None = None) -> Forecast:
    """What `times` the sample's bytes give, in files like the sample's. copies: `copies_in(sample)`, if it is known.

    Raises ValueError for less than the sample, and for a sample of which `why_none` says something. Linear in files.
    """
    if not 1 <= times < math.inf:
        raise ValueError(f"the whole is {times:g} times the sample; 1 or more is allowed")
    if why := why_none(sample):
        raise ValueError(f"no interval: {why}")
    alone = _tokens_alone(sample, times)
    copies = copies or copies_in(sample)
    distinct = distinct_share(copies, sample.files, times)
    got = sample.tokens
    low, middle, high = (
        max(got, tokens * share)
        for tokens, share in ((alone.low, distinct.low), (alone.middle, distinct.middle), (alone.high, distinct.high))
    )
    return Forecast(Interval(low, middle, high), Interval(low - got, middle - got, high - got), distinct, copies.share)


def copies_in(sample: Sample) -> Copies:
    """What a sample says of copies. Linear in files and families. Takes `why_none` to be ""."""
    other, most = _other_files(sample)
    return Copies(sample.tokens / float(sample.weights.sum()), _share_error(sample), other, most)


def _tokens_alone(sample: Sample, times: float) -> Interval:
    """Tokens of the whole if files were deduplicated each by itself: the ratio estimator with its jackknife."""
    tokens, size = sample.weights, sample.sizes
    count = sample.files
    ratio = float(tokens.sum() / size.sum())
    without = np.log((tokens.sum() - tokens) / (size.sum() - size))
    variance = (count - 1) / count * float(((without - without.mean()) ** 2).sum())
    spread = math.sqrt(variance * (1 - 1 / times))
    spread *= student(RISK, sample.effective_files - 1)
    whole = float(size.sum()) * times * ratio
    return Interval(whole * math.exp(-spread), whole, whole * math.exp(spread))


def distinct_share(copies: Copies, files: int, times: float) -> Interval:
    """Share of tokens that deduplication across files leaves of `times` a sample of that many files."""
    share = copies.share
    grown = (files * times - 1) / (files - 1)  # ordered pairs with one document grow so
    low = min(share, max(share / times, 1 / (1 + copies.most * grown))) if times > 1 else share
    high = min(1.0, share + student(RISK, files - 1) * copies.error * math.sqrt(1 - 1 / times))
    return Interval(low, min(share, max(low, _binomial_share(share, copies.other, times))), high)


def _share_error(sample: Sample) -> float:
    """The jackknife's standard error, over files, of the sample's share."""
    total, count = float(sample.weights.sum()), sample.files
    remaining = sample.tokens - sample.weights  # without a file, less what others have, too
    for tokens, files in sample.families:
        remaining[list(files)] += tokens
    without = remaining / np.maximum(total - sample.weights, 1e-300)
    return math.sqrt((count - 1) / count * float(((without - without.mean()) ** 2).sum()))


def _other_files(sample: Sample) -> tuple[float, float]:
    """(mean number of other files of the sample that have a document, too, weighted by tokens; its upper limit)."""
    total, count = float(sample.weights.sum()), sample.files
    pairs, less_pairs, less_total = 0.0, np.zeros(count), sample.weights
    for tokens, files in sample.families:
        pairs += tokens * len(files) * (len(files) - 1)
        less_pairs[list(files)] += 2 * tokens * (len(files) - 1)
    # Pairs grow with the square of the sample, so pairs over total² is what a smaller sample estimates, too.
    without = (pairs - less_pairs) / np.maximum(total - less_total, 1e-300) ** 2 * (count - 1) / (count - 2)
    variance = (count - 1) / count * float(((without - without.mean()) ** 2).sum()) * total**4
    mean = pairs / total
    by_files = mean + student(RISK, count - 1) * math.sqrt(variance) / total
    seen = len(sample.families)
    family = pairs / seen if seen else 2 * total / max(1.0, sample.documents)  # not seen: a pair of mean length
    return mean, max(by_files, poisson_limit(seen, RISK) * family / total)


def _binomial_share(share: float, other: float, times: float) -> float:
    """The share at `times` the sample by the extended negative binomial with this share and mean at the sample itself.

    A document is in a Poisson number of files of mean λ; λ is spread as a gamma with shape a (extended to -1 < a: most
    documents rare, few everywhere). Then other = (a + 1) u, share = (1 - (1 + u)^-a) / (a u), and u grows with times.
    """
    if other <= 0:
        return share
    low, high = -40.0, 40.0  # of log(a + 1)
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if _share_of(middle, other) > share else (low, middle)
    return _share_of(low, other, times)


def _share_of(log_shape: float, other: float, times: float = 1.0) -> float:
    shape, u = math.expm1(log_shape), times * other / math.exp(log_shape)
    if abs(shape) < 1e-9:
        return math.log1p(u) / u
    return -math.expm1(-shape * math.log1p(u)) / (shape * u)


def student(risk: float, freedom: float) -> float:
    """Upper quantile of Student's t: Hill's expansion of 1970 (CACM algorithm 396), 4 digits from 5 degrees on."""
    n = float(freedom)
    a = 1 / (n - 0.5)
    b = 48 / a**2
    c = ((20_700 * a / b - 98) * a - 16) * a + 96.36
    d = ((94.5 / (b + c) - 3) / b + 1) * math.sqrt(a * math.pi / 2) * n
    x = d * 2 * risk
    y = x ** (2 / n)
    if y > 0.05 + a:
        x = NormalDist().inv_cdf(risk)
        y = x * x
        if n < 5:
            c += 0.3 * (n - 4.5) * (x + 0.6)
        c = (((0.05 * d * x - 5) * x - 7) * x - 2) * x + b + c
        y = (((((0.4 * y + 6.3) * y + 36) * y + 94.5) / c - y - 3) / b + 1) * x
        y = math.expm1(a * y * y)
    else:
        y = ((1 / (((n + 6) / (n * y) - 0.089 * d - 0.822) * (n + 2) * 3) + 0.5 / (n + 4)) * y - 1) * (n + 1) / (
            n + 2
        ) + 1 / y
    return math.sqrt(n * y)


def poisson_limit(seen: int, risk: float) -> float:
    """Upper limit of a Poisson mean of which `seen` events were counted (Wilson and Hilferty's cube; within 1 %)."""
    n = seen + 1.0
    return n * (1 - 1 / (9 * n) + NormalDist().inv_cdf(1 - risk) / (3 * math.sqrt(n))) ** 3
