"""Train a quality classifier on good and bad texts: a fastText model that `refinery.transforms.filter.quality` reads.

floret (a fork of fastText) trains, `refinery.transforms.filter.fasttext_model` reads: fasttext
itself would overwrite the module of fasttext-predict.
"""

import os
import struct
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import floret

from refinery.pipelines.training.new_file import check_new, write_new
from refinery.transforms.core.document import hash64
from refinery.transforms.filter.fasttext_model import FastTextModel, open_model
from refinery.transforms.filter.quality import HIGH_QUALITY, LOW_QUALITY, QualityParams, classifier_text, score_line

# fastText's model file, version 12: magic, version, eleven int32 of arguments, then in floret alone two more (mode,
# hash count), then the learning-rate update interval. Source: floret 0.10.5, src/args.cc (Args::save), src/fasttext.cc.
HEADER = struct.Struct("<2i11i2i")
MAGIC, VERSION = 793_712_314, 12
FASTTEXT_MODE, ONE_HASH = 1, 1
EXTRA = struct.Struct("<2i")

MOST_COPIES = 100


@dataclass(frozen=True)
class TrainQualityParams:
    """Settings of fastText's supervised training.

    seed: of the held-out split and of the model. held_out: share of the texts, by hash, that is used for metrics only.
    balance: repeat the texts of the smaller class until both weigh the same, so that 0.5 is a sensible threshold. dim:
    width of the vectors. word_ngrams: longest n-gram of words used as a feature. buckets: rows of the table that
    n-grams are hashed into; the model takes 4 * dim * (words + buckets) bytes. max_chars must equal that of
    QualityParams.
    """

    seed: int = 1
    held_out: float = 0.1
    balance: bool = True
    epochs: int = 10
    learning_rate: float = 0.1
    dim: int = 32
    word_ngrams: int = 2
    buckets: int = 200_000
    min_count: int = 1
    max_chars: int = QualityParams.model_fields["max_chars"].default

    def __post_init__(self) -> None:
        if not 0 <= self.held_out < 1:
            raise ValueError(f"held_out: {self.held_out} given, a number from 0 to below 1 is allowed")
        if not self.learning_rate > 0:
            raise ValueError(f"learning_rate: {self.learning_rate} given, more than 0 is allowed")
        for name in ("epochs", "dim", "word_ngrams", "buckets", "min_count", "max_chars"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}: {getattr(self, name)} given, 1 or more is allowed")


@dataclass(frozen=True)
class QualityMetrics:
    """Quality of the classifier on held-out texts at threshold 0.5; None where a class has none."""

    trained: int
    held_out: int
    accuracy: float | None
    precision: float | None
    recall: float | None
    auc: float | None

    def __str__(self) -> str:
        if self.auc is None:
            return f"trained on {self.trained:,} texts; too few held out to measure"
        return (
            f"trained on {self.trained:,} texts; on {self.held_out:,} held out: accuracy {self.accuracy:.3f}, "
            f"precision {self.precision:.3f}, recall {self.recall:.3f}, AUC {self.auc:.3f}"
        )


def train_quality(
    positive: Iterable[str], negative: Iterable[str], output: str, params: TrainQualityParams, overwrite: bool = False
) -> QualityMetrics:
    """Train on `positive` and `negative` texts, write the model to `output` (local or gs://), print and return metrics.

    The same texts in any order give the same bytes: lines are sorted by hash, exact copies count once, and one thread
    trains. Cost: about 20 MB/s and epoch; all texts up to max_chars in memory.

    Raises ValueError for a class without texts, for a text of both classes and, without overwrite, for an `output` that
    exists; StorageConflict where one has appeared since.
    """
    if not overwrite:
        check_new(output)
    lines = labelled_lines(positive, negative, params)
    train = [line for line in lines if not _is_held_out(line[1], params)]
    test = [line for line in lines if _is_held_out(line[1], params)]
    for label in (HIGH_QUALITY, LOW_QUALITY):
        if not any(line[0] == label for line in train):
            train, test = lines, []  # so few texts that the split left none of a class
    with tempfile.TemporaryDirectory(prefix="refinery-quality-") as scratch:
        model = Path(scratch) / "model.bin"
        model.write_bytes(as_fasttext(_train(train, Path(scratch), params)))
        metrics = measure(open_model(model), test, len(train))
        write_new(output, model.read_bytes(), overwrite)
    print(f"{output}: {metrics}")
    return metrics


