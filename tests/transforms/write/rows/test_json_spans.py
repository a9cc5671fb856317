"""Spans of values in lines of JSON, against a second scanner that is made of Python's own decoder."""

import json
import re
from json.decoder import scanstring
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from refinery.transforms.read.fields import field_of
from refinery.transforms.read.formats.jsonl import MAX_DEPTH, as_written, parse_undecodable
from refinery.transforms.write.rows.json_spans import LabelKeys, members, value_span, with_text
from refinery.transforms.write.rows.rows import Label

DECODER = json.JSONDecoder()
SPACE = re.compile(r"[ \t\r\n]*")

spaces = st.sampled_from(["", " ", "\t", "  ", "\r"])
keys = st.sampled_from(["text", "meta", "meta.text", "te\\u0078t", "\\u006deta", "a", "", "t\\\\", "é", "text\\u0000"])
characters = st.sampled_from(
    [*"a é𝄞\u2028{}[]:,\x7f", r"\"", r"\\", r"\/", r"\n", r"\u00e9", r"\ud800", r"\uD834\uDD1E", r"\u0022"]
)
strings = st.lists(characters, max_size=6).map(lambda parts: f'"{"".join(parts)}"')
NUMBERS = ["0", "-0.0", "1e3", "1.0", "1E400", "12345678901234567890123"]
literals = st.sampled_from([*NUMBERS, "true", "false", "null", "NaN", "-Infinity", "[]", "{}"])


@st.composite
def objects(draw: st.DrawFn, values: st.SearchStrategy[str]) -> str:
    parts = []
    for key, value in draw(st.lists(st.tuples(keys, values), max_size=5)):
        gaps = [draw(spaces) for _ in range(4)]
        parts.append(f'{gaps[0]}"{key}"{gaps[1]}:{gaps[2]}{value}{gaps[3]}')
    return "{" + (",".join(parts) or draw(spaces)) + "}"


lists = lambda values: st.lists(values, max_size=3).map(lambda parts: f"[{' ,'.join(parts)}]")  # noqa: E731 - a strategy
values = st.recursive(strings | literals, lambda inner: objects(inner) | lists(inner), max_leaves=8)
lines = st.tuples(spaces, objects(values), spaces, st.sampled_from(["", "\n", "\r\n"])).map("".join)


def spans_by_decoder(text: str, start: int, end: list[int]) -> list[tuple[str, int, int]]:
    """Key, begin and end of each value of the object at `start`, in characters."""
    found = []
    at = SPACE.match(text, start + 1).end()  # type: ignore[union-attr]  # matches nothing, too
    while text[at] != "}":
        key, at = scanstring(text, at + 1, True)
        at = SPACE.match(text, at).end()  # type: ignore[union-attr]  # as above
        assert text[at] == ":"
        at = SPACE.match(text, at + 1).end()  # type: ignore[union-attr]  # as above
        _, stop = DECODER.raw_decode(text, at)
        found.append((key, at, stop))
        at = SPACE.match(text, stop).end()  # type: ignore[union-attr]  # as above
        if text[at] == ",":
            at = SPACE.match(text, at + 1).end()  # type: ignore[union-attr]  # as above
    end.append(at)
    return found


def span_by_decoder(text: str, field: str) -> tuple[int, int] | None:
    def last(start: int, name: str) -> tuple[int, int] | None:
        return {key: (begin, stop) for key, begin, stop in spans_by_decoder(text, start, [])}.get(name)

    start = text.index("{")
    if (found := last(start, field)) or "." not in field:
        return found
    at: tuple[int, int] | None = (start, len(text))
    for key in field.split("."):
        at = last(at[0], key) if at and text[at[0]] == "{" else None
    return at


def every_span_by_decoder(text: str, field: str) -> list[tuple[int, int]]:
    """Of all values under a key that may be repeated."""

    def of(start: int, names: list[str]) -> list[tuple[int, int]]:
        found = []
        for key, begin, stop in spans_by_decoder(text, start, []):
            if key == names[0] and len(names) == 1:
                found.append((begin, stop))
            elif key == names[0] and text[begin] == "{":
                found += of(begin, names[1:])
        return found

    start = text.index("{")
    return of(start, [field]) or of(start, field.split("."))


@pytest.mark.parametrize(
    ("line", "field", "expected"),
    [
        ('{"text": "a@b.org", "n": 1e3, "text": "c"}', "text", '{"text": "new", "n": 1e3, "text": "new"}'),
        ('{"text": 5, "text": null}', "text", '{"text": "new", "text": "new"}'),
        ('{"m": {"t": "a", "t": "b"}, "m": {"t": "c"}}', "m.t", '{"m": {"t": "new", "t": "new"}, "m": {"t": "new"}}'),
        ('{"m": {"t": "a"}, "m.t": "b"}', "m.t", '{"m": {"t": "a"}, "m.t": "new"}'),
    ],
)
def test_every_value_of_a_repeated_key_is_replaced(line: str, field: str, expected: str) -> None:
    """What is redacted must not stay in the value that most readers do not see."""
    assert with_text(line.encode(), field, "new") == expected.encode()


