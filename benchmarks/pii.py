"""Personal data by type: recall, precision, matches per MB of prose and code, speed. One table.

    python -m benchmarks.pii --labelled labelled.jsonl.gz --prose docs.jsonl.gz --code files.jsonl.gz [--show 20]

Labelled rows have `text` and `spans` (`start`, `end`, `type`; null: nothing is known of that row). A span is found
where a match of its type overlaps it; a match is right where it overlaps a span of its type. Rows whose `kind` ends in
"recall_only" are labelled in part and count only for recall. Private IP addresses count as addresses here
(`private_ip: on`), everywhere else the defaults hold. Passports and licences, which have no check digit, count
only for precision.

Prose and code (fields `text` and `content`) are not labelled: a match there is right or wrong, so the column is an
upper bound of false positives per MB; --show prints as many of each type, to be judged by a reader. Speed: documents
without a match, processor time, the best of three. Beside it datatrove's formatter (e-mail and IP addresses, Python's
`re`), where it is installed (extra [bench]).
"""

import argparse
import gzip
import importlib.util
import json
import platform
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from refinery.transforms.filter.pii import RULES, PiiParams, find_pii

Found = tuple[int, int, str]
Finder = Callable[[str], list[Found]]
# Labels of presidio-research and of presidio's recognizer tests, by our types; others are counted nowhere.
LABELS = {
    "EMAIL_ADDRESS": "email",
    "IP_ADDRESS": "ip",
    "MAC_ADDRESS": "mac",
    "IBAN_CODE": "iban",
    "CREDIT_CARD": "card",
    "US_SSN": "ssn",
    "PHONE_NUMBER": "phone",
    "TR_PHONE_NUMBER": "phone",
    "PH_MOBILE_NUMBER": "phone",
}
# National numbers with a check digit, a date or a form of their own; passports and licences have none of them.
CHECKED = (
    "AU_MEDICARE",
    "AU_TFN",
    "CA_SIN",
    "DE_HEALTH_INSURANCE",
    "DE_SOCIAL_SECURITY",
    "DE_TAX_ID",
    "ES_NIE",
    "ES_NIF",
    "FI_PERSONAL_IDENTITY_CODE",
    "IN_AADHAAR",
    "IT_FISCAL_CODE",
    "KR_FRN",
    "KR_RRN",
    "PL_PESEL",
    "SE_PERSONNUMMER",
    "SG_NRIC_FIN",
    "TH_TNIN",
    "TR_NATIONAL_ID",
    "UK_DRIVING_LICENCE",
    "UK_NHS",
    "UK_NINO",
    "US_ITIN",
    "US_MBI",
    "ZA_ID_NUMBER",
)
UNCHECKED = frozenset(
    (
        "DE_PASSPORT",
        "ES_PASSPORT",
        "IN_PAN",
        "IN_PASSPORT",
        "IT_DRIVER_LICENSE",
        "IT_IDENTITY_CARD",
        "IT_PASSPORT",
        "KR_PASSPORT",
        "PH_TIN",
        "UK_PASSPORT",
        "US_DRIVER_LICENSE",
        "US_PASSPORT",
    )
)
LABELS |= dict.fromkeys(CHECKED, "national_id")
REPEATS = 3


def ours(params: PiiParams) -> Finder:
    """This project's matches."""
    return lambda text: [(span.start, span.end, span.kind) for span in find_pii(text, params)]


def datatrove() -> Finder | None:
    """The matches that datatrove's formatter replaces; None where it is not installed."""
    if importlib.util.find_spec("datatrove") is None:
        return None
    from datatrove.pipeline.formatters.pii import PIIFormatter

    formatter = PIIFormatter()
    replacers = (("email", formatter.emails_replacer), ("ip", formatter.ip_replacer))

    def find(text: str) -> list[Found]:
        return [
            (*match.span(), kind)
            for kind, replacer in replacers
            for match in replacer.regex.finditer(text)
            if replacer.validator is None or replacer.validator(match.group())
        ]

    return find


def rows(path: Path) -> Iterator[dict[str, Any]]:
    """Lines of a .jsonl.gz file."""
    with gzip.open(path, "rt") as lines:
        yield from map(json.loads, lines)


