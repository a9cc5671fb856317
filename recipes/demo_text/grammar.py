"""Prose from a word stock: sentences, paragraphs, articles. The same random generator gives the same text."""

import random
import re
from collections.abc import Iterator, Sequence

from demo_text.stock import Stock

_SLOT = re.compile(r"\{(\w+)\}")
_NO_COMMA = ("because", "before", "until", "since", "if", "without", "just", "long", "as", "weil", "parce", "porque")
NUMBERS = {"n": (2, 28), "count": (110, 4900), "share": (12, 88), "year": (1851, 2019)}

Paragraphs = list[list[str]]  # paragraphs of sentences


def generator(*key: object) -> random.Random:
    """A separate random generator for each generated thing, so an additional page changes no other page."""
    return random.Random(" ".join(map(str, key)))  # noqa: S311


def fill(rng: random.Random, phrase: str, slots: dict[str, list[str]]) -> str:
    """`phrase` with every {slot} filled, from the innermost list on."""

    def choose(match: re.Match[str]) -> str:
        name = match[1]
        if name in NUMBERS:
            return str(rng.randint(*NUMBERS[name]))
        return rng.choice(slots[name])

    while _SLOT.search(phrase):
        phrase = _SLOT.sub(choose, phrase)
    return phrase


def _endless(rng: random.Random, phrases: Sequence[str]) -> Iterator[str]:
    """All phrases in random order, then again: none repeats before all have been used."""
    while True:
        yield from rng.sample(phrases, len(phrases))


class Writer:
    """Writes about some topics of one stock."""

    def __init__(self, rng: random.Random, stock: Stock, topics: Sequence[str]) -> None:
        self.rng = rng
        self.stock = stock
        chosen = [stock.topics[name] for name in topics]
        self.titles = [title for topic in chosen for title in topic.titles]
        self.subjects = _endless(rng, [phrase for topic in chosen for phrase in topic.subjects])
        self.people = _endless(rng, stock.subjects)
        self.does = _endless(rng, [phrase for topic in chosen for phrase in topic.predicates])
        self.acts = _endless(rng, stock.predicates)
        self.openings = _endless(rng, stock.openings)
        self.tails = _endless(rng, stock.tails)
        self.sentences = _endless(rng, stock.sentences)

    def title(self) -> str:
        return fill(self.rng, self.rng.choice(self.titles), self.stock.slots)

    def sentence(self) -> str:
        kind = self.rng.random()
        if kind < 0.16:
            return fill(self.rng, next(self.sentences), self.stock.slots)
        # Two in three speak of the topic itself, the others of people and places around it.
        subject, predicate = (
            (next(self.subjects), next(self.does)) if kind < 0.7 else (next(self.people), next(self.acts))
        )
        verb, rest = (part.strip() for part in predicate.split("|"))
        if self.rng.random() < 0.4:
            if self.stock.inverts:
                text = f"{next(self.openings)} {verb} {subject} {rest}"
            else:
                text = f"{next(self.openings)}, {subject} {verb} {rest}"
        else:
            text = f"{subject} {verb} {rest}"
        if self.rng.random() < 0.45:
            tail = next(self.tails)
            text += f" {tail}" if tail.startswith(_NO_COMMA) and not self.stock.inverts else f", {tail}"
        text = fill(self.rng, text, self.stock.slots).replace(",,", ",")
        return f"{text[0].upper()}{text[1:]}."

    def article(self, sentences: int) -> Paragraphs:
        """Paragraphs of 3 to 7 sentences."""
        found: Paragraphs = []
        while sentences > 0:
            count = min(self.rng.randint(3, 7), sentences)
            found.append([self.sentence() for _ in range(count)])
            sentences -= count
        return found


def write_article(rng: random.Random, stock: Stock, sentences: int) -> tuple[str, Paragraphs]:
    """Title and text about one topic, or two when it is long."""
    topics = rng.sample(sorted(stock.topics), 2 if sentences > 22 else 1)
    writer = Writer(rng, stock, topics)
    return writer.title(), writer.article(sentences)


def from_sentences(rng: random.Random, sentences: Sequence[str], slots: dict[str, list[str]], count: int) -> Paragraphs:
    """Paragraphs of whole sentences, each used once before any is used again."""
    source = _endless(rng, sentences)
    filled = [fill(rng, next(source), slots) for _ in range(count)]
    return [filled[i : i + 5] for i in range(0, len(filled), 5)]


def change_words(rng: random.Random, paragraphs: Paragraphs, words: Sequence[str], changes: int) -> Paragraphs:
    """A near copy: single words in `changes` different sentences replaced."""
    result = [list(paragraph) for paragraph in paragraphs]
    places = [(p, s) for p, paragraph in enumerate(result) for s in range(len(paragraph))]
    for p, s in rng.sample(places, changes):
        parts = result[p][s].split(" ")
        parts[rng.randrange(1, len(parts) - 1)] = rng.choice(words)
        result[p][s] = " ".join(parts)
    return result
