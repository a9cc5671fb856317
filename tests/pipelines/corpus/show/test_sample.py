"""`refinery sample`: the same documents for the same seed, with what rules measured, and nothing that is secret."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from refinery.loader.format.manifest import read_manifest
from refinery.loader.read.corpus import Corpus
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.cli.command_line import execute
from refinery.pipelines.corpus.show.draw import draw_kept, dropped_counts
from tests.corpus_factory import REJECTS, build_corpus, edit_manifest, reject_row, write_records
from tests.pipelines.inputs import run
from tests.pipelines.small_runs import text_of
from tests.sampling import one_commit_in_four

KEY = "AKIA" + "Z7QJ4T5LMK3WPX2D"  # the form of a key, of nobody
SHORT = " ".join(text_of(1).split()[:12])


def sampled(capsys: pytest.CaptureFixture[str], *words: object, code: int = 0) -> list[dict[str, Any]]:
    assert execute(["sample", *map(str, words), "--json"]) == code
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.fixture(scope="module")
def secret_run(small: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose stage of secrets is off, and which drops a page with a key, an address and control characters."""
    folder = tmp_path_factory.mktemp("secret")
    rows = [{"text": text_of(n), "url": f"https://a.example/{n}"} for n in range(5)]
    rows += [{"text": f"{SHORT} {KEY} \x1b[2J anna@example.com", "url": "https://a.example/?token=abcdefgh"}]
    (folder / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    recipe = yaml.safe_load((small / "recipe.yaml").read_text())
    recipe["sources"] = [{"name": "s", "paths": [str(folder / "a.jsonl")]}]
    recipe["rejects"] = {"rate": 1.0, "excerpt_chars": 0}
    rules = {"basic": {"min_chars": 20}, "gopher": {"min_words": 24, "stop_words": {}}}
    recipe["heuristics"] = {**rules, "repetition": False, "c4": False, "fineweb": False}
    recipe["pii"] = {}
    (folder / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    run("refine", folder / "recipe.yaml", "--workers", 0, "--quiet", "--output", folder / "out")
    return folder / "out"


# --- kept -----------------------------------------------------------------------------------------------------------


def test_all_of_a_small_corpus_and_the_same_ones_again(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = read_manifest(open_store(str(corpus)))
    rows = sampled(capsys, corpus, "-n", 10_000)
    assert len({row["id"] for row in rows}) == len(rows) == manifest.totals["documents"]
    five = sampled(capsys, corpus, "-n", 5)
    assert five == sampled(capsys, corpus, "-n", 5) == sampled(capsys, corpus, "-n", 8)[:5]
    assert [row["id"] for row in sampled(capsys, corpus, "-n", 5, "--seed", 1)] != [row["id"] for row in five]
    assert all(row["answer"] == "kept" and row["text"] for row in five)


@one_commit_in_four
def test_documents_are_drawn_alike(tmp_path: Path) -> None:
    """However many a shard has: of 1, 9 and 30 documents each has its share of 600 draws."""
    texts = [[f"{shard} {n}" for n in range(size)] for shard, size in enumerate((1, 9, 30))]
    root = build_corpus(tmp_path / "corpus", {("train", "web"): texts})
    made = Corpus(str(root))
    counts: dict[str, int] = {}
    for seed in range(60):
        for kept in draw_kept(made, 10, seed):
            counts[kept.doc.id] = counts.get(kept.doc.id, 0) + 1
    assert len(counts) == 40 and sum(counts.values()) == 600
    assert all(3 < count < 32 for count in counts.values())  # 15 expected, with a deviation of 3.3


def test_what_rules_measured_in_a_kept_document(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = sampled(capsys, corpus, "-n", 1, "--measure")
    found = {each["rule"]: each for each in row["measured"]}
    assert found["gopher.min_words"]["value"] >= found["gopher.min_words"]["threshold"] == 50
    assert not any(each["drops"] for each in row["measured"]) and row["noted"]["tokens"] > 0
    assert not sampled(capsys, corpus, "-n", 1)[0]["measured"]


# --- dropped --------------------------------------------------------------------------------------------------------


def test_what_a_rule_dropped(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    counts = dropped_counts(read_manifest(open_store(str(corpus))))
    rows = sampled(capsys, corpus, "--stage", "heuristics", "--reason", "gopher-too-few-words")
    assert len(rows) == counts["heuristics", "gopher-too-few-words"]
    for row in rows:
        (decisive,) = [e for e in row["measured"] if e["drops"] and e["reason"] == row["reason"]]
        assert decisive["rule"] == "gopher.min_words" and decisive["value"] < decisive["threshold"]
        assert row["text"] and len(row["text"].split()) >= decisive["value"]
    stage = sampled(capsys, corpus, "--stage", "heuristics", "-n", 50, "--no-replay")
    assert len(stage) == sum(n for (name, _), n in counts.items() if name == "heuristics")
    assert all(row["text"] and not row["measured"] for row in stage)  # excerpts of 300 characters
    few = sampled(capsys, corpus, "--stage", "heuristics", "-n", 3, "--no-replay")
    assert few == stage[:3]
    assert {row["stage"] for row in sampled(capsys, corpus, "--reason", "quality-score")} == {"quality"}


def test_a_page_without_excerpt_is_read_again_and_nothing_secret_is_shown(
    secret_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (row,) = sampled(capsys, secret_run, "--stage", "heuristics")
    assert row["text"].startswith(SHORT) and "API_KEY_REDACTED" in row["text"]
    assert execute(["sample", str(secret_run), "--stage", "heuristics"]) == 0
    said = capsys.readouterr().out
    assert "- gopher.min_words" in said and SHORT in said and all(line.isprintable() for line in said.splitlines())
    for text in (said, json.dumps(row)):
        assert KEY not in text and "anna@example.com" not in text and "abcdefgh" not in text


def test_words_for_what_is_not_listed(corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["sample", str(corpus), "--stage", "near-duplicates"]) == 1
    assert "duplicates, which removals/ lists" in capsys.readouterr().err
    root = build_corpus(tmp_path / "corpus")
    write_records(root, REJECTS, [])
    edit_manifest(root, lambda m: m["recipe"].update(rejects={"rate": 0.0}))
    assert execute(["sample", str(root), "--stage", "language"]) == 1
    assert (
        "2 documents dropped here, but rejects/ lists none of them: rejects.rate is 0.0; a run with rejects.rate=1"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-n", "0"], "-n: 0 given, 1 to 10,000 is allowed"),
        (["-n", "10001"], "1 to 10,000 is allowed"),
        (
            ["--stage", "\x1b[2J"],
            r"'\x1b[2J': no document was dropped at this stage; most were dropped by: lang",
        ),
        (["--reason", "no"], "'no': no stage dropped"),
        (["--stage", "language", "--reason", "hard-word"], "'language hard-word': no stage dropped"),
        (["--wrong"], "unknown argument"),
    ],
)
def test_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str) -> None:
    root = build_corpus(tmp_path / "corpus")
    assert execute(["sample", str(root), *words]) == 2
    said = capsys.readouterr()
    assert message in said.err and said.err.strip().isprintable() and not said.out


def test_hostile_rows_of_rejects(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a corpus from elsewhere: nothing is read that its run has not read, nothing reaches the terminal as it is."""
    root = build_corpus(tmp_path / "corpus")
    evil = {"url": "\x1b[2J", "origin": "/etc/passwd@0", "excerpt": "\u202e\x07", "found": "\x1b]0;x\x07"}
    write_records(root, REJECTS, [reject_row("language", "not-allowed") | evil])
    edit_manifest(root)
    assert execute(["sample", str(root), "--stage", "language"]) == 0
    said = capsys.readouterr().out
    assert all(line.isprintable() for line in said.splitlines()) and "root:" not in said and "\\u202e\\x07" in said