def labelled_lines(
    positive: Iterable[str], negative: Iterable[str], params: TrainQualityParams
) -> list[tuple[str, str]]:
    """(label, line as the classifier reads it), each once, in hash order. Raises ValueError as `train_quality`."""
    classes = {}
    for name, label, texts in (("positive", HIGH_QUALITY, positive), ("negative", LOW_QUALITY, negative)):
        classes[label] = {line for text in texts if (line := classifier_text(text, params.max_chars))}
        if not classes[label]:
            raise ValueError(f"{name}: no text given, at least one that is not empty is needed")
    both = classes[HIGH_QUALITY] & classes[LOW_QUALITY]
    if both:
        raise ValueError(f"positive: {len(both)} texts given that are also negative ones, e.g. {min(both)[:60]!r}")
    lines = [(label, line) for label in classes for line in classes[label]]
    return sorted(lines, key=lambda line: (hash64("quality", params.seed, line[1]), line))


def balanced(lines: Sequence[tuple[str, str]], seed: int) -> list[tuple[str, str]]:
    """`lines` with every line of the smaller class repeated, spread by hash; at most a hundred times."""
    sizes = Counter(label for label, _ in lines)
    copies = {label: min(MOST_COPIES, max(1, round(max(sizes.values()) / sizes[label]))) for label in sizes}
    keyed = [(hash64("copy", seed, copy, line), label, line) for label, line in lines for copy in range(copies[label])]
    return [(label, line) for _, label, line in sorted(keyed)]


def _is_held_out(line: str, params: TrainQualityParams) -> bool:
    return hash64("held-out", params.seed, line) < params.held_out * 2**64


def _train(lines: Sequence[tuple[str, str]], scratch: Path, params: TrainQualityParams) -> bytes:
    """The bytes of floret's own model file."""
    text, model = scratch / "train.txt", scratch / "floret.bin"
    repeated = balanced(lines, params.seed) if params.balance else lines
    text.write_text("".join(f"{label} {line}\n" for label, line in repeated), encoding="utf-8")
    with silent():
        trained = floret.train_supervised(
            str(text),
            lr=params.learning_rate,
            epoch=params.epochs,
            dim=params.dim,
            wordNgrams=params.word_ngrams,
            bucket=params.buckets,
            minCount=params.min_count,
            loss="softmax",
            thread=1,
            seed=params.seed,
            verbose=0,
        )
        trained.save_model(str(model))
    return model.read_bytes()


def as_fasttext(data: bytes) -> bytes:
    """floret's model file as fastText's: without the two values that only floret writes.

    Raises ValueError for another version of the format, and for a model in floret's own mode.
    """
    magic, version, *arguments = HEADER.unpack_from(data)
    if (magic, version, arguments[-2:]) != (MAGIC, VERSION, [FASTTEXT_MODE, ONE_HASH]):
        raise ValueError(f"floret: a model file with the header {magic}, {version}, {arguments} given, not as expected")
    return data[: HEADER.size - EXTRA.size] + data[HEADER.size :]


def measure(model: FastTextModel, lines: Sequence[tuple[str, str]], trained: int) -> QualityMetrics:
    """Metrics on labelled lines. AUC: share of (good, bad) pairs in the right order, ties half (Mann and Whitney)."""
    scores = sorted((score_line(line, model, HIGH_QUALITY), label == HIGH_QUALITY) for label, line in lines)
    good = sum(is_good for _, is_good in scores)
    bad = len(scores) - good
    if not good or not bad:
        return QualityMetrics(trained, len(lines), None, None, None, None)
    hits = sum(is_good for score, is_good in scores if score >= 0.5)
    kept = sum(score >= 0.5 for score, _ in scores)
    correct = hits + bad - (kept - hits)
    auc = _rank_sum(scores) - good * (good + 1) / 2
    return QualityMetrics(
        trained, len(lines), correct / len(lines), hits / kept if kept else 0.0, hits / good, auc / (good * bad)
    )


def _rank_sum(scores: Sequence[tuple[float, bool]]) -> float:
    """Sum of the ranks (from 1, mean rank for ties) of the good ones among the sorted scores."""
    total, start = 0.0, 0
    while start < len(scores):
        stop = start
        while stop < len(scores) and scores[stop][0] == scores[start][0]:
            stop += 1
        total += sum(is_good for _, is_good in scores[start:stop]) * (start + 1 + stop) / 2
        start = stop
    return total


@contextmanager
def silent() -> Iterator[None]:
    """Silence the process's standard output and error: floret's C++ prints progress even with verbose=0."""
    saved = [os.dup(1), os.dup(2)]
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, 1)
        os.dup2(null, 2)
        yield
    finally:
        for descriptor, original in zip(saved, (1, 2), strict=True):
            os.dup2(descriptor, original)
            os.close(descriptor)
        os.close(null)
