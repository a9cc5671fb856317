"""Engines beside each other on the same texts with the same tokenizers, in one run, one thread: equal ids, and MB/s.

    python -m benchmarks.encoding --input docs.jsonl.gz --tokenizer llama3.json --tokenizer o200k_base.tiktoken …
        [--cut 8000] [--megabytes 60] [--repeat 3]

Without --tokenizer, a byte-level BPE and SentencePiece models of 16,000 entries are trained on a tenth of the texts
(not timed). The engines: ours, Hugging Face's tokenizers (for a tokenizer.json), tiktoken (for its rank files),
SentencePiece (for a .model), and gigatoken where it is installed (the extra [bench]). Half the texts come first,
untimed, so that caches are as full as in a long run; then the other half, which is new to all of them, is timed in
processor seconds. The best of the repetitions counts, each with engines loaded anew. Ids are compared text by text with
those of the reference, the library that the file is of; for gigatoken the number of texts with other ids is printed,
for ours one ends the run.
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
from typing import Any

import numpy as np
import sentencepiece

from refinery.pipelines.commands.train_tokenizer import TrainTokenizerParams, train_tokenizer
from refinery.transforms.tokenize.load_tokenizer import load_tokenizer
from refinery.transforms.tokenize.tiktoken_file import ENCODINGS, read_ranks
from refinery.transforms.tokenize.tiktoken_file import tokenizer_json as from_ranks
from refinery.transforms.tokenize.tokenizer_json import HuggingFaceTokenizer

Encode = Callable[[str], Any]


def texts_of(path: Path, cut: int, size: int) -> list[str]:
    """Consecutive pieces of at most `cut` characters, spread evenly over the file, up to about `size` bytes."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as lines:
        texts = [json.loads(line)["text"] for line in lines]
    pieces = [text[start : start + cut] for text in texts for start in range(0, len(text), cut)]
    total = sum(len(piece.encode()) for piece in pieces)
    return pieces[:: max(1, total // size)]


def engines(path: str) -> Iterator[tuple[str, Callable[[], Encode]]]:
    """(name, what loads it) of every engine for a file, the reference first, then ours."""
    data = Path(path).read_bytes()
    spec = None
    if path.endswith(".model"):
        yield "SentencePiece", lambda: _sentencepiece(data)
    elif path.endswith(".tiktoken"):
        spec = from_ranks(data, path)
        if find_spec("tiktoken"):
            yield "tiktoken", lambda: _tiktoken(data, path)
        else:
            yield "Hugging Face", lambda: HuggingFaceTokenizer(spec or {}).encode
    else:
        spec = json.loads(data)
        yield "Hugging Face", lambda: HuggingFaceTokenizer(spec or {}).encode
    yield "ours", lambda: _ours(path)
    if find_spec("gigatoken"):
        yield "gigatoken", lambda: _gigatoken(data, spec)


def _ours(path: str) -> Encode:
    load_tokenizer.cache_clear()
    return load_tokenizer(path).encode


def _sentencepiece(data: bytes) -> Encode:
    model = sentencepiece.SentencePieceProcessor(model_proto=data)
    return model.encode_as_numpy


def _tiktoken(data: bytes, path: str) -> Encode:
    import tiktoken

    name = path.rpartition("/")[2].removesuffix(".tiktoken")
    made = tiktoken.Encoding(
        name, pat_str=ENCODINGS[name].pattern.replace(r"\z", "$"), mergeable_ranks=read_ranks(data), special_tokens={}
    )
    return made.encode_ordinary


def _gigatoken(data: bytes, spec: dict[str, Any] | None) -> Encode:
    from gigatoken import Tokenizer

    if spec is None:
        encode: Encode = Tokenizer.from_sentencepiece(data).encode
    else:
        encode = Tokenizer.from_json(json.dumps({**spec, "added_tokens": [], "post_processor": None})).encode
    return encode


def measure(load: Callable[[], Encode], texts: Sequence[str], repeat: int) -> tuple[float, list[Any]]:
    """Best processor seconds of the second half of the texts after the first, and the ids of the second."""
    first, second = texts[::2], texts[1::2]
    best, ids = float("inf"), []
    for _ in range(repeat):
        encode = load()
        for text in first:
            encode(text)
        start = time.process_time()
        ids = [encode(text) for text in second]
        best = min(best, time.process_time() - start)
    return best, ids


def compare(path: str, texts: Sequence[str], repeat: int) -> Iterator[str]:
    """A row of the table for each engine. Ends the program where ours gives other ids than the reference."""
    size = sum(len(text.encode()) for text in texts[1::2]) / 1e6
    expected: list[Any] = []
    slowest = 0.0
    for name, load in engines(path):
        label = Path(path).name
        try:
            seconds, ids = measure(load, texts, repeat)
        except ValueError as error:  # a model that the engine does not run
            yield f"| {label} | {name} | none: {' '.join(str(error).split())[:60]} | | |"
            continue
        if not expected:
            expected, slowest = ids, seconds
        different = sum(not np.array_equal(a, b) for a, b in zip(ids, expected, strict=True))
        if name == "ours":
            name = f"ours ({load_tokenizer(path).engine})"
            if different:
                sys.exit(f"{path}: {different} of {len(ids)} texts have other ids")
        equal = "equal" if not different else f"{different} of {len(ids)} texts differ"
        yield f"| {label} | {name} | {equal} | {size / seconds:.1f} | {slowest / seconds:.1f} |"


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
    parser.add_argument("--cut", type=int, default=8000)
    parser.add_argument("--megabytes", type=int, default=60)
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    texts = texts_of(args.input, args.cut, args.megabytes * 1_000_000)
    print(f"{len(texts):,} texts, {sum(len(text.encode()) for text in texts) / 1e6:.1f} MB; the second half is timed")
    print("| tokenizer | engine | ids | MB/s | times the reference |\n| --- | --- | --- | --- | --- |")
    with TemporaryDirectory() as scratch:
        for path in args.tokenizer or trained(texts[::10], scratch):
            for row in compare(path, texts, args.repeat):
                print(row, flush=True)


if __name__ == "__main__":
    main()
