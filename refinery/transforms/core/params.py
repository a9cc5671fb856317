"""Parameters: frozen pydantic models whose mistakes are one line each, and read the same wherever they are made.

    >>> class DigitsParams(Params):
    ...     max_ratio: Share = 0.3
    >>> DigitsParams(max_ratio=2)
    Traceback (most recent call last):
    refinery.transforms.core.params.ParamsError: max_ratio: 2 given, a number from 0 to 1 is allowed

A docstring below a field is the field's description (pipelines/recipe/descriptions.py): in the pages, in the JSON
schema, in `refinery stages`.
"""

import inspect
import json
import re
import types
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, Union, get_args, get_origin

import annotated_types
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.fields import FieldInfo

from refinery.transforms.core.wording import given, is_short, meant, nearest

# What most fields are made of. null switches off what is optional: `Share | None`.
Share = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[int, Field(ge=1)]
Count = Annotated[int, Field(ge=0)]


class ParamsError(ValueError):
    """What is wrong with parameters. `problems`: one line each, "path: what was given, what is allowed"."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.problems,)


class Params(BaseModel):
    """Base of every parameter class: frozen, no unknown keys, nothing converted but integers to floats.

    In data, an optional section is switched off by null, off or false and takes its defaults by on, true or {}; the
    keys that a section leaves out come from the default of the field that holds it. Lists become tuples, and mappings
    are sorted by key, so nothing can depend on an order that a fingerprint does not see. A check of its own
    (`model_validator`, `field_validator`) raises ValueError("field: … given, … is allowed").
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)

    # Fields that runs have been made without: where they have their defaults, such runs are the same as new ones.
    LATER: ClassVar[tuple[str, ...]] = ()
    # Fields that say where something is found whose content another field stands for: they decide nothing.
    PLACES: ClassVar[tuple[str, ...]] = ()

    if not TYPE_CHECKING:  # type checkers see the fields as keyword arguments

        def __init__(self, /, **values: Any) -> None:
            try:
                super().__init__(**values)
            except ValidationError as error:
                raise ParamsError(_problems(type(self), error)) from None

    @model_validator(mode="before")
    @classmethod
    def _read_data(cls, data: Any) -> Any:
        if data is True or data is None:  # `on`, or a section whose keys are all commented out
            return {}
        if not isinstance(data, dict):
            return data
        return {_utf8(key): cls._read_value(key, value) for key, value in data.items()}

    @classmethod
    def _read_value(cls, key: str, value: Any) -> Any:
        field = cls.model_fields.get(key)
        if field is None:
            return value
        default = field.get_default(call_default_factory=True)
        if isinstance(default, Params):
            if value is True or (value is None and not is_optional(field.annotation)):
                return default
            if isinstance(value, Mapping):
                return {name: getattr(default, name) for name in type(default).model_fields} | dict(value)
        return _read(field.annotation, value)

    def replace(self, **changes: Any) -> Self:
        """A copy with other values, checked like a new one."""
        return type(self)(**{name: getattr(self, name) for name in type(self).model_fields} | changes)

    def idle(self) -> Iterator[tuple[str, str]]:
        """(field, why) of the fields that decide nothing beside the values of the others: a run warns of those that
        were given. None unless a class says so."""
        return iter(())

    def plain(self) -> dict[str, Any]:
        """JSON-able data that makes the same parameters: every field, defaults included; tuples become lists."""
        return self.model_dump(mode="json")

    def told(self) -> dict[str, Any]:
        """`plain` without PLACES and the fields in LATER that have their defaults, at any depth: what fingerprints are
        made of."""
        fields = type(self).model_fields
        return {
            name: _told(getattr(self, name), data)
            for name, data in self.plain().items()
            if name not in self.PLACES and (name not in self.LATER or getattr(self, name) != fields[name].default)
        }


def _told(value: Any, data: Any) -> Any:
    """The plain data of a value, of which `Params` tell themselves."""
    if isinstance(value, Params):
        return value.told()
    if isinstance(value, Mapping):
        return {name: _told(one, plain) for one, (name, plain) in zip(value.values(), data.items(), strict=True)}
    if isinstance(value, tuple):
        return [_told(one, plain) for one, plain in zip(value, data, strict=True)]
    return data


