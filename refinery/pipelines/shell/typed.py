"""Arguments of a command, written again as a user would type them: for scripts that call the command later."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Collection, Iterator


def typed(args: Namespace, arguments: Callable[[ArgumentParser], None], leave_out: Collection[str] = ()) -> list[str]:
    """The words of `args` that `arguments` declares and that differ from their defaults. Values that begin with a dash
    are written as --flag=value.

    leave_out: attributes of `args` that are not written.
    """
    parser = ArgumentParser(add_help=False)
    arguments(parser)
    words: list[str] = []
    for action in parser._actions:
        value = getattr(args, action.dest)
        if action.dest in leave_out or (action.option_strings and value == action.default):
            continue
        words += _words(action.option_strings[0] if action.option_strings else "", value)
    return words


def _words(flag: str, value: object) -> Iterator[str]:
    if not flag:
        yield f"{value}"
    elif value is True:
        yield flag
    elif isinstance(value, list):
        for each in value:
            yield from _words(flag, each)
    else:
        yield from (f"{flag}={value}",) if f"{value}".startswith("-") else (flag, f"{value}")
