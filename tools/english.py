"""Find phrases that are not idiomatic English: `python -m tools.english [FILE|FOLDER ...]`, part of `make lint`.

Each hit is a line `file:line: phrase → say this (why)`. A rule is a pattern with a better wording; docs/style.md
explains the habits behind them. If a rule fires on good English, narrow its pattern and add the sentence to
tests/tools/test_english.py. Phrases in `code` and in double quotes are skipped.
"""

import re
import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain
from pathlib import Path

from tools.prose import SUFFIXES, Passage, passages

# What `make lint` reads: files, and folders with everything below them.
ROOTS = (
    "tools",
    "docs/style.md",
    "refinery/loader",
    "refinery/transforms",
    "refinery/testing",
    "refinery/corpus.py",
    "refinery/offers.py",
    "refinery/pipelines/acquire",
    "refinery/pipelines/corpus/adopt",
    "refinery/pipelines/corpus/audit",
    "refinery/pipelines/corpus/checks",
    "refinery/pipelines/corpus/export",
    "refinery/pipelines/corpus/mix",
    "refinery/pipelines/corpus/remove",
    "refinery/pipelines/corpus/replay",
    "refinery/pipelines/corpus/show",
    "refinery/pipelines/corpus/trace",
    "refinery/pipelines/corpus/verify",
    "refinery/pipelines/lanes",
    "refinery/pipelines/published",
    "refinery/pipelines/reports/cards",
    "refinery/pipelines/runners",
    "refinery/pipelines/training",
)
EXCLUDED = ("vendor", "english.py")  # other people's files, and the phrases themselves


@dataclass(frozen=True)
class Rule:
    """pattern: what to find, in any case. say: what to write instead. why: what is wrong with it, in a few words."""

    pattern: str
    say: str
    why: str

    @cached_property
    def regex(self) -> re.Pattern[str]:
        """The pattern for many passages at once, one a line; no match crosses lines."""
        return re.compile(self.pattern.replace("[^", "[^\\n"), re.IGNORECASE | re.MULTILINE)


_TRANSLATED = "reads as if translated"
_INVERTED = "the subject comes first"
_POETRY = "not a technical word"
_IS = r"(?:is|are|was|were|be|been|being)"
_HAS = r"(?:has|have|had)"

