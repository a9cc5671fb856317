"""Chat templates in Jinja's immutable sandbox, with a bound on work that is a count and no clock.

A template is a program of somebody else. The sandbox keeps it away from Python's classes and from changing what it is
given. What the sandbox does not bound is bounded here: every loop step, call, filter and joined text costs units, about
one for each character that is made. A template that has used them up raises TemplateLimit. The same template and record
always use the same units, so a record is never kept on one machine and refused on another.

Methods and filters are those of a list; a template that needs another one is refused when it is compiled, or where it
calls it.
"""

import datetime
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from typing import Any

from jinja2 import nodes
from jinja2.exceptions import TemplateError
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.runtime import Context, Macro, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

MOST_SOURCE = 256 << 10  # characters of a template
STEP = 64  # units of a loop's step or a call, beside what it makes
LEAST_WORK = 16 << 20  # units of a rendering; with a second of work, and some 16 MB of text
WORK_A_CHARACTER = 64  # further units for each character of the record
MOST_NUMBER = 1 << 32  # of integers that are multiplied, or given to a method
MOST_INDENT = 16

METHODS = frozenset(
    """capitalize count endswith find get index isalnum isalpha isdecimal isdigit islower isnumeric isspace istitle
    isupper items join keys lower lstrip partition removeprefix removesuffix replace rfind rindex rpartition rsplit
    rstrip split splitlines startswith strip swapcase title upper values""".split()  # noqa: SIM905 - a list of names
)
FILTERS = frozenset(
    """abs capitalize count d default dictsort e escape first float indent int items join last length list lower map
    max min reject rejectattr replace reverse round safe select selectattr sort string title tojson trim unique upper
    wordcount""".split()  # noqa: SIM905 - a list of names
)
SIZED = (str, list, tuple, dict, range)


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


class Generation(Extension):
    """`{% generation %}`: what the assistant writes, between two marks."""

    tags = {"generation"}  # noqa: RUF012 - as Jinja declares it
    open, close = "\ufdd0", "\ufdd1"  # noncharacters; records and templates that hold them are refused

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("_marked"), [], [], body).set_lineno(line)

    def _marked(self, caller: Callable[[], str]) -> str:
        return f"{self.open}{caller()}{self.close}"


