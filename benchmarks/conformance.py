"""Every single decision beside the reference's code, on the same documents and the same words: docs/conformance.md.

    PYTHONPATH=. .venv/bin/python benchmarks/conformance.py DOCUMENTS.jsonl.gz [--words theirs] [--every 10]

Needs the extra [bench] (datatrove). Lines of DOCUMENTS have `text` (another field by --text), and may have `id`. With
--html FIELD the text is what our extraction makes of the page in that field.

For each rule of Gopher, C4 and FineWeb alone, and for the sets together, the table says how many documents both sides
decide alike. Of those they do not, it says why: each known difference is taken out of the document (blank lines, white
space at the ends of lines, …), and the first one without which both sides agree names the class.
"""

import argparse
import gzip
import io
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import zstandard

from benchmarks.conformance_dolma import dclm_rules, dolma_rules
from benchmarks.conformance_others import language_rules, pii_rules, url_rules
from benchmarks.conformance_rules import Decision, Rule, SameWords, text_rules
from refinery.pipelines.recipe.load_recipe import load_recipe
from refinery.transforms.core.document import Document, RawDocument
from refinery.transforms.extract.extract import ExtractParams, extract_document

RECIPE = Path(__file__).parents[1] / "recipes" / "fineweb.yaml"
IDS = 3  # examples of a class
_OTHER_BREAKS = re.compile("\r\n|[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")


def _lines(change: Callable[[str], str | None]) -> Callable[[str], str]:
    def changed(text: str) -> str:
        return "\n".join(line for line in map(change, text.split("\n")) if line is not None)

    return changed


def _solid_words(text: str) -> str:
    return _lines(lambda line: " ".join(w for w in line.split(" ") if not w or any(map(str.isalnum, w))))(text)


# What makes the sides count differently, and the text without it; in the order in which they are tried.
CLASSES: dict[str, Callable[[str], str]] = {
    "capital letters": str.lower,
    "line breaks other than \\n": lambda text: _OTHER_BREAKS.sub("\n", text),
    "line breaks around the text": str.strip,
    "white space at the ends of lines": _lines(str.strip),
    "blank lines": _lines(lambda line: line if line.strip() else None),
    "lines that begin with another bullet": _lines(lambda line: re.sub(r"^\s*[*‣◦▪●⁃·]", "-", line)),
    "words without a letter or digit": _solid_words,
    "citations": lambda text: re.sub(r"\[\d*\]|\[edit\]|\[citation needed\]", "", text),
}


@dataclass
class Found:
    """What became of a rule: documents, those dropped by each side, and the differences by class."""

    documents: int = 0
    dropped: list[int] = field(default_factory=lambda: [0, 0])
    classes: Counter[str] = field(default_factory=Counter)
    ids: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))


def read(path: str, text_field: str, html_field: str) -> Iterator[tuple[str, str]]:
    """(id, text) of each line, plain or compressed."""
    with open(path, "rb") as raw:
        packed = {".gz": gzip.open, ".zst": zstandard.open}.get(Path(path).suffix)
        lines = io.TextIOWrapper(packed(raw, "rb") if packed else raw, "utf-8")  # type: ignore[operator]
        for number, line in enumerate(lines, 1):
            row = json.loads(line)
            text = page_text(row[html_field]) if html_field else row.get(text_field)
            if text:
                yield str(row.get("id") or row.get("url") or f"line {number}"), text


def page_text(html: str) -> str:
    """What our extraction makes of a page, "" where it drops it."""
    found = extract_document(RawDocument(html.encode(), True, "utf-8", "", "", "", 0, {}), ExtractParams())
    return found.text if isinstance(found, Document) else ""


def left(decision: Decision) -> list[str]:
    """The lines of the text that is left, without the white space around them."""
    return [line.strip() for line in decision.text.splitlines() if line.strip()]


