"""What a learned vocabulary is worth: compression, unknowns, and which source its entries are of."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from refinery.transforms.core.document import text_bytes
from refinery.transforms.tokenize.tokenizer import Tokenizer

COLUMNS = ("source", "bytes", "held out", "bytes/token", "unknown", "entries used", "mostly its", "only its")


@dataclass(frozen=True)
class SourceMetrics:
    """One source. bytes_per_token, unknown (share of the tokens that are the unknown token or stand for a single byte
    outside ASCII): on its texts that were held out, on those learned from if there are none; None without text.

    used: entries that occur in what was learned from it. most: of these, those that occur nowhere more often, a draw
    going to the first source. only: those that occur nowhere else.
    """

    source: str
    trained_bytes: int
    held_out_bytes: int
    bytes_per_token: float | None
    unknown: float | None
    used: int
    most: int
    only: int


@dataclass(frozen=True)
class TokenizerMetrics:
    """Size of the vocabulary, UTF-8 bytes per token on texts that were held out (None if there were none), how many of
    its entries occur in no text that it was learned from, and what holds of each source."""

    vocab_size: int
    trained_bytes: int
    held_out_bytes: int
    bytes_per_token: float | None
    unused: int = 0
    sources: tuple[SourceMetrics, ...] = ()

    def __str__(self) -> str:
        compression = "too little text to measure compression"
        if self.bytes_per_token is not None:
            compression = f"{self.bytes_per_token:.2f} bytes per token on {self.held_out_bytes:,} bytes held out"
        return (
            f"{self.vocab_size:,} entries from {self.trained_bytes:,} bytes of text, {self.unused:,} of them unused; "
            f"{compression}"
        )

    def table(self) -> Iterator[str]:
        """A line per source below a headline."""
        width = max((len(own.source) for own in self.sources), default=0)
        if not width:
            return
        width = max(width, len(COLUMNS[0]))
        yield "  ".join([COLUMNS[0].ljust(width), *(name.rjust(12) for name in COLUMNS[1:])])
        for own in self.sources:
            ratio = "-" if own.bytes_per_token is None else f"{own.bytes_per_token:.2f}"
            unknown = "-" if own.unknown is None else f"{own.unknown:.3%}"
            numbers = [f"{number:,}" for number in (own.used, own.most, own.only)]
            cells = [f"{own.trained_bytes:,}", f"{own.held_out_bytes:,}", ratio, unknown, *numbers]
            yield "  ".join([own.source.ljust(width), *(cell.rjust(12) for cell in cells)])


def measure(
    tokenizer: Tokenizer, train: Mapping[str, Sequence[str]], held_out: Mapping[str, Sequence[str]]
) -> TokenizerMetrics:
    """Metrics of a tokenizer by source. Cost: it encodes every text once."""
    learned = np.array([counts(tokenizer, texts) for texts in train.values()])
    unseen = np.array([counts(tokenizer, held_out[name]) for name in train])
    poor = poor_entries(tokenizer)
    used = learned > 0
    first = learned.argmax(axis=0)  # of equals the first
    sources = []
    for row, (name, texts) in enumerate(train.items()):
        measured, size = (unseen[row], _total(held_out[name])) if held_out[name] else (learned[row], _total(texts))
        tokens = int(measured.sum())
        sources.append(
            SourceMetrics(
                source=name,
                trained_bytes=_total(texts),
                held_out_bytes=_total(held_out[name]),
                bytes_per_token=size / tokens if tokens else None,
                unknown=int(measured[poor].sum()) / tokens if tokens else None,
                used=int(used[row].sum()),
                most=int((used[row] & (first == row)).sum()),
                only=int((used[row] & (used.sum(axis=0) == 1)).sum()),
            )
        )
    apart = sum(own.held_out_bytes for own in sources)
    tokens = int(unseen.sum())
    return TokenizerMetrics(
        vocab_size=tokenizer.vocab_size,
        trained_bytes=sum(own.trained_bytes for own in sources),
        held_out_bytes=apart,
        bytes_per_token=apart / tokens if tokens else None,
        unused=int((~used.any(axis=0)).sum()),
        sources=tuple(sources),
    )


def counts(tokenizer: Tokenizer, texts: Iterable[str]) -> npt.NDArray[np.int64]:
    """How often each id occurs, shape (vocab_size,)."""
    found = np.zeros(tokenizer.vocab_size, dtype=np.int64)
    for text in texts:
        found += np.bincount(tokenizer.encode(text), minlength=tokenizer.vocab_size)
    return found


def poor_entries(tokenizer: Tokenizer) -> npt.NDArray[np.bool_]:
    """Which ids say nothing of a character: the unknown token, and single bytes outside ASCII; shape (vocab_size,)."""
    poor = np.zeros(tokenizer.vocab_size, dtype=np.bool_)
    for id_ in {tokenizer.token_id(name) for name in ("<unk>", "[UNK]", *(f"<0x{byte:02X}>" for byte in range(256)))}:
        if id_ is not None:
            poor[id_] = True
    if tokenizer.engine == "byte-level-bpe":
        for id_ in range(tokenizer.vocab_size):
            poor[id_] = tokenizer.decode([id_]) == "\ufffd"
    return poor


def _total(texts: Iterable[str]) -> int:
    return sum(map(text_bytes, texts))
