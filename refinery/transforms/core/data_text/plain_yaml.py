"""YAML into plain data, read with suspicion, and `--set` overrides upon it.

PyYAML's parser gives the events; the values are built here, counted and checked as they come.
"""

import copy
import re
from collections.abc import Iterator
from typing import Any

import yaml
from yaml.events import AliasEvent, DocumentEndEvent, Event, ScalarEvent, SequenceStartEvent

from refinery.transforms.core.params import printable_name
from refinery.transforms.core.wording import given, meant

MAX_YAML_BYTES = 1 << 20  # a recipe is a page or two; a megabyte is a wrong file
MAX_YAML_VALUES = 200_000  # after aliases are expanded: nine lines of anchors can stand for a billion values
INT_RANGE = range(-(1 << 63), 1 << 63)
MAX_YAML_DEPTH = 50  # the reader below recurses


UTF16 = (b"\xff\xfe", b"\xfe\xff")  # how such a file begins
# What PyYAML says -> what to do.
ADVICE = (
    (r"'\\t'", "indent with spaces, not with tabs"),
    (r"expected <block end>", "give the line the indentation of the keys above it"),
    (r"mapping values are not allowed", "put a value that has ': ' in it in quotes, and check the indentation"),
    (r"expected alphabetic or numeric character", "put a pattern that begins with * in quotes"),
    (r"expected ',' or '[\]}]'", "close the bracket, and put values with , or : in quotes"),
)


class RecipeError(ValueError):
    """What is wrong with a recipe, one problem per line: "near_dup.bands: 'x' (text) given, an integer is allowed"."""


