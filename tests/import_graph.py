"""The import graph of the project, read from its sources: imports at the top of a file or inside a function."""

import ast
import functools
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1] / "refinery"  # the package
PACKAGES = ("loader", "transforms", "pipelines")

Graph = Mapping[str, set[str]]


def module_name(path: Path) -> str:
    """ "refinery/transforms/core/document.py" -> "refinery.transforms.core.document"."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join((ROOT.name, *(parts[:-1] if parts[-1] == "__init__" else parts)))


def source_files(package: str = "") -> list[Path]:
    """Python files of one package, or of all, sorted."""
    return sorted(path for name in ([package] if package else PACKAGES) for path in (ROOT / name).rglob("*.py"))


def rooms(package: str = "") -> list[str]:
    """Packages of one wing, or of all, by their dotted names, sorted."""
    return sorted(module_name(path) for path in source_files(package) if path.stem == "__init__")


@functools.cache
def imported(path: Path) -> frozenset[str]:
    """Dotted names that a file imports, anywhere in it: modules, and what is taken from them."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(found)


@functools.cache
def import_graph() -> dict[str, set[str]]:
    """Module -> modules of the project that it imports. A package's `__init__` is left out: it says what the package
    offers, and imports it on first use."""
    paths = {module_name(path): path for path in source_files() if path.stem != "__init__"}
    return {name: {*imported(path)} & paths.keys() - {name} for name, path in paths.items()}


def room_graph(graph: Graph, depth: int = 0) -> dict[str, set[str]]:
    """The same between folders: "refinery.transforms.core.job" -> folders that its files import.

    depth: of the folders, with all that is below them: 3 is "refinery.transforms.core"; 0: each folder for itself.
    """

    def room(name: str) -> str:
        parts = name.split(".")[:-1]
        return ".".join(parts[:depth] if depth else parts)

    found: dict[str, set[str]] = {}
    for name, needs in graph.items():
        if name.count(".") >= depth:
            found.setdefault(room(name), set()).update(room(need) for need in needs if need.count(".") >= depth)
    return {name: needs - {name} for name, needs in found.items()}


def circles(graph: Graph) -> list[list[str]]:
    """Groups of nodes that reach one another (strongly connected components of two and more), by Tarjan's algorithm."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for need in sorted(graph.get(node, ())):
            if need not in index:
                visit(need)
                low[node] = min(low[node], low[need])
            elif need in stack:
                low[node] = min(low[node], index[need])
        if low[node] == index[node]:
            group = []
            while not group or group[-1] != node:
                group.append(stack.pop())
            if len(group) > 1:
                found.append(sorted(group))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def importers(graph: Graph) -> dict[str, int]:
    """Module -> how many modules import it."""
    return {name: sum(name in needs for needs in graph.values()) for name in graph}


def crowded(folders: Iterable[Path], most: int) -> list[str]:
    """Folders with more than `most` source files, as text for a failing test."""
    counts = {folder: len([*folder.glob("*.py"), *folder.glob("*.[ch]")]) for folder in folders}
    return [f"{folder.relative_to(ROOT)}: {count} files" for folder, count in counts.items() if count > most]
