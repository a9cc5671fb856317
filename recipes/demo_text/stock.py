"""The word stocks of the demo crawl. All of its words were written for this project.

One phrase per line. {slots} are filled from lists of the same name, until none is left; {year}, {n} (small), {count}
(hundreds to thousands) and {share} (per cent) are numbers. A predicate is "verb | rest", which lets German put the
verb before its subject.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Topic:
    """What one kind of page talks about: titles, subjects (third person singular) and what they do."""

    titles: list[str]
    subjects: list[str]
    predicates: list[str]


@dataclass(frozen=True)
class Stock:
    """A language: topics, phrases that go with any topic, whole sentences, words for slots, and a site's furniture."""

    slots: dict[str, list[str]]
    openings: list[str]
    tails: list[str]
    subjects: list[str]
    predicates: list[str]
    sentences: list[str]
    topics: dict[str, Topic] = field(default_factory=dict)
    furniture: dict[str, str] = field(default_factory=dict)
    inverts: bool = False


def lines(block: str) -> list[str]:
    return [line.strip() for line in block.strip().splitlines() if line.strip()]


def words(block: str) -> list[str]:
    return [word.strip() for word in block.replace("\n", " ").split(",") if word.strip()]


def topic(titles: str, subjects: str, predicates: str) -> Topic:
    return Topic(words(titles), lines(subjects), lines(predicates))


PEOPLE = words(
    """Anna Keller, Jonas Brandt, Lucie Moreau, Hugo Perrin, Elena Campos, Mateo Ortega, Clara Voss, Emil Sander,
    Inès Garnier, Paul Lemaire, Rosa Molina, Pablo Serrano"""
)
