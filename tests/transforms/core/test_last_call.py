"""A pure function works once for what it is asked again, and anew for anything else."""

import pytest

from refinery.transforms.core.last_call import LastCall


def test_only_other_arguments_are_worked_for() -> None:
    asked: list[tuple[str, int]] = []

    def repeat(text: str, times: int) -> str:
        asked.append((text, times))
        if not times:
            raise ValueError("nothing")
        return text * times

    last = LastCall(repeat)
    assert [last("a", 2), last("a", 2), last("".join(["a"]), 2), last("a", 3), last("a", 2)] == ["aa"] * 3 + [
        "aaa",
        "aa",
    ]
    assert asked == [("a", 2), ("a", 3), ("a", 2)]
    for _ in range(2):  # an error is no answer
        with pytest.raises(ValueError, match="nothing"):
            last("a", 0)
    assert last("a", 2) == "aa"
    assert asked[3:] == [("a", 0), ("a", 0)]
