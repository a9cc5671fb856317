"""Train a BPE tokenizer on texts: byte-level as Hugging Face tokenizer.json, or SentencePiece as .model."""

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import sentencepiece
from tokenizers import Tokenizer as Library
from tokenizers import decoders, models, pre_tokenizers, trainers

from refinery.loader.storage.open_store import open_store
from refinery.transforms.core.document import hash64, text_bytes
from refinery.transforms.tokenize.byte_level_bpe import byte_alphabet
from refinery.transforms.tokenize.sentencepiece_model import SentencePieceTokenizer
from refinery.transforms.tokenize.tokenizer import Tokenizer
from refinery.transforms.tokenize.tokenizer_json import load_tokenizer_json

END_OF_TEXT = "<|endoftext|>"
SMALLEST = 300  # 256 bytes, the special tokens, and some merges
LONGEST_RUN = 1000  # characters; a trainer's cost grows with the square of a word, so longer ones are cut
SENTENCE_CHARS = 1000  # SentencePiece skips sentences of more than 4,192 bytes
THREADS = 4  # SentencePiece writes this into the model, so it must not depend on the machine


@dataclass(frozen=True)
class TrainTokenizerParams:
    """vocab_size: entries, special tokens included. seed, held_out: choose the texts used only to measure
    compression.
    """

    vocab_size: int = 32_000
    seed: int = 1
    held_out: float = 0.05

    def __post_init__(self) -> None:
        if self.vocab_size < SMALLEST:
            raise ValueError(f"vocab_size: {self.vocab_size} given, {SMALLEST} or more is allowed")
        if not 0 <= self.held_out < 1:
            raise ValueError(f"held_out: {self.held_out} given, a number from 0 to below 1 is allowed")


@dataclass(frozen=True)
class TokenizerMetrics:
    """Size of the vocabulary, and UTF-8 bytes per token on texts that were held out (None if there were none)."""

    vocab_size: int
    trained_bytes: int
    held_out_bytes: int
    bytes_per_token: float | None

    def __str__(self) -> str:
        compression = "too little text to measure compression"
        if self.bytes_per_token is not None:
            compression = f"{self.bytes_per_token:.2f} bytes per token on {self.held_out_bytes:,} bytes held out"
        return f"{self.vocab_size:,} entries from {self.trained_bytes:,} bytes of text; {compression}"


def train_tokenizer(texts: Iterable[str], output: str, params: TrainTokenizerParams) -> TokenizerMetrics:
    """Train on `texts`, write `output` (.json: byte-level BPE, .model: SentencePiece; local or gs://), print metrics.

    The same texts in any order give the same bytes. Cost: about 5 MB/s, all texts in memory.

    Raises ValueError for another file extension of `output`, without text, and where the text is too short for a
    SentencePiece vocabulary of that size. (A byte-level one just gets smaller.)
    """
    if not output.endswith((".json", ".model")):
        raise ValueError(f"output: {output!r} given, a name ending in .json or .model is allowed")
    ordered = sorted((text for text in texts if text), key=lambda text: (hash64("tokenizer", params.seed, text), text))
    if not ordered:
        raise ValueError("texts: none given, at least one that is not empty is needed")
    chosen = [hash64("held-out", params.seed, text) < params.held_out * 2**64 for text in ordered]
    held_out = [text for text, out in zip(ordered, chosen, strict=True) if out]
    train = [text for text, out in zip(ordered, chosen, strict=True) if not out] or ordered
    data = train_byte_level(train, params) if output.endswith(".json") else train_sentencepiece(train, params)
    tokenizer = load_tokenizer_json(data) if output.endswith(".json") else SentencePieceTokenizer(data)
    folder, _, name = output.rpartition("/")
    open_store(folder or ("/" if output.startswith("/") else ".")).replace(name, data)
    metrics = TokenizerMetrics(tokenizer.vocab_size, _total(train), _total(held_out), compression(tokenizer, held_out))
    print(f"{output}: {metrics}")
    if metrics.vocab_size < params.vocab_size:
        print(f"fewer than the requested {params.vocab_size:,} entries: the sample is too small, give more text")
    return metrics


def train_byte_level(texts: Sequence[str], params: TrainTokenizerParams) -> bytes:
    """tokenizer.json of a byte-level BPE with GPT-2's splitting, all 256 bytes and the special token <|endoftext|>."""
    library = Library(models.BPE())
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    library.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=params.vocab_size,
        min_frequency=2,
        special_tokens=[END_OF_TEXT],
        initial_alphabet=sorted(byte_alphabet()),
        show_progress=False,
    )
    library.train_from_iterator(map(cut_runs, texts), trainer)
    return str(library.to_str(pretty=True)).encode()


def train_sentencepiece(texts: Sequence[str], params: TrainTokenizerParams) -> bytes:
    """A SentencePiece BPE model: bytes for unknown characters, no normalisation, no added or removed spaces."""
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=sentences(texts),
            model_writer=model,
            model_type="bpe",
            vocab_size=params.vocab_size,
            byte_fallback=True,
            normalization_rule_name="identity",
            add_dummy_prefix=False,
            remove_extra_whitespaces=False,
            allow_whitespace_only_pieces=True,
            character_coverage=0.9999,
            num_threads=THREADS,
            minloglevel=2,
        )
    except RuntimeError as error:
        reason = " ".join(f"{error}".split())
        raise ValueError(f"vocab_size: {params.vocab_size} given, SentencePiece refuses it ({reason[-200:]})") from None
    return model.getvalue()


def sentences(texts: Iterable[str]) -> Iterator[str]:
    """Lines of the texts, long ones in pieces, without NUL, which SentencePiece cannot handle."""
    for text in texts:
        for line in text.replace("\0", " ").split("\n"):
            for start in range(0, len(line), SENTENCE_CHARS):
                yield line[start : start + SENTENCE_CHARS]


def cut_runs(text: str) -> str:
    """The text with a line break behind every 1,000 characters without a space, and long runs of spaces shortened."""
    text = re.sub(rf"(\S{{{LONGEST_RUN}}})(?=\S)", r"\1\n", text)
    return re.sub(rf"(\s{{{LONGEST_RUN}}})\s+", r"\1", text)


def compression(tokenizer: Tokenizer, texts: Sequence[str]) -> float | None:
    """UTF-8 bytes per token over all texts; None without text."""
    tokens = sum(len(tokenizer.encode(text)) for text in texts)
    return _total(texts) / tokens if tokens else None


def _total(texts: Iterable[str]) -> int:
    return sum(map(text_bytes, texts))
