"""CSV and TSV as people write them: quotes in the wrong place, backslashes, and no quoting at all."""

import csv
import io
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.core.document import RawDocument
from refinery.transforms.read.probe import probe_sources
from refinery.transforms.read.sources import LimitParams, SourceParams, plan_sources
from tests.transforms.read_fixtures import read, task_for


def texts(folder: Path, data: bytes | str, kind: str, **fields: object) -> list[str]:
    """The texts of a file, "!" and the error, or "-" and the reason."""
    data = data if isinstance(data, bytes) else data.encode()
    found = []
    for record in read(folder / f"a.{kind}", data, kind, **fields):
        is_text = isinstance(record, RawDocument)
        said = getattr(record, "error", "") or f"-{getattr(record, 'reason', '')}"
        found.append(str(getattr(record, "content", "")) if is_text else f"!{said}")
    return found


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ('"She said "yes" at once.",1\nplain,2\n', ["!BadRow", "plain"]),
        ('"She said "yes", and sat down.",1\nplain,2\n', ["!BadRow", "plain"]),
        ('"She said \\"yes\\" at once.",1\nplain,2\n', ["!BadRow", "plain"]),
        ('"{\\"k\\": \\"v\\"}",1\nplain,2\n', ["!BadRow", "plain"]),
        ('"a path \\",1\nplain,2\n', ["a path \\", "plain"]),
        ('a 3" nail,1\nplain,2\n', ['a 3" nail', "plain"]),
        # An open quote costs its row, and what follows is read again where it is surely a row.
        ('first,0\n"never closed,1\nsecond,2\nthird,3\n', ["first", "!BadRow", "second", "third"]),
        ('"never closed,1\n"second",2\nthird,3\n', ["!BadRow", "second", "third"]),
        ('"never closed,one\nsecond,two\n', ["!BadRow", "!BadRow"]),
        # Half of a text is none, though it has the right number of commas.
        ('"A "b" c\nand more\nand, more\nend",x\nplain,y\n', [*["!BadRow"] * 4, "plain"]),
        (
            '"A\nsaid ""b""\nand, c",1\n"A\nsaid "b"\nand, c\nend",2\nplain,3\n',
            ['A\nsaid "b"\nand, c', *["!BadRow"] * 4, "plain"],
        ),
        ('"A "b" and\nleft, it",1\nplain,2\n', ["!BadRow", "!BadRow", "plain"]),
    ],
)  # fmt: skip
def test_text_behind_a_closing_quote_is_no_row(tmp_path: Path, body: str, found: list[str]) -> None:
    assert texts(tmp_path, f"text,n\n{body}", "csv") == found


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ('"Hello," she said.\t1\nplain\t2\n', ['"Hello," she said.', "plain"]),
        ('"Open\t1\nplain\t2\nclosed"\t3\n', ['"Open', "plain", 'closed"']),
        ('plain\t1\n"Never closed\t2\nplain\t3\n', ["plain", '"Never closed', "plain"]),
        ('"To be."\t1\nplain\t2\n', ['"To be."', "plain"]),
        ('plain\t1\n"said ""no"""\t2\n', ["plain", 'said "no"']),
        ('plain\t1\n"two\nlines"\t2\n"a\ttab"\t3\n', ["plain", "two\nlines", "a\ttab"]),
        ('"two\nlines"\t1\n"a" b\t2\nplain\t3\n', ["two\nlines", "!BadRow", "plain"]),
        ('plain\t1\t9\n"a" b\t2\n', ["!BadRow", '"a" b']),
        ("back\\nslash\t1\n", ["back\\nslash"]),
    ],
)
def test_a_tsv_file_says_whether_it_quotes(tmp_path: Path, body: str, found: list[str]) -> None:
    assert texts(tmp_path, f"text\tn\n{body}", "tsv") == found
    late = "".join(f"row {number}\t{number}\n" for number in range(3000))
    assert texts(tmp_path, f"text\tn\n{late}{body}", "tsv")[3000:] == found


def test_a_quoted_header_means_quoting(tmp_path: Path) -> None:
    assert texts(tmp_path, '"text"\t"n"\n"To be."\t"1"\n', "tsv") == ["To be."]
    assert texts(tmp_path, 'text\tn\turl\n"To be."\t1\t"u"\n', "tsv") == ["To be."]
    assert texts(tmp_path, '"text\tn\nrow\t1\n', "tsv", text_field='"text') == ["row"]


words = st.text(st.sampled_from('ab "\\\t,é\u2028'), max_size=6).map(lambda text: f"x{text}y")


