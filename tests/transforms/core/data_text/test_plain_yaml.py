"""Reading YAML: text and plain values alone, every problem one line with its place; and `--set` on what was read."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.core.data_text.plain_yaml import RecipeError, load_yaml, override


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
