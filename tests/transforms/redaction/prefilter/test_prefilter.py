"""No pattern matches where the prefilter says that it cannot: for patterns made at random, and for those in use."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
import re2
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from refinery.transforms.filter.pii import HINTS as PERSONAL
from refinery.transforms.redaction.pii_types.scan import Hints, byte_options
from refinery.transforms.redaction.prefilter.grammar import Unknown, any_case, members, read_pattern
from refinery.transforms.redaction.prefilter.prefilter import Prefilter
from refinery.transforms.redaction.secret_types.find import HINTS as SECRET
from refinery.transforms.statistics.artefacts import HINTS as SIGNS
from tests.sampling import sampled, scaled

PIECES = st.sampled_from(
    [b"abab", b"ab", b"b", b"a", b"c", b"-", b" ", b"\n", b"_", b"A", b"BC", b"\xc3\xa4", b"\xe4", b"\0"]
)
TEXTS = st.lists(PIECES, max_size=16).map(b"".join)
SINGLE = st.sampled_from(
    [rb"a", rb"b", rb"ab", rb"abc", rb"[ab]", rb"[^a]", rb"\w", rb"\s", rb"\xc3", rb"-", rb".", rb"\b"]
)


def patterns() -> st.SearchStrategy[bytes]:
    """Patterns of RE2 over few letters."""

    def larger(inner: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
        count = st.sampled_from([b"*", b"+", b"?", b"{2}", b"{0,2}", b"{1,}", b"{18}", b"*?"])
        groups = st.sampled_from([b"(?:", b"(?i:", b"("])
        return st.one_of(
            st.lists(inner, min_size=1, max_size=4).map(b"".join),
            st.tuples(groups, st.lists(inner, min_size=1, max_size=3).map(b"|".join), st.just(b")")).map(b"".join),
            st.tuples(st.just(b"(?:"), inner, st.just(b")"), count).map(b"".join),
        )

    anchored = st.tuples(st.sampled_from([b"", b"", b"^", rb"\A", b"(?m)^", b"(?i)"]), st.recursive(SINGLE, larger))
    return anchored.map(b"".join)


def compiled(pattern: bytes) -> Any:
    return re2.compile(pattern, byte_options())


@settings(max_examples=scaled(300, 40), suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(patterns(), min_size=1, max_size=4), TEXTS)
def test_made_patterns(made: list[bytes], text: bytes) -> None:
    """`unknown` and places are all that a prefilter leaves; of placed patterns the matches are those of finditer."""
    hints = Hints(
        {str(number): pattern for number, pattern in enumerate(made)},
        placed={f"placed {number}": pattern for number, pattern in enumerate(made)},
    )
    found = hints.of(text)
    for number, pattern in enumerate(made):
        assert (str(number) in found) == bool(compiled(pattern).search(text))
        spans = [match.span() for match in compiled(pattern).finditer(text)]
        assert [match.span() for match in found.matches(f"placed {number}")] == spans


@pytest.mark.parametrize("sign", [b"", b"(?i)"])
def test_sets_have_all_that_re2_has(sign: bytes) -> None:
    """Without regard to case they have more: whether RE2 knows letters beyond ASCII there does not matter."""
    for byte in range(256):
        for pattern in (b"\\x%02x" % byte, b"[\\x%02x]" % byte):
            own = any_case(1 << byte) if sign else 1 << byte
            match = compiled(b"^(?:" + sign + pattern + b")$").match
            matched = [other for other in range(256) if match(bytes([other]))]
            assert set(matched) <= set(members(own))
            assert sign or matched == [byte]


@pytest.mark.parametrize(
    "pattern", [rb"\w", rb"\W", rb"\d", rb"\D", rb"\s", rb"\S", b".", b"[^a-f]", rb"[\w.-]", b"[]a]"]
)
def test_classes_have_all_that_re2_has(pattern: bytes) -> None:
    tree = read_pattern(b"(" + pattern + b")")
    match = compiled(b"(?s:^)" + pattern + rb"\z").match
    expected = [byte for byte in range(256) if match(bytes([byte]))]
    assert list(members(tree.parts[0].parts[0].mask)) == expected  # type: ignore[union-attr]  # a sequence of one byte


@pytest.mark.parametrize(
    "pattern", [b"(?P<x>a)", rb"\pL", b"(?-i:a)", b"[[:alpha:]]", b"a)", b"(a", rb"\x{e4}", b"[a", b"*"]
)
def test_other_syntax_is_left_to_re2(pattern: bytes) -> None:
    with pytest.raises(Unknown):
        read_pattern(pattern)
    assert Prefilter({"it": pattern, "other": b"abcd"}).unknown == {"it"}


def in_use() -> Iterator[Any]:
    for which, hints in (("secret", SECRET), ("personal", PERSONAL), ("sign", SIGNS)):
        for name in (*hints.patterns, *hints.placed):
            yield pytest.param(hints, name, id=f"{which}-{name}")


@pytest.mark.parametrize(("hints", "name"), sampled("patterns with a prefilter", in_use(), 60))
@settings(max_examples=4, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_patterns_in_use(hints: Hints, name: str, data: st.DataObject) -> None:
    """Texts that Python's `re` makes of the pattern, with others around them."""
    pattern = hints.patterns.get(name) or hints.placed[name]
    around = st.sampled_from([b"", b" ", b"\n", b"x", b"=", b"key: ", b"\0", "ä".encode(), b"-", b"0"])
    text = data.draw(around) + data.draw(st.from_regex(re.compile(pattern))) + data.draw(around)
    found = hints.of(text)
    if name in hints.placed:
        spans = [match.span() for match in compiled(pattern).finditer(text)]
        assert [match.span() for match in found.matches(name)] == spans
    else:
        assert (name in found) == bool(compiled(pattern).search(text))
    assert not hints.prefilter.unknown


def test_a_text_that_is_full_of_beginnings_is_left_to_re2() -> None:
    hints = Hints({"quoted": rb"key[a-z ]{9,}\"", "other": rb"tokens"}, placed={"all": rb"key[a-z ]{9,}\""})
    text = (b"key" + b"a" * 40 + b"\n") * 5000
    assert hints.prefilter.look(text) is None
    found = hints.of(text + b'keys of a sentence"')
    assert set(found) == {"quoted"}
    assert len(list(found.matches("all"))) == 1


def test_places_beyond_the_most_are_anywhere() -> None:
    hints = Hints({}, placed={"all": rb"key="})
    for count in (1, 256, 257, 1000):
        text = b"a key=value of some words, then more of them\n" * count
        looked = hints.prefilter.look(text)
        assert looked is not None
        assert (looked["all"] is None) == (count > 256)
        assert len(list(hints.of(text).matches("all"))) == count