@given(st.lists(st.tuples(words, words), min_size=1, max_size=8), st.sampled_from(["\n", "\r\n"]))
def test_unquoted_tsv_loses_nothing(rows: list[tuple[str, str]], ending: str) -> None:
    """Every line is a document with its quotes, whatever stands where."""
    values = [(a.replace("\t", '"').removeprefix("x"), b.replace("\t", "")) for a, b in rows]
    data = "".join(f"{a}\t{b}{ending}" for a, b in [("text", "n"), *values])
    with TemporaryDirectory() as folder:
        assert texts(Path(folder), data, "tsv", dialect="plain") == [a for a, _ in values]


@given(st.lists(words, min_size=1, max_size=8))
def test_backslashes_before_quotes_are_taken_off(values: list[str]) -> None:
    """As Spark writes: quotes and backslashes in quoted fields have a backslash."""
    escaped = [value.replace("\\", "\\\\").replace('"', '\\"') for value in values]
    data = "n,text\n" + "".join(f'{number},"{value}"\n' for number, value in enumerate(escaped))
    with TemporaryDirectory() as folder:
        assert texts(Path(folder), data, "csv", dialect="backslash") == values


def test_other_backslashes_stay(tmp_path: Path) -> None:
    assert texts(tmp_path, 'text,n\n"C:\\temp \\"x\\"",1\nC:\\x,2\n"a ""b""",3\n', "csv", dialect="backslash") == [
        'C:\\temp "x"', "C:\\x", 'a "b"',
    ]  # fmt: skip


@given(st.lists(st.text(st.sampled_from('ab"\\\t\n\r\b'), max_size=8).map(lambda text: f"x{text}"), min_size=1))
def test_escapes_of_copy_are_undone(values: list[str]) -> None:
    names = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\b": "\\b"}
    data = "text\tn\n" + "".join(f"{''.join(names.get(c, c) for c in value)}\t\\N\n" for value in values)
    with TemporaryDirectory() as folder:
        assert texts(Path(folder), data, "tsv", dialect="escaped") == values


def test_escaped_tabs_and_newlines_are_no_borders(tmp_path: Path) -> None:
    data = "text\tn\ntwo\\\nlines\t1\na\\\ttab\t2\n\\N\t3\nend\\\\\t4\n"
    found = texts(tmp_path, data, "tsv", dialect="escaped")
    assert found == ["two\nlines", "a\ttab", "!-empty", "end\\"]


def proposed(folder: Path, data: str, kind: str, **fields: object) -> str:
    path = folder / f"a.{kind}"
    path.write_text(data, newline="")
    return probe_sources([task_for(path, kind, **fields)], LimitParams()).get("src", "")


def test_the_probe_proposes_a_dialect(tmp_path: Path) -> None:
    spark = 'text,n\nplain,1\n"She said \\"yes\\", at once.",2\n'
    assert "1 of the first rows" in proposed(tmp_path, spark, "csv")
    assert "`dialect: backslash`" in proposed(tmp_path, spark, "csv")
    assert proposed(tmp_path, spark, "csv", dialect="rfc4180") == ""
    assert proposed(tmp_path, spark, "csv", dialect="backslash") == ""
    assert "`dialect: escaped`" in proposed(tmp_path, "text\tn\nplain\t1\ntwo\\\nlines\t2\n", "tsv")
    for right in ('"a path \\",1\n', 'x\\ny,1\n', '"She said "no"\\.",1\nb,2\n'):  # fmt: skip
        assert proposed(tmp_path, f"text,n\nplain,0\n{right}", "csv") == ""


def test_a_dialect_travels_with_the_task(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("text\nx\n")
    source = SourceParams(name="s", paths=(str(tmp_path / "a.csv"),), dialect="plain")
    (task,) = plan_sources([source])
    assert type(task).from_json(task.to_json()) == task and task.dialect == "plain"


@given(st.lists(st.lists(words, min_size=2, max_size=2), max_size=6))
def test_what_python_writes_is_read_in_both_formats(rows: list[list[str]]) -> None:
    with TemporaryDirectory() as folder:
        for kind, delimiter in (("csv", ","), ("tsv", "\t")):
            out = io.StringIO(newline="")
            csv.writer(out, delimiter=delimiter).writerows([["text", "n"], *rows])
            assert texts(Path(folder), out.getvalue(), kind) == [row[0] for row in rows]


def test_bytes_that_are_not_utf8_cost_the_row_in_the_text_alone(tmp_path: Path) -> None:
    data = b"text,url,n\nfine,http://a.example/\xff,1\nb\xffd,u,2\nfine,u,3\xff\n"
    records = read(tmp_path / "a.csv", data, "csv")
    assert [getattr(record, "error", "") for record in records] == ["", "BadRow", ""]
    first, last = records[0], records[2]
    assert isinstance(first, RawDocument) and isinstance(last, RawDocument)
    assert (first.url, first.found) == ("http://a.example/\ufffd", ("value-as-text/url",))
    assert last.found == ()
