"""Train a toxicity classifier on labelled text: a small fastText model that the stage `toxicity` reads.

floret trains, as for the quality classifier; letters inside words are features too, since toxic text is misspelt. With
the defaults a model takes at most 1 MB and a few seconds per MB of text.
"""

import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from refinery.pipelines.progress.output import current
from refinery.pipelines.training.fasttext_training import FastTextParams, train_fasttext
from refinery.pipelines.training.new_file import check_new, write_new
from refinery.transforms.core.document import hash64
from refinery.transforms.filter.fasttext_model import FastTextModel, open_model
from refinery.transforms.filter.quality import score_line
from refinery.transforms.filter.toxic_sentences import CLEAN, TOXIC, toxic_line


@dataclass(frozen=True)
class TrainToxicityParams:
    """Settings of fastText's supervised training.

    seed: of the held-out split and of the model. held_out: share of the texts, by hash, that is used for metrics only.
    dim: width of the vectors. word_ngrams: longest n-gram of words. min_letters and max_letters: lengths of n-grams of
    letters used as features (0: none). buckets: rows of the table that all n-grams are hashed into; min_count: how
    often a word must occur. The model takes 4 * dim * (words + buckets) bytes.
    """

    seed: int = 1
    held_out: float = 0.1
    epochs: int = 15
    learning_rate: float = 0.2
    dim: int = 8
    word_ngrams: int = 3
    min_letters: int = 3
    max_letters: int = 5
    buckets: int = 20_000
    min_count: int = 2

    def __post_init__(self) -> None:
        if not 0 <= self.held_out < 1:
            raise ValueError(f"held_out: {self.held_out} given, a number from 0 to below 1 is allowed")
        if not self.learning_rate > 0:
            raise ValueError(f"learning_rate: {self.learning_rate} given, more than 0 is allowed")
        for name in ("epochs", "dim", "word_ngrams", "buckets", "min_count"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}: {getattr(self, name)} given, 1 or more is allowed")
        if not 0 <= self.min_letters <= self.max_letters:
            raise ValueError(f"min_letters: {self.min_letters} given, 0 to max_letters ({self.max_letters}) is allowed")


@dataclass(frozen=True)
class ToxicityMetrics:
    """The classifier on held-out texts at threshold 0.5; None where a class has none."""

    trained: int
    held_out: int
    precision: float | None
    recall: float | None
    false_alarms: float | None

    def __str__(self) -> str:
        if self.recall is None or self.precision is None or self.false_alarms is None:
            return f"trained on {self.trained:,} texts; too few held out to measure"
        return (
            f"trained on {self.trained:,} texts; on {self.held_out:,} held out: precision {self.precision:.3f}, "
            f"recall {self.recall:.3f}, {self.false_alarms:.3f} of the clean ones taken for toxic"
        )


def train_toxicity(
    toxic: Iterable[str], clean: Iterable[str], output: str, params: TrainToxicityParams, overwrite: bool = False
) -> ToxicityMetrics:
    """Train on `toxic` and `clean` texts, write the model to `output` (local, gs:// or s3://), print and return
    metrics.

    Texts should be as long as what is judged: sentences or comments. The same texts in any order give the same bytes.
    Cost: about 5 MB/s and epoch; all texts in memory. Raises ValueError for a class without texts, for a text of both
    classes and, without overwrite, for an `output` that exists; StorageConflict where one has appeared since.
    """
    if not overwrite:
        check_new(output)
    lines = toxicity_lines(toxic, clean, params.seed)
    limit = params.held_out * 2**64
    train = [line for line in lines if hash64("held-out", params.seed, line[1]) >= limit]
    test = [line for line in lines if hash64("held-out", params.seed, line[1]) < limit]
    if {label for label, _ in train} != {TOXIC, CLEAN}:
        train, test = lines, []  # so few texts that the split left none of a class
    data = train_model(train, params)
    with tempfile.TemporaryDirectory(prefix="refinery-toxicity-") as scratch:
        path = Path(scratch) / "model.bin"
        path.write_bytes(data)
        metrics = measure_classifier(open_model(path), test, len(train))
    write_new(output, data, overwrite)
    current().result(f"{output}: {metrics}")
    return metrics


def toxicity_lines(toxic: Iterable[str], clean: Iterable[str], seed: int) -> list[tuple[str, str]]:
    """(label, line as the classifier reads it), each once, in hash order. Raises ValueError as `train_toxicity`."""
    classes: dict[str, set[str]] = {}
    for name, label, texts in (("toxic", TOXIC, toxic), ("clean", CLEAN, clean)):
        classes[label] = {line for text in texts if (line := toxic_line(text))}
        if not classes[label]:
            raise ValueError(f"{name}: no text given, at least one that is not empty is needed")
    if both := classes[TOXIC] & classes[CLEAN]:
        raise ValueError(f"toxic: {len(both)} texts given that are also clean ones, e.g. {min(both)[:60]!r}")
    lines = [(label, line) for label, texts in classes.items() for line in texts]
    return sorted(lines, key=lambda line: (hash64("toxicity", seed, line[1]), line))


def train_model(lines: Sequence[tuple[str, str]], params: TrainToxicityParams) -> bytes:
    """The bytes of a fastText model, from labelled lines; lines of the smaller class are repeated."""
    shared = ("seed", "held_out", "epochs", "learning_rate", "dim", "word_ngrams", "buckets", "min_count")
    settings = FastTextParams(**{name: getattr(params, name) for name in shared})
    with tempfile.TemporaryDirectory(prefix="refinery-toxicity-") as scratch:
        return train_fasttext(lines, Path(scratch), settings, (params.min_letters, params.max_letters))


def measure_classifier(model: FastTextModel, lines: Sequence[tuple[str, str]], trained: int) -> ToxicityMetrics:
    """Metrics on labelled lines."""
    found = [(label == TOXIC, score_line(line, model, TOXIC) >= 0.5) for label, line in lines]
    toxic, caught = sum(label for label, _ in found), sum(score for _, score in found)
    right = sum(label and score for label, score in found)
    if not toxic or toxic == len(found):
        return ToxicityMetrics(trained, len(found), None, None, None)
    alarms = (caught - right) / (len(found) - toxic)
    return ToxicityMetrics(trained, len(found), right / caught if caught else 0.0, right / toxic, alarms)
