"""What a phase's result depends on, as one hash: its stages by meaning, their parameters and files, inputs, libraries.

Identity is meaning: the ordered stages with their versions, parameters, the content of their files, the libraries and
kernel schemes that decide their results. Comments, messages and storage code are not part of it; golden outputs in the
tests tie every stage to its version. The code of a user's own stages counts byte by byte.
"""

import functools
import os
import sys
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from typing import Any

import google_crc32c

from refinery.loader.format.manifest import MANIFEST
from refinery.pipelines.recipe.params import fingerprint
from refinery.pipelines.recipe.recipe import UNDECIDING_OF_SOURCES, Recipe, shared_stages
from refinery.pipelines.run.inputs_read.published import HASHED_BYTES
from refinery.transforms.core.data_text.plain_yaml import RecipeError
from refinery.transforms.core.names import PHASES
from refinery.transforms.core.resources import resource_digest
from refinery.transforms.core.stage import Sink, Stage
from refinery.transforms.dedup.cutting_pass import ComparingStage
from refinery.transforms.read.sources import READ, ReadTask

SAMPLES = 64
AT_ONCE = 16  # files that are hashed, in threads

installed = functools.cache(version)  # of a library; a process does not see another one


def describe_part(part: Stage[Any] | Sink) -> dict[str, Any]:
    """A stage, or what ends a phase, as far as its declaration decides results."""
    return {
        "name": part.name,
        "version": part.version,
        "schemes": list(part.schemes),
        "libraries": {name: installed(name) for name in sorted(part.libraries)},
    }


def describe_stages(recipe: Recipe, phase: str, digest: Callable[[str], str] | None = None) -> Iterator[dict[str, Any]]:
    """The parts of a phase in order: every stage that is on, and what ends the phase. digest: of a file by its name,
    `file_digest` without one."""
    digest = digest or file_digest
    for stage, params in recipe.active(phase):
        entry = describe_part(stage)
        if files := list(stage.files(params)):
            entry["files"] = [[path, digest(path)] for path in files]
        if stage.module:
            entry["code"] = recipe.CODE.digest()
        if stage.name == READ.name and (chosen := list(describe_readers(recipe))):
            entry["readers"] = chosen
        yield entry
    sink = recipe.LANE.sink(phase)
    if sink is not None:
        yield describe_part(sink)


def describe_readers(recipe: Recipe) -> Iterator[dict[str, Any]]:
    """The readers that the recipe may use, as far as the stage `read` does not stand for them: those of the user's own,
    and ours whose version is no longer the first one."""
    for reader in recipe.readers():
        entry = {"name": reader.module or reader.name, "version": reader.version}
        if reader.module:
            libraries = {name: installed(name) for name in sorted(reader.libraries)}
            yield {**entry, "libraries": libraries, "code": recipe.CODE.digest()}
        elif reader.version > 1:
            yield entry


def describe_phase(recipe: Recipe, phase: str, digest: Callable[[str], str] | None = None) -> dict[str, Any]:
    """Everything but the phases before it that decides a phase's result, as plain data. digest: as of the stages."""
    plain = recipe.told()
    sections = {name: plain[name] for name in recipe.LANE.sections(phase) if name in plain}
    if "sources" in sections:  # how much of them the corpus holds is decided in phase 3
        later = ("target", *UNDECIDING_OF_SOURCES)
        sections["sources"] = [{k: v for k, v in source.items() if k not in later} for source in sections["sources"]]
    if recipe.LANE.module:  # a lane of the user's own: which stages there are is said by its code, too
        sections["lane"] = {"name": recipe.LANE.module, "code": recipe.CODE.digest()}
    if sections.get("packed", True) is None:  # left out where it is off, as in runs before there was such a section
        del sections["packed"]
    if phase == "shards" and (targets := recipe.targets()):
        sections["targets"] = targets
    if phase == "clean":  # it hashes lines or not; which of them are cut is decided later
        sections |= describe_hashes(recipe)
    if phase == "dedup":
        sections |= {stage.key: plain[stage.key] for stage in shared_stages() if stage.by_place}
        for stage, params in recipe.cutting():
            sections.setdefault(stage.key, params.plain())
            if stage.module:
                sections[f"find_{stage.key}"] = {"name": stage.module, "code": recipe.CODE.digest()}
    corpora = [f"{corpus.prefix.rstrip('/')}/{MANIFEST}" for corpus in recipe.reference_corpora]
    return {
        "stages": list(describe_stages(recipe, phase, digest)),
        "recipe": sections,
        "files": [[path, (digest or file_digest)(path)] for path in corpora if phase == "dedup"],
        **describe_environment(),
    }


