"""What `refinery trace`, `show` and `compare` say of documents that a takedown removed or brought back."""

import json
from pathlib import Path
from typing import Any

import pytest

from refinery.loader.format.manifest import read_manifest
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.corpus.remove.request import asked_words
from refinery.pipelines.corpus.trace.answers import Kept, Query, TakenDown
from refinery.pipelines.corpus.trace.trace_documents import trace
from tests.pipelines.corpus.remove.conftest import Place
from tests.pipelines.corpus.remove.corpora import remove, rows
from tests.pipelines.inputs import run
from tests.sampling import FILE_ON_ONE_COMMIT_IN_FOUR

pytestmark = FILE_ON_ONE_COMMIT_IN_FOUR


def answers(prefix: Path, url: str, **more: Any) -> list[Any]:
    return [answer for _, answer in trace(str(prefix), [Query("url", url)], **more).answers]


def test_trace_of_what_went(versions: list[Path], taken: Place) -> None:
    """By which takedown, which line asked for it, and where it was in the version before; with old work files, too."""
    before = {row["url"]: row for row in rows(taken.prefix)}
    (answer,) = answers(versions[2], "https://site23.example/23", work=str(taken.prefix / "work"))
    assert isinstance(answer, TakenDown)
    assert (answer.takedown, answer.why, answer.request, answer.was) == (1, "requested", "urls:3", "kept")
    manifest = read_manifest(open_store(str(versions[2])))
    assert answer.previous == manifest.takedowns[0].previous
    (was,) = answers(versions[0], "https://site23.example/23")
    assert (answer.shard, answer.document) == (was.shard, was.document) and answer.doc == was.doc
    by_id = [answer for _, answer in trace(str(versions[2]), [Query("id", answer.doc.id)]).answers]
    assert by_id == [answer] and before
    (answer,) = answers(versions[2], "https://mirror.example/a")  # asked for by the second, never in a shard
    assert (answer.takedown, answer.shard, answer.was) == (2, "", "near-duplicate")


def test_trace_says_it_in_words(versions: list[Path]) -> None:
    urls = ["https://site23.example/23", "https://mirror.example/a", "https://letters.example/25"]
    flags = [flag for url in urls for flag in ("--url", url)]
    said = run("trace", versions[2], *flags).stdout
    assert "removed by takedown 1: asked for by line 3 of --urls" in said
    assert "it was in train/" in said or "it was in validation/" in said
    assert "it was in no shard of the version before" in said and "(near-duplicate)" in said
    assert "since takedown 1, which removed what had stood for it:" in said
    assert said.index("since takedown 1") < said.index("https://site25.example/25")
    lines = [json.loads(line) for line in run("trace", versions[2], *flags, "--json").stdout.splitlines()]
    assert [line["answer"] for line in lines] == ["taken-down", "taken-down", "kept"]
    assert lines[2]["came_back"]["instead_of"]["url"] == "https://site25.example/25"
    shown = run("show", versions[2], "--url", urls[0]).stdout
    assert "removed by takedown 1" in shown and "word" not in shown


def test_trace_of_what_came_back_and_went(versions: list[Path], taken: Place, tmp_path: Path) -> None:
    (answer,) = answers(versions[1], "https://letters.example/25")
    assert isinstance(answer, Kept) and answer.came_back is not None
    assert (answer.came_back.takedown, answer.came_back.instead_of.url) == (1, "https://site25.example/25")
    rule = "source == 'letters' and text_bytes < 1000"
    remove(versions[1], tmp_path / "new", "--where", rule)
    (answer,) = answers(tmp_path / "new", "https://letters.example/25")
    assert isinstance(answer, TakenDown) and (answer.takedown, answer.rule) == (2, rule)
    assert f"asked for by --where {rule}" in run("trace", tmp_path / "new", "--url", answer.doc.url).stdout


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ("hosts:12", "line 12 of --hosts"),
        ("licence:GPL-3.0-only", "--licence GPL-3.0-only"),
        ("where", "--where edu < 0.1"),
        ("benchmark:quiz/one benchmark:exam/x", "--benchmarks, quiz/one, exam/x"),
        ("its text is gone", "its text is gone"),
    ],
)
def test_requests_in_words(request_: str, words: str) -> None:
    assert asked_words(request_, "edu < 0.1") == words


def test_compare_says_how_they_are_related(versions: list[Path], tmp_path: Path) -> None:
    said = run("compare", versions[0], versions[1]).stdout
    assert "B is a later version of A: a takedown removed 4 documents" in said and "and reinstated 2 with" in said
    assert "removed by `refinery remove`: requested (takedown)" in said
    said = run("compare", versions[2], versions[0], "--html", tmp_path / "page.html").stdout
    assert "A is a later version of B: 2 takedowns removed" in said
    assert "A is a later version of B" in (tmp_path / "page.html").read_text()
    found = json.loads(run("compare", versions[1], versions[2], "--json", "--list", 0).stdout)
    assert found["relation"]["a"] == [] and len(found["relation"]["b"]) == 1
    lost = {(each["fate"], each["reason"]) for each in found["documents"]["only_a"]}
    assert lost == {("taken-down", "requested"), ("taken-down", "copy-of-requested")}


def test_two_versions_of_one_corpus(versions: list[Path], tmp_path: Path) -> None:
    remove(versions[0], tmp_path / "other", "--source", "books")
    said = run("compare", versions[1], tmp_path / "other", "--list", 0).stdout
    first = read_manifest(open_store(str(versions[1]))).takedowns[0].previous
    assert f"A and B are later versions of one corpus (its manifest has sha256 {first})" in said
    assert "A, since then: a takedown removed 4" in said and "B, since then: a takedown removed" in said
