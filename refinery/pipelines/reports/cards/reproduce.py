"""How a corpus is made again: command, recipe, inputs, versions, models."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from refinery.loader.format.manifest import MANIFEST, RUN
from refinery.loader.format.provenance import ADOPTED
from refinery.pipelines.reports.cards.facts import CardFacts
from refinery.pipelines.reports.cards.markdown import code, fenced, table
from refinery.pipelines.reports.cards.tables import inputs_table, recipe_block

FILE_NAME = re.compile(r"[^a-z0-9._-]+")


def reproduce(facts: CardFacts) -> Iterator[str]:
    """The section, with an empty line behind it."""
    manifest = facts.manifest
    yield "## How to make it again"
    yield ""
    if manifest.lane == ADOPTED:
        yield from ("It was adopted from files of another tool, so it cannot be made again.", "")
        return
    name = recipe_name(manifest.name)
    program = [f"refinery refine {name} --output out", "refinery verify out"]
    yield (
        f"Save the recipe below as {code(name)} where its input files are found under the names that are listed, "
        "install the versions that are listed, and run"
    )
    yield ""
    yield from fenced("\n".join(program), "sh")
    yield (
        f"Same inputs, recipe and versions give the same bytes: every checksum in {MANIFEST} must be the same. "
        "The recipe is complete, including defaults."
    )
    yield ""
    yield from recipe_block(manifest.recipe)
    if facts.inputs:
        yield "### Inputs"
        yield ""
        yield from inputs_table(facts.inputs)
    yield "### Versions and models"
    yield ""
    yield from table(("what", "version or SHA-256"), ((code(what), code(which)) for what, which in versions(facts)))
    yield f"Fingerprint of the run: {code(manifest.fingerprint)}. {RUN} has libraries and models by stage."
    yield ""


def recipe_name(name: str) -> str:
    """A file's name for the recipe of a corpus."""
    return f"{FILE_NAME.sub('-', name.lower()).strip('-.')[:60] or 'recipe'}.yaml"


def versions(facts: CardFacts) -> Iterator[tuple[str, str]]:
    """(what, version or digest) of all that decided the corpus, by name."""
    yield from sorted((str(what), str(which)) for what, which in facts.manifest.versions.items())
    environment = facts.run.get("environment")
    yield from sorted(environment.items()) if isinstance(environment, Mapping) else ()
    yield from sorted(libraries(facts).items())
    yield from sorted(models(facts).items())


def recorded_stages(facts: CardFacts) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(phase, entry) of every stage and sink that `_run.json` has."""
    phases = facts.run.get("stages")
    for phase, entries in phases.items() if isinstance(phases, Mapping) else ():
        yield from ((phase, entry) for entry in entries if isinstance(entry, Mapping))


def libraries(facts: CardFacts) -> dict[str, str]:
    """Distribution -> version, of those that decide the result of a stage."""
    return {
        str(name): str(version)
        for _, entry in recorded_stages(facts)
        for name, version in dict(entry.get("libraries") or {}).items()
    }


def models(facts: CardFacts) -> dict[str, str]:
    """File that a stage reads (a model, a list, the tokenizer) -> its SHA-256."""
    return {str(path): str(digest) for _, entry in recorded_stages(facts) for path, digest in entry.get("files") or ()}
