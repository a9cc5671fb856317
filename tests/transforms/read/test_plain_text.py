"""Text files, and folders of them."""

from pathlib import Path

import pytest

from refinery.transforms.core.document import RawDocument
from refinery.transforms.read.sources import LimitParams, SourceParams, plan_sources
from tests.transforms.read_fixtures import COMPRESSORS, offset_of, read, summary

TEXT = b"First line\nstill the first.\n\nSecond paragraph.\n \r\n\n\nThird,\nof three\nlines."


def contents(path: Path, data: bytes, **fields: object) -> list[bytes]:
    return [r.content for r in read(path, data, "text", **fields) if isinstance(r, RawDocument)]  # type: ignore[misc]


@pytest.mark.parametrize("ending", COMPRESSORS)
@pytest.mark.parametrize(
    ("unit", "found"),
    [
        ("file", [TEXT]),
        ("paragraph", [b"First line\nstill the first.", b"Second paragraph.", b"Third,\nof three\nlines."]),
        ("line", [line for line in TEXT.split(b"\n") if line.strip()]),
    ],
)
def test_a_document_is_a_file_a_paragraph_or_a_line(tmp_path: Path, ending: str, unit: str, found: list[bytes]) -> None:
    path = tmp_path / f"a.txt{ending}"
    records = read(path, COMPRESSORS[ending](TEXT), "text", unit=unit)
    assert [record.content for record in records if isinstance(record, RawDocument)] == found
    for record, content in zip(records, found, strict=True):
        assert TEXT[offset_of(record) :].startswith(content[:5])


def test_lines_are_read_in_parts(tmp_path: Path) -> None:
    data = b"".join(b"line %d of a large file%s\n" % (number, b" of words" * 20) for number in range(15_000))
    whole = contents(tmp_path / "a.txt", data, unit="line")
    parts = [contents(tmp_path / "a.txt", data, unit="line", part=part, parts=3) for part in range(3)]
    assert [line for part in parts for line in part] == whole
    assert all(parts)


@pytest.mark.parametrize(
    ("data", "unit", "found"),
    [
        (b"", "file", ["empty"]),
        (b" \n", "file", ["empty"]),
        (b"", "line", []),
        (b"\n\n", "paragraph", []),
        (b"x" * 101, "file", ["too-large"]),
        (b"ab\n" + b"x" * 101 + b"\ncd", "line", ["text", "too-large", "text"]),
        (b"ab\n\n" + b"x\n" * 101 + b"\ncd", "paragraph", ["text", "too-large", "text"]),
        (COMPRESSORS[".gz"](b"ab\ncd")[:-4], "file", ["!Truncated"]),
        (COMPRESSORS[".gz"](b"ab\n\ncd")[:-4], "paragraph", ["text", "!Truncated"]),
    ],
)
def test_what_is_no_text_is_counted(tmp_path: Path, data: bytes, unit: str, found: list[str]) -> None:
    limits = LimitParams(max_record_bytes=100)
    assert summary(read(tmp_path / "a", data, "text", limits, unit=unit)) == found


def test_pages_are_html_by_their_names(tmp_path: Path) -> None:
    assert summary(read(tmp_path / "a.HTML", b"<p>x</p>", "text")) == ["html"]
    assert summary(read(tmp_path / "a.htm.gz", COMPRESSORS[".gz"](b"<p>x</p>"), "text")) == ["html"]
    assert summary(read(tmp_path / "a.txt", b"<p>x</p>", "text")) == ["text"]
    assert summary(read(tmp_path / "a.txt", b"<p>x</p>", "text", content="html")) == ["html"]
    assert summary(read(tmp_path / "a.html", b"<p>x</p>", "text", content="text")) == ["text"]


def test_a_folder_means_the_files_below_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("b/c.txt", "a.txt", "b/.hidden.txt", "_log/x.txt", ".git/config"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"text")
    for given in (tmp_path, f"{tmp_path}/"):
        tasks = plan_sources([SourceParams(name="a", paths=(str(given),))])
        assert [Path(task.path).relative_to(tmp_path).as_posix() for task in tasks] == ["a.txt", "b/c.txt"]
    for folder, given in ((tmp_path, "."), (tmp_path, "./"), (tmp_path / "_log", "../_log/")):
        monkeypatch.chdir(folder)
        found = [task.path for task in plan_sources([SourceParams(name="a", paths=(given,))])]
        assert found == (["../_log/x.txt"] if "_log" in given else ["a.txt", "b/c.txt"])
    (tmp_path / "notes.odd").touch()
    with pytest.raises(ValueError, match=r"notes\.odd has an unknown ending"):
        plan_sources([SourceParams(name="a", paths=(str(tmp_path),))])
