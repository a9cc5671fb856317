"""Every engine gives the bytes of the local runner: the demo's crawl and the code demo, whole runs each."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engines.engines import ENGINES, ROOT, Engine

pytestmark = [
    pytest.mark.skipif(not os.environ.get("REFINERY_ENGINES"), reason="minutes of whole runs: make test-engines"),
    pytest.mark.timeout(900),
]
RECIPES = {"web": "recipes/demo.yaml", "code": "recipes/demo-code.yaml"}
STARTS = {  # lane -> what makes the demo's input and tokenizer, as the Makefile does
    "web": ["demo_crawl.py", "out/demo/input"],
    "code": ["demo_code.py", "out/demo-code/input"],
}
# What differs between two runs of one recipe: seconds, and where a run was.
NOT_COMPARED = ("work/", "_run.json", "report.html")


@pytest.fixture(scope="module", params=RECIPES)
def lane(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """A lane and a folder with its input and tokenizer."""
    name = str(request.param)
    return name, make_lane(name, tmp_path_factory.mktemp(name))


def make_lane(name: str, folder: Path) -> Path:
    """Input, tokenizer and the expected corpus of a lane, in a folder."""
    (folder / "recipes").symlink_to(ROOT / "recipes")
    script, output = STARTS[name]
    python(folder, str(ROOT / "recipes" / script), output)  # it takes this checkout's own sources
    place = Path(output).parent
    if name == "web":
        lists = ("--positive", f"{output}/good.jsonl", "--negative", f"{output}/bad.jsonl")
        refinery(folder, "train-quality", *lists, "--output", f"{place}/quality.bin")
    more = ("--special-token", "<s>") if name == "code" else ()
    tokenizer = ("--output", f"{place}/tokenizer.json", "--vocab-size", "4000", *more)
    refinery(folder, "train-tokenizer", RECIPES[name], *tokenizer)
    refinery(folder, "refine", RECIPES[name], "--output", "expected", "--workers", "2")
    return folder


def python(folder: Path, *arguments: str) -> None:
    subprocess.run([sys.executable, *arguments], cwd=folder, check=True, capture_output=True)


def refinery(folder: Path, *arguments: str) -> str:
    """What a command printed; its output is shown where it fails."""
    done = subprocess.run([sys.executable, "-m", "refinery", *arguments], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, f"refinery {' '.join(arguments)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def digests(prefix: Path) -> dict[str, str]:
    """Name of a published file -> its SHA-256."""
    files = (path for path in prefix.rglob("*") if path.is_file())
    names = {path.relative_to(prefix).as_posix(): path for path in files}
    return {
        name: hashlib.sha256(path.read_bytes()).hexdigest()
        for name, path in names.items()
        if not name.startswith(NOT_COMPARED)
    }


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
def test_the_same_bytes(lane: tuple[str, Path], engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every published file but the report, and every file of rejects and dead letters."""
    if engine.missing:
        pytest.skip(engine.missing)
    name, folder = lane
    monkeypatch.chdir(folder)  # workers of a pool see the recipe's relative paths from there
    prefix = folder / engine.name.replace(", ", "-").replace(" ", "-")
    with engine.start() as flags:
        refinery(folder, "refine", RECIPES[name], "--output", prefix.name, *flags)
    expected = digests(folder / "expected")
    assert len(expected) > 5 and digests(prefix) == expected
    refinery(folder, "verify", prefix.name)
