"""Whole runs of the lane of source code: what is kept and why, the same bytes on every run, resumed, and verified."""

import json
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from refinery.loader.format.removals import WITHHELD
from refinery.loader.stream.packed.packed_stream import PackedStream
from refinery.pipelines.corpus.verify.verify import verify
from refinery.transforms.tokenize.chunk_notes import read_chunks
from tests.fork_server import ForkServer
from tests.pipelines.code_runs import COMMIT, LEAKED, LENGTH, make_code_inputs, records, write_records
from tests.pipelines.inputs import corpus_bytes, refine, run
from tests.sampling import one_commit_in_four
from tests.shared import shared


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Inputs and recipe.yaml."""
    return shared(tmp_path_factory, "code-inputs", lambda folder: make_code_inputs(folder) and None)


@pytest.fixture(scope="session")
def corpus(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The corpus of an unbroken run with one worker process."""

    def fill(folder: Path) -> None:
        refine(files, folder / "corpus", "--workers", 1)

    return shared(tmp_path_factory, "code-corpus", fill) / "corpus"


def manifest_of(corpus: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((corpus / "manifest.json").read_text())
    return found


def provenance(corpus: Path) -> list[dict[str, Any]]:
    tables = [pq.read_table(path) for path in sorted(corpus.glob("*/*/*.provenance.parquet"))]
    return [row for table in tables for row in table.to_pylist()]


def test_what_is_dropped_and_why(corpus: Path) -> None:
    """Every rule of the lane meets a file of the inputs."""
    manifest = manifest_of(corpus)
    assert (manifest["lane"], manifest["totals"]["documents"]) == ("code", len(provenance(corpus)))
    dropped: Counter[str] = Counter()
    for row in manifest["funnel"]:
        dropped.update({reason: count["documents"] for reason, count in row["dropped"].items()})
    for reason in (
        "binary",
        "license-unknown",
        "license-not-allowed",
        "exact-duplicate",
        "near-duplicate",
        "copy-of-denied",
    ):
        assert dropped[reason], dropped
    assert len([reason for reason in dropped if reason.startswith("code-")]) == 9
    assert len(records()) == sum(dropped.values()) + manifest["totals"]["documents"]


def test_copies_of_denied_files_name_these_and_neither_is_published(corpus: Path) -> None:
    tables = [pq.read_table(path) for path in sorted(corpus.glob("removals/*.parquet"))]
    rows = [row for table in tables for row in table.to_pylist()]
    denied = [row for row in rows if row["reason"] == "copy-of-denied"]
    published = {row["id"] for row in provenance(corpus)}
    assert denied and {row["scope"] for row in denied} == {WITHHELD}
    assert not published & {row[name] for row in denied for name in ("id", "kept_id")}
    assert not any(row["scope"] == WITHHELD for row in rows if row not in denied)


def test_where_a_file_is_from_is_provenance(corpus: Path) -> None:
    rows = {row["url"]: row for row in provenance(corpus)}
    row = rows[f"some/2@{COMMIT}/lib/login.c"]
    meta = json.loads(row["meta"])
    assert (row["license"], row["license_from"], row["code_language"]) == ("MIT", "file", "c")
    assert (row["repo"], row["commit"], row["path"]) == ("some/2", COMMIT, "lib/login.c")
    assert row["repo_license"] == "MIT" and "repo" not in meta
    assert (meta["secrets"], meta["pii"]) == (1, 1)
    assert len(read_chunks(meta["chunks"])) > 1


def test_nothing_secret_is_left(corpus: Path) -> None:
    texts = export_texts(corpus)
    login = texts[f"some/2@{COMMIT}/lib/login.c"]
    assert "return login * 841;" in login
    assert not any(LEAKED in text or "anna.berg" in text for text in texts.values())


def export_texts(corpus: Path) -> dict[str, str]:
    out = corpus.parent / "exported"
    if not out.exists():
        run("export", corpus, "--format", "parquet", "--output", out, "--workers", 0, "--quiet")
    tables = [pq.read_table(path, columns=["url", "text"]) for path in out.rglob("*.parquet")]
    return {row["url"]: row["text"] for table in tables for row in table.to_pylist()}


def test_texts_are_the_files(corpus: Path) -> None:
    """But for line ends and what was redacted: indentation, empty lines, trailing spaces and all."""
    given = {f"{r['repo']}@{r['commit']}/{r['path']}": r["content"].replace("\r\n", "\n") for r in records()}
    texts = export_texts(corpus)
    assert any("\f\n\n\n\n" in text for text in texts.values())
    changed = {url.rpartition("/")[2]: text for url, text in texts.items() if text != given[url]}
    assert changed.keys() <= {"login.c", "helper.c"} and "login.c" in changed
    kept = [text for url, text in texts.items() if "static int most(" in text]
    assert len(kept) == 1  # of two files with the same function


def test_columns_say_of_which_chunk_a_token_is(corpus: Path) -> None:
    rows = [row for path in corpus.glob("packed/*/*/*.parquet") for row in pq.read_table(path).to_pylist()]
    kinds = {kind for row in rows for kind in row["chunk_kind"]}
    assert len(kinds) > 2 and all(len(row["chunk_id"]) == LENGTH for row in rows)


def test_verified_with_its_packed_rows(corpus: Path) -> None:
    assert verify(str(corpus)).failures == []
    stream = PackedStream(str(corpus), sequence_length=LENGTH, batch_size=1, seed=1, epochs=1)
    assert sum(1 for batch in stream if batch["input_ids"].shape == (1, LENGTH)) > 5


@one_commit_in_four
def test_same_bytes(corpus: Path, files: Path, tmp_path: Path) -> None:
    refine(files, tmp_path / "out", "--workers", 2, hash_seed=1)
    assert corpus_bytes(tmp_path / "out") == corpus_bytes(corpus)


@one_commit_in_four
def test_killed_and_started_again(forks: ForkServer, corpus: Path, files: Path, tmp_path: Path) -> None:
    """In phase 3, where chunks are made: the phases before it are not done again."""
    out = tmp_path / "out"
    forks.start("refine", files / "recipe.yaml", "--output", out, "--workers", 0)
    while not (out / "work" / "dedup.json").exists() and not forks.ended:
        time.sleep(0.001)
    forks.kill(signal.SIGKILL)
    assert forks.wait().was_killed and not (out / "manifest.json").exists()
    assert "dedup: complete already" in refine(files, out, "--workers", 0).stdout
    assert corpus_bytes(out) == corpus_bytes(corpus)


def test_another_tokenizer_moves_the_chunks(corpus: Path, tmp_path: Path) -> None:
    """The budget counts the tokens of the tokenizer at hand: the recipe names it once."""
    spec = json.loads((corpus / "tokenizer" / "tokenizer.json").read_text())
    spec["model"]["vocab"]["ĠĠ"] = 258
    spec["model"]["merges"] = [["Ġ", "Ġ"]]
    (tmp_path / "other.json").write_text(json.dumps(spec))
    run("retokenize", corpus, "--tokenizer", tmp_path / "other.json", "--output", tmp_path / "out", "--workers", 0)
    chunks = [[json.loads(row["meta"])["chunks"] for row in provenance(where)] for where in (corpus, tmp_path / "out")]
    assert len(chunks[0]) == len(chunks[1]) and chunks[0] != chunks[1]
    assert manifest_of(tmp_path / "out")["recipe"]["chunk"]["tokenizer"] == ""


@one_commit_in_four
def test_the_same_files_in_another_format(corpus: Path, files: Path, tmp_path: Path) -> None:
    """Parquet with the columns repo, commit, path and content, as others publish it, without a word in the recipe."""
    recipe = yaml.safe_load((files / "recipe.yaml").read_text())
    recipe["sources"] = [{"name": "s0", "paths": [str(write_records(tmp_path / "all.parquet", records()))]}]
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    run("refine", tmp_path / "recipe.yaml", "--output", tmp_path / "out", "--workers", 0, "--quiet")
    kept = [{(row["id"], row["license"]) for row in provenance(made)} for made in (corpus, tmp_path / "out")]
    assert kept[0] == kept[1]
