"""The reader of parameters: every error is one line with path, given and allowed; what is read can be written back."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.pipelines.recipe.params import RecipeError, fingerprint, load_yaml, override, parse, to_plain


@dataclass(frozen=True)
class NearDup:
    threshold: float = 0.75
    bands: int = 14

    def __post_init__(self) -> None:
        if not 0 < self.threshold <= 1:
            raise ValueError(f"threshold: {self.threshold} given, a number above 0 and at most 1 is allowed")


@dataclass(frozen=True)
class Source:
    name: str
    paths: tuple[str, ...]
    format: Literal["auto", "warc", "off"] = "auto"
    sample: float = 1.0
    cap: int | None = None


@dataclass(frozen=True)
class Limits:
    bytes: int = 10
    ratio: float | None = 0.5


@dataclass(frozen=True)
class Recipe:
    name: str
    sources: tuple[Source, ...] = ()
    limits: Limits = field(default_factory=lambda: Limits(bytes=7))
    near_dup: NearDup | None = field(default_factory=NearDup)
    quality: NearDup | None = None
    exact_dup: bool = True
    thresholds: Mapping[str, float] = field(default_factory=dict)
    nested: tuple[tuple[int, ...], ...] = ()
    verbose: bool | None = None

    def __post_init__(self) -> None:
        if self.name == "bad":
            raise ValueError("this recipe cannot be")


def read(text: str) -> Recipe:
    return parse(Recipe, load_yaml(text, "r.yaml"))


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
    sources = (Source("a", ("p", "q"), "warc", 1.0, 1000),)
    thresholds = {"de": 1.0, "no": 0.5}
    assert read(text) == Recipe(
        "x", sources, Limits(7, None), NearDup(0.8), NearDup(), False, thresholds, ((1, 2), ()), None
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
    assert read("name: x").limits == read("name: x\nlimits:").limits == read("name: x\nlimits: {}").limits == Limits(7)
    assert read("name: x\nlimits: {ratio: 1}").limits == Limits(7, 1.0)


def test_off_is_a_choice_where_the_class_has_it() -> None:
    assert read("name: x\nsources: [{name: a, paths: [], format: off}]").sources[0].format == "off"


PROBLEMS = {
    "near_dup: {threshold: 1.5}": "near_dup.threshold: 1.5 given, a number above 0 and at most 1 is allowed",
    "near_dup: {treshold: 1}": "near_dup.treshold: unknown key, did you mean threshold?",
    "near_dup: {zzz: 1}": "near_dup.zzz: unknown key, threshold, bands are allowed",
    "near_dup: {bands: x}": "near_dup.bands: 'x' (text) given, an integer is allowed",
    "near_dup: {bands: 2.0}": "near_dup.bands: 2.0 (a number) given, an integer is allowed",
    "near_dup: {bands: on}": "near_dup.bands: on given, an integer is allowed",
    "near_dup: {bands: }": "near_dup.bands: null given, an integer is allowed",
    "near_dup: {bands: 99999999999999999999}": ("near_dup.bands: a huge integer given, one of 64 bits is allowed"),
    "near_dup: {threshold: true}": "near_dup.threshold: on given, a number is allowed",
    "near_dup: {threshold: .nan}": "near_dup.threshold: nan (a number) given, a finite number is allowed",
    "near_dup: {threshold: 1e999}": "near_dup.threshold: inf (a number) given, a finite number is allowed",
    "near_dup: 3": "near_dup: 3 (an integer) given, a section (keys threshold, bands) or null is allowed",
    "limits: off": "limits: off given, a section (keys bytes, ratio) is allowed",
    "limits: {ratio: a}": "limits.ratio: 'a' (text) given, a number or null is allowed",
    "sources: [{name: a}]": "sources[0].paths: nothing given, a list of texts is required",
    "sources: [{name: a, paths: x}]": "sources[0].paths: 'x' (text) given, a list of texts is allowed",
    "sources: [{name: a, paths: [x, 1]}]": "sources[0].paths[1]: 1 (an integer) given, text is allowed",
    "sources: [{name: a, paths: [], format: wrac}]": (
        "sources[0].format: 'wrac' (text) given, one of auto, warc, off is allowed (did you mean warc?)"
    ),
    "sources: [{name: a, paths: [], cap: 1.5}]": (
        "sources[0].cap: 1.5 (a number) given, an integer or null is allowed"
    ),
    "sources: {}": (
        "sources: a mapping of 0 keys given, a list, each a section (keys name, paths, format, sample, cap), is allowed"
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


def test_every_problem_is_reported_up_to_a_limit() -> None:
    with pytest.raises(RecipeError) as caught:
        read("near_dup: {threshold: 2}\nlimits: {bytes: x}\nnope: 1")
    assert [line.split(":")[0] for line in str(caught.value).splitlines()] == [
        "nope",
        "name",
        "limits.bytes",
        "near_dup.threshold",
    ]
    with pytest.raises(RecipeError, match=r"\nand 10 problems more$"):
        parse(Recipe, {"name": "x", **{f"k{i}" * 9: 1 for i in range(30)}})


def test_long_values_stay_short() -> None:
    with pytest.raises(RecipeError) as caught:
        parse(NearDup, {"bands": "x" * 10_000_000, "\ud800" * 1000: 1, "y" * 1_000_000: 2})
    assert all(len(line) < 200 and line.isprintable() for line in str(caught.value).splitlines())


def test_a_class_that_cannot_be_read_is_the_programmers_error() -> None:
    @dataclass(frozen=True)
    class Odd:
        a: complex = 0
        b: int | str = 0

    for key in "ab":
        with pytest.raises(TypeError, match="cannot be read"):
            parse(Odd, {key: "x"})


# --- YAML -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("# nothing", None),
        ("\ufeffa: 1", {"a": 1}),
        ("[no, yes, n, y, on, off, True, FALSE]", ["no", "yes", "n", "y", True, False, True, False]),
        ("['on', \"1\", !!str 2, ! 3]", ["on", "1", "2", "3"]),
        ("[1, -1, +1, 0, 1_000, 0x1F, 007, 1_, 1__0]", [1, -1, 1, 0, 1000, 31, 7.0, "1_", "1__0"]),
        ("[1.5, 1e-3, 1e6, .5, 1., -.5E+2]", [1.5, 0.001, 1e6, 0.5, 1.0, -50.0]),
        ("[2024-01-01, 12:30, 1.2.3, <<, =]", ["2024-01-01", "12:30", "1.2.3", "<<", "="]),
        ("a: &x [1]\nb: *x", {"a": [1], "b": [1]}),
        ("a: |\n  1\n", {"a": "1\n"}),
    ],
)
def test_yaml_scalars(text: str, value: Any) -> None:
    found = load_yaml(text, "r.yaml")
    assert found == value
    assert repr(found) == repr(value)


LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 10)
)
LADDER = "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [[[[*a{i - 1}]]]]\n" for i in range(1, 1000))

YAML_PROBLEMS = {
    "a: 1\nb: 2\na: 3": r"r.yaml, line 3, column 1: key a given twice",
    "a: {b: 1, 'b': 2}": r"line 1, column 11: key b given twice",
    "1: a": r"line 1, column 1: key 1 \(an integer\) given, text is allowed",
    "on: a": r"line 1, column 1: key on given, text is allowed",
    "? [a]\n: b": r"key a list of 1 value given, text is allowed",
    "a: [1": r"line 1, column 6: expected ',' or ']'",
    "a:\n\t- 1": r"line 2, column 1: found character",
    "a: *b": r"alias \*b given before its anchor is complete",
    "a: &b [*b]": r"alias \*b given before",
    "a: !!python/object/apply:os.system [ls]": r"tag 'tag:yaml.org,2002:python/object/apply:os.system' given",
    "a: !!binary aGk=": r"tag .* given, none is allowed",
    "a: 1\n---\nb: 1": r"a second document given",
    "a: \x00": r"r.yaml: .*special characters are not allowed",
    "a: \ud800": r"byte 3 is not UTF-8",
    LAUGHS: r"more than 200000 values",
    LADDER: r"nested deeper than 50",
    "[" * 100_000: r"nested deeper than 50",
    "x" * 2_000_000: r"2000000 bytes given, at most 1048576 are allowed",
}


@pytest.mark.parametrize(("text", "problem"), YAML_PROBLEMS.items(), ids=range(len(YAML_PROBLEMS)))
def test_yaml_problems(text: str, problem: str) -> None:
    with pytest.raises(RecipeError, match=problem) as caught:
        load_yaml(text, "r.yaml")
    assert len(str(caught.value).splitlines()) == 1


@given(st.one_of(st.text(), st.binary(), st.text(alphabet="ab:-[]{}&*!|>'\"#%@`, \n\t?1.<=")))
def test_any_bytes_are_yaml_or_one_line(text: str | bytes) -> None:
    try:
        load_yaml(text, "r")
    except RecipeError as error:
        assert len(str(error).splitlines()) == 1


# --- overrides ------------------------------------------------------------------------------------------------------

DATA: dict[str, Any] = {
    "name": "x",
    "near_dup": {"threshold": 0.75},
    "quality": None,
    "toxicity": False,
    "sources": [{"name": "crawl", "paths": ["a"]}, {"name": "notes", "paths": ["b"]}],
}


@pytest.mark.parametrize(
    ("setting", "where", "value"),
    [
        ("near_dup.threshold=0.8", ("near_dup", "threshold"), 0.8),
        ("near_dup.bands=20", ("near_dup", "bands"), 20),
        ("near_dup=off", ("near_dup",), False),
        ("quality.model=q.bin", ("quality", "model"), "q.bin"),
        ("toxicity.words=[a, b]", ("toxicity", "words"), ["a", "b"]),
        ("new.section.key=", ("new", "section", "key"), None),
        ("sources.0.paths=[x=1]", ("sources", 0, "paths"), ["x=1"]),
        ("sources[1].paths=[gs://b/*.gz]", ("sources", 1, "paths"), ["gs://b/*.gz"]),
        ("sources[1].paths[0]=c", ("sources", 1, "paths", 0), "c"),
        ("sources.notes.sample=0.1", ("sources", 1, "sample"), 0.1),
        ("sources=[]", ("sources",), []),
    ],
)
def test_override(setting: str, where: tuple[Any, ...], value: Any) -> None:
    before = json.dumps(DATA)
    result: Any = override(DATA, setting)
    assert json.dumps(DATA) == before
    for key in where:
        result = result[key]
    assert result == value


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ("near_dup.threshold", "not understood, KEY.KEY=VALUE is allowed"),
        ("=1", "not understood"),
        ("a..b=1", "not understood"),
        ("a[b]=1", "not understood"),
        ("name.x=1", r"--set name: 'x' \(text\) there, it has no key x"),
        ("sources.2.name=x", r"--set sources: 2 given, crawl, notes, an index below 2 is allowed"),
        ("sources.crwal.name=x", r"crwal given, crawl, notes"),
        ("name=[", r"--set name, line 1, column 2: "),
    ],
)
def test_override_problems(setting: str, problem: str) -> None:
    with pytest.raises(RecipeError, match=problem):
        override(DATA, setting)


# --- back to data ---------------------------------------------------------------------------------------------------

NUMBERS = st.floats(allow_nan=False, allow_infinity=False).map(lambda x: x + 0.0)
NEAR = st.builds(NearDup, st.floats(0.01, 1), st.integers(-(2**63), 2**63 - 1))
SOURCE = st.builds(
    Source,
    st.text(),
    st.lists(st.text()).map(tuple),
    st.sampled_from(["auto", "warc", "off"]),
    NUMBERS,
    st.none() | st.integers(0, 9),
)
RECIPE = st.builds(
    Recipe,
    name=st.text().filter(lambda name: name != "bad"),
    sources=st.lists(SOURCE, max_size=3).map(tuple),
    limits=st.builds(Limits, st.integers(0, 9), st.none() | NUMBERS),
    near_dup=st.none() | NEAR,
    quality=st.none() | NEAR,
    exact_dup=st.booleans(),
    thresholds=st.dictionaries(st.text(), NUMBERS, max_size=4),
    nested=st.lists(st.lists(st.integers(0, 9), max_size=2).map(tuple), max_size=3).map(tuple),
    verbose=st.none() | st.booleans(),
)


def shuffled(plain: Any, rng: Any) -> Any:
    if isinstance(plain, dict):
        keys = list(plain)
        rng.shuffle(keys)
        return {key: shuffled(plain[key], rng) for key in keys}
    return [shuffled(item, rng) for item in plain] if isinstance(plain, list) else plain


@given(RECIPE, st.randoms(use_true_random=False))
def test_what_is_written_reads_back(recipe: Recipe, rng: Any) -> None:
    plain = to_plain(recipe)
    through_json = json.loads(json.dumps(plain))
    other = shuffled(plain, rng)
    assert plain == through_json
    assert parse(Recipe, through_json) == parse(Recipe, other) == recipe
    assert fingerprint(other) == fingerprint(plain)
    assert to_plain(parse(Recipe, other)) == plain


def test_to_plain_writes_defaults() -> None:
    assert to_plain(Recipe("x", thresholds={"b": 1.0, "a": 2.0})) == {
        "name": "x",
        "sources": [],
        "limits": {"bytes": 7, "ratio": 0.5},
        "near_dup": {"threshold": 0.75, "bands": 14},
        "quality": None,
        "exact_dup": True,
        "thresholds": {"a": 2.0, "b": 1.0},
        "nested": [],
        "verbose": None,
    }
    with pytest.raises(TypeError, match="bytes"):
        to_plain(b"x")


def test_fingerprint_is_pinned() -> None:
    plain = {"b": [1, 1.0, 0.1, 1e22, True, None], "a": {"ü": "\ud800"}}
    assert fingerprint(plain) == "10c8befa32d138a6c213e1fe30401dc468e2ce1c940a8cdc3c40e52429201c0c"
    assert fingerprint(to_plain(read("name: x\nnear_dup: {threshold: 1}"))) == fingerprint(
        to_plain(read("near_dup: {threshold: 1.0, bands: 14}\nname: x"))
    )
    assert fingerprint(to_plain(read("name: x"))) != fingerprint(to_plain(read("name: y")))


def test_fingerprint_does_not_depend_on_the_hash_seed() -> None:
    code = "from refinery.pipelines.recipe.params import fingerprint as f; print(f({k: {k: 1.5} for k in set('abcdefgh')}))"
    found = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("0", "1")
    }
    assert len(found) == 1


@pytest.mark.parametrize(("plain", "error"), [({1: 2}, TypeError), ([float("nan")], ValueError), ([b"x"], TypeError)])
def test_fingerprint_refuses_what_is_not_plain(plain: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        fingerprint(plain)