@given(lines, st.sampled_from(["text", "meta.text", "meta.meta.text", "a", "é", "t\\", ""]), st.booleans())
@example('{"meta":{"text":"a"},"meta.text":"b","meta.text":"c"}', "meta.text", True)
def test_a_span_is_the_second_scanners(line: str, field: str, is_marked: bool) -> None:
    expected = span_by_decoder(line, field)
    mark = b"\xef\xbb\xbf" if is_marked else b""
    found = value_span(mark + line.encode(), field)
    if expected is None:
        assert found is None
    else:
        begin, end = (len(mark) + len(line[:at].encode()) for at in expected)
        assert found == (begin, end)


@given(lines, st.sampled_from(["text", "meta.text"]), st.text(max_size=8) | st.just('"\\\x00\ud800é}{'))
def test_the_new_text_is_read_and_all_else_stays(line: str, field: str, text: str) -> None:
    data = line.encode()
    span = value_span(data, field)
    if span is None or data[span[0]] not in b'"n':
        with pytest.raises(ValueError, match="the field"):
            with_text(data, field, text)
        return
    new = with_text(data, field, text)
    at, kept = 0, []
    for begin, end in every_span_by_decoder(line, field):
        kept.append(line[at:begin].encode())
        at = end
    rest = new
    for piece in kept:  # a repeated key has the new text each time
        assert piece in rest
        rest = rest[rest.index(piece) + len(piece) :]
    assert rest.endswith(line[at:].encode()) and new.startswith(kept[0])
    assert new.isascii() or not data.isascii()
    before, after = as_written(data), as_written(new)
    assert field_of(after, field) == text
    assert plain(without(before, field)) == plain(without(after, field))


def without(record: Any, field: str) -> Any:
    """A copy of a record in which that field is None."""
    head, dot, rest = field.partition(".")
    if field in record or not dot:
        return {**record, field: None}
    return {**record, head: without(record[head], rest)}


def plain(value: Any) -> str:
    """Values as text: NaN is equal to itself, 1.0 is not 1, and numbers keep their spelling."""
    return json.dumps(value, default=lambda literal: literal.text)


@given(lines, st.sets(st.sampled_from(["text", "meta", "a", "b"]), min_size=1))
def test_labels_that_are_keys_are_found_in_every_spelling(line: str, names: set[str]) -> None:
    labels = LabelKeys([Label(name, "") for name in sorted(names)])
    assert labels.known(line.encode()) == names & as_written(line.encode()).keys()


@given(lines)
def test_labels_are_read_behind_all_keys(line: str) -> None:
    labels = LabelKeys([Label("one", False), Label("two", "")])
    new = labels.added_to(line.encode(), (True, "\ud800é"))
    last = line.encode().rstrip()[:-1]
    assert new.startswith(last) and new.endswith(line.encode()[len(last) :])
    assert plain(as_written(new)) == plain(as_written(line.encode()) | {"one": True, "two": "\ud800é"})


def test_bytes_that_are_not_utf8_stay() -> None:
    line = b'{"\xff":"\xfe\\"","k\\n\xe9":1,"text":"a","b":"\xed\xa0\x80\x80"}'
    new = with_text(line, "text", "é")
    assert new == b'{"\xff":"\xfe\\"","k\\n\xe9":1,"text":"\xc3\xa9","b":"\xed\xa0\x80\x80"}'
    assert parse_undecodable(new)["text"] == "é"
    assert value_span(b'{"k\xff": 1}', "k\ufffd") == (7, 8)
    assert value_span(b'{"k\\n\xff": 1}', "k\n\ufffd") == (9, 10)


BROKEN = """
[] | "text" | { | {"text" | {"text": | {"text":} | {"text":1 | {"text":"a} | {"text":[1} | {"text":"a"] | {text:1}
| {"a" "text":1} | {"a":1 "text":1} | {"a":"\\\\\\ | {"text":"a",} | {"text":"a"}} | {"text":{"a":]}"""


@pytest.mark.parametrize("line", [part.strip() for part in BROKEN.split("|")])
def test_a_broken_line_never_ends_in_another_error(line: str) -> None:
    try:
        value_span(line.encode(), "text")
    except ValueError as error:
        assert "of the line" in str(error)


def test_depth_and_length_cost_neither_stack_nor_memory() -> None:
    for inside in (
        b"[" * (MAX_DEPTH - 1) + b"]" * (MAX_DEPTH - 1),
        b'["\\\\",{}],' * 100_000 + b"1",
        b"\\n" * 1_000_000,
    ):
        value = b'"' + inside + b'"' if inside[:1] == b"\\" else b"[" + inside + b"]"
        line = b'{"a":' + value + b',"text":"x"}'
        assert value_span(line, "text") == (len(line) - 4, len(line) - 1)
    with pytest.raises(ValueError, match="more than 64 levels"):
        value_span(b'{"a":' + b"[" * 1_000_000, "text")
    assert len([*members(b"{" + b'"a":1,' * 10_000 + b'"b":2}', 0)]) == 10_001
