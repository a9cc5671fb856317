"""Input files that could not be read in whole are named, at the end of a run and whenever a corpus is looked at."""

from pathlib import Path

import pytest

from refinery.loader.format.manifest import read_manifest
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.cli.command_line import execute
from refinery.pipelines.corpus.verify.verify import verify
from refinery.pipelines.published.damaged_files import DamagedFile, damage_lines, damaged_files


def test_files_of_a_run_are_named(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its inputs have five dead letters: as in the funnel, each file once, at the last line of its command, in verify
    and in the report."""
    store = open_store(str(corpus))
    found = damaged_files(store, read_manifest(store))
    assert sum(file.errors.total() for file in found) == 5 and len({file.path for file in found}) == len(found) > 1
    assert [file.errors.total() for file in found] == sorted((file.errors.total() for file in found), reverse=True)
    lines = list(damage_lines(found))
    assert lines[0].startswith(f"{len(found)} input files could not be read in whole (5 dead letters; ")
    assert all(Path(file.path).exists() and f"  {file.path}: " in "\n".join(lines) for file in found)
    assert "\n".join(lines) in "\n".join(verify(str(corpus)).summary_lines())
    page = (corpus / "report.html").read_text()
    assert all(f"An input file could not be read in whole: {file.path}: " in page for file in found)
    assert execute(["verify", str(corpus)]) == 0
    assert "\n".join(lines) in capsys.readouterr().out


def test_what_is_said_of_many_files_with_hostile_names() -> None:
    files = [DamagedFile(f"/in/\x1b[2J{i}") for i in range(9)]
    for i, file in enumerate(files):
        for place, error in (("?", "A"), ("17", "A"), ("9", "B"), ("x", "C"), ("3", "D"), ("²", "D")):
            file.add(place if i else "?", error)
    lines = list(damage_lines(files))
    assert lines[0].startswith("9 input files could not be read in whole (54 dead letters; ")
    assert lines[1:3] == [
        r"  /in/\x1b[2J0: A 2, D 2, B 1 and 1 more kinds",
        r"  /in/\x1b[2J1: A 2, D 2, B 1 and 1 more kinds, the last at 17",
    ]
    assert lines[-1] == "  and 4 more, in dead_letters/" and len(lines) == 7
    assert list(damage_lines([])) == []
