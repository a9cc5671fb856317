"""A document of a run, read at its origin again and judged again."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from refinery.pipelines.corpus.replay.replay import NoReplay, Replayer, replay
from refinery.pipelines.recipe.load_recipe import parse_recipe, recorded_recipe
from refinery.pipelines.recipe.recipe import Recipe
from refinery.pipelines.run.fingerprint import describe_inputs
from refinery.transforms.core.data_text.plain_yaml import RecipeError
from refinery.transforms.read.plan import plan_sources
from tests.pipelines.small_runs import OFF, text_of

KEY = "AKIA" + "Z7QJ4T5LMK3WPX2D"  # the form of a key, of nobody
SHORT = " ".join(text_of(1).split()[:12])
RULES = {"basic": {"min_chars": 20}, "gopher": {"min_words": 20, "stop_words": {}}}
ROWS: list[Any] = [
    {"text": text_of(1), "url": "https://a.example/1"},
    {"text": SHORT, "url": "https://a.example/short"},
    {"text": f"{SHORT} {KEY}", "url": "https://a.example/key"},
    {"text": " ", "url": "https://a.example/empty"},
    {"text": 3, "url": "https://a.example/three"},
]


@pytest.fixture
def recipe(small: Path, tmp_path: Path) -> Recipe:
    lines = [json.dumps(row) for row in ROWS]
    (tmp_path / "a.jsonl").write_text("\n".join(lines) + "\n")
    return parse_recipe(
        {
            "name": "small",
            "sources": [{"name": "s", "paths": [str(tmp_path / "a.jsonl")]}],
            "tokenizer": {"path": str(small / "tokenizer.json")},
            **OFF,
            "heuristics": {**RULES, "repetition": None, "c4": None, "fineweb": None},
        }
    )


def origin(tmp_path: Path, row: int) -> str:
    lines = (tmp_path / "a.jsonl").read_bytes().splitlines(keepends=True)
    return f"{tmp_path / 'a.jsonl'}@{sum(map(len, lines[:row]))}"


def inputs_of(recipe: Recipe) -> list[dict[str, Any]]:
    return describe_inputs(plan_sources(recipe.sources))


def test_the_stage_that_drops_it_and_what_it_measured(recipe: Recipe, tmp_path: Path) -> None:
    found = replay(recipe, origin(tmp_path, 1), inputs=inputs_of(recipe))
    assert (found.last.stage, found.last.outcome, found.url) == ("heuristics", "dropped", ROWS[1]["url"])
    assert found.last.reason.startswith("gopher-too-few-words: ") and not found.is_kept
    assert [(r.rule.key, r.value, r.rule.threshold) for r in found.last.readings if r.drops] == [
        ("gopher.min_words", 12, 20)
    ]
    assert found.text == SHORT and found.decisions[0].stage == "read"


@pytest.mark.parametrize(
    ("row", "stage", "outcome", "reason"),
    [(0, "encode", "kept", ""), (3, "read", "dropped", "empty: "), (4, "read", "dead", "BadField")],
)
def test_every_end(recipe: Recipe, tmp_path: Path, row: int, stage: str, outcome: str, reason: str) -> None:
    found = replay(recipe, origin(tmp_path, row))
    assert (found.last.stage, found.last.outcome, found.is_kept) == (stage, outcome, not row)
    assert found.last.reason.startswith(reason)
    assert found.text == (text_of(1) if found.is_kept else "")


def test_no_credential_is_in_the_text_whatever_the_recipe_says(recipe: Recipe, tmp_path: Path) -> None:
    """Its stage of secrets is off here."""
    found = replay(recipe, origin(tmp_path, 2))
    assert found.last.reason.startswith("gopher-too-few-words") and SHORT in found.text
    assert KEY not in found.text and "API_KEY_REDACTED" in found.text
    listing = recipe.model_copy(
        update={"secrets": type(recipe).model_fields["secrets"].annotation.__args__[0](action="drop")}
    )
    found = replay(listing, origin(tmp_path, 2))
    assert (found.last.stage, found.text) == ("secrets", "")


def test_what_has_become_of_the_input(recipe: Recipe, tmp_path: Path) -> None:
    inputs, at = inputs_of(recipe), origin(tmp_path, 0)
    replayer = Replayer(recipe, inputs, measure=False)
    for path, message in [
        ("nowhere.jsonl@3", "'nowhere.jsonl' is not among the inputs of the run"),
        ("no offset", "'no offset': input file@offset is expected"),
        (f"{tmp_path / 'a.jsonl'}@-1", "input file@offset is expected"),
        (f"{tmp_path / 'a.jsonl'}@²", "input file@offset is expected"),
        (f"{tmp_path / 'a.jsonl'}@{10**30}", "input file@offset is expected"),
        (f"{tmp_path / 'a.jsonl'}@3", "no record begins there"),
    ]:
        with pytest.raises(NoReplay, match=message):
            replayer.replay(path)
    assert replayer.replay(at).is_kept and not replayer.replay(at).last.readings
    data = (tmp_path / "a.jsonl").read_bytes()
    for change, message in [
        (lambda path: path.write_bytes(data.swapcase()), "its size is the same, its bytes differ"),
        (lambda path: path.write_bytes(data + b"\n"), f"has changed: {len(data) + 1} bytes, {len(data)} when"),
        (lambda path: path.unlink(), "no longer exists"),
    ]:
        change(tmp_path / "a.jsonl")
        with pytest.raises(NoReplay, match=message):
            Replayer(recipe, inputs).replay(at)


def test_a_file_that_two_sources_read(recipe: Recipe, tmp_path: Path) -> None:
    (source,) = recipe.sources
    pages = source.model_copy(update={"name": "pages", "content": "html"})
    both = recipe.model_copy(update={"sources": (source, pages)})
    inputs = inputs_of(both)
    assert {replay(both, origin(tmp_path, 0), name, inputs).source for name in ("s", "pages")} == {"s", "pages"}
    with pytest.raises(NoReplay, match="not among the inputs"):
        replay(both, origin(tmp_path, 0), "third", inputs)


def test_a_name_with_a_globs_characters_is_that_file(recipe: Recipe, tmp_path: Path) -> None:
    path = tmp_path / "b[1].jsonl.gz"
    path.write_bytes(gzip.compress((tmp_path / "a.jsonl").read_bytes()))
    (source,) = recipe.sources
    own = recipe.model_copy(update={"sources": (source.model_copy(update={"paths": (str(path),)}),)})
    assert replay(own, f"{path}@0", inputs=inputs_of(own)).url == ROWS[0]["url"]


def test_code_that_a_corpus_names_is_not_imported() -> None:
    for plain in ({"stages": [{"use": "evil:STAGE", "after": "read"}]}, {"lane": "evil:LANE"}):
        with pytest.raises(RecipeError, match=r"out/x: .* name the recipe's file with --recipe"):
            recorded_recipe("out/x", plain)
