"""Instructions per byte that each stage executes on made texts, beside those of benchmarks/instructions.json.

    make bench-check
    python -m benchmarks.instructions [--write] [--only PART]

Every stage that the recipes of the web lane and the code lane have on judges the demo's pages and files, and so do the
countings of `heuristics`, signatures and statistics. Valgrind's callgrind counts what is executed while it judges, not
what is imported and prepared before. A stage that takes 15 % more than it did fails the check, and so does one that is
not in the file yet: --write puts today's counts there, where a review sees them.

Counts hold for one build of Python; on another one they are scaled by a loop of plain Python that is counted beside
them. They do not depend on the load of the machine. Needs valgrind with its headers and a C compiler; says so and ends
with 0 without them. Two minutes on one core.
"""

import argparse
import ctypes
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parents[1]
BASELINE = ROOT / "benchmarks" / "instructions.json"
ALLOWED = 1.15  # times the baseline
PAGES = 120
WEB = """\
name: web
sources: [{{name: crawl, paths: ["{folder}/crawl-*.warc.gz"], format: warc}}]
tokenizer: {{path: "{folder}/tokenizer.json"}}
toxicity: on
pii: on
"""
CODE = """\
name: code
lane: code
sources: [{{name: repos, paths: ["{folder}/others.jsonl.gz"]}}]
tokenizer: {{path: "{folder}/tokenizer.json"}}
"""
# What callgrind listens to, as functions of a library: its own macros are inline assembly.
SWITCH = """\
#include <valgrind/callgrind.h>
void begin(void) { CALLGRIND_START_INSTRUMENTATION; CALLGRIND_ZERO_STATS; }
void end(const char *name) { CALLGRIND_DUMP_STATS_AT(name); CALLGRIND_STOP_INSTRUMENTATION; }
"""
CALIBRATION = "plain Python"
Case = tuple[str, Callable[[], object], int]  # name, what is counted, bytes that it works on


def parse_here() -> None:
    """Have the parser of source code in this process, which is the one that is watched."""
    from array import array

    from refinery.transforms.code import parser_child
    from refinery.transforms.code.languages import LANGUAGES
    from refinery.transforms.code.parser_process import PARSER

    def ask(question: int, language: str, data: bytes, numbers: Any = ()) -> Any:
        found = parser_child.ANSWERS[question](data, LANGUAGES[language], array("q", numbers))
        return None if found is None else array("q", found)

    PARSER.ask = ask  # type: ignore[method-assign] # of this process alone


def cases(folder: Path) -> Iterator[Case]:
    """What is counted, each once everything that it needs is loaded."""
    yield CALIBRATION, count_words, 1
    for text in (WEB, CODE):
        yield from lane_cases(folder, text.format(folder=folder))


def count_words() -> dict[str, int]:
    """A loop over strings and a dictionary, which no change of this project touches."""
    found: dict[str, int] = {}
    for number in range(20_000):
        word = f"w{number % 701}"
        found[word] = found.get(word, 0) + len(word)
    return found


def lane_cases(folder: Path, text: str) -> Iterator[Case]:
    """A recipe's reader, its stages, and what measures and sketches their documents."""
    import yaml

    from refinery.pipelines.recipe.load_recipe import parse_recipe
    from refinery.transforms.core.answers import answer_of
    from refinery.transforms.core.document import Document, RawDocument
    from refinery.transforms.read.plan import plan_sources
    from refinery.transforms.read.sources import read_task

    recipe = parse_recipe(yaml.safe_load(text), folder)
    tasks = list(plan_sources(recipe.sources, 1 << 30))

    def read() -> list[Any]:
        return [record for task in tasks for record in read_task(task, recipe.limits)]

    docs: list[Any] = [record for record in read() if isinstance(record, RawDocument)]
    yield f"{recipe.LANE.name}: read", read, sum(len(doc.content) for doc in docs)
    measured = False
    for phase in ("clean", "shards"):
        for stage, params in recipe.active(phase):
            if stage.judge is None or params is None:
                continue
            resource = (stage.prepare(params),) if stage.prepare else ()
            run = partial(judge_all, stage.judge, docs, resource, params)
            yield f"{recipe.LANE.name}: {stage.name}", run, size_of(docs)
            if stage.name == "heuristics":
                yield from counting_cases(stage, params, docs)
            if isinstance(docs[0], RawDocument):  # later stages get every document, whatever is dropped before them
                made = [answer_of(answer).result for answer in run()]
                made = [each for result in made for each in (result if isinstance(result, list) else [result])]
                if found := [each for each in made if isinstance(each, Document)]:
                    docs = found
        if not measured:
            measured = True
            yield from measuring_cases(recipe, docs)


def judge_all(judge: Any, docs: list[Any], resource: tuple[Any, ...], params: Any) -> list[Any]:
    """The stage's answers; of one that splits, its documents."""
    found = [judge(doc, *resource, params=params) for doc in docs]
    return [each if not isinstance(each, Iterator) else list(each) for each in found]


def counting_cases(stage: Any, params: Any, docs: list[Any]) -> Iterator[Case]:
    """The other countings of Gopher's rules."""
    from typing import get_args

    field = type(params).model_fields.get("counting")
    for counting in get_args(field.annotation) if field else ():
        if counting != params.counting:
            changed = params.model_copy(update={"counting": counting})
            yield f"heuristics, {counting}", partial(judge_all, stage.judge, docs, (), changed), size_of(docs)


