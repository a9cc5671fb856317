"""Ctrl-C at any moment ends with 130 and without a traceback, and the same command goes on."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from refinery.pipelines.cli.command_line import execute
from refinery.pipelines.shell.exit_codes import ExitCode
from tests.pipelines.small_runs import command, digests, folder_files, make_small_inputs

# Raises SIGINT at the n-th call of a Python function after the process has begun.
AT_CALL = """
import signal, sys
from refinery.pipelines.shell.interrupts import leave_at_once
leave_at_once()
left = int(sys.argv.pop(1))
def count(frame, event, arg):
    global left
    left -= event == "call"
    if left <= 0:
        sys.setprofile(None)
        signal.raise_signal(signal.SIGINT)
sys.setprofile(count)
from refinery.__main__ import main
main()
"""


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_small_inputs(tmp_path_factory.mktemp("interrupts") / "inputs")


@pytest.fixture(scope="module")
def corpus(inputs: Path) -> Path:
    prefix = inputs.parent / "corpus"
    assert execute(list(map(str, command(inputs, prefix, "--quiet")))) == 0
    return prefix


# While modules are imported, arguments are read, a corpus is looked at.
@pytest.mark.parametrize("calls", [1, 300, 3_000, 9_000, 20_000, 60_000])
def test_at_any_call_of_a_process(calls: int, corpus: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", AT_CALL, str(calls), "verify", str(corpus), "--workers", "0"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == ExitCode.INTERRUPTED, (done.returncode, done.stderr)
    assert "Traceback" not in done.stderr
    assert done.stderr.count("interrupted") == 1


MOMENTS = (
    "describe_inputs",
    "phase_fingerprints",
    "claim",
    "at_work",
    "finish_phase",
    "discard_short_shards",
    "build_funnel",
    "publish_corpus",
    "leave_report",
)


def interrupted_once(monkeypatch: pytest.MonkeyPatch, place: str, after: bool) -> None:
    """The function there is interrupted before or after its work, once."""
    original = _at(place)
    done: list[int] = []

    def interrupt(*args: Any, **options: Any) -> Any:
        found = original(*args, **options) if done or after else None
        if not done:
            done.append(1)
            raise KeyboardInterrupt
        return found

    monkeypatch.setattr(place, interrupt)


def _at(place: str) -> Callable[..., Any]:
    module, _, name = place.rpartition(".")
    __import__(module)
    found: Callable[..., Any] = getattr(sys.modules[module], name)
    return found


def test_at_every_step_of_a_run(
    inputs: Path, corpus: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """One prefix, interrupted again and again, is the corpus of a run that nobody interrupted."""
    words = list(map(str, command(inputs, tmp_path / "corpus", "--quiet")))
    for name in MOMENTS:
        for after in (False, True):
            with monkeypatch.context() as patch:
                interrupted_once(patch, f"refinery.pipelines.run.refine.{name}", after)
                code = execute(words)
            said = capfd.readouterr().err
            assert code == ExitCode.INTERRUPTED, (name, after)
            assert said.strip() == "interrupted; run the same command again to resume"
    assert execute(words) == 0
    assert digests(folder_files(tmp_path / "corpus")) == digests(folder_files(corpus))


@pytest.mark.parametrize(
    ("words", "place"),
    [
        ("export CORPUS --format jsonl --output OUT --workers 0", "refinery.pipelines.corpus.export.texts.seal"),
        (
            "export CORPUS --format jsonl --output OUT --workers 0",
            "refinery.pipelines.corpus.export.texts.corpus_facts",
        ),
        (
            "train-tokenizer RECIPE --output OUT.json --workers 0 --vocab-size 300",
            "refinery.pipelines.training.sample.write_tasks",
        ),
        ("verify CORPUS --workers 0", "refinery.pipelines.corpus.verify.kinds.kind_of"),
        ("plan", "refinery.pipelines.reports.plan.outputs.plan_lines"),
    ],
)
def test_other_commands(
    words: str,
    place: str,
    inputs: Path,
    corpus: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    given = words.replace("CORPUS", str(corpus)).replace("RECIPE", str(inputs / "recipe.yaml"))
    argv = given.replace("OUT", str(tmp_path / "out")).split()
    with monkeypatch.context() as patch:
        interrupted_once(patch, place, after=False)
        assert execute(argv) == ExitCode.INTERRUPTED
    assert "Traceback" not in capfd.readouterr().err
    assert execute(argv) == 0
