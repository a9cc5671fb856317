"""The source package that workers install where there is no image, and the digest that tells whether code is the same.

It holds pipelines/, transforms/ with its C sources, those modules of loader/ that these import (the format and the
storage, nothing of training), and modules of the user's own. This module imports no Beam: the image is built with it,
too.
"""

import ast
import gzip
import hashlib
import io
import re
import sys
import tarfile
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from importlib.metadata import distribution, version
from pathlib import Path, PurePosixPath
from types import MappingProxyType

from packaging.requirements import Requirement

import refinery
from refinery import DISTRIBUTION

ROOT = Path(refinery.__file__).parents[1]
NAME = DISTRIBUTION
PACKAGE_FILE = f"{NAME}-{version(NAME)}.tar.gz"
WHOLE = ("refinery/pipelines", "refinery/transforms")
ROOTS = "refinery/offers.py"  # how these and refinery/loader hand out names
# The command line itself, and what it reads as a training node does.
LAUNCHER = (
    "refinery/pipelines/corpus/checks/against.py",
    "refinery/pipelines/cli/",
    "refinery/pipelines/published/view.py",
    "refinery/pipelines/corpus/export/distribution.py",
    "refinery/pipelines/corpus/mix/",
)
SOURCES = ("*.py", "*.c", "*.h", "*.npy")
HEADERS = "refinery/loader"  # what its kernels and those of transforms/ share
PROVIDED = "apache-beam"  # by every worker's image, with what it needs
TAKEN = {"refinery", "setup"}  # at the top of the package: no module of a user can have these names
NOTHING: Mapping[str, bytes] = MappingProxyType({})

SETUP = '''"""Written by pipelines/runners/dataflow/worker_package.py: what workers run, and no more."""

from setuptools import Extension, setup

setup(
    name={name!r},
    version={version!r},
    python_requires={python!r},
    packages={packages!r},
    py_modules={modules!r},
    package_data={{"": ["**/*.c", "**/*.h", "**/*.npy"]}},
    ext_modules=[
        Extension(
            module, sources=[source], depends={headers!r}, include_dirs={folders!r}, extra_compile_args={compile_args!r}
        )
        for module, source in {kernels!r}
    ],
    install_requires={requires!r},
)
'''
# As in setup.py; a test holds both equal.
COMPILE_ARGS = ["-O3", "-std=c11", "-ffp-contract=off", "-Wall", "-Wextra"]
PYTHON = ">=3.11,<3.14"


def worker_files(extra: Mapping[str, bytes] = NOTHING) -> dict[str, bytes]:
    """Name -> bytes of every source file that workers run, sorted by name.

    extra: the user's own modules by their place at the top of the package: "my_filters.py", or "my_filters/__init__.py"
    and the rest of that package. What they import of loader/ is added, as for our own files.
    Raises ValueError, one line, for a name that Python could not import from there or that is taken.
    """
    check_names(extra)
    paths = {path for folder in WHOLE for pattern in SOURCES for path in (ROOT / folder).rglob(pattern)}
    paths.update((ROOT / HEADERS).rglob("*.h"))
    paths.add(ROOT / ROOTS)
    files = {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in paths} | dict(extra)
    for name in [name for name in files if name.startswith(LAUNCHER)]:
        del files[name]  # a worker has none of them
    todo = sorted(name for name in files if name.endswith(".py"))
    while todo:
        name = todo.pop()
        for path in imported(name, files[name]):
            needed = path.relative_to(ROOT).as_posix()
            if needed not in files:
                files[needed] = path.read_bytes()
                todo += [needed] if needed.endswith(".py") else []
    return dict(sorted(files.items()))


def check_names(extra: Mapping[str, bytes]) -> None:
    """Raises ValueError unless every name is the place of a module or of a package's file, and none is taken."""
    for name in extra:
        place = PurePosixPath(name)
        parts = place.with_suffix("").parts
        if place.suffix != ".py" or place.as_posix() != name or not all(part.isidentifier() for part in parts):
            raise ValueError(f"{name!r}: a module for workers is named like filters.py or filters/digits.py")
        if parts[0] in TAKEN or parts[0] in sys.stdlib_module_names:
            raise ValueError(f"{name!r}: {parts[0]} is another module's name; rename yours")
        for folder in place.parents[:-1]:
            if f"{folder}/__init__.py" not in extra:
                raise ValueError(f"{name!r}: {folder}/__init__.py is missing, so {folder} is not a package")
            if f"{folder}.py" in extra:
                raise ValueError(f"{name!r}: {folder}.py is there, too; Python imports one of them")


