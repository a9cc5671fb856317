"""Answers of Beam that never change, remembered: a good part of a small run is asking for them again."""

import argparse
import copy
from collections.abc import Callable
from typing import Any


def remember_what_never_changes() -> None:
    """Beam parses its flags anew for every view of the options, with translated help texts, and looks at the signatures
    of its own methods for every step. Forks inherit the answers.
    """
    import apache_beam.transforms.core as core
    from apache_beam.options import pipeline_options

    if getattr(core.get_signature, "remembers", False):
        return
    argparse._ = lambda text: text  # type: ignore[attr-defined]
    core.get_signature = by_function(core.get_signature)
    options = pipeline_options.PipelineOptions
    options.__init__ = by_flags(options.__init__)


def by_function(ask: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`ask`, asked once for each function; the methods of all instances are one function."""
    known: dict[Any, Any] = {}

    def answer(function: Any) -> Any:
        key = getattr(function, "__func__", function), hasattr(function, "__func__")
        if key not in known:
            known[key] = ask(function)
        return known[key]

    answer.remembers = True  # type: ignore[attr-defined]
    return answer


def by_flags(parse: Callable[..., None]) -> Callable[..., None]:
    """What PipelineOptions.__init__ sets, for each class and its flags; every instance gets a copy of its own."""
    known: dict[Any, dict[str, Any]] = {}

    def __init__(self: Any, flags: Any = None, **overrides: Any) -> None:
        if flags is None or isinstance(flags, str) or overrides:
            return parse(self, flags, **overrides)
        key = type(self), tuple(flags)
        if key not in known:
            parse(self, flags)
            known[key] = copy.deepcopy(vars(self))
        vars(self).update(copy.deepcopy(known[key]), _flags=flags)

    return __init__
