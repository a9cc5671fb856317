"""The reader of parameters: every error is one line with path, given and allowed; what is read can be written back."""

import pickle
import threading
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field, PydanticSchemaGenerationError, create_model

from refinery.pipelines.recipe.descriptions import descriptions
from refinery.pipelines.recipe.params import parse
from refinery.transforms.core.data_text.plain_yaml import RecipeError, load_yaml
from refinery.transforms.core.params import Count, Params, ParamsError, Positive, Share, allowed
from tests.pipelines.run.example_recipe import Limits, NearDup, Recipe, Source, read


def test_reads_every_type() -> None:
    text = """
name: x
sources: [{name: a, paths: [p, q], format: warc, sample: 1, cap: 1_000}]
limits: {ratio: off}
near_dup: {threshold: 8e-1}
quality: on
exact_dup: false
thresholds: {no: 0.5, de: 1}
nested: [[1, 2], []]
"""
    assert read(text) == Recipe(
        name="x",
        sources=(Source(name="a", paths=("p", "q"), format="warc", sample=1.0, cap=1000),),
        limits=Limits(bytes=7, ratio=None),
        near_dup=NearDup(threshold=0.8),
        quality=NearDup(),
        exact_dup=False,
        thresholds={"de": 1.0, "no": 0.5},
        nested=((1, 2), ()),
        verbose=None,
    )
    assert list(read(text).thresholds) == ["de", "no"]  # in key order, whatever the file's
    assert type(read(text).sources[0].sample) is float


@pytest.mark.parametrize("off", ["null", "off", "false", "~", ""])
def test_an_optional_section_is_switched_off(off: str) -> None:
    assert read(f"name: x\nnear_dup: {off}").near_dup is None


@pytest.mark.parametrize("on", ["on", "true", "{}"])
def test_an_optional_section_is_switched_on(on: str) -> None:
    assert read(f"name: x\nquality: {on}").quality == NearDup()


def test_defaults_of_a_section_are_those_of_its_field() -> None:
    for text in ("", "limits:", "limits: on", "limits: {}"):
        assert read(f"name: x\n{text}").limits == Limits(bytes=7)
    assert read("name: x\nlimits: {ratio: 1}").limits == Limits(bytes=7, ratio=1.0)


def test_off_is_a_choice_where_the_class_has_it() -> None:
    assert read("name: x\nsources: [{name: a, paths: [], format: off}]").sources[0].format == "off"


PROBLEMS = {
    "near_dup: {threshold: 1.5}": "near_dup.threshold: 1.5 given, a number above 0 and up to 1 is allowed",
    "near_dup: {treshold: 1}": "near_dup.treshold: unknown key, did you mean threshold?",
    "near_dup: {zzz: 1}": "near_dup.zzz: unknown key, threshold, bands are allowed",
    "near_dup: {bands: x}": "near_dup.bands: 'x' (text) given, an integer is allowed",
    "near_dup: {bands: 2.0}": "near_dup.bands: 2.0 (a number) given, an integer is allowed",
    "near_dup: {bands: on}": "near_dup.bands: on given, an integer is allowed",
    "near_dup: {bands: }": "near_dup.bands: null given, an integer is allowed",
    "near_dup: {bands: 99999999999999999999}": (
        "r.yaml, line 2, column 19: a huge integer given, one of 64 bits is allowed"
    ),
    "near_dup: {threshold: true}": "near_dup.threshold: on given, a number above 0 and up to 1 is allowed",
    "near_dup: {threshold: .nan}": "near_dup.threshold: nan (a number) given, a finite number is allowed",
    "near_dup: {threshold: 1e999}": "near_dup.threshold: inf (a number) given, a finite number is allowed",
    "near_dup: 3": "near_dup: 3 (an integer) given, a section (keys threshold, bands) or null is allowed",
    "limits: off": "limits: off given, a section (keys bytes, ratio) is allowed",
    "limits: {ratio: a}": "limits.ratio: 'a' (text) given, a number or null is allowed",
    "sources: [{name: a}]": "sources[0].paths: nothing given, a list of texts is required",
    "sources: [{name: a, paths: x}]": "sources[0].paths: 'x' (text) given, a list of texts is allowed: [\"x\"]",
    "sources: [{name: a, paths: [x, 1]}]": "sources[0].paths[1]: 1 (an integer) given, text is allowed",
    "sources: [{name: a, paths: [], format: wrac}]": (
        "sources[0].format: 'wrac' (text) given, one of auto, warc, off is allowed (did you mean warc?)"
    ),
    "sources: [{name: a, paths: [], cap: 1.5}]": (
        "sources[0].cap: 1.5 (a number) given, an integer or null is allowed"
    ),
    "sources: {}": (
        "sources: a mapping of 0 keys given, a list, each a section (keys name, paths, format, sample, cap), is allowed"
        " (begin each element with `- `)"
    ),
    "exact_dup: yes": "exact_dup: 'yes' (text) given, on or off is allowed",
    "exact_dup: 1": "exact_dup: 1 (an integer) given, on or off is allowed",
    "exact_dup: ''": "exact_dup: '' (empty text) given, on or off is allowed",
    "thresholds: [1]": "thresholds: a list of 1 value given, a mapping of names to numbers is allowed",
    "thresholds: {en: high}": "thresholds.en: 'high' (text) given, a number is allowed",
    'thresholds: {"a\\nb": high}': "thresholds.'a\\nb': 'high' (text) given, a number is allowed",
    "nested: [[1], [a]]": "nested[1][0]: 'a' (text) given, an integer is allowed",
    "verbose: 3": "verbose: 3 (an integer) given, on or off or null is allowed",
}


