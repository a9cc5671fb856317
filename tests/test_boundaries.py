"""Who may import whom: training nodes never load Beam, workers never load torch, nothing imports against the stream."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BEFORE = {"loader": {"transforms", "pipelines"}, "transforms": {"pipelines"}, "pipelines": set()}


def modules(folder: str) -> list[str]:
    return sorted(
        f"{folder}.{path.stem}" for path in (ROOT / folder).glob("*.py") if path.stem not in ("__init__", "__main__")
    )


def loaded_by(names: list[str]) -> set[str]:
    script = f"import sys\nfor name in {names!r}: __import__(name)\nprint(*{{m.split('.')[0] for m in sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_loader_needs_neither_beam_nor_torch() -> None:
    names = [name for name in modules("loader") if name != "loader.torch_adapter"]
    assert not loaded_by(names) & {"apache_beam", "torch", "transforms", "pipelines", "tokenizers", "fasttext"}


def test_workers_never_load_torch() -> None:
    assert "torch" not in loaded_by(modules("transforms") + modules("pipelines"))


@pytest.mark.parametrize("folder", BEFORE)
def test_imports_go_one_way(folder: str) -> None:
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                assert name.split(".")[0] not in BEFORE[folder], f"{path.relative_to(ROOT)} imports {name}"


def test_extras_keep_torch_and_beam_apart() -> None:
    tree = ast.parse((ROOT / "setup.py").read_bytes())
    lists = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in tree.body  # type: ignore[attr-defined]
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.List)
    }
    assert not [need for need in lists["LOADER"] if "beam" in need or "torch" in need]
    assert not [need for need in lists["PIPELINE"] if "torch" in need]
    assert not [line for line in (ROOT / "requirements.txt").read_text().splitlines() if line.startswith("torch")]


def test_beam_modules_keep_their_type_hints() -> None:
    """`from __future__ import annotations` silently turns Beam's type-hint checks off."""
    for path in (ROOT / "transforms").glob("*.py"):
        text = path.read_text()
        assert "apache_beam" not in text or "\nfrom __future__ import annotations" not in text, path.name
