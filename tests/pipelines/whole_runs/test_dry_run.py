"""--dry-run: every check, what would run, and nothing written."""

from dataclasses import replace
from pathlib import Path

import pytest

from refinery.pipelines import dry_run as dry_run_of
from refinery.pipelines.cli.command_line import execute
from refinery.pipelines.run import dry_run_text
from refinery.transforms.read.task import ReadTask
from tests.fork_server import ForkServer
from tests.pipelines.small_runs import command
from tests.sampling import FILE_ON_ONE_COMMIT_IN_FOUR

pytestmark = FILE_ON_ONE_COMMIT_IN_FOUR


@pytest.fixture
def done(small: Path, forks: ForkServer, tmp_path: Path) -> Path:
    """A finished run in two waves."""
    assert forks.run(*command(small, tmp_path / "done", "--set", "run.wave_files=1")).code == 0
    return tmp_path / "done"


def dry_run(capsys: pytest.CaptureFixture[str], small: Path, output: Path, *more: object) -> tuple[int, str]:
    before = {path: path.stat().st_mtime_ns for path in output.parent.rglob("*")}
    code = execute([str(word) for word in command(small, output, "--dry-run", *more)])
    assert {path: path.stat().st_mtime_ns for path in output.parent.rglob("*")} == before
    said = capsys.readouterr()
    return code, said.out + said.err


def test_large_files_that_one_worker_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dry_run_text, "SPLIT_BYTES", 1_000)
    task = ReadTask("z.csv", "csv", "s", 0, 1_000)
    large = [replace(task, path=f"{name}.csv", size=2_000 + len(name)) for name in ("a", "bb", "b", "ccc")]
    cut = [replace(task, path="d.jsonl", size=9_000, part=part, parts=9) for part in range(9)]
    assert list(dry_run_text.whole_files("s", [task, *cut, replace(large[0], cap=3)])) == []
    assert list(dry_run_text.whole_files("s", [task, large[0]])) == [
        "source s: 1 of 2 files is over 1.0 kB and cannot be read in parts, so one worker reads each: a.csv (2.0 kB)"
    ]
    assert list(dry_run_text.whole_files("s", [task, *cut, *large])) == [
        "source s: 4 of 6 files are over 1.0 kB and cannot be read in parts, so one worker reads each: "
        "ccc.csv (2.0 kB), bb.csv (2.0 kB), a.csv (2.0 kB), 1 more"
    ]


def test_every_state_of_a_run(small: Path, done: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    size = sum((small / f"{name}.jsonl").stat().st_size for name in "ab") / 1000
    source = f"source s: 2 files, {size:.1f} kB, jsonl, 2 tasks\n"
    end = "dry run: everything was checked, nothing was written\n"

    def disk(place: Path) -> str:
        text, spilled = size * 1.4, size * 0.7
        return (
            f"disk: up to {text:.1f} kB for the corpus and its work files, and {spilled:.1f} kB of temporary files in "
            f"{place}/work, if all text is kept\n"
        )

    assert dry_run(capsys, small, tmp_path / "new") == (
        0,
        f"{source}clean: 1 wave to run, {size:.1f} kB to read\ndedup: to run\nshards: to run\n"
        f"{disk(tmp_path / 'new')}{end}",
    )
    assert dry_run(capsys, small, done) == (0, f"{source}{done} is complete already; nothing to do\n")
    (done / "manifest.json").unlink()
    (done / "work/shards.json").unlink()
    code, said = dry_run(capsys, small, done)
    runs = "clean: complete already\ndedup: complete already\nshards: to run\n"
    assert (code, said) == (0, f"{source}{runs}{disk(done)}{end}")
    (done / "work/clean.json").unlink()
    (done / "work/dedup.json").unlink()
    (done / "work/clean/wave-00001.json").unlink()
    code, said = dry_run(capsys, small, done)
    left = (small / "b.jsonl").stat().st_size / 1000
    assert f"clean: 1 wave is done\nclean: 1 wave to run, {left:.1f} kB to read\ndedup: to run\n" in said


def test_from_python(small: Path, done: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The lines that the command prints, for the same parameters."""
    said: list[str] = []
    dry_run_of(small / "recipe.yaml", tmp_path / "new", reuse=str(done), settings=["exact_dup=off"], say=said.append)
    _, printed = dry_run(capsys, small, tmp_path / "new", "--reuse", done, "--set", "exact_dup=off")
    assert "".join(f"{line}\n" for line in said) == printed
    assert not (tmp_path / "new").exists()
    with pytest.raises(ValueError, match="no file matches"):
        dry_run_of(small / "recipe.yaml", tmp_path / "new", inputs=["/nowhere/*.jsonl"])


def test_what_reuse_would_give(small: Path, done: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = dry_run(capsys, small, tmp_path / "new", "--reuse", done, "--set", "exact_dup=off")
    assert code == 0 and f"clean: will be reused from {done}\n" in said
    assert f"dedup: to run ({done}: it differs, so it runs again: exact_dup is True there, False here)\n" in said


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--input", "/nowhere/*.jsonl"], "no file matches"),
        (["--set", "sources.s.text_field=body"], "did you mean"),
        (["--set", "tokenizer.eos=</s>"], "tokenizer.eos"),
        (["--reuse", "/nowhere"], "there is no finished phase"),
    ],
)
def test_what_would_stop_a_run_stops_it(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], words: str
) -> None:
    code, said = dry_run(capsys, small, tmp_path / "new", *more)
    assert code in (1, 2) and words in said and "nothing was written" not in said


def test_a_prefix_of_another_run(small: Path, done: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = dry_run(capsys, small, done, "--set", "shards.seed=2")
    assert code == 1 and "shards.seed is 1 there, 2 here" in said, said
