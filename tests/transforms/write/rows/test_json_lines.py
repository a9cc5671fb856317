"""Lines of JSONL: what stays has the input's bytes, in every container, across every cut of blocks."""

import errno
import gzip
import itertools
import json
import struct
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from refinery.loader.storage.full_disk import DiskFull
from refinery.transforms.core.answers import Damaged, Skipped
from refinery.transforms.core.document import RawDocument
from refinery.transforms.core.input_sums.crc32c import StretchSum
from refinery.transforms.read.sources import InputChanged, LimitParams, read_task
from refinery.transforms.read.task import ReadTask
from refinery.transforms.write.rows import copy_rows as module
from refinery.transforms.write.rows.copy_rows import check_labels, copy_rows
from refinery.transforms.write.rows.json_lines import looks_known, pick_lines
from refinery.transforms.write.rows.json_spans import LabelKeys
from refinery.transforms.write.rows.rows import Label, RowError, Rows
from tests.transforms.read_fixtures import COMPRESSORS, Outcome, lz4
from tests.transforms.write.rows.copies import GIVEN, LABELS, copied, inflated, row_of, rows_in, stored, written

TASK = ReadTask("in.jsonl", "jsonl", "s", 0, 0)
LINES = [
    b'{"id": 12345678901234567890123, "text": "one", "n": 1e3, "z": -0.0}\n',
    b' \t{ "n" : 1.0 , "text" : "two \\u00e9\\/ \xe2\x80\xa8\xc2\x85" } \r\n',
    b'{"text":"first","text":"three","a":NaN,"b":1e400}\n',
    b'{"text": "four \\ud800 \\u0000", "raw": "\xff\xfe"}\n',
    b'{"text": null, "n": 4}\n',
    b'{"n": [1, {"text": "no"}]}\n',
    b'{"text": ""}\n',
    b'{"text": "last"}',
]
SCRAPS = [
    *LINES,
    b"\n",
    b"\r\n",
    b"\r",
    b" ",
    b"\xef\xbb\xbf" + LINES[0],
    b"[1]\n",
    b"{\n",
    b"\x00\n",
    b"\xff",
    b'{"text": 5}\n',
]
STARTS = [0, *itertools.accumulate(map(len, LINES))][:-1]


def test_lines_that_stay_have_the_inputs_bytes(tmp_path: Path) -> None:
    task = written(tmp_path, "a.jsonl", b"".join(LINES))
    assert rows_in(task) == STARTS
    for chosen in ([0, 2, 3], [1, 4, 5], [6, 7], [7], [], range(8)):
        assert stored(copied(task, Rows(STARTS[at] for at in chosen))) == b"".join(LINES[at] for at in chosen)


def test_blank_lines_go_and_a_mark_belongs_to_its_line(tmp_path: Path) -> None:
    mark, line = b"\xef\xbb\xbf", b'{"text": "%d"}\r\n'
    data = mark + line % 1 + b"\r\n\n  \n" + line % 2 + mark + line % 3
    task = written(tmp_path, "a.jsonl", data)
    rows = rows_in(task)
    assert stored(copied(task, Rows(rows))) == mark + line % 1 + line % 2 + mark + line % 3
    assert stored(copied(task, Rows(rows[1:2]))) == line % 2
    assert stored(copied(task, Rows(rows[2:]))) == mark + line % 3


@pytest.mark.parametrize("ending", COMPRESSORS)
@pytest.mark.parametrize("data", [b"".join(LINES), b"\n\n", b""])
def test_the_copy_has_the_inputs_compression_and_one_member(ending: str, data: bytes, tmp_path: Path) -> None:
    task = written(tmp_path, f"a.jsonl{ending}", COMPRESSORS[ending](data))
    for kept in (rows_in(task), []):
        copy = copied(task, Rows(kept))
        assert inflated(copy) == (b"".join(LINES) if kept else b"")
        assert (
            stored(copy)[:4]
            == COMPRESSORS[ending](b"x")[: 4 if ending else 0] + b"".join(LINES)[: 0 if ending or not kept else 4]
        )
        assert stored(copy) == stored(copied(task, Rows(kept)))


