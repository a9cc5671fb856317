"""Personal data and secrets in source code: what is replaced, what stays, what that does to the syntax, and the speed.

    python -m benchmarks.code_redaction NAME=rows.jsonl.gz … [--show 20] [--list found.jsonl] [--plants 20]

Rows have `content` or `text`, and a `path` where they are files. Every row goes through both stages with the code
lane's settings (`style: code`, `remains: fail`); "left alone" is what the defaults for prose would have replaced. A
file is hurt where the syntax tree of what is left has more bytes that the grammar cannot place. --list writes each
place that is replaced, at most three of a file, in an order that hashes give: to be read. --plants counts how many of
the values that made_code.py plants are found with the defaults for prose and with those of the lane.
"""

import argparse
import gzip
import hashlib
import json
import time
from collections import Counter
from pathlib import Path

from benchmarks.made_code import Planted, planted
from refinery.transforms.code.languages import LANGUAGES, language_of
from refinery.transforms.code.parse import parse
from refinery.transforms.core.document import Document, Drop, FailClosed, document_id
from refinery.transforms.filter.pii import PiiParams, find_pii, redact_pii
from refinery.transforms.filter.secrets_stage import SecretsParams, find_secrets, redact_secrets

SECRETS, PII = SecretsParams(style="code", remains="fail"), PiiParams(style="code", remains="fail")
OF_A_FILE = 3  # places that are listed
AROUND = 90  # characters beside a place that are listed


def left_alone(text: str) -> list[str]:
    """What the defaults for prose would replace, and these do not."""
    taken = [(span.start, span.end) for span in find_pii(text, PII)]
    return [
        text[span.start : span.end]
        for span in find_pii(text, PiiParams())
        if not any(start < span.end and span.start < end for start, end in taken)
    ]


def is_hurt(path: str, before: str, after: str) -> bool:
    """Whether the grammar of the file's language places less of the text after redaction."""
    language = LANGUAGES.get(language_of(path, before))
    if language is None or (parsed := parse(before.encode(), language)) is None:
        return False
    lost = round(parsed.error_share * len(before.encode()))
    again = parse(after.encode(), language)
    return again is None or round(again.error_share * len(after.encode())) > lost


def listed(name: str, row: dict[str, str], text: str) -> list[dict[str, str]]:
    """The first places of a file that the order by hashes has, each with what stands around it."""
    path = str(row.get("path", ""))
    spans = [(span.start, span.end, span.rule) for span in find_secrets(text, SECRETS, path)]
    spans += [(span.start, span.end, span.kind) for span in find_pii(text, PII)]
    found = [
        {
            "key": hashlib.blake2b(f"{row.get('repo', name)}/{path}@{start}".encode(), digest_size=8).hexdigest(),
            "place": f"{row.get('repo', name)}/{path}@{start}",
            "rule": rule,
            "value": text[start:end],
            "around": text[max(0, start - AROUND) : end + AROUND],
        }
        for start, end, rule in spans
    ]
    return sorted(found, key=lambda one: one["key"])[:OF_A_FILE]


def is_found(plant: Planted, lane: bool) -> bool:
    """Whether some of a planted value is replaced: with the settings of the lane, or with the defaults for prose."""
    if plant.secret:
        params = SECRETS if lane else SecretsParams()
        spans = [(span.start, span.end) for span in find_secrets(plant.text, params, plant.path)]
    else:
        spans = [(span.start, span.end) for span in find_pii(plant.text, PII if lane else PiiParams())]
    start = plant.text.index(plant.value)
    return any(first < start + len(plant.value) and start < last for first, last in spans)


def count_plants(count: int) -> None:
    """Print a table: planted values found with the defaults for prose, and in the lane."""
    rows: dict[str, list[int]] = {}
    for plant in planted(count, seed=1):
        row = rows.setdefault(plant.kind, [0, 0, 0])
        row[0] += 1
        row[1] += is_found(plant, lane=False)
        row[2] += is_found(plant, lane=True)
    print("| planted | values | prose | code lane |\n| --- | --- | --- | --- |")
    for kind, (values, prose, lane) in rows.items():
        print(f"| {kind} | {values:,} | {prose:,} | {lane:,} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("inputs", nargs="*", metavar="NAME=PATH")
    parser.add_argument("--show", type=int, default=0, help="matches to print, of each kind")
    parser.add_argument("--list", type=Path, help="file for the places that are replaced")
    parser.add_argument("--plants", type=int, default=0, help="passwords to plant in each kind of place")
    args = parser.parse_args()
    if args.plants:
        count_plants(args.plants)
    places: list[dict[str, str]] = []
    for name, path in (given.split("=", 1) for given in args.inputs):
        counts: Counter[str] = Counter()
        alone: Counter[str] = Counter()
        size, seconds = 0, 0.0
        with gzip.open(path, "rt") if path.endswith(".gz") else Path(path).open() as lines:
            for number, row in enumerate(map(json.loads, lines)):
                text = row.get("content") or row.get("text") or ""
                meta = {"path": str(row.get("path", ""))}
                doc = Document(document_id(text), text, "", name, f"{path}@{number}", number, meta)
                size += len(text.encode())
                start = time.process_time()
                try:
                    clean = redact_secrets(doc, SECRETS)
                    answer = clean if isinstance(clean, Drop) else redact_pii(clean, PII)
                except FailClosed as error:
                    counts["ends the run"] += 1
                    print(error)
                    continue
                seconds += time.process_time() - start
                if isinstance(answer, Drop):
                    counts[answer.reason] += 1
                    continue
                spans = find_pii(text, PII)
                for span in spans:
                    counts[span.kind] += 1
                    if counts[span.kind] <= args.show:
                        print(f"  {span.kind}: {text[max(0, span.start - 30) : span.end + 10]!r}")
                alone.update(left_alone(text))
                counts["secrets"] += int(str(answer.meta.get("secrets", 0)))
                counts["secrets found after both"] += len(find_secrets(answer.text, SECRETS, str(row.get("path", ""))))
                places += listed(name, row, text) if args.list else []
                counts["hurt"] += answer.text != text and is_hurt(str(row.get("path", "")), text, answer.text)
        print(f"{name}: {size / 1e6:.1f} MB, {size / 1e6 / seconds:.0f} MB/s")
        print("  replaced: " + ", ".join(f"{kind} {count}" for kind, count in sorted(counts.items())))
        print("  left alone: " + ", ".join(f"{value} {count}" for value, count in alone.most_common(12)))
    if args.list:
        found = sorted(places, key=lambda one: one["key"])
        args.list.write_text("".join(json.dumps(one) + "\n" for one in found))


if __name__ == "__main__":
    main()