def measuring_cases(recipe: Any, docs: list[Any]) -> Iterator[Case]:
    """Signatures and statistics."""
    from refinery.transforms.dedup.signatures import compute_signatures
    from refinery.transforms.statistics.tally import Tally, measured_notes, passing_text

    notes = measured_notes(recipe.notes())
    texts = [doc.text for doc in docs]

    def tally() -> None:
        sums = Tally()
        sums.add_all([passing_text(doc, True) for doc in docs], notes, True)

    yield f"{recipe.LANE.name}: signatures", partial(compute_signatures, texts, recipe.signature), size_of(docs)
    yield f"{recipe.LANE.name}: statistics", tally, size_of(docs)


def size_of(docs: list[Any]) -> int:
    """Bytes of their contents."""
    from refinery.transforms.core.document import content_size

    return sum(map(content_size, docs))


def count_inside(folder: Path, only: str) -> None:
    """In the process that callgrind watches: run the cases, and write their sizes."""
    parse_here()
    switch = ctypes.CDLL(str(folder / "switch.so"))
    sizes = {}
    for name, run, size in cases(folder):
        if only in name or name == CALIBRATION:
            run()  # fills caches and tables
            switch.begin()
            run()
            switch.end(name.encode())
            sizes[name] = size
            print(name, size, file=sys.stderr, flush=True)
    (folder / "sizes.json").write_text(json.dumps(sizes))


def count(folder: Path, only: str) -> dict[str, float]:
    """Case -> instructions per byte."""
    make_inputs(folder)
    (folder / "switch.c").write_text(SWITCH)
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", folder / "switch.so", folder / "switch.c"], check=True)
    command = ["valgrind", "--quiet", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={folder}/out"]
    command += [sys.executable, "-m", "benchmarks.instructions", "--inside", str(folder), "--only", only]
    subprocess.run(command, cwd=ROOT, check=True, env={**os.environ, "PYTHONHASHSEED": "0"})
    sizes = json.loads((folder / "sizes.json").read_text())
    found = {}
    for path in folder.glob("out*"):
        dump = path.read_text(errors="replace")
        name = re.search(r"^desc: Trigger: Client Request: (.*)$", dump, re.MULTILINE)
        if name and name.group(1) in sizes:
            total = re.search(r"^(?:summary|totals): ([0-9]+)$", dump, re.MULTILINE)
            found[name.group(1)] = int(total.group(1)) / sizes[name.group(1)] if total else 0.0
    return {name: found[name] for name in sizes}


def make_inputs(folder: Path) -> None:
    """The demo's pages and files of source code, and a tokenizer that was learned on them."""
    from benchmarks.funnel import train_tokenizer

    sources = folder / "tree" / "transforms"  # in place of this project's own ones, which change
    sources.mkdir(parents=True)
    (sources / "gauge.py").write_text("def read_gauge(path):\n    return float(open(path).read())\n")
    for script, *more in (["demo_crawl.py", "--pages", str(PAGES)], ["demo_code.py", "--tree", f"{folder}/tree"]):
        command = [sys.executable, str(ROOT / "recipes" / script), str(folder), *more]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    good = (folder / "good.jsonl").read_text(encoding="utf-8").splitlines()
    train_tokenizer([json.loads(line)["text"] for line in good], folder / "tokenizer.json")


def compare(found: dict[str, float], before: dict[str, Any]) -> list[str]:
    """Print both, and return a line for each case that fails."""
    known: dict[str, float] = before["instructions"]
    scale = 1.0
    if before["python"] != sys.version:
        scale = found[CALIBRATION] / known[CALIBRATION]
        print(f"another build of Python than the baseline's: counts of that times {scale:.2f}")
    failures = []
    print(f"{'instructions per byte':<40}{'before':>10}{'now':>10}{'ratio':>8}")
    for name, now in found.items():
        if name not in known:
            failures.append(f"{name}: {now:,.1f} instructions per byte; not in {BASELINE.name}, --write puts it there")
            print(f"{name:<40}{'':>10}{now:>10,.1f}")
            continue
        then = known[name] * scale
        print(f"{name:<40}{then:>10,.1f}{now:>10,.1f}{now / then:>8.2f}")
        if now > ALLOWED * then:
            failures.append(f"{name}: {now:,.1f} instructions per byte, {then:,.1f} before: {now / then:.2f} times")
    return failures


def missing() -> str:
    """What keeps this from running here; "" for nothing."""
    for program in ("valgrind", "cc"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    header = subprocess.run(
        ["cc", "-E", "-"], input="#include <valgrind/callgrind.h>\n", text=True, capture_output=True, check=False
    )
    return "valgrind's headers are not installed" if header.returncode else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="make today's counts the baseline")
    parser.add_argument("--only", default="", metavar="PART", help="cases with this part in their name")
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.inside:
        count_inside(args.inside, args.only)
        return
    if reason := missing():
        print(f"make bench-check: NOTHING IS COUNTED: {reason} (Debian: apt-get install valgrind gcc)")
        return
    with TemporaryDirectory() as folder:
        found = count(Path(folder), args.only)
    before: dict[str, Any] = json.loads(BASELINE.read_text())
    failures = compare(found, before)
    if args.write:
        rounded = {name: round(number, 2) for name, number in found.items()}
        kept = before["instructions"] if args.only else {}
        BASELINE.write_text(json.dumps({"python": sys.version, "instructions": {**kept, **rounded}}, indent=1) + "\n")
    elif failures:
        sys.exit("\n".join(failures))


if __name__ == "__main__":
    main()
