"""`refinery stages`: every stage with its parameters, reasons and version; and a new one to begin with."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from refinery.pipelines.recipe.descriptions import descriptions
from refinery.pipelines.recipe.recipe import Recipe, absent_sections, recipe_class
from refinery.transforms.core.lane import AnyStage, Lane
from refinery.transforms.core.params import Params, allowed, sections_of
from refinery.transforms.core.stage import KEBAB
from refinery.transforms.core.wording import meant

REQUIRED = "required"  # stands for the default that a field does not have

STAGE = '''"""Documents that are mostly digits: tables, logs, price lists."""

from refinery.transforms.core.document import Document, Drop
from refinery.transforms.core.params import Params, Share
from refinery.transforms.core.stage import Reason, Stage


class {title}Params(Params):
    """How many digits are too many."""

    max_ratio: Share = 0.3
    """share of a text's characters that may be digits"""


def judge_{name}(doc: Document, params: {title}Params) -> Document | Drop:
    """`doc`, or "{kebab}-ratio" for too many digits. Linear."""
    if sum(map(str.isdigit, doc.text)) > params.max_ratio * len(doc.text):
        return Drop("{kebab}-ratio")
    return doc


{constant} = Stage(
    name="{kebab}",
    version=1,
    summary="Drop documents that are mostly digits.",
    params={title}Params,
    judge=judge_{name},
    reasons=(Reason("{kebab}-ratio", "more than `max_ratio` of the characters are digits", "raise `max_ratio`"),),
)
'''

TEST = '''"""{title}Params, judge_{name} and the declaration {constant}."""

from {module} import {constant}, {title}Params, judge_{name}
from refinery.testing import StageTests


class Test{title}(StageTests):
    """What every stage promises, and which texts are dropped."""

    stage = {constant}

    def examples(self):
        return {{"12 monkeys": "", "1234567 x": "{kebab}-ratio", "": ""}}  # text -> reason, "" for one that is kept

    def test_where_all_may_be_digits_all_is_kept(self):
        doc = self.document("1234567", 0)
        assert judge_{name}(doc, {title}Params(max_ratio=1.0)) is doc
'''


def list_stages(lane: Lane, name: str = "") -> Iterator[str]:
    """Lines about all stages of a lane, or about the one of that name in detail.

    Raises ValueError for a name that is none.
    """
    if name and name not in lane.funnel:
        raise ValueError(
            f"stages: {name!r} given, {', '.join(lane.funnel)} is allowed in the lane {lane.name}"
            f"{meant(name, lane.funnel)}"
        )
    recipe = recipe_class(lane)
    for stage in lane.stages:
        if not name or stage.name == name:
            origin = f" ({stage.module})" if stage.module else ""
            yield f"{stage.name}  version {stage.version}, phase {lane.phase_of(stage)}{origin}: {stage.summary}"
            yield from (f"  {line}" for line in describe_stage(stage, recipe))


def describe_stage(stage: AnyStage, recipe: type[Recipe]) -> Iterator[str]:
    """Its parameters with defaults, what they allow and mean; its reasons; what it notes."""
    if stage.params is not None:
        field = recipe.model_fields[stage.key]
        state = "required" if field.is_required() else "on" if field.default is not None else "off"
        yield f"{stage.key}: ({state} by default{', can be off' if stage.optional else ''})"
        shown = parameters(stage.params, default=field.default)
        yield from (f"  {key}: {default}  # {meaning}" for key, default, meaning in shown)
    for reason in stage.reasons:
        yield f"- {reason.name}: {reason.meaning}{f' [{reason.source}]' if reason.source else ''}"
    for note in stage.notes:
        yield f"= {note.name} ({note.type.__name__}{', a provenance column' if note.column else ''}): {note.meaning}"


def shown_fields(cls: type[Params]) -> dict[str, Any]:
    """Fields of a section; of a recipe without those that ask for what its lane does not have."""
    absent = absent_sections(cls.LANE) if issubclass(cls, Recipe) and hasattr(cls, "LANE") else {}
    return {name: field for name, field in cls.model_fields.items() if name not in absent}


def parameters(cls: type[Params], prefix: str = "", default: Any = None) -> Iterator[tuple[str, str, str]]:
    """(key, default, what it allows and means) of every parameter; nested sections by dotted keys.

    default: the section where nothing is given, if it is on then.
    """
    for name, field in shown_fields(cls).items():
        value = getattr(default, name) if isinstance(default, Params) else default_of(field)
        inner = sections_of(field.annotation)
        if inner and isinstance(value, Params):
            yield from parameters(inner[0], f"{prefix}{name}.", value)
            continue
        meaning = f"{allowed(field.annotation, field.metadata)}; {descriptions(cls).get(name, '')}".rstrip("; ")
        yield f"{prefix}{name}", show(value), meaning


def default_of(field: Any) -> Any:
    """A field's default, REQUIRED for none."""
    return REQUIRED if field.is_required() else field.get_default(call_default_factory=True)


def show_default(field: Any) -> str:
    """A default as a recipe would spell it."""
    return show(default_of(field))


def show(value: Any, most: int = 60) -> str:
    """A value as a recipe would spell it; the number of entries of a long list."""
    if isinstance(value, Params):
        return "on"
    if isinstance(value, (tuple, list)) and len(json.dumps(value)) > most:
        return f"built-in ({len(value)} entries)"
    return str(value) if value is REQUIRED else spell(value)


def spell(value: Any) -> str:
    """Plain data as YAML on one line."""
    if isinstance(value, bool) or value is None:
        return {True: "on", False: "off", None: "null"}[value]
    if isinstance(value, int):
        return f"{value:_}"
    if isinstance(value, str):
        return value if value and value.replace("_", "").isalnum() else json.dumps(value)
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(map(spell, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {spell(item)}" for key, item in value.items()) + "}"
    if isinstance(value, Params):
        return spell(value.plain())
    return str(value)


def new_stage(name: str, folder: str) -> list[str]:
    """Write an example stage and its test into a folder; returns what to do next.

    Raises ValueError for a name that is not kebab-case, FileExistsError rather than overwrite anything.
    """
    if not KEBAB.fullmatch(name) or not name[0].isalpha():
        raise ValueError(f"stages new: {name!r} given, a name in kebab-case is allowed, such as too-many-digits")
    module = name.replace("-", "_")
    words = {
        "name": module,
        "kebab": name,
        "module": module,
        "title": "".join(word.capitalize() for word in name.split("-")),
        "constant": module.upper(),
    }
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    written = {place / f"{module}.py": STAGE, place / f"test_{module}.py": TEST}
    for path in written:
        if path.exists():
            raise FileExistsError(f"{path} exists already, and stays as it is")
    for path, text in written.items():
        path.write_text(text.format(**words))
    return [
        *(f"written: {path}" for path in written),
        f"test it:  cd {place} && python -m pytest test_{module}.py",
        "use it, in a recipe of the same folder:",
        f'  stages: [{{use: "{module}:{words["constant"]}", after: heuristics, max_ratio: 0.2}}]',
    ]
