"""Settings of a recipe that decide nothing: said before a run, since who gave them expects an effect.

What has no effect follows from declarations: a class of parameters says which of its fields the others make idle
(`Params.idle`), a reader which fields of a source it reads (`Reader.fields`), a lane which stages there are.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from refinery.pipelines.recipe.recipe import Recipe
from refinery.transforms.core.params import Params, dotted
from refinery.transforms.read.registry import find_reader, readers
from refinery.transforms.read.task import ReadTask


def idle_settings(recipe: Recipe, tasks: Iterable[ReadTask] = ()) -> Iterator[str]:
    """A line for each key that differs from its default and has no effect. tasks: what the sources read, whose formats
    are known then."""
    for path, why in (*_of_sections(recipe, ()), *_of_readers(recipe, tasks), *_of_stages(recipe)):
        yield f"{dotted(path)} has no effect: {why}"


def _of_sections(value: Any, path: tuple[int | str, ...]) -> Iterator[tuple[tuple[int | str, ...], str]]:
    """What classes of parameters say, at any depth."""
    if isinstance(value, Params):
        fields = type(value).model_fields
        for name, why in value.idle():
            if getattr(value, name) != fields[name].get_default(call_default_factory=True):
                yield (*path, name), why
        for name in fields:
            yield from _of_sections(getattr(value, name), (*path, name))
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _of_sections(inner, (*path, name))
    elif isinstance(value, tuple):
        for index, inner in enumerate(value):
            yield from _of_sections(inner, (*path, index))


def _of_readers(recipe: Recipe, tasks: Iterable[ReadTask]) -> Iterator[tuple[tuple[int | str, ...], str]]:
    """Fields of a source that some readers read, and none of those that read this one."""
    formats: dict[str, set[str]] = {}
    for task in tasks:
        formats.setdefault(task.source, set()).add(task.format)
    asked = {name for reader in readers().values() for name in reader.fields}
    for index, source in enumerate(recipe.sources):
        known = sorted(formats.get(source.name, ()))
        read = {name for form in known for name in find_reader(form).fields}
        for name, field in type(source).model_fields.items():
            idle = known and name in asked - read and getattr(source, name) != field.default
            if idle:
                yield ("sources", index, name), f"the reader of {', '.join(known)} does not read it"


def _of_stages(recipe: Recipe) -> Iterator[tuple[tuple[int | str, ...], str]]:
    """Sections of deduplication where nothing of it is on."""
    fields = type(recipe).model_fields
    near = recipe.near_dup or any(recipe.near_dup_in_source.values())
    if not near and recipe.run.components != type(recipe.run).model_fields["components"].default:
        yield ("run", "components"), "near_dup is off, so there are no links"
    if not near and not recipe.exact_dup and not recipe.comparing() and recipe.rank != fields["rank"].default:
        yield ("rank",), "no deduplication is on that could prefer a copy"
