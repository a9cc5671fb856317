"""`refinery compare` on the command line: text, JSON, the file of documents, exit codes, Cloud Storage, source code."""

import json
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from refinery.pipelines.cli.command_line import execute
from refinery.pipelines.corpus.compare.compare import compare
from refinery.pipelines.corpus.compare.joining.fates import Kind
from refinery.pipelines.shell.exit_codes import ExitCode
from tests.fake_gcs import fake_gcs
from tests.pipelines.code_runs import make_code_inputs
from tests.pipelines.corpus.compare.two_runs import HOSTILE
from tests.pipelines.inputs import run
from tests.sampling import FILE_ON_ONE_COMMIT_IN_FOUR

pytestmark = FILE_ON_ONE_COMMIT_IN_FOUR


def say(capsys: pytest.CaptureFixture[str], *words: object, code: ExitCode = ExitCode.DONE) -> str:
    assert execute(["compare", *map(str, words)]) is code
    return capsys.readouterr().out


def test_text(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = say(capsys, runs / "a", runs / "b", "--list", 50)
    for words in (
        "59 documents are the same, 5 have another final text, 4 pages have another text, 68 are only in A, 4 only",
        "recipe near_dup",
        "recipe sources.t.target                      – → 2000",
        "input files of s: 1 only in A, 1 only in B, 3 in both, 1 of these with other bytes",
        "removed as a duplicate: near-duplicate (near-duplicates)",
        "failed: BadJson (read)",
        "11  dropped by heuristics: gopher-too-few-words (11 of all)",
        "kept by every rule that judges single documents, so it was lost to target: over-target",
        "heuristics: dropped gopher-too-few-words                               0 → 11          +11",
        "published: text-bytes",
    ):
        assert words in text, words
    assert "\x1b" not in text and "\u202e" not in text and "\\x1b[2J\\u202e" in text  # of addresses: escaped


def test_json_is_the_same_every_time_and_has_all(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = say(capsys, runs / "a", runs / "c", "--json")
    assert first == say(capsys, runs / "a", runs / "c", "--json") and first.isascii()
    found = json.loads(first)
    assert found["differ"] and not found["identical"]
    documents = found["documents"]
    lost = sum(each["documents"] for each in documents["only_a"])
    pairs = sum(documents[what]["a"]["documents"] for what in ("same", "cut", "changed"))
    assert lost + pairs == found["a"]["documents"]
    assert {each["fate"] for each in documents["only_b"]} == {"not-read"}
    dropped = [each for each in documents["only_a"] if each["reason"] == "gopher-too-few-words"]
    assert [(each["stage"], each["documents"]) for each in dropped] == [("heuristics", 11)]
    assert len(dropped[0]["examples"]) == 3 and dropped[0]["examples"][0]["a"]["origin"].startswith(str(runs))
    assert sum(row["difference"] for row in found["reasons"] if row["outcome"] == "dropped") == sum(
        row["difference"] for row in found["reasons_by_source"] if row["outcome"] == "dropped"
    )


def test_the_file_of_documents(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every document that the corpora do not share, with its fate; the same bytes every time."""
    paths = [tmp_path / "folder/one.parquet", tmp_path / "two.parquet"]
    for path in paths:
        found = json.loads(
            say(capsys, runs / "a", runs / "b", "--json", "--list", 0, "--replay", 0, "--documents", path)
        )
    assert paths[0].read_bytes() == paths[1].read_bytes()
    rows = pq.read_table(paths[0]).to_pylist()
    for side in ("a", "b"):
        of_side = [row for row in rows if row["side"] == side.upper()]
        for each in found["documents"][f"only_{side}"]:
            names = ("fate", "stage", "reason", "scope")
            same = [row for row in of_side if all(row[name] == each[name] for name in names)]
            assert len(same) == each["documents"] and sum(row["tokens"] for row in same) == each["tokens"]
        changed = [row for row in of_side if row["fate"] == "changed"]
        assert len(changed) == found["documents"]["changed"][side]["documents"] == 4
    ids = {row["id"]: row for row in rows}
    assert all(ids[row["other_id"]]["origin"] == row["origin"] for row in rows if row["fate"] == "changed")
    provenance = {
        row["id"]: row
        for prefix in ("a", "b")
        for path in (runs / prefix).glob("*/*/*.provenance.parquet")
        for row in pq.read_table(path).to_pylist()
    }
    assert any(HOSTILE in row["url"] for row in rows)
    for row in rows:
        assert {name: row[name] for name in ("url", "origin", "source")} == {
            name: provenance[row["id"]][name] for name in ("url", "origin", "source")
        }


def test_files_are_not_replaced_by_accident(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pair = (runs / "b", runs / "c")
    files = ["--html", tmp_path / "page.html", "--documents", tmp_path / "rows.parquet"]
    say(capsys, *pair, *files)
    say(capsys, *pair, *files, code=ExitCode.USAGE)
    say(capsys, *pair, *files, "--overwrite")
    assert pq.read_table(tmp_path / "rows.parquet").num_rows == 0
    say(capsys, *pair, "--html", tmp_path / "x", "--documents", tmp_path / "x", code=ExitCode.USAGE)


def test_exit_codes(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Settings alone are no difference: b and c list other shares of what they drop."""
    assert "recipe rejects.rate" in say(capsys, runs / "b", runs / "c", "--exit-code")
    say(capsys, runs / "a", runs / "b", "--list", 0, "--replay", 0)
    say(capsys, runs / "a", runs / "b", "--list", 0, "--replay", 0, "--exit-code", code=ExitCode.FAILED)
    (tmp_path / "_run.json").write_bytes((runs / "a" / "_run.json").read_bytes())
    for place, next_step in ((tmp_path, "refinery inspect"), (runs, "name the folder that holds them")):
        assert execute(["compare", str(runs / "a"), str(place)]) is ExitCode.USAGE
        assert next_step in capsys.readouterr().err  # not complete, or of nothing: what to do next


def test_in_cloud_storage(runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The same answers from a bucket as from folders."""
    local = json.loads(say(capsys, runs / "a", runs / "c", "--json", "--replay", 0))
    with fake_gcs("bucket") as server:
        server.use(monkeypatch)
        for name in ("a", "c"):
            server.put_folder("bucket", f"{name}/", runs / name)
        remote = json.loads(say(capsys, "gs://bucket/a", "gs://bucket/c", "--json", "--replay", 0))
        calls = [call for call in server.calls if call.name.endswith(".bin")]
    for found in (local, remote):
        for side in ("a", "b"):
            found[side].pop("prefix")
    assert remote == local and not calls  # tokens are never read


def test_source_code_in_other_chunks(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Documents that a stage splits: the parts that only one corpus has are of records that both have. Then a corpus of
    another lane, with which it has nothing in common."""
    folder = make_code_inputs(tmp_path / "code")
    for name, budget, reuse in (("long", 256, []), ("short", 128, ["--reuse", tmp_path / "long"])):
        told = ["refine", folder / "recipe.yaml", "--workers", 0, "--quiet", "--output", tmp_path / name]
        settings = [f"chunk.budget={budget}", "chunk.emit=chunks", "chunk_dup=null"]
        run(*told, *reuse, *(word for each in settings for word in ("--set", each)))
    found = compare((str(tmp_path / "long"), str(tmp_path / "short")))
    assert found.documents is not None
    kinds: dict[str, Any] = {label: {each.fate.kind for each in found.documents.only[label]} for label in "AB"}
    assert kinds["B"] <= {Kind.SPLIT} and kinds["A"] <= {Kind.SPLIT}
    for n, side in enumerate((found.a, found.b)):
        pairs = [found.documents.same[n], found.documents.cut[n], found.documents.changed[n]]
        lost = found.documents.lost(side.label)
        assert sum(each.documents for each in (*pairs, lost)) == side.manifest.totals["documents"]
    assert kinds["B"] == {Kind.SPLIT} and found.documents.cut[0].documents and found.documents.same[0].documents
    text = say(capsys, tmp_path / "long", runs / "a", "--html", tmp_path / "page.html")
    assert re.search(r'lane +"code" → "web"', text) and "A is of the lane code, B of web" in text
    assert "license" in text and "its file was not read" in text
