"""Settings that decide nothing are named before a run."""

from typing import Any

import pytest

from refinery.pipelines.recipe.idle import idle_settings
from refinery.pipelines.recipe.load_recipe import load_recipe, parse_recipe
from refinery.transforms.read.task import ReadTask

SOURCE = {"name": "s", "paths": ["a.warc.gz"]}
PLAIN: dict[str, Any] = {"name": "r", "sources": [SOURCE], "tokenizer": {"path": "t.json"}}


@pytest.mark.parametrize(
    ("keys", "found"),
    [
        ({}, []),
        ({"language": {"languages": {"en": 0.65}, "threshold": 0.5}}, ["language.threshold"]),
        ({"language": {"languages": {"en": None, "de": 0.3}, "threshold": 0.5}}, []),
        ({"language": {"threshold": 0.5}}, []),
        ({"rejects": {"rate": 0, "excerpt_chars": 9}}, ["rejects.excerpt_chars"]),
        ({"rejects": {"rate": 1, "excerpt_chars": 9}}, []),
        ({"quality": {"model": "m", "rule": "note", "threshold": 0.9}}, ["quality.threshold"]),
        ({"quality": {"model": "m", "alpha": 3, "seed": 2}}, ["quality.alpha", "quality.seed"]),
        ({"sources": [{**SOURCE, "seed": 3}]}, ["sources[0].seed"]),
        ({"sources": [{**SOURCE, "seed": 3, "sample": 0.5}]}, []),
        ({"sources": [{**SOURCE, "text_field": "body"}]}, ["sources[0].text_field"]),
        ({"sources": [{**SOURCE, "dialect": "plain"}]}, ["sources[0].dialect"]),
        ({"near_dup": False, "run": {"components": "forest"}}, ["run.components"]),
        ({"run": {"components": "forest"}}, []),
    ],
)
def test_what_has_no_effect_is_named(keys: dict[str, Any], found: list[str]) -> None:
    task = ReadTask("a.warc.gz", "warc", "s", 0, 1)
    lines = list(idle_settings(parse_recipe({**PLAIN, **keys}), [task]))
    assert [line.partition(" has no effect: ")[0] for line in lines] == found


@pytest.mark.parametrize("name", ["demo", "web", "code", "fineweb"])
def test_ready_recipes_have_none(name: str) -> None:
    assert list(idle_settings(load_recipe(f"recipes/{name}.yaml"))) == []
