"""`fields: keep` from input to corpus: a column of JSON in Parquet, keys of their own in JSON Lines."""

import datetime
import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
import zstandard

import refinery.corpus
from refinery.pipelines.cli.command_line import execute
from refinery.pipelines.corpus.verify.verify import verify
from refinery.pipelines.recipe.load_recipe import load_recipe
from refinery.pipelines.run.refine import Refinement
from refinery.pipelines.runners.runner import Runner
from refinery.transforms.core.data_text.plain_yaml import RecipeError
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
            f',"meta":"{{}}","input_id":9{number:024},"score":{number}e2,'
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


TAGS = pa.list_(pa.struct([("name", pa.string()), ("weight", pa.float32())]))
LOCAL = Runner("local", workers=0, quiet=True)


def parquet_of(numbers: range, votes: pa.DataType | None = None) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(numbers, pa.int32()),
            "text": [text_of(n) for n in numbers],
            "votes": pa.array([None if n % 3 else n for n in numbers], votes or pa.uint8()),
            "tags": pa.array([[{"name": "a", "weight": n / 10}] for n in numbers], TAGS),
            "when": pa.array(
                [datetime.datetime(2026, 1, 1) + datetime.timedelta(n) for n in numbers], pa.timestamp("us", "UTC")
            ),
            "odd name": [f"odd {n}" for n in numbers],
        }
    )


