"""The table of n-grams against an oracle of words; same bytes; memory."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.filter.boilerplate import BOILERPLATE
from refinery.transforms.filter.ngram_index import SHARED, Item, build_index
from tests.sampling import one_commit_in_four
from tests.transforms import ngram_oracle

WORDS = (
    "the",
    "a",
    "Red",
    "fox",
    "jumped",
    "Über",
    "12",
    "x",
    "7",
    "caf\u0301e",
    "漢",
    "字",
    "か",
    "(",
    "==",
    "don't",
    "_",
)
GAPS = (" ", " ", " ", ", ", "\n", "  ", "-", "")
texts = st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(GAPS)), max_size=40).map(
    lambda pairs: "".join(word + gap for word, gap in pairs)
)
items = st.lists(
    st.builds(
        Item, st.just(0), st.just("i"), st.lists(texts, max_size=2).map(tuple), st.lists(texts, max_size=1).map(tuple)
    ),
    min_size=1,
    max_size=6,
)


def hits(index, text):
    spans, owners = index.scan(text)
    return {(*span, owner) for span, owner in zip(spans.tolist(), (owners & ~SHARED).tolist(), strict=True)}


@given(items, st.lists(texts, max_size=3), st.integers(1, 3), st.integers(8, 13))
def test_hits_are_those_of_the_oracle(items: list[Item], others: list[str], max_items: int, n: int) -> None:
    common = others[:1]
    index = build_index(lambda: items, n, max_items, common)
    found = ngram_oracle.evidence(items, n, max_items, common)
    assert len(index.keys) == len(found)
    assert np.all(index.keys[1:] > index.keys[:-1])
    searchable = {item for owners in found.values() for item in owners}
    assert set(np.flatnonzero(index.searchable).tolist()) == searchable
    inside = [text for item in items for text in (*item.questions, *item.others)]
    for text in (*inside, *others, " and ".join([*others, *inside]), "\n".join(text.upper() for text in inside)):
        assert hits(index, text) == ngram_oracle.scan(text, found)


def many(count: int) -> list[Item]:
    rng = random.Random(5)
    names = ["".join(rng.choices("abcdefghij", k=5)) for _ in range(3000)]
    return [Item(0, str(i), (" ".join(rng.choices(names, k=40)),)) for i in range(count)]


@one_commit_in_four
def test_many_items_in_several_batches_and_the_same_bytes_again() -> None:
    listed = many(11_000)  # more than one batch of keys
    first, again = (build_index(lambda: listed) for _ in range(2))
    assert len(first.keys) == 11_000 * 28
    for name in ("keys", "owners", "filter", "tails"):
        assert getattr(first, name).tobytes() == getattr(again, name).tobytes()
    for number in range(0, 11_000, 997):
        _, owners = first.scan(f"before {listed[number].questions[0].upper()}, after")
        assert first.found(owners) == [number]
    assert not len(first.scan(" ".join(text for item in many(50)[::-1] for text in item.questions[0].split()[::-1]))[1])
    arrays = (first.keys, first.owners, first.filter, first.tails, first.benchmarks, first.searchable)
    assert sum(array.nbytes for array in arrays) < 20 * len(first.keys)


@pytest.mark.parametrize(
    ("question", "text", "is_found"),
    [
        ("Who wrote the famous book about the old whale?", "who wrote -- the Famous book about the\nold whale", True),
        ("Who wrote the famous book about the old whale?", "who wrote the famous book about the whale", False),
        ("Who wrote this book?", "Who wrote this book?", False),  # too short to be evidence
        ("0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15", "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15", True),  # as symbols
        ("0 1 2 3 4 5 6 7 8 9", "x 0, 1, 2, 3, 4, 5, 6, 7, 8, 9", False),
        ("((1 + 7 * -9 + -5) + (3 + -5 * 2 - 6)) =", "so ((1+7*-9+-5)+(3+-5*2-6)) = what?", True),
        ("((1 + 7 * -9 + -5) + (3 + -5 * 2 - 6)) =", "1 7 9 5 3 5 2 6", False),
        ("not not not True and not True is", "NOT not not true and not true is", True),
        (BOILERPLATE[0], BOILERPLATE[0], False),
        ("a b c d e f g h i j k l m n o p", "a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p", False),
        (
            "我们昨天在学校的图书馆里一起读了一本关于古代历史的书籍",
            "我们昨天在学校的图书馆里一起读了一本关于古代历史的书籍。",
            True,
        ),
        ("我们昨天在学校的图书馆里", "我们昨天在学校的图书馆里", False),
    ],
)
def test_what_is_found(question: str, text: str, is_found: bool) -> None:
    index = build_index(lambda: [Item(0, "i", (question,))], common=BOILERPLATE)
    assert bool(len(index.scan(text)[1])) == is_found


def test_instructions_of_a_benchmark_prove_nothing() -> None:
    order = "Read the following passage with care and then answer the question that is below it: "
    listed = [
        Item(0, str(i), (f"{order}Which of the towns has number {i} and a market {i * 7} years old?",))
        for i in range(11)
    ]
    index = build_index(lambda: listed)
    assert not len(index.scan(order + "Something else entirely is asked here.")[1])
    assert all(index.found(index.scan(item.questions[0])[1]) == [number] for number, item in enumerate(listed))


def test_short_answers_are_no_evidence() -> None:
    index = build_index(
        lambda: [
            Item(
                0,
                "i",
                ("Who governs the country after an election is lost by everybody else here?",),
                ("the president of the united states of america",),
            )
        ]
    )
    assert not len(index.scan("He met the president of the United States of America.")[1])
