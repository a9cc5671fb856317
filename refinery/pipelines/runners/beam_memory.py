"""Answers of Beam that never change, remembered: more than half of what the launcher does is asking for them again."""

import argparse
import copy
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary


def remember_what_never_changes() -> None:
    """Beam parses its flags again for every view of the options, with translated help texts, and looks at the
    signatures and sources of its own methods for every step. Forks inherit the answers.
    """
    import apache_beam.transforms.core as core
    from apache_beam.options import pipeline_options
    from apache_beam.transforms import userstate
    from apache_beam.typehints import decorators, typehints

    if getattr(core.get_signature, "remembers", False):
        return
    argparse._ = lambda text: text  # type: ignore[attr-defined]
    decorators.get_signature = core.get_signature = by_function(core.get_signature)
    core.get_function_args_defaults = by_function(core.get_function_args_defaults)
    core._get_function_body_without_inners = by_code(core._get_function_body_without_inners)
    userstate.get_dofn_specs = by_kind(userstate.get_dofn_specs)
    hints = decorators.IOTypeHints
    hints._make_origin = classmethod(lambda cls, bases, tb=True, msg=(): list(msg))  # not who asked: for messages alone
    hints.from_callable = staticmethod(by_function(hints.from_callable))
    typehints.get_yielded_type = by_hint(typehints.get_yielded_type)
    options = pipeline_options.PipelineOptions
    options.__init__ = by_flags(options.__init__)
    options._visible_option_list = visible_names


def by_function(ask: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`ask`, asked once for each function, while it lives; the methods of all instances are one function."""
    known: WeakKeyDictionary[Any, dict[bool, Any]] = WeakKeyDictionary()

    def answer(function: Any) -> Any:
        plain, is_bound = getattr(function, "__func__", function), hasattr(function, "__func__")
        try:
            answers = known.setdefault(plain, {})
        except TypeError:  # not every callable can be referred to
            return ask(function)
        if is_bound not in answers:
            answers[is_bound] = ask(function)
        return answers[is_bound]

    answer.remembers = True  # type: ignore[attr-defined]
    return answer


def by_code(ask: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`ask`, asked once for each piece of code: functions that are made again and again share theirs."""
    known: dict[Any, Any] = {}

    def answer(function: Any) -> Any:
        code = getattr(function, "__code__", None)
        if code is None:
            return ask(function)
        key = code.co_filename, code.co_firstlineno, code
        if key not in known:
            known[key] = ask(function)
        return known[key]

    return answer


def by_kind(ask: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`ask`, asked once for each class of DoFn; those that wrap a function whose arguments have defaults, which may be
    state, are asked each time.
    """
    known: dict[type, Any] = {}

    def answer(dofn: Any) -> Any:
        kind = type(dofn)
        if hasattr(dofn, "_inspect_process") and not (hasattr(dofn, "_fn") and is_plain(dofn._process_argspec_fn())):
            return ask(dofn)
        if kind not in known:
            known[kind] = ask(dofn)
        return known[kind]

    return answer


def is_plain(function: Any) -> bool:
    """Whether it is a function without defaults, and not one that another is seen through."""
    plain = getattr(function, "__func__", function)
    code_alone = hasattr(plain, "__code__") and not hasattr(plain, "__wrapped__")
    return code_alone and plain.__defaults__ is None and plain.__kwdefaults__ is None


def by_flags(parse: Callable[..., None]) -> Callable[..., None]:
    """What PipelineOptions.__init__ sets, for each class and its flags; every instance gets a copy of its own."""
    known: dict[Any, tuple[dict[str, Any], dict[str, Any], list[str]]] = {}

    def __init__(self: Any, flags: Any = None, **overrides: Any) -> None:
        if flags is None or isinstance(flags, str) or overrides:
            return parse(self, flags, **overrides)
        key = type(self), tuple(flags)
        if key not in known:
            parse(self, flags)
            options = copy.deepcopy(self._all_options)
            seen = copy.deepcopy(vars(self._visible_options))
            known[key] = seen, options, [name for name, value in options.items() if isinstance(value, list | dict)]
        seen, options, changeable = known[key]
        mine = options | {name: copy.copy(options[name]) for name in changeable}
        visible = argparse.Namespace()
        vars(visible).update(seen, **mine)
        vars(self).update(_flags=flags, _visible_options=visible, _all_options=mine)

    return __init__


def visible_names(self: Any) -> list[str]:
    """PipelineOptions._visible_option_list, without asking the class of the parsed flags for its attributes, too."""
    return sorted(name for name in vars(self._visible_options) if name[0] != "_")


def by_hint(ask: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`ask`, asked once for each type hint."""
    known: dict[Any, Any] = {}

    def answer(hint: Any) -> Any:
        key = type(hint), hint
        try:
            if key not in known:
                known[key] = ask(hint)
        except TypeError:  # not every hint can be hashed
            return ask(hint)
        return known[key]

    return answer
