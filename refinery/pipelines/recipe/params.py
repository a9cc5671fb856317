"""Plain data into parameters, for people who wrote it by hand, and the fingerprint of plain data."""

import hashlib
import json
from typing import Any, TypeVar

from refinery.pipelines.recipe.quantities.in_data import with_numbers
from refinery.transforms.core.data_text.plain_yaml import RecipeError
from refinery.transforms.core.params import Params, ParamsError, allowed, below
from refinery.transforms.core.wording import given

MAX_PROBLEMS = 20

T = TypeVar("T", bound=Params)


def parse(cls: type[T], data: Any, path: str = "") -> T:
    """An instance of `cls` from plain data; `path` is the place of the data in the recipe.

    Raises RecipeError with one line per problem: the path of the key, what was given, what is allowed.
    """
    if data is None or data is True:  # a section whose keys are all commented out, or `on`
        data = {}
    if not isinstance(data, dict):
        raise RecipeError(f"{path or 'recipe'}: {given(data)} given, {allowed(cls)} is allowed")
    try:
        return cls(**_with_numbers(cls, data, path))
    except ParamsError as error:
        problems = [below(path, problem) for problem in error.problems]
    more = len(problems) - MAX_PROBLEMS
    raise RecipeError("\n".join(problems[:MAX_PROBLEMS] + [f"and {more} problems more"] * (more > 0)))


def _with_numbers(cls: type[Params], data: dict[str, Any], path: str) -> Any:
    try:
        return with_numbers(cls, data)
    except ValueError as error:
        raise RecipeError(below(path, str(error))) from None


def fingerprint(plain: Any) -> str:
    """sha256 (64 hex digits) of the canonical JSON of plain data.

    Keys sorted, no spaces, ASCII, floats as the shortest digits that read back: independent of key order, Python
    version, PYTHONHASHSEED and platform. 1 and 1.0 differ; a float field's value is a float. Raises ValueError for a
    number that is not finite, TypeError for data that is not plain.
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
