"""A job that fails says why in one line; where it failed is shown to those who ask."""

import shutil
from pathlib import Path

import pytest

from refinery.pipelines.cli.command_line import error_line, execute
from tests.sampling import one_commit_in_four

FRAMES = "Traceback (most recent call last):\n  File x, line 1\n    call()\n"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\nlines", "plain\nlines"),
        (f"{FRAMES}refinery.transforms.x.Unreadable: a: bad [while running 's']\n\n", "a: bad [while running 's']"),
        (f"{FRAMES}OSError: inner\n\nDuring handling …\n\n{FRAMES}ValueError: outer", "ValueError: outer"),
        (f"{FRAMES}refinery.loader.errors.FormatError: first\nsecond", "first\nsecond"),
    ],
)
def test_the_last_exception_is_what_is_told(text: str, shown: str) -> None:
    assert error_line(text) == shown


@one_commit_in_four
def test_a_damaged_part_is_named_in_one_line(
    inputs: Path, corpus: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    shutil.copytree(corpus, out)
    for name in ("manifest.json", "work/shards.json", "work/shards/report.json"):
        (out / name).unlink()
    part = max((out / "work" / "documents").iterdir(), key=lambda path: path.stat().st_size)
    data = bytearray(part.read_bytes())
    data[len(data) // 3] ^= 1
    part.write_bytes(data)
    command = ["refine", str(inputs / "recipe.yaml"), "--output", str(out), "--quiet", "--workers"]
    assert execute([*command, "1"]) == 1
    first, hint = capfd.readouterr().err.splitlines()
    assert first.startswith(f"refinery: {part}: cannot be read: ")
    assert hint == "(the same command with --traceback shows where)"
    assert execute([*command, "0", "--traceback"]) == 1
    told = capfd.readouterr().err
    assert str(part) in told and "read_kept_documents" in told
