"""Decontamination: planted items found, clean paragraphs lost, MB/s and core, memory of 10 million n-grams.

    python -m benchmarks.decontamination --items items.jsonl.gz --name-field bench --prose docs.jsonl.gz

--items: a benchmark as a recipe takes it. --prose: JSON lines with a field "text", none of which holds an item. Each
item's question is planted in prose in five ways; every paragraph of the prose is judged alone, and each document whole.
"""

import argparse
import gzip
import json
import random
import re
import resource
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from refinery.transforms.filter.benchmarks import BenchmarkParams, Benchmarks
from refinery.transforms.filter.decontaminate import DecontaminateParams, load_benchmarks
from refinery.transforms.filter.ngram_index import Item, NgramIndex, build_index

MARKS = re.compile(r"[^\w\s]")
GENERATED = 10_000_000


def middle(text: str) -> str:
    """The half of the words in the middle, at least 13."""
    words = text.split()
    keep = max(13, len(words) // 2)
    start = (len(words) - keep) // 2 if keep < len(words) else 0
    return " ".join(words[start : start + keep])


WAYS: dict[str, Callable[[str], str]] = {
    "verbatim": str,
    "upper case": str.upper,
    "other line breaks": lambda text: "\n".join(text.split()),
    "without punctuation": lambda text: MARKS.sub(" ", text),
    "half of it": middle,
}


def read_prose(path: Path) -> list[str]:
    with gzip.open(path, "rt") as lines:
        return [json.loads(line)["text"] for line in lines]


def generated(count: int) -> Iterator[Item]:
    """Items of 100 random words; nearly all n-grams differ."""
    rng = np.random.default_rng(1)
    words = np.array([f"w{i:x}" for i in range(50_000)])
    for number in range(count // 88):
        yield Item(0, str(number), (" ".join(words[rng.integers(0, len(words), 100)]),))


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def rate(index: NgramIndex, prose: list[str]) -> float:
    """MB/s of processor time, the best of three."""
    size, best = sum(len(text.encode()) for text in prose), float("inf")
    for _ in range(3):
        start = time.process_time()
        for text in prose:
            index.scan(text)
        best = min(best, time.process_time() - start)
    return size / best / 1e6


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--items", required=True)
    arguments.add_argument("--name-field", default="")
    arguments.add_argument("--prose", type=Path, required=True)
    given = arguments.parse_args()
    file = BenchmarkParams(path=given.items, name_field=given.name_field)
    contents = load_benchmarks(DecontaminateParams(benchmarks=(file,)))
    prose, rng = read_prose(given.prose), random.Random(1)
    reader = Benchmarks((file,))
    items = list(reader.read())
    names = list(reader.names)
    totals = Counter(names[item.benchmark] for item in items)
    print(f"{len(contents.index.keys):,} n-grams;", dict(totals), "searchable:", int(contents.index.searchable.sum()))
    for way, change in WAYS.items():
        dropped, named = Counter[str](), Counter[str]()
        for number, item in enumerate(items):
            around = rng.choice(prose)
            at = rng.randrange(len(around) + 1)
            question = max(item.questions, key=len)
            planted = f"{around[max(0, at - 3000) : at]}\n{change(question)}\n{around[at : at + 3000]}"
            _, owners = contents.index.scan(planted)
            dropped[names[item.benchmark]] += len(owners) > 0
            named[names[item.benchmark]] += number in contents.index.found(owners)
        shares = (f"{name} {dropped[name]} of {totals[name]} ({named[name]} by name)" for name in names)
        print(f"planted, {way}: {', '.join(shares)}")
    paragraphs = [part for text in prose for part in text.split("\n\n") if part.strip()]
    lost = sum(len(contents.index.scan(part)[1]) > 0 for part in paragraphs)
    documents = sum(len(contents.index.scan(text)[1]) > 0 for text in prose)
    print(f"clean: {lost} of {len(paragraphs):,} paragraphs lost, {documents} of {len(prose):,} documents")
    sample = prose[::10]
    print(f"speed: {rate(contents.index, sample):.0f} MB/s and core")
    before = peak_mb()
    index = build_index(lambda: generated(GENERATED))
    arrays = (index.keys, index.owners, index.filter, index.tails, index.benchmarks, index.searchable)
    size = sum(array.nbytes for array in arrays) + index.names.nbytes
    print(f"{len(index.keys):,} n-grams: {size / 1e6:.0f} MB, peak {peak_mb() - before:.0f} MB more than before")
    print(f"speed with them: {rate(index, sample):.0f} MB/s and core")


if __name__ == "__main__":
    main()
