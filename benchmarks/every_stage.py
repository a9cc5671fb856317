"""Where the time goes when every judging stage is on: pages to shuffled tokens, process-seconds a stage.

    python -m benchmarks.every_stage --pages pages.warc.gz html.jsonl.zst --prose docs.jsonl.gz --items items.jsonl

--pages: WARC files, or JSON lines with a field html. --prose: JSON lines with a field text, to train the tokenizer, a
language model and a classifier (not timed; the classifier's bad texts are the same words in another order). --items: a
benchmark as a recipe takes it. The recipe is recipes/web.yaml with every stage on that it leaves off, so thresholds
are the published ones, except the classifier's, which is so low that later stages have something to do.

First table: process-seconds of a stage, summed over the workers; MB are those of text (of HTML for read and extract)
that entered it. Stages without documents of their own (signatures, write-documents) have no speed. These are seconds by
the clock: what else runs on the machine counts, too. Second table: each judging stage alone in one process, on all
documents that phase 1 kept, in seconds of that process; the second of two passes, and what the stage prepares before.
"""

import argparse
import gzip
import json
import os
import random
import shutil
import sys
import time
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import yaml

from benchmarks.funnel import EOS, ROOT, timed, train_tokenizer
from refinery.pipelines.recipe.load_recipe import load_recipe
from refinery.pipelines.recipe.recipe import find_lane
from refinery.pipelines.training.train_perplexity import TrainPerplexityParams, train_perplexity
from refinery.pipelines.training.train_quality import TrainQualityParams, train_quality
from refinery.transforms.core.document import Document, text_bytes

MARKER = ".every-stage-benchmark"  # only a folder with this file in it is ever removed
TEXTS, LONGEST = 3_000, 4_000  # for training


@dataclass
class Row:
    """A stage's sums. seconds: of processes; size: bytes that entered it."""

    seconds: float = 0.0
    entered: int = 0
    kept: int = 0
    size: int = 0


def train(work: Path, prose: Path) -> None:
    """Tokenizer, language model and classifier in `work`."""
    with gzip.open(prose, "rt", encoding="utf-8") as lines:
        texts = [json.loads(line)["text"][:LONGEST] for line in islice(lines, TEXTS)]
    train_tokenizer(texts, work / "tokenizer.json")
    train_perplexity(texts, str(work / "en.ngrams"), TrainPerplexityParams())
    chance = random.Random(1)
    shuffled = [" ".join(chance.sample(words := text.split(), len(words))) for text in texts]
    train_quality(texts, shuffled, str(work / "quality.bin"), TrainQualityParams())


def recipe(args: argparse.Namespace) -> dict[str, Any]:
    """recipes/web.yaml on these pages, with nothing off."""
    chosen: dict[str, Any] = yaml.safe_load((ROOT / "recipes" / "web.yaml").read_text())
    chosen["sources"] = [
        {"name": f"pages-{number}", "paths": [str(path.resolve())]}
        | ({"text_field": "html", "content": "html"} if ".json" in path.name else {"format": "warc"})
        for number, path in enumerate(args.pages)
    ]
    chosen |= {
        "name": "every-stage",
        "url_dup": {},
        "near_dup_in_source": {"*": {}},
        "line_dup": {},
        "substring_dup": {},
        "perplexity": {"models": {"en": str(args.work / "en.ngrams")}, "keep": ["head", "middle", "tail"]},
        "quality": {"model": str(args.work / "quality.bin"), "threshold": 0.001},
        "decontaminate": {"benchmarks": [{"path": str(args.items.resolve())}]},
        "tokenizer": {"path": str(args.work / "tokenizer.json"), "eos": EOS},
        "failures": {"allow_empty": True},
    }
    return chosen


def read_rows(output: Path) -> dict[str, Row]:
    """Stage -> its sums, in the order of the funnel; what has seconds alone last."""
    rows = {name: Row() for name in find_lane("web").funnel}
    for phase in ("clean", "dedup", "shards"):
        report = json.loads((output / "work" / f"{phase}.json").read_bytes())
        for name, seconds in report["seconds"].items():
            rows.setdefault(name, Row()).seconds += seconds
        for counter in report["counters"]:
            row = rows.setdefault(counter["stage"], Row())
            if counter["outcome"] == "in":
                row.entered += counter["documents"]
                row.size += counter["bytes"]
            elif counter["outcome"] == "kept":
                row.kept += counter["documents"]
    return {name: row for name, row in rows.items() if row.seconds or row.entered}


def kept_documents(output: Path) -> list[Document]:
    """What phase 1 kept."""
    rows = [row for path in (output / "work/documents").glob("*.parquet") for row in pq.read_table(path).to_pylist()]
    return [Document(**row | {"meta": json.loads(row["meta"])}) for row in rows]


def print_alone(recipe_path: Path, docs: list[Document]) -> None:
    """The second table."""
    recipe, size = load_recipe(str(recipe_path)), sum(text_bytes(doc.text) for doc in docs) / 1e6
    print(f"\n{len(docs):,} documents, {size:.1f} MB\n")
    print("| stage | prepare, s | seconds | MB/s |\n| --- | --- | --- | --- |")
    for stage, params in (*recipe.active("clean"), *recipe.active("shards")):
        if stage.judge is None or stage.name in ("read", "extract"):
            continue
        start = time.process_time()
        prepared = [stage.prepare(params)] if stage.prepare else []
        times = [time.process_time() - start]
        for _ in range(2):
            start = time.process_time()
            for doc in docs:
                stage.judge(doc, *prepared, params=params)
            times.append(time.process_time() - start)
        print(f"| {stage.name} | {times[0]:.2f} | {times[2]:.2f} | {size / times[2]:,.0f} |")


def print_rows(rows: dict[str, Row], wall: float, memory: int) -> None:
    total = sum(row.seconds for row in rows.values())
    print(f"{wall:.1f} s, {total:.1f} process-seconds of stages, peak memory {memory / 1e9:.1f} GB\n")
    print("| stage | process-seconds | share | documents in | kept | MB in | MB/s |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, row in rows.items():
        speed = f"{row.size / 1e6 / row.seconds:,.0f}" if row.seconds and row.size else ""
        counts = (f"{row.entered:,}", f"{row.kept:,}", f"{row.size / 1e6:,.1f}") if row.entered else ("", "", "")
        print(f"| {name} | {row.seconds:.2f} | {row.seconds / total:.1%} | {' | '.join(counts)} | {speed} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=Path, nargs="+", required=True)
    parser.add_argument("--prose", type=Path, required=True)
    parser.add_argument("--items", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--work", type=Path, default=Path("out/bench-every-stage"), help="a folder that is replaced")
    args = parser.parse_args()
    args.work = args.work.resolve()
    if args.work.exists() and not (args.work / MARKER).exists() and any(args.work.iterdir()):
        parser.error(f"--work: {args.work} given, a new or empty folder, or one of an earlier run, is allowed")
    shutil.rmtree(args.work, ignore_errors=True)
    args.work.mkdir(parents=True)
    (args.work / MARKER).touch()
    train(args.work, args.prose)
    (args.work / "recipe.yaml").write_text(json.dumps(recipe(args), indent=1))  # JSON is YAML
    output = args.work / "corpus"
    command = [sys.executable, "-m", "refinery", "refine", str(args.work / "recipe.yaml"), "--output", str(output)]
    wall, memory = timed([*command, "--workers", str(args.workers)], args.work / "log", dict(os.environ))
    print_rows(read_rows(output), wall, memory)
    print_alone(args.work / "recipe.yaml", kept_documents(output))


if __name__ == "__main__":
    main()
