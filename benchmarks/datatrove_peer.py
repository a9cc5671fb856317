"""The funnel as a datatrove pipeline: the peer in `benchmarks/funnel.py`. Needs the extra [bench].

    python benchmarks/datatrove_peer.py --input DIR --work DIR --tokenizer tokenizer.json --lid lid.176.ftz --form split

Three jobs of worker processes, the fewest that its design allows (each MinHash step waits for the previous one to
finish): read, filter and sign; buckets and clusters; read again, drop copies and encode. Blocks and thresholds are
datatrove's own; the intermediate files are not compressed, which is faster. The last line of output is JSON: {"blocks":
[{"job", "name", "seconds", "in", "kept", "dropped"}], "tokens": n}; seconds are summed over processes.

Form `default` takes words and sentences from spaCy, as datatrove does for English. Form `split` hands every block that
takes words a tokenizer of our own, by its parameter `language`: words between spaces, sentences by one expression.
"""

import argparse
import json
import os
import re
from pathlib import Path
from typing import Any

from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.dedup import (
    MinhashConfig,
    MinhashDedupBuckets,
    MinhashDedupCluster,
    MinhashDedupFilter,
    MinhashDedupSignature,
)
from datatrove.pipeline.filters import (
    C4QualityFilter,
    FineWebQualityFilter,
    GopherQualityFilter,
    GopherRepetitionFilter,
    LanguageFilter,
)
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.tokens import DocumentTokenizer
from datatrove.pipeline.writers import JsonlWriter
from datatrove.utils.word_tokenizers import WordTokenizer

EOS = "<|endoftext|>"


class SplitWords(WordTokenizer):  # type: ignore[misc, unused-ignore]
    """Split at spaces. Instances compare equal, so the blocks share datatrove's cache of split texts."""

    sentence_end = re.compile(r"[.!?]+[\"')\]]*(?:\s+|$)")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SplitWords)

    def __hash__(self) -> int:
        return 1

    def word_tokenize(self, text: str) -> list[str]:
        return text.split()

    def sent_tokenize(self, text: str) -> list[str]:
        return [text[a:b] for a, b in self.span_tokenize(text)]

    def span_tokenize(self, text: str) -> list[tuple[int, int]]:
        ends = [match.end() for match in self.sentence_end.finditer(text)]
        if not ends or ends[-1] < len(text):
            ends.append(len(text))
        return list(zip([0, *ends[:-1]], ends, strict=True))


def build(args: argparse.Namespace) -> dict[str, LocalPipelineExecutor]:
    """The jobs in order, by name."""
    words: Any = SplitWords() if args.form == "split" else "en"
    work = args.work
    minhash = MinhashConfig(n_grams=5, num_buckets=14, hashes_per_bucket=8)
    language = LanguageFilter("en", language_threshold=0.65)
    language.model.MODEL_URL = f"file://{args.lid.resolve()}"  # otherwise it downloads lid.176.bin
    tasks = len(list(args.input.glob("*.jsonl.gz")))

    def job(name: str, pipeline: list[Any], tasks: int) -> LocalPipelineExecutor:
        return LocalPipelineExecutor(
            pipeline, tasks=tasks, workers=min(args.workers, tasks), logging_dir=str(work / "logs" / name)
        )

    return {
        "filter": job(
            "filter",
            [
                JsonlReader(str(args.input), glob_pattern="*.jsonl.gz"),
                language,
                GopherRepetitionFilter(language=words),
                GopherQualityFilter(language=words),
                C4QualityFilter(language=words),
                FineWebQualityFilter(language=words),
                JsonlWriter(str(work / "filtered"), output_filename="${rank}.jsonl", compression=None),
                MinhashDedupSignature(str(work / "signatures"), minhash, language=words),
            ],
            tasks,
        ),
        "buckets": job(
            "buckets", [MinhashDedupBuckets(str(work / "signatures"), str(work / "buckets"), config=minhash)], 14
        ),
        "cluster": job("cluster", [MinhashDedupCluster(str(work / "buckets"), str(work / "remove"), minhash)], 1),
        "encode": job(
            "encode",
            [
                JsonlReader(str(work / "filtered"), compression=None),
                MinhashDedupFilter(str(work / "remove")),
                DocumentTokenizer(str(work / "tokens"), str(args.tokenizer), eos_token=EOS, seed=1),
            ],
            tasks,
        ),
    }


def block_name(title: str) -> str:
    """ "READER: <picture> Jsonl" -> "Jsonl reader"; other names lose their kind; emoji are removed from all."""
    kind, _, name = title.rpartition(": ")
    kind, name = (re.sub(r"^\W+", "", part) for part in (kind.split(" - ")[-1], name))
    return f"{name} {kind.lower()}" if name in ("Jsonl", "Writer") else name


def describe(job: str, stats: Any) -> list[dict[str, Any]]:
    """One entry per block of a finished job."""
    found: list[dict[str, Any]] = []
    for block in stats.stats:
        counts = {name: round(metric.total) for name, metric in block.stats.items()}
        found.append(
            {
                "job": job,
                "name": block_name(block.name),
                "seconds": round(block.time_stats.total, 3),
                "in": counts.get("total", counts.get("documents", 0)),
                "kept": counts.get("forwarded", 0),
                "dropped": {
                    name.removeprefix("dropped_"): n
                    for name, n in sorted(counts.items())
                    if name.startswith("dropped_")
                },
                "tokens": counts.get("tokens", 0),
            }
        )
    signing = next((entry for entry in found if entry["name"] == "MinHash stage 1"), None)
    if signing:  # the one block whose time includes waiting for the blocks before it
        signing["seconds"] = round(signing["seconds"] - sum(e["seconds"] for e in found if e is not signing), 3)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--input", type=Path, required=True, help="folder of *.jsonl.gz, at least one per worker")
    parser.add_argument("--work", type=Path, required=True, help="an empty folder")
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--lid", type=Path, required=True, help="fastText's lid.176.ftz")
    parser.add_argument("--form", choices=["default", "split"], default="default")
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # parallelism is by processes, as in ours
    blocks = [entry for name, job in build(args).items() for entry in describe(name, job.run())]
    print(json.dumps({"blocks": blocks, "tokens": sum(block["tokens"] for block in blocks)}))


if __name__ == "__main__":
    main()
