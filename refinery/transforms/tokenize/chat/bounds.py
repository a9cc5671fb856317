"""What the sandbox of chat templates counts: units of work, numbers, formats, and the tree of a template with calls
that count where Jinja would write plain Python."""

import datetime
import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from jinja2 import nodes
from jinja2.exceptions import TemplateError
from jinja2.runtime import Undefined
from jinja2.utils import Namespace

STEP = 64  # units of a loop's step or a call, beside what it makes
ELEMENT = 16  # units of an element that is looked at, or of a comparison
MOST_INTEGER = 1 << 63
MOST_NESTED = 200  # containers inside each other, where their content counts
VIEWS: tuple[Any, ...] = (type({}.keys()), type({}.values()), type({}.items()))
CONTAINERS = (list, tuple, dict, range, *VIEWS)
SIZED = (str, *CONTAINERS)
COMPARISONS = {"==": "eq", "!=": "ne", ">": "gt", ">=": "gteq", "<": "lt", "<=": "lteq", "ge": "gteq", "le": "lteq"}
COMPARISONS |= {"equalto": "eq", "greaterthan": "gt", "lessthan": "lt"}
COMPARISONS |= {name: name for name in ("eq", "ne", "gt", "lt", "in")}  # tests of Jinja, as operators of its tree
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()  # noqa: SIM905 - a list of names
MONTHS = (
    "January February March April May June July August September October November December".split()  # noqa: SIM905 - as above
)


class TemplateLimit(Exception):
    """A template did more work, or made more text, than a record of this size may cost."""


class TemplateRefused(Exception):
    """What a template says of a record through `raise_exception`."""


class Work:
    """Units that are left of a rendering."""

    def __init__(self) -> None:
        self.left = 0

    def charge(self, units: int) -> None:
        """Take so many. Raises TemplateLimit where there are fewer."""
        self.left -= units
        if self.left < 0:
            raise TemplateLimit("more work or more text than a record of this size may cost")

    def shallow(self, values: Iterable[Any]) -> None:
        """Charge for copies of values: what is inside containers is not copied. Units follow the memory of a copy."""
        for value in values:
            if isinstance(value, (list, tuple)):
                self.charge(len(value) >> 2)
            elif isinstance(value, SIZED):
                self.charge(len(value) * (2 if isinstance(value, dict) else 1))

    def deep(self, values: Iterable[Any], plain: bool = False, each: int = ELEMENT, indent: int = 0) -> int:
        """Charge for everything in values, and as often as it is in them. Returns the units.

        plain: refuse what has no text of its own, such as functions, since the text would have their address. each:
        units of an element beside its characters; indent: further ones for each level.
        """
        before = self.left
        stack = [iter(values)]
        while stack:
            value = next(stack[-1], stack)
            if value is stack:
                stack.pop()
                continue
            self.charge(each + indent * len(stack))
            if isinstance(value, str):
                self.charge(len(value))
            elif isinstance(value, dict):
                stack.append(itertools.chain(value.keys(), value.values()))
            elif isinstance(value, CONTAINERS) and not (plain and isinstance(value, VIEWS)):
                stack.append(iter(value))
            elif plain and not (value is None or isinstance(value, (int, float, Undefined))):
                raise TemplateError(f"the text of a {type(value).__name__} is not allowed")
            elif type(value) is Namespace:
                stack.append(iter(value._Namespace__attrs.values()))
            if len(stack) > MOST_NESTED:
                raise TemplateLimit(f"lists and objects nest deeper than {MOST_NESTED}")
        return before - self.left

    def compared(self, operator: str, left: Any, right: Any) -> None:
        """Charge for one comparison, in the names of Jinja's tree."""
        self.charge(ELEMENT)
        if operator in ("in", "notin"):
            self.found(left, right)
        elif isinstance(left, str) and isinstance(right, str):
            self.charge(min(len(left), len(right)) >> 4)
        elif isinstance(left, CONTAINERS) and isinstance(right, CONTAINERS):
            kinds = type(left), type(right)
            if operator not in ("eq", "ne") or kinds not in ((list, list), (dict, dict)) or len(left) == len(right):
                self.deep((left, right))

    def found(self, value: Any, inside: Any) -> None:
        """Charge for a search of a value."""
        if isinstance(value, CONTAINERS):
            self.deep((value,) if isinstance(inside, dict) else (value, inside))
        elif isinstance(inside, str):
            self.charge(len(inside))
        elif isinstance(inside, CONTAINERS):
            size = 1 if isinstance(inside, (dict, VIEWS[0])) else len(inside)
            self.charge(size * (1 + (len(value) >> 6 if isinstance(value, str) else 0)))