def test_an_empty_file_is_compressed_as_its_name_says(tmp_path: Path) -> None:
    for ending in COMPRESSORS:
        copy = stored(copied(written(tmp_path, f"a.jsonl{ending}", b""), Rows([])))
        assert bool(copy) == bool(ending)
    assert gzip.decompress(stored(copied(written(tmp_path, "b.jsonl.gz", b""), Rows([])))) == b""
    assert zstandard.decompress(stored(copied(written(tmp_path, "b.jsonl.zst", b""), Rows([])))) == b""


def test_members_are_cut_anywhere(tmp_path: Path) -> None:
    data = b"".join(LINES)
    pieces = [data[:30], b"", data[30:200], data[200:]]
    skippable = struct.pack("<II", 0x184D2A51, 5) + b"notes"
    frames = [zstandard.ZstdCompressor(write_content_size=False).compress(piece) for piece in pieces]
    files = {
        "a.jsonl.gz": b"".join(gzip.compress(piece) for piece in pieces),
        "a.jsonl.zst": skippable + skippable.join(frames),
        "a.jsonl.lz4": skippable.join(lz4(piece) or lz4(b" ")[:0] for piece in pieces if piece),
        "plain.jsonl.gz": data,
    }
    for name, packed in files.items():
        task = written(tmp_path, name, packed)
        assert rows_in(task) == STARTS
        assert inflated(copied(task, Rows(STARTS[::2]))) == b"".join(LINES[::2])


@given(st.lists(st.sampled_from([b"", b"a", b"\r", b"bc", b"\xef\xbb\xbf", b"long line " * 3]), max_size=12), st.data())
def test_blocks_may_end_anywhere(lines: list[bytes], data: st.DataObject) -> None:
    ends = data.draw(st.sampled_from([b"\n", b""]))
    whole = b"\n".join(lines) + ends
    starts = [0, *itertools.accumulate(len(line) + 1 for line in lines)][: len(lines)]
    chosen = [at for at in range(len(lines)) if starts[at] < len(whole) and data.draw(st.booleans())]
    edited = {at for at in chosen if data.draw(st.booleans())}
    cuts = sorted({0, len(whole), *data.draw(st.lists(st.integers(0, len(whole)), max_size=5))})
    blocks = [(whole[a:b], "") for a, b in itertools.pairwise(cuts)]
    out: list[bytes] = []
    rows = Rows([starts[at] for at in chosen], texts=[(starts[at], "new") for at in sorted(edited)])
    pick_lines(
        TASK, iter(blocks), rows.edits(TASK), lambda row, line, edit: b"<%d:%b>" % (row, line), 100,
        lambda piece: out.append(bytes(piece)),
    )  # fmt: skip
    with_ends = [whole[start : start + len(line) + 1] for start, line in zip(starts, lines, strict=True)]
    expected = [b"<%d:%b>" % (starts[at], with_ends[at]) if at in edited else with_ends[at] for at in chosen]
    assert b"".join(out) == b"".join(expected)


@pytest.mark.parametrize("rows", [[1], [STARTS[1] + 1], [9999], [STARTS[-1] + 3], [0, 9999]])
def test_a_row_that_begins_no_line_is_an_error(rows: list[int], tmp_path: Path) -> None:
    with pytest.raises(RowError, match=rf"a\.jsonl@{rows[-1]}: "):
        copied(written(tmp_path, "a.jsonl", b"".join(LINES)), Rows(rows))
    assert not list((tmp_path / "out").iterdir())


def test_damage_behind_the_last_row_does_not_matter(tmp_path: Path) -> None:
    packed = gzip.compress(b"".join(LINES[:-1] * 50))
    task = written(tmp_path, "a.jsonl.gz", packed[: len(packed) - 20])
    found = list(read_task(task))
    assert isinstance(found[-1], Damaged)
    good = [row_of(each) for each in found[:-1]]
    copy = inflated(copied(task, Rows(good)))
    assert copy == b"".join(LINES[:-1] * 50)[: row_of(found[-1])]
    with pytest.raises(RowError, match="Truncated"):
        copied(task, Rows([row_of(found[-1])]))


