"""How good an extracted text is: F1 of words, and F1 of snippets.

Word F1 is WCXB's score: the multisets of the lower-cased words (`\\w+`) of two texts are compared, and the mean is
taken over pages. Snippet F1 is that of trafilatura's evaluation: snippets that a text must and must not contain, over
all pages.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

WORD = re.compile(r"\w+")


def words_of(text: str) -> list[str]:
    """Lower-cased words."""
    return WORD.findall(text.lower())


def word_f1(found: Sequence[str], gold: Sequence[str]) -> tuple[float, float, float]:
    """Precision, recall and F1 of words; all 1 where both are empty."""
    if not found and not gold:
        return 1.0, 1.0, 1.0
    shared = sum((Counter(found) & Counter(gold)).values())
    precision, recall = shared / max(len(found), 1), shared / max(len(gold), 1)
    return precision, recall, 2 * shared / (len(found) + len(gold))


@dataclass
class Snippets:
    """Counts of snippets over pages."""

    found: int = 0
    missed: int = 0
    false: int = 0

    def add(self, text: str, wanted: Iterable[str], unwanted: Iterable[str]) -> None:
        """Count the snippets of one page, whitespace aside."""
        plain = " ".join(text.split())
        for snippet in wanted:
            if " ".join(snippet.split()) in plain:
                self.found += 1
            else:
                self.missed += 1
        self.false += sum(" ".join(snippet.split()) in plain for snippet in unwanted)

    @property
    def precision(self) -> float:
        return self.found / max(self.found + self.false, 1)

    @property
    def recall(self) -> float:
        return self.found / max(self.found + self.missed, 1)

    @property
    def f1(self) -> float:
        return 2 * self.found / max(2 * self.found + self.missed + self.false, 1)