# YAML 1.2's scalars, plus on and off, as PyYAML's own (YAML 1.1) read "no" (Norwegian) as False, "1e-3" as text,
# "12:30" as 750 and "2024-01-01" as a date.
_SCALARS = (
    (re.compile(r"~|null|Null|NULL|"), lambda text: None),
    (re.compile(r"true|True|TRUE|on|On|ON"), lambda text: True),
    (re.compile(r"false|False|FALSE|off|Off|OFF"), lambda text: False),
    (re.compile(r"[-+]?(0|[1-9][0-9]{0,60}(_[0-9]{1,60}){0,20})"), int),
    (re.compile(r"0x[0-9a-fA-F]{1,40}"), lambda text: int(text, 16)),
    (re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"), float),
    (re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"), lambda text: float(text.replace(".", "").lower())),
)


def load_yaml(text: str | bytes, what: str) -> Any:
    """Plain data (dict, list, str, int, float, bool, None) of one YAML document; `what` (a file name) starts errors.

    Raises RecipeError with line and column for a syntax error, a duplicate key, a key that is not text, a tag, and for
    documents over 1 MB, over 200,000 values with aliases expanded, or nested deeper than 50. `no`, `yes` and dates
    are text; on/off and true/false are booleans. An empty document is None. Cost: one pass.
    """
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    if len(data) > MAX_YAML_BYTES:
        raise RecipeError(f"{what}: {len(data)} bytes given, at most {MAX_YAML_BYTES} are allowed")
    try:
        return _YamlReader(yaml.parse(data.decode("utf-8-sig"), Loader=yaml.SafeLoader), what).document()
    except UnicodeDecodeError as error:
        form = "it is UTF-16" if data[:2] in UTF16 else f"byte {error.start} is not UTF-8"
        raise RecipeError(f"{what}: {form}; save it as UTF-8") from None
    except yaml.MarkedYAMLError as error:
        where = _position(error.problem_mark) if error.problem_mark else ""
        problem = " ".join((error.problem or "not YAML").split())
        advice = next((said for pattern, said in ADVICE if re.search(pattern, problem)), "correct it there")
        raise RecipeError(f"{what}{where}: {problem}; {advice}") from None
    except yaml.YAMLError as error:
        raise RecipeError(f"{what}: {' '.join(str(error).split())}; correct it there") from None


def _position(mark: Any) -> str:
    return f", line {mark.line + 1}, column {mark.column + 1}"


class _YamlReader:
    """Builds values from parser events: no node graph, no constructors of arbitrary types, counted as it goes."""

    def __init__(self, events: Iterator[Event], what: str) -> None:
        self.events = events
        self.what = what
        self.anchors: dict[str, tuple[Any, int, int]] = {}  # value, number of values inside, levels
        self.values = 0

    def fail(self, event: Event, problem: str) -> RecipeError:
        return RecipeError(f"{self.what}{_position(event.start_mark)}: {problem}")

    def document(self) -> Any:
        next(self.events)  # the stream starts
        if not isinstance(event := next(self.events), yaml.DocumentStartEvent):
            return None
        value = self.value(next(self.events), 1)
        while isinstance(event := next(self.events), DocumentEndEvent):
            pass
        if isinstance(event, yaml.DocumentStartEvent):
            raise self.fail(event, "a second document given, one is allowed")
        return value

    def count(self, event: Event, values: int) -> None:
        self.values += values
        if self.values > MAX_YAML_VALUES:
            raise self.fail(event, f"more than {MAX_YAML_VALUES} values, aliases expanded")

    def check_depth(self, event: Event, depth: int) -> None:
        if depth > MAX_YAML_DEPTH:
            raise self.fail(event, f"nested deeper than {MAX_YAML_DEPTH}")

    def value(self, event: Event, depth: int) -> Any:
        if isinstance(event, AliasEvent):
            if event.anchor not in self.anchors:
                raise self.fail(event, f"alias *{event.anchor} given before its anchor is complete")
            value, size, levels = self.anchors[event.anchor]
            self.count(event, size)
            self.check_depth(event, depth + levels - 1)
            return copy.deepcopy(value)
        before = self.values
        self.count(event, 1)
        self.check_depth(event, depth)
        node: Any = event  # a scalar, or the start of a sequence or mapping: all have a tag and an anchor
        if node.tag not in (None, "!", "tag:yaml.org,2002:str"):
            raise self.fail(event, f"tag {ascii(node.tag)[:60]} given, none is allowed")
        if isinstance(event, ScalarEvent):
            value = self.scalar(event)
        elif isinstance(event, SequenceStartEvent):
            value = []
            while not isinstance(child := next(self.events), yaml.SequenceEndEvent):
                value.append(self.value(child, depth + 1))
        else:
            value = self.mapping(depth)
        if node.anchor is not None:
            self.anchors[node.anchor] = value, self.values - before, _levels(value)
        return value

    def mapping(self, depth: int) -> dict[str, Any]:
        result: dict[str, Any] = {}
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            key = self.value(event, depth + 1)
            if not isinstance(key, str):
                raise self.fail(event, f"key {given(key)} given, text is allowed (in quotes if need be)")
            if key in result:
                raise self.fail(event, f"key {printable_name(key)} given twice")
            result[key] = self.value(next(self.events), depth + 1)
        return result

    def scalar(self, event: ScalarEvent) -> Any:
        if event.style is None and event.tag is None:  # plain: neither quoted nor a block
            for pattern, convert in _SCALARS:
                if pattern.fullmatch(event.value):
                    return self.bounded(event, convert(event.value))
        return event.value

    def bounded(self, event: Event, value: Any) -> Any:
        if isinstance(value, int) and value not in INT_RANGE:
            raise self.fail(event, "a huge integer given, one of 64 bits is allowed")
        return value


def _levels(value: Any) -> int:
    if isinstance(value, (dict, list)):
        return 1 + max(map(_levels, value.values() if isinstance(value, dict) else value), default=0)
    return 1


def override(data: Any, setting: str) -> Any:
    """`data` (untouched) with one `--set` applied: "near_dup.threshold=0.8", "sources[0].paths=[x]".

    Elements of a list are named by index (`sources.0`, `sources[0]`) or, where they have one, by name
    (`sources.crawl.sample=0.1`). The value is YAML. Missing sections, and sections that are off, are made; whether the
    recipe knows the key is for `parse` to say. Raises RecipeError.
    """
    path, equals, value = setting.partition("=")
    keys = re.sub(r"\[([0-9]+)\]", r".\1", path.strip()).split(".")
    if not equals or not all(keys) or any(c in "[]" for key in keys for c in key):
        raise RecipeError(f"--set {setting}: not understood, KEY.KEY=VALUE is allowed")
    result = {} if data is None else copy.deepcopy(data)
    here: Any = result
    for depth, key in enumerate(keys):
        at = ".".join(keys[:depth])
        last = depth == len(keys) - 1
        index: Any = key
        if isinstance(here, list):
            index = _list_index(here, key, f"--set {at}")
        elif not isinstance(here, dict):
            raise RecipeError(f"--set {at}: {given(here)} there, it has no key {printable_name(key)}")
        if last:
            here[index] = load_yaml(value, f"--set {path}")
        elif isinstance(here, dict) and (here.get(key) is None or isinstance(here[key], bool)):
            here[index] = {}
        here = here[index]
    return result


def _list_index(elements: list[Any], key: str, what: str) -> int:
    names = [element.get("name") if isinstance(element, dict) else None for element in elements]
    if key in names:
        return names.index(key)
    if re.fullmatch(r"[0-9]{1,9}", key) and int(key) < len(elements):
        return int(key)
    known = [str(name) for name in names if isinstance(name, str)]
    count = f"an index below {len(elements)}" if elements else "nothing (the list is empty)"
    raise RecipeError(
        f"{what}: {printable_name(key)} given, {', '.join([*known, count])} is allowed{meant(key, known)}"
    )
