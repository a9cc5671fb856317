"""What it costs to start a command that only looks, or a run: seconds of CPU, and modules that are imported.

    python -m benchmarks.startup [--corpus out/demo/corpus] [--times 3] [--importers]
    python -m benchmarks.startup --runs [--times 3]

Each runs in an interpreter of its own, several times; the smallest figure counts. `make demo` makes the corpus that the
first form looks at. --importers says instead which of our modules first imports each library that is not our own.
--runs measures `refine` on the beginnings of fifty pages of docs/, by the recipe of benchmarks/funnel.py, with all its
processes.
"""

import argparse
import contextlib
import ctypes
import json
import os
import resource
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.funnel import EOS, RECIPE, train_tokenizer

ROOT = Path(__file__).parents[1]
DOCUMENTS, CHARACTERS = 50, 2000  # of a run
# Runs `refinery` with the words that are given, then writes what was imported, and by whom: module -> importer.
RUN = """
import json, os, sys
found, words = sys.argv[1], sys.argv[2:]
first = {}

class Watch:
    def find_spec(self, name, path=None, target=None):
        frame = sys._getframe(1)
        while frame and not frame.f_globals.get("__name__", "").startswith("refinery."):
            frame = frame.f_back
        first.setdefault(name, frame.f_globals["__name__"] if frame else "")

def leave(code):
    files = [name for name, module in list(sys.modules.items()) if getattr(module, "__file__", None)]
    with open(found, "w") as out:
        json.dump({name: first.get(name, "") for name in files}, out)
    sys.stdout.flush()
    sys.stderr.flush()
    end(code)

end, os._exit = os._exit, leave
sys.meta_path.insert(0, Watch())
sys.argv = ["refinery", *words]
from refinery.pipelines.cli.command_line import main
try:
    main()
except SystemExit as error:
    leave(error.code or 0)
"""


@dataclass(frozen=True)
class Start:
    """What one run of a command cost. cpu: seconds, of the user and the system. modules: those that it imported, with a
    file of their own, and the module of ours that asked for each first."""

    code: int
    cpu: float
    modules: Mapping[str, str]
    said: str


def start(*words: str, cache: str = "") -> Start:
    """Run `refinery` with these words in a new interpreter. Its workers, if it has any, count as well.

    cache: a folder for compiled modules, as the second start of a command finds them beside their sources.
    """
    environment = dict(os.environ)
    if cache:
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        environment["PYTHONPYCACHEPREFIX"] = cache
    with TemporaryDirectory() as folder:
        found = Path(folder) / "modules.json"
        command = [sys.executable, "-W", "ignore", "-c", RUN, str(found), *words]
        before = used()
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
        cpu = used() - before
        return Start(done.returncode, cpu, json.loads(found.read_text()), done.stdout + done.stderr)


def used() -> float:
    """Seconds of CPU of all processes that this one has waited for."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def used_by_run(words: Sequence[str], cache: str) -> tuple[float, Start]:
    """Seconds of CPU of a run with all its processes. Its workers end after the process that started them: they become
    children of this one, which waits for them. Linux alone."""
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    before = used()
    run = start(*words, cache=cache)
    if run.code:
        raise SystemExit(f"refine: exit code {run.code}\n{run.said}")
    with contextlib.suppress(ChildProcessError):  # none is left
        while True:
            os.wait()
    return used() - before, run


def make_run(folder: Path) -> list[str]:
    """The words of a run of fifty documents, without its output."""
    pages = sorted((ROOT / "docs").rglob("*.md"))[:DOCUMENTS]
    texts = [page.read_text()[:CHARACTERS] for page in pages]
    rows = (json.dumps({"id": str(number), "text": text}) for number, text in enumerate(texts))
    (folder / "pages.jsonl").write_text("\n".join(rows) + "\n")
    train_tokenizer(texts, folder / "tokenizer.json")
    source = {"name": "pages", "paths": [str(folder / "pages.jsonl")], "format": "jsonl"}
    tokenizer = {"path": str(folder / "tokenizer.json"), "eos": EOS}
    (folder / "recipe.yaml").write_text(json.dumps({**RECIPE, "sources": [source], "tokenizer": tokenizer}))
    return ["refine", str(folder / "recipe.yaml"), "--quiet"]


def show_runs(times: int) -> None:
    """A table of runs by one and two workers."""
    print("| `refine` | CPU seconds | modules |\n| --- | --- | --- |")
    with TemporaryDirectory() as folder, TemporaryDirectory() as cache:
        words = make_run(Path(folder))
        for workers in (1, 2):
            outputs = [f"{folder}/corpus-{workers}-{number}" for number in range(1 + times)]
            runs = [used_by_run([*words, "--output", each, "--workers", f"{workers}"], cache) for each in outputs]
            least, run = min(runs[1:], key=lambda found: found[0])  # the first one compiles
            print(f"| `--workers {workers}` | {least:.2f} | {len(run.modules):,} |", flush=True)


def some_document(corpus: str) -> dict[str, str]:
    """A document of a corpus as `refinery sample` gives it: its id and url are asked for."""
    drawn = start("sample", corpus, "-n", "1", "--json")
    if drawn.code:
        raise SystemExit(drawn.said)
    found: dict[str, str] = json.loads(drawn.said.splitlines()[0])
    return found


def looking(corpus: str, document: Mapping[str, str], folder: str) -> dict[str, list[str]]:
    """Command -> its words, of those that read a corpus and write nothing, or one small file into `folder`."""
    return {
        "--help": ["--help"],
        "verify": ["verify", corpus],
        "inspect": ["inspect", corpus],
        "trace": ["trace", corpus, "--url", document["url"]],
        "show": ["show", corpus, "--id", document["id"]],
        "sample": ["sample", corpus],
        "report": ["report", corpus, "--output", f"{folder}/report.html", "--overwrite"],
        "compare": ["compare", corpus, corpus],
        "card": ["card", corpus],
        "audit": ["audit", corpus, "--sample", "0.2", "--workers", "0"],
        "shards": ["shards", corpus, "--node", "n"],
        "blend": ["blend", corpus],
        "plan": ["plan", "--from", corpus, "--share", "1%"],
        "stages": ["stages"],
    }


def importers(modules: Mapping[str, str]) -> dict[str, str]:
    """Library -> the module of ours that imported it first."""
    found: dict[str, str] = {}
    for name, importer in modules.items():
        library = name.partition(".")[0]
        if library not in {*sys.stdlib_module_names, "refinery"} and importer:
            found.setdefault(library, importer)
    return found


def main() -> None:
    """Print a table for docs/benchmarks/startup.md."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", default="out/demo/corpus")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--importers", action="store_true")
    parser.add_argument("--runs", action="store_true")
    args: Any = parser.parse_args()
    if args.runs:
        show_runs(args.times)
        return
    print("| command | CPU seconds | modules |\n| --- | --- | --- |")
    with TemporaryDirectory() as folder, TemporaryDirectory() as cache:
        for name, words in looking(args.corpus, some_document(args.corpus), folder).items():
            runs = [start(*words, cache=cache) for _ in range(1 + args.times)][1:]  # the first one compiles
            if runs[0].code:
                raise SystemExit(f"{name}: exit code {runs[0].code}\n{runs[0].said}")
            print(f"| `{name}` | {min(run.cpu for run in runs):.2f} | {len(runs[0].modules):,} |", flush=True)
            if args.importers:
                print("\n".join(f"    {library:<20} {by}" for library, by in importers(runs[0].modules).items()))


if __name__ == "__main__":
    main()