def test_labels_come_before_the_last_brace(tmp_path: Path) -> None:
    lines = [*LINES[:-1], b"{ }\n", b'{"a": "}"\t}']
    task = written(tmp_path, "a.jsonl", b"".join(lines))
    starts = rows_in(task)
    check_labels(task, LABELS)
    copy = stored(copied(task, Rows(starts, columns=LABELS, labels=[(starts[1], GIVEN)])))
    for number, (old, new) in enumerate(zip(lines, copy.splitlines(keepends=True)[: len(lines)], strict=False)):
        if b"\xe2\x80\xa8" not in old:
            assert new.startswith(old.rstrip()[:-1]), number
    last = json.loads(copy.split(b"\n")[-1])
    assert last == {"a": "}", "is_copy": False, "copy_of": "", "times": 1, "share": 0.0}
    assert [type(last[label.name]) for label in LABELS] == [label.kind for label in LABELS]
    second = copy[copy.index(b"\n") + 1 :]
    assert second.startswith(
        LINES[1].rstrip()[:-1] + ',"is_copy":true,"copy_of":"café","times":-7,"share":2.0} \r\n'.encode()
    )
    assert b'{ "is_copy":false' in copy


@pytest.mark.parametrize("key", [b'"is_copy"', b'"\\u0069s_copy"', b'"times"'])
def test_a_label_that_is_a_key_already_is_named_before_anything_is_written(key: bytes, tmp_path: Path) -> None:
    line = b'{"text": "is_copy", "in": {"is_copy": 1}, "\\u00e9": "\\u0041"}\n'
    before = line * 3 + b"broken \\u0041 {\n"
    task = written(tmp_path, "a.jsonl", before + b"{" + key + b": 1}\n" + line)
    with pytest.raises(RowError, match=r"a\.jsonl@\d+: the field '(is_copy|times)' is there already"):
        check_labels(task, LABELS)
    check_labels(written(tmp_path, "b.jsonl", before), LABELS)


@pytest.mark.parametrize("key", ["is_copy", "times"])
def test_a_label_that_is_a_key_of_a_line_has_another_name_there(key: str, tmp_path: Path) -> None:
    lines = [b'{"text": "a"}\n', b'{"text": "a", "%s": 1e3}\n' % key.encode()]
    task = written(tmp_path, "a.jsonl", b"".join(lines))
    first, second = stored(copied(task, Rows(rows_in(task), columns=LABELS))).splitlines(keepends=True)
    empty = dict(json.loads(first))
    assert second.startswith(lines[1].rstrip()[:-1]) and json.loads(first).keys() >= {key}
    assert json.loads(second) == {f"refinery_{key}" if name == key else name: empty[name] for name in empty} | {
        key: 1e3
    }
    both = b'{"text": "a", "%s": 1, "refinery_%s": 2}\n' % (key.encode(), key.encode())
    third = json.loads(stored(copied(written(tmp_path, "b.jsonl", both), Rows([0], columns=LABELS))))
    assert third[key] == 1 and third[f"refinery_{key}"] == 2 and third[f"refinery_refinery_{key}"] == empty[key]


@pytest.mark.parametrize("key", [b'"is_copy"', b'"\\u0069s_copy"'])
def test_a_key_is_found_across_every_cut_of_blocks(key: bytes) -> None:
    data, keys = b'{"a": 1, ' + key + b': "\\u00e9"}\n', LabelKeys(LABELS)
    for cut in range(len(data)):
        assert looks_known(iter([(data[:cut], ""), (data[cut:], "")]), keys)
    assert not looks_known(iter([(data.replace(key, b'"copy"'), "")]), keys)


def test_lines_that_are_handed_on_are_never_changed(tmp_path: Path) -> None:
    lines = [b'{"text": "a"}\n', b"[1]\n", b'{"text": 5}\n', b"{broken\n", b'"x"\n']
    task = written(tmp_path, "a.jsonl", b"".join(lines))
    starts = rows_in(task)
    rows = Rows(starts[:1], columns=LABELS[:1], handed_on=starts[1:])
    assert stored(copied(task, rows)) == b'{"text": "a","is_copy":false}\n' + b"".join(lines[1:])
    with pytest.raises(RowError, match="a line without a JSON object cannot get labels"):
        copied(task, Rows(starts, columns=LABELS))
    with pytest.raises(RowError, match="has no text"):
        copied(task, Rows(starts, texts=[(starts[2], "x")]))