def _utf8(key: Any) -> Any:
    """A key as pydantic can name it in an error: lone surrogates escaped."""
    return key.encode("utf-8", "backslashreplace").decode() if isinstance(key, str) else key


def _read(hint: Any, value: Any) -> Any:
    """A value as its type takes it, at any depth: off as null where null is allowed, lists as tuples, keys sorted."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _read(args[0], value)
    if origin in (Union, types.UnionType):
        if value is False and type(None) in args and bool not in args:
            return None
        rest = [arg for arg in args if arg is not type(None)]
        return _read(rest[0] if len(rest) == 1 else None, value)
    if origin is Literal and isinstance(value, bool):  # YAML reads off as False
        word = {True: "on", False: "off"}[value]
        return word if word in args else value
    if isinstance(value, (list, tuple)):
        inner = args[0] if origin is tuple and args[-1] is Ellipsis else None
        return tuple(_read(inner, item) for item in value)
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        inner = args[-1] if inspect.isclass(origin) and issubclass(origin, Mapping) else None
        return {key: _read(inner, value[key]) for key in sorted(value)}
    return value + 0.0 if isinstance(value, float) else value  # -0.0 becomes 0.0: equal values, equal fingerprints


# --- types ------------------------------------------------------------------------------------------------------------


def is_optional(hint: Any) -> bool:
    """Whether None is one of the values of a type."""
    return get_origin(hint) in (Union, types.UnionType) and type(None) in get_args(hint)


def sections_of(hint: Any) -> list[type[Params]]:
    """Parameter classes that a type is made of."""
    if inspect.isclass(hint) and issubclass(hint, Params):
        return [hint]
    return [found for part in get_args(hint) for found in sections_of(part)]


def allowed(hint: Any, metadata: Iterable[Any] = ()) -> str:
    """What a type and its limits allow, for people: "a number from 0 to 1 or null"."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return allowed(args[0], (*args[1:], *metadata))
    if origin in (Union, types.UnionType):
        return " or ".join("null" if arg is type(None) else allowed(arg, metadata) for arg in args)
    if inspect.isclass(hint) and issubclass(hint, Params):
        return f"a section (keys {', '.join(hint.model_fields)})"
    if origin is Literal:
        return f"one of {', '.join(map(str, args))}"
    if origin is tuple:
        one = _PLURALS.get(args[0])
        return f"a list of {one}" if one else f"a list, each {allowed(args[0])},"
    if origin is not None and issubclass(origin, Mapping):
        return f"a mapping of names to {_PLURALS.get(args[1]) or allowed(args[1])}"
    if hint is str and (least := _limits(metadata).get("min_length")):
        return "text that is not empty" if least == 1 else f"text of {least} characters or more"
    return _number(hint, metadata) if hint in (int, float) else _WORDS.get(hint, str(hint))


_WORDS: dict[Any, str] = {Any: "any value", int: "an integer", float: "a number", bool: "on or off", str: "text"}
_PLURALS: dict[Any, str] = {int: "integers", float: "numbers", str: "texts"}
_BOUNDS = {
    "ge": annotated_types.Ge,
    "gt": annotated_types.Gt,
    "le": annotated_types.Le,
    "lt": annotated_types.Lt,
    "min_length": annotated_types.MinLen,
}


