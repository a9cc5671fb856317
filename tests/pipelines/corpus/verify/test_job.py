"""`refinery verify --runner …`: the report is that of the command alone, byte for byte."""

import shutil
from pathlib import Path

import pytest

from refinery.pipelines.cli.command_line import execute
from refinery.pipelines.corpus.verify import keyed_rows, verify_job
from refinery.pipelines.corpus.verify.as_job import REPORT, verify_as_job
from refinery.pipelines.corpus.verify.verify import verify, verify_merged
from refinery.pipelines.corpus.verify.whole import Report
from refinery.pipelines.runners.runner import Runner
from refinery.pipelines.shell.exit_codes import ExitCode
from tests.corpus_factory import build_corpus
from tests.pipelines.corpus.verify import test_verify_faults as faults
from tests.pipelines.corpus.verify.test_ways import FORGERIES, WEB0, compared, flip, forge_much, load_bytes
from tests.pipelines.removals_factory import build_removed


def by_job(root: Path, partials: Path) -> Report:
    with Runner("local", workers=0, quiet=True).open() as runner:
        return verify_as_job(str(root), str(partials), runner, load=load_bytes)


def test_a_job_says_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a corpus with failures of many pieces and of every join, in several shares and partitions."""
    monkeypatch.setattr(verify_job, "TASK_DOCUMENTS", 3)
    monkeypatch.setattr(keyed_rows, "PARTITION_ROWS", 4)
    root, partials = build_removed(tmp_path / "corpus", 3, urls=True), tmp_path / "partials"
    FORGERIES["address twice"][1](root)
    forge_much(root)
    whole = verify(str(root), load=load_bytes)
    assert any("address of another" in failure for failure in whole.failures)
    assert any("leads into a cycle" in failure for failure in whole.failures)
    assert compared(by_job(root, partials)) == compared(whole)
    assert len(list(partials.glob("partial-*.json"))) > 1
    assert len(list(partials.glob("job/edges/*"))) > 1
    assert compared(verify_merged(str(root), str(partials), load=load_bytes)) == compared(whole)


def test_listings_that_cannot_be_read(tmp_path: Path) -> None:
    """No job is needed to say so."""
    root = build_corpus(tmp_path / "corpus")
    faults.FAULTS["shard twice"][0](root)
    assert compared(by_job(root, tmp_path / "partials")) == compared(verify(str(root), load=load_bytes))
    assert not (tmp_path / "partials").exists()


def test_a_job_goes_on_with_what_is_there(tmp_path: Path) -> None:
    """Shares that are there are not checked again, but that their rows are whole is."""
    root, partials = build_removed(tmp_path / "corpus"), tmp_path / "partials"
    before = by_job(root, partials)
    assert not before.failures
    (root / f"{WEB0}.bin").unlink()  # would be seen
    assert compared(by_job(root, partials)) == compared(before)
    (partials / "job" / REPORT).unlink()
    assert compared(by_job(root, partials)) == compared(before)
    (partials / "job" / REPORT).unlink()
    flip(next(partials.glob("partial-*/*.rows")))
    with pytest.raises(ValueError, match=r"rows: .* found; .* expected; remove partial-0"):
        by_job(root, partials)
    shutil.copy(next(partials.glob("partial-*.json")), partials / "partial-00000-of-00007.json")
    with pytest.raises(ValueError, match="partial results of 7 shares are there, and 1 are to be written"):
        by_job(root, partials)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root, partials = str(build_corpus(tmp_path / "corpus")), str(tmp_path / "partials")
    (tmp_path / "corpus" / f"{WEB0}.idx").unlink()
    assert execute(["verify", root, "--runner", "DirectRunner", "--partial", partials]) == ExitCode.FAILED
    assert f"{WEB0}.idx: missing" in capsys.readouterr().out
    job = ["--runner", "DataflowRunner", "--partial", partials]
    for flags, said in (
        (["--runner", "DirectRunner"], "--partial DIR is missing"),
        ([*job, "--shards", "0/2"], "leave out --shards and --merge"),
        (job, "PREFIX: "),
        ([*job, "--no-such-flag"], "unknown flag --no-such-flag"),
        (["--no-such-flag"], "unknown argument: --no-such-flag"),
    ):
        assert execute(["verify", root, *flags]) == ExitCode.USAGE
        assert said in capsys.readouterr().err