def test_an_edited_line_is_bounded_and_another_one_is_not(tmp_path: Path) -> None:
    limits = LimitParams(max_record_bytes=1000, max_decompressed_bytes=3 << 20)
    long = b'{"text": "b", "pad": "%b"}\n' % (b"x" * (4 << 20))
    task = written(tmp_path, "a.jsonl", LINES[0] + long + LINES[2])
    rows = [0, len(LINES[0]), len(LINES[0]) + len(long)]
    assert stored(copied(task, Rows(rows), limits)) == LINES[0] + long + LINES[2]
    assert stored(copied(task, Rows([0], columns=LABELS, handed_on=rows[1:]), limits)).endswith(long + LINES[2])
    with pytest.raises(RowError, match=rf"@{rows[1]}: more than 3,145,728 bytes"):
        copied(task, Rows(rows, columns=LABELS), limits)


def test_all_of_a_file_is_its_bytes(tmp_path: Path) -> None:
    packed = gzip.compress(LINES[0]) + gzip.compress(LINES[1])
    assert stored(copied(written(tmp_path, "a.jsonl.gz", packed), Rows(None))) == packed
    with pytest.raises(ValueError, match="kept: null given with"):
        Rows(None, columns=LABELS)


def test_a_file_that_is_not_the_planned_one_is_refused(tmp_path: Path) -> None:
    data = b"".join(LINES)
    task = written(tmp_path, "a.jsonl", data)
    whole = StretchSum(0, len(data))
    whole.add(0, data)
    planned = ReadTask(**{**vars(task), "crc32c": whole.result()})
    assert stored(copied(planned, Rows([0]))) == LINES[0]
    Path(task.path).write_bytes(data.replace(b"last", b"LAST"))
    with pytest.raises(InputChanged, match="other bytes"):
        copied(planned, Rows([0]))
    Path(task.path).write_bytes(data + b" ")
    with pytest.raises(InputChanged, match="bytes found"):
        copied(task, Rows([0]))
    Path(task.path).unlink()
    with pytest.raises(InputChanged, match="gone"):
        copied(task, Rows([0]))
    assert not list((tmp_path / "out").iterdir())


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    task = written(tmp_path, "a.jsonl", LINES[0])
    (tmp_path / "b.jsonl").write_bytes(b"mine")
    with pytest.raises(FileExistsError):
        copy_rows(task, tmp_path / "b.jsonl", Rows([0]))
    assert (tmp_path / "b.jsonl").read_bytes() == b"mine"


def test_a_full_disk_is_named_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fill(*_: object) -> None:
        raise OSError(errno.EDQUOT, "quota")

    monkeypatch.setattr(module, "copy_chosen", fill)
    with pytest.raises(DiskFull, match=r"out/a\.jsonl"):
        copied(written(tmp_path, "a.jsonl", LINES[0]), Rows([0]))
    assert not list((tmp_path / "out").iterdir())


@given(st.lists(st.sampled_from(SCRAPS), max_size=25).map(b"".join), st.data())
def test_readers_find_the_same_in_a_copy(
    tmp_path_factory: pytest.TempPathFactory, whole: bytes, data: st.DataObject
) -> None:
    task = written(tmp_path_factory.getbasetemp(), "any.jsonl", whole)
    found = {row_of(each): each for each in read_task(task)}
    kept = [row for row in found if data.draw(st.booleans())]
    again = [*read_task(copied(task, Rows(kept)))]
    assert [plain(each) for each in again] == [plain(found[row]) for row in kept]


def plain(outcome: Outcome) -> tuple[object, ...]:
    """A record without its place."""
    if isinstance(outcome, RawDocument):
        return "text", outcome.content
    return ("skipped", outcome.reason) if isinstance(outcome, Skipped) else (outcome.error, outcome.data)


@pytest.mark.parametrize("name", ["a.warc", "a.txt", "a.html", "a.wet"])
def test_formats_without_rows_are_refused_in_a_line(name: str, tmp_path: Path) -> None:
    task = written(tmp_path, name, b"x")
    task = ReadTask(**{**vars(task), "format": {"txt": "text", "html": "text"}.get(task.format, task.format)})
    for refused in (lambda: copied(task, Rows([0])), lambda: check_labels(task, [Label("a", "")])):
        with pytest.raises(
            ValueError, match=r"cannot be copied row by row, .*`refinery export --format jsonl`"
        ) as error:
            refused()
        assert "\n" not in str(error.value)
