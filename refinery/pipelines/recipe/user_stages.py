"""Stages, readers and lanes from elsewhere: in a module beside the recipe, an installed package, or an entry point.

Their code decides results, so it is part of the fingerprint, and it travels to the workers: by its folder to processes
of this machine, inside the worker package to others.
"""

import ast
import hashlib
import importlib
import importlib.util
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from refinery.transforms.core.stage import Stage
from refinery.transforms.core.wording import meant
from refinery.transforms.read.reader import Reader
from refinery.transforms.read.registry import REFERENCE, readers

T = TypeVar("T")

STAGES, READERS = "refinery.stages", "refinery.readers"  # groups of entry points


@dataclass(frozen=True)
class UserCode:
    """Source files that stages, readers and lanes from elsewhere are made of: path as workers import it -> where it is.

    folder: to be put on the path of processes on this machine; "" for installed packages.
    """

    files: Mapping[str, Path]
    folder: str = ""

    def sources(self) -> dict[str, bytes]:
        """Name -> bytes of every file, as the worker package takes them."""
        return {name: path.read_bytes() for name, path in sorted(self.files.items())}

    def digest(self) -> str:
        """SHA-256 over names and bytes."""
        found = hashlib.sha256()
        for name, data in self.sources().items():
            found.update(f"{name}\0{len(data)}\0".encode() + data)
        return found.hexdigest()


NO_CODE = UserCode({})


def merge_code(parts: Sequence[UserCode]) -> UserCode:
    """The files of several."""
    files = {name: path for part in parts for name, path in part.files.items()}
    return UserCode(files, next((part.folder for part in parts if part.folder), ""))


def load_stage(use: str, folder: Path) -> tuple[Stage[Any], UserCode]:
    """The stage that `use` names, and the code that it is made of. Raises ValueError as `load_declaration` does, and
    for a stage that does not judge single documents."""
    if not REFERENCE.fullmatch(use):
        points = offered(STAGES)
        if use not in points:
            known = f"module:NAME or one of {', '.join(sorted(points))}" if points else "module:NAME"
            raise ValueError(f"use: {use!r} given, {known} is allowed")
        use = points[use]
    stage, code = load_declaration("use", use, folder, Stage)
    if stage.judge is None or stage.params is None:
        raise ValueError(f"use: {use!r} given, a stage that judges single documents is allowed")
    return replace(stage, module=use), code


def load_reader(form: str, folder: Path) -> tuple[Reader, UserCode]:
    """The reader that a source's `format` names, none of ours, and the code that it is made of.

    Raises ValueError as `load_declaration` does, and for a reader whose name is that of one of ours.
    """
    if not REFERENCE.fullmatch(form):
        points = offered(READERS)
        if form not in points:
            names = ["auto", *readers(), *sorted(points)]
            hint = meant(form, names, cutoff=0.7)
            raise ValueError(f"format: {form!r} given, one of {', '.join(names)} or module:NAME is allowed{hint}")
        form = points[form]
    reader, code = load_declaration("format", form, folder, Reader)
    if reader.name in readers():
        raise ValueError(f"format: {form!r} given, a reader {reader.name!r}: a name that no format has is allowed")
    return replace(reader, module=form), code


def offered(group: str) -> dict[str, str]:
    """What installed packages offer in a group of entry points: name -> "module:NAME"."""
    return {point.name: point.value for point in entry_points(group=group)}


def load_declaration(key: str, name: str, folder: Path, kind: type[T]) -> tuple[T, UserCode]:
    """The stage, reader or lane that `name` stands for, and the code that it is made of.

    key: of the recipe, for messages. name: "module:NAME", in a module beside the recipe or an installed package.
    Importing the module runs its code, as a recipe's own. Raises ValueError, one line, for whatever is not there or is
    no declaration of that kind.
    """
    if not REFERENCE.fullmatch(name):
        raise ValueError(f"{key}: {name!r} given, module:NAME is allowed")
    path, _, attribute = name.partition(":")
    module, local = _import(key, path, folder)
    declaration = getattr(module, attribute, None)
    if not isinstance(declaration, kind):
        found = sorted(known for known, value in vars(module).items() if isinstance(value, kind))
        hint = meant(attribute, found, "") or f"{', '.join(found) or 'none'} found there"
        what = re.sub(r"(?<=.)(?=[A-Z])", " ", kind.__name__).lower()
        raise ValueError(f"{key}: {name!r} given, the module has no declaration of a {what} by that name; {hint}")
    files = dict(_local_files(Path(str(module.__file__)), folder) if local else _package_files(module))
    return declaration, UserCode(files, str(folder) if local else "")


def _import(key: str, name: str, folder: Path) -> tuple[ModuleType, bool]:
    """The module, and whether it is one beside the recipe. Such a module must be importable by its name everywhere."""
    top = name.partition(".")[0]
    beside = [path for path in (folder / f"{top}.py", folder / top / "__init__.py") if path.is_file()]
    if beside and str(folder) not in sys.path:
        sys.path.append(str(folder))
        importlib.invalidate_caches()
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and name.startswith(error.name):
            raise ValueError(f"{key}: module {name!r} found neither in {folder} nor installed") from None
        raise ValueError(f"{key}: module {name!r} cannot be imported: {error}") from error
    except Exception as error:
        raise ValueError(f"{key}: module {name!r} cannot be imported: {type(error).__name__}: {error}") from error
    if beside and Path(str(module.__file__)).resolve().is_relative_to(folder.resolve()):
        return module, True
    if beside:
        raise ValueError(f"{key}: {beside[0]} has the name of another module, {module.__file__}: rename it")
    return module, False


def _local_files(start: Path, folder: Path) -> Iterator[tuple[str, Path]]:
    """The module's file, and those beside the recipe that it imports, by name below the folder."""
    root = folder.resolve()
    seen: set[Path] = set()
    todo = [start.resolve()]
    while todo:
        path = todo.pop()
        if path in seen:
            continue
        seen.add(path)
        yield path.relative_to(root).as_posix(), path
        package = path.parent / "__init__.py"
        if path.parent != root and package.is_file():
            todo.append(package)
        for name in _imports(path, root):
            place = root.joinpath(*name.split("."))
            todo += [found for found in (place.with_suffix(".py"), place / "__init__.py") if found.is_file()]


def _imports(path: Path, root: Path) -> Iterator[str]:
    """Dotted names that a file imports, relative ones resolved below `root`."""
    here = path.parent.relative_to(root).parts
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = [*here[: len(here) - node.level + 1]] if node.level else []
            base += (node.module or "").split(".") if node.module else []
            yield from (
                ".".join([*base, *rest]) for rest in ([], *([alias.name] for alias in node.names)) if base or rest
            )


def _package_files(module: ModuleType) -> Iterator[tuple[str, Path]]:
    """All Python files of the installed package that a module belongs to."""
    top = sys.modules[module.__name__.partition(".")[0]]
    file = Path(str(top.__file__))
    if file.name != "__init__.py":
        yield file.name, file
        return
    for path in sorted(file.parent.rglob("*.py")):
        yield path.relative_to(file.parent.parent).as_posix(), path
