"""What the fields of parameters are: the docstrings below them, read from the source when somebody asks.

A run asks for none of them, and reading the source of every class takes as long as a tenth of its imports.
"""

import ast
import contextlib
import inspect
import textwrap
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise

from refinery.transforms.core.params import Params


@cache
def descriptions(cls: type[Params]) -> Mapping[str, str]:
    """Field -> its description on one line. A field that is declared again without one keeps that of the field before
    it. Fields without any are left out.
    """
    found: dict[str, str] = {}
    for kind in reversed(cls.__mro__):
        if issubclass(kind, Params):
            found.update(_below_fields(kind))
    found |= {name: field.description for name, field in cls.model_fields.items() if field.description}
    return {name: " ".join(found[name].split()) for name in cls.model_fields if found.get(name)}


def _below_fields(cls: type[Params]) -> Iterator[tuple[str, str]]:
    """The fields that a class declares itself with a docstring below."""
    with contextlib.suppress(OSError, TypeError):  # a class that has no source, as those that are made of others
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
        body = tree.body if isinstance(tree, ast.ClassDef) else []
        for field, below in pairwise(body):
            if (
                isinstance(field, ast.AnnAssign)
                and isinstance(below, ast.Expr)
                and isinstance(below.value, ast.Constant)
            ):
                yield ast.unparse(field.target), str(below.value.value)