@pytest.mark.parametrize(("text", "line"), PROBLEMS.items())
def test_a_problem_is_one_line(text: str, line: str) -> None:
    with pytest.raises(RecipeError) as caught:
        read(f"name: x\n{text}")
    assert str(caught.value) == line


def test_problems_of_the_whole() -> None:
    with pytest.raises(RecipeError, match=r"^this recipe cannot be$"):
        read("name: bad")
    with pytest.raises(RecipeError, match=r"^recipe: 'x' \(text\) given, a section \(keys name"):
        read("x")
    with pytest.raises(RecipeError, match=r"^a\.b: 3 \(an integer\) given"):
        parse(NearDup, 3, "a.b")
    with pytest.raises(RecipeError, match=r"^a: this recipe cannot be$"):
        parse(Recipe, {"name": "bad"}, "a")


def test_every_problem_is_reported_up_to_a_limit() -> None:
    with pytest.raises(RecipeError) as caught:
        read("near_dup: {threshold: 2}\nlimits: {bytes: x}\nnope: 1")
    assert [line.split(":")[0] for line in str(caught.value).splitlines()] == [
        "name",
        "limits.bytes",
        "near_dup.threshold",
        "nope",
    ]
    with pytest.raises(RecipeError, match=r"\nand 10 problems more$"):
        parse(Recipe, {"name": "x", **{f"k{i}" * 9: 1 for i in range(30)}})


def test_long_values_stay_short() -> None:
    with pytest.raises(RecipeError) as caught:
        parse(NearDup, {"bands": "x" * 10_000_000, "\ud800" * 1000: 1, "y" * 1_000_000: 2})
    assert all(len(line) < 200 and line.isprintable() for line in str(caught.value).splitlines())


def test_a_type_that_cannot_be_read_is_the_programmers_error() -> None:
    with pytest.raises(PydanticSchemaGenerationError):
        create_model("Odd", __base__=Params, a=(threading.Thread, ...))


class Limited(Params):
    """One field for each form of limits."""

    share: Share = 0.5
    ratio: Annotated[float, Field(gt=0, le=1)] = 0.5
    open: Annotated[float, Field(gt=0, lt=1)] = 0.5
    half: Annotated[float, Field(ge=0, lt=1)] = 0.5
    wide: Annotated[float, Field(gt=0)] = 0.5
    low: Annotated[float, Field(lt=1)] = 0.5
    positive: Positive = 1
    count: Count | None = None
    most: Annotated[int, Field(le=9)] = 1
    byte: Annotated[int, Field(ge=1, lt=256)] = 1
    code: Annotated[int, Field(ge=-1, le=9)] = 1
    text: Annotated[str, Field(min_length=1)] = "x"
    word: Annotated[str, Field(min_length=3)] = "xxx"
    some: Annotated[tuple[str, ...], Field(min_length=1, max_length=2)] = ("x",)
    each: tuple[Positive, ...] = ()
    named: Mapping[str, Share | None] = {}


