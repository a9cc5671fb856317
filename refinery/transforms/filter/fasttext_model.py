"""Supervised fastText models (Joulin et al. 2016): language identification and quality classifiers.

The kernel `classifier` predicts, about ten times as fast as fastText and with the same labels and probabilities to the
bit. A sound model beyond its limits (docs/kernels.md) goes to fastText itself.
"""

from functools import lru_cache
from pathlib import Path
from typing import Protocol

import fasttext

from refinery.transforms.core.resources import local_copy
from refinery.transforms.native.classifier import Classifier

LABEL = "__label__"  # what every label begins with


class FastTextModel(Protocol):
    """What a loaded model offers; the kernel's Classifier is one."""

    @property
    def labels(self) -> tuple[str, ...]:
        """All labels, with `LABEL` before them."""
        ...

    def predict(self, text: str, k: int, threshold: float, errors: str = "strict", /) -> list[tuple[float, str]]:
        """(probability, label) of a line of text, the best `k` first (-1: all), none below `threshold`.

        [] for a text of which the model knows nothing.
        """
        ...


class OriginalModel:
    """A model that fastText itself holds."""

    def __init__(self, path: str) -> None:
        self._model = fasttext.load_model(path).f
        # Below a threshold of -1 nothing is left out; "\n" is a word of every model that fastText trains.
        self.labels = tuple(label for _, label in self.predict("\n", -1, -1.0))

    def predict(self, text: str, k: int, threshold: float, errors: str = "strict", /) -> list[tuple[float, str]]:
        """As `FastTextModel.predict`."""
        found: list[tuple[float, str]] = self._model.predict(text, k, threshold, errors)
        return found


def open_model(path: Path) -> FastTextModel:
    """The model in a local file. Raises ValueError for a damaged or foreign file, OSError for one that cannot be read.

    Cost: 10 ms for lid.176.ftz; memory of the file and of its matrices while it loads, then of the matrices alone.
    """
    try:
        return Classifier(path.read_bytes())
    except NotImplementedError:  # every byte of it was checked: fastText checks none
        return OriginalModel(str(path))


@lru_cache(maxsize=4)
def load_model(path: str) -> FastTextModel:
    """The model at `path`, local, `gs://` or `s3://`, once per process. Raises the same errors as `open_model`."""
    with local_copy(path) as local:
        return open_model(local)
