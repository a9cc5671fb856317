"""examples/tour.ipynb: without outputs, and its cells run; in a real Jupyter kernel where there is one."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.docs.blocks import ROOT
from tests.fork_server import fork_server
from tests.sampling import one_commit_in_four

NOTEBOOK = ROOT / "examples" / "tour.ipynb"
CELLS: list[dict[str, Any]] = json.loads(NOTEBOOK.read_text())["cells"]
CODE = ["".join(cell["source"]) for cell in CELLS if cell["cell_type"] == "code"]


def test_it_has_no_outputs() -> None:
    """They would change with every run, and may hold anything."""
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in CELLS if "outputs" in cell)
    assert all(not cell["metadata"] for cell in CELLS)
    assert len({cell["id"] for cell in CELLS}) == len(CELLS)
    text = json.dumps(json.loads(NOTEBOOK.read_text()), indent=1, ensure_ascii=False)
    assert NOTEBOOK.read_text() == f"{text}\n"


def checkout(folder: Path) -> Path:
    """A folder that looks like a checkout; the notebook begins in its examples/."""
    (folder / "recipes").symlink_to(ROOT / "recipes")
    (folder / "examples").mkdir()
    return folder / "examples"


@one_commit_in_four
def test_its_cells_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Without Jupyter: commands behind "!" in forks, everything else as it stands, in one namespace; fewer pages. A run
    of the funnel takes some seconds.
    """
    monkeypatch.chdir(checkout(tmp_path))
    names: dict[str, Any] = {"__name__": "__main__"}
    for source in CODE:
        for block in re.split(r"^(!.*)$", source.replace("--pages 300", "--pages 100"), flags=re.MULTILINE):
            if block.startswith("!"):
                type_in(re.sub(r"\{([\w.]+)\}", lambda found: str(eval(found[1], names)), block[1:]))  # noqa: S307
            else:
                exec(compile(block, NOTEBOOK.name, "exec"), names)  # noqa: S102 - our own
    said = capsys.readouterr().out
    assert (tmp_path / "out" / "tour" / "corpus" / "manifest.json").exists()
    for word in ("near-duplicates", "most lost to", "token_count_sum", "batches left in the epoch:"):
        assert word in said


def type_in(command: str) -> None:
    """A program in a process of its own, `refinery` in a fork."""
    words = shlex.split(command)
    assert words[0] == sys.executable
    if words[1:3] == ["-m", "refinery"]:
        ended = fork_server().run(*words[3:], folder=Path.cwd())
        assert ended.code == 0, f"{command}\n{ended.out}\n{ended.err}"
    else:
        subprocess.run(words, check=True, capture_output=True)


def test_it_runs_in_a_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With Jupyter (`make test-notebook`), as it stands."""
    client = pytest.importorskip("nbclient", reason="nbclient is not installed: make test-notebook")
    import nbformat

    folder = checkout(tmp_path)
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    client.NotebookClient(notebook, timeout=240, resources={"metadata": {"path": str(folder)}}).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    text = "".join(output.get("text", "") for output in outputs)
    assert "batches left in the epoch:" in text and "near-duplicate" in text
    assert not [output for output in outputs if output.output_type == "error"]
