"""`fields: keep` from input to corpus: a column of JSON in Parquet, keys of their own in JSON Lines."""

import json
from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet as pq
import pytest
import yaml
import zstandard

import refinery.corpus
from refinery.pipelines.cli.command_line import execute
from refinery.pipelines.corpus.verify.verify import verify
from refinery.pipelines.recipe.load_recipe import load_recipe
from refinery.pipelines.recipe.plain_yaml import RecipeError
from tests.pipelines.inputs import corpus_bytes
from tests.pipelines.run.slices.slice_runs import Slices
from tests.pipelines.small_runs import OFF, text_of

TOKEN = "ghp_" + "0a1B2c3D4e5F6g7H8i9J" + "0a1B2c3D4e5F6g7H"


def line_of(number: int) -> str:
    odd = f'"score":  {number}e2 ,"deep":{{"z":[{number}.10],"a":"\\u00fc"}},"meta":{{"k":"v"}}'
    return f'{{"id":9{number:024},"text":{json.dumps(text_of(number))},"url":"https://e.example/{number}",{odd}}}\n'


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inputs")
    (folder / "kept.jsonl").write_text("".join(map(line_of, range(12))))
    (folder / "plain.jsonl").write_text("".join(map(line_of, range(20, 24))))
    recipe = {
        "name": "kept",
        "sources": [
            {"name": "kept", "paths": [str(folder / "kept.jsonl")], "domain": "web", "fields": "keep"},
            {"name": "plain", "paths": [str(folder / "plain.jsonl")], "domain": "web"},
        ],
        "writer": "text",
        "shards": {"order": "input", "validation": 0.0},
        **OFF,
    }
    (folder / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    return folder


def refined(inputs: Path, out: Path, *more: object) -> Path:
    words = ["refine", inputs / "recipe.yaml", "--output", out, "--workers", 0, "--quiet", *more]
    assert execute([str(word) for word in words]) == 0
    report = verify(str(out), workers=1)
    assert report.failures == [] and report.documents == 16
    return out


def test_a_column_of_parquet(inputs: Path, tmp_path: Path) -> None:
    out = refined(inputs, tmp_path / "out")
    (path,) = (out / "train" / "web").glob("*.parquet")
    rows = pq.read_table(path).to_pylist()
    for number, row in enumerate(rows[:12]):
        assert row["fields"] == (
            f'{{"id":9{number:024},"score":{number}e2,"deep":{{"z":[{number}.10],"a":"\\u00fc"}},"meta":{{"k":"v"}}}}'
        )
        assert row["meta"] == "{}" and row["text"] == text_of(number)
    assert {row["fields"] for row in rows[12:]} == {""}
    found = refinery.corpus.open(out).documents(["fields"], where='fields != ""')
    assert sum(batch.num_rows for batch in found) == 12
    slices = Slices(load_recipe(str(inputs / "recipe.yaml")), tmp_path / "slices", 2)
    slices.cut()
    slices.do_all(slices.tasks())
    assert corpus_bytes(slices.finish()) == corpus_bytes(out)


def test_keys_of_json_lines(inputs: Path, tmp_path: Path) -> None:
    """As they are written, beside our own keys."""
    out = refined(inputs, tmp_path / "out", "--set", "writer=text-jsonl")
    (path,) = (out / "train" / "web").glob("*.jsonl.zst")
    lines = zstandard.ZstdDecompressor().decompressobj().decompress(path.read_bytes()).decode().splitlines()
    for number, line in enumerate(lines[:12]):
        assert line.endswith(
            f',"meta":{{}},"input_id":9{number:024},"score":{number}e2,'
            f'"deep":{{"z":[{number}.10],"a":"\\u00fc"}},"input_meta":{{"k":"v"}}}}'
        )
    own = {*orjson.loads(lines[0])} - {"input_id", "score", "deep", "input_meta"}
    assert all({*orjson.loads(line)} == own for line in lines[12:]) and "fields" not in own


def test_secrets_in_fields_are_redacted(tmp_path: Path) -> None:
    """Behind an escape, too, where a rule that looks at JSON would see another letter before it."""
    record: dict[str, Any] = {"text": text_of(1), "note": f"x\n{TOKEN}", "deep": [{"k": f'"{TOKEN}"'}], "n": 10**22}
    (tmp_path / "in.jsonl").write_text(json.dumps(record) + "\n")
    recipe = {
        "name": "secret",
        "sources": [{"name": "s", "paths": [str(tmp_path / "in.jsonl")], "fields": "keep"}],
        "writer": "text",
        "shards": {"validation": 0.0},
        **OFF,
        "secrets": True,
    }
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    words = ["refine", tmp_path / "recipe.yaml", "--output", tmp_path / "out", "--workers", 0, "--quiet"]
    assert execute([str(word) for word in words]) == 0
    (path,) = (tmp_path / "out" / "train" / "s").glob("*.parquet")
    (row,) = pq.read_table(path).to_pylist()
    assert orjson.loads(row["fields"])["note"] == "x\nAPI_KEY_REDACTED" and TOKEN not in str(row)
    assert orjson.loads(row["fields"])["deep"] == [{"k": '"API_KEY_REDACTED"'}]
    assert f'"n": {10**22}' in row["fields"] or f'"n":{10**22}' in row["fields"]
    assert json.loads(row["meta"])["secrets"] == 2


def test_a_field_may_not_have_the_name_of_the_column(inputs: Path) -> None:
    data = yaml.safe_load((inputs / "recipe.yaml").read_text())
    data["sources"][1]["meta_fields"] = ["fields"]
    (inputs / "other.yaml").write_text(yaml.safe_dump(data))
    with pytest.raises(RecipeError, match=r"sources\[1\]\.meta_fields: 'fields' given"):
        load_recipe(str(inputs / "other.yaml"))
