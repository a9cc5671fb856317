"""`shards: {order: input}`: documents stand as in the inputs, in the same bytes whoever does the work."""

import json
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

import refinery.corpus
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.cli.command_line import execute
from refinery.pipelines.corpus.verify import pieces
from refinery.pipelines.corpus.verify.row_check import RowCheck
from refinery.pipelines.corpus.verify.verify import verify
from refinery.pipelines.published.placement import Plan, read_plan
from refinery.pipelines.recipe.load_recipe import load_recipe
from refinery.pipelines.run import input_borders
from refinery.pipelines.run.phases import ORDER_REPORT, remove_work
from refinery.transforms.core.data_text.plain_yaml import RecipeError
from tests.pipelines.inputs import corpus_bytes
from tests.pipelines.run.slices.slice_runs import Slices
from tests.pipelines.small_runs import OFF, text_of
from tests.sampling import one_commit_in_four

FILES = {"b/10": range(40, 60), "b/9": range(60, 75), "a/1": range(30), "c/1": range(20, 40)}  # c repeats some of a


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inputs")
    for name, numbers in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        lines = (json.dumps({"text": text_of(n), "url": f"https://{name}.example/{n}"}) + "\n" for n in numbers)
        (folder / f"{name}.jsonl").write_text("".join(lines))
    recipe = {
        "name": "ordered",
        "sources": [
            {"name": "second", "paths": [str(folder / "b")], "domain": "web"},
            {"name": "first", "paths": [str(folder / "a")], "domain": "web"},
            {"name": "other", "paths": [str(folder / "c")], "priority": 1},
        ],
        "writer": "text",
        "shards": {"order": "input", "validation": 0.2, "target_bytes": 2000},
        **OFF,
    }
    (folder / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    return folder


def refined(inputs: Path, out: Path, *more: object) -> Path:
    words = ["refine", inputs / "recipe.yaml", "--output", out, "--quiet", *more]
    assert execute([str(word) for word in words]) == 0
    return out


@pytest.fixture(scope="module")
def corpus(inputs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return refined(inputs, tmp_path_factory.mktemp("out") / "corpus", "--workers", 0)


def texts(corpus: Path, split: str, domain: str) -> list[list[str]]:
    """The texts of each shard."""
    return [pq.read_table(path)["text"].to_pylist() for path in sorted((corpus / split / domain).glob("*.parquet"))]


def test_documents_stand_as_in_the_inputs(corpus: Path) -> None:
    """Sources as the recipe lists them, files by path, lines as they are; every shard near its share."""
    web = [text_of(n) for name in ("b/10", "b/9", "a/1") for n in FILES[name]]
    other = [text_of(n) for n in range(30, 40)]
    for domain, expected in {"web": web, "other": other}.items():
        found = {
            split: [t for shard in texts(corpus, split, domain) for t in shard] for split in ("train", "validation")
        }
        for mine in found.values():
            assert mine == [text for text in expected if text in set(mine)]
        assert sorted(found["train"] + found["validation"]) == sorted(expected)
    sizes = [sum(len(text) for text in shard) for shard in texts(corpus, "train", "web")]
    assert len(sizes) > 3 and max(sizes) < 2 * min(sizes)


def test_verify_and_lookups(corpus: Path) -> None:
    report = verify(str(corpus), workers=1)
    assert report.failures == [] and report.documents == 75
    opened = refinery.corpus.open(corpus)
    rows = [row for batch in opened.documents(["id", "url", "text"]) for row in batch.to_pylist()]
    for row in rows[::9]:
        assert opened.text(row["id"]) == row["text"]
        assert opened.find(id=row["id"]) == opened.find(url=row["url"]) != []


def test_verify_finds_another_order(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of a shard, and shards of a domain: as if the recipe named the sources of `web` the other way round."""

    def turned(recipe: Mapping[str, Any]) -> Plan | None:
        return read_plan({**recipe, "sources": recipe["sources"][::-1]})

    monkeypatch.setattr(pieces, "read_plan", turned)
    failures = verify(str(corpus), workers=1).failures
    assert [failure.partition("/shard-")[0] for failure in failures] == ["train/web", "validation/web"], failures
    assert "shard-00002-of-00005.parquet: 1 rows out of the recipe's order; the first: row " in failures[0]
    assert "begins before the end of validation/web/shard-00000-of-00002.parquet in the order of the" in failures[1]


def test_verify_finds_fields_that_are_no_objects() -> None:
    row = {"id": b"i" * 16, "source": "s", "sources": ["s"], "copies": 1, "meta": "{}"}
    rows = [{**row, "fields": fields} for fields in ("", "{}", '{"a":1e400}', "[]", "{", '{"a":1}')]
    shard: Any = SimpleNamespace(domain="web", split="train", index=0, count=1)
    check = RowCheck(shard, None, (), {}, has_fields=True)
    check.watch(pa.RecordBatch.from_pylist(rows))
    found = "3 rows whose fields is neither empty nor a JSON object; the first: row 2"
    assert list(check.faults.sentences()) == [found]


def test_verify_finds_rows_without_a_place() -> None:
    batch = pa.RecordBatch.from_pylist([{"id": b"i" * 16, "source": "s", "origin": "file"}])
    shard: Any = SimpleNamespace(domain="web", split="train", index=0, count=1)
    check = RowCheck(shard, Plan(1, 0.0, {"s": "web"}, by_input=True), (), {})
    check._place(batch, check.plan)
    assert [*check.faults.sentences()] == [
        "1 batches of rows without a place in the inputs; the first: from row 0 on: "
        "invalid literal for int() with base 10: 'file'"
    ]


def test_same_bytes_by_a_job_and_by_slices(
    inputs: Path, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there are many documents, a job counts them; its files belong to the run."""
    monkeypatch.setattr(input_borders, "FEW_ROWS", 0)
    slices = Slices(load_recipe(str(inputs / "recipe.yaml")), tmp_path / "out", 3)
    slices.cut()
    slices.do_all(slices.tasks())
    assert corpus_bytes(slices.finish()) == corpus_bytes(corpus)
    work = open_store(str(tmp_path / "out" / "work"))
    assert work.size(ORDER_REPORT)
    remove_work(work)
    assert not any(path.is_file() for path in (tmp_path / "out" / "work").rglob("*"))


@one_commit_in_four
@pytest.mark.parametrize("more", [("--workers", 2, "--set", "run.wave_files=1"), ("--workers", 4)])
def test_same_bytes(inputs: Path, corpus: Path, tmp_path: Path, more: tuple[object, ...]) -> None:
    found = corpus_bytes(refined(inputs, tmp_path / "out", *more, "--set", "run.part_bytes=500"))
    expected = corpus_bytes(corpus)
    assert {name: found[name] for name in expected if name.startswith(("train/", "validation/"))} == {
        name: digest for name, digest in expected.items() if name.startswith(("train/", "validation/"))
    }


def test_json_lines_have_the_same_order(inputs: Path, corpus: Path, tmp_path: Path) -> None:
    out = refined(inputs, tmp_path / "lines", "--workers", 0, "--set", "writer=text-jsonl")
    assert verify(str(out), workers=1).failures == []
    opened = [refinery.corpus.open(place) for place in (out, corpus)]
    ids = [[i for batch in each.documents(["id"]) for i in batch.column("id").to_pylist()] for each in opened]
    assert ids[0] == ids[1]


def test_tokens_are_refused(inputs: Path) -> None:
    with pytest.raises(RecipeError, match=r"shards\.order: input given, it needs a writer of texts") as caught:
        load_recipe(str(inputs / "recipe.yaml"), ["writer=''", "tokenizer.path=t.json"])
    assert "\n" not in str(caught.value)


def test_old_recipes_keep_their_fingerprints(inputs: Path) -> None:
    told = load_recipe(str(inputs / "recipe.yaml"), ["shards.order=shuffled"]).told()
    assert "order" not in told["shards"] and "order" in load_recipe(str(inputs / "recipe.yaml")).told()["shards"]
