"""The command: what it needs, what it refuses, what it prints; and that no worker or training node has any of it."""

import http.cookiejar
import json
import os
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from benchmarks.startup import start
from refinery.pipelines.cli import browse
from refinery.pipelines.cli.command_line import execute
from refinery.pipelines.corpus.browse.pages.visit import PAGES, load
from refinery.pipelines.corpus.browse.reading.judgements import DEFAULT, MOST_LINE, Judgement, Judgements, export
from refinery.pipelines.corpus.browse.reading.looked_at import LookedAt
from refinery.pipelines.corpus.browse.reading.withheld import TOXICITY, WITHDRAWN, withheld_stages
from refinery.transforms.filter.toxicity import TOXICITY as TOXIC_STAGE
from refinery.transforms.rights.opt_out import OPT_OUT
from tests.corpus_factory import build_corpus
from tests.pipelines.corpus.browse.hostile import Visitor, browser_of
from tests.pipelines.corpus.browse.server import served
from tests.sampling import one_commit_in_four
from tests.test_boundaries import ROOT, loaded_by

WEB = {"starlette", "uvicorn", "anyio"}


def test_it_serves_until_it_is_interrupted(tmp_path: Path) -> None:
    corpus = build_corpus(tmp_path / "corpus")
    with served(corpus, "--judgements", tmp_path / "j.jsonl") as address:
        jar = http.cookiejar.CookieJar()
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
        with browser.open(address) as found:
            assert b"Funnel" in found.read() and "server" not in found.headers
        with pytest.raises(urllib.error.HTTPError, match="403") as refused:
            browser.open(address)
        refused.value.close()
        assert len(jar) == 1


