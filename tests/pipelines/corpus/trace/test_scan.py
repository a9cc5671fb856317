"""Many files at once: in order, with a line now and then, and no more of them than are asked for."""

import time

import pytest

from refinery.pipelines.published import scan as module
from refinery.pipelines.published.scan import THREADS, scan


def test_results_come_in_order_whoever_is_first() -> None:
    def look(number: int) -> int:
        time.sleep(0.01 if number % 7 == 0 else 0)
        return number * number

    told: list[str] = []
    assert list(scan(look, range(100), "files", told.append)) == [n * n for n in range(100)]
    assert list(scan(look, [], "files", told.append)) == [] and not told


def test_a_long_search_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SECONDS", -1.0)
    told: list[str] = []
    list(scan(str, range(1200), "shards", told.append))
    assert (told[0], told[-1]) == ("1 of 1,200 shards searched", "1,200 of 1,200 shards searched")


def test_who_stops_early_does_not_search_the_rest() -> None:
    looked: list[int] = []

    def look(number: int) -> int:
        looked.append(number)
        time.sleep(0.001)
        return number

    found = scan(look, range(10_000), "files")
    assert next(found) == 0
    found.close()  # type: ignore[attr-defined]
    assert len(looked) < 10_000 - THREADS


def test_an_error_is_that_of_the_first_file_in_order() -> None:
    def look(number: int) -> int:
        if number >= 5:
            raise OSError(f"file {number}")
        return number

    with pytest.raises(OSError, match=r"file 5$"):
        list(scan(look, range(50), "files"))