def within(value: Any) -> Any:
    """The value. Raises TemplateLimit for an integer of more than 64 bits."""
    if isinstance(value, int) and abs(value) > MOST_INTEGER:
        raise TemplateLimit("an integer that is too large")
    return value


def conversions(text: str) -> int:
    """How many values `text % values` writes. Raises TemplateLimit for flags, widths, and unusual conversions."""
    rest, count = re.subn(r"%(?:[sdr%]|\(\w*\)[sd])", "", text)
    if "%" in rest:
        raise TemplateLimit("% of texts allows %s, %d, %r, %%, %(name)s and %(name)d")
    return count


def replaced(text: str, args: tuple[Any, ...]) -> int:
    """Most characters that replace puts into a text."""
    if len(args) < 2 or not isinstance(args[0], str) or not isinstance(args[1], str):
        return 0
    return len(args[1]) * (text.count(args[0]) if args[0] else len(text) + 1)


def clock(date: datetime.date) -> Callable[[str], str]:
    """strftime_now at the start of a day, in English on every machine."""
    month, day = MONTHS[date.month - 1], DAYS[date.weekday()]
    known = {"Y": f"{date.year:04}", "y": f"{date.year % 100:02}", "m": f"{date.month:02}", "-m": f"{date.month}"}
    known |= {"d": f"{date.day:02}", "-d": f"{date.day}", "e": f"{date.day:2}", "j": f"{date.timetuple().tm_yday:03}"}
    known |= {"B": month, "b": month[:3], "A": day, "a": day[:3], "H": "00", "M": "00", "S": "00", "%": "%"}

    def directive(match: re.Match[str]) -> str:
        if match[1] not in known:
            raise TemplateError(f"strftime_now: %{match[1]!r:.10} given, %{' %'.join(known)} are allowed")
        return known[match[1]]

    def strftime_now(form: str) -> str:
        if not isinstance(form, str):
            raise TemplateError(f"strftime_now: a text is needed, {type(form).__name__} given")
        return re.sub(r"%(-?.|-?$)", directive, form, flags=re.DOTALL)

    return strftime_now


def weight_of(node: nodes.Node) -> int:
    """What one pass through a part of a template costs: its characters of text, and its expressions."""
    return sum(len(found.data) if isinstance(found, nodes.TemplateData) else 1 for found in node.find_all(nodes.Node))


def bounded(tree: nodes.Template) -> nodes.Template:
    """The tree with calls of the sandbox's own methods where Jinja would compile loops, slices, comparisons, ~, keys
    and bodies of macros to Python that nothing counts."""
    bodies: list[nodes.Macro | nodes.CallBlock | nodes.Block] = [
        *tree.find_all(nodes.Macro),
        *tree.find_all(nodes.CallBlock),
        *tree.find_all(nodes.Block),
    ]
    for body in bodies:
        body.body.insert(0, nodes.ExprStmt(_call(body, "_entered", [nodes.Const(weight_of(body))])))
    for loop in list(tree.find_all(nodes.For)):
        loop.iter = _call(loop, "_each", [loop.iter, nodes.Const(weight_of(loop))])
    for pair in list(tree.find_all(nodes.Pair)):
        if not isinstance(pair.key, nodes.Const):
            pair.key = _call(pair, "_hashed", [pair.key])
    _rewrite(tree)
    return tree


def _rewrite(node: nodes.Node) -> None:
    for name, value in node.iter_fields():
        values = value if isinstance(value, list) else [value]
        made = []
        for each in values:
            if isinstance(each, nodes.Node):
                _rewrite(each)
                each = _counted(each)
            made.append(each)
        setattr(node, name, made if isinstance(value, list) else made[0])


def _counted(node: nodes.Node) -> nodes.Node:
    if isinstance(node, nodes.Concat):
        return _call(node, "_joined", node.nodes)
    if isinstance(node, nodes.Compare):
        operands = [part for each in node.ops for part in (nodes.Const(each.op), each.expr)]
        return _call(node, "_compared", [node.expr, *operands])
    if isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Slice):
        parts = (node.arg.start, node.arg.stop, node.arg.step)
        return _call(node, "_sliced", [node.node, *(nodes.Const(None) if part is None else part for part in parts)])
    return node


def _call(node: nodes.Node, method: str, args: list[Any]) -> nodes.Call:
    call = nodes.Call(nodes.EnvironmentAttribute(method), args, [], None, None)
    call.set_lineno(node.lineno, override=True)
    return call


def counted_steps(work: Work, values: Iterable[Any], weight: int) -> Iterator[Any]:
    """The values, each for a step and its weight."""
    for value in values:
        work.charge(STEP + weight)
        yield value
