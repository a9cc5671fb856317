"""clean_text against a slow implementation of its rules that shares nothing with it."""

import hashlib
import re
import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refinery.transforms.core.document import document_id, text_bytes
from refinery.transforms.extract.clean_text import clean_text
from refinery.transforms.native import textclean
from tests.sampling import examples, one_commit_in_four

FULL_UNICODE = st.characters(codec=None, exclude_categories=())
AWKWARD = st.sampled_from(
    "ae \n\r\t\v\f\x00\x1c\x1f\x7f\x80\x85\xa0\xadé\u0301\u0316\u0344\u034f\u061c\u0958\u1100\u1161\u11a8\u180e\u2000"
    "\u200b\u200c\u200d\u200e\u2028\u2029\u202e\u202f\u205f\u2060\u2066\u3000\ud800\udfff\ue000\ufdd0\ufdef\ufe0f\ufeff"
    "\ufffb\ufffc\ufffd\uffff\U0001d15e\U0001f600\U0001fffe\U000e0001\U000e0041\U000e0100\U000f0000\U0010ffff"
)
MARKS = st.sampled_from("\u0301\u0316\u0344\u0f73\u0f75\u0fb5\u3099\U0001d165aか")
# Kernels copy eight characters at a time where none needs a look.
RUNS = st.sampled_from(
    [
        "abcdefgh",
        "a bc def",
        "ghi jklm nopqrs",
        "tuv  wx",
        "y\nz a\nbcdef",
        "\n\n",
        " \n",
        "\t\t",
        "\n  ",
        "é",
        "漢字",
        "абв где",
    ]
)
TEXTS = (
    st.text(FULL_UNICODE)
    | st.lists(AWKWARD, max_size=60).map("".join)
    | st.lists(MARKS, min_size=20, max_size=90).map("".join)
    | st.lists(RUNS | AWKWARD, max_size=30).map("".join)
)

LINE_ENDS = re.compile("\r\n|[\n\r\v\f\x85\u2028\u2029]")


def slow_clean(text: str, from_html: bool) -> str:
    """The rules of the module's docstring, one after the other."""
    text = LINE_ENDS.sub("\n", text)
    text = "".join(character for character in text if character in "\n\t" or not is_invisible(character))
    text = "".join(" " if unicodedata.category(character) == "Zs" else character for character in text)
    text = unicodedata.normalize("NFC", limit_marks(text))
    text = unicodedata.normalize("NFC", limit_marks(text))
    lines = []
    for line in text.split("\n"):
        body = line.lstrip(" \t").rstrip(" \t")
        indentation = line[: len(line) - len(line.lstrip(" \t"))] if body else ""
        if from_html:
            body = re.sub("[ \t]+", lambda run: "\t" if "\t" in run[0] else " ", body)
        lines.append(indentation + body)
    return re.sub("\n{3,}", "\n\n", "\n".join(lines)).strip(" \t\n")


def is_invisible(character: str) -> bool:
    code = ord(character)
    if unicodedata.category(character) in ("Cc", "Cs", "Co"):
        return True
    if 0xFDD0 <= code <= 0xFDEF or code & 0xFFFE == 0xFFFE or code >= 0xF0000:
        return True
    if 0xE0000 <= code <= 0xE007F or 0x2060 <= code <= 0x206F or code in (0xFFF9, 0xFFFA, 0xFFFB, 0xFFFC):
        return True
    return character in "\xad\u061c\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\ufeff"


def limit_marks(text: str) -> str:
    run, kept = 0, []
    for character in text:
        run = run + 1 if unicodedata.combining(character) else 0
        if run <= 30:
            kept.append(character)
    return "".join(kept)


@settings(max_examples=examples(500))
@given(TEXTS, st.booleans())
def test_it_equals_the_slow_rules(text: str, from_html: bool) -> None:
    assert clean_text(text, from_html) == slow_clean(text, from_html)


@settings(max_examples=examples(300))
@given(TEXTS, st.booleans())
def test_it_is_idempotent_and_can_be_written_anywhere(text: str, from_html: bool) -> None:
    cleaned = clean_text(text, from_html)
    assert clean_text(cleaned, from_html) == cleaned
    assert unicodedata.is_normalized("NFC", cleaned)
    cleaned.encode()


@one_commit_in_four
def test_every_code_point_alone_equals_the_slow_rules() -> None:
    for code in (*range(0x3100), *range(0xD700, 0x11000), *range(0x1D000, 0x1F800), *range(0xDFFF0, 0xF0010), 0x10FFFF):
        text = f"a{chr(code)}b"
        assert clean_text(text, True) == slow_clean(text, True), hex(code)


