"""Recipes from plain data: the lane's class, its checks, and the places of stages from elsewhere."""

import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from refinery.pipelines.recipe.load_recipe import load_recipe, parse_recipe
from refinery.pipelines.recipe.recipe import Recipe, find_lane, recipe_class
from refinery.transforms.core.data_text.plain_yaml import RecipeError

PLAIN: dict[str, Any] = {
    "name": "small",
    "sources": [{"name": "crawl", "paths": ["in/*"]}],
    "tokenizer": {"path": "tokenizer.json"},
}
MODULE = """
from refinery.transforms.core.document import Drop
from refinery.transforms.core.params import Params, Share
from refinery.transforms.core.stage import Reason, Stage


class DigitsParams(Params):
    max_ratio: Share = 0.3


def judge(doc, params):
    return doc


FIELDS = dict(version=1, summary="Digits.", params=DigitsParams, judge=judge)
DIGITS = Stage(name="digits", **FIELDS)
URL = Stage(name="url", **FIELDS)
SOURCES = Stage(name="sources", **FIELDS)
READ = Stage(name="more", version=1, summary="No judge.")
NUMBER = 7
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("recipe")
    (path / "stages_of_this_test.py").write_text(MODULE)
    yield path
    sys.modules.pop("stages_of_this_test", None)
    sys.path[:] = [entry for entry in sys.path if entry != str(path)]


def used(folder: Path, stage: str = "DIGITS", after: str = "url", **params: Any) -> Recipe:
    entry = {"use": f"stages_of_this_test:{stage}", "after": after, **params}
    return parse_recipe({**PLAIN, "stages": [entry]}, folder)


def test_equal_recipes_are_equal() -> None:
    assert parse_recipe(PLAIN) == parse_recipe({**PLAIN, "lane": "web", "exact_dup": True})
    assert type(parse_recipe(PLAIN)) is recipe_class(find_lane("web"))
    assert parse_recipe(PLAIN) != parse_recipe({**PLAIN, "exact_dup": False})


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"lane": "wbe"}, "lane: 'wbe' given, chat, code, web or module:NAME is allowed; did you mean web?"),
        ({"sources": []}, "sources: a list of 0 values given, 1 or more are allowed"),
        (
            {"sources": [{"name": "a", "paths": ["x"]}, {"name": "a", "paths": ["y"]}]},
            "sources: the name 'a' given twice, every source needs its own name",
        ),
        (
            {"sources": [{"name": "a", "paths": ["x"], "meta_fields": ["id", "quality"]}]},
            "sources[0].meta_fields: 'quality' given, any but what stages note themselves is allowed: "
            + ", ".join(sorted(note.name for note in find_lane("web").notes if not note.given)),
        ),
        (
            {"near_dup": {"bands": 200}},
            "near_dup.bands: 200 bands of 8 rows given, at most 112 values (permutations) are allowed",
        ),
        (
            {"near_dup_in_source": {"other": {}}},
            "near_dup_in_source: 'other' given, the name of a source or '*' is allowed",
        ),
        (
            {"stages": {}},
            "stages: a mapping of 0 keys given, a list, each a section (keys use, after), is allowed (begin each "
            "element with `- `)",
        ),
        ({"stages": [3]}, "stages[0]: 3 (an integer) given, a mapping with use, after and parameters is allowed"),
        ({"stages": [{"use": "a:B"}]}, "stages[0].after: nothing given, text that is not empty is required"),
        (
            {"stages": [{"use": "no module", "after": "url"}]},
            "stages[0].use: 'no module' given, module:NAME is allowed",
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_mistake_is_one_line(changes: dict[str, Any], line: str) -> None:
    with pytest.raises(RecipeError) as caught:
        parse_recipe({**PLAIN, **changes})
    assert str(caught.value) == line


def test_a_field_that_a_stage_brings_into_its_own_form_may_be_given() -> None:
    sources = [{"name": "a", "paths": ["x"], "meta_fields": ["license"]}]
    assert parse_recipe({**PLAIN, "sources": sources}).sources[0].meta_fields == ("license",)


def test_a_stage_from_elsewhere_has_its_place_and_section(folder: Path) -> None:
    recipe = used(folder, max_ratio=0.5)
    assert recipe.LANE.funnel.index("digits") == recipe.LANE.funnel.index("url") + 1
    assert recipe.digits.max_ratio == 0.5  # type: ignore[attr-defined]
    assert [stage.name for stage, _ in recipe.active("clean")] == [
        "read",
        "extract",
        "secrets",
        "url",
        "digits",
        *LATER,
    ]
    assert recipe.CODE.sources() == {"stages_of_this_test.py": MODULE.encode()}
    assert parse_recipe(recipe.plain(), folder).plain() == recipe.plain()
    assert not parse_recipe(PLAIN).CODE.files  # other recipes of this process know nothing of it


LATER = ("language", "heuristics")


@pytest.mark.parametrize(
    ("stage", "after", "params", "message"),
    [
        ("DIGITS", "url", {"max_ratio": 2}, r"stages\[0\]\.max_ratio: 2 given, a number from 0 to 1 is allowed"),
        ("DIGITS", "url", {"ratio": 2}, r"stages\[0\]\.ratio: unknown key, did you mean max_ratio\?"),
        (
            "DIGITS",
            "read",
            {},
            r"stages\[0\]\.after: 'read' given, extract, secrets, .* is allowed",
        ),
        (
            "DIGITS",
            "uri",
            {},
            r"stages\[0\]\.after: 'uri' given, extract, secrets, .* is allowed; did you mean url\?",
        ),
        ("DIGIT", "url", {}, r"stages\[0\]\.use: 'stages_of_this_test:DIGIT' given, .*; did you mean DIGITS\?"),
        ("NUMBER", "url", {}, r"stages\[0\]\.use: .* has no declaration of a stage by that name; .*"),
        ("READ", "url", {}, r"stages\[0\]\.use: .* a stage that judges single documents is allowed"),
        ("URL", "language", {}, r"stages\[0\]: lane web: stage 'url' declared twice"),
        ("SOURCES", "url", {}, r"stages\[0\]\.use: a stage 'sources' given, a name that no key of recipes has is .*"),
    ],
)
def test_a_wrong_use_is_one_line(folder: Path, stage: str, after: str, params: dict[str, Any], message: str) -> None:
    with pytest.raises(RecipeError, match=f"^{message}$"):
        used(folder, stage, after, **params)


def test_an_input_given_by_hand_replaces_wherever_the_source_was(tmp_path: Path) -> None:
    source = {"name": "a", "paths": ["hf://datasets/o/n"], "config": "c", "split": "x", "path_lists": ["l"], "cap": 5}
    plain = {**PLAIN, "sources": [{**source, "max_files": 2, "enabled": False, "target": 9}]}
    (tmp_path / "r.yaml").write_text(yaml.safe_dump(plain))
    (found,) = load_recipe(str(tmp_path / "r.yaml"), inputs=["here/*.txt"]).sources
    given = (found.paths, found.path_lists, found.config, found.split, found.max_files, found.enabled)
    assert given == (("here/*.txt",), (), "", "train", None, True)
    assert (found.cap, found.target) == (5, 9)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({}, r"sources\[0\].paths: \[\] given, one or more file names or globs are allowed"),
        ({"paths": [""]}, "one or more file names"),
        ({"paths": ["x"], "config": "c"}, r"sources\[0\].config: 'c' given, only hf://"),
        ({"paths": ["x"], "target": 0}, r"sources\[0\].target: 0 given"),
        ({"paths": ["x"], "target": 1.5}, r"sources\[0\].target: 1.5 \(a number\) given, an integer"),
        ({"paths": ["x"], "unit": "word"}, r"sources\[0\].unit: 'word' \(text\) given"),
    ],
)
def test_mistakes_in_a_source_are_named(source: dict[str, Any], message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        parse_recipe({**PLAIN, "sources": [{"name": "crawl", **source}]})


def test_a_target_has_its_stage_and_none_costs_none() -> None:
    sources = PLAIN["sources"]
    with_target = parse_recipe({**PLAIN, "sources": [{**sources[0], "target": 5}]})
    assert with_target.LANE.funnel == (*parse_recipe(PLAIN).LANE.funnel, "target")
    assert with_target.targets() == {"crawl": 5}
    off = [{**sources[0], "target": 5, "enabled": False}, {**sources[0], "name": "b"}]
    assert parse_recipe({**PLAIN, "sources": off}).targets() == {}
    assert list(with_target.LANE.places()) == list(parse_recipe(PLAIN).LANE.places())
