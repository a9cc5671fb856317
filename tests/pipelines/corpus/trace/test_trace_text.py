"""Answers as text: hostile URLs, JSON, and the command line with its exit codes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import RUN
from refinery.pipelines.cli.command_line import execute
from refinery.pipelines.corpus.trace.answers import Rejected, Removed
from refinery.pipelines.corpus.trace.trace_text import json_lines, text_lines
from refinery.transforms.core.safe_text import safe
from tests.corpus_factory import REJECTS, reject_row
from tests.pipelines.corpus.trace.test_trace_documents import LOST, add_rejects, ask
from tests.pipelines.removals_factory import (
    OTHER,
    add_work,
    build_removed,
    exact,
    kept_ids,
    made_id,
    put_removals,
    removal,
    sort_rows,
)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return build_removed(tmp_path / "corpus", files=3)


# --- addresses that mean harm ---------------------------------------------------------------------------------------

HOSTILE = [
    "https://x/\n\x1b[2J\x1b]0;title\x07",
    "https://x/\r\u202egnp.exe\u2028\u200b",
    "https://x/'; DROP TABLE--\"$(id)`",
    "https://x/*?[a-z]%00%s%n{0}",
    "\U0001f43b\x00\x7f\x9b31m",
]


@pytest.mark.parametrize("url", HOSTILE)
def test_hostile_addresses(corpus: Path, url: str) -> None:
    rows = [removal("x", kept_ids(corpus)[0], url=url, origin=url), exact("y", made_id("x"), url=url)]
    put_removals(corpus, [sort_rows(rows)])
    add_rejects(corpus, [reject_row(url, "r") | {"url": url}])
    found = ask(corpus, url=url)
    assert [type(answer) for _, answer in found.answers] == [Removed, Removed, Rejected]
    lines = list(text_lines(found))
    assert len(lines) > 5 and all(line.isprintable() for line in lines)
    for line in json_lines(found):
        assert line.isascii() and line.isprintable() and json.loads(line)["url"] == url
    assert "secret" not in "".join(lines)


def test_safe_keeps_what_can_be_printed() -> None:
    assert safe("https://x/é?q=%20 'a'") == "https://x/é?q=%20 'a'"
    assert safe("a\nb\x1b\u202e\U000e0001") == "a\\nb\\x1b\\u202e\\U000e0001"


def test_json_of_every_answer(corpus: Path) -> None:
    add_work(corpus, [LOST], [False])
    add_rejects(corpus, [reject_row("url", "hard-word") | {"url": "https://x/", "origin": "in/a@70"}])
    urls = ["https://e.org/c", "https://example.org/", "https://x/", LOST["url"], "https://nowhere/", "https://e.org/f"]
    lines = [json.loads(line) for line in json_lines(ask(corpus, url=urls, origin="in/a@9"))]
    assert {line["answer"] for line in lines} == {"removed", "kept", "rejected", "passed", "missing", "dead"}
    first, *_ = lines
    assert first["query"] == {"url": urls[0]} and first["end"]["answer"] == "kept"
    assert first["end"]["id"] == first["steps"][0]["kept"]["id"]
    assert lines[-2]["end"] == {
        "answer": "elsewhere",
        "prefix": OTHER,
        "id": made_id("theirs").hex(),
        "url": "",
        "source": "",
        "origin": "",
    }


# --- the command ----------------------------------------------------------------------------------------------------


def test_exit_codes(corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "urls").write_bytes("https://e.org/a\r\n\nhttps://e.org/b\u2028?\n".encode())
    assert execute(["trace", str(corpus), "--url", "https://e.org/b"]) == 0
    assert capsys.readouterr().out.startswith("url https://e.org/b\n  removed: near-duplicate, among all documents")
    assert execute(["trace", str(corpus), "--urls", str(tmp_path / "urls"), "--json"]) == 1
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["answer"] for line in lines] == ["removed", "missing"]
    assert lines[1]["query"]["url"] == "https://e.org/b\u2028?"  # only a line feed ends a line


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--id", "xyz"], 2, "--id 'xyz': 32 hexadecimal digits are allowed"),
        (["--id", "0" * 31], 2, "32 hexadecimal digits"),
        (["--id", "0" * 30 + "\u0660\u0661"], 2, "32 hexadecimal digits"),
        (["--id", "\x1b[2J"], 2, r"--id '\x1b[2J'"),
        (["--url", "\udcff"], 2, r"--url '\udcff': valid UTF-8 is allowed"),
        (["--url", "\udcff" * 10_000], 2, "valid UTF-8 is allowed"),
        (["--url", ""], 2, "--url: '' given, one or more characters are allowed"),
        ([], 2, "give --url, --id, --origin, --token, --text or --urls"),
        (["--urls", "/nowhere/urls"], 1, "No such file"),
        (["--wrong"], 2, "unknown argument"),
    ],
)
def test_mistakes(
    corpus: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, message: str
) -> None:
    assert execute(["trace", str(corpus), *arguments]) == code
    captured = capsys.readouterr()
    assert message in captured.err and captured.err.count("\n") == 1 and captured.out == ""
    assert len(captured.err) < 1000


def test_file_of_addresses_that_is_no_text(corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "urls").write_bytes(b"https://x/\n\xff\n")
    assert execute(["trace", str(corpus), "--urls", str(tmp_path / "urls")]) == 2
    assert "valid UTF-8 is allowed" in capsys.readouterr().err


def test_file_of_addresses_with_a_byte_order_mark(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "urls").write_bytes(b"\xef\xbb\xbfhttps://e.org/b\r\n\r\n")
    assert execute(["trace", str(corpus), "--urls", str(tmp_path / "urls")]) == 0
    assert capsys.readouterr().out.startswith("url https://e.org/b\n  removed: ")


def test_similarity_that_is_no_number_is_still_json(corpus: Path) -> None:
    put_removals(corpus, [sort_rows([removal("x", kept_ids(corpus)[0], similarity=float("nan"), url="u")])])
    (line,) = json_lines(ask(corpus, url="u"))
    assert json.loads(line, parse_constant=pytest.fail)["answer"] == "removed"


def test_prefix_that_is_no_corpus(corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["trace", str(tmp_path / "nothing"), "--url", "x"]) == 2
    assert "is not a corpus: manifest.json is missing" in capsys.readouterr().err
    (corpus / RUN).write_bytes(b"{}")
    with pytest.raises(FormatError, match=RUN):
        ask(corpus, url="x")


def test_damaged_file_is_named(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (corpus / REJECTS).write_bytes(b"PAR1" * 9)
    assert execute(["trace", str(corpus), "--url", "x"]) == 2
    said = "not a readable Parquet file: no footer of Parquet; `refinery verify` says what else is damaged"
    assert f"{REJECTS}: {said}" in capsys.readouterr().err


def test_no_beam_is_loaded() -> None:
    script = "import sys, refinery.pipelines.corpus.trace.trace_text; assert 'apache_beam' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True, cwd=Path(__file__).parents[4])
