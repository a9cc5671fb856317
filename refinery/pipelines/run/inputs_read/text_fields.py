"""The fields of the text that a run found by itself, settled when it begins and kept when it goes on.

What is found becomes part of the recipe, as if it had been written there: so fingerprints, tasks and the manifest have
it. `_run.json` says under KEY which fields were found, and the same run does not look again.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from refinery.loader.format.manifest import RUN, unseal
from refinery.loader.storage.store import Store
from refinery.pipelines.recipe.recipe import Recipe
from refinery.pipelines.run.inputs_read.field_types import settle_field_types
from refinery.transforms.read.task import ReadTask
from refinery.transforms.read.text_fields import choose_text_fields, default_field, field_line, with_text_fields

KEY = "text_fields"  # of _run.json: source -> field


def settle_text_fields(
    recipe: Recipe, tasks: Sequence[ReadTask], store: Store, say: Callable[[str], None]
) -> tuple[Recipe, list[ReadTask], dict[str, str]]:
    """Recipe and tasks with the fields that were found, and these by source; the recipe has the types of kept fields,
    too. store: the prefix, which says what the run settled when it began. Raises what `choose_text_fields` and
    `settle_field_types` raise."""
    known = settled_before(recipe, store)
    found = choose_text_fields(recipe.sources, tasks, recipe.limits, known)
    for source, field in found.items():
        say(f"source {source}: {field_line(field)}")
    tasks = with_text_fields(tasks, found)
    return settle_field_types(with_found(recipe, found), tasks, store), tasks, found


def with_found(recipe: Recipe, found: Mapping[str, str]) -> Recipe:
    """The recipe as if it named these fields."""
    if not found:
        return recipe
    sources = tuple(
        source.model_copy(update={"text_field": found[source.name]}) if source.name in found else source
        for source in recipe.sources
    )
    return recipe.model_copy(update={"sources": sources})


def settled_before(recipe: Recipe, store: Store) -> dict[str, str]:
    """Source -> field, of the sources that name none, as the run at this prefix began with; {} where none began.

    A field that the run's recipe named, and this one no longer names, is not among them: it is looked for again.
    """
    if store.size(RUN) is None:
        return {}
    run = unseal(store.read(RUN), store.url(RUN))
    found = _mapping(run.get(KEY))
    sources = _mapping(run.get("recipe")).get("sources")
    listed = [source for source in sources if isinstance(source, Mapping)] if isinstance(sources, list) else []
    recorded = {str(source.get("name")): source.get("text_field") for source in listed}
    settled = {}
    for source in recipe.sources:
        default, field = default_field(source), found.get(source.name)
        if isinstance(field, str) and field in source.TEXT_FIELDS and field == recorded.get(source.name):
            settled[source.name] = field
        elif field is None and recorded.get(source.name) == default:
            settled[source.name] = default
    return settled


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
