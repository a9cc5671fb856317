"""CSV and TSV: every row is a record, whatever stands in it."""

import csv
import io
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.core.document import RawDocument
from refinery.transforms.read.sources import LimitParams
from tests.transforms.read_fixtures import COMPRESSORS, offset_of, read, summary


def written(rows: list[list[str]], delimiter: str = ",", ending: str = "\r\n") -> bytes:
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=delimiter, lineterminator=ending, quoting=csv.QUOTE_ALL).writerows(rows)
    return out.getvalue().encode()


@pytest.mark.parametrize("ending", COMPRESSORS)
@pytest.mark.parametrize(("kind", "delimiter"), [("csv", ","), ("tsv", "\t")])
def test_fields_have_the_names_of_the_header(tmp_path: Path, kind: str, delimiter: str, ending: str) -> None:
    """Quoted or not."""
    rows = [["id", "text", "url", "date"], ["7", 'a "quoted"\nline, and\ttab', "https://a.example", "2024"]]
    plain = written(rows, delimiter).replace(b'"7"', b"7").replace(b'"2024"', b"2024")
    data = COMPRESSORS[ending](b"\xef\xbb\xbf" + plain)
    (record,) = read(tmp_path / "a", data, kind, id_field="id", meta_fields=("id",))
    assert isinstance(record, RawDocument)
    assert (record.content, record.url, dict(record.meta)) == (
        rows[1][1], "https://a.example", {"date": "2024", "record_id": "7", "id": "7"},
    )  # fmt: skip


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=9)


@given(st.lists(texts.filter(str.strip)), st.sampled_from(["\n", "\r\n"]))
def test_what_a_writer_wrote_is_read(values: list[str], ending: str) -> None:
    rows = [["n", "text"], *([str(number), value] for number, value in enumerate(values))]
    with TemporaryDirectory() as folder:
        records = read(Path(folder) / "a", written(rows, ending=ending), "csv")
    assert [record.content for record in records if isinstance(record, RawDocument)] == values
    assert [offset_of(record) for record in records] == list(range(len(values)))


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"", []),
        (b"text\n", []),
        (b"body\nx\n", ["!MissingField"]),
        (b"text,text\nx,y\n", ["!BadHeader"]),
        (b"n,text\n1,a\n2\n3,c,d\n\n4,e\n", ["text", "!BadRow", "!BadRow", "text"]),
        (b"n,text\n1,a\n2,\xff\n3,c\n", ["text", "!BadRow", "text"]),
        (b"n,text\n1,\n2, \n", ["empty", "empty"]),
        (b"n,text\n1," + b"x" * 101 + b"\n2,a\n", ["too-large", "text"]),
        (b'n,text\n1,a\n2,"open\n' + b"line\n" * 50 + b"3,c\n", ["text", "too-large", *["!BadRow"] * 11, "text"]),
        (COMPRESSORS[".gz"](b"n,text\n1,a\n2,b\n")[:-4], ["text", "text", "!Truncated"]),
    ],
)
def test_what_is_no_row_is_counted(tmp_path: Path, data: bytes, found: list[str]) -> None:
    limits = LimitParams(max_record_bytes=100, max_decompressed_bytes=200)
    assert summary(read(tmp_path / "a", data, "csv", limits)) == found


def test_a_cap_and_a_sample(tmp_path: Path) -> None:
    data = written([["text"], *([f"row {number}"] for number in range(200))])
    assert len(read(tmp_path / "a", data, "csv", cap=7)) == 7
    sampled = summary(read(tmp_path / "a", data, "csv", sample=0.3))
    assert sampled.count("text") + sampled.count("not-sampled") == 200
    assert 30 < sampled.count("text") < 90


def test_the_limit_of_other_readers_is_left_alone(tmp_path: Path) -> None:
    before = csv.field_size_limit()
    read(tmp_path / "a", b"text\nx\n", "csv")
    assert csv.field_size_limit() == before
