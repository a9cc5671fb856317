"""Chat templates in Jinja's immutable sandbox, with a bound on work that is a count and no clock.

A template is a program of somebody else. The sandbox keeps it away from Python's classes and from changing what it is
given. What the sandbox does not bound is bounded here: every loop step, call, filter, test, comparison, slice and
joined text costs units, about one for each character or element that is made or read. A template that has used them up
raises TemplateLimit. The same template and record always use the same units, so a record is never kept on one machine
and refused on another.

Methods and filters are those of a list; a template that needs another one is refused when it is compiled, or where it
calls it.
"""

import datetime
import json
import operator
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from typing import Any

from jinja2 import nodes
from jinja2.exceptions import SecurityError, TemplateError
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.runtime import BlockReference, Context, LoopContext, Macro, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace

from refinery.transforms.tokenize.chat.bounds import (
    COMPARISONS,
    CONTAINERS,
    ELEMENT,
    MOST_INTEGER,
    SIZED,
    STEP,
    VIEWS,
    TemplateLimit,
    TemplateRefused,
    Work,
    bounded,
    clock,
    conversions,
    counted_steps,
    replaced,
    weight_of,
    within,
)

__all__ = ["Generation", "Sandbox", "TemplateLimit", "TemplateRefused", "render"]

MOST_SOURCE = 256 << 10  # characters of a template
LEAST_WORK = 16 << 20  # units of a rendering; with a second of work, and some 16 MB of text
WORK_A_CHARACTER = 64  # further units for each character of the record
MOST_NUMBER = 1 << 32  # of integers that are given to a method or filter
MOST_INDENT = 16
MOST_DIGITS = 32  # of round

