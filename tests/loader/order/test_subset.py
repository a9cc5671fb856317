"""Subsets for evaluation, checked against docs/loader.md alone: which tokens are in one, exactly once, on any ranks."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.loader import TokenStream
from refinery.loader.order.subset import rows_of_domains
from refinery.loader.stream.state import StateError
from tests.loader.numbered import build_numbered

S = 8
LENGTHS = {"web": [[7, 30, 5], [], [61, 2]], "code": [[40], [9, 9]], "tiny": [[3]]}  # 105, 58 and 3 tokens
FIRST = {"web": 0, "code": 105, "tiny": 163}  # the id of each domain's first token


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_numbered(tmp_path_factory.mktemp("subset"), LENGTHS)


def stream(corpus: Path, **options: Any) -> TokenStream:
    return TokenStream(corpus, **{"sequence_length": S, "batch_size": 2, "epochs": 1, "prefetch": 0} | options)


def inputs(batches: Any) -> list[int]:
    """All input tokens, sorted, without padding: every row is ascending up to it."""
    found = []
    for batch in batches:
        for row, labels in zip(batch["input_ids"].tolist(), batch["labels"].tolist(), strict=True):
            end = labels.index(-100) + 1 if -100 in labels else S
            found += [token for i, token in enumerate(row[:end]) if token == row[0] + i]
    return sorted(found)


def expected(**rows: int) -> list[int]:
    """The first rows of each domain, as the ids of their tokens."""
    ends = {"web": 105, "code": 163, "tiny": 166}
    return sorted(i for d, n in rows.items() for i in range(FIRST[d], min(FIRST[d] + n * S, ends[d])))


# web has 14 rows, code 8, tiny 1
@pytest.mark.parametrize(
    ("subset", "rows"),
    [
        (0.5, {"web": 7, "code": 4, "tiny": 1}),
        (0.1, {"web": 2, "code": 1, "tiny": 1}),
        (1.0, {"web": 14, "code": 8, "tiny": 1}),
        (23, {"web": 14, "code": 8, "tiny": 1}),
        (10, {"web": 6, "code": 4, "tiny": 0}),
        (1, {"web": 1}),
    ],
)
@pytest.mark.parametrize("world", [1, 3])
def test_the_first_rows_of_each_domain_once(corpus: Path, subset: Any, rows: dict[str, int], world: int) -> None:
    found = []
    for rank in range(world):
        with stream(corpus, subset=subset, rank=rank, world_size=world) as batches:
            found += inputs(batches)
    # Empty rows are EOS and have no labels; `inputs` takes their first place for a token.
    counted = Counter(token for token in found if token < 200)
    assert sorted(counted) == expected(**rows) and set(counted.values()) == {1}


def test_it_is_a_part_of_a_larger_one_and_of_a_domain_that_has_grown(tmp_path: Path) -> None:
    small = build_numbered(tmp_path / "a", {"web": [[50, 50]]})
    grown = build_numbered(tmp_path / "b", {"web": [[50, 50], [80, 20]]})
    for corpus, subset in ((small, 6), (grown, 6), (small, 0.4)):
        with stream(corpus, subset=subset) as batches:
            assert set(range(40)) <= set(inputs(batches))


def test_resume_and_restart(corpus: Path) -> None:
    with stream(corpus, subset=0.5, loop="restart") as batches:
        first, second = ([batch["input_ids"].tobytes() for batch in batches] for _ in range(2))
        assert first == second and len(first) == batches.steps == 6
    with stream(corpus, subset=0.5) as batches:
        whole = [batch["input_ids"].tobytes() for batch in batches]
    with stream(corpus, subset=0.5) as batches:
        begun = [next(batches)["input_ids"].tobytes() for _ in range(2)]
        state = batches.state_dict()
    with stream(corpus, subset=0.5) as batches:
        batches.load_state_dict(state)
        assert begun + [batch["input_ids"].tobytes() for batch in batches] == whole
    for other in (None, 0.25, 12):
        with stream(corpus, subset=other) as batches, pytest.raises(StateError, match=r"subset 0\.5 given"):
            batches.load_state_dict(state)


def test_a_state_from_before_there_were_subsets(corpus: Path) -> None:
    with stream(corpus) as batches:
        state = {k: v for k, v in batches.state_dict().items() if k not in ("subset", "check")}
        batches.load_state_dict(state)


def test_with_weights(corpus: Path) -> None:
    with stream(corpus, subset=0.5, weights={"web": 1, "code": 1}) as batches:
        found = inputs(batches)
    assert set(found) <= set(expected(web=7, code=4)) | {59_999}
    assert batches.tokens_per_domain["tiny"] == 0


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=8), st.data())
def test_rows_of_domains(rows: list[int], data: Any) -> None:
    total = sum(rows)
    if total:
        n = data.draw(st.integers(1, total))
        found = rows_of_domains(n, rows)
        assert sum(found) == n
        assert all(0 <= a <= b and abs(a - n * b / total) < 1 for a, b in zip(found, rows, strict=True))
    share = data.draw(st.floats(0.001, 1.0))
    each = rows_of_domains(share, rows)
    assert all(b * share - 1e-6 <= a < b * share + 1 + 1e-6 and a <= b for a, b in zip(each, rows, strict=True))


@pytest.mark.parametrize(
    ("subset", "message"),
    [
        (0, "1 or more"),
        (0.0, "share above 0"),
        (1.5, "share above 0"),
        (float("nan"), "share above 0"),
        (True, "whole number"),
        ("0.1", "whole number"),
        (24, "24 rows given, 1 to 23"),
    ],
)
def test_wrong_subsets(corpus: Path, subset: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"subset: .*{message}"):
        stream(corpus, subset=subset)
