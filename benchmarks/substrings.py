"""Repeated substrings: what is found of planted ones, what is cut beyond them, and what each step costs.

    python -m benchmarks.substrings [--input docs.jsonl.gz] [--megabytes 100] [--share 0.1] [--partitions 1]

Passages are planted word for word in two to five documents each: of 50 to 500 words (to be found), and of 25 to 49
(too short: to be left alone); half of the places have other case, punctuation and line breaks. A third kind, 500 words
in which every 40th is another at each place, holds no run of 50 words in common and is missed by design. Documents are
made text, or those of --input.

The steps of `FindSubstrings` run one after the other in one process of their own, pinned to one core, with a dictionary
for the shuffles; CPU time. Words that are cut outside of what was planted are checked: each must lie in a run of 50
words that a plain dictionary of the texts has twice (--no-check leaves that out, it takes 100 bytes a word).
"""

import argparse
import os
import random
import resource
import time
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from itertools import accumulate
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from benchmarks.signatures import describe_run, make_texts, read_texts
from refinery.transforms.core.document import Document, document_id
from refinery.transforms.dedup.cut_substrings import SubstringParams
from refinery.transforms.dedup.records.rank import RankParams, rank_key
from refinery.transforms.dedup.records.record_batch import SPAN, SPANS, Batch, KeyedBatch, form_batches, gather, header
from refinery.transforms.dedup.reference_corpora import Parts
from refinery.transforms.dedup.signatures import signature_table
from refinery.transforms.dedup.substring_duplicates import (
    SPREAD,
    anchor_batches,
    repeat_batches,
    repeated_batches,
    span_batches,
    window_batches,
)
from refinery.transforms.dedup.substring_hashes import SPAN_WORDS, hash_anchors, hash_windows
from refinery.transforms.write.documents import documents_table

PART_BYTES = 32 << 20
GROUP_BYTES = 8 << 20  # of a row group, as WriteDocuments has it
LENGTHS = {"50 to 500 words": (50, 500), "25 to 49 words": (25, 49), "500 words, every 40th another": (500, 500)}
FOUND, SHORT, EDITED = LENGTHS


@dataclass(frozen=True)
class Planted:
    """A place of a passage: which passage, of which kind, and its words [first, behind) in the document."""

    passage: int
    kind: str
    first: int
    behind: int


@dataclass
class Step:
    """What a step cost: CPU seconds, bytes that it sent, and the largest group that it was given."""

    seconds: float = 0.0
    sent: int = 0
    largest: int = 0


def plant(texts: Sequence[str], share: float, seed: int = 1) -> tuple[list[str], dict[int, list[Planted]]]:
    """Texts with passages in them, so many that later places of them are about that share of all words; and where."""
    rng = random.Random(seed)
    words = [text.split(" ") for text in texts]
    total = sum(map(len, words))
    stock = iter(" ".join(make_texts(200 + int(total * share / 200), seed=seed + 1, median=1800, spread=0.3)).split())
    inserts: dict[int, list[tuple[int, int, str, list[str]]]] = defaultdict(list)
    copied = passage = 0
    while copied < share * total:
        kind = rng.choices(list(LENGTHS), (8, 1, 1))[0]
        run = [word for word, _ in zip(stock, range(rng.randint(*LENGTHS[kind])), strict=False)]
        if len(run) < 25:
            raise SystemExit("share: too much for so little text")
        places = min(len(texts), rng.choice((2, 2, 2, 3, 5)))
        for number, document in enumerate(rng.sample(range(len(texts)), places)):
            some = [f"edit{passage}x{number}" if kind == EDITED and i % 40 == 39 else w for i, w in enumerate(run)]
            if rng.random() < 0.5:
                some = [(w.upper() if i % 3 else w) + (",\n" if i % 17 == 0 else "") for i, w in enumerate(some)]
            inserts[document].append((rng.randrange(len(words[document]) + 1), passage, kind, some))
        copied += (places - 1) * len(run) if kind == FOUND else 0
        passage += 1
    made, where = [], {}
    for document, own in enumerate(words):
        out: list[str] = []
        marks, last = [], 0
        for at, number, kind, run in sorted(inserts[document]):
            out += own[last:at]
            marks.append((number, kind, len(out), len(out) + len(run)))
            out += run
            last = at
        text = " ".join([*out, *own[last:]])
        made.append(text)
        if marks:
            where[document] = [Planted(n, kind, *_counted(out, first, behind)) for n, kind, first, behind in marks]
    return made, where


def _counted(out: Sequence[str], first: int, behind: int) -> tuple[int, int]:
    """Pieces between spaces as words: a piece may hold none, or several."""
    before = len(hash_windows(" ".join(out[:first]), SPAN_WORDS).places)
    return before, before + len(hash_windows(" ".join(out[first:behind]), SPAN_WORDS).places)


