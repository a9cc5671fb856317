"""Sections of comparing stages: a recipe has them from the declarations alone, and nothing else names them."""

import ast
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from refinery.pipelines.lanes.code import LANE as CODE
from refinery.pipelines.lanes.web import LANE as WEB
from refinery.pipelines.recipe.load_recipe import all_lanes, parse_recipe
from refinery.pipelines.recipe.recipe import Recipe, absent_sections, recipe_class, shared_stages
from refinery.pipelines.recipe.schema import recipe_schema
from refinery.pipelines.recipe.stages.tables import keys, phases
from refinery.pipelines.run.fingerprint import describe_phase
from refinery.transforms.core.data_text.plain_yaml import RecipeError
from refinery.transforms.core.lane import PHASES, Lane
from refinery.transforms.dedup.cut_lines import LINES, LineParams
from refinery.transforms.dedup.cutting_pass import ComparingStage, CuttingPass
from tests.sampling import one_commit_in_four

ROOT = Path(__file__).parents[3]
COMPARING = list(
    dict.fromkeys(stage for lane in all_lanes() for stage in lane.stages if isinstance(stage, ComparingStage))
)
PLAIN = {
    "name": "x",
    "sources": [{"name": "a", "paths": ["a.jsonl"], "format": "jsonl"}],
    "tokenizer": {"path": "tokenizer.json"},
}
NEW: CuttingPass[Any] = replace(
    LINES,
    name="new-cuts",
    section="new_dup",
    summary="Cut something new.",
    shared=False,
    hashed=replace(LINES.hashed, name="new", columns=(replace(LINES.hashed.columns[0], name="new"),)),
    cuts=replace(LINES.cuts, column="new", note="new", tag=200),
    notes=(replace(LINES.notes[0], name="new"),),
)
LONGER = replace(WEB, name="longer", shards=tuple(NEW if stage is LINES else stage for stage in WEB.shards))


def sections(lane: Lane, **given: Any) -> dict[str, Any]:
    """What the fingerprints of all phases say of a recipe's sections."""
    recipe = recipe_class(lane)(**{**PLAIN, "lane": lane.name, **given})
    described = [describe_phase(recipe, phase, lambda path: "digest")["recipe"] for phase in PHASES]
    return {
        f"{phase}.{name}": value
        for phase, found in zip(PHASES, described, strict=True)
        for name, value in found.items()
    }


@pytest.mark.parametrize("stage", COMPARING, ids=lambda stage: stage.name)
def test_a_recipe_has_the_section_from_the_declaration(stage: ComparingStage[Any]) -> None:
    assert stage.key not in Recipe.model_fields
    for lane in all_lanes():
        fields = recipe_class(lane).model_fields
        assert (stage.key in fields) == (stage in lane.stages or stage.shared)
        if stage.key in fields:
            assert fields[stage.key].annotation == stage.params | None and fields[stage.key].default is None


def test_a_new_pass_is_a_line_of_its_lane() -> None:
    recipe = recipe_class(LONGER)(**{**PLAIN, "lane": "longer", "new_dup": {"max_documents": 5}})
    assert recipe.params_of(NEW) == LineParams(max_documents=5)
    assert [stage.name for stage, _ in recipe.cutting()] == ["new-cuts"]
    entry = recipe_schema(recipe_class(LONGER))["properties"]["new_dup"]
    assert entry["description"] == NEW.summary and entry["anyOf"][0] == {"$ref": "#/$defs/LineParams"}
    assert "| `new_dup` | `null` | section [new_dup](#new_dup) | Cut something new |" in keys(LONGER, "")
    assert "`new_dup`" in phases(LONGER)
    assert {name for name in sections(LONGER, new_dup={}) if "new" in name} == {
        "clean.hash_new",
        "dedup.new_dup",
        "shards.new_dup",
    }
    assert not {name for name in sections(CODE) if "new" in name}


def test_shared_sections_are_off_in_a_lane_without_their_stage() -> None:
    assert {stage.key for stage in shared_stages()} == {"url_dup", "line_dup", "substring_dup"}  # of the first recipes
    assert {stage.key: None for stage in shared_stages()}.items() <= absent_sections(CODE).items()
    code = {**PLAIN, "lane": "code"}
    for stage in shared_stages():
        assert parse_recipe({**code, stage.key: None}) == parse_recipe({**code, stage.key: False}) == parse_recipe(code)
        assert parse_recipe(code).plain()[stage.key] is None
        with pytest.raises(RecipeError, match=f"^{stage.key}: on given, the lane code has no such stage"):
            parse_recipe({**code, stage.key: {}})


def test_fingerprints_name_what_they_always_named() -> None:
    """Phase 2 of every lane says that the first cuts are off; phase 3 does not say it again."""
    for lane in (WEB, CODE):
        found = sections(lane)
        assert found["dedup.line_dup"] is None and found["dedup.substring_dup"] is None
        assert found["clean.hash_lines"] is False and "clean.hash_anchors" not in found
        assert not {"shards.line_dup", "shards.substring_dup"} & found.keys()
        assert ("dedup.url_dup" in found) == (lane is WEB)


def test_a_stage_of_a_users_own_cannot_take_a_shared_section(tmp_path: Path) -> None:
    (tmp_path / "taken.py").write_text(
        "from refinery.transforms.core.params import Params\n"
        "from refinery.transforms.core.stage import Stage\n"
        "class Nothing(Params):\n    pass\n"
        "def keep(doc, params):\n    return doc\n"
        'TAKEN = Stage(name="line-dup", version=1, summary="x", params=Nothing, judge=keep)\n'
    )
    data = {**PLAIN, "lane": "code", "stages": [{"use": "taken:TAKEN", "after": "pii"}]}
    with pytest.raises(RecipeError, match=r"^stages\[0\]\.use: a stage 'line-dup' given"):
        parse_recipe(data, tmp_path)


def names(tree: ast.AST) -> Iterator[str]:
    """What code names: variables, attributes, keywords, and texts that are a name."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.keyword(arg=str(name)) | ast.arg(arg=name):
                yield name
            case ast.Constant(value=str(name)):
                yield name


@one_commit_in_four
def test_no_other_module_names_a_section() -> None:
    declared = {f"{stage.judge.__module__}" for stage in COMPARING if stage.judge}
    declared |= {"refinery.transforms.dedup.stages"}
    keys_ = {stage.key for stage in COMPARING}
    found = {
        (str(path.relative_to(ROOT)), name)
        for wing in ("pipelines", "transforms")
        for path in (ROOT / wing).rglob("*.py")
        if f"refinery.{'.'.join(path.relative_to(ROOT).with_suffix('').parts)}" not in declared
        for name in keys_ & set(names(ast.parse(path.read_text())))
    }
    assert found == set()