RULES = (
    Rule(r"\bbut for\b", "except, apart from", _TRANSLATED),
    Rule(
        r"(?<!such )(?<!long )(?<!soon )(?<!far )\bas (?:(?!that |which |who |long |soon |far )[^,.;:()|]){1,40}"
        rf" {_HAS} (?:it|them)\b(?! to)",
        "as in …, as … defines it",
        _TRANSLATED,
    ),
    Rule(rf"\bsuch as [^,.;:()|]{{1,40}} {_HAS} (?:it|them)\b", "such as those in …", _TRANSLATED),
    Rule(
        r"\btaken over(?= from\b|[.,;:)|]|$| (?:whole|and|or|where|by|as|into)\b)"
        r"|\b(?:takes? over (?:the|a|an|what|its|whole|it|all)|took over (?:the|what|it|all))\b",
        "reuse, copy",
        _TRANSLATED,
    ),
    Rule(rf"\b{_IS} noted\b", "is recorded, (someone) records", _TRANSLATED),
    Rule(r"\bwhat (?:is|was) of\b", "(name it)", "a riddle"),
    Rule(
        rf"\b(?:{_IS}|{_HAS}|drops?|dropped|needs?|takes?) but (?:one|1|a single|a few|two|2)\b",
        "only one",
        _TRANSLATED,
    ),
    Rule(
        r"\banother (?!words?\b)[a-z-]+ than\b|\bother (?!words?\b|hand\b)[a-z-]+ than\b|\b(?:an)?others? than those\b"
        r"|\bothers than\b",
        "different from, … other than",
        _TRANSLATED,
    ),
    Rule(r"\bof one's own\b|\bone's own\b", "your own, separate", _TRANSLATED),
    Rule(
        r"\b(?:for|to|with|reads?|needs?|imports?|checks?|loads?|opens?|knows?|takes?|writes?|lists?|compares?)"
        r" (?:(?!leave|leaves|left|let|stand|stands|standing|by|from|on|that|itself|trains|works|runs)"
        r"[^\s.,;:()]+ ){1,6}alone(?=[.,;:)|]|$| and\b)",
        "only",
        '"alone" means "by itself"',
    ),
    Rule(r"\bnor\b[^.;:|]{1,50}\bany\b", "or any, and no", _TRANSLATED),
    Rule(r", so that\b", "so, to, which lets", 'a result is "so", a purpose has no comma'),
    Rule(
        r"[,;] for (?:it|they|he|she|this|that|there|we|you)"
        r" (?:is|are|was|were|has|have|had|does|do|can|may|would|will)\b",
        "because, since",
        "archaic",
    ),
    Rule(
        r"(?<!there )\b(?:is|are|was|were) no (?!longer|more|less|such|different|better|worse|good|one|way|need|reason"
        r"|harm|doubt|larger|smaller|later|earlier|faster|slower|older|higher|lower)[a-z]+",
        "is not a …",
        _TRANSLATED,
    ),
    Rule(
        rf"[,;] else (?:it|they|this|there|(?:the|an?|all|each|what) (?:[a-z]+ ){{1,2}}?"
        rf"(?:{_IS}|{_HAS}|fails?|ends?))\b",
        "otherwise",
        '"else" does not join sentences',
    ),
    Rule(
        r"(?:^|[.;] )(?-i:Of) (?!course|these|those|all|the \d|\d|note|which|what)[^.;:,|]{2,50},"
        r" (?:the|an?|it|each|its|they|only|nothing|[a-z]+ (?:is|are|has|have))\b",
        "(begin with the subject)",
        _INVERTED,
    ),
    Rule(r": [a-z][^.:;|?!()]{24,}: [a-z][a-z]+ [a-z]+", "(two sentences)", "a chain of colons"),
    Rule(r"\bat hand\b", "available, present", _TRANSLATED),
    Rule(r"\b(?:can|cannot|could|may|to) be had\b|\b(?:is|are) had\b", "is available, can be obtained", _TRANSLATED),
    Rule(r"\bc[oa]mes? along\b", "is bundled, is included", _TRANSLATED),
    Rule(
        r"\b(?:do|does|did|go|goes) without (?=it|them|one|these|that|any)", "does not need, does not use", _TRANSLATED
    ),
    Rule(r"\bsuch (?:a one|ones)\b", "one, these", _TRANSLATED),
    Rule(r"\b(?:stands?|stood) (?:there|here|in (?:the|an?|no|its|many)(?! for))\b", "is, is in", _TRANSLATED),
    Rule(r"\b(?:is|are|stays?|remains?|were|was) what (?:it was|they were)\b", "is unchanged", "a riddle"),
    Rule(r"\bRaises as\b", "Raises what … raises", _TRANSLATED),
    Rule(
        r"\bbehind (?:deduplication|extraction|the (?:encoder|tokenizer|stage|comma|colon|point|beginning|end|last)\b)",
        "after",
        '"behind" is for places',
    ),
    Rule(rf"\b{_IS} (?:\w+ )?told\b(?! to\b)", "is passed, is notified, is distinguished", _POETRY),
    Rule(r"\btells? (?:of|that|it)\b", "says, shows, reports", _POETRY),
    Rule(r"\bbears?\b(?! in mind)", "has, tolerates, allows", _POETRY),
    Rule(r"\bmend(?:s|ed|ing)?\b", "repair, fix", _POETRY),
    Rule(r"\btwins?\b", "copy, counterpart", _POETRY),
    Rule(r"\bdeeds?\b", "change, operation", _POETRY),
    Rule(r"\blies? (?:at|beside)\b", "is at, is beside", _POETRY),
    Rule(r"\banew\b", "again", _POETRY),
    Rule(r"\bfor ever\b", "forever, indefinitely, permanently", _POETRY),
    Rule(r"\b(?:whereof|thereof|wherein|whence|thence|whereupon|naught|nought)\b", "(plain words)", "archaic"),
    Rule(r"\bfirst of all\b", "first", "redundant"),
)  # fmt: skip


@dataclass(frozen=True)
class Hit:
    """A phrase in a file."""

    place: str
    line: int
    phrase: str
    rule: Rule

    def __str__(self) -> str:
        return f"{self.place}:{self.line}: {self.phrase} → {self.rule.say} ({self.rule.why})"


def hits(place: str, texts: Iterable[Passage]) -> Iterator[Hit]:
    """Every phrase that a rule finds, in the order of lines."""
    read = list(texts)
    text = "\n".join(passage.text for passage in read)
    begins = [0, *accumulate(len(passage.text) + 1 for passage in read)]
    found = []
    for rule in RULES:
        for match in rule.regex.finditer(text):
            number = bisect_right(begins, match.start()) - 1
            line = read[number].line_at(match.start() - begins[number])
            found.append(Hit(place, line, " ".join(match[0].strip(" ,;.:").split()), rule))
    yield from sorted(found, key=lambda hit: hit.line)


def files(roots: Iterable[Path]) -> Iterator[Path]:
    """The files that are read: those given, and those below folders, sorted. Raises FileNotFoundError."""
    for root in roots:
        if not root.exists():
            raise FileNotFoundError(f"{root}: there is no such file or folder")
        for path in sorted(root.rglob("*")) if root.is_dir() else [root]:
            if path.suffix in SUFFIXES and path.is_file() and not set(path.parts) & set(EXCLUDED):
                yield path


def read(path: Path) -> list[Hit]:
    """The hits in one file."""
    return list(hits(str(path), passages(path)))


def main(arguments: list[str]) -> int:
    """Print the hits in these files and folders (ROOTS); 1 if there are any."""
    with ProcessPoolExecutor() as workers:
        found = list(chain.from_iterable(workers.map(read, files(map(Path, arguments or ROOTS)), chunksize=20)))
    for hit in found:
        print(hit)
    if found:
        print(f"{len(found)} phrases; docs/style.md says what to write instead")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