def write_parts(folder: Path, texts: Sequence[str]) -> list[tuple[str, int]]:
    """documents/ and signatures/ parts of these texts, in their order."""
    for name in ("documents", "signatures"):
        (folder / name).mkdir()
    docs = [Document(document_id(t), t, "", "made", f"f@{i}", i, {}) for i, t in enumerate(texts)]
    sizes = list(accumulate(len(text) for text in texts))
    parts: list[tuple[str, int]] = []
    first = 0
    while first < len(docs):
        end = max(first + 1, bisect_right(sizes, (sizes[first - 1] if first else 0) + PART_BYTES))
        some, number = docs[first:end], len(parts)
        table = signature_table(
            ids=[doc.id for doc in some],
            ranks=[rank_key(doc, 0, RankParams()) for doc in some],
            sources=["made"] * len(some),
            domains=["made"] * len(some),
            sizes=[len(doc.text) for doc in some],
            signatures=np.zeros((len(some), 112), np.uint32),
            more={"anchors": hash_anchors([doc.text for doc in some])},
        )
        group = max(1, len(some) * GROUP_BYTES // max(GROUP_BYTES, sum(len(doc.text) for doc in some)))
        url = f"{folder}/signatures/part-{number}.parquet"
        options: dict[str, Any] = {"row_group_size": group, "write_page_checksum": True}
        pq.write_table(table, url, compression="none", **options)
        pq.write_table(
            documents_table(some),
            f"{folder}/documents/part-{number}.parquet",
            compression="zstd",
            compression_level=1,
            **options,
        )
        parts.append((url, len(some)))
        first = end
    return parts


@dataclass
class Shuffles:
    """The steps so far, by name."""

    steps: dict[str, Step] = field(default_factory=dict)

    def run(self, name: str, function: Callable[..., Iterator[KeyedBatch]], *given: Iterable[Batch]) -> list[Batch]:
        """`function` applied to each group of what is given."""
        step = self.steps.setdefault(name, Step())
        grouped: dict[int, list[bytes]] = defaultdict(list)
        for batches in given:
            for key, batch in batches:
                grouped[key].append(batch)
        out: list[Batch] = []
        start = time.process_time()
        for key, held in grouped.items():
            step.largest = max(step.largest, sum(map(len, held)))
            out += form_batches(function(key, held))
        step.seconds += time.process_time() - start
        step.sent += sum(len(batch) for _, batch in out)
        return out


def measure(parts: list[tuple[str, int]], params: SubstringParams, partitions: int) -> tuple[Any, ...]:
    """(steps, spans as (locator, begin, end), peak memory in bytes before and after) of a process of its own."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    before = peak_memory()
    shuffles, keys = Shuffles(), SPREAD * partitions
    start = [header(number, url, rows) for number, (url, rows) in enumerate(parts)]
    numbers = Parts(len(parts))
    anchors = shuffles.run("anchors", partial(anchor_batches, parts=numbers, partitions=keys), start)
    repeated = shuffles.run("repeated", repeated_batches, anchors)
    make = partial(window_batches, params=params, partitions=keys)
    windows = shuffles.run("windows", make, start, repeated)
    repeats = shuffles.run("repeats", repeat_batches, windows)
    spans = shuffles.run("spans", partial(span_batches, params=params), start, repeated, repeats)
    found = gather([batch for _, batch in spans], SPANS, SPAN).tolist()
    return shuffles.steps, found, before, peak_memory()


def peak_memory() -> int:
    """Bytes that this program held at most since it was started; where there is no /proc, with those of its parent."""
    for line in Path("/proc/self/status").read_text().splitlines() if Path("/proc/self/status").exists() else ():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def cut_words(texts: Sequence[str], parts: Sequence[tuple[str, int]], spans: Iterable[Any]) -> dict[int, np.ndarray]:
    """Document -> which of its words are cut."""
    firsts = [0, *accumulate(rows for _, rows in parts)]
    by_document: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for locator, begin, end in spans:
        by_document[firsts[locator >> 32] + (locator & 0xFFFFFFFF)].append((begin, end))
    found = {}
    for document, runs in by_document.items():
        places = hash_windows(texts[document], SPAN_WORDS).places
        cut = np.zeros(len(places), np.bool_)
        for begin, end in runs:
            cut[(places[:, 0] >= begin) & (places[:, 1] <= end)] = True
        found[document] = cut
    return found


def account(cut: dict[int, np.ndarray], where: dict[int, list[Planted]]) -> Iterator[tuple[str, int, int, int, int]]:
    """By kind of passage: (kind, later places, of these cut whole, their words, of these cut). The place of a passage
    of which least was cut is the one that stays.
    """
    places: dict[tuple[int, str], list[tuple[int, int]]] = defaultdict(list)
    for document, marks in where.items():
        for mark in marks:
            gone = int(cut[document][mark.first : mark.behind].sum()) if document in cut else 0
            places[mark.passage, mark.kind].append((gone, mark.behind - mark.first))
    sums: dict[str, Counter[str]] = {kind: Counter() for kind in LENGTHS}
    for (_, kind), found in places.items():
        for gone, words in sorted(found)[1:]:
            sums[kind].update(places=1, whole=gone == words, words=words, gone=gone)
    for kind, total in sums.items():
        yield kind, total["places"], total["whole"], total["words"], total["gone"]


def outside(
    texts: Sequence[str], cut: dict[int, np.ndarray], where: dict[int, list[Planted]], check: bool
) -> tuple[int, int]:
    """(words cut outside of passages of 50 words and more, of these outside of every run that the texts have twice)."""
    rest = {}
    for document, gone in cut.items():
        left = gone.copy()
        for mark in where.get(document, ()):
            if mark.kind == FOUND:
                left[mark.first : mark.behind] = False
        rest[document] = left
    words = sum(int(left.sum()) for left in rest.values())
    if not check or not words:
        return words, 0
    seen: Counter[bytes] = Counter()
    for text in texts:
        seen.update(runs_of_words(text))
    false = 0
    for document, left in rest.items():
        if left.any():
            covered = np.zeros(len(left), np.bool_)
            for i, run in enumerate(runs_of_words(texts[document])):
                if seen[run] > 1:
                    covered[i : i + SPAN_WORDS] = True
            false += int((left & ~covered).sum())
    return words, false


def runs_of_words(text: str) -> Iterator[bytes]:
    """Every run of SPAN_WORDS words, as 128 bits of a hash that is not the kernel's."""
    places = hash_windows(text, SPAN_WORDS).places.tolist()
    words = [text[begin:end].lower() for begin, end in places]
    for i in range(len(words) - SPAN_WORDS + 1):
        yield blake2b(" ".join(words[i : i + SPAN_WORDS]).encode("utf-8", "replace"), digest_size=16).digest()


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--input", type=Path, help="JSONL, plain or .gz, with a field text; else text is made")
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--share", type=float, default=0.1, help="of all words that are later places of passages")
    parser.add_argument("--partitions", type=int, default=1)
    parser.add_argument("--no-check", action="store_true")
    args = parser.parse_args()
    print(describe_run())
    limit = args.megabytes * 1_000_000
    raw = read_texts(args.input, limit) if args.input else make_texts(limit // 1350)
    texts, where = plant(raw, args.share)
    size = sum(len(text.encode("utf-8", "replace")) for text in texts) / 1e6
    words = sum(len(hash_windows(text, SPAN_WORDS).places) for text in texts)
    print(f"{len(texts):,} documents, {size:.1f} MB, {words:,} words\n")

    start = time.process_time()
    anchors = [hash_anchors(texts[i : i + 1000]) for i in range(0, len(texts), 1000)]
    seconds = time.process_time() - start
    held = sum(len(column.values) for column in anchors) * 8
    with TemporaryDirectory() as folder:
        parts = write_parts(Path(folder), texts)
        with get_context("spawn").Pool(1) as pool:
            steps, spans, before, peak = pool.apply(measure, (parts, SubstringParams(), args.partitions))
    print("| step | MB/s and core | bytes sent per MB of text | largest group, MB |\n| --- | --- | --- | --- |")
    print(f"| phase 1: anchors | {size / seconds:.0f} | {held / size:,.0f} (stored) | |")
    for name, step in steps.items():
        speed = size / max(step.seconds, 1e-9)
        print(f"| phase 2: {name} | {speed:.0f} | {step.sent / size:,.0f} | {step.largest / 1e6:.1f} |")
    total = sum(step.seconds for step in steps.values())
    sent = sum(step.sent for step in steps.values())
    print(f"| phase 2, all | {size / total:.0f} | {sent / size:,.0f} | |")
    print(f"\npeak memory {peak / 1e6:.0f} MB ({before / 1e6:.0f} MB before; all shuffled batches are in it)\n")

    cut = cut_words(texts, parts, spans)
    print("| planted | later places | cut whole | their words | cut of these |\n| --- | --- | --- | --- | --- |")
    for kind, places, whole, there, gone in account(cut, where):
        print(f"| {kind} | {places:,} | {whole:,} | {there:,} | {gone:,} |")
    beyond, false = outside(texts, cut, where, not args.no_check)
    print(f"\ncut outside of passages of 50 words and more: {beyond:,} words", end="")
    print("" if args.no_check else f"; of these in no run of 50 words that the texts have twice: {false:,}")


if __name__ == "__main__":
    main()
