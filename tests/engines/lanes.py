"""The demo's crawl and the code demo: what they are made of, and what they publish."""

import hashlib
import subprocess
import sys
from pathlib import Path

from tests.engines.engines import ROOT

RECIPES = {"web": "recipes/demo.yaml", "code": "recipes/demo-code.yaml"}
STARTS = {  # lane -> what makes the demo's input and tokenizer, as the Makefile does
    "web": ["demo_crawl.py", "out/demo/input"],
    "code": ["demo_code.py", "out/demo-code/input"],
}
# What differs between two runs of one recipe: seconds, and where a run was.
NOT_COMPARED = ("work/", "_run.json", "report.html")


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
