"""What a package offers by name, imported on first use.

A package's `__init__` lists it once, as imports that only type checkers run:

    if TYPE_CHECKING:
        from refinery.transforms.filter.url import URL as URL

    __getattr__, __dir__ = offers(__name__, __file__)

So `from refinery.transforms import URL` works, and importing any module below the package imports nothing else.
"""

import ast
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any


def offers(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package whose `__init__` is `file`. The file is parsed on first use.

    Its `__getattr__` raises AttributeError for what is not listed.
    """

    @cache
    def modules() -> dict[str, str]:
        lists = [node for node in ast.parse(Path(file).read_bytes()).body if isinstance(node, ast.If)]
        imports = [node for each in lists for node in each.body if isinstance(node, ast.ImportFrom)]
        return {alias.name: str(node.module) for node in imports for alias in node.names}

    def get(name: str) -> Any:
        if name == "__all__":
            return sorted(modules())
        if name.startswith("__") or name not in modules():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(modules()[name]), name)

    def names() -> list[str]:
        return sorted({*modules(), "__all__", "__doc__", "__file__", "__name__", "__path__"})

    return get, names
