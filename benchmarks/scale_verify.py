"""What `refinery verify` holds and takes beside reading a corpus, at a size that no test has: joining, and judging.

    python -m benchmarks.scale_verify [--shards 100000] [--documents 900000000] [--partitions 2]

Joining: of so many documents' rows those of some partitions are made, spread over as many runs as a job's shares would
leave, and joined in a process of its own. Judging: the manifest of so many shards, and the partial results of all
shares, are made in a temporary folder; a process does what the launcher of a job does, except for the job itself.
"""

import argparse
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.scale_manifest import made_payload
from refinery.loader.format.publish_manifest import make_manifest
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.corpus.verify.corpus import open_corpus
from refinery.pipelines.corpus.verify.keyed_rows import PARTITION_ROWS, RunWriter, partitions_for, table_rows
from refinery.pipelines.corpus.verify.partials import Share, write_partial
from refinery.pipelines.corpus.verify.pieces import FILE, SHARD, Finding, Piece, Question
from refinery.pipelines.corpus.verify.processes import TASK_DOCUMENTS
from refinery.pipelines.corpus.verify.verify_job import shares_for
from refinery.transforms.tokenize.load_tokenizer import load_tokenizer

COST = """
def cost():
    return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) // 1024
"""
JOIN = f"""
import re, sys, time
from pathlib import Path
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import size_and_crc32c
from refinery.pipelines.corpus.verify.joins import join_partitions
from refinery.pipelines.corpus.verify.keyed_rows import Run, Tables
{COST}
folder, partitions = Path(sys.argv[1]), int(sys.argv[2])
runs = [Run(path.name.split("-")[1], path.name, path.stat().st_size, "") for path in sorted(folder.glob("*.rows"))]
before, used = cost(), time.process_time()
found, edges = join_partitions(Tables(open_store(str(folder)), partitions, runs), range(partitions), folder)
print(time.process_time() - used, before, cost(), len(runs), found["ids"][0])
"""
JUDGE = f"""
import re, sys, time
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.corpus.verify.corpus import open_corpus
from refinery.pipelines.corpus.verify.joins import join_partitions
from refinery.pipelines.corpus.verify.partials import read_partials
from refinery.pipelines.corpus.verify.pieces import Question
from refinery.pipelines.corpus.verify.verify_job import share_tasks, shares_for
from refinery.pipelines.corpus.verify.whole import Report, Whole
from refinery.transforms.tokenize.load_tokenizer import load_tokenizer
{COST}
prefix, partials = sys.argv[1:]
before, used = cost(), time.process_time()
checked = open_corpus(Question(prefix, 8, load_tokenizer))
corpus, pieces, asked = checked.corpus, checked.pieces, checked.identity
tasks = share_tasks(pieces, shares_for(pieces))
planned = time.process_time() - used
findings, runs = read_partials(open_store(partials), asked, pieces, "``")
nothing = dict.fromkeys(("ids", "addresses", "unknown", "twice", "both", "left", "cycles"), (0, None))
failures = list(Whole(corpus.store, corpus.manifest, pieces, findings, nothing, None).judge(Report(prefix)))
largest = max(map(len, tasks))
print(planned, time.process_time() - used, before, cost(), len(pieces), len(tasks), largest, len(failures))
"""


def asked(program: str, *words: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", program, *words], check=True, capture_output=True, text=True)
    return done.stdout.split()


def join(folder: Path, documents: int, partitions: int) -> None:
    """Make the rows of `partitions` of all partitions, and join them."""
    every, shares = partitions_for(documents), -(-documents // TASK_DOCUMENTS)
    rows, chance = partitions * documents // every, np.random.default_rng(1)
    for share in range(shares):
        many = rows * (share + 1) // shares - rows * share // shares
        writer = RunWriter(folder, f"{share:05d}", partitions)
        keys = chance.bytes(16 * many)
        writer.add("ids", table_rows("ids", key=np.frombuffer(keys, "S16"), shard=share, row=np.arange(many)))
        writer.flush()
    used, before, peak, runs, found = asked(JOIN, str(folder), str(partitions))
    print(
        f"joining {rows:,} rows of {partitions} of {every} partitions from {runs} runs: {float(used):.1f} s of CPU, "
        f"{float(used) / rows * documents / 3600:.2f} h for all; {peak} MB, {before} of them before ({found} found; "
        f"{PARTITION_ROWS:,} rows at once at most)",
        flush=True,
    )


def facts_of(piece: Piece, shards: Any) -> dict[str, Any]:
    """What a piece of a sound corpus leaves."""
    if piece.kind == SHARD:
        shard = shards[piece.number]
        counts = {"documents": shard.documents, "tokens": shard.tokens, "decoded": 8, "text_bytes": 4 * shard.tokens}
        return {"has_ids": True, **counts, "sources": {"crawl": shard.tokens}}
    if piece.kind == FILE:
        rows = [["near-duplicate", "crawl", 10**6]]
        return {"ends": False, "rows": 10**6, "faults": [], "counts": rows, "first": None, "last": None}
    return {}


def judge(folder: Path, shards: int) -> None:
    """Make what shares leave, and judge it."""
    prefix, partials = folder / "corpus", open_store(str(folder / "partials"))
    make_manifest(made_payload(shards, 8, 18)).publish(open_store(str(prefix)))
    checked = open_corpus(Question(str(prefix), 8, load_tokenizer))
    pieces, entries = checked.pieces, list(checked.corpus.manifest.shards)
    every, count = checked.identity, shares_for(pieces)
    for number in range(count):
        share = Share(number, count)
        findings = [Finding(facts=facts_of(piece, entries)) for piece in share.of(pieces)]
        write_partial(partials, share, every, findings, [], folder)
    planned, used, before, peak, many, tasks, largest, failures = asked(JUDGE, str(prefix), str(folder / "partials"))
    print(
        f"judging {shards:,} shards ({many} pieces in {tasks} shares, of {int(largest):,} bytes each in their list): "
        f"{float(planned):.1f} s of CPU before the job, {float(used) - float(planned):.1f} s after it; {peak} MB, "
        f"{before} of them before ({failures} failures, of what was not made)",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shards", type=int, default=100_000)
    parser.add_argument("--documents", type=int, default=900_000_000)
    parser.add_argument("--partitions", type=int, default=2, help="that are made and joined")
    args = parser.parse_args()
    with TemporaryDirectory() as folder:
        join(Path(folder), args.documents, args.partitions)
    with TemporaryDirectory() as folder:
        judge(Path(folder), args.shards)


if __name__ == "__main__":
    main()
