"""How large the job graph of phase 2 is, by the number of documents: bytes of what a runner is sent, and its shuffles.

    python -m benchmarks.scale_graph [--documents 1350000000]

With the published defaults, and with deduplication within sources before that, a pass more. Nothing runs.
"""

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import apache_beam as beam

from refinery.pipelines.recipe import graphs
from refinery.pipelines.recipe.load_recipe import parse_recipe
from refinery.transforms.dedup.deduplicate import list_parts

GROUP = "beam:transform:group_by_key:v1"
RECIPES: dict[str, dict[str, Any]] = {
    "across sources": {},
    "within sources, then across": {"near_dup_in_source": {"*": {"threshold": 0.8}}},
}


def graph_of(sections: dict[str, Any], documents: int, folder: str) -> Any:
    """Phase 2 over so many documents, as a runner gets it."""
    source = {"name": "crawl", "paths": ["gs://raw/*.warc.gz"], "domain": "web"}
    tokenizer = {"path": "gs://raw/tokenizer.json"}
    recipe = parse_recipe({"name": "scale", "sources": [source], "tokenizer": tokenizer, **sections})
    lists = list_parts(folder, [("gs://work/signatures/part-0.parquet", documents)])
    pipeline = beam.Pipeline()
    graphs.dedup(pipeline, recipe, lists, 8192, folder, "dedup/report.json", {})
    return pipeline.to_runner_api()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--documents", type=int, nargs="+", default=[13_500_000, 135_000_000, 1_350_000_000, 13_500_000_000]
    )
    args = parser.parse_args()
    print("| documents | recipe | shuffles | graph |\n| --- | --- | --- | --- |")
    for documents in args.documents:
        for name, sections in RECIPES.items():
            with TemporaryDirectory() as folder:
                graph = graph_of(sections, documents, str(Path(folder)))
            shuffles = sum(step.spec.urn == GROUP for step in graph.components.transforms.values())
            size = len(graph.SerializeToString())
            print(f"| {documents:,} | {name} | {shuffles} | {size / 1000:,.0f} kB |", flush=True)


if __name__ == "__main__":
    main()
