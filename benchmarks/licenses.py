"""Licences: files with known answers, and licence texts whose families are unknown to the matcher.

    python -m benchmarks.licenses --labelled dev.jsonl.gz --nearest redis=BSD-3-Clause …
    python -m benchmarks.licenses --headers files.jsonl want.tsv
    python -m benchmarks.licenses --scancode SITE/licensedcode/data

--labelled, --nearest: as of benchmarks/code_filters.py. --headers: records with path, content and repo_license, and
lines "NAME keep|drop" for the names of their files. Both list every wrong allow. --scancode: the data folder of an
installed scancode-toolkit-mini, which is the truth here. Each licence text is judged by fingerprints that were made
without its family (the licences whose key begins with the same word), as a licence file, and as the head of a source
file in a repository under the MIT licence. Wrong is an allow of a text that ScanCode has in none of the categories
Permissive, Public Domain and Copyleft Limited. Prints what the shipped fingerprints take, too.
"""

import argparse
import gzip
import json
import resource
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from benchmarks.code_filters import licences
from refinery.transforms.code.licences.license_cover import DATA, cover, known, split_words, unpack
from refinery.transforms.code.licences.license_expressions import licence_class
from refinery.transforms.code.licences.license_rules import DENIED
from refinery.transforms.code.licences.licenses import identify_file
from refinery.transforms.code.license_stage import LicenseParams, judge_license
from refinery.transforms.core.document import Document, Drop, document_id
from tools.known_licenses import Item, items, pack

FREE = ("Permissive", "Public Domain", "Copyleft Limited")
FOLDS = 5


def family(key: str) -> str:
    """The first word of a licence's key: bsd of bsd-new."""
    return key.split("-")[0].split("_")[0]


def fold(key: str) -> int:
    """Which part a family is in, whatever the order of licences."""
    return zlib.crc32(family(key).encode()) % FOLDS


def is_kept(text: str, nearest: str) -> bool:
    """Whether the stage keeps a source file."""
    doc = Document(document_id(text), text, "", "code", "", 0, {"repo_license": nearest, "path": "a.py"})
    return not isinstance(judge_license(doc, LicenseParams()), Drop)


def headers(records: str, wanted: str) -> None:
    """Prints right answers and every wrong one."""
    want = dict(line.split() for line in Path(wanted).read_text().splitlines())
    wrong = []
    rows = [json.loads(line) for line in Path(records).read_text().splitlines()]
    for row in rows:
        name = Path(row["path"]).stem
        kept = is_kept(row["content"], row["repo_license"])
        if kept != (want[name] == "keep"):
            wrong.append(f"wrong {'allow' if kept else 'deny'}: {name}")
    print(*wrong, f"{len(rows) - len(wrong)} of {len(rows)} right", sep="\n")


def judged(every: list[Item]) -> Iterator[tuple[Item, str]]:
    """Each licence text with what is made of it by fingerprints without its family."""
    texts = [item for item in every if item.category]
    for number in range(FOLDS):
        without = unpack(pack(iter(every), lambda item, number=number: fold(item.key) != number))  # type: ignore[misc] # by number
        for item in texts:
            if fold(item.key) == number:
                yield item, identify_file(item.text, without)


def held_out(folder: str) -> None:
    """Prints wrong allows, and how many texts of allowed licences are allowed."""
    every = list(items(Path(folder)))
    free, right, others, wrong = 0, 0, 0, []
    by_category = Counter[str]()
    for item, expression in judged(every):
        allowed = licence_class(expression) != DENIED
        if item.category in FREE:
            if licence_class(item.expression) != DENIED:
                free, right = free + 1, right + allowed
            continue
        others += 1
        if allowed:
            by_category[item.category] += 1
            wrong.append(f"wrong allow: {item.name} ({item.category}): {expression}")
    print(*wrong, sep="\n")
    print(f"held out: {len(wrong)} wrong allows of {others} texts ({len(wrong) / others:.2%}) {dict(by_category)}")
    print(f"held out: {right} of {free} texts of allowed licences allowed ({right / free:.0%})")
    shipped = [(item, identify_file(item.text)) for item in every if item.category]
    allowed_here = [one for one, expression in shipped if licence_class(expression) != DENIED]
    wrong_here = [item.name for item in allowed_here if item.category not in FREE]
    known_here = [item for item, _ in shipped if item.category in FREE and licence_class(item.expression) != DENIED]
    right_here = sum(licence_class(e) != DENIED for i, e in shipped if i in known_here)
    print(f"with all fingerprints: {len(wrong_here)} wrong allows {wrong_here}")
    print(f"with all fingerprints: {right_here} of {len(known_here)} texts of allowed licences allowed")
    heads = [item for item in every if item.category and item.category not in FREE and len(item.text) <= 3_000]
    kept = [
        i.name for i in heads if is_kept("".join(f"# {line}\n" for line in i.text.splitlines()) + "\nx = 1\n", "MIT")
    ]
    print(f"as the head of a file: {len(kept)} of {len(heads)} short texts of other licences kept")


def cost() -> None:
    """Prints what the shipped fingerprints take."""
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    data = known()
    seconds, after = time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"{len(data.sizes):,} known texts, {len(data.hashes):,} hashes: {DATA.stat().st_size / 1e6:.1f} MB on disk, "
        f"{sum(getattr(part, 'nbytes', 0) for part in data) / 1e6:.1f} MB in memory, "
        f"process +{(after - before) / 1e3:.0f} MB, "
        f"{seconds * 1e3:.0f} ms to load"
    )
    words = split_words(gzip.decompress(gzip.compress(b"permission is hereby granted free of charge " * 60)).decode())
    start = time.process_time()
    for _ in range(20):
        cover(words)
    print(f"{len(words.words)} words: {(time.process_time() - start) / 20 * 1e3:.1f} ms")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labelled", help="rows with source_repo, path, text and spdx_ids")
    parser.add_argument("--nearest", action="append", default=[], metavar="REPO=EXPRESSION")
    parser.add_argument("--headers", nargs=2, metavar=("RECORDS", "WANTED"))
    parser.add_argument("--scancode", help="licensedcode/data of an installed scancode-toolkit-mini")
    args = parser.parse_args()
    cost()
    if args.labelled:
        licences(args.labelled, dict(one.split("=", 1) for one in args.nearest))
    if args.headers:
        headers(*args.headers)
    if args.scancode:
        held_out(args.scancode)
