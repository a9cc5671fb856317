"""One meaning of globs for all storage."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.remote.globs import fixed_folder, glob_regex, is_glob

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