def test_without_the_extra_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(browse, "find_spec", lambda name: None if name == "uvicorn" else object())
    assert execute(["browse", "x"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("refinery: uvicorn is not installed; browse needs pip install 'corpus-refinery[browse]'")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["a", "b", "c"], "3 runs given, one or two are allowed"),
        (["a", "--work", "w", "--work", "v"], "--work: given 2 times, once for each run is allowed"),
        (["no-such-run"], "no-such-run: there is no run"),
    ],
)
def test_what_it_refuses(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["browse", *words]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("flag", [["--port", "70000"], ["--port", "-1"], ["--sample", "0"], ["--sample", "many"]])
def test_wrong_numbers(flag: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        execute(["browse", "x", *flag])
    assert ended.value.code == 2 and "is allowed" in capsys.readouterr().err


def test_opening_a_run_imports_neither_beam_nor_stages() -> None:
    found = loaded_by(["refinery.pipelines.corpus.browse.serve"])
    assert found >= WEB and not found & {"apache_beam", "grpc", "pydantic", "yaml", "torch", "jinja2", "requests"}
    assert browse.JUDGEMENTS == DEFAULT
    assert not set(start("browse", "--help").modules) & WEB


@one_commit_in_four
def test_workers_and_training_nodes_have_nothing_of_it() -> None:
    assert not loaded_by(["refinery.pipelines.runners.worker", "refinery.loader"]) & {"starlette", "uvicorn"}
    for name in ("requirements.txt", "requirements-worker.txt"):
        pinned = {line.partition("==")[0].lower() for line in (ROOT.parent / name).read_text().splitlines()}
        assert not pinned & {"starlette", "uvicorn"}, name
    extras = (ROOT.parent / "setup.py").read_text()
    developed = (ROOT.parent / "requirements-dev.txt").read_text().splitlines()
    for name in browse.NEEDED:
        (pin,) = [line for line in developed if line.startswith(f"{name}==")]
        assert extras.count(f'"{name}==') == 1 and f'"{pin}"' in extras


def test_every_page_can_be_loaded_and_stages_have_their_names() -> None:
    assert all(callable(load(name)) for name in PAGES)
    assert (TOXIC_STAGE.name, OPT_OUT.name) == (TOXICITY, WITHDRAWN)
    assert withheld_stages("web") == {"secrets", "pii", TOXICITY, WITHDRAWN}


# --- judgements -----------------------------------------------------------------------------------------------------


def judgement(origin: str, verdict: str = "right", note: str = "") -> Judgement:
    return Judgement(verdict, note, "run", "0" * 64, "", "https://a.example/", "s", origin, "kept")


def test_judgements_stay_outside_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tmp_path / "run"
    (run / "train").mkdir(parents=True)
    (tmp_path / "link").symlink_to(run)
    for path in (
        run / "j.jsonl",
        run / "train" / "j.jsonl",
        tmp_path / "link" / "j.jsonl",
        tmp_path / "x" / ".." / "run" / "j",
    ):
        with pytest.raises(ValueError, match="is inside the run"):
            Judgements(str(path), [str(run)])
    monkeypatch.chdir(run)
    with pytest.raises(ValueError, match="is inside the run"):
        Judgements(DEFAULT, ["."])
    with pytest.raises(ValueError, match="a new one in an existing folder"):
        Judgements(str(tmp_path / "no" / "j.jsonl"), [str(run)])


def test_the_last_judgement_of_a_document_counts(tmp_path: Path) -> None:
    kept = Judgements(str(tmp_path / "j.jsonl"), ["gs://bucket/run"])
    assert kept.latest() == [] and export(kept.latest()) == b""
    for origin, verdict in (("a@1", "wrongly-kept"), ("b@2", "right"), ("a@1", "wrongly-dropped")):
        kept.add(judgement(origin, verdict))
    with (tmp_path / "j.jsonl").open("a") as stream:
        stream.write('not JSON\n[1]\n{"verdict": "no"}\n\n')
    assert [(each.origin, each.verdict) for each in kept.latest()] == [("a@1", "wrongly-dropped"), ("b@2", "right")]
    assert [json.loads(line)["origin"] for line in export(kept.latest()).splitlines()] == ["b@2", "a@1"]


def test_a_file_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "j.jsonl").symlink_to(tmp_path / "other")
    with pytest.raises(OSError):
        Judgements(str(tmp_path / "j.jsonl"), []).add(judgement("a@1"))
    assert not (tmp_path / "other").exists()
    kept = Judgements(str(tmp_path / "k.jsonl"), [])
    with pytest.raises(ValueError, match="are allowed"):
        kept.add(judgement("x" * MOST_LINE))
    assert not os.path.exists(tmp_path / "k.jsonl")


@pytest.mark.parametrize("later", [False, True])
def test_a_file_that_waits_for_another_process_is_refused(tmp_path: Path, later: bool) -> None:
    """A FIFO without a reader would hold the threads of all requests."""
    path = tmp_path / "j.jsonl"
    kept = Judgements(str(path), []) if later else None
    os.mkfifo(path)
    if kept is None:
        with pytest.raises(ValueError, match="an existing plain file"):
            Judgements(str(path), [])
        return
    for ask in (kept.latest, lambda: kept.add(judgement("a@1"))):
        with pytest.raises((ValueError, OSError)):
            ask()


def test_a_judgement_is_a_line_of_its_own_behind_whatever_the_file_ends_with(tmp_path: Path) -> None:
    kept = Judgements(str(tmp_path / "j.jsonl"), [])
    (tmp_path / "j.jsonl").write_text('{"half": ')
    kept.add(judgement("a@1"))
    kept.add(judgement("b@2"))
    assert [each.origin for each in kept.latest()] == ["b@2", "a@1"]
    assert len((tmp_path / "j.jsonl").read_text().splitlines()) == 3


def test_a_full_disk_leaves_no_half_of_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Judgements(str(tmp_path / "j.jsonl"), [])
    kept.add(judgement("a@1"))
    before, write = (tmp_path / "j.jsonl").read_bytes(), os.write
    monkeypatch.setattr(os, "write", lambda handle, data: write(handle, data[:20]))
    with pytest.raises(OSError, match="was not kept"):
        kept.add(judgement("b@2"))
    assert (tmp_path / "j.jsonl").read_bytes() == before


FORGED: list[tuple[str, object]] = [
    *[(name, value) for name in ("note", "url", "run", "id", "at", "outcome") for value in (7, None, [], {"a": 1})],
    *[("measured", 3), ("verdict", []), ("id", "zz"), ("url", "\ud800"), ("note", "\ud800<script>"), ("origin", 1)],
]


@pytest.mark.parametrize(("name", "value"), FORGED)
def test_forged_lines_of_judgements_are_left_out_or_shown_as_text(tmp_path: Path, name: str, value: object) -> None:
    path = tmp_path / "j.jsonl"
    visitor = Visitor(browser_of(path, build_corpus(tmp_path / "corpus")))
    Judgements(str(path), []).add(judgement("a@1"))
    line = json.loads(path.read_text()) | {name: value}
    path.write_text(f"{json.dumps(line)}\n{'[' * 100_000}\n{path.read_text()}")
    page = visitor.get("judgements")
    assert "right as it is" in page and "<script>alert" not in page
    assert visitor.get("judgements.jsonl").splitlines()[-1] in path.read_text()


def test_a_run_that_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(ValueError, match=r"manifest\.json"):
        assert LookedAt("a", str(tmp_path)).opened is None
