"""Writers by the name that a manifest has: those of our lanes, of installed packages, and of recipes that were read.

Code that a corpus names is never imported because the corpus names it: a writer beside a recipe is known once somebody
has named that recipe.
"""

from functools import cache
from pathlib import Path

from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import Manifest
from refinery.pipelines.recipe.load_recipe import load_recipe
from refinery.pipelines.recipe.recipe import find_lane, lane_names
from refinery.pipelines.recipe.user_stages import load_declaration, offered
from refinery.transforms.core.stage import Writer
from refinery.transforms.write.rows.writer import AS_INPUT
from refinery.transforms.write.text_writers import TEXT_WRITERS

GROUP = "refinery.writers"  # of entry points

_named: dict[str, Writer] = {}  # of recipes that were named in this process


@cache
def own_writers() -> dict[str, Writer]:
    """Those of our lanes, and those of texts that a recipe may name, by name."""
    lanes = (find_lane(name).writer for name in lane_names())
    return {writer.name: writer for writer in (*TEXT_WRITERS.values(), AS_INPUT, *lanes)}


def know_writer(writer: Writer) -> None:
    """Let corpora that this writer wrote be read in this process. Raises ValueError for the name of one of ours."""
    ours = own_writers().get(writer.name)
    if ours is not None and ours != writer:
        raise ValueError(f"writer: {writer.name!r} given, a name that no writer of ours has is allowed")
    _named[writer.name] = writer


def know_writer_of(recipe: str) -> None:
    """The same with the writer of a recipe's lane. recipe: its file; "" for none. Raises RecipeError."""
    if recipe:
        know_writer(load_recipe(recipe).LANE.writer)


def find_writer(manifest: Manifest, given: Writer | None = None) -> Writer:
    """The writer of a corpus. given: one that the caller has, which is used if it has the name. Raises FormatError,
    saying what to do, for one that is not known here, and for one that writes other files now than the manifest states.
    """
    name = manifest.written.writer
    own = given if given is not None and given.name == name else None
    writer = own_writers().get(name) or own or _named.get(name) or _installed(name)
    if writer is None:
        raise FormatError(
            f"manifest.json of {manifest.name!r:.100}: its writer is {name!r:.80}, which is not known here; name the "
            "recipe's file with --recipe, or install the package that offers it"
        )
    if not manifest.has_tokens and (stated := manifest.written.own) != tuple(writer.files.items()):
        raise FormatError(
            f"manifest.json of {manifest.name!r:.100}: files {stated!r:.200} found, "
            f"{tuple(writer.files.items())!r:.200} expected of the writer {name!r}"
        )
    return writer


def _installed(name: str) -> Writer | None:
    references = offered(GROUP)
    broken = ""
    for reference in sorted(references.values(), key=lambda each: each != references.get(name)):
        try:
            declared, _ = load_declaration("writer", reference, Path.cwd(), Writer)
        except ValueError as error:  # another one's fault, perhaps
            broken = broken or str(error)
            continue
        if declared.name == name:
            return declared
    if broken:
        raise FormatError(f"writer {name!r:.80}: not found, and an installed writer cannot be loaded: {broken}")
    return None
