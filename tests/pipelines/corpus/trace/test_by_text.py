"""Documents by their text: all of it, through its id, and a part of it, by reading texts up to a bound."""

import json
from pathlib import Path

import pytest

from refinery.loader.format.manifest import RUN, unseal
from refinery.pipelines.cli.command_line import execute
from refinery.pipelines.corpus.trace import search_texts as module
from refinery.pipelines.corpus.trace.answers import Kept, Missing, Query, text_id
from refinery.pipelines.corpus.trace.search_texts import search_texts
from refinery.pipelines.corpus.trace.trace_documents import trace
from refinery.transforms.core.document import document_id
from tests.corpus_factory import build_corpus
from tests.pipelines.removals_factory import add_work, build_removed, kept_ids, made_id

LOST = made_id("lost")


@pytest.fixture
def hand_made(tmp_path: Path) -> Path:
    return build_corpus(tmp_path / "corpus")


def test_a_text_is_cleaned_before_it_is_looked_for() -> None:
    """Line ends, invisible characters and composed letters do not matter; words do."""
    same = ["Zoe\u0308 walks.\r\nHome.", "Zoë\u200b walks.\n\nHome.", "  Zoë walks. Home.  "]
    assert {text_id(text) for text in same} == {document_id("Zoë walks. Home.")}
    assert Query("text", same[0]).key == ("id", document_id("Zoë walks. Home.").hex())


def test_the_whole_text_of_documents_of_a_run(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A real run: kept, removed in favour of another, and not there."""
    run = unseal((corpus / RUN).read_bytes(), RUN)
    assert run["recipe"]["exact_dup"] is True
    execute(["sample", str(corpus), "-n", "200", "--json"])
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    plain = [row for row in rows if document_id(row["text"]).hex() == row["id"]]
    assert len(plain) > len(rows) / 2  # of the others something was redacted
    assert execute(["trace", str(corpus), "--text", plain[0]["text"] + "\r\n", "--json"]) == 0
    answer, *_ = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert (answer["answer"], answer["id"]) == ("kept", plain[0]["id"])
    assert execute(["trace", str(corpus), "--text", plain[0]["text"] + " more"]) == 1
    said = capsys.readouterr().out
    assert "- no document has exactly this text" in said and "--search-texts searches the documents" in said


def test_a_part_of_a_text_in_decoded_shards(hand_made: Path) -> None:
    found = search_texts(str(hand_made), "", "fine", 1e9, lambda line: None)
    (id_,) = found.ids
    ((_, answer),) = trace(str(hand_made), [Query("id", id_)]).answers
    assert isinstance(answer, Kept) and found.done == found.size and found.what == "shards"
    assert "1 found in" in found.line and "reads on" not in found.line
    assert search_texts(str(hand_made), "", "FINE", 1e9, lambda line: None).ids == ()


def test_the_bound(hand_made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first file is always searched; what is left is said."""
    found = search_texts(str(hand_made), "", "x", 1, lambda line: None)
    assert 0 < found.done < found.size and "a larger --search-texts reads more" in found.line
    monkeypatch.setattr(module, "MOST_FOUND", 2)
    assert search_texts(str(hand_made), "", "e", 1e9, lambda line: None).line.endswith("the first 2 are shown")


def test_a_part_of_a_text_in_work(tmp_path: Path) -> None:
    root = build_removed(tmp_path / "corpus")
    lost = {"id": LOST, "url": "https://e.org/lost", "source": "crawl", "origin": "in/a@lost"}
    add_work(root, [lost, {**lost, "id": kept_ids(root)[0]}], [False, False])
    found = search_texts(str(root), "", "secret", 1e9, lambda line: None)
    assert found.ids == (LOST.hex(), kept_ids(root)[0].hex()) and found.what == "work/documents"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--text", " \u200b\n", "--search-texts", "1G"], "empty after cleaning"),
        (["--text", "x", "--search-texts", "lots"], "--search-texts: 'lots' given"),
        (["--text", "x", "--search-texts", "-1"], "expected"),
        (["--url", "x", "--search-texts", "1G"], "--search-texts belongs to --text"),
        (["--text", "\udcff"], "valid UTF-8 is allowed"),
    ],
)
def test_mistakes(hand_made: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str) -> None:
    try:
        assert execute(["trace", str(hand_made), *words]) == 2
    except SystemExit as ended:  # argparse takes "-1" for a flag
        assert ended.code == 2
    assert message in capsys.readouterr().err


def test_a_text_with_control_characters_is_shown_harmless(hand_made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "\x1b[2J\u202e" + "long " * 2000
    assert execute(["trace", str(hand_made), "--text", text]) == 1
    said = capsys.readouterr().out.splitlines()
    assert all(line.isprintable() for line in said) and len(said[0]) < 2100
    ((_, answer),) = trace(str(hand_made), [Query("text", text)]).answers
    assert isinstance(answer, Missing)
