"""Rows of CSV and TSV that stay, in every dialect, with new texts and labels."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.read.sources import LimitParams
from refinery.transforms.read.values.dialects import Dialect
from refinery.transforms.write.rows.copy_rows import check_labels
from refinery.transforms.write.rows.fields_of_rows import edited_row, field_spans, fields_in, spelt_field
from refinery.transforms.write.rows.rows import RowError, Rows
from tests.transforms.read_fixtures import COMPRESSORS
from tests.transforms.write.rows.copies import LABELS, copied, inflated, rows_in, stored, texts_in, written

DIALECTS: tuple[Dialect, ...] = ("rfc4180", "backslash", "plain", "escaped")
HEADER = b'id,"text",n\r\n'
ROWS = [
    b'1,"one, ""two""\nthree",1.0\r\n',
    b"2,four  ,-0.0\n",
    b'"3",,1e3\r\n',
    b"4,\xc3\xa9\x00x,\xff\n",
    b'5,"last",5',
]
TABLE = HEADER + b"\r\n".join([ROWS[0] + ROWS[1], b"".join(ROWS[2:])])


@pytest.mark.parametrize("ending", COMPRESSORS)
def test_rows_that_stay_have_the_inputs_bytes(ending: str, tmp_path: Path) -> None:
    for mark in (b"", b"\xef\xbb\xbf"):
        task = written(tmp_path, f"a.csv{ending}", COMPRESSORS[ending](mark + TABLE))
        assert rows_in(task) == [0, 1, 2, 3, 4]
        for chosen in (range(5), [0, 2], [4], []):
            assert inflated(copied(task, Rows(chosen))) == mark + HEADER + b"".join(ROWS[at] for at in chosen)
    assert inflated(copied(written(tmp_path, "b.csv", b""), Rows([]))) == b""


def test_a_new_text_is_quoted_as_the_dialect_needs(tmp_path: Path) -> None:
    task = written(tmp_path, "a.csv", TABLE)
    texts = [(0, "new"), (1, "new"), (2, 'a "b", c'), (3, "é"), (4, "")]
    copy = copied(task, Rows(range(5), texts=texts))
    assert stored(copy) == HEADER + (b'1,"new",1.0\r\n2,new,-0.0\n"3","a ""b"", c",1e3\r\n4,\xc3\xa9,\xff\n5,"",5')
    assert texts_in(copy) == {row: text for row, text in texts if text}


def test_labels_are_fields_behind(tmp_path: Path) -> None:
    task = written(tmp_path, "a.csv", TABLE)
    check_labels(task, LABELS)
    rows = Rows([0, 4], columns=LABELS, labels=[(4, (True, 'a,"b"', 3, 0.5))], handed_on=[2])
    copy = stored(copied(task, rows))
    assert copy == HEADER.strip() + b",is_copy,copy_of,times,share\r\n" + (
        ROWS[0].strip()
        + b",false,,1,0.0\r\n"
        + ROWS[2].strip()
        + b",false,,1,0.0\r\n"
        + ROWS[4]
        + b',true,"a,""b""",3,0.5'
    )
    clash = written(tmp_path, "b.csv", b"text,copy_of\na,b\n")
    for refused in (lambda: check_labels(clash, LABELS), lambda: copied(clash, Rows([0], columns=LABELS))):
        with pytest.raises(RowError, match="the field 'copy_of' is there already"):
            refused()


def test_what_is_no_row_is_handed_on_as_it_is(tmp_path: Path) -> None:
    broken = [b'"a"b,2\n', b"1,2,3\n", b"x\n"]
    task = written(tmp_path, "a.csv", b"text,n\n" + b"".join(broken) + b"good,1\n")
    assert rows_in(task) == [0, 1, 2, 3]
    assert stored(copied(task, Rows([3], handed_on=[0, 2]))) == b"text,n\n" + broken[0] + broken[2] + b"good,1\n"
    for row in range(3):
        with pytest.raises(RowError, match=rf"@{row}: it has no field for a new text or labels"):
            copied(task, Rows([row], texts=[(row, "x")]))


