"""Engines beside each other on the same texts with the same tokenizers, in one run, one thread: equal ids, and MB/s.

    python -m benchmarks.encoding --input docs.jsonl.gz --tokenizer llama3.json --tokenizer o200k_base.tiktoken …
        [--trained] [--cut 8000] [--megabytes 60] [--slow-megabytes 8] [--repeat 2]

With --trained, and without any --tokenizer, a byte-level BPE and SentencePiece models of 16,000 entries are trained on
a tenth of the texts (not timed). The engines: ours, Hugging Face's tokenizers (byte-level BPE), tiktoken (where one
regular expression cuts the text and ids are ranks), SentencePiece (for a .model), and gigatoken where it is installed
(the extra [bench]). Half the texts come first, untimed, to fill caches as in a long run; then the other
half, which is new to all of them, is timed in processor seconds. The best of the repetitions counts, each with engines
loaded again; the seconds that loading takes are in the table, too. Engines that do some MB/s get fewer texts, evenly
spread over the same ones (--slow-megabytes). Ids are compared, on every text that both got, with those of the
reference, the library that the file is of; for other libraries the number of texts with other ids is printed, for ours
one ends the run.
"""

import argparse
import gzip
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import sentencepiece

from refinery.pipelines.training.train_tokenizer import TrainTokenizerParams, train_tokenizer
from refinery.transforms.tokenize.byte_level_bpe import PATTERNS, recognise, token_bytes
from refinery.transforms.tokenize.load_tokenizer import load_tokenizer
from refinery.transforms.tokenize.tiktoken_file import tokenizer_json as from_ranks
from refinery.transforms.tokenize.tokenizer_json import HuggingFaceTokenizer, merge_pairs

Encode = Callable[[str], Any]


