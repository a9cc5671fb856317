"""Parameters as plain data: what is written reads back, and its fingerprint is the same everywhere."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.pipelines.recipe.params import fingerprint, parse
from tests.pipelines.run.example_recipe import Limits, NearDup, Recipe, Source, read

NUMBERS = st.floats(allow_nan=False, allow_infinity=False).map(lambda x: x + 0.0)
NEAR = st.builds(NearDup, threshold=st.floats(0.01, 1), bands=st.integers(-(2**63), 2**63 - 1))
SOURCE = st.builds(
    Source,
    name=st.text(),
    paths=st.lists(st.text()).map(tuple),
    format=st.sampled_from(["auto", "warc", "off"]),
    sample=NUMBERS,
    cap=st.none() | st.integers(0, 9),
)
RECIPE = st.builds(
    Recipe,
    name=st.text().filter(lambda name: name != "bad"),
    sources=st.lists(SOURCE, max_size=3).map(tuple),
    limits=st.builds(Limits, bytes=st.integers(0, 9), ratio=st.none() | NUMBERS),
    near_dup=st.none() | NEAR,
    quality=st.none() | NEAR,
    exact_dup=st.booleans(),
    thresholds=st.dictionaries(st.text(), NUMBERS, max_size=4),
    by_source=st.dictionaries(st.text(), st.none() | NEAR, max_size=2),
    nested=st.lists(st.lists(st.integers(0, 9), max_size=2).map(tuple), max_size=3).map(tuple),
    verbose=st.none() | st.booleans(),
)


def shuffled(plain: Any, rng: Any) -> Any:
    if isinstance(plain, dict):
        keys = list(plain)
        rng.shuffle(keys)
        return {key: shuffled(plain[key], rng) for key in keys}
    return [shuffled(item, rng) for item in plain] if isinstance(plain, list) else plain


@given(RECIPE, st.randoms(use_true_random=False))
def test_what_is_written_reads_back(recipe: Recipe, rng: Any) -> None:
    plain = recipe.plain()
    through_json = json.loads(json.dumps(plain))
    other = shuffled(plain, rng)
    assert plain == through_json
    assert parse(Recipe, through_json) == parse(Recipe, other) == recipe
    assert fingerprint(other) == fingerprint(plain)
    assert parse(Recipe, other).plain() == plain


def test_plain_data_has_the_defaults() -> None:
    assert Recipe(name="x", thresholds={"b": 1.0, "a": 2.0}).plain() == {
        "name": "x",
        "sources": [],
        "limits": {"bytes": 7, "ratio": 0.5},
        "near_dup": {"threshold": 0.75, "bands": 14},
        "quality": None,
        "exact_dup": True,
        "thresholds": {"a": 2.0, "b": 1.0},
        "by_source": {},
        "nested": [],
        "verbose": None,
    }


def test_fingerprint_is_pinned() -> None:
    plain = {"b": [1, 1.0, 0.1, 1e22, True, None], "a": {"ü": "\ud800"}}
    assert fingerprint(plain) == "10c8befa32d138a6c213e1fe30401dc468e2ce1c940a8cdc3c40e52429201c0c"
    assert fingerprint(read("name: x\nnear_dup: {threshold: 1}").plain()) == fingerprint(
        read("near_dup: {threshold: 1.0, bands: 14}\nname: x").plain()
    )
    assert fingerprint(read("name: x").plain()) != fingerprint(read("name: y").plain())


def test_fingerprint_does_not_depend_on_the_hash_seed() -> None:
    code = (
        "from refinery.pipelines.recipe.params import fingerprint; "
        "print(fingerprint({k: {k: 1.5} for k in set('abcdefgh')}))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("0", "1")
    }
    assert len(found) == 1


@pytest.mark.parametrize(("plain", "error"), [({1: 2}, TypeError), ([float("nan")], ValueError), ([b"x"], TypeError)])
def test_fingerprint_refuses_what_is_not_plain(plain: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        fingerprint(plain)
