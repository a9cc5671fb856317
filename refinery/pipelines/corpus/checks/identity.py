"""Whether what `_run.json` says of a run fits together: inputs, recipe, stages, fingerprints.

A fingerprint is a hash of what decided the corpus. Where the stages and libraries here are those of the run, it is
computed again from what the run recorded: a recipe or an input that was changed later does not fit any more, even if
both files were changed alike. No file that the corpus names is opened: their digests are those that were recorded.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from refinery.loader.format.manifest import RUN
from refinery.pipelines.recipe.load_recipe import recorded_recipe
from refinery.pipelines.recipe.recipe import Recipe
from refinery.pipelines.run.fingerprint import describe_environment, describe_stages, phase_fingerprints
from refinery.transforms.core.data_text.plain_yaml import RecipeError
from refinery.transforms.core.names import PHASES


class NotRecorded(Exception):
    """The fingerprint needs something that the run has not recorded."""


def check_identity(run: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with a run's record. Says nothing of fingerprints that cannot be computed here: of other versions,
    with stages of the user's own, beside reference corpora."""
    inputs = run.get("inputs")
    if not isinstance(inputs, list) or not all(isinstance(each, dict) for each in inputs):
        yield f"{RUN}: inputs: a list of files expected"
        return
    try:
        recipe = recorded_recipe(RUN, run.get("recipe") or {})
    except (RecipeError, TypeError):  # stages of its own, or of another version
        return
    read = {each.get("source") for each in inputs}
    wanted = {source.name for source in recipe.sources if source.enabled}
    yield from (f"{RUN}: inputs: no file of source {name!r} of the recipe" for name in sorted(wanted - read))
    try:
        found = computed(recipe, run)
    except (NotRecorded, KeyError, TypeError, ValueError):
        return
    for phase, fingerprint in found.items():
        if fingerprint != run["phases"].get(phase):
            yield (
                f"{RUN}: phases.{phase} is {run['phases'].get(phase)!r}, but recipe, inputs and stages as they are "
                f"recorded make {fingerprint!r}: one of them was changed"
            )
            return  # each includes the one before it


def computed(recipe: Recipe, run: Mapping[str, Any]) -> dict[str, str]:
    """Phase -> fingerprint, from what a run has recorded. Raises NotRecorded where that does not suffice."""
    known = {
        path: digest for parts in run["stages"].values() for part in parts for path, digest in part.get("files", [])
    }

    def recorded(path: str) -> str:
        if path not in known:
            raise NotRecorded(path)
        return str(known[path])

    stages = {phase: list(describe_stages(recipe, phase, recorded)) for phase in PHASES}
    if stages != run["stages"] or describe_environment() != run["environment"]:
        raise NotRecorded("other versions")
    return phase_fingerprints(recipe, run["inputs"], recorded)
