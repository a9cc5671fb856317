"""What a parse costs is bounded by counts, whatever the text; ordinary code is below all of them."""

import pytest

from refinery.transforms.code.languages import LANGUAGES
from refinery.transforms.code.parse import parse


def _many(line: str, size: int) -> bytes:
    return "\n".join(line.format(i) for i in range(size // len(line))).encode()


@pytest.mark.parametrize(
    ("language", "line"),
    [
        ("c", "/* a{0} /*"),  # the lexer looks for the end of each comment, to the end of the file
        ("cpp", "a<a<a<a<a<a<a<b{0}"),  # parses at the same time
    ],
)
def test_hostile_source_is_given_up(language: str, line: str) -> None:
    assert parse(_many(line, 100_000), LANGUAGES[language]) is None


@pytest.mark.parametrize(
    ("language", "line"),
    [
        ("c", "int f{0}(int a) {{ /* {0} */ return a * {0}; }}"),
        ("cpp", "template <class T> std::vector<T> f{0}(const std::map<T, int>& a) {{ return g<T>(a); }}"),
        ("python", "def f{0}(a):\n    '''{0} lines'''\n    return a + {0}"),
        ("c", "/* comment {0} " + "of a long text " * 100 + "*/"),
    ],
)
def test_ordinary_source_is_parsed(language: str, line: str) -> None:
    parsed = parse(_many(line, 300_000), LANGUAGES[language])
    assert parsed is not None and parsed.error_share == 0
