"""A fingerprint changes with what decides the result, and with nothing else."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from refinery.pipelines.recipe.load_recipe import parse_recipe
from refinery.pipelines.recipe.params import parse
from refinery.pipelines.recipe.recipe import UNDECIDING, Recipe, recipe_class
from refinery.pipelines.run import fingerprint as module
from refinery.pipelines.run.fingerprint import (
    input_digest,
    phase_fingerprints,
)
from refinery.transforms.core.data_text.plain_yaml import RecipeError
from refinery.transforms.core.lane import Lane
from refinery.transforms.core.names import PHASES
from tests.pipelines.inputs import ROOT
from tests.sampling import one_commit_in_four


@pytest.fixture
def recipe(tmp_path: Path) -> Recipe:
    (tmp_path / "tokenizer.json").write_text("{}")
    source = {"name": "s", "paths": ["x.jsonl"]}
    return parse_recipe({"name": "n", "sources": [source], "tokenizer": {"path": str(tmp_path / "tokenizer.json")}})


def changed(before: Recipe, after: Recipe) -> list[str]:
    first, second = phase_fingerprints(before, [{"path": "x"}]), phase_fingerprints(after, [{"path": "x"}])
    return [phase for phase in first if first[phase] != second[phase]]


def test_a_file_that_is_missing_by_a_relative_path_says_where_it_begins(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"^gone\.json: cannot be read: .*; relative paths start at the current"):
        module.file_digest("gone.json")
    with pytest.raises(RecipeError, match=r"gone\.json: cannot be read: [^;]*$"):
        module.file_digest(str(tmp_path / "gone.json"))


def test_each_phase_depends_on_its_sections_and_on_the_phases_before(recipe: Recipe) -> None:
    assert changed(recipe, recipe) == []
    assert changed(recipe, recipe.replace(language=None)) == ["clean", "dedup", "shards"]
    assert changed(recipe, recipe.replace(near_dup=None)) == ["dedup", "shards"]
    assert changed(recipe, recipe.replace(pii=None)) == ["shards"]
    assert changed(recipe, recipe.replace(failures=recipe.failures.replace(grace=99))) == []
    assert changed(recipe, recipe.replace(run=recipe.run.replace(wave_files=1))) == []


def test_who_pays_for_reading_decides_nothing(recipe: Recipe) -> None:
    """Nor is it written anywhere: neither in fingerprints nor in `_run.json`, where others would read it."""
    (source,) = recipe.sources
    paid = recipe.replace(sources=(source.replace(requester_pays="my-project"),))
    assert changed(recipe, paid) == [] and paid.deciding() == recipe.deciding()
    assert "requester_pays" not in str(recipe.plain()) and "my-project" in str(paid.plain())


def test_a_field_that_came_later_counts_where_it_is_set(recipe: Recipe) -> None:
    """Runs that were made before there was such a field are reused."""
    near, pii, secrets = recipe.near_dup, recipe.pii, recipe.secrets
    told = recipe.told()
    assert "permutations" not in told["near_dup"] and "style" not in told["pii"] and "remains" not in told["secrets"]
    assert recipe.plain()["pii"] == told["pii"] | {"style": "prose", "remains": "unchecked", "matching": "own"}
    assert changed(recipe, recipe.replace(pii=pii.replace(style="code"))) == ["shards"]
    assert changed(recipe, recipe.replace(secrets=secrets.replace(remains="fail"))) == ["clean", "dedup", "shards"]
    assert changed(recipe, recipe.replace(near_dup=near.replace(permutations=112))) == ["dedup", "shards"]
    by_source = [recipe.replace(near_dup_in_source={"s": near.replace(permutations=n)}) for n in (None, 112)]
    assert changed(*by_source) == ["dedup", "shards"]
    assert by_source[0].told()["near_dup_in_source"]["s"] == told["near_dup"]


def test_every_section_is_in_exactly_one_phase_or_decides_nothing(recipe: Recipe) -> None:
    sections = [name for phase in PHASES for name in recipe.LANE.sections(phase)]
    # Lane, stages and writer count through what they name; layout and annotate where the layout is as-input.
    others = ["lane", "stages", "writer", "layout", "annotate"]
    assert sorted([*sections, *UNDECIDING, *others]) == sorted(type(recipe).model_fields)


def test_the_shape_of_the_output_decides_from_phase_1_on(recipe: Recipe) -> None:
    """There, stages note what they change, or label what they would drop."""
    plain = {**recipe.plain(), "tokenizer": None}
    shards, texts = parse_recipe(plain | {"writer": "text"}), parse_recipe(plain | {"layout": "as-input"})
    assert changed(shards, texts) == ["clean", "dedup", "shards"]
    labels = parse_recipe(plain | {"layout": "as-input", "annotate": ["keep"]})
    assert changed(texts, labels) == ["clean", "dedup", "shards"]


def with_lane(recipe: Recipe, lane: Lane) -> Recipe:
    """The same recipe in another lane."""
    return parse(recipe_class(lane), recipe.plain())


def test_the_order_of_the_stages_counts(recipe: Recipe) -> None:
    lane = recipe.LANE
    assert changed(recipe, with_lane(recipe, lane)) == []
    *before, language, heuristics = lane.clean
    swapped = replace(lane, clean=(*before, heuristics, language))
    assert changed(recipe, with_lane(recipe, swapped)) == ["clean", "dedup", "shards"]
    *others, pii, keep, encode = lane.shards
    swapped = replace(lane, shards=(pii, *others, keep, encode))
    assert changed(recipe, with_lane(recipe, swapped)) == ["shards"]


@pytest.mark.parametrize("what", ["version", "schemes", "libraries"])
def test_what_a_declaration_says_counts(recipe: Recipe, what: str) -> None:
    other = {"version": 7, "schemes": ("other-2",), "libraries": ("pytest",)}[what]
    for phase, expected in (
        ("clean", ["clean", "dedup", "shards"]),
        ("dedup", ["dedup", "shards"]),
        ("shards", ["shards"]),
    ):
        stages = recipe.LANE.phase(phase)
        lane = replace(recipe.LANE, **{phase: (*stages[:-1], replace(stages[-1], **{what: other}))})
        assert changed(recipe, with_lane(recipe, lane)) == expected
    lane = replace(recipe.LANE, writer=replace(recipe.LANE.writer, **{what: other}))
    assert changed(recipe, with_lane(recipe, lane)) == ["shards"]


SCRIPT = """
import json, sys
from refinery.pipelines.recipe.load_recipe import parse_recipe
from refinery.pipelines.run.fingerprint import phase_fingerprints
import refinery
print(refinery.__file__, file=sys.stderr)
print(json.dumps(phase_fingerprints(parse_recipe(json.loads(sys.argv[1])), [{"path": "x"}])))
"""


@one_commit_in_four
def test_comments_messages_and_storage_code_do_not_count(recipe: Recipe, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    shutil.copytree(ROOT / "refinery", tree / "refinery", ignore=shutil.ignore_patterns("__pycache__"))
    for name, old, new in (
        ("loader/storage/http_store.py", "import", "# another comment\nimport"),
        ("loader/storage/store.py", "exists with other bytes", "is there with other bytes"),
        ("transforms/filter/url.py", "a single word of letters and digits is allowed", "one word is allowed"),
    ):
        text = (tree / "refinery" / name).read_text()
        assert old in text
        (tree / "refinery" / name).write_text(text.replace(old, new, 1))
    command = [sys.executable, "-P", "-W", "ignore", "-c", SCRIPT, json.dumps(recipe.plain())]
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert str(tree) in done.stderr
    assert json.loads(done.stdout) == phase_fingerprints(recipe, [{"path": "x"}])


def test_content_of_named_files_counts(recipe: Recipe) -> None:
    before = phase_fingerprints(recipe, [])
    Path(recipe.tokenizer.path).write_text('{"other": 1}')
    after = phase_fingerprints(recipe, [])
    assert [phase for phase in before if before[phase] != after[phase]] == ["shards"]
    Path(recipe.tokenizer.path).unlink()
    with pytest.raises(RecipeError, match=r"tokenizer\.json"):
        phase_fingerprints(recipe, [])


def test_inputs_are_told_apart_by_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "input"
    monkeypatch.setattr(module, "HASHED_BYTES", 64_000)
    for size in (0, 1, 64_000, 64_001, 1_000_000):
        file.write_bytes(bytes(size))
        digest = input_digest(str(file), size)
        file.write_bytes(bytes(size))  # a later time of change is no other content
        assert input_digest(str(file), size) == digest
        for position in {0, size - 1} if size else ():
            data = bytearray(size)
            data[position] = 1
            file.write_bytes(data)
            assert input_digest(str(file), size) != digest


def test_columns_are_decided_by_phase_3_and_need_a_note(recipe: Recipe) -> None:
    assert "columns" not in recipe.told()
    more = recipe.replace(columns=("toxicity", "pii"))
    assert changed(recipe, more) == ["shards"]
    assert [note.name for note in more.provenance() if note not in recipe.provenance()] == ["toxicity", "pii"]
    with pytest.raises(ValueError, match="columns: 'toxicty' given, did you mean toxicity"):
        recipe.replace(columns=("toxicty",))
    with pytest.raises(ValueError, match="columns: 'language' given"):  # is one already
        recipe.replace(columns=("language",))
