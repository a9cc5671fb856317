"""fastText's supervised training, by floret: labelled lines in, the bytes of a model that fastText reads out.

floret (a fork of fastText) trains, `refinery.transforms.filter.fasttext_model` reads: fasttext itself would overwrite
the module of fasttext-predict. One thread trains, so the same lines give the same bytes.
"""

import os
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import floret

from refinery.transforms.core.document import hash64

# fastText's model file, version 12: magic, version, eleven int32 of arguments, then in floret alone two more (mode,
# hash count), then the learning-rate update interval. Source: floret 0.10.5, src/args.cc (Args::save), src/fasttext.cc.
HEADER = struct.Struct("<2i11i2i")
MAGIC, VERSION = 793_712_314, 12
FASTTEXT_MODE, ONE_HASH = 1, 1
EXTRA = struct.Struct("<2i")

MOST_COPIES = 100

Line = tuple[str, str]  # label, line as the classifier reads it


@dataclass(frozen=True)
class FastTextParams:
    """Settings of fastText's supervised training.

    seed: of the held-out split and of the model. held_out: share of the texts, by hash, that is used for metrics only.
    balance: repeat the texts of the smaller class until both weigh the same, so 0.5 is a sensible threshold. dim:
    width of the vectors. word_ngrams: longest n-gram of words used as a feature. buckets: rows of the table that
    n-grams are hashed into; the model takes 4 * dim * (words + buckets) bytes. quantise: product quantisation (Joulin
    et al. 2016b, "FastText.zip"), 2 dimensions to a byte, norms apart: about a sixth of the size
    (the words themselves stay as they are).
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
    max_chars: int = 10_000
    quantise: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.held_out < 1:
            raise ValueError(f"held_out: {self.held_out} given, a number from 0 to below 1 is allowed")
        if not self.learning_rate > 0:
            raise ValueError(f"learning_rate: {self.learning_rate} given, more than 0 is allowed")
        for name in ("epochs", "dim", "word_ngrams", "buckets", "min_count", "max_chars"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}: {getattr(self, name)} given, 1 or more is allowed")


def is_held_out(line: str, params: FastTextParams) -> bool:
    """Whether a line measures the model instead of training it."""
    return hash64("held-out", params.seed, line) < params.held_out * 2**64


def balanced(lines: Sequence[Line], seed: int) -> list[Line]:
    """`lines` with every line of the smaller class repeated, spread by hash; at most a hundred times."""
    sizes = Counter(label for label, _ in lines)
    copies = {label: min(MOST_COPIES, max(1, round(max(sizes.values()) / sizes[label]))) for label in sizes}
    keyed = [(hash64("copy", seed, copy, line), label, line) for label, line in lines for copy in range(copies[label])]
    return [(label, line) for _, label, line in sorted(keyed)]


def train_fasttext(
    lines: Sequence[Line], scratch: Path, params: FastTextParams, letters: tuple[int, int] = (0, 0)
) -> bytes:
    """The bytes of a model in fastText's format. Cost: about 20 MB/s and epoch; scratch: an empty folder.

    letters: shortest and longest n-grams of letters that are features, too; (0, 0): none.
    """
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
            minn=letters[0],
            maxn=letters[1],
            bucket=params.buckets,
            minCount=params.min_count,
            loss="softmax",
            thread=1,
            seed=params.seed,
            verbose=0,
        )
        if params.quantise:
            trained.quantize(qnorm=True)
        trained.save_model(str(model))
    return as_fasttext(model.read_bytes())


def as_fasttext(data: bytes) -> bytes:
    """floret's model file as fastText's: without the two values that only floret writes.

    Raises ValueError for another version of the format, and for a model in floret's own mode.
    """
    magic, version, *arguments = HEADER.unpack_from(data)
    if (magic, version, arguments[-2:]) != (MAGIC, VERSION, [FASTTEXT_MODE, ONE_HASH]):
        raise ValueError(f"floret: a model file with the header {magic}, {version}, {arguments} given, not as expected")
    return data[: HEADER.size - EXTRA.size] + data[HEADER.size :]


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
