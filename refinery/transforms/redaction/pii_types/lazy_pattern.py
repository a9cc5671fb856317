"""Patterns that are compiled when they are first used: importing what declares them stays cheap."""

from collections.abc import Callable
from typing import Any


class LazyPattern:
    """A pattern of `re` or `re2`, which `make` compiles as soon as one of its methods is looked up.

    From then on it has the compiled pattern's methods as its own, so a call costs what it costs there. An error in
    the pattern is raised then, too: for constants, whose tests use them.

    >>> import re
    >>> LazyPattern(lambda: re.compile("b+")).search("abbc")[0]
    'bb'
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # what copies and pickles look for
            raise AttributeError(name)
        made = self._make()
        self.__dict__ |= {each: getattr(made, each) for each in dir(made) if not each.startswith("_")}
        return getattr(made, name)