def typed_recipe(folder: Path, **changes: Any) -> Path:
    recipe = {
        "name": "typed",
        "sources": [
            {"name": "rows", "paths": [str(folder / "*.parquet")], "domain": "web", "fields": "keep"},
            {"name": "lines", "paths": [str(folder / "more.jsonl")], "domain": "web", "fields": ["votes", "x"]},
        ],
        "writer": "text",
        "shards": {"order": "input", "validation": 0.0},
        **OFF,
        **changes,
    }
    (folder / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    return folder / "recipe.yaml"


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two files of one schema, and lines of which one fits its type."""
    folder = tmp_path_factory.mktemp("rows")
    pq.write_table(parquet_of(range(7)), folder / "a.parquet")
    pq.write_table(parquet_of(range(7, 12)).drop_columns(["when"]), folder / "b.parquet")
    lines = [{"text": text_of(n), "votes": votes, "y": 1} for n, votes in ((20, 7), (21, "many"))]
    (folder / "more.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    typed_recipe(folder)
    return folder


def refine_here(recipe: Path, out: Path, *settings: str) -> Path:
    Refinement(load_recipe(str(recipe), settings), str(out), LOCAL, say=lambda _: None).run()
    return out


@pytest.fixture(scope="module")
def typed(rows: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return refine_here(rows / "recipe.yaml", tmp_path_factory.mktemp("typed") / "out")


def test_typed_columns_of_parquet(typed: Path) -> None:
    """The schema of the inputs, nested types too; what has no column is in `fields`."""
    assert verify(str(typed), workers=1).failures == []
    (path,) = (typed / "train" / "web").glob("*.parquet")
    found = pq.read_table(path)
    expected = pa.concat_tables([parquet_of(range(7)), parquet_of(range(7, 12))])
    for name, ours in (("id", "input_id"), ("votes", "votes"), ("tags", "tags")):
        assert found[ours].slice(0, 12).to_pylist() == expected[name].to_pylist(), name
        if name != "tags":
            assert found.schema.field(ours).type == expected.schema.field(name).type
    assert found["when"].to_pylist() == [*expected["when"].to_pylist()[:7], *[None] * 7]
    odd = [f'{{"odd name":"odd {n}"}}' for n in range(12)]
    assert found["fields"].to_pylist() == [*odd, "", '{"votes":"many"}']
    assert found["votes"].to_pylist()[12:] == [7, None] and found["tags"].to_pylist()[12:] == [None, None]


def test_what_looks_at_typed_columns(typed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    opened = refinery.corpus.open(typed)
    assert [column.name for column in opened.manifest.kept] == ["input_id", "tags", "votes", "when"]
    batches = list(opened.documents(["votes", "tags", "text", "id"], where="votes > 5"))
    rows = [row for batch in batches for row in batch.to_pylist()]
    assert [row["votes"] for row in rows] == [6, 9, 7] and rows[0]["tags"][0]["name"] == "a"
    capsys.readouterr()
    for command in ("card", "card --format croissant", "report --overwrite", "inspect"):
        name, *more = command.split()
        assert execute([name, str(typed), *more]) == 0, command
    assert execute(["show", str(typed), "--id", rows[0]["id"].hex()]) == 0
    assert text_of(6)[:40] in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("remove CORPUS --urls URLS --output OUT", "a corpus that is in input order, and `refinery remove` does not"),
        ("tokenize CORPUS --tokenizer t.json --output OUT", "a corpus with typed columns for fields of records given"),
    ],
)
def test_what_does_not_know_types(
    typed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, problem: str
) -> None:
    (tmp_path / "urls.txt").write_text("https://e.example/1\n")
    names = {"CORPUS": typed, "URLS": tmp_path / "urls.txt", "OUT": tmp_path / "out"}
    assert execute([str(names.get(word, word)) for word in command.split()]) != 0
    said = capsys.readouterr().err.strip()
    assert problem in said and "\n" not in said.partition("refinery: ")[2] and not (tmp_path / "out").exists()


def test_a_takedown_writes_what_a_run_without_the_rows_writes(
    rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Typed columns and the rest of the fields, of Parquet and of lines; shards in shuffled order."""
    folder = tmp_path / "rows"
    shutil.copytree(rows, folder)
    recipe = typed_recipe(folder, shards={"validation": 0.0})
    whole = refine_here(recipe, tmp_path / "whole")
    (path,) = (whole / "train" / "web").glob("*.parquet")
    last = {
        f"{folder}/b.parquet@4",
        next(row["origin"] for row in pq.read_table(path).to_pylist() if "many" in row["fields"]),
    }
    gone = [row["id"].hex() for row in pq.read_table(path).to_pylist() if row["origin"] in last]
    (tmp_path / "ids.txt").write_text("".join(f"{each}\n" for each in gone))
    words = [
        "remove",
        whole,
        "--documents",
        tmp_path / "ids.txt",
        "--output",
        tmp_path / "less",
        "--workers",
        0,
        "--quiet",
    ]
    assert len(gone) == 2 and execute([str(word) for word in words]) == 0
    assert verify(str(tmp_path / "less"), workers=1).failures == []
    pq.write_table(parquet_of(range(7, 11)).drop_columns(["when"]), folder / "b.parquet")
    lines = (folder / "more.jsonl").read_text().splitlines(keepends=True)
    (folder / "more.jsonl").write_text(lines[0])
    without = refine_here(recipe, tmp_path / "without")
    (ours,), (theirs,) = ((out / "train" / "web").glob("*.parquet") for out in (tmp_path / "less", without))
    assert ours.name == theirs.name and ours.read_bytes() == theirs.read_bytes()
    spelt = refine_here(recipe, tmp_path / "spelt", "writer=text-jsonl")
    words = ["remove", spelt, "--documents", tmp_path / "ids.txt", "--output", tmp_path / "no"]
    assert execute([str(word) for word in words]) == 1
    assert "JSON Lines with typed columns" in capsys.readouterr().err and not (tmp_path / "no").exists()


def test_the_same_bytes_by_slices_and_after_the_inputs_went(rows: Path, tmp_path: Path) -> None:
    """Types are settled when a run begins: no later command looks at the inputs again."""
    folder = tmp_path / "rows"
    shutil.copytree(rows, folder)
    recipe = typed_recipe(folder)
    plain = refine_here(recipe, tmp_path / "plain")
    slices = Slices(load_recipe(str(recipe)), tmp_path / "slices", 2)
    slices.cut()
    tasks = list(slices.tasks())
    slices.do_all(task for task in tasks if task[0] == "clean")
    for path in folder.glob("*.parquet"):
        path.unlink()
    slices.do_all(task for task in tasks if task[0] != "clean")
    assert corpus_bytes(slices.finish()) == corpus_bytes(plain)


def test_json_lines_of_parquet(rows: Path, tmp_path: Path) -> None:
    out = refine_here(rows / "recipe.yaml", tmp_path / "out", "writer=text-jsonl-gzip")
    assert verify(str(out), workers=1).failures == []
    (path,) = (out / "train" / "web").glob("*.jsonl.gz")
    lines = [orjson.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    assert lines[3]["input_id"] == 3 and lines[3]["tags"] == [{"name": "a", "weight": pytest.approx(0.3)}]
    assert lines[3]["when"] == "2026-01-04T00:00:00+00:00" and lines[3]["odd name"] == "odd 3"
    assert lines[13]["votes"] == "many" and "y" not in lines[13]
    provenance = pq.read_table(next((out / "train" / "web").glob("*.provenance.parquet")))
    assert provenance["votes"].to_pylist()[:4] == [0, None, None, 3]


def test_files_that_disagree_are_refused_before_the_run(rows: Path, tmp_path: Path) -> None:
    folder, out = tmp_path / "rows", tmp_path / "out"
    shutil.copytree(rows, folder)
    pq.write_table(parquet_of(range(30, 33), pa.int64()), folder / "c.parquet")
    problem = r"column 'votes' is int64 in .*c\.parquet, uint8 in .*a\.parquet; make two sources"
    with pytest.raises(ValueError, match=problem) as caught:
        refine_here(typed_recipe(folder), out)
    assert "\n" not in str(caught.value) and not out.exists()
    sources: list[dict[str, Any]] = [
        {"name": "a", "paths": [str(folder / "a.parquet")], "fields": "keep"},
        {"name": "c", "paths": [str(folder / "c.parquet")], "fields": ["votes"]},
    ]
    with pytest.raises(ValueError, match="source c: fields: 'votes' is int64, uint8 in source a; give both one type"):
        refine_here(typed_recipe(folder, sources=sources), out)
    sources[0]["field_types"] = sources[1]["field_types"] = {"votes": "int64"}
    refine_here(typed_recipe(folder, sources=sources), out)
    (path,) = (out / "train" / "c").glob("*.parquet")
    assert pq.read_schema(path).field("votes").type == pa.int64() and "input_id" not in pq.read_schema(path).names


def test_types_in_recipes(rows: Path) -> None:
    problem = r"sources\[0\]\.field_types: votes: 'long' given, a type of a column is allowed"
    with pytest.raises(RecipeError, match=problem):
        load_recipe(str(rows / "recipe.yaml"), ["sources.0.field_types={votes: long}"])
