"""The prescan of the HTML Standard, case by case and beside a plain rendering of its steps."""

import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.extract.charset import BYTE_ORDER_MARKS
from refinery.transforms.extract.charsets.labels import python_codec
from refinery.transforms.extract.charsets.prescan import PRESCAN_BYTES, declared_in

TYPE = 'http-equiv="Content-Type"'


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("<meta charset=koi8-r>", ["koi8-r"]),
        ("<META CHARSET='KOI8-R' />", ["koi8-r"]),
        ("<meta\ncharset = \"koi8-r\">", ["koi8-r"]),
        ("<meta/charset=koi8-r>", ["koi8-r"]),
        (f"<meta {TYPE} content='text/html; charset=koi8-r'>", ["koi8-r"]),
        (f"<meta content='text/html;charset = \"koi8-r\"' {TYPE}>", ["koi8-r"]),
        ("<!-- <meta charset=gbk> --><meta charset=koi8-r>", ["koi8-r"]),
        ("<!--><meta charset=koi8-r>", ["koi8-r"]),
        ("<!-- <meta charset=gbk>", []),
        ("<meta name=description content='of charset=gbk'><meta charset=koi8-r>", ["koi8-r"]),
        ("<meta content='text/html; charset=gbk'>", []),
        ("<meta charset=bogus><meta charset=koi8-r>", ["koi8-r"]),
        ("<meta data-charset=gbk><meta charset=koi8-r>", ["koi8-r"]),
        ("<meta charset=koi8-r charset=gbk>", ["koi8-r"]),
        ("<meta charset=koi8-r><meta charset=gbk>", ["koi8-r", "gb18030"]),
        ("<meta charset=koi8-r><meta charset=koi8-r>", ["koi8-r"]),
        ("<p title='<meta charset=gbk>'><meta charset=koi8-r>", ["koi8-r"]),
        ("<p title=\"><meta charset=gbk>", []),
        ("<metacharset=gbk>", []),
        ("<meta charset=utf-16>", ["utf-8"]),
        ("<meta charset=UTF-16BE>", ["utf-8"]),
        ("<meta charset=x-user-defined>", ["cp1252"]),
        ("<meta charset=gbk", []),
        ("<meta charset='gbk>", []),
        ("<meta charset=gbk\"><p>", []),
        ("<?xml version='1.0' encoding='koi8-r'?><html>", ["koi8-r"]),
        ('\n<?xml version="1.0" encoding = "KOI8-R" standalone="no"?>', ["koi8-r"]),
        ("<?xml version='1.0' encoding='gbk'?><meta charset=koi8-r>", ["koi8-r", "gb18030"]),
        ("<?xml version='1.0'?><p>encoding='gbk'", []),
        ("<p><?xml encoding='gbk'?>", []),
        ("<script>" + "x" * 5000 + "</script><meta charset=koi8-r>", ["koi8-r"]),
        ("x" * PRESCAN_BYTES + "<meta charset=koi8-r>", []),
        ("", []),
        ("<", []),
    ],
)  # fmt: skip
def test_what_a_page_declares(page: str, names: list[str]) -> None:
    assert declared_in(page.encode()) == names


