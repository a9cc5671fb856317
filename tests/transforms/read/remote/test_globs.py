"""One meaning of globs for all storage."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.read.remote.globs import fixed_folder, glob_regex, is_glob

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
    assert {path for path in PATHS if glob_regex(pattern).fullmatch(path)} == found
    assert all(path.startswith(fixed_folder(pattern)) for path in found)


@given(st.text("ab/.+()[]{}*?-!^,\\$|", max_size=12))
def test_any_pattern_is_a_glob_or_refused(pattern: str) -> None:
    try:
        regex = glob_regex(pattern)
    except ValueError:
        return
    assert isinstance(regex, re.Pattern)
    if not is_glob(pattern) and not pattern.endswith("/"):
        assert regex.fullmatch(pattern)
        assert not regex.fullmatch(pattern + "x")


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
    regex = glob_regex(pattern)
    assert all(map(regex.fullmatch, found)) and not any(map(regex.fullmatch, others))