def score(labelled: Sequence[dict[str, Any]], find: Finder) -> dict[str, tuple[int, int, int, int]]:
    """By type: spans found, spans, matches that are right, matches.

    >>> row = {"text": "a@b.example", "spans": [{"start": 0, "end": 11, "type": "EMAIL_ADDRESS"}]}
    >>> score([row], lambda text: [(0, 11, "email"), (3, 4, "ip")])
    {'email': (1, 1, 1, 1), 'ip': (0, 0, 0, 1)}
    """
    counts: dict[str, Counter[str]] = {name: Counter() for name in ("found", "spans", "right", "matches")}
    for row in labelled:
        if row["spans"] is None:
            continue
        placed = [span for span in row["spans"] if span.get("start") is not None]
        extra = [(span["start"], span["end"], "national_id") for span in placed if span["type"] in UNCHECKED]
        spans = [
            (span["start"], span["end"], LABELS[span["type"]]) for span in placed if span["type"] in LABELS
        ] + extra
        matches = find(row["text"])
        needed = spans[: len(spans) - len(extra)]
        counts["spans"].update(span[2] for span in needed)
        counts["found"].update(span[2] for span in needed if any(_same(span, match) for match in matches))
        if not row.get("kind", "").endswith("recall_only"):
            counts["matches"].update(match[2] for match in matches)
            counts["right"].update(match[2] for match in matches if any(_same(span, match) for span in spans))
    kinds = sorted({*counts["spans"], *counts["matches"]})
    return {kind: tuple(counts[name][kind] for name in counts) for kind in kinds}  # type: ignore[misc]


def _same(span: Found, match: Found) -> bool:
    return span[2] == match[2] and match[0] < span[1] and span[0] < match[1]


def matches_in(texts: Sequence[str], find: Finder, show: int) -> tuple[Counter[str], int]:
    """Matches by type, and how many texts have none; `show` of each type are printed."""
    counts: Counter[str] = Counter()
    clean = 0
    samples: dict[str, list[str]] = {}
    for text in texts:
        matches = find(text)
        clean += not matches
        for start, end, kind in matches:
            counts[kind] += 1
            samples.setdefault(kind, []).append(f"{text[max(0, start - 40) : start]!r} {text[start:end]!r}")
    for kind, found in samples.items():
        for sample in random.Random(1).sample(found, min(show, len(found))):
            print(f"  {kind}: {sample}")
    return counts, clean


def speed(texts: Sequence[str], find: Finder) -> float:
    """MB of UTF-8 per second of the processor, the best of REPEATS."""
    seconds = []
    for _ in range(REPEATS):
        begun = time.process_time()
        for text in texts:
            find(text)
        seconds.append(time.process_time() - begun)
    return megabytes(texts) / min(seconds)


def megabytes(texts: Sequence[str]) -> float:
    """Size of texts as UTF-8."""
    return sum(len(text.encode()) for text in texts) / 1e6


def share(part: int, whole: int) -> str:
    """A ratio, or a dash for one of nothing."""
    return f"{part / whole:.3f}" if whole else "–"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    for name in ("labelled", "prose", "code"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--show", type=int, default=0, help="matches in prose and code to print, of each type")
    args = parser.parse_args()
    labelled = list(rows(args.labelled))
    corpora = {
        "prose": [row["text"] for row in rows(args.prose)],
        "code": [row["content"] for row in rows(args.code)],
    }
    sides = {"ours": (ours(PiiParams(private_ip=True)), ours(PiiParams()))}
    if peer := datatrove():
        sides["datatrove"] = (peer, peer)
    sizes = {name: megabytes(texts) for name, texts in corpora.items()}
    print(
        f"Python {platform.python_version()}, {date.today()}; " + ", ".join(f"{n} {s:.1f} MB" for n, s in sizes.items())
    )
    print("| side | type | labelled | recall | precision | matches per MB of prose | of code |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    lines = []
    for side, (on_labelled, find) in sides.items():
        scores = score(labelled, on_labelled)
        counts = {name: matches_in(texts, find, args.show)[0] for name, texts in corpora.items()}
        for kind in (rule.kind for rule in RULES):
            found, spans, right, matches = scores.get(kind, (0, 0, 0, 0))
            per_mb = [f"{counts[name][kind] / sizes[name]:.3f}" for name in corpora]
            if spans or any(counts[name][kind] for name in corpora):
                rated = [share(found, spans), share(right, matches)]
                print("| " + " | ".join([side, kind, str(spans), *rated, *per_mb]) + " |")
        for name, texts in corpora.items():
            clean = [text for text in texts if not find(text)]
            lines.append(f"{side}: {name} without a match {megabytes(clean):.1f} MB at {speed(clean, find):.0f} MB/s")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