def imported(name: str, source: bytes) -> Iterator[Path]:
    """Files of loader/ that a file imports, anywhere in it; of a kernel its C source. What a package of ours hands out
    on demand (the imports in its own __init__.py) is for others."""
    own = name.startswith("refinery/")
    if own and (name.endswith("/__init__.py") or b"loader" not in source):
        return
    for needed in names_in(source):
        if needed.startswith("refinery.loader"):
            yield from files_of(needed)


@lru_cache(4096)
def files_of(name: str) -> tuple[Path, ...]:
    """The files there are of a dotted name, and of the packages that it is in."""
    parts = name.split(".")
    places = [ROOT.joinpath(*parts[:depth]) for depth in range(1, len(parts) + 1)]
    kinds = [(place / "__init__.py", place.with_suffix(".py"), place.with_suffix(".c")) for place in places]
    return tuple(file for files in kinds for file in files if file.is_file())


@lru_cache(1024)
def names_in(source: bytes) -> tuple[str, ...]:
    """Dotted names that a source file's bytes may import, anywhere in it: modules, and what is taken from them. Raises
    SyntaxError where they are not Python. Cost: some milliseconds for a file; a launch asks several times for each."""
    found: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += (node.module, *(f"{node.module}.{alias.name}" for alias in node.names))
    return tuple(found)


def package_digest(extra: Mapping[str, bytes] = NOTHING) -> str:
    """SHA-256 of the names and bytes of all that workers run: equal here and there, or the code is not the same.

    extra: the user's own modules, as in `worker_files`.
    """
    return files_digest(worker_files(extra)) if extra else own_digest()


@cache
def own_digest() -> str:
    """`package_digest` without modules of the user's own, as the files are at the first call."""
    return files_digest(worker_files())


def files_digest(files: Mapping[str, bytes]) -> str:
    """SHA-256 of names and bytes, in the order given."""
    digest = hashlib.sha256()
    for name, data in files.items():
        digest.update(f"{name}\0{len(data)}\0".encode() + data)
    return digest.hexdigest()


@cache
def pinned_requirements() -> tuple[str, ...]:
    """name==version of what the pipeline needs and a worker with Beam may lack, in the versions of this process.

    Beam itself and what only Beam needs stay as they are on the worker. Workers must have the versions of the launcher:
    they are part of a run's fingerprint.
    """
    found: dict[str, str] = {}
    todo = [need for need in needs(NAME, "pipeline") if need != PROVIDED]
    while todo:
        name = todo.pop()
        if name not in found:
            found[name] = f"{name}=={version(name)}"
            todo += needs(name, "")
    return tuple(found[name] for name in sorted(found))


def needs(name: str, extra: str) -> Iterator[str]:
    """Normalised names of a distribution's direct requirements, here and with that extra."""
    for line in distribution(name).requires or ():
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
            yield re.sub(r"[-_.]+", "-", requirement.name).lower()


def build_package(extra: Mapping[str, bytes] = NOTHING) -> bytes:
    """The package as a .tar.gz that pip installs. The same sources give the same bytes, on any day and machine.

    extra: the user's own modules, as in `worker_files`; they are installed at the top level, where their name finds
    them.
    """
    files = worker_files(extra)
    python = [name for name in files if name.endswith(".py")]
    headers = [name for name in files if name.endswith(".h")]
    setup = SETUP.format(
        name=NAME,
        version=version(NAME),
        python=PYTHON,
        packages=sorted({dotted(name.rpartition("/")[0]) for name in python if "/" in name}),
        modules=[dotted(name) for name in python if "/" not in name],
        headers=headers,
        folders=sorted({name.rpartition("/")[0] for name in headers}),
        compile_args=COMPILE_ARGS,
        kernels=[(dotted(name), name) for name in files if name.endswith(".c")],
        requires=[*pinned_requirements()],
    )
    info = f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {version(NAME)}\n"
    return pack({**files, "setup.py": setup.encode(), "PKG-INFO": info.encode()})


def dotted(name: str) -> str:
    """ "refinery/transforms/native/bpe.c" -> "refinery.transforms.native.bpe"."""
    return PurePosixPath(name).with_suffix("").as_posix().replace("/", ".")


def pack(files: Mapping[str, bytes]) -> bytes:
    """A .tar.gz with one folder at its top, without times, owners or order of its own."""
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in sorted(files.items()):
            entry = tarfile.TarInfo(f"{PACKAGE_FILE.removesuffix('.tar.gz')}/{name}")
            entry.size, entry.mode = len(data), 0o644
            archive.addfile(entry, io.BytesIO(data))
    packed = gzip.compress(tar.getvalue(), compresslevel=6, mtime=0)
    return packed[:9] + b"\x03" + packed[10:]  # the operating system, which Python leaves open from 3.13 on


def main(folder: str) -> None:
    """Write the package into a folder: what the Dockerfile does."""
    (Path(folder) / PACKAGE_FILE).write_bytes(build_package())


if __name__ == "__main__":
    main(sys.argv[1])
