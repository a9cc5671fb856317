"""Train a BPE tokenizer on texts: byte-level as Hugging Face tokenizer.json, or SentencePiece as .model."""

import io
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sentencepiece
from tokenizers import Tokenizer as Library
from tokenizers import decoders, models, pre_tokenizers, trainers

from refinery.pipelines.training.continue_bpe import check_base, continue_byte_level
from refinery.pipelines.training.new_file import check_new, write_new
from refinery.pipelines.training.vocabulary_report import TokenizerMetrics, measure
from refinery.transforms.core.document import hash64, text_bytes
from refinery.transforms.core.resources import read_resource
from refinery.transforms.tokenize.byte_level_bpe import byte_alphabet
from refinery.transforms.tokenize.load_tokenizer import load_tokenizer_bytes

END_OF_TEXT = "<|endoftext|>"
SMALLEST = 300  # 256 bytes, the special tokens, and some merges
LARGEST = 2_000_000  # the largest published vocabulary has 262,144 entries
LONGEST_RUN = 1000  # characters; a trainer's cost grows with the square of a word, so longer ones are cut
SENTENCE_CHARS = 1000  # SentencePiece skips sentences of more than 4,192 bytes
THREADS = 4  # SentencePiece writes this into the model, so it must not depend on the machine


@dataclass(frozen=True)
class TrainTokenizerParams:
    """vocab_size: entries, special tokens included. seed, held_out: choose the texts used only to measure
    compression. special_tokens: names that no text can produce, the first ids; <|endoftext|> is always one.
    base: a byte-level tokenizer.json whose entries keep their ids; merges and special tokens are added to it.
    """

    vocab_size: int = 32_000
    seed: int = 1
    held_out: float = 0.05
    special_tokens: tuple[str, ...] = ()
    base: str = ""

    def __post_init__(self) -> None:
        if not SMALLEST <= self.vocab_size <= LARGEST:
            raise ValueError(f"vocab_size: {self.vocab_size} given, {SMALLEST} or more is allowed, up to {LARGEST}")
        if not 0 <= self.held_out < 1:
            raise ValueError(f"held_out: {self.held_out} given, a number from 0 to below 1 is allowed")
        names = self.special_tokens
        for name in names:
            if not name.strip() or not name.isprintable() or "▁" in name or len(name) > 100:
                raise ValueError(f"special_tokens: {name!r} given, up to 100 printable characters are allowed")
        if len(set(names)) != len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"special_tokens: {twice!r} given twice, every name once is allowed")
        if 256 + len(names) >= self.vocab_size:
            raise ValueError(f"special_tokens: {len(names)} given, fewer than vocab_size - 256 are allowed")


def check_training(output: str, params: TrainTokenizerParams, overwrite: bool = False) -> None:
    """What can be said before any text is read.

    Raises ValueError, one line, for another file extension of `output`, a file that is there already, and a base that
    cannot be read or continued.
    """
    if not output.endswith((".json", ".model")):
        raise ValueError(f"output: {output!r} given, a name ending in .json or .model is allowed")
    if not overwrite:
        check_new(output)
    if params.base:
        if not output.endswith(".json"):
            raise ValueError(f"output: {output!r} given, a continued tokenizer is a tokenizer.json")
        check_base(_read_base(params.base), params.vocab_size, params.special_tokens)


