"""Personal data, span by span: what datatrove's formatter takes and what `pii` does, and why they differ.

    PYTHONPATH=. .venv/bin/python benchmarks/conformance_spans.py DOCUMENTS.jsonl.gz [--every 10]

Needs the extra [bench]. With `pii.matching: datatrove` there is nothing to explain (benchmarks/conformance.py --what
pii compares that); these are the differences of `matching: own`, the default. Every span of e-mail and public IP
addresses is in exactly one row: the same on both sides, or a class of difference. A span that overlaps one of the other
side counts once. Texts are not printed.
"""

import argparse
import ipaddress
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator

from datatrove.pipeline.formatters import PIIFormatter

from benchmarks.conformance import IDS, read
from refinery.transforms.filter.pii import PiiParams, Span, find_pii
from refinery.transforms.redaction.pii_types.emails import ENDINGS
from refinery.transforms.redaction.pii_types.networks import LAST_ARC, SMALL_OCTET

SWITCHES = (name for name, field in PiiParams.model_fields.items() if field.annotation is bool)
OWN = PiiParams.model_validate({name: name in ("email", "ip") for name in SWITCHES})
THEIRS = PIIFormatter()
Pair = tuple[Span | None, Span | None]
Class = Callable[[str, str, str], bool]  # of the text around, what they take and what we take ("" for nothing)


def their_spans(text: str) -> list[Span]:
    """By datatrove's own patterns and its own check; an IP address inside of an e-mail address is gone with it."""
    found = [Span(match.start(), match.end(), "email") for match in THEIRS.emails_replacer.regex.finditer(text)]
    rest = text
    for span in found:
        rest = rest[: span.start] + " " * (span.end - span.start) + rest[span.end :]
    check = THEIRS.ip_replacer.validator
    addresses = (match for match in THEIRS.ip_replacer.regex.finditer(rest) if check(match.group()))
    return sorted(found + [Span(match.start(), match.end(), "ip") for match in addresses])


def pairs(theirs: list[Span], ours: list[Span]) -> Iterator[Pair]:
    """Each span with the first one of the other side that it overlaps."""
    free = list(ours)
    for span in theirs:
        other = next((each for each in free if each.start < span.end and span.start < each.end), None)
        if other:
            free.remove(other)
        yield span, other
    yield from ((None, span) for span in free)


def _is_ip6(text: str) -> bool:
    try:
        return ipaddress.ip_address(text).version == 6
    except ValueError:
        return False


def _is_piece(around: str, there: str) -> bool:
    before, _, behind = around.partition(there)
    return re.search(r"[\w.-]$", before) is not None or re.match(r"\w|[.-]\w", behind) is not None


def _top(address: str) -> str:
    """The top-level domain."""
    return address.rpartition("@")[2].rpartition(".")[2]


def _has_octets_of_versions(there: str) -> bool:
    octets = [int(each) for each in there.split(".")]
    return octets[0] <= LAST_ARC or all(octet < SMALL_OCTET for octet in octets)


EMAIL: dict[str, Class] = {
    "written with the word at": lambda _, there, here: bool(here) and "@" not in here,
    "letters beyond ASCII": lambda around, there, here: not here.isascii() or (not there and not around.isascii()),
    "the name of a file": lambda _, there, here: _top(there).lower().encode() in ENDINGS,
    "behind the @ a version, numbers or brackets": lambda _, there, here: not here and not _top(there).isalpha(),
    "a top-level domain of one letter": lambda _, there, here: not here and len(_top(there)) == 1,
    "a name in a path (`/@name.surname`)": lambda _, there, here: not here and "/@" in there,
    "a path, a value or markup before it": lambda _, there, here: bool(here) and there.endswith(here),
    "an escaped space (`%20`) before it": lambda _, there, here: bool(there) and here.endswith(there),
}
IP: dict[str, Class] = {
    "IPv6": lambda _, there, here: _is_ip6(here),
    "a piece of a longer number or name": lambda around, there, here: not here and _is_piece(around, there),
    "multicast": lambda _, there, here: not here and ipaddress.ip_address(there).is_multicast,
    "numbers as of a version or section": lambda _, there, here: not here and _has_octets_of_versions(there),
    "a version by what is before or beside it": lambda _, there, here: not here,
}


def class_of(text: str, there: Span | None, here: Span | None) -> str:
    """The first class that fits."""
    start = min(span.start for span in (there, here) if span)
    end = max(span.end for span in (there, here) if span)
    kind = (there or here or Span(0, 0, "ip")).kind
    words = [text[span.start : span.end] if span else "" for span in (there, here)]
    around = text[max(0, start - 1) : end + 2]
    for name, fits in (EMAIL if kind == "email" else IP).items():
        if fits(around, *words):
            return name
    return "unexplained"


def _excerpt(text: str, span: Span | None) -> str:
    return ascii(text[max(0, span.start - 20) : span.end + 20]) if span else "-"


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("documents", nargs="+", metavar="DOCUMENTS", help="JSON Lines, plain, .gz or .zst")
    parser.add_argument("--text", default="text", metavar="FIELD")
    parser.add_argument("--html", default="", metavar="FIELD", help="a field with a page, which is extracted first")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="take each N-th document")
    parser.add_argument("--print", action="store_true", dest="show", help="print the spans that differ, to read them")
    args = parser.parse_args()
    counts: Counter[tuple[str, str, str]] = Counter()
    ids: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    rows = (row for path in args.documents for row in read(path, args.text, args.html))
    for number, (name, text) in enumerate(rows):
        if number % args.every:
            continue
        for there, here in pairs(their_spans(text), find_pii(text, OWN)):
            kind = (there or here or Span(0, 0, "ip")).kind
            side = "both" if there and here else "there" if there else "here"
            key: tuple[str, str, str] = kind, side, "the same" if there == here else class_of(text, there, here)
            counts[key] += 1
            if len(ids[key]) < IDS and name not in ids[key]:
                ids[key].append(name)
            if args.show and there != here:
                print(*key, *(_excerpt(text, span) for span in (there, here)), sep=" | ")
    print("| type | taken | class | spans | for example |\n| --- | --- | --- | --- | --- |")
    for key, count in sorted(counts.items(), key=lambda each: (each[0][0], -each[1])):
        print(f"| {' | '.join(key)} | {count} | {', '.join(ascii(each)[1:-1] for each in ids[key])} |")


if __name__ == "__main__":
    main()
