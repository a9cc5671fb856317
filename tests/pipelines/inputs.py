"""What end-to-end tests share: a small crawl, a tokenizer, a recipe, the command line, and corpora as bytes."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from refinery.pipelines.reports.run.write import REPORT
from tests.fork_server import fork_server

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "refinery"]


def make_inputs(folder: Path, pages: int = 120) -> Path:
    """The demo's crawl, a tokenizer and quality model learned from it, and recipe.yaml, all below `folder`."""
    subprocess.run(
        [sys.executable, "recipes/demo_crawl.py", str(folder / "input"), "--pages", str(pages)], cwd=ROOT, check=True
    )
    recipe: dict[str, Any] = yaml.safe_load((ROOT / "recipes" / "demo.yaml").read_text())
    for source in recipe["sources"]:
        source["paths"] = [path.replace("out/demo/input", str(folder / "input")) for path in source["paths"]]
    recipe["tokenizer"]["path"] = str(folder / "tokenizer.json")
    recipe["quality"]["model"] = str(folder / "quality.bin")
    recipe["run"] = {"wave_files": 2}
    (folder / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    good, bad = folder / "input" / "good.jsonl", folder / "input" / "bad.jsonl"
    run("train-quality", "--positive", good, "--negative", bad, "--output", folder / "quality.bin")
    run("train-tokenizer", folder / "recipe.yaml", "--output", folder / "tokenizer.json", "--vocab-size", 1000)
    return folder


def run(
    *arguments: object,
    check: bool = True,
    hash_seed: int = 0,
    environment: Mapping[str, str] | None = None,
    alone: bool = False,
) -> subprocess.CompletedProcess[str]:
    """The command line in a fork of a warmed process; `check` fails the test with everything that it printed.

    alone: in a new interpreter, as a user starts it, and worker processes, too.
    """
    if alone:
        done = subprocess.run(
            [*COMMAND, *map(str, arguments)],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": str(hash_seed), **(environment or {})},
            capture_output=True,
            text=True,
            timeout=250,
        )
    else:
        ended = fork_server(hash_seed).run(*arguments, environment=environment)
        done = subprocess.CompletedProcess([*COMMAND, *map(str, arguments)], ended.code, ended.out, ended.err)
    assert not check or done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def refine(inputs: Path, output: Path, *more: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """`refine` of the small recipe."""
    return run("refine", inputs / "recipe.yaml", "--output", output, *more, **options)


def corpus_bytes(prefix: Path, leave_out: Sequence[str] = ("work",)) -> dict[str, str]:
    """Name -> sha256 of every published file, but for the report, which holds seconds."""
    files = [path for path in sorted(prefix.rglob("*")) if path.is_file()]
    names = {path.relative_to(prefix).as_posix(): path for path in files}
    return {
        name: hashlib.sha256(path.read_bytes()).hexdigest()
        for name, path in names.items()
        if name.split("/")[0] not in (*leave_out, REPORT)
    }