class Steps:
    """The standard's steps as they are written, byte by byte."""

    SPACE = b"\t\n\x0c\r "

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def now(self) -> bytes:
        if self.at >= len(self.data):
            raise EOFError
        return self.data[self.at : self.at + 1]

    def skip(self, signs: bytes) -> None:
        while self.now() in {bytes([sign]) for sign in signs}:
            self.at += 1

    def attribute(self) -> tuple[bytes, bytes] | None:
        self.skip(self.SPACE + b"/")
        if self.now() == b">":
            return None
        name = value = b""
        while True:
            sign = self.now()
            if sign == b"=" and name:
                self.at += 1
                break
            if sign in (b"\t", b"\n", b"\x0c", b"\r", b" "):
                self.skip(self.SPACE)
                if self.now() != b"=":
                    return name, b""
                self.at += 1
                break
            if sign in (b"/", b">"):
                return name, b""
            name += sign.lower()
            self.at += 1
        self.skip(self.SPACE)
        sign = self.now()
        if sign in (b'"', b"'"):
            while True:
                self.at += 1
                if self.now() == sign:
                    self.at += 1
                    return name, value
                value += self.now().lower()
        if sign == b">":
            return name, b""
        while self.now() not in (b"\t", b"\n", b"\x0c", b"\r", b" ", b">"):
            value += self.now().lower()
            self.at += 1
        return name, value

    def labels(self) -> list[bytes]:
        found: list[bytes] = []
        try:
            while True:
                rest = self.data[self.at :]
                self.now()
                if rest.startswith(b"<!--"):
                    end = self.data.find(b"-->", self.at + 2)
                    if end < 0:
                        return found
                    self.at = end + 2
                elif re.match(rb"<meta[\t\n\x0c\r /]", rest, re.IGNORECASE):
                    self.at += 5
                    self.meta(found)
                elif re.match(rb"</?[A-Za-z]", rest):
                    while self.now() not in (b"\t", b"\n", b"\x0c", b"\r", b" ", b">"):
                        self.at += 1
                    while self.attribute():
                        pass
                elif re.match(rb"<[!/?]", rest):
                    while self.now() != b">":
                        self.at += 1
                self.at += 1
        except EOFError:
            return found

    def meta(self, found: list[bytes]) -> None:
        seen: dict[bytes, bytes] = {}
        while attribute := self.attribute():
            seen.setdefault(*attribute)
        if b"charset" in seen:
            found.append(seen[b"charset"])
        elif seen.get(b"http-equiv") == b"content-type":
            content = seen.get(b"content", b"")
            match = re.search(rb"charset\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s;\"'][^\s;]*))", content)
            if match:
                found.append(match[1] or match[2] or match[3] or b"")


PIECES = [
    b"<meta ", b"<meta/", b"charset=", b"charset = ", b'"', b"'", b"koi8-r", b"utf-8", b"gbk", b">", b" ", b"\n", b"/",
    b"=", b"content=", b'"text/html; charset=gbk"', b"http-equiv=", b"content-type", b'"Content-Type"', b"<!--", b"-->",
    b"<p a=b", b"</p x>", b"<?", b"<!x", b"<", b"<b", b"name=x", b";", b"CHARSET", b"<meta charset=koi8-r>",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=14).map(b"".join))
def test_the_steps_of_the_standard_find_the_same(data: bytes) -> None:
    named = [python_codec(label.decode()) for label in Steps(data).labels() if not re.search(rb"[\"';]", label)]
    assert declared_in(data) == list(dict.fromkeys(name for name in named if name))


@pytest.mark.parametrize(
    "unit",
    [b"<a ", b"a=b ", b"<!--", b"<", b"charset ", b"<meta charset = ", b"<a a\n", b'"', b"<?xml encoding ", b" "],
)
def test_markup_that_never_ends_ends(unit: bytes) -> None:
    assert declared_in(b"<meta " + unit * 20_000) in ([], ["utf-8"])


def html5lib_cases() -> list[tuple[bytes, str]]:
    """The encoding tests of a checkout of html5lib-tests, whose folder HTML5LIB_TESTS names."""
    folder = Path(os.environ["HTML5LIB_TESTS"]) / "encoding"
    cases: list[tuple[bytes, str]] = []
    for path in sorted(folder.glob("*.dat")):
        for case in re.split(rb"(?:^|\n\n?)#data\n", path.read_bytes())[1:]:
            data, rest = case.split(b"\n#encoding\n")
            cases.append((data, rest.split(b"\n")[0].decode().strip()))
    return cases


@pytest.mark.skipif("HTML5LIB_TESTS" not in os.environ, reason="HTML5LIB_TESTS names no checkout of html5lib-tests")
def test_html5libs_encoding_tests() -> None:
    cases = html5lib_cases()
    assert len(cases) >= 82
    for data, encoding in cases:
        marks = [name for mark, name in BYTE_ORDER_MARKS if data.startswith(mark)]
        assert [*marks, *declared_in(data), "cp1252"][0] == python_codec(encoding), data
