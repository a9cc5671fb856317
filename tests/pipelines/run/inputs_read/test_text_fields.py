"""A run that finds the field of the text: the same run as one whose recipe names it, now and when it goes on."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from refinery.loader.format.manifest import RUN, unseal
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.recipe.load_recipe import parse_recipe
from refinery.pipelines.run.inputs_read import text_fields
from refinery.pipelines.run.refine import Refinement
from refinery.pipelines.runners.runner import Runner
from refinery.transforms.read.text_fields import choose_text_fields
from tests.pipelines.small_runs import digests, folder_files, text_of


def recipe_of(small: Path, folder: Path, records: list[Mapping[str, Any]], **keys: Any) -> dict[str, Any]:
    path = folder / "in.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    data: dict[str, Any] = yaml.safe_load((small / "recipe.yaml").read_text())
    return {**data, "sources": [{"name": "s", "paths": [str(path)], **keys}]}


def refinement(data: dict[str, Any], prefix: Path, said: list[str]) -> Refinement:
    return Refinement(parse_recipe(data), str(prefix), Runner(workers=0, quiet=True), say=said.append)


PRIVATE = ("work", RUN, "manifest.json", "manifests")  # `_run.json` says that it was found, and manifests list it
CONTENT = [{"id": number, "content": text_of(number)} for number in range(8)]
FOUND = "source s: text_field: content (found; the recipe names none)"


def test_a_run_finds_it_and_says_so_and_goes_on_with_it(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    data, prefix = recipe_of(small, tmp_path, CONTENT), tmp_path / "found"
    manifest = refinement(data, prefix, said).run()
    assert FOUND in said
    assert manifest.totals["documents"] == 8
    assert manifest.recipe["sources"][0]["text_field"] == "content"
    assert unseal((prefix / RUN).read_bytes(), RUN)["text_fields"] == {"s": "content"}

    named = recipe_of(small, tmp_path, CONTENT, text_field="content")
    other = refinement(named, tmp_path / "named", [])
    assert other.run().fingerprint == manifest.fingerprint
    same, found = (digests(folder_files(tmp_path / name), PRIVATE) for name in ("named", "found"))
    assert found == same
    refinement(named, prefix, said).run()  # it is the same run
    assert f"{prefix} is complete already; nothing to do" in said

    monkeypatch.setattr(text_fields, "choose_text_fields", looking_is_a_mistake)
    said.clear()
    refinement(data, prefix, said).run()
    assert FOUND in said


def looking_is_a_mistake(sources: Any, tasks: Any, limits: Any, known: Mapping[str, str]) -> dict[str, str]:
    """What settles from `known` alone."""
    assert {source.name for source in sources} <= set(known)
    return choose_text_fields(sources, tasks, limits, known)


def test_records_that_have_text_leave_no_trace(small: Path, tmp_path: Path) -> None:
    data = recipe_of(small, tmp_path, [{"text": text_of(1), "content": "other"}])
    one, other = refinement(data, tmp_path / "a", []), refinement({**data}, tmp_path / "b", [])
    other.recipe = parse_recipe({**data, "sources": [{**data["sources"][0], "text_field": "text"}]})
    one.prepare()
    other.prepare()
    assert one.identity == other.identity
    assert "text_fields" not in one.identity


def test_what_a_run_settled_is_kept(small: Path, tmp_path: Path) -> None:
    """Whatever a newer version would find: fields of the usual names, and the default."""
    recipe = parse_recipe(recipe_of(small, tmp_path, CONTENT))
    store = open_store(str(tmp_path / "prefix"))
    assert text_fields.settled_before(recipe, store) == {}

    def before(field: Any, found: Any) -> dict[str, str]:
        store.replace(RUN, sealed(field, found))
        return text_fields.settled_before(recipe, store)

    assert before("body", {"s": "body"}) == {"s": "body"}
    assert before("text", {}) == {"s": "text"}
    assert before("content", {}) == {}  # it was named there, and here it is not: another run, if it is not found
    for field, found in (("body", {"s": "content"}), ("id", {"s": "id"}), (["x"], {"s": ["x"]}), ("content", [1])):
        assert before(field, found) == {}


def sealed(field: Any, found: Any) -> bytes:
    from refinery.loader.format.manifest import SCHEMA_VERSION, seal

    recipe = {"sources": [{"name": "s", "text_field": field}, 17]}
    return seal({"schema_version": SCHEMA_VERSION, "kind": "refinery-run", "recipe": recipe, "text_fields": found})


@pytest.mark.parametrize(
    ("records", "words"),
    [
        ([{"content": "x", "body": "y", "id": 1}], "content and body hold texts"),
        ([{"abstract": "x", "id": 1}], "there are abstract, id"),
    ],
)
def test_what_is_not_clear_stops_a_run_before_it_begins(
    small: Path, tmp_path: Path, records: list[Mapping[str, Any]], words: str
) -> None:
    with pytest.raises(ValueError, match=f"^source s: text_field: .*{words}"):
        refinement(recipe_of(small, tmp_path, records), tmp_path / "out", []).run()
    assert not (tmp_path / "out").exists()
