"""Counts of a text under the names of the kernel's, some of them made otherwise."""

from typing import Any

from refinery.transforms.native.heuristics import Features


class Counts:
    """The kernel's counts, some of them replaced: by those of another kernel, and by values."""

    def __init__(self, found: Features, others: tuple[Any, ...] = (), /, **values: Any) -> None:
        self._found = found
        self.__dict__.update(zip(getattr(others, "__match_args__", ()), others, strict=True))
        self.__dict__.update(values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._found, name)