def describe_hashes(recipe: Recipe) -> dict[str, Any]:
    """What phase 1 hashes for phase 2, each under `hash_NAME`; of a user's own stage by its code."""
    everywhere = [stage.hashed for stage in shared_stages() if isinstance(stage, ComparingStage)]
    found: dict[str, Any] = {f"hash_{hashed.name}": False for hashed in everywhere if hashed.told_off}
    for stage, _ in recipe.comparing():
        own = {"name": stage.module, "code": recipe.CODE.digest()} if stage.module else None
        found[f"hash_{stage.hashed.name}"] = own or stage.hashed.told(bool(recipe.signature.key))
    return found


def describe_environment() -> dict[str, str]:
    """What of the interpreter decides results: its version, and that of its Unicode tables."""
    return {"python": "{}.{}".format(*sys.version_info[:2]), "unicode": unicodedata.unidata_version}


def cleaning_fingerprint(recipe: Recipe, digest: Callable[[str], str] | None = None) -> str:
    """What phase 1 makes of a file that a ReadTask describes: its fingerprint without sources and inputs. digest: as
    `describe_stages`."""
    described = describe_phase(recipe, "clean", digest)
    sections = {name: section for name, section in described["recipe"].items() if name != "sources"}
    return fingerprint({**described, "recipe": sections})


def phase_fingerprints(
    recipe: Recipe, inputs: Sequence[dict[str, Any]], digest: Callable[[str], str] | None = None
) -> dict[str, str]:
    """Phase name -> fingerprint; each includes the one before it, so an equal fingerprint means an equal result.
    digest: as `describe_stages`."""
    found: dict[str, str] = {}
    before: Any = list(inputs)
    for phase in PHASES:
        before = found[phase] = fingerprint({"before": before, **describe_phase(recipe, phase, digest)})
    return found


def file_digest(path: str) -> str:
    """sha256 of a file that a recipe names, local, gs:// or s3://. Raises RecipeError when it cannot be read."""
    try:
        return resource_digest(path)
    except OSError as error:
        is_relative = "://" not in path and not os.path.isabs(path)
        hint = "; relative paths start at the current folder" if is_relative else ""
        raise RecipeError(f"{path}: cannot be read: {error.strerror or error}{hint}") from error


def input_digest(path: str, size: int) -> str:
    """A content hash of a local input by crc32c: of the whole file, or of 64 evenly spread MiB of a larger one."""
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


def describe_inputs(tasks: Sequence[ReadTask]) -> list[dict[str, Any]]:
    """One entry per source and file: source, path, size in bytes, content hash. The hash is the CRC-32C or version that
    storage gave while the run was planned; for local files `input_digest`."""
    files = sorted({(task.source, task.path, task.size, task.crc32c or task.version) for task in tasks})

    def describe(file: tuple[str, str, int, str]) -> dict[str, Any]:
        source, path, size, known = file
        return {"source": source, "path": path, "size": size, "digest": known or input_digest(path, size)}

    with ThreadPoolExecutor(AT_ONCE) as pool:  # a disk that many machines share answers many at once
        return list(pool.map(describe, files))
