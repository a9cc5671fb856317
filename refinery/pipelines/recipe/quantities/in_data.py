"""Numbers with units in plain data, before parameters are made of it: `target: 10B`, `--set run.wave_bytes=8GB`."""

import types
from collections.abc import Mapping
from inspect import isclass
from typing import Annotated, Any, Union, get_args, get_origin

from refinery.pipelines.recipe.quantities.quantity import BARE, BYTES, COUNT, parse_whole
from refinery.transforms.core.params import Params, dotted


def with_numbers(cls: type[Params], data: Any, path: tuple[int | str, ...] = ()) -> Any:
    """The data with numbers in place of texts such as "10B" and "500 MB", wherever a class of parameters takes whole
    numbers; a number such as 2e9, from a thousand on, becomes a whole one there (2.0 is refused). What cannot be read
    stays as it is, for pydantic to refuse.

    A field whose name ends in `bytes` counts bytes. Raises ValueError for one that could mean two numbers.
    """
    if not isinstance(data, dict):
        return data
    fields = cls.model_fields
    return {
        key: _number(fields[key].annotation, value, key, (*path, key)) if key in fields else value
        for key, value in data.items()
    }


def _number(hint: Any, value: Any, name: str, path: tuple[int | str, ...]) -> Any:
    """A value as its type counts it, at any depth. name: of the field that holds it."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _number(args[0], value, name, path)
    if origin in (Union, types.UnionType):
        rest = [arg for arg in args if arg is not type(None)]
        return _number(rest[0], value, name, path) if len(rest) == 1 else value
    if isclass(hint) and issubclass(hint, Params):
        return with_numbers(hint, value, path)
    if origin is tuple and args[-1] is Ellipsis and isinstance(value, (list, tuple)):
        return [_number(args[0], item, name, (*path, index)) for index, item in enumerate(value)]
    if isclass(origin) and issubclass(origin, Mapping) and isinstance(value, dict):
        return {key: _number(args[-1], item, name, (*path, key)) for key, item in value.items()}
    return _whole(value, BYTES if name.endswith("bytes") else COUNT, path) if hint is int else value


def _whole(value: Any, kind: str, path: tuple[int | str, ...]) -> Any:
    if isinstance(value, float) and value.is_integer() and 1000 <= abs(value) < 1 << 63:
        return int(value)
    if not isinstance(value, str):
        return value
    try:
        return parse_whole(value, kind)
    except ValueError as error:
        if kind == BYTES and BARE.fullmatch(value):
            raise ValueError(f"{dotted(path)}: {error}") from None
        return value
