"""What every parameter class promises: each field described and bounded, mistakes of one line, records read back."""

import json
import pickle
from collections.abc import Collection, Iterator
from typing import Annotated, Any, get_args, get_origin

import annotated_types

from refinery.pipelines.recipe.descriptions import descriptions
from refinery.testing.expect import expect
from refinery.transforms.core.params import Params, ParamsError, sections_of

UNKNOWN = "no_such_key"
BOUNDS = (annotated_types.Ge, annotated_types.Gt, annotated_types.Le, annotated_types.Lt)


def all_sections(cls: type[Params], path: str = "") -> Iterator[tuple[str, type[Params]]]:
    """(path, class) of a parameter class and of all sections in it."""
    yield path, cls
    for name, field in cls.model_fields.items():
        for inner in sections_of(field.annotation):
            yield from all_sections(inner, f"{path}{name}.")


def numbers_of(hint: Any, metadata: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The limits of each number that a type is made of, in a list or a mapping, too."""
    if get_origin(hint) is Annotated:
        yield from numbers_of(get_args(hint)[0], (*get_args(hint)[1:], *metadata))
    elif hint in (int, float):
        yield tuple(limit for each in metadata for limit in (each, *getattr(each, "metadata", ())))
    else:
        for inner in get_args(hint):
            yield from numbers_of(inner, metadata)


def check_described(cls: type[Params], unlimited: Collection[str] = ()) -> None:
    """Every field has a description, and every number a limit, except these ("section.field")."""
    for path, section in all_sections(cls):
        for name, field in section.model_fields.items():
            expect(name in descriptions(section), f"{path}{name}: no docstring below the field says what it is")
            for limits in numbers_of(field.annotation, tuple(field.metadata)):
                bounded = any(isinstance(limit, BOUNDS) for limit in limits) or f"{path}{name}" in unlimited
                expect(bounded, f"{path}{name}: no limit given; Share, Count, Positive or Field(ge=…) is needed")


def check_mistakes(cls: type[Params]) -> None:
    """A key that nobody knows, and numbers beyond their limits, are refused in one line that names the field."""
    for path, section in all_sections(cls):
        _refused(section, UNKNOWN, 1, path)
        for name, field in section.model_fields.items():
            hint, own = field.annotation, tuple(field.metadata)
            if hint not in (int, float):
                continue
            for limit in next(numbers_of(hint, own)):
                beyond = _beyond(limit)
                if beyond is not None:
                    _refused(section, name, beyond if hint is int else float(beyond), path)


def _beyond(limit: Any) -> Any:
    """A number that a limit does not allow."""
    match limit:
        case annotated_types.Ge(ge=least):
            return least - 1  # type: ignore[operator]  # a number, by the hint
        case annotated_types.Gt(gt=least):
            return least
        case annotated_types.Le(le=most):
            return most + 1  # type: ignore[operator]  # a number, by the hint
        case annotated_types.Lt(lt=most):
            return most
    return None


def _refused(cls: type[Params], name: str, value: Any, path: str) -> None:
    """Raise AssertionError unless the class refuses that value, whatever else it misses."""
    try:
        cls(**{name: value})
    except ParamsError as error:
        named = [line for line in error.problems if line.startswith(name)]
        expect(bool(named), f"{path}{name}: {value} given, and no line of {error.problems} begins with the name")
    except Exception as error:  # noqa: BLE001 - whatever a check of its own raises
        expect(False, f"{path}{name}: {value} given, {type(error).__name__} raised; ValueError('{name}: …') is needed")
    else:
        expect(False, f"{path}{name}: {value} given, and it is taken")


def check_recorded(params: Params) -> None:
    """What a run records of parameters makes the same ones again; so does what is sent to workers."""
    again = type(params)(**json.loads(json.dumps(params.plain())))
    expect(again == params, f"{again!r} read back, {params!r} recorded")
    sent = pickle.loads(pickle.dumps(params))  # noqa: S301 - made here
    expect(sent == params, f"{sent!r} arrives in a worker, {params!r} was sent")
    expect(bool(type(params).model_config.get("frozen")), f"{type(params).__name__}: not frozen; parameters are")
