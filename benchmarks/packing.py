"""Ways to fill rows of a fixed length from the same documents: how full they are, and what they do to documents.

    python -m benchmarks.packing --input docs.jsonl.gz [--tokenizer tokenizer.json] [--length 2048 4096 8192]
        [--groups 1 4 16] [--scale 10000000]

Without --tokenizer a byte-level BPE of 16,000 entries is trained on a tenth of the texts. Documents (BOS, tokens, EOS)
come in the order of a hash of their text, as in a corpus. Sides:

best fit decreasing   ours (transforms/write/packing); --groups: dealt into so many groups by that order, each packed
                      for itself
best fit, streamed    ours, TokenStream(packing="best_fit"): blocks of its default size, documents cut without a BOS,
                      packed again in each epoch, or with repack=False not
greedy in order       whole documents as they come; a new row where the next one does not fit. Documents longer than a
                      row are cut as ours are
best fit, crop        nanochat's loader: of 1,000 buffered documents the longest that fits, and where none does the
                      shortest is cropped to what is left; the rest of it is thrown away
concatenate and cut   all tokens in one sequence, cut every L: Megatron's and most loaders' way

used: share of the rows' places that are tokens. documents per row: parts of documents. cut: share of documents whose
tokens are not all in one row, and in brackets of those that would fit one. cropped: share of tokens thrown away.
--scale: also packs so many made lengths (log-normal, median 500 tokens), with seconds and peak memory.
"""

import argparse
import hashlib
import resource
import time
from bisect import bisect_right, insort
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.signatures import describe_run, read_texts
from refinery.loader.packing.best_fit import pack_best_fit
from refinery.loader.packing.layouts import Layouts
from refinery.loader.packing.packing import default_block
from refinery.loader.packing.row_table import NOISE, pack_documents
from refinery.pipelines.training.train_tokenizer import TrainTokenizerParams, train_tokenizer
from refinery.transforms.tokenize.load_tokenizer import load_tokenizer
from refinery.transforms.write.packing.split_documents import split_documents

I64 = npt.NDArray[np.int64]
BUFFER = 1000  # nanochat, nanochat/dataloader.py: buffer_size
PASSES = 20


class Outcome(NamedTuple):
    """rows: their number. tokens: places that are used. parts: of documents. cut, needless: documents that are cut, of
    them those that would fit a row. cropped: tokens of documents that are in no row."""

    rows: int
    tokens: int
    parts: int
    cut: int
    needless: int
    cropped: int


def best_fit(sizes: I64, length: int, groups: int = 1) -> Outcome:
    """Ours, in `groups` consecutive parts of the documents."""
    rows = tokens = parts = 0
    for part in np.array_split(sizes, groups):
        pieces = split_documents(part, length)
        rows += pack_best_fit(pieces.lengths, length).count
        tokens += int(pieces.lengths.sum())
        parts += len(pieces.documents)
    return Outcome(rows, tokens, parts, int((sizes > length).sum()), 0, 0)


def streamed(sizes: I64, length: int, noise: int = NOISE) -> Outcome:
    """TokenStream's with packing, in the blocks that it takes by default."""
    ends = np.cumsum(sizes)
    table = pack_documents(ends - sizes, ends, length, default_block(length), noise)
    return Outcome(table.rows, int(ends[-1]), len(table.starts), int((sizes > length).sum()), 0, 0)


def repeated(sizes: I64, length: int) -> float:
    """The share of the pairs of pieces in a row that are in one row in the next epoch of a stream, too."""
    ends = np.cumsum(sizes)
    table = pack_documents(ends - sizes, ends, length, default_block(length), NOISE)
    layouts = Layouts(table, np.array([0, ends[-1]], np.int64), length, NOISE)
    first, second = (pairs(layouts.find(np.arange(table.rows), epoch)) for epoch in range(2))
    return len(np.intersect1d(first, second)) / max(len(first), 1)


def pairs(pieces: I64) -> I64:
    """Of the pieces of rows, as Layouts.find has them, every two that share one, as a number."""
    rows, starts = pieces[:, 0], pieces[:, 2]
    numbers, found, apart = np.unique(starts, return_inverse=True)[1], [np.empty(0, np.int64)], 1
    while (same := np.flatnonzero(rows[apart:] == rows[:-apart])).size:
        found.append(numbers[same] * len(starts) + numbers[same + apart])  # ascending in each row
        apart += 1
    return np.concatenate(found)


def in_order(sizes: I64, length: int) -> Outcome:
    """Greedy: each piece into the open row, or into a new one."""
    pieces = split_documents(sizes, length)
    rows, room = 0, 0
    for size in pieces.lengths.tolist():
        if size > room:
            rows, room = rows + 1, length
        room -= size
    tokens = int(pieces.lengths.sum())
    return Outcome(rows, tokens, len(pieces.documents), int((sizes > length).sum()), 0, 0)


