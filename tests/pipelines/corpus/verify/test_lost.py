"""What a run lost between its workers is told: copies that removals do not have, input files that nobody read."""

import gzip
from pathlib import Path
from typing import Any

import pytest
import yaml

from refinery.pipelines.corpus.verify.verify import verify
from refinery.pipelines.run.inputs_read.published import INPUTS, dump_inputs, parse_inputs
from tests.corpus_factory import edit_manifest
from tests.pipelines.corpus.audit.forging import Rows, edit_rows, provenance_files, seal_again
from tests.pipelines.inputs import run
from tests.pipelines.small_runs import OFF, command, make_small_inputs, rows
from tests.sampling import FILE_ON_ONE_COMMIT_IN_FOUR

pytestmark = FILE_ON_ONE_COMMIT_IN_FOUR


@pytest.fixture
def published(tmp_path: Path) -> Path:
    """A corpus of exact copies, none of which a later stage drops."""
    run(*command(make_small_inputs(tmp_path / "in"), tmp_path / "corpus"))
    return tmp_path / "corpus"


@pytest.mark.parametrize("step", [-1, 1])
def test_copies_that_removals_do_not_have(published: Path, step: int) -> None:
    assert verify(str(published)).failures == []

    def edit(table: Rows) -> Rows:
        most = max(table, key=lambda row: row["copies"])
        most["copies"] += step
        return table

    path = max(provenance_files(published), key=lambda path: path.stat().st_size)
    edit_rows(path, edit)
    seal_again(published)
    (failure,) = verify(str(published)).failures
    assert f"documents in the corpus count {3 + step} copies, 3 expected from the rows of removals" in failure


def test_copies_of_what_a_later_stage_drops_are_in_no_shard(small: Path, tmp_path: Path) -> None:
    """Then they are at most those of removals/."""
    (tmp_path / "a.jsonl").write_text(rows("a", range(40)) + rows("b", range(40)) + rows("c", range(5)))
    recipe = {"name": "t", "tokenizer": {"path": str(small / "tokenizer.json")}, **OFF}
    recipe["sources"] = [{"name": "a", "paths": [str(tmp_path / "a.jsonl")], "target": 600}]
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    run("refine", tmp_path / "recipe.yaml", "--output", tmp_path / "corpus", "--workers", 0)
    report = verify(str(tmp_path / "corpus"))
    assert report.failures == [] and report.dropped_later and report.removals == 45
    for path in provenance_files(tmp_path / "corpus"):
        edit_rows(path, lambda table: [{**row, "copies": 40} for row in table])
    seal_again(tmp_path / "corpus")
    (failure,) = verify(str(tmp_path / "corpus")).failures
    assert "copies, 45 at most expected" in failure


def without_sums(prefix: Path, ending: str) -> list[str]:
    """What verify says of a corpus whose inputs with that ending have no checksum."""
    inputs = parse_inputs((prefix / INPUTS).read_bytes(), INPUTS)
    changed = [{**entry, "crc32c": ""} if entry["path"].endswith(ending) else entry for entry in inputs]
    (prefix / INPUTS).write_bytes(dump_inputs(changed))
    edit_manifest(prefix)
    report = verify(str(prefix))
    assert report.failures == []
    return report.doubts


def test_an_input_file_that_nobody_read(published: Path) -> None:
    assert without_sums(published, "none") == []
    (doubt,) = without_sums(published, "b.jsonl")  # a.jsonl has a dead letter
    assert "inputs.json: 1 input files were not read from end to end" in doubt and "b.jsonl'" in doubt
    assert doubt in verify(str(published)).summary_lines()
    assert without_sums(published, "a.jsonl") == [doubt]


def test_a_version_that_noted_nothing(published: Path) -> None:
    def forget(payload: dict[str, Any]) -> None:
        payload["files"] = [entry for entry in payload["files"] if entry["path"] != INPUTS]

    (published / INPUTS).unlink()
    edit_manifest(published, forget)
    (doubt,) = verify(str(published)).doubts
    assert "no inputs.json" in doubt and "refinery audit" in doubt


@pytest.mark.parametrize("kind", ["capped", "damaged", "Parquet"])
def test_files_that_have_no_sum_for_another_reason(small: Path, tmp_path: Path, kind: str) -> None:
    recipe: dict[str, Any] = {"name": "t", "tokenizer": {"path": str(small / "tokenizer.json")}, **OFF}
    source: dict[str, Any] = {"name": "a", "paths": [str(tmp_path / "a.jsonl")]}
    text = rows("a", range(9))
    if kind == "capped":
        (tmp_path / "a.jsonl").write_text(text)
        source["cap"] = 3
    elif kind == "damaged":
        whole = gzip.compress(text.encode() * 40)
        (tmp_path / "b.jsonl.gz").write_bytes(whole[: len(whole) // 2])
        source["paths"] = [str(tmp_path / "b.jsonl.gz")]
    else:
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table({"text": [f"a text of number {n}" for n in range(9)]}), tmp_path / "c.parquet")
        source["paths"] = [str(tmp_path / "c.parquet")]
    recipe |= {"sources": [source], "failures": {"allow_empty": True, "max_ratio": 1.0}}
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    run("refine", tmp_path / "recipe.yaml", "--output", tmp_path / "corpus", "--workers", 0)
    assert without_sums(tmp_path / "corpus", "") == []
