"""Parameters: plain data into a tree of frozen dataclasses, and back.

The classes say what is allowed, this module says it to the user: `parse` reads any tree of frozen dataclasses whose
fields are int, float, bool, str, Literal, tuple[X, ...], Mapping[str, X], X | None or another such dataclass. Each
problem is one line: the path of the key, what was given, what is allowed.

    >>> parse(RejectParams, {"rate": 2})
    Traceback (most recent call last):
    RecipeError: rate: 2.0 given, a number from 0 to 1 is allowed
"""

import dataclasses
import difflib
import hashlib
import json
import math
import re
import types
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from refinery.pipelines.run.plain_yaml import RecipeError, given, load_yaml, override, printable_name

__all__ = ["RecipeError", "fingerprint", "load_yaml", "override", "parse", "to_plain"]

MAX_PROBLEMS = 20
INT_RANGE = range(-(1 << 63), 1 << 63)

T = TypeVar("T")
_BAD: Any = object()  # a value with a problem, already noted


def parse(cls: type[T], data: Any, path: str = "") -> T:
    """An instance of the frozen dataclass `cls` from plain data; `path` is where the data stands in the recipe.

    Integers are accepted for floats, nothing else is converted. An optional section is switched off by null, off or
    false and takes its defaults by on, true or {}; an optional value is switched off by null or off. Mappings come back
    sorted by key, so that nothing downstream can depend on an order the fingerprint does not see.
    Raises RecipeError with one line per problem; TypeError for a class whose field types it does not know.
    """
    reader = _Reader([])
    result = reader.section(cls, data, path, None)
    if reader.problems:
        more = len(reader.problems) - MAX_PROBLEMS
        raise RecipeError("\n".join(reader.problems[:MAX_PROBLEMS] + [f"and {more} problems more"] * (more > 0)))
    return result  # type: ignore[no-any-return]


@dataclasses.dataclass
class _Reader:
    """Reads a value against a type; notes problems and returns _BAD instead of stopping at the first."""

    problems: list[str]

    def bad(self, path: str, problem: str) -> Any:
        self.problems.append(f"{path or 'recipe'}: {problem}")
        return _BAD

    def section(self, cls: Any, data: Any, path: str, base: Any) -> Any:
        """`base`: the default of the field that holds this section; keys that are not given come from it."""
        if data is None or data is True:  # a section whose keys are all commented out, or `on`
            data = {}
        if not isinstance(data, Mapping):
            return self.bad(path, f"{given(data)} given, {_allowed(cls)} is allowed")
        fields = {f.name: f for f in dataclasses.fields(cls) if f.init}
        for key in data:
            if key not in fields:
                self.bad(_join(path, key), f"unknown key, {_nearest(key, fields)}")
        hints = get_type_hints(cls)
        values = {}
        for name, field in fields.items():
            default = getattr(base, name) if base is not None else _default(field)
            if name in data:
                values[name] = self.value(hints[name], data[name], _join(path, name), default)
            elif default is dataclasses.MISSING:
                values[name] = self.bad(_join(path, name), f"nothing given, {_allowed(hints[name])} is required")
            else:
                values[name] = default
        if any(value is _BAD for value in values.values()):
            return _BAD
        try:
            return cls(**values)
        except ValueError as error:  # the class's own check: "field: <given> given, <allowed> is allowed"
            message = " ".join(str(error).split())
            named = re.match(r"\w+", message)
            where = "." if named and named[0] in fields else ": "
            self.problems.append(f"{path}{where if path else ''}{message}")
            return _BAD

    def value(self, hint: Any, data: Any, path: str, default: Any) -> Any:
        origin, args = get_origin(hint), get_args(hint)
        if origin in (Union, types.UnionType):
            inner = [arg for arg in args if arg is not type(None)]
            if len(inner) != 1 or len(args) != 2:
                raise TypeError(f"{path}: fields of type {hint} cannot be read")
            if data is None or (data is False and inner[0] is not bool):
                return None
            before = len(self.problems)
            result = self.value(inner[0], data, path, default)
            if len(self.problems) == before + 1 and self.problems[-1].endswith(f"{_allowed(inner[0])} is allowed"):
                self.problems[-1] = self.problems[-1].removesuffix("is allowed") + "or null is allowed"
            return result
        if dataclasses.is_dataclass(hint):
            return self.section(hint, data, path, default if isinstance(default, hint) else None)  # type: ignore[arg-type]
        if origin is Literal:
            return self.choice(args, data, path)
        if origin is tuple and len(args) == 2 and args[1] is ...:
            if not isinstance(data, (list, tuple)):
                return self.bad(path, f"{given(data)} given, {_allowed(hint)} is allowed")
            items = [self.value(args[0], item, f"{path}[{i}]", None) for i, item in enumerate(data)]
            return _BAD if any(item is _BAD for item in items) else tuple(items)
        if origin is not None and issubclass(origin, Mapping):
            if not isinstance(data, Mapping) or not all(isinstance(key, str) for key in data):
                return self.bad(path, f"{given(data)} given, {_allowed(hint)} is allowed")
            entries = {key: self.value(args[1], data[key], _join(path, key), None) for key in sorted(data)}
            return _BAD if any(entry is _BAD for entry in entries.values()) else entries
        return self.scalar(hint, data, path)

    def choice(self, options: tuple[Any, ...], data: Any, path: str) -> Any:
        spelled: Any = {True: "on", False: "off"}[data] if isinstance(data, bool) else data  # YAML reads off as False
        for option in options:
            if any(type(option) is type(v) and option == v for v in (data, spelled)):
                return option
        near = difflib.get_close_matches(data, [o for o in options if isinstance(o, str)], 1) if _is_text(data) else []
        hint = f" (did you mean {near[0]}?)" if near else ""
        return self.bad(path, f"{given(data)} given, {_allowed(Literal[options])} is allowed{hint}")

    def scalar(self, hint: Any, data: Any, path: str) -> Any:
        if hint is float and type(data) in (int, float):
            try:
                number = float(data)
            except OverflowError:
                number = math.inf
            # + 0.0 turns -0.0 into 0.0: equal values, equal fingerprints
            return number + 0.0 if math.isfinite(number) else self.bad(path, f"{given(data)} given, {_FINITE}")
        if hint is int and type(data) is int:
            return data if data in INT_RANGE else self.bad(path, "a huge integer given, one of 64 bits is allowed")
        if hint in (str, bool) and type(data) is hint:
            return data
        if hint not in _WORDS:
            raise TypeError(f"{path}: fields of type {hint} cannot be read")
        return self.bad(path, f"{given(data)} given, {_allowed(hint)} is allowed")