def train_tokenizer(
    texts: Iterable[str] | Mapping[str, Iterable[str]],
    output: str,
    params: TrainTokenizerParams,
    overwrite: bool = False,
    say: Callable[[str], None] = print,
    progress: bool = False,
) -> TokenizerMetrics:
    """Train on `texts`, write `output` (.json: byte-level BPE, .model: SentencePiece; local, gs:// or s3://), say
    metrics.

    texts: of one source, or source -> texts. The same texts in any order give the same bytes. Cost: about 5 MB/s, all
    texts in memory. progress: the trainer's own bars on standard error.

    Raises ValueError as `check_training`, without text, and where the text is too short for a SentencePiece vocabulary
    of that size. (A byte-level one just gets smaller.) StorageConflict where another file of that name has appeared.
    """
    check_training(output, params, overwrite)
    sources = texts if isinstance(texts, Mapping) else {"": texts}
    chosen = {name: ordered(own, params.seed) for name, own in sources.items()}
    if not any(chosen.values()):
        raise ValueError("texts: none given, at least one that is not empty is needed")
    held_out: dict[str, list[str]] = {name: hold_out(own, params) for name, own in chosen.items()}
    apart = {name: set(own) for name, own in held_out.items()}
    train = {name: [text for text in own if text not in apart[name]] for name, own in chosen.items()}
    if not any(train.values()):  # so few texts that none is left to learn from
        train, held_out = chosen, {name: [] for name in chosen}
    together = ordered((text for own in train.values() for text in own), params.seed)
    say(f"learning {params.vocab_size:,} entries from {sum(map(text_bytes, together)):,} bytes of text")
    data = _learn(together, output, params, progress)
    tokenizer = load_tokenizer_bytes(data, output)
    write_new(output, data, overwrite)
    metrics = measure(tokenizer, train, held_out)
    for line in (f"{output}: {metrics}", *metrics.table()):
        say(line)
    if metrics.vocab_size < params.vocab_size:
        say(f"fewer than the requested {params.vocab_size:,} entries: the sample is too small, give more text")
    if without := ", ".join(name for name, own in chosen.items() if name and not own):
        say(f"no text of {without} is left to learn from: `refinery try` shows what each rule measures")
    return metrics


def ordered(texts: Iterable[str], seed: int) -> list[str]:
    """The texts that are not empty, in the order of a hash."""
    return sorted((text for text in texts if text), key=lambda text: (hash64("tokenizer", seed, text), text))


def hold_out(texts: Sequence[str], params: TrainTokenizerParams) -> list[str]:
    """The share `held_out` of the texts, by hash, without those that would make it more than twice that share of the
    bytes: a single long text must not leave too little to learn from."""
    room = 2 * params.held_out * sum(map(text_bytes, texts))
    found = []
    for key, text in sorted((hash64("held-out", params.seed, text), text) for text in set(texts)):
        if key < params.held_out * 2**64 and text_bytes(text) <= room:
            room -= text_bytes(text)
            found.append(text)
    return found


def _learn(texts: Sequence[str], output: str, params: TrainTokenizerParams, progress: bool) -> bytes:
    if params.base:
        base = _read_base(params.base)
        return continue_byte_level(base, map(cut_runs, texts), params.vocab_size, params.special_tokens, progress)
    if output.endswith(".json"):
        return train_byte_level(texts, params, progress)
    return train_sentencepiece(texts, params)


def _read_base(path: str) -> dict[str, Any]:
    try:
        base = json.loads(read_resource(path))
    except OSError as error:
        raise ValueError(f"base: {path!r} given, which cannot be read ({error.strerror or error})") from None
    except (ValueError, RecursionError):
        base = None
    if not isinstance(base, dict) or not isinstance(base.get("model"), dict):
        raise ValueError(f"base: {path!r} given, a byte-level tokenizer.json is allowed") from None
    return base


def train_byte_level(texts: Sequence[str], params: TrainTokenizerParams, progress: bool = False) -> bytes:
    """tokenizer.json of a byte-level BPE with GPT-2's splitting, all 256 bytes and the special tokens."""
    library = Library(models.BPE())
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    library.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=params.vocab_size,
        min_frequency=2,
        special_tokens=[END_OF_TEXT, *(name for name in params.special_tokens if name != END_OF_TEXT)],
        initial_alphabet=sorted(byte_alphabet()),
        show_progress=progress and sys.stderr.isatty(),
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
            control_symbols=[name for name in params.special_tokens if name not in ("<s>", "</s>", "<unk>")],
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