def test_a_row_that_is_not_there_or_too_large_is_an_error(tmp_path: Path) -> None:
    task = written(tmp_path, "a.csv", b"text\n" + b"x" * 2000 + b"\ny\n")
    limits = LimitParams(max_record_bytes=1000, max_decompressed_bytes=1000)
    assert stored(copied(task, Rows([1]), limits)) == b"text\ny\n"
    with pytest.raises(RowError, match="more bytes than"):
        copied(task, Rows([0]), limits)
    with pytest.raises(RowError, match="the file has no such row"):
        copied(task, Rows([2]))


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("form", ["csv", "tsv"])
def test_each_dialect_has_its_own_spelling(dialect: Dialect, form: str, tmp_path: Path) -> None:
    sign = {"csv": ",", "tsv": "\t"}[form]
    texts = ["plain", "a \\ b", "c"] if dialect == "plain" else [f'a "{sign}" \\N', 'x\\"', "two\nlines \\\t"]
    old = ["o1", r"o\\2" if dialect in ("backslash", "escaped") else "o2", "o3"]
    data = f"n{sign}text{sign}z\n" + "".join(f"{at}{sign}{text}{sign}z{at}\n" for at, text in enumerate(old))
    task = written(tmp_path, f"a.{form}", data.encode(), dialect=dialect)
    copy = copied(task, Rows(range(3), texts=enumerate(texts)))
    assert texts_in(copy) == dict(enumerate(texts))
    assert stored(copied(copy, Rows([1]))).split(b"\n")[0] == data.encode().split(b"\n")[0]


@pytest.mark.parametrize("text", ["a\nb", "a\tb", ""])
def test_a_text_that_a_dialect_cannot_have_is_an_error(text: str, tmp_path: Path) -> None:
    task = written(tmp_path, "a.tsv", b"text\nold\n", dialect="plain")
    with pytest.raises(RowError, match=r"a\.tsv@0: its new text cannot be written in the dialect plain"):
        copied(task, Rows([0], texts=[(0, text)]))
    assert texts_in(copied(written(tmp_path, "a.csv", b"text\nold\n"), Rows([0], texts=[(0, text or "x")])))
    assert stored(copied(written(tmp_path, "a.csv", b"text\nold\n"), Rows([0], texts=[(0, "")]))) == b'text\n""\n'


def test_a_tsv_file_is_plain_or_quoted_as_its_reader_decides(tmp_path: Path) -> None:
    quoted = b'"id"\t"text"\n"1"\t"a ""b"""\n2\tc\n'
    copy = copied(written(tmp_path, "a.tsv", quoted), Rows([0, 1], texts=[(0, 'd\t"')]))
    assert stored(copy) == b'"id"\t"text"\n"1"\t"d\t"""\n2\tc\n'
    plain = b'id\ttext\n1\t"a\n2\tb" c\n'
    copy = copied(written(tmp_path, "b.tsv", plain), Rows([0, 1], texts=[(0, 'd "')]))
    assert stored(copy) == b'id\ttext\n1\td "\n2\tb" c\n'


fields = st.text(st.sampled_from('ab,\t"\\\r\né '), max_size=6)
parts = st.lists(st.tuples(fields, st.booleans()), min_size=1, max_size=4)


@given(parts, st.sampled_from(DIALECTS), st.sampled_from(["\n", "\r\n", ""]), st.data())
def test_one_field_changes_and_all_bytes_beside_it_stay(
    row: list[tuple[str, bool]], dialect: Dialect, end: str, data: st.DataObject
) -> None:
    spelt = [spelt_field(text, dialect, ",", is_quoted) for text, is_quoted in row]
    texts = [text for text, _ in row]
    line = (",".join(spelt) + end).encode()
    if fields_in(line, dialect, ",") != texts:  # not what a writer of this dialect makes
        assert dialect == "plain" or len(row) == 1
        return
    assert [line[a:b].decode() for a, b in field_spans(line, dialect, ",")] == spelt
    at = data.draw(st.integers(0, len(row) - 1))
    new = edited_row(line, texts, dialect, ",", {at: "new é"}, ["x"])
    is_quoted = dialect in ("rfc4180", "backslash") and spelt[at][:1] == '"'
    spelt[at] = '"new é"' if is_quoted else "new é"
    assert new.decode() == ",".join([*spelt, "x"]) + end


@given(
    st.sampled_from(DIALECTS), st.lists(st.sampled_from([*'ab,"\\\n', '"a"', ",1\n", "\r\n"]), max_size=30), st.data()
)
def test_readers_find_the_same_in_a_copy(
    tmp_path_factory: pytest.TempPathFactory, dialect: Dialect, rows: str, data: st.DataObject
) -> None:
    task = written(tmp_path_factory.getbasetemp(), "any.csv", f"text,n\n{rows}".encode(), dialect=dialect)
    found = texts_in(task)
    kept = [row for row in found if data.draw(st.booleans())]
    assert [*texts_in(copied(task, Rows(kept))).values()] == [found[row] for row in kept]
