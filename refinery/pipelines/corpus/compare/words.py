"""How numbers and values of a comparison are said, in text and on the page alike."""

import json
from typing import Any

from refinery.pipelines.corpus.compare.compare import Comparison
from refinery.pipelines.corpus.compare.distributions import Distribution
from refinery.pipelines.corpus.compare.joining.fates import MEANINGS, Fate
from refinery.pipelines.corpus.compare.joining.listing import Listed
from refinery.pipelines.corpus.compare.joining.overlap import Count
from refinery.pipelines.progress.words import human_bytes

NONE = "–"
VALUE = 60  # characters of a setting that text shows; JSON has all
# A distance below this -> what it is called.
DISTANCES = ((0.005, "alike"), (0.02, "nearly alike"), (0.1, "somewhat different"), (0.3, "clearly different"))


def change(before: float, after: float) -> str:
    """The change of a number, with its share.

    >>> change(200, 250)
    '+50 (+25.0 %)'
    """
    difference = after - before
    if not difference:
        return "="
    share = f" ({difference / before:+.1%})".replace("%", " %") if before else ""
    return f"{difference:+,.0f}{share}"


def share(part: float | None) -> str:
    """0.123 -> "12.3 %"."""
    return NONE if part is None else f"{part:.1%}".replace("%", " %")


def number(value: float | None) -> str:
    """Three digits that count."""
    return NONE if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def count_of(count: Count | None) -> str:
    """Documents of a count; a dash where there is no such stage."""
    return NONE if count is None else f"{count.documents:,}"


def sizes(count: Count) -> str:
    """ "12 documents, 3.4 kB, 800 tokens", without tokens where none are counted."""
    return f"{count.documents:,} documents, {human_bytes(count.bytes)}" + tokens_of(count)


def tokens_of(counted: Count | Listed) -> str:
    """ ", 800 tokens", or nothing of texts: a document of a corpus of tokens has one at least."""
    return f", {counted.tokens:,} tokens" if counted.tokens else ""


def size_change(a: Count | Listed, b: Count | Listed) -> str:
    """ "120 → 90 bytes, 30 → 22 tokens", the latter where both have some."""
    before, after = (each.bytes if isinstance(each, Count) else each.text_bytes for each in (a, b))
    tokens = f", {a.tokens:,} → {b.tokens:,} tokens" if a.tokens and b.tokens else ""
    return f"{before:,} → {after:,} bytes{tokens}"


def value(setting: Any, most: int = VALUE) -> str:
    """A setting as JSON, cut where it is long; a dash where a side has none."""
    if setting is None:
        return NONE
    text = json.dumps(setting, ensure_ascii=False, sort_keys=True)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def fate_words(fate: Fate) -> str:
    """ "dropped: gopher-too-few-words (heuristics)"."""
    parts = [MEANINGS[fate.kind], f": {fate.reason}" if fate.reason else "", f" ({fate.stage})" if fate.stage else ""]
    where = {"source": ", within its source", "corpus": "", "": ""}
    return "".join(parts) + where.get(fate.scope, f", {fate.scope}")


def distance_words(distribution: Distribution) -> str:
    """ "nearly alike: 1.2 % of the documents would need another value"."""
    distance = distribution.distance
    if distance is None:
        return "one of them has no documents"
    if not distribution.total_variation:
        return "the same"
    called = next((word for limit, word in DISTANCES if distance < limit), "very different")
    if distribution.numbers:
        return f"{called}: cumulative shares differ by at most {share(distance)}"
    return f"{called}: {share(distance)} of the documents would need another value"


def headline(found: Comparison) -> str:
    """What a person reads first."""
    written = found.a.manifest.written
    content = "tokens" if written.has_tokens else "texts" if written.has_texts else "accounts"
    if found.identical:
        return f"The {content} are the same, byte for byte."
    if found.documents is None:
        return "The tokens differ; the documents cannot be compared."
    if found.tokens_differ:
        return (
            f"The same documents with the same sizes, but different tokens in {len(found.tokens_differ):,} shards; "
            "their texts differ in what is redacted or cut."
        )
    if not found.documents.differ:
        here, there = (side.manifest.written.endings for side in (found.a, found.b))
        where = "in other shards" if here == there else "in files of another kind"
        same = f"The documents are the same, but {where}."
        counted = "tokens or their funnels" if found.documents.has_tokens else "funnels"
        return same if not found.differ else f"{same} Their {counted} differ."
    documents = found.documents
    parts = [
        f"{documents.same[0].documents:,} documents are the same",
        f"{documents.cut[0].documents:,} have another final text",
        f"{documents.changed[0].documents:,} pages have another text",
        f"{documents.lost('A').documents:,} are only in A",
        f"{documents.lost('B').documents:,} only in B",
    ]
    return f"{', '.join(part for part in parts if not part.startswith('0 '))}."


PLACES = {"place": "split or domain", "source": "source"}  # of `Documents.moves`
MEANS = {
    "same": "the same",
    "cut": "another final text",
    "changed": "same page, another text",
    "only": "not on the other side",
}
EXPLAINED = {
    "same": "the same id and size of the final text and, with one tokenizer, the same number of tokens",
    "cut": "the same id, but white space, redaction, cut lines or chunks give another final text or number of tokens",
    "changed": "the same record of the same file, but its text has another id now",
    "only": "neither its text nor its record is in the other corpus",
}
