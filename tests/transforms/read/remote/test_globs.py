"""One meaning of globs for all storage."""

import re
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.read.remote import path_glob
from refinery.transforms.read.remote.globs import fixed_folder, is_glob
from refinery.transforms.read.remote.path_glob import Glob

PATHS = ("a.txt", "d/a.txt", "d/b.txt", "d/e/a.txt", "d/e/f/c.gz", "d1/a-0.txt", "d2/a+b.txt", ".x/a.txt")


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.txt", {"a.txt"}),
        ("d/*.txt", {"d/a.txt", "d/b.txt"}),
        ("d/**", {"d/a.txt", "d/b.txt", "d/e/a.txt", "d/e/f/c.gz"}),
        ("d/", {"d/a.txt", "d/b.txt", "d/e/a.txt", "d/e/f/c.gz"}),
        ("d/**/a.txt", {"d/a.txt", "d/e/a.txt"}),
        ("**/c.gz", {"d/e/f/c.gz"}),
        ("d?/*", {"d1/a-0.txt", "d2/a+b.txt"}),
        ("d[12]/*", {"d1/a-0.txt", "d2/a+b.txt"}),
        ("d[!1]/*", {"d2/a+b.txt"}),
        ("d[0-1]/*", {"d1/a-0.txt"}),
        ("d/{a,b}.txt", {"d/a.txt", "d/b.txt"}),
        ("d2/a+b.txt", {"d2/a+b.txt"}),
        ("{d1,d2}/a{-0,+b}.txt", {"d1/a-0.txt", "d2/a+b.txt"}),
    ],
)
def test_what_a_glob_means(pattern: str, found: set[str]) -> None:
    assert {path for path in PATHS if Glob(pattern).matches(path)} == found
    assert all(path.startswith(fixed_folder(pattern)) for path in found)


@given(st.text("ab/.+()[]{}*?-!^,\\$|", max_size=12))
def test_any_pattern_is_a_glob_or_refused(pattern: str) -> None:
    try:
        wanted = Glob(pattern)
    except ValueError:
        return
    if not is_glob(pattern) and not pattern.endswith("/"):
        assert wanted.matches(pattern)
        assert not wanted.matches(pattern + "x")


@pytest.mark.parametrize(
    ("pattern", "found", "others"),
    [
        ("d/**/*.j", ["d/a.j", "d/b/a.j", "d/b/c/a.j"], ["d/.a.j", "d/.b/a.j", "d/b/.c/a.j", "d/b/._a.j", "x/d/a.j"]),
        ("d/*", ["d/a", "d/_a", "d/a.b"], ["d/.nfs01", "d/b/a"]),
        ("d/.b/*", ["d/.b/a"], ["d/.b/.a"]),
        ("d/.*", ["d/.a"], ["d/a"]),
        ("d/?a", ["d/ba"], ["d/.a"]),
        ("d/[.b]a", ["d/ba"], ["d/.a"]),
        ("**", ["a", "a/b"], [".a", "a/.b"]),
        ("d/", ["d/a", "d/b/a"], ["d/.a", "d/b/.a"]),
        ("{,d/}*.j", ["a.j", "d/a.j"], [".a.j", "d/.a.j"]),
        ("x{a,*b}*", ["xa.c", "x.b"], ["a"]),
        ("./*.j", ["./a.j"], ["./.a.j"]),
        ("../*.j", ["../a.j"], ["../.a.j"]),
    ],
)
def test_hidden_names_are_meant_only_where_the_pattern_has_the_dot(
    pattern: str, found: list[str], others: list[str]
) -> None:
    wanted = Glob(pattern)
    assert all(map(wanted.matches, found)) and not any(map(wanted.matches, others))


def regex_of(pattern: str) -> re.Pattern[str] | None:
    """What a glob means as an expression, whose engine backtracks; None for what is no glob."""
    visible, across = r"(?!(?<![^/])\.)", r"(?:[^/]|/(?!\.))*"
    text, at, depth = "", 0, 0
    pattern += "**" if pattern.endswith("/") else ""
    while at < len(pattern):
        character, at = pattern[at], at + 1
        if pattern.startswith("**", at - 1):
            deep = pattern.startswith("/", at + 1)
            text, at = text + (f"(?:{visible}{across}/)?" if deep else visible + across), at + 1 + deep
        elif character in "*?":
            text += f"{visible}[^/]" + character.strip("?")
        elif character == "[" and (end := pattern.find("]", at + 1)) > 0:
            negated = pattern[at] in "!^"
            inside = re.escape(pattern[at + negated : end]).replace(r"\-", "-")
            text, at = f"{text}{visible}[{'^' if negated else ''}{inside}]", end + 1
        elif character == "{":
            text, depth = text + "(?:", depth + 1
        elif character in ",}" and depth:
            text, depth = text + "|)"[character == "}"], depth - (character == "}")
        else:
            text += re.escape(character)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # of brackets that other engines read as sets
            return None if depth else re.compile(text, re.DOTALL)
    except re.error:
        return None


@given(
    st.lists(st.text("ab/.*?[]{},-!", max_size=10), max_size=3),
    st.lists(st.text("ab/.,-]", max_size=8), min_size=1, max_size=8),
    st.integers(1, 20),
)
def test_globs_mean_what_their_expressions_mean(patterns: list[str], paths: list[str], kept: int) -> None:
    """Also where no more than some transitions are kept."""
    expressions = [regex_of(pattern) for pattern in patterns]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(path_glob, "MAX_KEPT", kept)
        if None in expressions:
            with pytest.raises(ValueError, match=r"^pattern: .* given, .* allowed$"):
                Glob(*patterns)
            return
        wanted = Glob(*patterns)
        for path in paths * 2:
            assert wanted.matches(path) is any(each.fullmatch(path) is not None for each in expressions if each), path


@pytest.mark.parametrize(
    "pattern", ["*a" * 40 + "b", "**/a/" * 40 + "b", "{a,*}" * 40 + "b", "{" * 3000 + "a" + "}" * 3000]
)
def test_no_glob_takes_long(pattern: str) -> None:
    """A backtracking engine would not come back from the first three, nor a recursive one from the last."""
    wanted = Glob(pattern)
    assert not wanted.matches("a" * 4000) and not wanted.matches("a/" * 2000)
    assert wanted.matches(
        "a" if pattern[0] == "{" and pattern[1] == "{" else pattern.replace("*", "").replace("{a,}", "a")
    )