METHODS = frozenset(
    """capitalize count endswith find get index isalnum isalpha isdecimal isdigit islower isnumeric isspace istitle
    isupper items join keys lower lstrip partition removeprefix removesuffix replace rfind rindex rpartition rsplit
    rstrip split splitlines startswith strip swapcase title upper values""".split()  # noqa: SIM905 - a list of names
)
# Filters that make texts of what they are given, that compare it, copy it, go through it, and those that cost a call.
TEXTUAL = frozenset(
    """capitalize e escape indent join lower replace safe string title tojson trim upper
    wordcount""".split()  # noqa: SIM905 - a list of names
)
COMPARING = frozenset("dictsort max min sort unique".split())  # noqa: SIM905 - a list of names
COPYING = frozenset("abs float int list reverse round".split())  # noqa: SIM905 - a list of names
CHOOSING = frozenset("map reject rejectattr select selectattr".split())  # noqa: SIM905 - a list of names
FILTERS = TEXTUAL | COMPARING | COPYING | CHOOSING | frozenset(
    "count d default first items last length".split()  # noqa: SIM905 - as above
)  # fmt: skip
LIGHT_TESTS = frozenset(
    """boolean callable defined escaped false float integer iterable mapping none number sameas sequence string true
    undefined""".split()  # noqa: SIM905 - a list of names
)
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "eq": operator.eq, "ne": operator.ne, "gt": operator.gt, "gteq": operator.ge, "lt": operator.lt,
    "lteq": operator.le, "in": lambda value, inside: value in inside,
    "notin": lambda value, inside: value not in inside,
}  # fmt: skip


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

    intercepted_binops = frozenset(("+", "-", "*", "/", "//", "%", "**"))

    def __init__(self, date: datetime.date | None) -> None:
        self.work = Work()
        self._weight = 0  # of the whole template
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            optimized=False,  # nothing is computed while a template is compiled
            extensions=[Generation, loopcontrols],
            finalize=self._printed,
        )
        filters = {**self.filters, "tojson": to_json}
        self.filters = {name: self._metered(name, filters[name]) for name in FILTERS & filters.keys()}
        self.tests = {name: self._metered_test(name, test) for name, test in dict[str, Any](self.tests).items()}
        own: dict[str, Any] = {"range": self.globals["range"], "namespace": self.globals["namespace"]}
        own |= {"dict": dict, "raise_exception": refuse}
        if date is not None:
            own["strftime_now"] = clock(date)
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
            self._weight = weight_of(tree)
            return self.from_string(bounded(tree))
        except RecursionError:
            raise ValueError("it nests too deep") from None
        except (TemplateError, SyntaxError, MemoryError, OverflowError, ValueError) as error:
            where = (
                f"line {line}: " if isinstance(error, TemplateError) and (line := getattr(error, "lineno", 0)) else ""
            )
            said = error.msg if isinstance(error, SyntaxError) else str(error) or type(error).__name__
            raise ValueError(f"{where}{' '.join(said.split())[:600]}") from None

    def _check(self, tree: nodes.Template) -> None:
        for found in tree.find_all((nodes.Filter, nodes.Extends, nodes.Include, nodes.Import, nodes.FromImport)):
            if not isinstance(found, nodes.Filter):
                raise ValueError(f"line {found.lineno}: it names another template, one that stands alone is allowed")
            if found.name not in self.filters:
                raise ValueError(f"line {found.lineno}: filter {found.name!r:.80} given, {', '.join(sorted(FILTERS))}"
                                 " are allowed")  # fmt: skip
        for number in tree.find_all(nodes.Const):
            if isinstance(number.value, int) and abs(number.value) > MOST_INTEGER:
                raise ValueError(f"line {number.lineno}: it has an integer that is too large")
        for name in tree.find_all(nodes.Name):
            if name.name == "strftime_now" and "strftime_now" not in self.globals:
                raise ValueError(
                    "it asks for today's date, so every day would give other texts: set `chat.date` to one date"
                )

    def wrap_str_format(self, value: Any) -> Any:
        """No format of texts: its widths are not bounded."""
        found = super().wrap_str_format(value)
        return None if found is None else _no_format

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        if isinstance(obj, VIEWS) and attr not in METHODS:
            return False
        return super().is_safe_attribute(obj, attr, value)

    def is_safe_callable(self, obj: Any) -> bool:
        owner = getattr(obj, "__self__", None)
        if isinstance(owner, (*SIZED, int, float)) and obj.__name__ not in METHODS:
            return False
        return not isinstance(owner, type) and super().is_safe_callable(obj)

    def getitem(self, obj: Any, argument: Any) -> Any:
        if isinstance(argument, CONTAINERS):
            self.work.deep((argument,))
        return super().getitem(obj, argument)

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        self, work = __self, __self.work
        owner = getattr(__obj, "__self__", None)
        if owner is self:  # what `bounded` put into the tree
            return __obj(*args)
        if not self.is_safe_callable(__obj):
            raise SecurityError(f"a call of {getattr(__obj, '__name__', type(__obj).__name__)} is not safe")
        if isinstance(owner, str) and __obj.__name__ == "join":
            args = tuple(list(each) if isinstance(each, Iterator) else each for each in args)
        given = (*args, *(each for key, each in kwargs.items() if key not in ("_loop_vars", "_block_vars")))
        work.charge(STEP)
        if any(isinstance(each, int) and abs(each) > MOST_NUMBER for each in given):
            raise TemplateLimit("a number that is too large given to a method")
        if isinstance(__obj, LoopContext):  # a step down in a recursive loop
            args = (self._each(args[0], self._weight), *args[1:]) if args else args
        elif isinstance(__obj, (Macro, BlockReference)) or __obj is Namespace:
            work.shallow(given)
            work.charge(STEP * 2)
        elif isinstance(owner, dict):
            work.deep(given[:1])
        else:
            work.deep(given, plain=__obj is refuse)
            self._charge_method(getattr(__obj, "__name__", ""), owner, args)
        result = within(super().call(__context, __obj, *args, **kwargs))
        if not isinstance(owner, dict):
            work.shallow((result,))
            work.charge(len(result) * 4 if isinstance(owner, str) and isinstance(result, list) else 0)
        return result

    def _charge_method(self, name: str, owner: Any, args: tuple[Any, ...]) -> None:
        """Charge for a method of a text or list, beside its arguments."""
        if isinstance(owner, str):
            self.work.charge(len(owner))
            if name == "replace":
                self.work.charge(replaced(owner, args))
            elif name == "join" and args and isinstance(args[0], SIZED):
                self.work.charge(len(owner) * len(args[0]))
            elif name in ("strip", "lstrip", "rstrip") and args and isinstance(args[0], str):
                self.work.charge(len(owner) * len(args[0]) >> 4)
        elif isinstance(owner, CONTAINERS):
            for each in args[:1]:
                self.work.found(each, owner)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if isinstance(left, Undefined) or isinstance(right, Undefined):
            return super().call_binop(context, operator, left, right)  # Jinja says which one
        if operator == "%" and isinstance(left, str):
            self.work.charge(STEP + len(left))
            for _ in range(max(1, conversions(left))):
                self.work.deep((right,), plain=True)
        elif operator == "+":
            self.work.charge(STEP)
            self.work.shallow((left, right))
        elif not all(isinstance(each, (int, float)) for each in (left, right)):
            raise TemplateLimit(f"operator {operator} of texts or lists")
        elif operator == "**" and isinstance(within(left), int) and isinstance(within(right), int):
            within(1 << 64 if abs(left) > 1 and right > 63 else 0)
        return within(super().call_binop(context, operator, left, right))

    def _printed(self, value: Any) -> Any:
        self.work.charge(STEP)
        self.work.deep((value,), plain=True)
        return value

    def _joined(self, *parts: Any) -> str:
        """The operator ~."""
        self.work.charge(STEP)
        self.work.deep(parts, plain=True)
        return "".join(map(str, parts))

    def _each(self, values: Any, weight: int) -> Iterator[Any]:
        """What a loop goes through. weight: of the loop's body."""
        return counted_steps(self.work, values, weight)

    def _entered(self, weight: int) -> None:
        """The first step of a macro's or block's body."""
        self.work.charge(weight)

    def _hashed(self, key: Any) -> Any:
        """A key of a dict."""
        self.work.deep((key,))
        return key

    def _sliced(self, value: Any, start: Any, stop: Any, step: Any) -> Any:
        made = value[start:stop:step]  # as large as its value at most, and that was charged for
        self.work.charge(ELEMENT)
        self.work.shallow((made,))
        return made

    def _compared(self, left: Any, *operands: Any) -> Any:
        """A chain of comparisons: operators and values by turns."""
        result: Any = True
        for name, right in zip(operands[::2], operands[1::2], strict=True):
            if name in ("in", "notin") and isinstance(right, Iterator):
                right = list(right)
            self.work.compared(name, left, right)
            result = OPERATORS[name](left, right)
            if not result:
                break
            left = right
        return result

    def _metered_test(self, name: str, test: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(test)
        def metered(*args: Any) -> Any:
            self.work.charge(ELEMENT)
            if name in COMPARISONS:
                return self._compared(args[0], COMPARISONS[name], *args[1:])
            if name in ("odd", "even", "divisibleby"):
                if not all(isinstance(each, (int, float, Undefined)) for each in args):
                    raise TemplateError(f"test {name} needs numbers")
            elif name in ("upper", "lower"):
                self.work.deep(args, plain=True)
            elif name not in LIGHT_TESTS:
                self.work.deep(args)
            return test(*args)

        return metered

    def _metered(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        has_context = hasattr(function, "jinja_pass_arg")

        @wraps(function)
        def metered(*args: Any, **kwargs: Any) -> Any:
            first, values = args[:has_context], args[has_context:]
            self.work.charge(STEP)
            if name in TEXTUAL or name in COMPARING or name == "list":
                values = tuple(list(each) if isinstance(each, Iterator) else each for each in values)
            elif name in CHOOSING and values and values[0]:
                values = (self._each(values[0], 0), *values[1:])
            self._charge_filter(name, values, kwargs)
            result = within(function(*first, *values, **kwargs))
            if isinstance(result, Iterator):
                return result if name in CHOOSING else self._each(result, 0)
            if name in TEXTUAL or name in COMPARING or name in COPYING:
                self.work.shallow((result,))
                self.work.charge(len(result) * 4 if isinstance(result, list) and isinstance(values[0], str) else 0)
            return result

        return metered

    def _charge_filter(self, name: str, values: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        given = (*values, *kwargs.values())
        if any(isinstance(each, int) and abs(each) > MOST_NUMBER for each in given[1:]):
            raise TemplateLimit("a number that is too large given to a filter")
        if name == "round" and any(isinstance(each, int) and abs(each) > MOST_DIGITS for each in given[1:]):
            raise TemplateLimit(f"round to more than {MOST_DIGITS} digits")
        if name == "indent" and any(isinstance(each, int) and each > MOST_INDENT for each in given[1:]):
            raise TemplateLimit(f"indent by more than {MOST_INDENT}")
        if name in COPYING:
            self.work.shallow(given)
        elif name == "tojson":
            texts = [each for part in given[1:] for each in (part if isinstance(part, (list, tuple)) else [part])]
            each = ELEMENT + sum(len(text) for text in texts if isinstance(text, str))
            self.work.deep(given, plain=True, each=each, indent=MOST_INDENT if "indent" in kwargs or values[1:] else 0)
        elif name in TEXTUAL:
            self.work.deep(given, plain=True)
            self._charge_text(name, given)
        elif name in COMPARING:
            units = self.work.deep(given)
            length = len(given[0]) if isinstance(given[0], SIZED) else 0
            self.work.charge(units * length.bit_length() if name in ("sort", "dictsort") else 0)

    def _charge_text(self, name: str, given: tuple[Any, ...]) -> None:
        """Charge for what a filter puts into a text."""
        sizes = [len(each) if isinstance(each, str) else self.work.deep((each,)) for each in given]
        if name == "replace" and len(given) > 2:
            self.work.charge(replaced(str(given[0]), (str(given[1]), str(given[2]))))
        elif name == "join":
            self.work.charge((len(given[0]) if isinstance(given[0], SIZED) else 0) * sum(sizes[1:]))
        elif name == "trim":
            self.work.charge(sizes[0] * sum(sizes[1:]) >> 4)
        elif name == "indent":
            width = max((len(each) for each in given[1:] if isinstance(each, str)), default=MOST_INDENT)
            self.work.charge((len(str(given[0]).splitlines()) + 1) * width)


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
