"""The types of kept fields, settled when a run begins and kept when it goes on: part of the recipe, as if written
there. See text_fields.py."""

from collections.abc import Mapping, Sequence
from typing import Any

from refinery.loader.format.manifest import RUN, unseal
from refinery.loader.storage.store import Store
from refinery.pipelines.recipe.checks import kept_columns
from refinery.pipelines.recipe.recipe import Recipe
from refinery.pipelines.run.inputs_read.footer_types import find_types
from refinery.transforms.read.task import ReadTask


def settle_field_types(recipe: Recipe, tasks: Sequence[ReadTask], store: Store) -> Recipe:
    """The recipe with `field_types` for each source that keeps fields of Parquet and names none, if its corpus is one
    of texts. store: the prefix, whose `_run.json` has what the run settled when it began. Raises what `find_types`
    raises, and ValueError for sources that disagree."""
    if recipe.LANE.writer.counts_tokens:
        return recipe
    recorded = _recorded(store)
    found: dict[str, Any] = {}
    for source in recipe.sources:
        if source.fields and source.enabled and not source.field_types:
            mine = [task for task in tasks if task.source == source.name]
            found[source.name] = recorded.get(source.name, {}) if recorded else find_types(mine, recipe.limits)
    sources = tuple(
        source.model_copy(update={"field_types": found[source.name]}) if found.get(source.name) else source
        for source in recipe.sources
    )
    settled = recipe.model_copy(update={"sources": sources}) if any(found.values()) else recipe
    kept_columns(settled)
    return settled


def _recorded(store: Store) -> dict[str, Any]:
    """Source -> types as the run at this prefix began with; {} where none began."""
    if store.size(RUN) is None:
        return {}
    recipe = unseal(store.read(RUN), store.url(RUN)).get("recipe")
    sources = recipe.get("sources") if isinstance(recipe, Mapping) else ()
    listed = (source for source in sources or () if isinstance(source, Mapping))
    return {str(source.get("name")): source.get("field_types") or {} for source in listed}