def agree(rule: Rule, text: str) -> tuple[bool, tuple[bool, bool]]:
    """Whether both sides decide alike, and which of them drops the text; nothing left is dropped, too."""
    pair = rule.theirs(text), rule.ours(text)
    drops = tuple(not decision.keeps or (rule.by_text and not left(decision)) for decision in pair)
    same = drops[0] == drops[1] and (drops[0] or not rule.by_text or left(pair[0]) == left(pair[1]))
    return same, (drops[0], drops[1])


def class_of(rule: Rule, text: str) -> str:
    """The first known difference without which the sides agree; two of them, where it takes two."""
    for name, change in CLASSES.items():
        if (changed := change(text)) != text and agree(rule, changed)[0]:
            return name
    for name, change in CLASSES.items():
        text = change(text)
        if agree(rule, text)[0]:
            return f"several, up to {name}"
    return f"unexplained: {rule.theirs(text).reason or 'kept'} there, {rule.ours(text).reason or 'kept'} here"


def compare(rules: Sequence[Rule], documents: Iterator[tuple[str, str]]) -> dict[str, Found]:
    """Every rule on every document."""
    found = {rule.name: Found() for rule in rules}
    for name, text in documents:
        for rule in rules:
            same, drops = agree(rule, text)
            entry = found[rule.name]
            entry.documents += 1
            for side in (0, 1):
                entry.dropped[side] += drops[side]
            if not same:
                kind = class_of(rule, text)
                entry.classes[kind] += 1
                if len(entry.ids[kind]) < IDS:
                    entry.ids[kind].append(name)
    return found


def table(found: dict[str, Found]) -> Iterator[str]:
    """Markdown: a row for each rule, then the classes of difference with documents to look at."""
    yield "| rule | documents | dropped there | dropped here | equal, % | differ |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for name, entry in found.items():
        differ = entry.classes.total()
        share = 100 * (1 - differ / max(1, entry.documents))
        yield f"| {name} | {entry.documents} | {entry.dropped[0]} | {entry.dropped[1]} | {share:.3f} | {differ} |"
    yield ""
    yield "| rule | class of difference | documents | for example |"
    yield "| --- | --- | --- | --- |"
    for name, entry in found.items():
        for kind, count in entry.classes.most_common():
            yield f"| {name} | {kind} | {count} | {', '.join(ascii(each)[1:-1] for each in entry.ids[kind])} |"


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("documents", nargs="+", metavar="DOCUMENTS", help="JSON Lines, plain, .gz or .zst")
    parser.add_argument("--text", default="text", metavar="FIELD", help="the field that holds the text")
    parser.add_argument("--html", default="", metavar="FIELD", help="a field with a page, which is extracted first")
    parser.add_argument("--url", default="url", metavar="FIELD", help="the field that holds the address")
    parser.add_argument("--what", choices=["text", "language", "url", "pii", "dolma", "dclm"], default="text")
    parser.add_argument("--checkout", type=Path, default=Path("dclm"), help="of mlfoundations/dclm, for --what dclm")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="take each N-th document")
    parser.add_argument("--recipe", default=str(RECIPE), help="whose `heuristics` are compared")
    parser.add_argument("--words", choices=["same", "theirs"], default="same", help="`theirs`: spaCy's English words")
    args = parser.parse_args()
    recipe: Any = load_recipe(args.recipe)
    with TemporaryDirectory() as folder:
        rules = {
            "text": lambda: text_rules(recipe.heuristics, SameWords("same") if args.words == "same" else "eng"),
            "language": lambda: language_rules(recipe.language),
            "url": lambda: url_rules(recipe.url, Path(folder)),
            "pii": lambda: pii_rules(recipe.pii),
            "dolma": lambda: dolma_rules(recipe),
            "dclm": lambda: dclm_rules(recipe, args.checkout),
        }[args.what]()
        of_url = args.what == "url"
        names = (args.url, "") if of_url else (args.text, args.html)
        rows = (row for path in args.documents for row in read(path, *names))
        chosen = (row for number, row in enumerate(rows) if number % args.every == 0)
        print("\n".join(table(compare(list(rules), chosen))))


if __name__ == "__main__":
    main()
