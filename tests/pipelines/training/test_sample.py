"""Samples by source: the shares that flags ask for, and the proportions where a source has too little."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from refinery.pipelines.recipe.load_recipe import load_recipe
from refinery.pipelines.runners.runner import Runner
from refinery.pipelines.training.sample import in_proportion, parse_shares, sample_texts
from refinery.transforms.core.data_text.plain_yaml import RecipeError
from tests.pipelines.small_runs import OFF


def recipe(folder: Path, **sources: list[str]) -> Any:
    folder.mkdir(exist_ok=True)
    for name, texts in sources.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    listed = [{"name": name, "paths": [str(folder / f"{name}.jsonl")]} for name in sources]
    data = {"name": "t", "sources": listed, "tokenizer": {"path": "none.json"}, **OFF}
    (folder / "recipe.yaml").write_text(yaml.safe_dump(data))
    return load_recipe(str(folder / "recipe.yaml"))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["c=1"], "--share: 'c=1' given, SOURCE=NUMBER is allowed, with one of a, b"),
        (["a"], "--share: 'a' given, SOURCE=NUMBER is allowed"),
        (["a=1", "a=2"], "--share: a given twice"),
        (["a=0"], "--share: 'a=0' given, a number above 0 is allowed"),
        (["a=nan"], "--share: 'a=nan' given"),
        (["a=inf"], "--share: 'a=inf' given"),
        (["a=x"], "--share: 'a=x' given"),
    ],
)
def test_shares_that_are_none(tmp_path: Path, given: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_shares(recipe(tmp_path, a=[], b=[]), given)


def test_shares_sum_to_one_in_the_order_of_the_recipe(tmp_path: Path) -> None:
    assert list(parse_shares(recipe(tmp_path, a=[], b=[]), ["b=3", "a=1"]).items()) == [("a", 0.25), ("b", 0.75)]
    assert parse_shares(recipe(tmp_path, a=[], b=[]), []) == {}


def test_a_sample_in_proportion(tmp_path: Path) -> None:
    """Source b has too little: a gives less, too. A text of both counts once. c has no share and is not read."""
    texts = {
        name: [f"{name} document {i:04} of some length" for i in range(count)]
        for name, count in (("a", 400), ("b", 50))
    }
    texts["b"].append(texts["a"][0])
    made = recipe(tmp_path, **texts, c=["never"])
    said: list[str] = []
    with Runner("local", 0, (), True, False).open() as runner:
        everything = sample_texts(made, runner, 10**6, 1)
        assert {name: len(found) for name, found in everything.items()} == {"a": 400, "b": 50, "c": 1}
        found = sample_texts(made, runner, 10_000, 1, {"a": 0.75, "b": 0.25}, said.append)
    sizes = {name: sum(map(len, own)) for name, own in found.items()}
    assert list(found) == ["a", "b"] and set(found["a"]) <= set(texts["a"]) and set(found["b"]) <= set(texts["b"])
    assert abs(sizes["a"] / sizes["b"] - 3) < 0.1
    assert len(said) == 1 and said[0].startswith("b has ")


@given(
    sizes=st.dictionaries(st.sampled_from("abcd"), st.lists(st.integers(1, 50), min_size=1, max_size=30), min_size=1),
    numbers=st.lists(st.floats(0.1, 1), min_size=4, max_size=4),
)
def test_proportions_hold_up_to_one_text(sizes: dict[str, list[int]], numbers: list[float]) -> None:
    shares = {name: number / sum(numbers[: len(sizes)]) for name, number in zip(sizes, numbers, strict=False)}
    budgets = {name: 1 + int(1000 * share) for name, share in shares.items()}
    found = {name: ["x" * size for size in own] for name, own in sizes.items()}
    kept = in_proportion(found, budgets, shares, lambda line: None)
    part = min(1.0, *(sum(own) / budgets[name] for name, own in sizes.items()))
    for name in sizes:
        assert kept[name] == found[name][: len(kept[name])]
        size = sum(map(len, kept[name]))
        assert min(budgets[name] * part, sum(sizes[name])) <= size + 1e-6 and size < budgets[name] * part + 50


def test_a_source_with_a_share_and_no_text() -> None:
    with pytest.raises(RecipeError, match="--share: the recipe keeps no document of b"):
        in_proportion({"a": ["x"], "b": []}, {"a": 1, "b": 1}, {"a": 0.5, "b": 0.5}, print)
