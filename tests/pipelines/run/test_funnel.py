"""The funnel's rows, its table, and the failure budget."""

import pytest

from refinery.loader.format.manifest import check_funnel
from refinery.pipelines.progress.words import human_bytes
from refinery.pipelines.run.funnel import build_funnel, check_budget, funnel_table


def counter(
    stage: str, outcome: str, documents: int, reason: str = "", source: str = "s", size: int = 0
) -> dict[str, object]:
    return {
        "stage": stage,
        "source": source,
        "outcome": outcome,
        "reason": reason,
        "documents": documents,
        "bytes": size,
    }


COUNTERS = [
    counter("url", "kept", 6, size=60),
    counter("read", "in", 10, size=100),
    counter("read", "kept", 8, size=80),
    counter("read", "dropped", 1, "record-type"),
    counter("read", "dead", 1, "BadRecord"),
    counter("url", "in", 8, size=80),
    counter("url", "dropped", 2, "blocked-host"),
]


def test_rows_follow_the_funnel_whatever_the_order_of_counters() -> None:
    funnel = build_funnel(COUNTERS, ("read", "url"), ("s",))
    assert funnel == build_funnel(reversed(COUNTERS), ("read", "url"), ("s",))
    assert [row["stage"] for row in funnel] == ["read", "url"]
    assert funnel[0]["dropped"] == {"record-type": {"documents": 1, "bytes": 0}}
    assert check_funnel(funnel) == []


def test_a_document_lost_between_stages_is_found() -> None:
    lost = [
        t if t["stage"] == "read" else {**t, "documents": t["documents"] - (t["outcome"] != "dropped")}
        for t in COUNTERS
    ]
    assert check_funnel(build_funnel(lost, ("read", "url"), ("s",)))


def test_created_documents_are_counted_where_there_are_any() -> None:
    counters = [
        *COUNTERS,
        counter("split", "in", 6, size=60),
        counter("split", "kept", 9, size=55),
        counter("split", "created", 4),
        counter("split", "dropped", 1, "empty"),
    ]
    funnel = build_funnel(counters, ("read", "url", "split"), ("s",))
    assert ["created" in row for row in funnel] == [False, False, True]
    assert funnel[2]["created"] == {"documents": 4, "bytes": 0}
    assert check_funnel(funnel) == []
    nothing = build_funnel([*COUNTERS, counter("url", "created", 0)], ("read", "url"), ("s",))
    assert nothing == build_funnel(COUNTERS, ("read", "url"), ("s",))
    lines = funnel_table(funnel, {}, 1)
    at = next(i for i, line in enumerate(lines) if line.startswith("split"))
    assert lines[at].split()[:4] == ["split", "6", "9", "1"]  # lost: the one that was dropped
    assert lines[at + 1].split() == ["+", "created", "4"]
    assert lines[-1].startswith("(+ made by splitting")
    assert not any("created" in line or "splitting" in line for line in funnel_table(nothing, {}, 1))


def test_table_shows_stages_reasons_and_retention() -> None:
    lines = funnel_table(build_funnel(COUNTERS, ("read", "url"), ("s",)), {"url": 2.0}, 1234)
    text = "\n".join(lines)
    assert "record-type" in text and "BadRecord" in text and "60.0%" in text and "1,234" in text
    assert lines[0].split()[:3] == ["stage", "in", "kept"]


@pytest.mark.parametrize(
    ("entered", "dead", "ratio", "grace", "fails"),
    [
        (1000, 10, 0.01, 0, False),
        (1000, 11, 0.01, 0, True),
        (3, 3, 0.01, 10, False),
        (1000, 20, 0.01, 10, True),
        (10, 1, 0.0, 0, True),
        (10, 0, 0.0, 0, False),
    ],
)
def test_budget(entered: int, dead: int, ratio: float, grace: int, fails: bool) -> None:
    counters = [counter("extract", "in", entered), counter("extract", "dead", dead, "KeyError")]
    problems = check_budget(counters, ratio, grace)
    assert bool(problems) is fails
    assert not fails or ("extract" in problems[0] and "KeyError" in problems[0] and "failures.max_ratio" in problems[0])


@pytest.mark.parametrize(("size", "text"), [(0, "0 B"), (999, "999 B"), (1536, "1.5 kB"), (2e13, "20.0 TB")])
def test_human_bytes(size: float, text: str) -> None:
    assert human_bytes(size) == text
