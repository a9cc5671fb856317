"""The stages that filter source code, against labels and on real files.

    python -m benchmarks.code_filters --labelled dev.jsonl.gz --nearest redis=BSD-3-Clause --nearest htop=GPL-2.0-only …
    python -m benchmarks.code_filters --code files.jsonl.gz

--labelled: rows with source_repo ("owner/name"), path, text and spdx_ids, any of which a reader may choose. A file is
to be allowed where one of them is. --nearest: what the licence file of a repository says, for files that say nothing.
--code: rows with path and content; prints how many fall for which reason, and quantiles of their entropy.
"""

import argparse
import gzip
import json
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from refinery.transforms.code.code_heuristics import entropy, judge_code
from refinery.transforms.code.code_rules import CodeHeuristicsParams
from refinery.transforms.code.languages import language_of
from refinery.transforms.code.licences.license_expressions import licence_class
from refinery.transforms.code.licences.license_files import class_of_file
from refinery.transforms.code.licences.license_rules import DENIED
from refinery.transforms.code.licences.licenses import licence_of
from refinery.transforms.core.document import Document, Drop, document_id


def rows_of(path: str) -> Iterator[dict[str, Any]]:
    """Rows of a gzipped JSONL file."""
    with gzip.open(path, "rt") as lines:
        yield from map(json.loads, lines)


def licences(path: str, nearest: dict[str, str]) -> None:
    """Prints right answers by repository, and every wrong one."""
    right, total, wrong = Counter[str](), Counter[str](), []
    begin = time.process_time()
    for row in rows_of(path):
        repository = row["source_repo"].split("/")[-1]
        around = nearest.get(repository, "")
        found = licence_of(row["text"], around)
        allowed = class_of_file(found, around) != DENIED
        truth = any(licence_class(one) != DENIED for one in row["spdx_ids"])
        total[repository] += 1
        right[repository] += allowed == truth
        if allowed != truth:
            wrong.append(f"wrong {'allow' if allowed else 'deny'}: {repository} {row['path']}: {found}")
    seconds = time.process_time() - begin
    print(*wrong, sep="\n")
    for repository, count in sorted(total.items()):
        print(f"{repository}: {right[repository]} of {count}")
    all_of = sum(total.values())
    print(f"{sum(right.values()) / all_of:.2%} of {all_of}, {seconds / all_of * 1e3:.2f} ms a file")


def heuristics(path: str) -> None:
    """Prints how many files fall for which reason, and quantiles of entropy of those in a known language."""
    answers, bits = Counter[str](), []
    for row in rows_of(path):
        text = row["content"]
        doc = Document(document_id(text), text, "", "code", "", 0, {"path": row["path"]})
        answer = judge_code(doc, CodeHeuristicsParams())
        answers[answer.reason if isinstance(answer, Drop) else "kept"] += 1
        if len(text) >= 100 and language_of(row["path"], text):
            bits.append(entropy(text))
    print(*(f"{reason}: {count}" for reason, count in answers.most_common()), sep="\n")
    bits.sort()
    print("entropy:", *(f"{share:.1%} {bits[int(share * (len(bits) - 1))]:.2f}" for share in (0, 0.02, 0.5, 0.98, 1)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--labelled")
    parser.add_argument("--nearest", action="append", default=[])
    parser.add_argument("--code")
    args = parser.parse_args()
    if args.labelled:
        licences(args.labelled, dict(one.split("=", 1) for one in args.nearest))
    if args.code:
        heuristics(args.code)


if __name__ == "__main__":
    main()
