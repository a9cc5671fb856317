"""The steps of "A column" in docs/extending/, followed literally: one file, one line of a recipe."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import refinery.corpus
from refinery.pipelines.cli.command_line import execute
from tests.docs.blocks import subject_text
from tests.pipelines.small_runs import command, text_of
from tests.sampling import FILE_ON_ONE_COMMIT_IN_FOUR

pytestmark = FILE_ON_ONE_COMMIT_IN_FOUR

PAGE = subject_text("extending")
SECTION = PAGE[PAGE.index("# A column\n") :]
FILE = re.search(r"```python\n(.*?)```", SECTION, re.S)
LINE = re.search(r"^stages: .*$", SECTION, re.M)
assert FILE and LINE


@pytest.fixture
def mine(tmp_path: Path, small: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A user's own folder: the module beside a recipe with the line, over documents of one to four sentences."""
    (tmp_path / "sentence_length.py").write_text(FILE[1])
    rows = [f"{text_of(number)}. {'So it is. ' * (number % 4)}" for number in range(8)]
    (tmp_path / "in.jsonl").write_text("".join(f'{{"text": "{row.strip()}"}}\n' for row in rows))
    recipe = yaml.safe_load((small / "recipe.yaml").read_text())
    recipe["sources"] = [{"name": "s", "paths": [str(tmp_path / "in.jsonl")]}]
    recipe |= yaml.safe_load(LINE[0])
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    sys.modules.pop("sentence_length", None)


def test_the_steps(mine: Path) -> None:
    assert execute([str(word) for word in command(mine, mine / "out")]) == 0
    assert execute(["verify", str(mine / "out")]) == 0
    opened = refinery.corpus.open(mine / "out")
    assert isinstance(opened, refinery.corpus.PublishedCorpus)
    assert ("sentence_length", "float") in [(each.name, each.type) for each in opened.manifest.columns]
    found = [row for batch in opened.documents(["sentence_length", "text"]) for row in batch.to_pylist()]
    assert len(found) == 8
    for row in found:
        want = len(row["text"].split()) / len(re.findall(r"[.](?:\s|$)", row["text"]))
        assert row["sentence_length"] == pytest.approx(want, rel=1e-6)
    short = [row for batch in opened.documents(["text"], where="sentence_length < 10") for row in batch.to_pylist()]
    assert 0 < len(short) < 8
    statistics = opened.statistics()
    assert statistics is not None
    assert any(series.name == "sentence_length" for point in statistics.points for series in point.series)


def test_exports_have_it(mine: Path) -> None:
    assert execute([str(word) for word in command(mine, mine / "out")]) == 0
    asked = ["--format", "jsonl", "--fields", "id,sentence_length", "--output", str(mine / "jsonl")]
    assert execute(["export", str(mine / "out"), *asked]) == 0
    exported = refinery.corpus.open(mine / "jsonl")
    rows = [row for batch in exported.documents(["sentence_length"]) for row in batch.to_pylist()]
    assert len(rows) == 8 and all(row["sentence_length"] > 0 for row in rows)


def test_a_rule_knows_it(mine: Path) -> None:
    recipe = yaml.safe_load((mine / "recipe.yaml").read_text()) | {"keep": {"rule": "sentence_length < 10"}}
    (mine / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    assert execute([str(word) for word in command(mine, mine / "out")]) == 0
    batches = refinery.corpus.open(mine / "out").documents(["sentence_length"])
    lengths = [row["sentence_length"] for batch in batches for row in batch.to_pylist()]
    assert 0 < len(lengths) < 8 and max(lengths) < 10
