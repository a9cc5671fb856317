"""The notebooks of examples/: without outputs, and their cells run; in a real Jupyter kernel where there is one."""

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

TOUR, DEDUP = (ROOT / "examples" / name for name in ("tour.ipynb", "dedup.ipynb"))
# What their cells print, among other things.
SAID = {
    TOUR: ("near-duplicates", "most lost to", "token_count_sum", "batches left in the epoch:"),
    DEDUP: ("300 of 340 rows stay", "'near-duplicate'", "report-", "'stays': 300", "'copies': 0"),
}


def cells(notebook: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(notebook.read_text())["cells"]
    return found


def test_every_notebook_is_tested() -> None:
    assert {*SAID} == {*(ROOT / "examples").glob("*.ipynb")}


@pytest.mark.parametrize("notebook", SAID, ids=lambda path: path.stem)
def test_it_has_no_outputs(notebook: Path) -> None:
    """They would change with every run, and may hold anything."""
    found = cells(notebook)
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in found if "outputs" in cell)
    assert all(not cell["metadata"] for cell in found)
    assert len({cell["id"] for cell in found}) == len(found)
    text = json.dumps(json.loads(notebook.read_text()), indent=1, ensure_ascii=False)
    assert notebook.read_text() == f"{text}\n"


def checkout(folder: Path) -> Path:
    """A folder that looks like a checkout; the notebook begins in its examples/."""
    (folder / "recipes").symlink_to(ROOT / "recipes")
    (folder / "examples").mkdir()
    return folder / "examples"


@one_commit_in_four
def test_its_cells_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A run of the funnel takes some seconds."""
    run_cells(TOUR, tmp_path, monkeypatch)
    assert (tmp_path / "out" / "tour" / "corpus" / "manifest.json").exists()
    said = capsys.readouterr().out
    assert [word for word in SAID[TOUR] if word not in said] == []


def test_the_cells_of_one_step_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With progress, on standard error."""
    run_cells(DEDUP, tmp_path, monkeypatch)
    said = capsys.readouterr()
    assert [word for word in SAID[DEDUP] if word not in said.out] == []
    assert "2/3 dedup  100 %" in said.err and (tmp_path / "out" / "steps" / "unique.refinery" / "report.html").exists()


def run_cells(notebook: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Jupyter: commands behind "!" in forks, everything else as it stands, in one namespace; fewer pages."""
    monkeypatch.chdir(checkout(folder))
    names: dict[str, Any] = {"__name__": "__main__"}
    for source in ("".join(cell["source"]) for cell in cells(notebook) if cell["cell_type"] == "code"):
        for block in re.split(r"^(!.*)$", source.replace("--pages 300", "--pages 100"), flags=re.MULTILINE):
            if block.startswith("!"):
                type_in(re.sub(r"\{([\w.]+)\}", lambda found: str(eval(found[1], names)), block[1:]))  # noqa: S307
            else:
                exec(compile(block, notebook.name, "exec"), names)  # noqa: S102 - our own


def type_in(command: str) -> None:
    """A program in a process of its own, `refinery` in a fork."""
    words = shlex.split(command)
    assert words[0] == sys.executable
    if words[1:3] == ["-m", "refinery"]:
        ended = fork_server().run(*words[3:], folder=Path.cwd())
        assert ended.code == 0, f"{command}\n{ended.out}\n{ended.err}"
    else:
        subprocess.run(words, check=True, capture_output=True)


@pytest.mark.parametrize("path", SAID, ids=lambda path: path.stem)
def test_it_runs_in_a_kernel(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With Jupyter (`make test-notebook`), as it stands."""
    client = pytest.importorskip("nbclient", reason="nbclient is not installed: make test-notebook")
    import nbformat

    folder = checkout(tmp_path)
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))))
    notebook = nbformat.read(path, as_version=4)
    client.NotebookClient(notebook, timeout=240, resources={"metadata": {"path": str(folder)}}).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    text = "".join(output.get("text", "") for output in outputs)
    assert [word for word in SAID[path] if word not in text] == []
    assert not [output for output in outputs if output.output_type == "error"]
