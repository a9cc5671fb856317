"""`columns` with fields of a source's records: columns of the provenance, known to rules, and no longer in `meta`."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml

import refinery.corpus
from refinery.pipelines.cli.command_line import execute
from refinery.pipelines.recipe.load_recipe import parse_recipe
from refinery.transforms.core.data_text.plain_yaml import RecipeError
from tests.pipelines.small_runs import command, text_of
from tests.sampling import FILE_ON_ONE_COMMIT_IN_FOUR

pytestmark = FILE_ON_ONE_COMMIT_IN_FOUR

TITLES = ("One", 2, None, "", "Four")


def recipe_of(small: Path, folder: Path, **changes: Any) -> dict[str, Any]:
    """Two sources, of which one has titles and years."""
    folder.mkdir(exist_ok=True)
    titled = [{"text": text_of(n), "title": TITLES[n % 5], "year": 2000 + n, "place": "here"} for n in range(10)]
    (folder / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in titled))
    (folder / "b.jsonl").write_text(json.dumps({"text": text_of(77), "title": "not asked for"}) + "\n")
    recipe = yaml.safe_load((small / "recipe.yaml").read_text())
    recipe["sources"] = [
        {"name": "titled", "paths": [str(folder / "a.jsonl")], "meta_fields": ["title", "year", "place"]},
        {"name": "plain", "paths": [str(folder / "b.jsonl")]},
    ]
    return recipe | {"columns": ["title", "year"]} | changes


def test_fields_are_columns(small: Path, tmp_path: Path) -> None:
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(recipe_of(small, tmp_path / "in")))
    assert execute([str(word) for word in command(tmp_path, tmp_path / "out")]) == 0
    opened = refinery.corpus.open(tmp_path / "out")
    assert isinstance(opened, refinery.corpus.PublishedCorpus)
    assert [(c.name, c.type) for c in opened.manifest.columns][-2:] == [("title", "string"), ("year", "string")]
    assert opened.schema.field("title").type == pa.string()
    found = [
        row for batch in opened.documents(["title", "year", "source", "meta", "text"]) for row in batch.to_pylist()
    ]
    want = {text_of(n): (str(TITLES[n % 5] or ""), str(2000 + n), "titled") for n in range(10)}
    want[text_of(77)] = ("", "", "plain")
    assert {row["text"]: (row["title"], row["year"], row["source"]) for row in found} == want
    metas = [json.loads(row["meta"]) for row in found if row["source"] == "titled"]
    assert all(meta["place"] == "here" and not {"title", "year"} & meta.keys() for meta in metas)
    rule = "title == 'One' or year > '2007' and not title is null"
    years = sorted(row["year"] for batch in opened.documents(["year"], where=rule) for row in batch.to_pylist())
    assert years == ["2000", "2005", "2009"]
    assert execute(["verify", str(tmp_path / "out")]) == 0


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"columns": ["titel"]}, "columns: 'titel' given, did you mean title"),
        ({"columns": ["title", "title"]}, "columns: 'title' given twice"),
        ({"columns": ["url"]}, "columns: 'url' given"),
        ({"columns": ["a.b"]}, "columns: 'a.b' given, a name of a-z, 0-9 and _ is allowed for a column"),
    ],
)
def test_what_is_no_column(small: Path, tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    recipe = recipe_of(small, tmp_path / "in", **changes)
    recipe["sources"][0]["meta_fields"] += ["a.b"]
    with pytest.raises(RecipeError, match=message):
        parse_recipe(recipe)
