"""The graphs of the lane of source code as Dataflow gets them: its stages by name, nothing of this machine."""

from pathlib import Path

import pytest
import yaml

from refinery.pipelines.recipe.load_recipe import parse_recipe
from tests.pipelines.dataflow_graphs import (
    PHASES,
    ROOT,
    dry_run,
    functions,
    local_strings,
    no_credentials,
    phase_build,
    steps,
)
from tests.sampling import one_commit_in_four


@one_commit_in_four
def test_every_stage_of_the_recipe_is_a_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    no_credentials(monkeypatch)
    plain = yaml.safe_load((ROOT / "recipes" / "demo-code.yaml").read_text())
    plain["tokenizer"]["path"] = "gs://raw/tokenizer.json"
    for source in plain["sources"]:
        source["paths"] = ["gs://raw/repositories/*.jsonl.gz"]
    recipe = parse_recipe(plain)
    made = {phase: dry_run(phase_build(phase, recipe, 4, tmp_path)).proto_pipeline for phase in PHASES}
    judged = {name.partition("/")[0] for graph in made.values() for name in steps(graph) if "/judge/" in name}
    assert judged == {stage.name for phase in PHASES for stage, _ in recipe.active(phase) if stage.judge}
    assert any(name.startswith("deduplicate/chunk-copies/") for name in steps(made["dedup"]))
    code = dict(functions(made["shards"]))
    assert not [(name, place) for name in code for place in local_strings() if place in code[name]]
    assert b"gs://raw/tokenizer.json" in next(code[name] for name in code if name.startswith("chunk/"))