class Sandbox(ImmutableSandboxedEnvironment):
    """The environment that transformers gives to chat templates, bounded. date: what strftime_now says; None refuses
    templates that ask."""

    intercepted_binops = frozenset(("+", "*", "**", "%"))

    def __init__(self, date: datetime.date | None) -> None:
        self.work = Work()
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            optimized=False,  # nothing is computed while a template is compiled
            extensions=[Generation, loopcontrols],
            finalize=self._printed,
        )
        self.filters = {name: self._metered(self.filters[name]) for name in FILTERS & self.filters.keys()}
        self.filters["tojson"] = self._metered(to_json)
        own: dict[str, Any] = {"range": self.globals["range"], "namespace": self.globals["namespace"]}
        own |= {"dict": dict, "raise_exception": refuse, "_each": self._each, "_joined": self._joined}
        if date is not None:
            own["strftime_now"] = datetime.datetime(date.year, date.month, date.day).strftime
        self.globals = own

    def compiled(self, source: str) -> Any:
        """The template. Raises ValueError, one line, for one that cannot be compiled or is not allowed."""
        if len(source) > MOST_SOURCE:
            raise ValueError(f"{len(source)} characters given, up to {MOST_SOURCE} are allowed")
        if any(mark in source for mark in (Generation.open, Generation.close)):
            raise ValueError("it has U+FDD0 or U+FDD1, which mark trained spans here")
        try:
            tree = self.parse(source)
            self._check(tree)
            return self.from_string(_bounded(tree))
        except RecursionError:
            raise ValueError("it nests too deep") from None
        except TemplateError as error:
            where = f"line {line}: " if (line := getattr(error, "lineno", None)) else ""
            raise ValueError(f"{where}{' '.join(str(error).split())[:200]}") from None

    def _check(self, tree: nodes.Template) -> None:
        for found in tree.find_all((nodes.Filter, nodes.Extends, nodes.Include, nodes.Import, nodes.FromImport)):
            if not isinstance(found, nodes.Filter):
                raise ValueError(f"line {found.lineno}: it names another template, one that stands alone is allowed")
            if found.name not in self.filters:
                raise ValueError(f"line {found.lineno}: filter {found.name!r:.80} given, {', '.join(sorted(FILTERS))}"
                                 " are allowed")  # fmt: skip
        for found in tree.find_all(nodes.Name):
            if found.name == "strftime_now" and "strftime_now" not in self.globals:
                raise ValueError(
                    "it asks for today's date, so every day would give other texts: set `chat.date` to one date"
                )

    def wrap_str_format(self, value: Any) -> Any:
        """No format of texts: its widths are not bounded."""
        found = super().wrap_str_format(value)
        return None if found is None else _no_format

    def is_safe_callable(self, obj: Any) -> bool:
        owner = getattr(obj, "__self__", None)
        if isinstance(owner, (str, list, tuple, dict, int, float)) and obj.__name__ not in METHODS:
            return False
        return super().is_safe_callable(obj)

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        self = __self
        given = (*args, *kwargs.values())
        self.work.charge(STEP + sum(len(each) for each in given if isinstance(each, SIZED)))
        if any(isinstance(each, int) and abs(each) > MOST_NUMBER for each in given):
            raise TemplateLimit("a number that is too large given to a method")
        if isinstance(__obj, Macro):
            self.work.charge(STEP * 4)
        name, owner = getattr(__obj, "__name__", ""), getattr(__obj, "__self__", None)
        if isinstance(owner, str) and name in ("replace", "join"):
            self.work.charge(_made(name, owner, args))
        result = super().call(__context, __obj, *args, **kwargs)
        self.work.charge(len(result) if isinstance(result, SIZED) else 0)
        return result

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if operator in ("*", "**", "%"):
            numbers = all(isinstance(each, (int, float)) for each in (left, right))
            if not numbers or operator == "**" or max(abs(left), abs(right)) > MOST_NUMBER:
                plain = operator == "%" and isinstance(left, str) and not re.search(r"%[^a-zA-Z%]*[\d*]", left)
                if not plain:
                    raise TemplateLimit(f"operator {operator} of texts, lists or large numbers")
        self._size((left, right))
        return super().call_binop(context, operator, left, right)

    def _size(self, parts: Iterable[Any]) -> None:
        self.work.charge(STEP + sum(len(each) for each in parts if isinstance(each, SIZED)))

    def _printed(self, value: Any) -> Any:
        self._size((value,))
        return value

    def _joined(self, *parts: Any) -> str:
        """The operator ~."""
        self._size(parts)
        return "".join(map(str, parts))

    def _each(self, values: Any, weight: int) -> Iterator[Any]:
        """What a loop goes through. weight: characters of the template inside it."""
        for value in values:
            self.work.charge(STEP + weight)
            yield value

    def _metered(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def metered(*args: Any, **kwargs: Any) -> Any:
            given = (*args, *kwargs.values())
            self._size(given)
            if any(isinstance(each, int) and abs(each) > MOST_NUMBER for each in given):
                raise TemplateLimit("a number that is too large given to a filter")
            if function.__name__ == "do_indent" and any(isinstance(e, int) and e > MOST_INDENT for e in given):
                raise TemplateLimit(f"indent by more than {MOST_INDENT}")
            if function.__name__ in ("do_replace", "sync_do_join", "do_indent"):
                self.work.charge(sum(len(e) for e in given if isinstance(e, str)) ** 2 // 64)
            result = function(*args, **kwargs)
            self.work.charge(len(result) if isinstance(result, SIZED) else 0)
            return result

        return metered


def _made(name: str, owner: str, args: tuple[Any, ...]) -> int:
    """Most characters that replace or join make beside their arguments."""
    if name == "join":
        return len(owner) * len(args[0]) if args and isinstance(args[0], SIZED) else 0
    if len(args) < 2 or not isinstance(args[0], str) or not isinstance(args[1], str):
        return 0
    return len(args[1]) * (owner.count(args[0]) if args[0] else len(owner) + 1)


def _bounded(tree: nodes.Template) -> nodes.Template:
    """The tree with every loop and every ~ metered."""
    for loop in tree.find_all(nodes.For):
        weight = sum(len(data.data) for data in loop.find_all(nodes.TemplateData))
        call = nodes.Call(nodes.Name("_each", "load"), [loop.iter, nodes.Const(weight)], [], None, None)
        loop.iter = call.set_lineno(loop.lineno)
    _replace_concat(tree)
    return tree


def _replace_concat(node: nodes.Node) -> None:
    for name, value in node.iter_fields():
        values = value if isinstance(value, list) else [value]
        made = []
        for each in values:
            if isinstance(each, nodes.Node):
                _replace_concat(each)
                if isinstance(each, nodes.Concat):
                    each = nodes.Call(nodes.Name("_joined", "load"), each.nodes, [], None, None).set_lineno(each.lineno)
            made.append(each)
        setattr(node, name, made if isinstance(value, list) else made[0])


def _no_format(*args: Any, **kwargs: Any) -> str:
    raise TemplateLimit("format of texts")


def refuse(message: Any = "") -> None:
    """raise_exception of templates."""
    raise TemplateRefused(" ".join(str(message).split())[:200])


def to_json(
    value: Any, ensure_ascii: bool = False, indent: int | None = None, separators: Any = None, sort_keys: bool = False
) -> str:
    """The filter tojson as chat templates know it: nothing is escaped for HTML, and keys keep their order."""
    if isinstance(value, Undefined):
        raise TemplateError("tojson of something that is not there")
    if indent is not None and not (isinstance(indent, int) and 0 <= indent <= MOST_INDENT):
        raise TemplateLimit(f"tojson: indent up to {MOST_INDENT} is allowed")
    separators = tuple(separators) if separators else None
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def render(sandbox: Sandbox, template: Any, size: int, variables: Mapping[str, Any]) -> str:
    """The text of a template. size: characters of the record.

    Raises TemplateRefused, TemplateLimit, and TemplateError for whatever else goes wrong inside the template.
    """
    sandbox.work.left = LEAST_WORK + WORK_A_CHARACTER * size
    try:
        return str(template.render(**variables))
    except (TemplateRefused, TemplateLimit, TemplateError):
        raise
    except (RecursionError, MemoryError, OverflowError):
        raise TemplateLimit("it nests too deep, or its numbers are too large") from None
    except Exception as error:  # noqa: BLE001 - whatever the template's own code raises costs one record
        raise TemplateError(f"{type(error).__name__}: {' '.join(str(error).split())[:200]}") from None