LIMITS = [
    ("share", 2, "share: 2 given, a number from 0 to 1 is allowed"),
    ("share", -0.5, "share: -0.5 given, a number from 0 to 1 is allowed"),
    ("share", "x", "share: 'x' (text) given, a number from 0 to 1 is allowed"),
    ("ratio", 0, "ratio: 0 given, a number above 0 and up to 1 is allowed"),
    ("open", 1, "open: 1 given, a number above 0 and below 1 is allowed"),
    ("half", 1, "half: 1 given, 0 or more and below 1 is allowed"),
    ("wide", 0, "wide: 0 given, a number above 0 is allowed"),
    ("low", 1, "low: 1 given, a number below 1 is allowed"),
    ("positive", 0, "positive: 0 given, 1 or more is allowed"),
    ("positive", -(10**400), "positive: a huge integer given, 1 or more is allowed"),
    ("positive", 1.5, "positive: 1.5 (a number) given, an integer of 1 or more is allowed"),
    ("count", -1, "count: -1 given, 0 or more or null is allowed"),
    ("count", "x", "count: 'x' (text) given, an integer of 0 or more or null is allowed"),
    ("most", 10, "most: 10 given, an integer up to 9 is allowed"),
    ("byte", 256, "byte: 256 given, an integer from 1 to 255 is allowed"),
    ("code", -2, "code: -2 given, an integer from -1 to 9 is allowed"),
    ("text", "", "text: '' (empty text) given, text that is not empty is allowed"),
    ("word", "xx", "word: 'xx' (text) given, text of 3 characters or more is allowed"),
    ("some", [], "some: a list of 0 values given, 1 or more are allowed"),
    ("some", ["a", "b", "c"], "some: a list of 3 values given, up to 2 are allowed"),
    ("some", [1], "some[0]: 1 (an integer) given, text is allowed"),  # not that there are too few
    ("each", "x", "each: 'x' (text) given, a list, each an integer of 1 or more, is allowed"),
    ("each", [1, 0], "each[1]: 0 given, 1 or more is allowed"),
    ("named", {"a": 2}, "named.a: 2 given, a number from 0 to 1 or null is allowed"),
]


@pytest.mark.parametrize(("field", "value", "line"), LIMITS)
def test_limits_say_what_they_allow(field: str, value: Any, line: str) -> None:
    with pytest.raises(ParamsError) as caught:
        Limited(**{field: value})
    assert caught.value.problems == (line,)


def test_values_at_their_limits_are_allowed() -> None:
    at = {"share": 0, "ratio": 1, "half": 0, "positive": 1, "count": 0, "most": 9, "code": -1, "text": "y"}
    made = Limited(**at, word="abc", some=["a", "b"], named={"b": None, "a": 1})
    assert {name: getattr(made, name) for name in at} == at
    assert (made.some, list(made.named), type(made.share), type(made.named["a"])) == (
        ("a", "b"),
        ["a", "b"],
        float,
        float,
    )


def test_what_types_allow_in_words() -> None:
    assert allowed(Literal["on", "off"]) == "one of on, off"
    assert allowed(Limits) == "a section (keys bytes, ratio)"
    assert allowed(tuple[int, ...]) == "a list of integers"
    assert allowed(Mapping[str, tuple[str, ...]]) == "a mapping of names to a list of texts"
    assert allowed(bool | None) == "on or off or null"


class Switch(Params):
    mode: Literal["auto", "on", "off"] = "auto"
    level: Literal["low", "high"] = "low"


@pytest.mark.parametrize("written", ["on", "off", "auto"])
def test_on_and_off_are_words_where_a_choice_has_them(written: str) -> None:
    assert parse(Switch, load_yaml(f"mode: {written}", "r.yaml")).mode == written


def test_on_is_no_word_where_a_choice_lacks_it() -> None:
    with pytest.raises(RecipeError, match=r"^level: on given, one of low, high is allowed$"):
        parse(Switch, load_yaml("level: on", "r.yaml"))


