"""The JSON schema of a lane's recipes, for completion and warnings in editors."""

import json
from typing import Any

from refinery.pipelines.recipe.descriptions import descriptions
from refinery.pipelines.recipe.quantities.quantity import BYTES, COUNT, GRAMMARS
from refinery.pipelines.recipe.recipe import Recipe, absent_sections
from refinery.transforms.core.params import Params, is_optional, sections_of

DRAFT = "https://json-schema.org/draft/2020-12/schema"


def recipe_schema(recipe: type[Recipe]) -> dict[str, Any]:
    """A JSON schema (draft 2020-12) of recipes as people write them: sections may also be on, off or empty."""
    schema = recipe.model_json_schema()
    models = {cls.__name__: cls for cls in _models(recipe)}
    _complete(schema, recipe)
    for name, part in schema.get("$defs", {}).items():
        if name in models:
            _complete(part, models[name])
    _take_units(schema)
    # Further keys of an element are the parameters of the stage that it uses.
    schema["$defs"]["UsedStage"]["additionalProperties"] = True
    lane = recipe.LANE.module or recipe.LANE.name
    if lane != schema["properties"]["lane"]["default"]:  # then recipes must say it
        del schema["properties"]["lane"]["default"]
        schema["properties"]["lane"]["const"] = lane
        schema["required"].append("lane")
    return {**schema, "$schema": DRAFT, "title": f"A recipe of the lane {recipe.LANE.name}"}


def _take_units(part: Any, name: str = "") -> None:
    """Whole numbers may be written with units: as `with_numbers` reads them. name: of the field."""
    if isinstance(part, list):
        for one in part:
            _take_units(one, name)
    elif isinstance(part, dict):
        for key, inner in part.items():
            for field, one in inner.items() if key == "properties" else [(name, inner)]:
                _take_units(one, field)
        if part.get("type") == "integer":
            grammar = GRAMMARS[BYTES if name.endswith("bytes") else COUNT]
            part |= {"type": ["integer", "string"], "pattern": f"^(?:{grammar.pattern})$"}


def schema_text(recipe: type[Recipe]) -> str:
    """The schema as a file."""
    return json.dumps(recipe_schema(recipe), indent=1, ensure_ascii=False) + "\n"


def _models(cls: type[Params]) -> list[type[Params]]:
    inner = [found for field in cls.model_fields.values() for found in sections_of(field.annotation)]
    return [cls, *(model for found in inner for model in _models(found))]


def _complete(part: dict[str, Any], cls: type[Params]) -> None:
    """Descriptions, and the switches that every section takes."""
    stages = {stage.key: stage for stage in cls.LANE.stages} if issubclass(cls, Recipe) else {}
    for name in absent_sections(cls.LANE) if issubclass(cls, Recipe) else ():
        del part["properties"][name]
    for name, field in cls.model_fields.items():
        if name not in part["properties"]:
            continue
        entry = part["properties"][name]
        text = descriptions(cls).get(name) or (stages[name].summary if name in stages else "")
        entry.pop("description", None)  # pydantic's has the line breaks of the source
        if text:
            entry["description"] = text
        if sections_of(field.annotation) and (isinstance(field.default, Params) or is_optional(field.annotation)):
            switches = [{"type": "boolean"}, {"type": "null"}] if is_optional(field.annotation) else [{"type": "null"}]
            kinds = entry.pop("anyOf", None) or [{"$ref": entry.pop("$ref")}]
            entry["anyOf"] = [kind for kind in kinds if kind != {"type": "null"}] + switches
