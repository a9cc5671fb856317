"""The commands of docs/steps run, on files that the test makes, and their outputs are what the pages say."""

import contextlib
import gzip
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import refinery.corpus
from refinery.pipelines.run.steps.steps import PII_TYPES, RULE_SETS
from tests.docs.blocks import DOCS, blocks, elsewhere, words
from tests.docs.steps_inputs import BREAD, BROKEN, GERMAN, KEY, MENU, RIVER, A, B, make_files
from tests.fork_server import Outcome, fork_server

INDEX = DOCS / "steps.md"
ORDER = [INDEX, *(DOCS / "steps" / name for name in re.findall(r"\]\(steps/([\w-]+\.md)\)", INDEX.read_text()))]
PAGES = list(dict.fromkeys(ORDER))  # in the index's order: some read what an earlier one wrote
STEPS = ("dedup", "filter", "extract", "redact", "detect-language")
INPUTS = {row for row in (*A, *B) if row}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which every command of every page ran, once, in a process of its own without workers."""
    folder = make_files(tmp_path_factory.mktemp("steps"))
    done: dict[str, Outcome] = {}
    for page in PAGES:
        for block in blocks(page):
            if block.language == "python" and not elsewhere(block):
                run_python(block.body, folder)
            elif block.language == "sh":
                for command, _ in block.commands:
                    if command not in done:
                        done[command] = run(command, folder)
                        assert done[command].code == 0, f"{command}\n{done[command].err}"
    (folder / "said.json").write_text(json.dumps({command: outcome.out for command, outcome in done.items()}))
    return folder


def run(command: str, folder: Path) -> Outcome:
    program, name, *arguments = words(command)
    assert program == "refinery"
    more = ("--workers", 0, "--quiet") if name in STEPS else ()
    return fork_server().run(name, *arguments, *more, folder=folder)


def run_python(body: str, folder: Path) -> None:
    with contextlib.chdir(folder):
        body = body.replace("near=0.8)", "near=0.8, workers=0, quiet=True)")
        exec(compile(body, "docs/steps", "exec"), {"__name__": "block"})  # noqa: S102 - our own page


def lines(path: Path) -> list[str]:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode().splitlines()


def rows(*paths: Path) -> dict[str, dict[str, Any]]:
    """Rows of files by their ids, in their order."""
    return {row["id"]: row for path in paths for row in map(json.loads, lines(path))}


def provenance(accounts: Path) -> dict[str, dict[str, Any]]:
    """What is noted of the rows that stay, by their own ids."""
    corpus = refinery.corpus.open(accounts)
    notes = (json.loads(meta) for batch in corpus.documents(["meta"]) for meta in batch["meta"].to_pylist())
    return {note["record_id"]: note for note in notes}


def removals(accounts: Path) -> dict[str, dict[str, Any]]:
    corpus = refinery.corpus.open(accounts)
    assert isinstance(corpus, refinery.corpus.PublishedCorpus)
    return {row["origin"]: row for batch in corpus.removals() for row in batch.to_pylist()}


def origin(row: int, of: list[str] = A, name: str = "in/a.jsonl") -> str:
    return f"{name}@{sum(len(line.encode()) + 1 for line in of[:row])}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_is_one_screen_and_answers_the_same_questions(page: Path) -> None:
    text = page.read_text()
    assert len(text.split()) < (800 if page == INDEX else 480)
    if page != INDEX:
        assert all(heading in text for heading in ("## After an interruption\n", "## What it does not do\n"))


def test_the_index_links_every_page() -> None:
    assert {page for page in PAGES if page != INDEX} == {*(DOCS / "steps").glob("*.md")}


def test_every_file_is_there_by_its_name_and_compression(ran: Path) -> None:
    assert lines(ran / "out/unique/2024/c.jsonl.gz") == [A[0]]
    assert (ran / "out/unique.yaml").exists() and (ran / "out/unique.refinery/report.html").exists()
    for name in ("exact", "near", "lines", "substrings", "good", "labelled", "en-de", "redacted", "copies", "judged"):
        assert sorted(path.name for path in (ran / "out" / name).iterdir()) == ["a.jsonl", "b.jsonl"], name


def test_exact_copies(ran: Path) -> None:
    out = ran / "out/exact"
    assert [*rows(out / "a.jsonl")] == ["a1", "a2", "a4", "a5", "a6", "a7", "a9"]
    assert [*rows(out / "b.jsonl")][:2] == ["b2", "b3"]
    assert {*lines(out / "a.jsonl"), *lines(out / "b.jsonl")} < INPUTS  # byte for byte
    gone = removals(ran / "out/exact.refinery")
    assert gone.keys() == {origin(3), "in/b.jsonl@0"} and {row["reason"] for row in gone.values()} == {
        "exact-duplicate"
    }
    corpus = refinery.corpus.open(ran / "out/exact.refinery")
    assert isinstance(corpus, refinery.corpus.PublishedCorpus)
    dead = [row for batch in corpus.dead_letters() for row in batch.to_pylist()]
    assert {row["origin"]: row["error"] for row in dead} == {origin(8): "BadJson"}


def test_the_same_command_does_nothing_and_another_one_is_refused(ran: Path) -> None:
    command = "refinery dedup 'in/*.jsonl' --exact --output out/exact"
    before = (ran / "out/exact/a.jsonl").stat().st_mtime_ns
    assert run(command, ran).code == 0 and (ran / "out/exact/a.jsonl").stat().st_mtime_ns == before
    refused = run(f"{command} --near 0.8", ran)
    assert refused.code == 1 and "choose another --output" in refused.err


def test_near_copies(ran: Path) -> None:
    out = ran / "out/near"
    assert [*rows(out / "a.jsonl")] == ["a1", "a2", "a5", "a6", "a7", "a9"]
    assert {*lines(out / "a.jsonl"), *lines(out / "b.jsonl")} < INPUTS
    near = removals(ran / "out/near.refinery")[origin(4)]
    assert near["reason"] == "near-duplicate" and 0.8 <= near["similarity"] < 1


def test_copies_of_another_corpus(ran: Path) -> None:
    assert [*rows(ran / "out/new/new.jsonl")] == ["n2"]
    (gone,) = removals(ran / "out/new.refinery").values()
    assert gone["scope"] == "reference:out/exact.refinery"


def test_lines_and_substrings(ran: Path) -> None:
    cut = rows(ran / "out/lines/b.jsonl")
    assert len(cut) == len(B) and not any(MENU in row["text"] for row in cut.values())
    assert {*lines(ran / "out/lines/a.jsonl")} < INPUTS  # no other row has another byte
    assert provenance(ran / "out/lines.refinery")["m1"]["lines_cut"] == 1
    labelled = rows(ran / "out/lines-cut/b.jsonl")
    assert labelled["m1"]["lines_cut"] == 1 and MENU in labelled["m1"]["text"]
    cut = rows(ran / "out/substrings/a.jsonl")
    assert cut["a1"]["text"] == RIVER and "a3" not in cut and len(cut["a4"]["text"]) < len(RIVER) / 2


def test_labels_beside_the_rows(ran: Path) -> None:
    shown = json.loads(next(block.body for block in blocks(DOCS / "steps/attributes.md") if block.language == "text"))
    found = {row["id"]: row["attributes"] for row in map(json.loads, lines(ran / "out/attributes/private/b.jsonl"))}
    assert [*found] == [json.loads(row)["id"] for row in B]
    assert shown["attributes"] == {key: found[shown["id"]][key] for key in shown["attributes"]}
    assert KEY not in str(found) and "anna.smith" not in str(found)
    near = [json.loads(line) for line in lines(ran / "attributes/near/a.jsonl.gz")]
    assert [row["id"] for row in near] == [*found] and near[0]["attributes"]["near__duplicate__score"][0][2] == 0


def test_rules(ran: Path) -> None:
    kept = [*rows(ran / "out/good/a.jsonl"), *rows(ran / "out/good/b.jsonl")]
    assert kept == ["a1", "a2", "a3", "a4", "a5", "a6", "a7", "b1"]  # judged as English
    assert {*lines(ran / "out/good/a.jsonl"), *lines(ran / "out/good/b.jsonl")} < INPUTS
    said = json.loads((ran / "said.json").read_text())
    sample = said["refinery sample out/good.refinery --stage heuristics -n 5"]
    assert "gopher.min_words" in sample or "gopher.min_stop_words" in sample
    named = re.findall(r"^\| `(\w+)` \|", (DOCS / "steps/rules.md").read_text(), re.MULTILINE)
    assert sorted(named) == sorted(RULE_SETS)


def test_languages(ran: Path) -> None:
    labelled = rows(ran / "out/labelled/a.jsonl", ran / "out/labelled/b.jsonl")
    assert labelled["a1"]["language"] == "en" and labelled["a1"]["language_score"] > 0.9
    assert labelled["a9"]["language"] == "unknown" and labelled["a9"]["refinery_language"] == "de"
    assert labelled["a5"] == {"id": "a5", "text": "", "language": "", "language_score": 0.0}
    assert "".join(lines(ran / "out/labelled/a.jsonl")).startswith(A[0][:-1])  # labels are behind the fields
    kept = rows(ran / "out/en-de/a.jsonl")
    assert kept.keys() >= {"a1", "a9", "a5"} and {*lines(ran / "out/en-de/a.jsonl")} < INPUTS


def test_extracted_texts(ran: Path) -> None:
    (shard,) = (ran / "out/texts").glob("*/*/shard-*.parquet")
    pages = {row["url"]: row["text"] for row in pq.read_table(shard).to_pylist()}
    assert {*pages} == {"https://a.example/river", "https://a.example/bread"}
    assert RIVER in pages["https://a.example/river"] and "Home" not in pages["https://a.example/river"]
    page = rows(ran / "out/pages/pages.jsonl")
    assert f"{RIVER}\n\n{BREAD}" in page["p1"]["text"] and page["p1"]["reason"] == "" and "<nav>" in page["p1"]["html"]
    assert page["p2"]["text"] == "there" and GERMAN in page["p2"]["refinery_text"]
    assert page["p3"] == {"id": "p3", "html": "", "text": "", "reason": "empty"}


def test_redaction(ran: Path) -> None:
    text = rows(ran / "out/redacted/b.jsonl")["b2"]["text"]
    assert text == "Write to <EMAIL> or call <PHONE>. Token: API_KEY_REDACTED"
    assert rows(ran / "out/no-mail/b.jsonl")["b2"]["text"] == f"Write to <EMAIL> or call <PHONE>. Token: {KEY}"
    changed = {*lines(ran / "out/redacted/a.jsonl"), *lines(ran / "out/redacted/b.jsonl")} - INPUTS
    assert len(changed) == 1
    accounts = ran / "out/redacted.refinery"
    assert provenance(accounts)["b2"]["pii_types"] == "email=1 phone=1"
    work = [path.read_bytes() for path in (accounts / "work").rglob("*.parquet")]
    assert work == []  # there are none that could hold an address
    page = (DOCS / "steps/redact.md").read_text()
    assert re.search(r"`--only email,phone` \|.*: (.*) \|", page)[1] == ", ".join(f"`{name}`" for name in PII_TYPES)  # type: ignore[index]  # it is there


def test_labels(ran: Path) -> None:
    copies, judged = (
        rows(ran / "out" / name / "a.jsonl", ran / "out" / name / "b.jsonl") for name in ("copies", "judged")
    )
    written = [*lines(ran / "out/copies/a.jsonl"), *lines(ran / "out/copies/b.jsonl")]
    given = [row for row in (*A, *B) if row not in ("", BROKEN)]
    assert all(new.startswith(old[:-1]) for new, old in zip(written, given, strict=True))
    assert copies["a1"]["copies"] == 3 and not copies["a1"]["duplicate"]
    assert (copies["a4"]["duplicate_of"], copies["a4"]["copies"], copies["a4"]["reason"]) == ("a1", 0, "near-duplicate")
    assert copies["a9"]["reason"] == "mine" and copies["a9"]["refinery_reason"] == ""
    assert copies["a5"]["reason"] == judged["a5"]["reason"] == "empty" and not judged["a5"]["keep"]
    assert judged["b3"] == {
        "id": "b3",
        "text": "Too short to pass.",
        "keep": False,
        "reason": "gopher-too-few-words",
        "rule_spans": "",
    }
    # What the queries of the page find: DuckDB and Polars read the same lines.
    assert Counter(row["reason"] for row in copies.values())["exact-duplicate"] == 2
    assert [*rows(ran / "out/near/a.jsonl")] == [
        name for name, row in copies.items() if not row["duplicate"] and name[0] == "a"
    ]


def test_python(ran: Path) -> None:
    near, own = ran / "out/near", ran / "out/python"
    assert {path.name: path.read_bytes() for path in near.iterdir()} == {p.name: p.read_bytes() for p in own.iterdir()}