def _limits(metadata: Iterable[Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for entry in metadata:
        for limit in entry.metadata if isinstance(entry, FieldInfo) else (entry,):
            found |= {name: getattr(limit, name) for name, kind in _BOUNDS.items() if isinstance(limit, kind)}
    return found


def _number(hint: Any, metadata: Iterable[Any]) -> str:
    found = _limits(metadata)
    if hint is int and "lt" in found:
        found["le"] = found.pop("lt") - 1
    if "ge" in found and "le" in found:
        return f"{_WORDS[hint]} from {found['ge']} to {found['le']}"
    said = {"ge": "of {} or more", "gt": "above {}", "le": "up to {}", "lt": "below {}"}
    limits = " and ".join(words.format(found[name]) for name, words in said.items() if name in found)
    return f"{_WORDS[hint]} {limits}".rstrip()


# --- mistakes -------------------------------------------------------------------------------------------------------

_LIMITS = ("greater_than", "greater_than_equal", "less_than", "less_than_equal")


def _problems(cls: type[Params], error: ValidationError) -> Iterator[str]:
    """A line for each problem that pydantic found."""
    every = error.errors(include_url=False)
    paths = [found["loc"] for found in every]
    for found in every:
        path, kind, value = found["loc"], found["type"], found["input"]
        if kind == "too_short" and any(other[: len(path)] == path for other in paths if other != path):
            continue  # elements with problems of their own do not count
        if kind in ("value_error", "assertion_error"):
            yield from _own_problems(cls, path, found["ctx"]["error"])
            continue
        hint, metadata = _type_at(cls, path)
        what = allowed(hint, metadata)
        if kind == "extra_forbidden":
            problem = f"unknown key, {nearest(path[-1], cls.model_fields)}"
        elif kind == "missing":
            problem = f"nothing given, {what} is required"
        elif kind == "finite_number":
            problem = f"{given(value)} given, a finite number is allowed"
        elif kind in ("too_short", "too_long"):
            bound = (
                f"{found['ctx']['min_length']} or more"
                if kind == "too_short"
                else f"up to {found['ctx']['max_length']}"
            )
            problem = f"{given(value)} given, {bound} are allowed"
        elif kind in _LIMITS:
            number = "a huge integer" if isinstance(value, int) and abs(value) >= 10**20 else value
            problem = f"{number} given, {re.sub('^an? (integer|number) of ', '', what)} is allowed"
        else:
            options = (
                [option for option in get_args(hint) if isinstance(option, str)] if kind == "literal_error" else []
            )
            near = meant(value, options, " (", 0.7)
            problem = f"{given(value)} given, {what} is allowed{near + ')' * bool(near)}{_written(hint, value)}"
        yield f"{dotted(path)}: {problem}"


def _written(hint: Any, value: Any) -> str:
    """How a text is written where a list of texts, or a section with a path, is allowed: ": [a.jsonl]"."""
    inner = [arg for arg in get_args(hint) if arg is not type(None)] if is_optional(hint) else [hint]
    kind = inner[0] if len(inner) == 1 else None
    if not is_short(value) or not value:
        return " (begin each element with `- `)" if get_origin(kind) is tuple and isinstance(value, Mapping) else ""
    if get_origin(kind) is tuple and get_args(kind)[0] is str:
        return f": [{json.dumps(value)}]"
    takes_path = inspect.isclass(kind) and issubclass(kind, Params) and "path" in kind.model_fields
    return f": {{path: {json.dumps(value)}}}" if takes_path else ""


def _own_problems(cls: type[Params], path: tuple[int | str, ...], error: Exception) -> Iterator[str]:
    """What a class's own check says ("field: …"), or the problems of a section, behind the path to it."""
    where = dotted(path)
    if isinstance(error, ParamsError):
        yield from (below(where, problem) for problem in error.problems)
        return
    line = " ".join(str(error).split())
    named = _PATH.match(line)
    inside = named is not None and re.split(r"[.\[]", named[0])[0] in cls.model_fields
    yield line if inside or not where else f"{where}: {line}"


# What `dotted` makes, in front of a problem.
_PATH = re.compile(r"""(?:[\w.\[\]-]|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")+(?=: )""")


def below(where: str, problem: str) -> str:
    """A problem of a section, behind the path to the section."""
    return f"{where}{'.' if _PATH.match(problem) else ': '}{problem}" if where else problem


def _type_at(cls: type[Params], path: tuple[int | str, ...]) -> tuple[Any, list[Any]]:
    field = cls.model_fields.get(str(path[0])) if path else None
    if field is None:
        return cls, []
    hint, metadata = field.annotation, list(field.metadata)
    for step in path[1:]:
        inner = [arg for arg in get_args(hint) if arg is not type(None)] if is_optional(hint) else [hint]
        args = get_args(inner[0])
        hint, metadata = (args[0] if isinstance(step, int) else args[-1]) if args else inner[0], []
    return hint, metadata


def dotted(path: Iterable[int | str]) -> str:
    """("sources", 0, "paths") -> "sources[0].paths"."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{printable_name(step)}" if text else printable_name(step)
    return text


def printable_name(key: Any) -> str:
    """A key as an error line may show it."""
    return key if isinstance(key, str) and re.fullmatch(r"[\w-]{1,60}", key) else ascii(key)[:60]
