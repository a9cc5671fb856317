"""Sources of which nothing is kept, and stages that take nearly all of one: from a funnel of hand-written counts."""

from typing import Any

import pytest

from refinery.pipelines.recipe.recipe import FailureParams
from refinery.pipelines.run.empty_sources import check_sources, loss_warnings, losses
from refinery.pipelines.run.errors import RefineError
from refinery.pipelines.run.funnel import build_funnel
from refinery.pipelines.run.source_table import source_rows, source_table

STAGES = ("read", "language", "exact-duplicates")
Count = tuple[str, str, str, str, int]


def funnel(*counts: Count, sources: tuple[str, ...] = ("a", "b")) -> list[dict[str, Any]]:
    names = ("stage", "source", "outcome", "reason", "documents")
    return build_funnel([{**dict(zip(names, count, strict=True)), "bytes": 0} for count in counts], STAGES, sources)


def stage(name: str, source: str, kept: int, **lost: int) -> list[Count]:
    entries = [(name, source, "dropped", reason.replace("_", "-"), count) for reason, count in lost.items()]
    return [(name, source, "in", "", kept + sum(lost.values())), (name, source, "kept", "", kept), *entries]


A = [*stage("read", "a", 5), *stage("language", "a", 5)]


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        (A, "source b: no record was found in its files"),
        ([*A, *stage("read", "b", 0, MissingField=1)], "source b: its only record is not kept: read MissingField 1"),
        (
            [*A, *stage("read", "b", 8, empty=2), *stage("language", "b", 0, language=8)],
            "source b: none of its 10 records is kept: language language 8, read empty 2",
        ),
        (
            [*A, *stage("read", "b", 8), *stage("language", "b", 8), *stage("exact-duplicates", "b", 0, exact_dup=8)],
            "exact-duplicates exact-dup 8",
        ),
    ],
)
def test_an_empty_source_fails_the_run(counts: list[Count], words: str) -> None:
    rows = funnel(*counts)
    with pytest.raises(RefineError) as caught:
        check_sources(rows, FailureParams())
    assert words in str(caught.value)
    assert "or the rule that dropped it (`refinery try` shows what each rule measures)" in str(caught.value)
    assert "--set failures.allow_empty=true: it continues where it stopped" in str(caught.value)
    check_sources(rows, FailureParams(allow_empty=True))
    check_sources(rows, FailureParams(allow_empty=("b",)))
    with pytest.raises(RefineError, match="source b"):
        check_sources(rows, FailureParams(allow_empty=("a",)))


def test_nothing_is_expected_of_a_source_that_is_switched_off() -> None:
    check_sources(funnel(*A), FailureParams(), off=["b"])


def test_sources_of_which_something_is_kept_pass() -> None:
    check_sources(funnel(*A, *stage("read", "b", 1, empty=1000)), FailureParams())


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        (stage("language", "a", 1, language=15, other=4), "language took 95.0% of the 20 documents of source a, 15 as"),
        (stage("language", "a", 0, language=10), "10 as language"),
        (stage("language", "a", 2, language=18), ""),  # 90 % is not more than 90 %
        (stage("language", "a", 0, language=9), ""),  # too few to say anything
        (stage("read", "a", 10, not_sampled=990), ""),
        (stage("read", "a", 10, record_type=990), ""),
        (stage("read", "a", 1, empty=99), "99 as empty"),
    ],
)
def test_a_stage_that_takes_nearly_all_is_warned_of(counts: list[Count], words: str) -> None:
    lines = loss_warnings(funnel(*counts))
    assert len(lines) == bool(words) and words in "".join(lines)


def test_losses_are_in_order() -> None:
    rows = funnel(*stage("read", "a", 9, y=1, x=1, z=2), *stage("language", "a", 0, x=9), *stage("read", "b", 0, q=99))
    assert losses(rows, "a") == [("language", "x", 9), ("read", "z", 2), ("read", "x", 1), ("read", "y", 1)]


def test_each_source_has_a_line() -> None:
    lost = [*stage("read", "b", 8, empty=2), *stage("language", "b", 4, language=4)]
    counts = [*stage("read", "a", 5), *stage("language", "a", 5), *lost]
    rows = list(source_rows(funnel(*counts, sources=("a", "b", "c")), {"a": 1234}))
    assert [(row["source"], row["read"], row["kept"], row["tokens"]) for row in rows] == [
        ("a", 5, 5, 1234),
        ("b", 10, 4, None),
        ("c", 0, 0, None),
    ]
    head, *lines = source_table(rows)
    assert head.split() == ["source", "read", "kept", "of", "read", "tokens", "most", "lost", "to"]
    assert [" ".join(line.split()) for line in lines] == [
        "a 5 5 100.0% 1,234",
        "b 10 4 40.0% language language 4, read empty 2",
        "c 0 0",
    ]


def test_many_sources_are_counted() -> None:
    names = tuple(f"s{number:02d}" for number in range(43))
    lines = source_table(source_rows(funnel(sources=names), {}))
    assert len(lines) == 1 + 40 + 1 and lines[-1].startswith("and 3 more sources; ") and "--json" in lines[-1]
