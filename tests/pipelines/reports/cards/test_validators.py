"""Cards by what others accept them with: MLCommons' validator, CycloneDX's schema. For `make test-cards`."""

import itertools
import json
import shutil
from pathlib import Path

import pytest

from refinery.pipelines.reports.cards import croissant
from refinery.pipelines.reports.cards.about import About
from tests.pipelines.code_runs import make_code_inputs
from tests.pipelines.inputs import run
from tests.pipelines.reports.cards.hostile import hostile_corpus
from tests.pipelines.reports.cards.test_cards import card

mlcroissant = pytest.importorskip("mlcroissant", reason="the extra [validators] is not installed: make test-cards")
validation = pytest.importorskip("cyclonedx.validation.json")
schema = pytest.importorskip("cyclonedx.schema")

SAID = About(license="odc-by", url="https://example.org/c", published="2026-11-23", citation="@misc{c}", creator="A")


@pytest.fixture(scope="module")
def corpora(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Of the web, of source code, and a hostile one."""
    folder = tmp_path_factory.mktemp("cards")
    inputs = make_code_inputs(folder / "in")
    run("refine", inputs / "recipe.yaml", "--output", folder / "code", "--workers", 0)
    shutil.copytree(corpus, folder / "web", ignore=shutil.ignore_patterns("work"))
    return [folder / "web", folder / "code", hostile_corpus(corpus, folder / "hostile")]


@pytest.mark.filterwarnings("ignore")
def test_mlcommons_accepts_the_description_and_reads_its_records(corpora: list[Path]) -> None:
    for prefix in corpora:
        for about in (About(), SAID):
            path = prefix / "croissant.json"
            path.write_text(card(prefix, "croissant", about))
            found = mlcroissant.Dataset(jsonld=str(path))
            issues = found.metadata.ctx.issues
            assert not issues.errors
            assert about is not SAID or not issues.warnings
            described = json.loads(path.read_text())
            for records in described["recordSet"]:
                rows = list(itertools.islice(found.records(records["@id"]), 3))
                assert rows and set(rows[0]) == {field["@id"] for field in records["field"]}


@pytest.mark.filterwarnings("ignore")
def test_mlcommons_accepts_patterns_of_files(corpora: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(croissant, "MOST_FILES", 3)
    path = corpora[0] / "croissant.json"
    path.write_text(card(corpora[0], "croissant"))
    assert not mlcroissant.Dataset(jsonld=str(path)).metadata.ctx.issues.errors
    assert ".bin" not in "".join(each["@id"] for each in json.loads(path.read_text())["distribution"])


def test_the_schema_of_cyclonedx_accepts_the_bill(corpora: list[Path]) -> None:
    validator = validation.JsonStrictValidator(schema.SchemaVersion.V1_6)
    for prefix in corpora:
        assert validator.validate_str(card(prefix, "sbom")) is None
    assert validator.validate_str('{"bomFormat": "CycloneDX"}') is not None  # it can fail
