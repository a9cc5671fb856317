"""The shape of the tree: who may import whom, no circles, nothing that everything depends on, no crowded folder."""

import ast
import re
import subprocess
import sys
from collections import Counter

import pytest

from tests.import_graph import (
    PACKAGES,
    ROOT,
    circles,
    crowded,
    import_graph,
    imported,
    importers,
    module_name,
    room_graph,
    rooms,
    source_files,
)

BEFORE = {"loader": {"transforms", "pipelines"}, "transforms": {"pipelines"}, "pipelines": set()}
MOST_ROOMS = 12  # of a wing, or in a room
MOST_FILES = 24  # in one room
CLI = "refinery.pipelines.cli"
LISTS = {"pipelines/cli"}  # folders of one file for each thing that people list: commands
MOST_IMPORTERS = 1 / 3  # of the tree


def modules(package: str) -> list[str]:
    return [module_name(path) for path in source_files(package) if path.stem != "__init__"]


def loaded_by(names: list[str]) -> set[str]:
    """Modules that a new interpreter has after importing these: "refinery.transforms", and the roots of all others."""
    script = (
        f"import sys\nfor name in {names!r}: __import__(name)\n"
        "for m in sys.modules: print('.'.join(m.split('.')[:2]) if m.startswith('refinery.') else m.split('.')[0])"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_loader_needs_neither_beam_nor_torch() -> None:
    names = [name for name in modules("loader") if not name.startswith("refinery.loader.torch.")]
    foreign = {"apache_beam", "torch", "refinery.transforms", "refinery.pipelines", "tokenizers", "fasttext"}
    assert not loaded_by(names) & foreign


def test_workers_never_load_torch() -> None:
    assert "torch" not in loaded_by(modules("transforms") + modules("pipelines"))


def test_workers_never_load_what_draws_bars_nor_does_a_command_before_it_draws() -> None:
    modules = ("refinery.pipelines.runners.worker", "refinery.pipelines.cli.command_line")
    assert not loaded_by([*modules]) & {"rich", "pygments", "markdown_it"}


@pytest.mark.parametrize("package", PACKAGES)
def test_imports_go_one_way(package: str) -> None:
    for path in source_files(package):
        for name in imported(path):
            parts = name.split(".")
            assert parts[0] not in PACKAGES, f"{path}: {name} without refinery."
            assert parts[0] != "refinery" or not set(parts[1:2]) & BEFORE[package], f"{path} imports {name}"


def test_no_file_imports_in_a_circle() -> None:
    assert circles(import_graph()) == []


@pytest.mark.parametrize("depth", [2, 3, 4, 0])
def test_no_rooms_import_in_a_circle(depth: int) -> None:
    """Not wings, nor their rooms with all that is in them, nor rooms in those, nor each folder for itself."""
    assert circles(room_graph(import_graph(), depth)) == []


def test_no_wing_or_room_has_too_many_rooms() -> None:
    inside = Counter(name.rpartition(".")[0] for name in rooms())
    assert {name: count for name, count in inside.items() if count > MOST_ROOMS} == {}


def test_every_room_says_what_it_holds() -> None:
    paths = [path for path in source_files() if path.stem == "__init__"]
    said = {path: ast.get_docstring(ast.parse(path.read_bytes())) or "" for path in paths}
    assert [str(path) for path, text in said.items() if not text] == []
    named = [(path, name) for path, text in said.items() for name in re.findall(r"(?<![*\w/])[\w/.]+\.py\b", text)]
    assert [
        name for path, name in named if not any((at / name).is_file() for at in (path.parent, path.parent.parent, ROOT))
    ] == []


def test_nothing_is_imported_by_more_than_a_third_of_the_tree() -> None:
    most = MOST_IMPORTERS * len(import_graph())
    assert {name: count for name, count in importers(import_graph()).items() if count > most} == {}


def test_no_room_imports_the_command_line() -> None:
    """It stands above all of them."""
    below = {name: needs for name, needs in import_graph().items() if not name.startswith(CLI)}
    assert [name for name, needs in below.items() if any(need.startswith(CLI) for need in needs)] == []


def test_a_commands_file_imports_nothing_heavy_at_its_top() -> None:
    """Its other imports are in `run`: `refinery --help` reads all files."""
    light = (
        "refinery.pipelines.shell.",
        "refinery.pipelines.progress.",
        CLI,
        "refinery.transforms.core.live",
        "refinery.transforms.core.wording",
    )
    files = [path for path in source_files("pipelines") if module_name(path).startswith(CLI)]
    for path in files:
        top = [node for node in ast.parse(path.read_bytes()).body if isinstance(node, ast.Import | ast.ImportFrom)]
        for node in top:
            name = node.names[0].name if isinstance(node, ast.Import) else str(node.module)
            assert name.startswith(light) or name == "refinery" or name.partition(".")[0] in sys.stdlib_module_names, (
                f"{path}: {name}"
            )


def test_no_folder_is_crowded() -> None:
    folders = {path.parent for path in source_files()} - {ROOT / name for name in LISTS}
    assert crowded(sorted(folders), MOST_FILES) == []


def test_no_module_has_the_name_of_one_of_pythons_own() -> None:
    """`tokenize` is a folder, reached as refinery.transforms.tokenize alone; the modules of lanes
    and commands have the names that people write."""
    names = {path.stem for path in source_files() if path.parent.name not in ("lanes", "cli")}
    assert names & sys.stdlib_module_names == {"__init__"} & names - {"__init__"}


def test_circles_are_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]
    assert circles({"a": {"b"}, "b": set()}) == []


def test_extras_keep_torch_and_beam_apart() -> None:
    tree = ast.parse((ROOT.parent / "setup.py").read_bytes())
    lists = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in tree.body  # type: ignore[attr-defined]
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.List)
    }
    assert not [need for need in lists["LOADER"] if "beam" in need or "torch" in need]
    assert not [need for need in lists["PIPELINE"] if "torch" in need]
    assert not [
        line for line in (ROOT.parent / "requirements.txt").read_text().splitlines() if line.startswith("torch")
    ]


def test_beam_modules_keep_their_type_hints() -> None:
    """`from __future__ import annotations` silently turns Beam's type-hint checks off."""
    for path in source_files("transforms") + source_files("pipelines"):
        text = path.read_text()
        assert "apache_beam" not in text or "\nfrom __future__ import annotations" not in text, path.name
