"""The source package that workers install where there is no image, and the digest that tells whether code is the same.

It holds pipelines/, transforms/ with its C sources, and those modules of loader/ that these import: the format and the
storage, nothing of training. This module imports no Beam: the image is built with it, too.
"""

import ast
import gzip
import hashlib
import io
import re
import sys
import tarfile
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import distribution, version
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
NAME = "refinery"
PACKAGE_FILE = f"{NAME}-{version(NAME)}.tar.gz"
WHOLE = ("pipelines", "transforms")
SOURCES = ("*.py", "*.c", "*.h")
PROVIDED = "apache-beam"  # by every worker's image, with what it needs

SETUP = '''"""Written by pipelines/worker_package.py: what workers run, and no more."""

from setuptools import Extension, setup

setup(
    name={name!r},
    version={version!r},
    python_requires={python!r},
    packages={packages!r},
    package_data={{"": ["*.c", "include/*.h", "native/include/*.h"]}},
    ext_modules=[
        Extension(
            module,
            sources=[source],
            depends={headers!r},
            include_dirs={include_dirs!r},
            extra_compile_args={compile_args!r},
        )
        for module, source in {kernels!r}
    ],
    install_requires={requires!r},
)
'''
# As in setup.py; a test holds both equal.
COMPILE_ARGS = ["-O3", "-std=c11", "-ffp-contract=off", "-Wall", "-Wextra"]
PYTHON = ">=3.11,<3.12"


def kernel_headers() -> list[Path]:
    """The headers of all kernels: those of transforms/ include those of loader/."""
    return sorted(ROOT.glob("*/native/include/*.h"))


def worker_files() -> dict[str, bytes]:
    """Name -> bytes of every source file that workers run, sorted by name."""
    files = {path for folder in WHOLE for pattern in SOURCES for path in (ROOT / folder).rglob(pattern)}
    files.update(kernel_headers())
    todo = sorted(path for path in files if path.suffix == ".py")
    while todo:
        for needed in imported(todo.pop()):
            if needed not in files:
                files.add(needed)
                todo.append(needed)
    return {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in sorted(files)}


def imported(path: Path) -> Iterator[Path]:
    """Files of loader/ that a file imports, anywhere in it. What a package hands out on demand (the imports in its own
    __init__.py) is for others."""
    if path.name == "__init__.py":
        return
    for name in imported_names(path):
        parts = name.split(".")
        if parts[0] != "loader":
            continue
        for depth in range(1, len(parts) + 1):
            place = ROOT.joinpath(*parts[:depth])
            yield from (file for file in (place / "__init__.py", place.with_suffix(".py")) if file.is_file())


def imported_names(path: Path) -> Iterator[str]:
    """Dotted names that a source file may import, anywhere in it: modules, and what is taken from them."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def package_digest() -> str:
    """SHA-256 of the names and bytes of all that workers run: equal here and there, or the code is not the same."""
    digest = hashlib.sha256()
    for name, data in worker_files().items():
        digest.update(f"{name}\0{len(data)}\0".encode() + data)
    return digest.hexdigest()


def pinned_requirements() -> list[str]:
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
    return [found[name] for name in sorted(found)]


def needs(name: str, extra: str) -> Iterator[str]:
    """Normalised names of a distribution's direct requirements, here and with that extra."""
    for line in distribution(name).requires or ():
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
            yield re.sub(r"[-_.]+", "-", requirement.name).lower()


def build_package() -> bytes:
    """The package as a .tar.gz that pip installs. The same sources give the same bytes, on any day and machine."""
    files = worker_files()
    sources = [name for name in files if name.endswith(".c")]
    headers = [name for name in files if name.endswith(".h")]
    setup = SETUP.format(
        name=NAME,
        version=version(NAME),
        python=PYTHON,
        packages=sorted({name.rpartition("/")[0].replace("/", ".") for name in files if name.endswith(".py")}),
        headers=headers,
        include_dirs=sorted({name.rpartition("/")[0] for name in headers}),
        compile_args=COMPILE_ARGS,
        kernels=[(name.removesuffix(".c").replace("/", "."), name) for name in sources],
        requires=pinned_requirements(),
    )
    info = f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {version(NAME)}\n"
    return pack({**files, "setup.py": setup.encode(), "PKG-INFO": info.encode()})


def pack(files: Mapping[str, bytes]) -> bytes:
    """A .tar.gz with one folder at its top, without times, owners or order of its own."""
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in sorted(files.items()):
            entry = tarfile.TarInfo(f"{PACKAGE_FILE.removesuffix('.tar.gz')}/{name}")
            entry.size, entry.mode = len(data), 0o644
            archive.addfile(entry, io.BytesIO(data))
    return gzip.compress(tar.getvalue(), compresslevel=9, mtime=0)


def main(folder: str) -> None:
    """Write the package into a folder: what the Dockerfile does."""
    (Path(folder) / PACKAGE_FILE).write_bytes(build_package())


if __name__ == "__main__":
    main(sys.argv[1])