def test_sections_inside_lists_and_mappings() -> None:
    found = read("""
name: x
sources: [{name: a, paths: [], cap: off, sample: -0.0}]
by_source: {b: off, a: on, c: {threshold: 1}, d: }
""")
    assert found.sources == (Source(name="a", paths=(), cap=None, sample=0.0),)
    assert str(found.sources[0].sample) == "0.0"  # equal values, equal fingerprints
    expected = {"a": NearDup(), "b": None, "c": NearDup(threshold=1.0), "d": None}
    assert found.by_source == expected and list(found.by_source) == sorted(expected)


def test_problems_inside_lists_and_mappings_carry_their_path() -> None:
    with pytest.raises(RecipeError) as caught:
        read("""
name: x
sources: [{name: a, paths: []}, {name: 1, path: [], format: off, sample: x}]
by_source: {"my-crawl": {threshold: 2}, "b c": {band: 1}, d: 7, e: {bands: x}}
""")
    assert str(caught.value).splitlines() == [
        "sources[1].name: 1 (an integer) given, text is allowed",
        "sources[1].paths: nothing given, a list of texts is required",
        "sources[1].sample: 'x' (text) given, a number is allowed",
        "sources[1].path: unknown key, did you mean paths?",
        "by_source.'b c'.band: unknown key, did you mean bands?",
        "by_source.d: 7 (an integer) given, a section (keys threshold, bands) or null is allowed",
        "by_source.e.bands: 'x' (text) given, an integer is allowed",
        "by_source.my-crawl.threshold: 2 given, a number above 0 and up to 1 is allowed",
    ]


class Outer(Params):
    """Sections two deep, the inner one with a check of its own."""

    inner: tuple[Recipe, ...] = ()
    one: Limited = Limited()


def test_a_section_s_own_check_is_placed_too() -> None:
    with pytest.raises(ParamsError) as caught:
        Outer(inner=[{"name": "bad"}, {"name": "x", "by_source": {"a.b'c": {"bands": 1.5}}}], one={"share": 7})
    assert caught.value.problems == (
        "inner[0]: this recipe cannot be",
        'inner[1].by_source."a.b\'c".bands: 1.5 (a number) given, an integer is allowed',
        "one.share: 7 given, a number from 0 to 1 is allowed",
    )


def test_errors_and_parameters_survive_pickling() -> None:
    with pytest.raises(ParamsError) as caught:
        NearDup(threshold=2, bands="x")
    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301
    assert type(again) is ParamsError and isinstance(again, ValueError)
    assert (again.problems, str(again)) == (caught.value.problems, str(caught.value))
    recipe = read("name: x\nby_source: {b: , a: {bands: 3}}")
    assert pickle.loads(pickle.dumps(recipe)) == recipe  # noqa: S301


def test_parameters_are_frozen_and_replaced() -> None:
    before = NearDup(bands=3)
    with pytest.raises(ValueError, match="frozen"):
        before.bands = 4  # type: ignore[misc]
    assert before.replace(threshold=1) == NearDup(threshold=1.0, bands=3)
    assert before == NearDup(bands=3)
    with pytest.raises(ParamsError, match=r"^threshold: 2 given"):
        before.replace(threshold=2)
    with pytest.raises(ParamsError, match=r"^band: unknown key, did you mean bands\?"):
        before.replace(band=2)
    with pytest.raises(TypeError, match="positional"):
        NearDup(0.5)  # type: ignore[call-arg]


class Documented(Params):
    """Not a field's."""

    first: int = 1
    """one line"""
    long: Annotated[int, Field(ge=0)] = 1
    """two
    lines,   joined"""
    silent: int = 1
    other: int = 1
    """another's"""

    def method(self) -> None:
        """Not a field's either."""


class Inherited(Documented):
    first: int = 5  # declared again without a word
    other: int = 2
    """overridden"""
    more: int = 3
    """of its own"""


def described(cls: type[Params]) -> dict[str, str]:
    return {**descriptions(cls)}


def test_docstrings_below_fields_describe_them() -> None:
    own = {"first": "one line", "long": "two lines, joined", "other": "another's"}
    assert described(Documented) == own
    assert described(Inherited) == own | {"other": "overridden", "more": "of its own"}
    made = create_model("Made", __base__=Inherited, __module__=__name__, extra=(int, 4), long=(int, 7))
    assert described(made) == described(Inherited)