_FINITE = "a finite number is allowed"
_WORDS: dict[Any, str] = {int: "an integer", float: "a number", bool: "on or off", str: "text"}
_PLURALS: dict[Any, str] = {int: "integers", float: "numbers", str: "texts"}


def _default(field: "dataclasses.Field[Any]") -> Any:
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


def _allowed(hint: Any) -> str:
    """What a type allows, for the end of an error line."""
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return " or ".join("null" if arg is type(None) else _allowed(arg) for arg in args)
    if dataclasses.is_dataclass(hint):
        return f"a section (keys {', '.join(f.name for f in dataclasses.fields(hint) if f.init)})"
    if origin is Literal:
        return f"one of {', '.join(str(arg) for arg in args)}"
    if origin is tuple:
        return f"a list of {_PLURALS[args[0]]}" if args[0] in _PLURALS else f"a list, each {_allowed(args[0])},"
    if origin is not None:
        return f"a mapping of names to {_PLURALS.get(args[1], _allowed(args[1]))}"
    return _WORDS.get(hint, str(hint))


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= 100  # difflib is quadratic


def _join(path: str, key: Any) -> str:
    return f"{path}.{printable_name(key)}" if path else printable_name(key)


def _nearest(key: Any, names: Iterable[str]) -> str:
    near = difflib.get_close_matches(key, names, 1) if _is_text(key) else []
    return f"did you mean {near[0]}?" if near else f"{', '.join(names)} are allowed"


# --- dataclasses to data --------------------------------------------------------------------------------------------


def to_plain(value: Any) -> Any:
    """Plain, JSON-able data of a parameter tree: every field, defaults included; tuples become lists.

    `parse(type(x), to_plain(x)) == x` for every x that `parse` returned. Raises TypeError for any other type.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_plain(getattr(value, f.name)) for f in dataclasses.fields(value) if f.init}
    if isinstance(value, Mapping):
        return {key: to_plain(value[key]) for key in sorted(value)}
    if isinstance(value, (tuple, list)):
        return [to_plain(item) for item in value]
    if value is None or isinstance(value, (str, int, float)):
        return value
    raise TypeError(f"a parameter of type {type(value).__name__} cannot be written")


def fingerprint(plain: Any) -> str:
    """sha256 (64 hex digits) of the canonical JSON of plain data.

    Keys sorted, no spaces, ASCII, floats as the shortest digits that read back: independent of key order, Python
    version, PYTHONHASHSEED and platform. 1 and 1.0 differ; `parse` has made a float field's value a float. Raises
    ValueError for a number that is not finite, TypeError for data that is not plain.
    """
    _check_keys(plain)
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _check_keys(plain: Any) -> None:
    """json would turn the keys 1 and True into text without a word."""
    if isinstance(plain, dict):
        for key, value in plain.items():
            if not isinstance(key, str):
                raise TypeError(f"key {key!r}: {type(key).__name__} given, str is allowed")
            _check_keys(value)
    elif isinstance(plain, (list, tuple)):
        for value in plain:
            _check_keys(value)
