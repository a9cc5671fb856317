"""Decontamination in whole runs: the same bytes again, counts per benchmark, items that trace names."""

import json
from pathlib import Path

import pytest

from refinery.pipelines.corpus.trace.answers import Query
from refinery.pipelines.corpus.trace.trace_documents import trace
from refinery.pipelines.corpus.trace.trace_text import text_lines
from refinery.pipelines.corpus.verify.verify import verify
from refinery.pipelines.recipe.load_recipe import load_recipe
from refinery.pipelines.run.fingerprint import phase_fingerprints
from refinery.pipelines.run.inspection.inspection import inspect
from refinery.pipelines.run.inspection.text import text_lines as inspection_lines
from refinery.pipelines.run.refine import Refinement
from refinery.pipelines.runners.runner import Runner
from tests.pipelines.small_runs import check_corpus, digests, folder_files, make_small_inputs, text_of
from tests.sampling import FILE_ON_ONE_COMMIT_IN_FOUR

pytestmark = FILE_ON_ONE_COMMIT_IN_FOUR


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_small_inputs(tmp_path_factory.mktemp("decontaminate"))
    items = [{"id": f"i{n}", "question": " ".join(text_of(n).upper().split()[-14:])} for n in (2, 3, 20)]
    (folder / "quiz.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    return folder


def refine(inputs: Path, prefix: Path, *settings: str) -> None:
    quiz = f"decontaminate={{benchmarks: [{inputs / 'quiz.jsonl'}]}}"
    recipe = load_recipe(str(inputs / "recipe.yaml"), [quiz, *settings])
    Refinement(recipe, str(prefix), Runner("local", workers=0, quiet=True), say=lambda _: None).run()


def test_a_run_counts_and_names_the_items_that_it_drops(inputs: Path, tmp_path: Path) -> None:
    refine(inputs, tmp_path / "one")
    refine(inputs, tmp_path / "two")
    files = folder_files(tmp_path / "one")
    assert digests(files) == digests(folder_files(tmp_path / "two"))
    manifest = check_corpus(files)
    (row,) = [row for row in manifest.funnel if row["stage"] == "decontaminate"]
    assert row["dropped"]["benchmark-overlap"]["documents"] == row["found"]["quiz"]["documents"]
    assert row["found"]["quiz"]["items"] == 2
    assert any("= quiz: 2 items in " in line for line in inspection_lines(inspect(str(tmp_path / "one"))))
    found = trace(str(tmp_path / "one"), [Query("url", "https://a.example/3")])
    assert any("benchmark-overlap (quiz/i2, quiz/i3)" in line for line in text_lines(found))
    assert verify(str(tmp_path / "one")).failures == []


def test_an_item_more_is_another_corpus(inputs: Path) -> None:
    def prints() -> dict[str, str]:
        quiz = f"decontaminate.benchmarks=[{inputs / 'quiz.jsonl'}]"
        return phase_fingerprints(load_recipe(str(inputs / "recipe.yaml"), [quiz]), [])

    before = prints()
    with (inputs / "quiz.jsonl").open("a") as stream:
        stream.write('{"question": "one more"}\n')
    assert [name for name, value in prints().items() if value != before[name]] == ["shards"]
