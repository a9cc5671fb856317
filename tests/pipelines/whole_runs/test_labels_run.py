"""Labels in whole runs: typed columns, a rule over them, the same bytes again, reuse, what drops say."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from refinery.loader.format.manifest import Manifest
from refinery.pipelines.corpus.replay.decision_text import decision_lines
from refinery.pipelines.corpus.replay.try_document import try_document
from refinery.pipelines.corpus.verify.verify import verify
from refinery.pipelines.recipe.load_recipe import load_recipe
from refinery.pipelines.run.fingerprint import phase_fingerprints
from refinery.pipelines.run.refine import Refinement
from refinery.pipelines.runners.runner import Runner
from refinery.transforms.core.document import RawDocument
from refinery.transforms.filter.rules.expression import column_types, compile_rule
from tests.pipelines.small_runs import check_corpus, digests, folder_files, make_small_inputs, text_of
from tests.sampling import FILE_ON_ONE_COMMIT_IN_FOUR
from tests.shared import shared
from tests.transforms.filter.fasttext_files import train_labelled

pytestmark = FILE_ON_ONE_COMMIT_IN_FOUR

RULE = "edu > 0.5 or dclm > 0.5 and topic != 'early'"


def fill(folder: Path) -> None:
    """Two classifiers that disagree, a model of topics, thresholds by language, and a run with all of them."""
    make_small_inputs(folder)
    train_labelled(folder / "edu.bin", {"hq": [text_of(n) for n in (0, 1, 2)], "lq": [text_of(n) for n in (7, 8, 9)]})
    train_labelled(folder / "dclm.bin", {"hq": [text_of(n) for n in (4, 5, 6)], "lq": [text_of(n) for n in (0, 1, 9)]})
    train_labelled(folder / "topics.bin", {"early": [text_of(0), text_of(4)], "late": [text_of(5), text_of(9)]})
    refine(folder, folder / "corpus")


def settings(folder: Path) -> tuple[str, ...]:
    edu = f"{{name: edu, model: {folder / 'edu.bin'}, rule: note, bins: [0.25, 0.5, 0.75]}}"
    dclm = f"{{name: dclm, model: {folder / 'dclm.bin'}, rule: note}}"
    return (
        f"quality={{classifiers: [{edu}, {dclm}]}}",
        f"labels={{models: [{{name: topic, model: {folder / 'topics.bin'}}}]}}",
        "toxicity=on",
        "pii=on",
        "columns=[toxicity, pii, lines_cut]",
        "heuristics={basic: off, gopher: off, repetition: off, c4: off, fineweb: off, columns: [duplicate_lines]}",
        f"keep={{rule: {json.dumps(RULE)}}}",
        "rejects.rate=1.0",
    )


def refine(folder: Path, prefix: Path, *more: str, workers: int = 0, reuse: Path | None = None) -> str:
    recipe = load_recipe(str(folder / "recipe.yaml"), [*settings(folder), *more])
    said: list[str] = []
    runner = Runner("local", workers=workers, quiet=True)
    Refinement(recipe, str(prefix), runner, say=said.append, reuse=str(reuse) if reuse else "").run()
    return "\n".join(said)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shared(tmp_path_factory, "labels-run", fill)


def rows_of(prefix: Path, manifest: Manifest) -> tuple[pa.Schema, list[dict[str, Any]]]:
    tables = [
        pq.read_table(prefix / file.path) for shard in manifest.shards for file in shard.files if "prov" in file.path
    ]
    return tables[0].schema, [row for table in tables for row in table.to_pylist()]


def test_labels_are_typed_columns_and_the_rule_decides_by_them(inputs: Path) -> None:
    manifest = check_corpus(folder_files(inputs / "corpus"))
    assert [(column.name, column.type) for column in manifest.columns] == [
        ("license", "string"),
        ("license_from", "string"),
        ("language", "string"),
        ("language_score", "float"),
        ("lines_cut", "integer"),
        ("quality", "float"),
        ("toxicity", "float"),
        ("pii", "integer"),
        ("repetition_duplicate_lines", "float"),
        ("edu", "float"),
        ("edu_bin", "integer"),
        ("dclm", "float"),
        ("topic", "string"),
        ("topic_score", "float"),
    ]
    schema, rows = rows_of(inputs / "corpus", manifest)
    assert schema.field("edu").type == pa.float32() and schema.field("edu_bin").type == pa.int64()
    rule = compile_rule(RULE, column_types(schema))
    assert rows and all(rule(row) for row in rows)  # the published columns say the same as the stage's values did
    for row in rows:
        assert row["quality"] == row["edu"] and row["edu_bin"] == sum(row["edu"] >= edge for edge in (0.25, 0.5, 0.75))
        assert row["topic"] in ("early", "late") and row["toxicity"] == 0.0 and row["repetition_duplicate_lines"] == 0.0
        assert row["pii"] == 0 and row["lines_cut"] is None  # found nothing; is off
        assert "edu" not in json.loads(row["meta"])
    (funnel,) = [row for row in manifest.funnel if row["stage"] == "keep"]
    dropped = funnel["dropped"]["rule-not-met"]["documents"]
    assert funnel["in"]["documents"] == len(rows) + dropped and 0 < dropped < funnel["in"]["documents"]
    rejects = [row for path in inputs.glob("corpus/rejects/*.parquet") for row in pq.read_table(path).to_pylist()]
    found = [row["found"] for row in rejects if row["stage"] == "keep"]
    assert len(found) == dropped
    for line in found:
        values = dict(part.split("=") for part in line.split(" "))
        assert values.keys() == {"dclm", "edu", "topic"} and not rule({**values, **numbers(values)})
    assert verify(str(inputs / "corpus")).failures == []


def numbers(values: dict[str, str]) -> dict[str, float]:
    return {name: float(values[name]) for name in ("edu", "dclm")}


def test_the_same_bytes_with_worker_processes(inputs: Path, tmp_path: Path) -> None:
    refine(inputs, tmp_path / "two", workers=1)
    assert digests(folder_files(tmp_path / "two")) == digests(folder_files(inputs / "corpus"))


def test_another_rule_costs_phase_3_alone(inputs: Path, tmp_path: Path) -> None:
    (tmp_path / "least.csv").write_text("language,least\nen,0.5\n")
    other = (
        f"keep={{rule: dclm > least or lot, thresholds: {{least: {{file: {tmp_path / 'least.csv'}, default: 0.5}}}}, "
    )
    other += "draws: {lot: {score: edu}}}"
    recipe = load_recipe(str(inputs / "recipe.yaml"), [*settings(inputs), other])
    before = phase_fingerprints(load_recipe(str(inputs / "recipe.yaml"), settings(inputs)), [])
    prints = phase_fingerprints(recipe, [])
    assert [name for name in prints if prints[name] != before[name]] == ["shards"]
    (tmp_path / "least.csv").write_text("language,least\nen,0.6\n")
    again = phase_fingerprints(recipe, [])
    assert [name for name in prints if prints[name] != again[name]] == ["shards"]
    refine(inputs, tmp_path / "other", other, reuse=inputs / "corpus")
    manifest = check_corpus({**folder_files(tmp_path / "other")})
    assert len(rows_of(tmp_path / "other", manifest)[1]) > 0
    assert not list((tmp_path / "other" / "work").glob("documents/*"))  # pointers to the other run


def test_try_shows_the_values_beside_the_rule(inputs: Path) -> None:
    recipe = load_recipe(str(inputs / "recipe.yaml"), settings(inputs))
    lines = list(decision_lines(try_document(recipe, RawDocument(text_of(9), False, "", "", "s", "o@0", 0))))
    at = next(number for number, line in enumerate(lines) if line.startswith("keep "))
    told = "\n".join(lines[at:])
    assert "dropped" in lines[at] and "edu = 0." in told and "dclm = 0." in told and "topic = late" in told
    assert f"rule = {RULE}" in told and "rule-not-met" in told


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ("keep.rule=eduu > 0.5", "keep.rule: at character 1: eduu is not a column, did you mean edu?"),
        ("keep.rule=edu > ", "keep.rule: at character"),
        ("quality.classifiers=[{name: language, model: m}]", "quality: the name 'language' given, which a column"),
        ("quality.classifiers=[{name: token_count, model: m}]", "quality: the name 'token_count' given"),
        (
            "labels={models: [{name: edu, model: m}]}",
            "labels: the name 'edu' given, which a column or another note has",
        ),
        ("columns=[edu]", "columns: 'edu' given"),
        ("sources[0].meta_fields=[edu]", "meta_fields: 'edu' given, any but what stages note themselves"),
    ],
)
def test_names_that_clash(inputs: Path, setting: str, problem: str) -> None:
    with pytest.raises(ValueError) as error:
        load_recipe(str(inputs / "recipe.yaml"), [*settings(inputs), setting])
    assert problem in str(error.value)
