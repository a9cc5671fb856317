"""Numbers with units in recipes."""

from collections.abc import Mapping
from typing import Any

import pytest

from refinery.pipelines.recipe.params import parse
from refinery.transforms.core.data_text.plain_yaml import RecipeError, load_yaml, override
from refinery.transforms.core.params import Count, Params, Positive, Share


class PartParams(Params):
    most: Positive = 1
    tokens: int | None = None
    part_bytes: Positive = 1
    share: Share = 0.5
    name: str = ""


class WholeParams(Params):
    part: PartParams | None = None
    parts: tuple[PartParams, ...] = ()
    counts: Mapping[str, Count] = {}
    lengths: tuple[int, ...] = ()


def read(text: str) -> Any:
    return parse(WholeParams, load_yaml(text, "x")).plain()


def test_numbers_are_read_at_any_depth() -> None:
    found = read(
        """
part: {most: 15b, tokens: 2e9, part_bytes: 500 MB, share: 0.25, name: 10k}
parts: [{most: 10k}, {tokens: 1.5T}]
counts: {a: 2B}
lengths: [1k, 2_000, 3]
"""
    )
    part = {"most": 15 * 10**9, "tokens": 2 * 10**9, "part_bytes": 5 * 10**8, "share": 0.25, "name": "10k"}
    assert found["part"] == part
    assert [each["most"] for each in found["parts"]] == [10_000, 1]
    assert found["parts"][1]["tokens"] == 15 * 10**11
    assert (found["counts"], found["lengths"]) == ({"a": 2 * 10**9}, [1000, 2000, 3])


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("part.part_bytes=100B", "part.part_bytes: '100B' given, 100 bytes or 100 billion? write 100 bytes or 100 GB"),
        ("part.most=many", "part.most: 'many' (text) given, an integer of 1 or more is allowed"),
        ("part.most=1.5", "part.most: 1.5 (a number) given, an integer of 1 or more is allowed"),
        ("part.most=0k", "part.most: 0 given, 1 or more is allowed"),
        ("part.share=10k", "part.share: '10k' (text) given, a number from 0 to 1 is allowed"),
    ],
)
def test_what_is_no_number_is_refused_as_ever(setting: str, says: str) -> None:
    with pytest.raises(RecipeError) as error:
        parse(WholeParams, override({"part": {}}, setting))
    assert str(error.value) == says
