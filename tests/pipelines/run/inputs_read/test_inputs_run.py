"""Whole runs: inputs.json, and files that are edited under them."""

from pathlib import Path
from typing import Any

import pytest

from refinery.loader.format.manifest import unseal
from refinery.pipelines.cli.command_line import execute
from refinery.pipelines.corpus.audit.recorded import Asked, AuditedRun
from refinery.pipelines.corpus.verify.verify import verify
from refinery.pipelines.run import refine
from refinery.pipelines.run.inputs_read.published import INPUTS, dump_inputs, parse_inputs
from refinery.pipelines.shell.exit_codes import ExitCode
from tests.corpus_factory import edit_manifest
from tests.pipelines.inputs import run
from tests.pipelines.small_runs import command, make_small_inputs
from tests.sampling import FILE_ON_ONE_COMMIT_IN_FOUR
from tests.transforms.read.test_changed_inputs import crc32c, edit

pytestmark = FILE_ON_ONE_COMMIT_IN_FOUR


def test_a_run_publishes_what_it_read(tmp_path: Path) -> None:
    """And an audit holds a large file to it, of which the planning knew a sample alone: an edit elsewhere is seen."""
    small, prefix = make_small_inputs(tmp_path / "in"), tmp_path / "corpus"
    run(*command(small, prefix))
    found = parse_inputs((prefix / INPUTS).read_bytes(), INPUTS)
    files = [small / "a.jsonl", small / "b.jsonl"]
    assert [(each["path"], each["size"], each["crc32c"]) for each in found] == [
        (str(path), path.stat().st_size, crc32c(path)) for path in files
    ]
    assert verify(str(prefix)).failures == []
    audited = AuditedRun(Asked(str(prefix)))
    assert all(audited.tasks(entry) for entry in audited.inputs)
    large = {**audited.inputs[0], "digest": "of a sample"}
    assert audited.tasks(large)
    edit(files[0], 20)
    with pytest.raises(ValueError, match=r"a\.jsonl: as long as the file that the run read, but with different bytes"):
        audited.tasks(large)


def test_verify_sees_what_does_not_fit_and_prints_no_control_characters(tmp_path: Path) -> None:
    """Files that were sealed anew: another checksum, another name, more than the run can have read."""
    small, prefix = make_small_inputs(tmp_path / "in"), tmp_path / "corpus"
    run(*command(small, prefix))
    whole = unseal((prefix / INPUTS).read_bytes(), INPUTS)["inputs"]

    def failures(inputs: list[dict[str, Any]]) -> list[str]:
        (prefix / INPUTS).write_bytes(dump_inputs(inputs))
        edit_manifest(prefix)
        return verify(str(prefix)).failures

    assert failures(whole) == []
    (failure,) = failures([{**whole[0], "crc32c": "00000000"}, whole[1]])
    assert failure.endswith(f"a.jsonl': crc32c 00000000 found, {whole[0]['crc32c']} expected from _run.json")
    missing, strange = failures([{**whole[0], "path": "a\x1b[2J\n"}, whole[1]])
    assert "'a\\x1b[2J\\n'" in strange and "missing" in missing
    (failure,) = failures([{**whole[0], "path": "x" * 100_000}, whole[1]])
    assert "bytes found" in failure and "at most expected" in failure


def test_an_edit_between_planning_and_reading_fails_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the same size and time of change; put back, the same command goes on."""
    small, prefix = make_small_inputs(tmp_path / "in"), tmp_path / "corpus"
    path, before = small / "b.jsonl", crc32c(small / "b.jsonl")
    settle = refine.with_sums
    monkeypatch.setattr(refine, "with_sums", lambda *planned: (edit(path, 20), settle(*planned))[1])
    assert execute([str(each) for each in command(small, prefix)]) == ExitCode.FAILED
    assert f"b.jsonl: other bytes, CRC-32C {crc32c(path)}, {before} when the run was planned" in capsys.readouterr().err
    edit(path, 20)
    monkeypatch.setattr(refine, "with_sums", settle)
    assert execute([str(each) for each in command(small, prefix)]) == ExitCode.DONE