def texts_of(path: Path, cut: int, size: int) -> list[str]:
    """Consecutive pieces of at most `cut` characters, spread evenly over the file, up to about `size` bytes."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as lines:
        texts = [json.loads(line)["text"] for line in lines]
    pieces = [text[start : start + cut] for text in texts for start in range(0, len(text), cut)]
    total = sum(len(piece.encode()) for piece in pieces)
    return pieces[:: max(1, total // size)]


def engines(path: str) -> Iterator[tuple[str, bool, Callable[[], Encode]]]:
    """(name, whether it is fast, what loads it) of every engine for a file, the reference first, then ours."""
    data = Path(path).read_bytes()
    spec: dict[str, Any] | None = None
    if path.endswith(".model"):
        yield "SentencePiece", False, lambda: _sentencepiece(data)
        yield "ours", True, lambda: _ours(path)
    else:
        parsed = spec = from_ranks(data, path) if path.endswith(".tiktoken") else json.loads(data)
        split = as_ranks(parsed)
        libraries: list[tuple[str, bool, Callable[[], Encode]]] = [
            ("Hugging Face", False, lambda: HuggingFaceTokenizer(parsed).encode)
        ]
        if split and find_spec("tiktoken"):
            libraries.append(("tiktoken", False, lambda: _tiktoken(*split)))
        if path.endswith(".tiktoken"):
            libraries.reverse()
        yield libraries[0]
        yield "ours", True, lambda: _ours(path)
        yield from libraries[1:]
    if find_spec("gigatoken"):
        yield "gigatoken", True, lambda: _gigatoken(data, spec)


def as_ranks(spec: dict[str, Any]) -> tuple[str, dict[bytes, int]] | None:
    """The regular expression and ranks for tiktoken, None where it cannot do what the file says."""
    ids = [spec["model"]["vocab"][left + right] for left, right in merge_pairs(spec["model"])]
    name = recognise(spec)
    if name is None or name == "deepseek" or ids != sorted(ids):
        return None
    added = {token["content"] for token in spec["added_tokens"]}
    ranks = {token_bytes(token): id_ for token, id_ in spec["model"]["vocab"].items() if token not in added}
    pattern = next(pattern for pattern, of in PATTERNS.items() if of == name)
    return pattern.replace(r"\z", "$"), ranks


def _ours(path: str) -> Encode:
    load_tokenizer.cache_clear()
    return load_tokenizer(path).encode


def _sentencepiece(data: bytes) -> Encode:
    model = sentencepiece.SentencePieceProcessor(model_proto=data)
    return model.encode_as_numpy


def _tiktoken(pattern: str, ranks: dict[bytes, int]) -> Encode:
    import tiktoken

    return tiktoken.Encoding("ranks", pat_str=pattern, mergeable_ranks=ranks, special_tokens={}).encode_ordinary


def _gigatoken(data: bytes, spec: dict[str, Any] | None) -> Encode:
    from gigatoken import Tokenizer

    if spec is None:
        encode: Encode = Tokenizer.from_sentencepiece(data).encode
    else:
        encode = Tokenizer.from_json(json.dumps({**spec, "added_tokens": [], "post_processor": None})).encode
    return encode


class Measured(NamedTuple):
    """Best processor seconds of loading and of encoding the second half, and the ids of the second half."""

    load: float
    encode: float
    ids: list[Any]


def measure(load: Callable[[], Encode], first: Sequence[str], second: Sequence[str], repeat: int) -> Measured:
    """Encode the first texts, then time the second."""
    best, loading, ids = float("inf"), float("inf"), []
    for _ in range(repeat):
        start = time.process_time()
        encode = load()
        loading = min(loading, time.process_time() - start)
        for text in first:
            encode(text)
        start = time.process_time()
        ids = [encode(text) for text in second]
        best = min(best, time.process_time() - start)
    return Measured(loading, best, ids)


def compare(path: str, texts: Sequence[str], every: int, repeat: int) -> Iterator[str]:
    """A row of the table for each engine; slow ones get each `every`-th text of both halves.

    Ends the program if our ids differ from the reference's.
    """
    expected: list[Any] = []
    slowest = 0.0
    label = Path(path).name
    for name, fast, load in engines(path):
        first, second = (half if fast else half[::every] for half in (texts[::2], texts[1::2]))
        size = sum(len(text.encode()) for text in second) / 1e6
        try:
            found = measure(load, first, second, repeat)
        except (ValueError, RuntimeError) as error:  # a model that the engine does not run
            yield f"| {label} | {name} | none: {' '.join(str(error).split())[:60]} | | | |"
            continue
        ids = found.ids[::every] if fast else found.ids
        speed = size / found.encode
        if not expected:
            expected, slowest = ids, speed
        different = sum(not np.array_equal(a, b) for a, b in zip(ids, expected, strict=True))
        if name == "ours":
            name = f"ours ({load_tokenizer(path).engine})"
            if different:
                sys.exit(f"{path}: {different} of {len(ids)} texts have other ids")
        equal = "equal" if not different else f"{different} of {len(ids)} texts differ"
        yield f"| {label} | {name} | {equal} | {speed:.1f} | {speed / slowest:.1f} | {found.load:.1f} |"


def trained(texts: Sequence[str], folder: str) -> list[str]:
    """A byte-level BPE and a SentencePiece BPE model of 16,000 entries, and a unigram one."""
    paths = [f"{folder}/byte-level-16k.json", f"{folder}/sentencepiece-16k.model", f"{folder}/unigram-16k.model"]
    for path in paths[:2]:
        train_tokenizer(texts, path, TrainTokenizerParams(vocab_size=16_000), say=lambda line: None)
    with Path(paths[2]).open("wb") as model:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=(line[:1000] for text in texts for line in text.split("\n")),
            model_writer=model,
            model_type="unigram",
            vocab_size=16_000,
            minloglevel=2,
        )
    return paths


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--input", type=Path, required=True, help="JSONL, plain or .gz, with a field text")
    parser.add_argument("--tokenizer", action="append", default=[], help=".json, .model or .tiktoken; repeatable")
    parser.add_argument("--trained", action="store_true", help="models of 16,000 entries, too, trained here")
    parser.add_argument("--cut", type=int, default=8000)
    parser.add_argument("--megabytes", type=int, default=60)
    parser.add_argument("--slow-megabytes", type=int, default=8, help="as --megabytes, for the slow engines")
    parser.add_argument("--repeat", type=int, default=2)
    args = parser.parse_args()
    texts = texts_of(args.input, args.cut, args.megabytes * 1_000_000)
    every = max(1, args.megabytes // args.slow_megabytes)
    size = sum(len(text.encode()) for text in texts) / 1e6
    print(f"{len(texts):,} texts, {size:.1f} MB ({size / every:.1f} for the slow engines); the second half is timed")
    print("| tokenizer | engine | ids | MB/s | times the reference | s to load |")
    print("| --- | --- | --- | --- | --- | --- |")
    with TemporaryDirectory() as scratch:
        own = trained(texts[::10], scratch) if args.trained or not args.tokenizer else []
        for path in [*args.tokenizer, *own]:
            for row in compare(path, texts, every, args.repeat):
                print(row, flush=True)


if __name__ == "__main__":
    main()
