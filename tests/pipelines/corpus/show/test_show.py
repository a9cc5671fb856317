"""`refinery show`: texts as published, of dropped pages too, harmless in a terminal and exact in a file."""

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from refinery.loader.format.manifest import RUN, seal, unseal
from refinery.pipelines.cli.command_line import execute
from refinery.pipelines.corpus.show.texts import FROM_WORK, Texts
from refinery.pipelines.corpus.trace.answers import Doc
from tests.corpus_factory import ByteTokenizer, build_corpus
from tests.pipelines.removals_factory import build_removed, kept_ids

EVIL = "\x1b]0;title\x07\x1b[2J\u202egnp\u2028\x9b31m\ttab\r\n</script>"
TEXTS = {("train", "web"): [[EVIL, "plain words"]]}
WEB = "train/web/shard-00000-of-00001"


@pytest.fixture
def evil(tmp_path: Path) -> Path:
    return build_corpus(tmp_path / "corpus", TEXTS)


def shown(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    assert execute(["show", *map(str, words)]) == 0
    return capsys.readouterr().out


def provenance(corpus: Path) -> list[dict[str, Any]]:
    paths = sorted(corpus.glob("train/*/*.provenance.parquet"))
    return [row for path in paths for row in pq.read_table(path).to_pylist()]


def test_a_hostile_text(evil: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = shown(capsys, evil, "--token", f"{WEB}:3")
    assert all(line.isprintable() for line in said.splitlines())
    assert "\\x1b]0;title\\x07\\x1b[2J\\u202egnp\\u2028\\x9b31m    tab\\r\n</script>\n" in said
    assert shown(capsys, evil, "--token", f"{WEB}:3", "--raw") == EVIL + "\n"
    line = shown(capsys, evil, "--token", f"{WEB}:3", "--json")
    assert line.strip().isprintable() and line.isascii() and json.loads(line)["text"] == EVIL


def test_tokens(evil: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = shown(capsys, evil, "--token", f"{WEB}:3", "--tokens").splitlines()
    rows = [line.split(maxsplit=2) for line in said if line[:8].strip().isdigit()]
    ids = ByteTokenizer().encode(EVIL).tolist()
    assert [int(row[1]) for row in rows] == [256, *ids, 257]
    assert (rows[0][2], rows[1][2], rows[-1][2]) == ("(BOS)", "'\\x1b'", "(EOS)")
    assert all(line.isprintable() for line in said)


def test_texts_of_a_run_are_those_that_were_published(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for row in provenance(corpus)[:5]:
        said = json.loads(shown(capsys, corpus, "--id", row["id"].hex(), "--json"))
        assert (said["kept"], said["url"], said["what"]) == (True, row["url"], "as published: decoded from its tokens")
        assert len(said["text"].encode()) == row["text_bytes"] and len(said["tokens"]) == row["token_count"]


def test_a_removed_document_is_shown_as_the_one_that_was_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = build_removed(tmp_path / "corpus")
    said = json.loads(shown(capsys, root, "--url", "https://e.org/b", "--json"))
    assert (said["kept"], said["id"]) == (True, kept_ids(root)[1].hex())
    assert "  removed: near-duplicate" in shown(capsys, root, "--url", "https://e.org/b")


def test_one_address_of_many_documents(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = build_corpus(tmp_path / "corpus", {("train", "web"): [[f"text {number}" for number in range(12)]]})
    said = shown(capsys, root, "--url", "https://example.org/")
    assert said.count("as published") == 10 and "  and 2 more; name one with --id" in said
    assert len(shown(capsys, root, "--url", "https://example.org/", "--json").splitlines()) == 12


def test_a_page_that_was_dropped(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With its text as its stage saw it, and why; of one that never became a text, that."""
    rows = [row for path in (corpus / "rejects").iterdir() for row in pq.read_table(path).to_pylist()]
    short = next(row for row in rows if row["reason"] == "gopher-too-few-words")
    said = shown(capsys, corpus, "--url", short["url"])
    assert short["excerpt"].splitlines()[0] in said.splitlines() and "- gopher.min_words" in said
    empty = next(row for row in rows if row["stage"] == "extract")
    assert "there is no text to show: the record was dropped before extraction" in shown(
        capsys, corpus, "--url", empty["url"]
    )


def test_an_origin_that_nothing_lists(corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = tmp_path / "corpus"
    shutil.copytree(corpus, root, ignore=shutil.ignore_patterns("work"))
    row = provenance(corpus)[0]
    path = row["origin"].rpartition("@")[0]
    assert execute(["show", str(root), "--origin", f"{path}@3"]) == 1
    assert "not found; this can mean" in capsys.readouterr().out


def test_a_page_whose_record_is_gone_comes_from_work(corpus: Path, tmp_path: Path) -> None:
    root = tmp_path / "corpus"
    shutil.copytree(corpus, root)
    run = unseal((root / RUN).read_bytes(), RUN)
    for entry in run["inputs"]:
        entry["path"] += ".gone"
    (root / RUN).write_bytes(seal(run))
    row = next(row for row in provenance(corpus) if row["source"] == "crawl")
    text = Texts(str(root)).lost(Doc("", row["url"], row["source"], row["origin"]))
    assert text.what == FROM_WORK and "is not among the inputs" in text.problem
    assert text.text == Texts(str(root)).in_work(Doc("", "", "", row["origin"])) != ""
    assert Texts(str(root)).in_work(Doc("", "", "", "nowhere@1")) == ""


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ([], 2, "nothing to show: give --url, --id, --origin or --token"),
        (["--id", "../../x"], 2, "32 hexadecimal digits are allowed"),
        (["--url", "\x1b[2J"], 1, ""),
        (["--id", "0" * 32, "--wrong"], 2, "unknown argument"),
    ],
)
def test_mistakes(evil: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: int, message: str) -> None:
    assert execute(["show", str(evil), *words]) == code
    said = capsys.readouterr()
    assert message in said.err and all(line.isprintable() for line in (said.out + said.err).splitlines())


def test_a_prefix_that_is_no_corpus(evil: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("show", "trace"):
        assert execute([command, str(tmp_path / "nothing"), "--token", "0:1"]) == 2
        assert "is not a corpus" in capsys.readouterr().err
