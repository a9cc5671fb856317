"""One step by another program: the peers in `benchmarks/steps.py`. Each needs its own packages, of its own Python.

    python benchmarks/steps_peer.py PROGRAM --input DIR --work DIR [--workers 2] [--lid lid.176.ftz]

--input is a folder of .jsonl.gz files whose rows have `id` and `text`; what stays is
written under --work/out as JSON Lines with the same fields (text-dedup: an Arrow data set). Settings are those of the
step beside it, where the program has them; everything else is its own default.
"""

import argparse
import gzip
import importlib.util
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

THRESHOLD, WORDS, PERMUTATIONS, BANDS = 0.8, 5, 128, 14


def rows(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            yield from map(json.loads, lines)


def datatrove(args: argparse.Namespace, blocks: Callable[[], list[Any]]) -> None:
    """A datatrove job: read, the blocks, write."""
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.readers import JsonlReader
    from datatrove.pipeline.writers import JsonlWriter

    reader = JsonlReader(str(args.input), glob_pattern="*.jsonl.gz")
    tasks = len(list(args.input.glob("*.jsonl.gz")))
    writer = JsonlWriter(str(args.work / "out"), output_filename="${rank}.jsonl.gz")
    job = LocalPipelineExecutor(
        [reader, *blocks(), writer], tasks=tasks, workers=min(args.workers, tasks), logging_dir=str(args.work / "logs")
    )
    job.run()


def datatrove_filter(args: argparse.Namespace) -> None:
    from datatrove.pipeline.filters import (
        C4QualityFilter,
        FineWebQualityFilter,
        GopherQualityFilter,
        GopherRepetitionFilter,
    )
    from datatrove_peer import SplitWords

    def blocks() -> list[Any]:
        words: Any = SplitWords()
        kinds = (GopherRepetitionFilter, GopherQualityFilter, C4QualityFilter, FineWebQualityFilter)
        return [kind(language=words) for kind in kinds]

    datatrove(args, blocks)


def datatrove_language(args: argparse.Namespace) -> None:
    from datatrove.pipeline.filters import LanguageFilter

    language = LanguageFilter(None, label_only=True)
    language.model.MODEL_URL = f"file://{args.lid.resolve()}"  # otherwise it downloads lid.176.bin
    datatrove(args, lambda: [language])


def datatrove_redact(args: argparse.Namespace) -> None:
    from datatrove.pipeline.formatters import PIIFormatter

    datatrove(args, lambda: [PIIFormatter()])


def datatrove_near(args: argparse.Namespace) -> None:
    """MinHash in its four steps, with its own 14 bands of 8 rows, which stand for a similarity of some .72 to .8."""
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.dedup import (
        MinhashConfig,
        MinhashDedupBuckets,
        MinhashDedupCluster,
        MinhashDedupFilter,
        MinhashDedupSignature,
    )
    from datatrove.pipeline.readers import JsonlReader
    from datatrove_peer import SplitWords

    words: Any = SplitWords()
    config = MinhashConfig(n_grams=WORDS, num_buckets=BANDS, hashes_per_bucket=8)
    work = args.work
    tasks = len(list(args.input.glob("*.jsonl.gz")))

    def reader() -> Any:
        return JsonlReader(str(args.input), glob_pattern="*.jsonl.gz")

    def run(name: str, pipeline: list[Any], tasks: int) -> None:
        workers = min(args.workers, tasks)
        LocalPipelineExecutor(pipeline, tasks=tasks, workers=workers, logging_dir=str(work / "logs" / name)).run()

    signatures, buckets, removed = (str(work / name) for name in ("signatures", "buckets", "remove"))
    run("sign", [reader(), MinhashDedupSignature(signatures, config, language=words)], tasks)
    run("buckets", [MinhashDedupBuckets(signatures, buckets, config=config)], BANDS)
    run("cluster", [MinhashDedupCluster(buckets, removed, config)], 1)
    datatrove(args, lambda: [MinhashDedupFilter(removed)])


def rensa_near(args: argparse.Namespace) -> None:
    """rensa's deduplicator: a document goes whose sketch is like that of one before it."""
    from rensa import RMinHash, RMinHashDeduplicator

    kept = RMinHashDeduplicator(THRESHOLD, PERMUTATIONS, True)

    def new(row: dict[str, Any]) -> bool:
        sketch = RMinHash(num_perm=PERMUTATIONS, seed=42)
        sketch.update(shingles_of(row["text"]))
        return bool(kept.add(row["id"], sketch))

    write(args, filter(new, rows(args.input)))


def text_dedup_near(args: argparse.Namespace) -> None:
    """text-dedup's MinHash command, with its faster hash: 250 permutations, bands of its own choice."""
    from text_dedup.minhash import main as minhash

    sys.argv = ["minhash", "--path", "json", "--data_files", str(args.input / "*.jsonl.gz"), "--split", "train"]
    sys.argv += ["--cache_dir", str(args.work / "cache"), "--output", str(args.work / "out"), "--column", "text"]
    sys.argv += ["--threshold", str(THRESHOLD), "--ngram", str(WORDS), "--hash_func", "xxh3"]
    sys.argv += ["--num_proc", str(args.workers)]
    minhash()


def extension(package: str) -> Any:
    """The compiled module of a package by the same name, without the package, whose taggers want models."""
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        sys.exit(f"{package} is not installed here")
    path = next(Path(found.submodule_search_locations[0]).glob(f"{package}.*.so"))
    spec = importlib.util.spec_from_file_location(f"{package}.{package}", path)
    if spec is None or spec.loader is None:
        sys.exit(f"{path} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def dolma_exact(args: argparse.Namespace) -> None:
    """Dolma's toolkit: a Bloom filter over whole texts writes attributes, its mixer leaves out what they mark."""
    rust = extension("dolma")
    documents = args.work / "documents"
    documents.mkdir()
    for path in args.input.glob("*.jsonl.gz"):
        (documents / path.name).symlink_to(path.resolve())
    (args.work / "out").mkdir()
    count = sum(1 for _ in rows(args.input)) if not args.documents else args.documents
    mark = {"name": "copies", "documents": {"attribute_name": "copy", "key": "$.text"}, "skip_empty": True}
    work = {"input": str(args.work / "in"), "output": str(args.work / "made")}
    for folder in work.values():
        Path(folder).mkdir()
    bloom = {"file": str(args.work / "bloom"), "size_in_bytes": 0, "read_only": False}
    bloom |= {"estimated_doc_count": count, "desired_false_positive_rate": 1e-6}
    plain = {"input": None, "output": None}
    common = {"work_dir": work, "processes": args.workers, "dryrun": False}
    found = {"documents": [str(documents / "*.jsonl.gz")], "dedupe": mark, "bloom_filter": bloom, "compression": plain}
    rust.deduper_entrypoint(json.dumps({**found, **common, "is_s3_volume": False}))
    stream: dict[str, Any] = {"name": "kept", "documents": [str(documents / "*.jsonl.gz")], "attributes": ["copies"]}
    stream["output"] = {"path": str(args.work / "out"), "max_size_in_bytes": 2**40, "discard_fields": ["attributes"]}
    stream["filter"] = {"include": [], "exclude": ["$.attributes[?(@.copy[0])]"], "syntax": "jsonpath"}
    rust.mixer_entrypoint(json.dumps({"streams": [{**stream, "compression": plain}], **common}))


def shingles_of(text: str) -> list[str]:
    words = text.split()
    return [" ".join(words[i : i + WORDS]) for i in range(len(words) - WORDS + 1)] or words


def write(args: argparse.Namespace, kept: Iterator[dict[str, Any]]) -> None:
    out = args.work / "out"
    out.mkdir(parents=True)
    with gzip.open(out / "kept.jsonl.gz", "wt", encoding="utf-8", compresslevel=6) as lines:
        lines.writelines(json.dumps(row) + "\n" for row in kept)


PROGRAMS: dict[str, Callable[[argparse.Namespace], None]] = {
    "datatrove-filter": datatrove_filter,
    "datatrove-language": datatrove_language,
    "datatrove-redact": datatrove_redact,
    "datatrove-near": datatrove_near,
    "rensa-near": rensa_near,
    "text-dedup-near": text_dedup_near,
    "dolma-exact": dolma_exact,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", choices=PROGRAMS)
    parser.add_argument("--input", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True, help="a new folder")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--documents", type=int, default=0, help="how many rows there are, for a Bloom filter's size")
    parser.add_argument("--lid", type=Path, help="lid.176.ftz")
    args = parser.parse_args()
    args.work.mkdir(parents=True)
    PROGRAMS[args.program](args)


if __name__ == "__main__":
    main()