@pytest.mark.parametrize(
    ("raw", "html", "plain"),
    [
        ("", "", ""),
        (" \n\t\r\n ", "", ""),
        ("a  b\t\tc \t d", "a b\tc\td", "a  b\t\tc \t d"),
        ("x\n    indented  more", "x\n    indented more", "x\n    indented  more"),
        ("a\r\nb\rc\x85d\u2028e\x0bf\x0cg", "a\nb\nc\nd\ne\nf\ng", "a\nb\nc\nd\ne\nf\ng"),
        ("a \n \n\n\n b", "a\n\n b", "a\n\n b"),
        ("soft\xadhyphen zero\u200bwidth \ufeffbom", "softhyphen zerowidth bom", "softhyphen zerowidth bom"),
        ("می\u200cخواهم", "می\u200cخواهم", "می\u200cخواهم"),
        ("क्\u200dष", "क्\u200dष", "क्\u200dष"),
        ("👩\u200d👩\u200d👧 ❤\ufe0f", "👩\u200d👩\u200d👧 ❤\ufe0f", "👩\u200d👩\u200d👧 ❤\ufe0f"),
        ("e\u0301 e\u200b\u0301", "é é", "é é"),
        ("1\xa0000\u2009km\u3000x", "1 000 km x", "1 000 km x"),
        ("\u202eevil\u202c \ud800x\udfff \U000e0041 \ue001", "evil x", "evil x"),
        ("&amp; &lt;", "&amp; &lt;", "&amp; &lt;"),
    ],
)
def test_cases(raw: str, html: str, plain: str) -> None:
    assert clean_text(raw, from_html=True) == html
    assert clean_text(raw, from_html=False) == plain


def test_a_clean_text_is_handed_back_as_it_is() -> None:
    for text in ("plain\n  text", "Grüße\n\nаля", "漢字", "😀 x"):
        assert clean_text(text, from_html=False) is text


def test_long_runs_cost_linear_time() -> None:
    assert len(clean_text("a" + "\u0301\u0316" * 500_000, True)) <= 31
    assert len(clean_text("a" + "\u0344" * 500_000, True)) <= 31
    assert clean_text("\n" * 1_000_000 + " \t" * 1_000_000, False) == ""
    assert clean_text("a" + " \n" * 1_000_000 + "b", False) == "a\n\nb"
    assert clean_text("\0" * 3_000_000, False) == ""


@settings(max_examples=examples(500))
@given(
    st.text() | st.lists(RUNS | AWKWARD, max_size=60).map(lambda parts: re.sub("[\ud800-\udfff]", "", "".join(parts)))
)
def test_ids_are_those_of_split_and_join(text: str) -> None:
    assert document_id(text) == slow_id(text)


def slow_id(text: str) -> bytes:
    return hashlib.blake2b(" ".join(text.split()).encode(), digest_size=16).digest()


def test_ids_of_all_sizes() -> None:
    for size in (*range(400), 65_535, 65_536, 65_537, 200_000):  # blocks of 128 bytes; long texts without the GIL
        for character in "aé漢😀":
            text = f" {character}b\n" * (size // 4) + "c" * (size % 4)
            assert document_id(text) == slow_id(text)


def test_ids_refuse_what_encode_refuses() -> None:
    for text in ("a\ud800b", "\udfff", "a" * 100_000 + "\ud800"):
        with pytest.raises(UnicodeEncodeError, match="surrogates not allowed"):
            textclean.text_id(text)


@given(TEXTS)
def test_sizes_are_those_of_the_encoded_text(text: str) -> None:
    assert textclean.utf8_size(text) == text_bytes(text) == len(text.encode("utf-8", "surrogatepass"))


@given(TEXTS)
def test_lone_surrogates_are_found(text: str) -> None:
    assert textclean.has_surrogates(text) == (text.encode("utf-8", "ignore") != text.encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize("measure", [textclean.text_id, textclean.utf8_size, textclean.has_surrogates])
def test_what_is_no_text_is_refused(measure: Callable[..., object]) -> None:
    with pytest.raises(TypeError, match="takes a str"):
        measure(b"a")


@given(TEXTS)
def test_ids_do_not_depend_on_layout(text: str) -> None:
    assert document_id(clean_text(text, from_html=True)) == document_id(clean_text(text, from_html=False))
