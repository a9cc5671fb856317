"""Train a quality classifier on good and bad texts: a fastText model that `refinery.transforms.filter.quality` reads.

Beside the model go its figures on held-out texts (FILE.json) and a model card (FILE.md). The steps are importable: a
classifier of another kind has other labels and another card.
"""

import hashlib
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from refinery.pipelines.progress.output import current
from refinery.pipelines.training.fasttext_training import (
    FastTextParams,
    Line,
    is_held_out,
    train_fasttext,
)
from refinery.pipelines.training.held_out import QualityMetrics, as_json, measure, model_card
from refinery.pipelines.training.new_file import check_new, write_new
from refinery.transforms.core.document import hash64
from refinery.transforms.filter.fasttext_model import LABEL, open_model
from refinery.transforms.filter.quality import HIGH_QUALITY, LOW_QUALITY, QualityParams, classifier_text

__all__ = [
    "QualityMetrics",
    "TrainQualityParams",
    "check_outputs",
    "labelled_lines",
    "labelled_lines_of",
    "measure",
    "split_lines",
    "train_classifier",
    "train_quality",
]

USE = (
    "A fastText classifier of web text for the stage `quality`: its score is the probability that a text resembles the "
    "positive texts below rather than the negative ones. It knows nothing of truth, safety or rights, and prefers the "
    "topics, dialects and registers of its positives (Dodge et al. 2021)."
)


@dataclass(frozen=True)
class TrainQualityParams(FastTextParams):
    """Settings of the training; max_chars must equal that of QualityParams."""

    max_chars: int = QualityParams.model_fields["max_chars"].default


def train_quality(
    positive: Iterable[str],
    negative: Iterable[str],
    output: str,
    params: TrainQualityParams,
    overwrite: bool = False,
    inputs: Mapping[str, Sequence[str]] | None = None,
) -> QualityMetrics:
    """Train on `positive` and `negative` texts, write the model to `output` (local, gs:// or s3://) with its report
    and card, print and return metrics. inputs: what the card says the texts were read from.

    The same texts in any order give the same bytes: lines are sorted by hash, exact copies count once, and one thread
    trains. Cost: about 20 MB/s and epoch; all texts up to max_chars in memory.

    Raises ValueError for a class without texts, for a text of both classes and, without overwrite, for an `output` that
    exists; StorageConflict where one has appeared since.
    """
    if not overwrite:
        check_outputs(output)
    lines = labelled_lines(positive, negative, params)
    facts = {f"{name}_files": " ".join(globs) for name, globs in (inputs or {}).items()}
    return train_classifier(lines, HIGH_QUALITY, output, params, overwrite, "Quality classifier", USE, facts)


def train_classifier(
    lines: Sequence[Line],
    positive: str,
    output: str,
    params: FastTextParams,
    overwrite: bool,
    title: str,
    use: str,
    facts: Mapping[str, Any],
) -> QualityMetrics:
    """Train on labelled lines in a fixed order, measure the file that is written on those held out, write model, report
    and card. positive: the label that is measured. Raises the same errors as `train_quality`."""
    train, test = split_lines(lines, params)
    with tempfile.TemporaryDirectory(prefix="refinery-classifier-") as scratch:
        model = Path(scratch) / "model"
        model.write_bytes(train_fasttext(train, Path(scratch), params))
        metrics = measure(open_model(model), test, len(train), positive)
        data = model.read_bytes()
    by_label = (label for label, _ in lines)
    about = {
        "label": positive,
        "size_bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        **{f"texts_{label.removeprefix(LABEL)}": texts for label, texts in sorted(Counter(by_label).items())},
        **facts,
        **asdict(params),
    }
    write_new(output, data, overwrite)
    write_new(f"{output}.json", as_json(metrics, about), overwrite)
    write_new(f"{output}.md", model_card(title, metrics, about, use).encode(), overwrite)
    current().result(f"{output}: {len(data):,} bytes, {metrics}")
    return metrics


def check_outputs(output: str) -> None:
    """Raises ValueError where the model, its report or its card is there already."""
    for path in (output, f"{output}.json", f"{output}.md"):
        check_new(path)


def split_lines(lines: Sequence[Line], params: FastTextParams) -> tuple[Sequence[Line], Sequence[Line]]:
    """(to train on, held out); all and none where the split would leave none of a class to train on."""
    train = [line for line in lines if not is_held_out(line[1], params)]
    if {line[0] for line in train} != {line[0] for line in lines}:
        return lines, []
    return train, [line for line in lines if is_held_out(line[1], params)]


def labelled_lines(positive: Iterable[str], negative: Iterable[str], params: FastTextParams) -> list[Line]:
    """(label, line as the classifier reads it), each once, in hash order. Raises ValueError as `train_quality`."""
    return labelled_lines_of({"positive": (HIGH_QUALITY, positive), "negative": (LOW_QUALITY, negative)}, params)


def labelled_lines_of(classes: Mapping[str, tuple[str, Iterable[str]]], params: FastTextParams) -> list[Line]:
    """As `labelled_lines`, of classes: name in errors -> (label, texts). The first one's texts may be in no other."""
    found: dict[str, tuple[str, set[str]]] = {}
    for name, (label, texts) in classes.items():
        found[name] = label, {line for text in texts if (line := classifier_text(text, params.max_chars))}
        if not found[name][1]:
            raise ValueError(f"{name}: no text given, at least one that is not empty is needed")
    (first, (_, lines)), *others = found.items()
    for other, (_, more) in others:
        if both := lines & more:
            raise ValueError(f"{first}: {len(both)} texts given that are also {other} ones, e.g. {min(both)[:60]!r}")
    labelled = [(label, line) for label, lines in found.values() for line in lines]
    return sorted(labelled, key=lambda line: (hash64("quality", params.seed, line[1]), line))
