"""Pages that a run dropped, judged again: all of rejects/, and pages that no file of the corpus lists."""

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from refinery.loader.format.manifest import RUN, seal, unseal
from refinery.pipelines.cli.command_line import execute
from refinery.pipelines.corpus.trace.answers import Doc, Missing, Query, Rejected, Removed, Replayed
from refinery.pipelines.corpus.trace.recorded_run import RecordedRun
from refinery.pipelines.corpus.trace.replays import replay_answers
from refinery.pipelines.corpus.trace.trace_documents import trace
from refinery.pipelines.corpus.trace.trace_text import json_lines, text_lines
from tests.corpus_factory import edit_manifest


def rejects(corpus: Path) -> list[dict[str, Any]]:
    return [row for path in sorted((corpus / "rejects").iterdir()) for row in pq.read_table(path).to_pylist()]


def row_of(corpus: Path, stage: str, reason: str = "") -> dict[str, Any]:
    return next(row for row in rejects(corpus) if row["stage"] == stage and reason in ("", row["reason"]))


@pytest.fixture(scope="module")
def unlisted(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The corpus as it is with `rejects.rate: 0`, and without work/."""
    root = tmp_path_factory.mktemp("unlisted") / "corpus"
    shutil.copytree(corpus, root, ignore=shutil.ignore_patterns("work"))
    for path in (root / "rejects").iterdir():
        pq.write_table(pq.read_table(path).slice(0, 0), path)
    edit_manifest(root, lambda m: m["recipe"].update(rejects={"rate": 0.0, "excerpt_chars": 0}))
    return root


def test_every_reject_of_a_run_is_dropped_by_the_same_rule_again(corpus: Path) -> None:
    """But for what lines and copies of other documents decide, which this run has not."""
    run = RecordedRun(str(corpus), measure=False)
    assert not run.problem and not run.differs
    rows = rejects(corpus)
    assert len({(row["stage"], row["reason"]) for row in rows}) > 10
    for row in rows:
        replayed = run.replayed(Doc(source=row["source"], origin=row["origin"]))
        last = replayed.decisions[-1]
        assert (last.stage, last.outcome, last.reason.partition(":")[0]) == (row["stage"], "dropped", row["reason"])


def test_the_dead_letters_of_a_run_fail_again(corpus: Path) -> None:
    run = RecordedRun(str(corpus), measure=False)
    rows = [row for path in (corpus / "dead_letters").iterdir() for row in pq.read_table(path).to_pylist()]
    assert rows
    for row in rows:
        found, problem = run.replay(Doc(source=row["source"], origin=row["origin"]))
        assert problem or (found and (found.last.stage, found.last.reason) == (row["stage"], row["error"]))
        assert not problem or "no record begins there" in problem  # the reader noticed it behind a broken record


def test_rule_value_and_threshold(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = row_of(corpus, "heuristics", "gopher-too-few-words")
    assert execute(["trace", str(corpus), "--origin", row["origin"]]) == 0
    said = capsys.readouterr().out
    assert "dropped by heuristics: gopher-too-few-words" in said
    assert any(line.split()[:2] == ["-", "gopher.min_words"] and line.endswith("≥ 50") for line in said.splitlines())
    assert "gopher.max_words" not in said  # of the rules that would keep it `refinery try` says more
    for stage, sign in (("quality", "threshold = 0.5"), ("language", "language = ")):
        assert execute(["trace", str(corpus), "--origin", row_of(corpus, stage)["origin"]]) == 0
        assert sign in capsys.readouterr().out


def test_json_has_all_that_was_measured(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = row_of(corpus, "heuristics", "gopher-too-few-words")
    execute(["trace", str(corpus), "--origin", row["origin"], "--json"])
    (answer,) = map(json.loads, capsys.readouterr().out.splitlines())
    last = answer["replay"]["decisions"][-1]
    assert (last["stage"], last["outcome"], answer["replay"]["problem"]) == ("heuristics", "dropped", "")
    assert len(last["readings"]) > 10
    execute(["trace", str(corpus), "--origin", row["origin"], "--json", "--no-replay"])
    assert "replay" not in json.loads(capsys.readouterr().out)


def test_a_page_that_nothing_lists(corpus: Path, unlisted: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By its URL alone: what can be done. By its origin, or in the inputs: which rule."""
    row = row_of(corpus, "language")
    assert execute(["trace", str(unlisted), "--url", row["url"]]) == 1
    said = capsys.readouterr().out
    assert "rejects.rate is 0;" in said and "--search-inputs searches the run's inputs" in said
    assert execute(["trace", str(unlisted), "--origin", row["origin"]]) == 0
    first = capsys.readouterr().out
    assert f"dropped by language when it is judged again: {row['reason']}: " in first and row["url"] in first
    assert execute(["trace", str(unlisted), "--url", row["url"], "--url", "https://nowhere/", "--search-inputs"]) == 1
    both = capsys.readouterr()
    assert f"dropped by language when it is judged again: {row['reason']}: " in both.out and row["origin"] in both.out
    assert "searching 5 inputs of the run, " in both.err and "url https://nowhere/\n  not found" in both.out


def test_an_input_that_is_gone(corpus: Path, unlisted: Path, tmp_path: Path) -> None:
    """It is said; the search of the others goes on."""
    root = tmp_path / "corpus"
    shutil.copytree(unlisted, root)
    run = unseal((root / RUN).read_bytes(), RUN)
    row = row_of(corpus, "language")
    path = row["origin"].rpartition("@")[0]
    for entry in run["inputs"]:
        if entry["path"] != path:
            entry["path"] = f"{entry['path']}.gone"
        else:
            entry["size"] += 1
    (root / RUN).write_bytes(seal(run))
    edit_manifest(root)
    told: list[str] = []
    found = trace(str(root), [Query("url", row["url"]), Query("origin", row["origin"])])
    searched = replay_answers(found, str(root), "", True, told.append)
    assert [type(answer) for _, answer in searched.answers] == [Missing, Missing]
    assert sum("no longer exists" in line for line in told) == 4
    assert sum("has changed" in line for line in told) == 1
    rejected = trace(str(corpus), [Query("url", row["url"])])
    again = replay_answers(rejected, str(root), "", False, told.append)
    (answer,) = (answer for _, answer in again.answers)
    assert isinstance(answer, Rejected) and answer.replay and "has changed" in answer.replay.problem
    assert any("it cannot be judged again: " in line and "has changed" in line for line in text_lines(again))
    assert all(json.loads(line) for line in json_lines(again))


def test_a_run_that_was_made_with_other_parameters(corpus: Path, tmp_path: Path) -> None:
    root = tmp_path / "corpus"
    shutil.copytree(corpus, root, ignore=shutil.ignore_patterns("work"))
    run = unseal((root / RUN).read_bytes(), RUN)
    run["stages"]["clean"][0]["version"] = 99
    run["fingerprint"] = "00" * 32
    (root / RUN).write_bytes(seal(run))
    edit_manifest(root)
    row = row_of(corpus, "language")
    found = replay_answers(trace(str(root), [Query("url", row["url"])]), str(root), "", False, print)
    said = "\n".join(text_lines(found))
    assert "not as in the run: version of the stage read is 99 there, " in said


def test_stages_of_the_users_own_are_not_imported(corpus: Path, inputs: Path, tmp_path: Path) -> None:
    root = tmp_path / "corpus"
    shutil.copytree(corpus, root, ignore=shutil.ignore_patterns("work"))
    run = unseal((root / RUN).read_bytes(), RUN)
    run["recipe"]["stages"] = [{"use": "os:system", "after": "read"}]
    (root / RUN).write_bytes(seal(run))
    edit_manifest(root)
    row = row_of(corpus, "language")
    for recipe, problem in (("", "name the recipe's file with --recipe"), (str(inputs / "recipe.yaml"), "")):
        found = replay_answers(trace(str(root), [Query("url", row["url"])]), str(root), recipe, False, print)
        (answer,) = (answer for _, answer in found.answers)
        assert isinstance(answer, Rejected) and answer.replay
        assert problem in answer.replay.problem and bool(answer.replay.problem) is bool(problem)


def test_the_end_of_a_chain_is_judged_again(corpus: Path) -> None:
    """A page that was removed in favour of one that a later stage dropped."""
    row = row_of(corpus, "quality")
    doc = Doc("00" * 16, row["url"], row["source"], row["origin"])
    found = trace(str(corpus), [Query("url", row["url"])])
    removed = Removed(Doc("11" * 16, "u", "crawl", "o"), (), Rejected(doc, "quality", row["reason"]))
    again = replay_answers(
        type(found)(((found.answers[0][0], removed),), found.inputs, ()), str(corpus), "", False, print
    )
    ((_, answer),) = again.answers
    assert isinstance(answer, Removed) and isinstance(answer.end, Rejected) and isinstance(answer.end.replay, Replayed)
    assert answer.end.replay.decisions[-1].stage == "quality"
