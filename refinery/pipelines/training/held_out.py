"""What a two-class classifier is worth on texts that it never saw, as numbers, as JSON and as a model card.

Scores are rounded to the 4 digits that the stages judge by; every figure follows from integer counts and from sums in
one fixed order, so the same model and texts give the same bytes.
"""

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import orjson

from refinery.transforms.core.wording import many
from refinery.transforms.filter.fasttext_model import FastTextModel
from refinery.transforms.filter.quality import HIGH_QUALITY, score_line

THRESHOLDS = (0.01, 0.05, *(step / 10 for step in range(1, 10)), 0.95, 0.99)
BINS = 10

Scores = Sequence[tuple[float, bool]]  # score, whether it is a positive; sorted


@dataclass(frozen=True)
class AtThreshold:
    """What keeping everything from a threshold on does; a point of the ROC curve is (fall_out, recall)."""

    threshold: float
    kept: float  # share of all texts
    precision: float | None  # None where nothing is kept
    recall: float
    fall_out: float  # share of the negatives that is kept


@dataclass(frozen=True)
class Bin:
    """Texts whose scores lie in one tenth of the scale: calibrated where mean_score equals positives."""

    texts: int
    mean_score: float
    positives: float  # share of them


@dataclass(frozen=True)
class QualityMetrics:
    """Figures on held-out texts; precision, recall and accuracy at threshold 0.5. None where a class has none.

    calibration_error: expected difference of score and share of positives over ten equal bins (Guo et al. 2017,
    section 2). brier: mean squared difference of score and truth (Brier 1950).
    """

    trained: int
    held_out: int
    accuracy: float | None = None
    precision: float | None = None
    recall: float | None = None
    auc: float | None = None
    positives: int = 0
    calibration_error: float | None = None
    brier: float | None = None
    curve: tuple[AtThreshold, ...] = ()
    calibration: tuple[Bin, ...] = ()

    def __str__(self) -> str:
        if self.auc is None:
            return f"trained on {many(self.trained, 'text')}; too few held out to measure"
        return (
            f"trained on {many(self.trained, 'text')}; on {self.held_out:,} held out: accuracy {self.accuracy:.3f}, "
            f"precision {self.precision:.3f}, recall {self.recall:.3f}, AUC {self.auc:.3f}, "
            f"calibration error {self.calibration_error:.3f}"
        )


def measure(
    model: FastTextModel, lines: Iterable[tuple[str, str]], trained: int, positive: str = HIGH_QUALITY
) -> QualityMetrics:
    """Metrics on labelled lines. AUC: share of (good, bad) pairs in the right order, ties half (Mann and Whitney)."""
    scores = sorted((round(score_line(line, model, positive), 4), label == positive) for label, line in lines)
    good = sum(is_good for _, is_good in scores)
    bad = len(scores) - good
    if not good or not bad:
        return QualityMetrics(trained, len(scores), positives=good)
    half = _at(scores, 0.5, good)
    correct = round(half.recall * good) + bad - round(half.fall_out * bad)
    bins = [_bin(part) for part in _tenths(scores)]
    error = math.fsum(b.texts * abs(b.mean_score - b.positives) for b in bins) / len(scores)
    return QualityMetrics(
        trained,
        len(scores),
        accuracy=correct / len(scores),
        precision=half.precision or 0.0,
        recall=half.recall,
        auc=(_rank_sum(scores) - good * (good + 1) / 2) / (good * bad),
        positives=good,
        calibration_error=error,
        brier=math.fsum((score - is_good) ** 2 for score, is_good in scores) / len(scores),
        curve=tuple(_at(scores, threshold, good) for threshold in THRESHOLDS),
        calibration=tuple(bins),
    )


def _at(scores: Scores, threshold: float, good: int) -> AtThreshold:
    kept = scores[bisect_left(scores, (threshold, False)) :]
    hits = sum(is_good for _, is_good in kept)
    return AtThreshold(
        threshold,
        len(kept) / len(scores),
        hits / len(kept) if kept else None,
        hits / good,
        (len(kept) - hits) / (len(scores) - good),
    )


def _tenths(scores: Scores) -> list[Scores]:
    edges = [bisect_left(scores, (step / BINS, False)) for step in range(BINS)] + [len(scores)]
    return [scores[start:stop] for start, stop in pairwise(edges)]


def _bin(scores: Scores) -> Bin:
    size = len(scores)
    if not size:
        return Bin(0, 0.0, 0.0)
    return Bin(size, math.fsum(score for score, _ in scores) / size, sum(good for _, good in scores) / size)


def _rank_sum(scores: Scores) -> float:
    """Sum of the ranks (from 1, mean rank for ties) of the good ones among the sorted scores."""
    total, start = 0.0, 0
    while start < len(scores):
        stop = start
        while stop < len(scores) and scores[stop][0] == scores[start][0]:
            stop += 1
        total += sum(is_good for _, is_good in scores[start:stop]) * (start + 1 + stop) / 2
        start = stop
    return total


def as_json(metrics: QualityMetrics, facts: Mapping[str, Any]) -> bytes:
    """`facts` and every figure, rounded to 6 digits, as JSON with sorted keys."""
    plain = _rounded({**facts, "metrics": asdict(metrics)})
    return orjson.dumps(plain, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n"


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rounded(item) for item in value]
    return round(value, 6) if isinstance(value, float) else value


def model_card(title: str, metrics: QualityMetrics, facts: Mapping[str, Any], use: str) -> str:
    """A page of Markdown after Mitchell et al. 2019 ("Model Cards for Model Reporting"): what it is, what it learned
    from, how it measures. facts: rows of its first table. use: what it is for, a sentence or two."""
    rows = [f"| {key.replace('_', ' ')} | {_cell(value)} |" for key, value in facts.items()]
    page = [
        f"# {title}",
        "",
        use,
        "",
        "| | |",
        "| --- | --- |",
        *rows,
        "",
        "## On held-out texts",
        "",
        f"It {metrics}.",
    ]
    if metrics.auc is None:
        return "\n".join(page) + "\n"
    page += [
        "",
        f"{metrics.positives:,} of them are positives. Brier score {metrics.brier:.4f}. Held-out texts are drawn by "
        "hash from the same files as the training texts: on other data expect less.",
        "",
        "| threshold | kept | precision | recall | fall-out |",
        "| ---: | ---: | ---: | ---: | ---: |",
        *(
            f"| {point.threshold} | {point.kept:.3f} | "
            f"{'' if point.precision is None else format(point.precision, '.3f')} | {point.recall:.3f} | "
            f"{point.fall_out:.3f} |"
            for point in metrics.curve
        ),
        "",
        "## Calibration",
        "",
        "| scores from | texts | mean score | share of positives |",
        "| ---: | ---: | ---: | ---: |",
        *(
            f"| {step / BINS} | {part.texts:,} | {part.mean_score:.3f} | {part.positives:.3f} |"
            for step, part in enumerate(metrics.calibration)
            if part.texts
        ),
    ]
    return "\n".join(page) + "\n"


def _cell(value: Any) -> str:
    text = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    return " ".join(text.replace("|", "\\|").split())