def best_fit_crop(sizes: I64, length: int) -> Outcome:
    """nanochat's: rows are always full. The documents come PASSES times, since its buffer fills up with long ones; the
    outcome is that of a pass on average, without the last row and what is left in the buffer."""
    coming, buffer = iter(np.tile(sizes, PASSES).tolist()), list[int]()
    rows = parts = cut = needless = cropped = 0
    while True:
        room, row = length, [0, 0, 0, 0]
        while room:
            while len(buffer) < BUFFER and (size := next(coming, 0)):
                insort(buffer, size)
            if len(buffer) < BUFFER:
                made, *others = (round(total / PASSES) for total in (rows, parts, cut, needless, cropped))
                return Outcome(made, made * length, *others)
            index = bisect_right(buffer, room)
            size = buffer.pop(index - 1 if index else 0)
            used = min(size, room)
            room -= used
            row = [a + b for a, b in zip(row, (1, used < size, used < size <= length, size - used), strict=True)]
        rows += 1
        parts, cut, needless, cropped = parts + row[0], cut + row[1], needless + row[2], cropped + row[3]


def concatenate(sizes: I64, length: int) -> Outcome:
    """One sequence, cut every `length` tokens."""
    stops = np.cumsum(sizes)
    parts = (stops - 1) // length - (stops - sizes) // length + 1
    needless = int(((parts > 1) & (sizes <= length)).sum())
    total = int(stops[-1])
    return Outcome(-(-total // length), total, int(parts.sum()), int((parts > 1).sum()), needless, 0)


def sides(sizes: I64, length: int, groups: Sequence[int]) -> Iterator[tuple[str, Outcome, float]]:
    """(name, outcome, processor seconds) of each side."""
    ways: dict[str, Callable[[I64, int], Outcome]] = {
        f"best fit decreasing{f', {n} groups' if n > 1 else ''}": partial(best_fit, groups=n) for n in groups
    }
    ways |= {
        "best fit, streamed": streamed,
        "best fit, streamed, repack=False": partial(streamed, noise=0),
        "greedy in order": in_order,
        "best fit, crop (nanochat)": best_fit_crop,
        "concatenate and cut": concatenate,
    }
    for name, way in ways.items():
        start = time.process_time()
        outcome = way(sizes, length)
        yield name, outcome, time.process_time() - start


def sizes_of(texts: Sequence[str], path: str) -> I64:
    """Tokens of each document with BOS and EOS, in the order of a hash of the text. Prints what they are."""
    tokenizer = load_tokenizer(path)
    ordered = sorted(texts, key=lambda text: hashlib.blake2b(text.encode("utf-8", "surrogatepass")).digest())
    sizes = np.array([len(tokenizer.encode(text.encode("utf-8", "replace").decode())) + 2 for text in ordered])
    print(f"{len(sizes):,} documents, {sizes.sum():,} tokens, median {int(np.median(sizes)):,}, "
          f"vocabulary of {tokenizer.vocab_size:,}\n")  # fmt: skip
    return sizes.astype(np.int64)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--input", type=Path, required=True, help="JSONL with a field text, plain or .gz")
    parser.add_argument("--tokenizer", default="")
    parser.add_argument("--length", type=int, nargs="+", default=[2048, 4096, 8192])
    parser.add_argument("--groups", type=int, nargs="+", default=[1, 4, 16])
    parser.add_argument("--scale", type=int, default=0)
    args = parser.parse_args()
    print(describe_run())
    texts = read_texts(args.input)
    with TemporaryDirectory() as folder:
        path = args.tokenizer or f"{folder}/tokenizer.json"
        if not args.tokenizer:
            train_tokenizer(texts[::10], path, TrainTokenizerParams(vocab_size=16_000), say=lambda line: None)
        sizes = sizes_of(texts, path)
    for length in args.length:
        print(f"{repeated(sizes, length):.1%} of the pairs of neighbours are neighbours in the next epoch, too\n")
        print(f"| rows of {length:,} | used | rows | documents per row | cut | cropped | seconds |")
        print("| --- | --- | --- | --- | --- | --- | --- |")
        for name, found, seconds in sides(sizes, length, args.groups):
            print(
                f"| {name} | {found.tokens / (found.rows * length):.3%} | {found.rows:,} | "
                f"{found.parts / found.rows:.2f} | {found.cut / len(sizes):.1%} ({found.needless / len(sizes):.1%}) | "
                f"{found.cropped / (found.tokens + found.cropped):.1%} | {seconds:.2f} |"
            )
        print()
    if args.scale:
        made = np.random.default_rng(1).lognormal(np.log(500), 1.2, args.scale).astype(np.int64) + 2
        for length in args.length:
            start = time.process_time()
            found = best_fit(made, length)
            print(f"{args.scale:,} made documents, rows of {length:,}: used "
                  f"{found.tokens / (found.rows * length):.4%}, {time.process_time() - start:.1f} s, peak "
                  f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")  # fmt: skip


if __name__ == "__main__":
    main()
