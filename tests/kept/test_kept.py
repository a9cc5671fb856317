"""A corpus with its work files, a view, two exports, a version after a takedown, and a loader's states, as an earlier
version wrote them: every tool reads them, a loader goes on in them, and what cannot be taken over is said in one line.

An archive is made by hand when a format changes, and is never made again. That of 2026-11 holds the outputs of
`refine`, `mix`, `export` (jsonl, torch) and `remove` for the recipe in it, run in its folder; states.json has states
after three batches, and the SHA-256 of the input_ids of every batch that followed.
"""

import hashlib
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import refinery.corpus
from refinery.loader import PackedStream, TokenStream
from refinery.pipelines.cli.command_line import execute

ARCHIVES = sorted(Path(__file__).parent.glob("*.tar.gz"))


@pytest.fixture(params=ARCHIVES, ids=lambda path: path.name.partition(".")[0])
def kept(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of an archive, as the working directory."""
    with tarfile.open(request.param) as archive:
        archive.extractall(tmp_path, filter="data")
    monkeypatch.chdir(tmp_path / "kept")
    yield tmp_path / "kept"


def test_everything_is_verified(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for place in ("corpus", "after", "view", "jsonl", "torch"):
        assert execute(["verify", place]) == 0, capsys.readouterr().out
    assert execute(["verify", "after", "--against", "corpus"]) == 0


TOOLS = {
    "inspect": ["inspect", "corpus"],
    "trace": ["trace", "corpus", "--url", "https://c0.example/3"],
    "a takedown's trace": ["trace", "after", "--url", "https://c1.example/4"],
    "show": ["show", "corpus", "--token", "train/web/shard-00000-of-00003:5"],
    "sample": ["sample", "corpus", "-n", "3", "--measure"],
    "report": ["report", "corpus"],
    "card": ["card", "corpus", "--output", "cards"],
    "compare": ["compare", "corpus", "after"],
    "audit": ["audit", "corpus", "--sample", "1", "--workers", "0"],
    "export": ["export", "corpus", "--format", "parquet", "--output", "parquet", "--workers", "0"],
    "a rewritten export": [
        *("export", "after", "--format", "torch", "--shard-tokens", "512"),
        *("--rewrite", "--output", "torch"),
    ],
    "status": ["status", "jsonl"],
    "mix": ["mix", "view.yaml", "--output", "view-2"],
    "a view made again": ["mix", "view", "--corpus", "a=after", "--output", "view-2"],
    "remove": ["remove", "corpus", "--hosts", "hosts.txt", "--output", "without", "--workers", "0"],
    "blend": ["blend", "corpus"],
    "plan": ["plan", "--from", "corpus", "--share", "0.1"],
}


@pytest.mark.parametrize("tool", TOOLS)
def test_tools_read_it(tool: str, kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (kept / "hosts.txt").write_text("c2.example\n")
    code = execute(TOOLS[tool])
    said = capsys.readouterr()
    assert code == 0, said.err + said.out


def test_documents_from_python(kept: Path) -> None:
    counts = {}
    for place in ("corpus", "after", "view", "jsonl"):
        batches = refinery.corpus.open(place).documents(["id", "text"])
        counts[place] = sum(all(row["text"] for row in batch.to_pylist()) * batch.num_rows for batch in batches)
    exported = json.loads((kept / "jsonl" / "manifest.json").read_text())["totals"]["documents"]
    assert counts["corpus"] == counts["jsonl"] == exported
    assert counts["after"] == counts["corpus"] - 1 and counts["view"] > 0


def streams() -> dict[str, Any]:
    shape = {"sequence_length": 32, "batch_size": 2, "seed": 1, "epochs": 2}
    return {
        "corpus": TokenStream("corpus", **shape),
        "view": TokenStream("view", **shape),
        "packed": PackedStream("corpus", **shape | {"sequence_length": 64, "epochs": 1}),
    }


def test_states_of_a_loader_go_on(kept: Path) -> None:
    states = json.loads((kept / "states.json").read_text())
    for name, stream in streams().items():
        stream.load_state_dict(states[name]["state"])
        rest = [hashlib.sha256(batch["input_ids"].tobytes()).hexdigest() for batch in stream]
        assert rest == states[name]["rest"] and rest, name


def test_a_run_over_it(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same command, --reuse, and the corpus as a reference: what is taken over is, what is not is one line."""
    refine = ["refine", "recipe.yaml", "--workers", "0", "--quiet"]
    assert execute([*refine, "--output", "corpus"]) in (0, 1)
    said = capsys.readouterr().err
    assert not said or len(said.strip().splitlines()) <= 3, said
    assert execute([*refine, "--output", "again", "--reuse", "corpus"]) == 0, capsys.readouterr().err
    assert execute(["verify", "again"]) == 0
    recipe = yaml.safe_load((kept / "recipe.yaml").read_text())
    recipe["reference_corpora"] = [{"prefix": "corpus"}]
    recipe["failures"] = {"allow_empty": True}
    (kept / "against.yaml").write_text(yaml.safe_dump(recipe))
    code = execute(["refine", "against.yaml", "--workers", "0", "--quiet", "--output", "new"])
    assert code == 0, capsys.readouterr().err
    opened = refinery.corpus.open("new")
    assert sum(batch.num_rows for batch in opened.documents(["id"])) == 0
