"""Words by language: how long they are, and how much prose has two stop words of its language's list.

    PYTHONPATH=. .venv/bin/python benchmarks/heuristics_languages.py LABELLED.jsonl.gz

Prints WORD_LENGTHS of heuristics_data.py and the table of docs/benchmarks/heuristics-languages.md. Lines of LABELLED
have `text` and `lang` (benchmarks/language.py). Texts of a language are joined, in the order of a hash, into documents
of 50 words or more, the fewest that Gopher's rules keep (Rae et al. 2021). Languages written with spaces that have 20
documents get a word length.
"""

import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.language import CODES, read
from refinery.transforms.core.document import hash64
from refinery.transforms.filter.heuristics_data import STOP_WORDS, WORD_LENGTHS
from refinery.transforms.native.heuristics import WORDS, Features, measure

LEAST, MOST = 3.0, 10.0  # Gopher's, for English
WORDS_OF_A_DOCUMENT, DOCUMENTS = 50, 20


def documents(texts: Sequence[str]) -> Iterator[str]:
    """Texts joined until they have 50 words."""
    parts: list[str] = []
    for text in sorted(texts, key=lambda text: (hash64("join", 1, text), text)):
        parts.append(text)
        joined = "\n".join(parts)
        if features(joined, ()).alnum_words >= WORDS_OF_A_DOCUMENT:
            yield joined
            parts = []


def features(text: str, words: tuple[str, ...]) -> Features:
    """What the kernel counts in a text."""
    return measure(text, (words,), 0, 0, 0, 0, WORDS)


def by_language(path: Path) -> Mapping[str, list[str]]:
    """Label of lid.176 -> documents in that language, where there are enough."""
    texts = defaultdict(list)
    for row in read(path):
        if code := CODES.get(row["lang"], CODES.get(row.get("lang_macro", ""))):
            texts[code].append(row["text"])
    joined = {code: list(documents(texts[code])) for code in sorted(texts)}
    return {code: found for code, found in joined.items() if len(found) >= DOCUMENTS}


def word_lengths(found: Sequence[Features]) -> list[float]:
    """The mean word length of each document that is written with spaces."""
    return [each.alnum_word_chars / each.alnum_words for each in found if 2 * each.spaceless_letters <= each.letters]


def share(passing: Sequence[bool]) -> str:
    """Per cent, for the table."""
    return f"{100 * sum(passing) / len(passing):.0f}"


def row(code: str, found: Sequence[Features]) -> str:
    """A line of the table."""
    lengths, ratio = word_lengths(found), WORD_LENGTHS.get(code, 1.0)
    cells = [code, str(len(found)), "", "", ""]
    if len(lengths) >= DOCUMENTS:
        cells[2] = f"{statistics.mean(lengths):.1f}"
        cells[3] = share([LEAST <= length <= MOST for length in lengths])
        cells[4] = share([LEAST * ratio <= length <= MOST * ratio for length in lengths])
    cells.append(share([each.stop_words >= 2 for each in found]) if code in STOP_WORDS else "")
    return f"| {' | '.join(cells)} |"


def main(arguments: Sequence[str]) -> None:
    """Print both tables."""
    texts = by_language(Path(arguments[0]))
    found = {code: [features(text, STOP_WORDS.get(code, ())) for text in texts[code]] for code in texts}
    means = {code: statistics.mean(each) for code in found if len(each := word_lengths(found[code])) >= DOCUMENTS}
    print(", ".join(f"{code} {means[code] / means['en']:.2f}" for code in means) + "\n")
    print("| language | documents | mean word length | within 3 and 10 | within its bounds | two stop words |")
    print("| --- | --- | --- | --- | --- | --- |")
    for code in found:
        print(row(code, found[code]))


if __name__ == "__main__":
    main(sys.argv[1:])
