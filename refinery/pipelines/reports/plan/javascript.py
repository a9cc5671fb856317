"""The planner's formulas as JavaScript, from their syntax trees: what the page computes is what Python computes.

Only + - * /, ceil, numbers, constants of the module and parameters are known; anything else is an error when the page
is made. All of them are exact or correctly rounded in IEEE doubles, in Python as in JavaScript (ECMA-262, 6.1.6.1; the
order of operations is kept by brackets), so the numbers agree to the last bit.
"""

import ast
import inspect
from collections.abc import Callable, Iterable
from textwrap import dedent
from typing import Any

OPERATORS: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
CALLS = {"ceil": "Math.ceil"}


def to_javascript(formulas: Iterable[Callable[..., float]]) -> str:
    """Statements that put every formula's value into the object `v`, in the order given: `v.cores = (v.a / v.b);`."""
    return "\n".join(f"v.{formula.__name__} = {expression(formula)};" for formula in formulas)


def expression(formula: Callable[..., float]) -> str:
    """A formula's expression. Raises ValueError for syntax that is not known.

    >>> from refinery.pipelines.reports.plan.formulas import cores
    >>> expression(cores)
    '(v.pass_speed / v.core_speed)'
    """
    tree = ast.parse(dedent(inspect.getsource(formula)))
    body = [node for node in tree.body[0].body if isinstance(node, ast.Return)]  # type: ignore[attr-defined]
    if len(body) != 1 or body[0].value is None:
        raise ValueError(f"{formula.__name__}: a formula is a docstring and one return")
    return _write(body[0].value, set(inspect.signature(formula).parameters), formula.__globals__, formula.__name__)


def _write(node: ast.expr, parameters: set[str], constants: dict[str, Any], where: str) -> str:
    match node:
        case ast.BinOp(left, operator, right) if type(operator) in OPERATORS:
            sides = [_write(side, parameters, constants, where) for side in (left, right)]
            return f"({sides[0]} {OPERATORS[type(operator)]} {sides[1]})"
        case ast.Call(ast.Name(name), [argument], []) if name in CALLS:
            return f"{CALLS[name]}({_write(argument, parameters, constants, where)})"
        case ast.Name(name) if name in parameters:
            return f"v.{name}"
        case ast.Name(name) if isinstance(constants.get(name), float):
            return repr(constants[name])
        case ast.Constant(float() | int() as value):
            return repr(value)
    raise ValueError(f"{where}: {ast.unparse(node)} is not known to the page")
