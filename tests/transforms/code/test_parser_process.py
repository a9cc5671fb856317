"""A text that ends the parser costs itself alone, whatever ended it; no parser outlives who asks."""

import os
import select
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator

import pytest

from refinery.transforms.code import chunks, code_heuristics, constructs
from refinery.transforms.code.code_heuristics import judge_code, look_at
from refinery.transforms.code.code_rules import CodeHeuristicsParams
from refinery.transforms.code.constructs import whole_constructs
from refinery.transforms.code.parser_frames import COMMENTS, UNITS
from refinery.transforms.code.parser_process import (
    NoParser,
    ParserDied,
    ParserFailed,
    ParserProcess,
    ParserTimedOut,
)
from refinery.transforms.core.document import Document
from refinery.transforms.core.per_document import _JudgeDocument
from refinery.transforms.core.rejects import DEFAULT_REJECTS

DYING = "tests.transforms.code.dying_parser"


@pytest.fixture
def parser(monkeypatch: pytest.MonkeyPatch) -> Iterator[ParserProcess]:
    made = ParserProcess(DYING)
    for module in (chunks, code_heuristics, constructs):
        monkeypatch.setattr(module, "PARSER", made)
    yield made
    made.end()


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        (b"segmentation fault", ParserDied, "SIGSEGV"),
        (b"abort", ParserDied, "SIGABRT"),
        (b"out of memory", ParserDied, "exit 1"),
        (b"exit", ParserDied, "exit 0"),
        (b"endless", ParserTimedOut, "SIGXCPU"),
        (b"error", ParserFailed, "KeyError"),
        (b"killed", MemoryError, "killed"),  # says nothing about the text: the run fails, and goes on where it was
    ],
)
def test_a_text_that_ends_the_parser_is_named_and_the_next_one_is_answered(
    parser: ParserProcess, text: bytes, error: type[Exception], said: str
) -> None:
    assert parser.ask(COMMENTS, "c", b"one") is not None
    with pytest.raises(error, match=said):
        parser.ask(COMMENTS, "c", text)
    found = parser.ask(UNITS, "c", b"three", [1, 2])
    assert found is not None and found[1] == 5
    assert parser.ask(UNITS, "c", b"not parsed") is None


def test_what_went_before_is_no_fault_of_a_text(parser: ParserProcess) -> None:
    parser.ask(COMMENTS, "c", b"one")
    found = parser.ask(COMMENTS, "c", b"only in a new process")
    assert found is not None and found[0] == 1


def test_a_long_text_crosses_whole(parser: ParserProcess) -> None:
    found = parser.ask(COMMENTS, "c", b"x" * 3_000_000, range(100_000))
    assert found is not None and list(found) == [1, 3_000_000]


def test_a_parser_stays_however_large_the_one_who_asks_is(parser: ParserProcess) -> None:
    held = bytearray(b"x") * (700 << 20)  # more than a parser may have in use
    assert [list(parser.ask(COMMENTS, "c", b"x" * 200_000) or ()) for _ in range(3)] == [
        [number, 200_000] for number in (1, 2, 3)
    ]
    del held


def test_a_parser_that_does_not_start_ends_the_run(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(NoParser, match="exit 1"):
        ParserProcess("tests.no_such_module").ask(COMMENTS, "c", b"a")
    assert "no_such_module" in capfd.readouterr().err


def test_stages_make_one_dead_letter_and_keep_the_rest(parser: ParserProcess) -> None:
    texts = ["// int a;", "// abort", "// int b;", "// endless", "// segmentation fault", "// int c;"]
    docs = [Document(f"{i:032}", text, "", "s", f"f@{i}", i, {"path": "a.c"}) for i, text in enumerate(texts)]
    params = CodeHeuristicsParams(min_bytes=None, max_comments=1, min_unique_lines=None)

    def judge(doc: Document) -> object:
        return judge_code(doc, params)

    dofn = _JudgeDocument("code-heuristics", judge, None, DEFAULT_REJECTS, Document)
    dofn.setup()
    dofn.start_bundle()
    made = [one for doc in docs for one in dofn.process(doc)] + [one.value for one in dofn.finish_bundle()]
    assert [one.text for one in made if isinstance(one, Document)] == ["// int a;", "// int b;", "// int c;"]
    counts = {key[1:]: count[0] for key, count in dofn.counters.counts.items()}
    assert counts["dead", "ParserDied"] == 2 and counts["dead", "ParserTimedOut"] == 1
    assert counts["in", ""] == 6 and counts["kept", ""] == 3


def test_constructs_of_such_a_text_are_none(parser: ParserProcess) -> None:
    assert whole_constructs("abort", "c") == whole_constructs("endless", "c") == []


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="waits for another's child")
def test_the_parser_ends_with_whoever_asked_however_that_ended() -> None:
    script = (
        "import os, signal\n"
        "from refinery.transforms.code.parser_process import PARSER\n"
        "PARSER.ask(0, 'c', b'int a;')\n"
        "print(PARSER._process.pid, flush=True)\n"
        "input()\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    asking = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert asking.stdin is not None and asking.stdout is not None
    watched = os.pidfd_open(int(asking.stdout.readline()))
    try:
        asking.communicate("\n")
        assert asking.returncode == -signal.SIGKILL
        assert select.select([watched], [], [], 60)[0], "the parser's process goes on without the one that asked"
    finally:
        os.close(watched)


def test_a_fork_has_a_parser_of_its_own() -> None:
    share = look_at("int a; // b\n", "c")
    before = code_heuristics.PARSER._process
    assert before is not None and share is not None and share.size == 8
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads, none of which holds a lock that this needs
        pid = os.fork()
    if not pid:
        try:
            same = code_heuristics.PARSER._process is not None
            again = look_at("int a; // b\n", "c")
            mine = code_heuristics.PARSER._process
            os.write(write, b"ok" if not same and again == share and mine and mine.pid != before.pid else b"no")
            code_heuristics.PARSER.end()
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    assert os.read(read, 2) == b"ok"
    os.close(read)
    os.close(write)
    assert look_at("int a; // b\n", "c") == share
    assert code_heuristics.PARSER._process is before
