"""The data set's card: README.md with the front matter that Hugging Face's `datasets` and its hub read."""

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from refinery.loader.format.manifest import Manifest

SIZES = (("n<1K", 10**3), ("1K<n<10K", 10**4), ("10K<n<100K", 10**5), ("100K<n<1M", 10**6), ("1M<n<10M", 10**7))
LARGER = (("10M<n<100M", 10**8), ("100M<n<1B", 10**9), ("1B<n<10B", 10**10), ("10B<n<100B", 10**11))
LARGEST = "100B<n<1T"


def size_category(documents: int) -> str:
    """The hub's name for a number of rows."""
    return next((name for name, limit in (*SIZES, *LARGER) if documents < limit), LARGEST)


def configurations(splits: Mapping[str, Sequence[str]]) -> list[dict[str, Any]]:
    """A configuration of all domains, and one for each where there are several. splits: split -> its domains."""
    domains = sorted({domain for names in splits.values() for domain in names})
    whole = [{"split": split, "path": f"data/*/{split}-*.parquet"} for split in sorted(splits)]
    single = [
        {
            "config_name": domain,
            "data_files": [
                {"split": split, "path": f"data/{domain}/{split}-*.parquet"}
                for split in sorted(splits)
                if domain in splits[split]
            ],
        }
        for domain in domains
    ]
    return [
        {"config_name": "default", "default": True, "data_files": whole},
        *(entry for entry in single if len(domains) > 1 and entry["config_name"] != "default"),
    ]


def write_card(manifest: Manifest, fields: Sequence[str], sources: Mapping[str, Mapping[str, int]]) -> bytes:
    """The card of a corpus' export, the same bytes each time. sources: documents, tokens and bytes of each."""
    splits: dict[str, list[str]] = {}
    for shard in manifest.shards:
        if shard.domain not in splits.setdefault(shard.split, []):
            splits[shard.split].append(shard.domain)
    front = {
        "pretty_name": manifest.name,
        "task_categories": ["text-generation"],
        "size_categories": [size_category(manifest.totals["documents"])],
        "configs": configurations(splits),
    }
    totals = manifest.totals
    lines = [
        "---",
        yaml.safe_dump(front, sort_keys=False, allow_unicode=True, width=120).rstrip(),
        "---",
        "",
        f"# {manifest.name}",
        "",
        f"{totals['documents']:,} documents, {totals['bytes']:,} bytes of text, {totals['tokens']:,} tokens. Made by "
        f"Refinery {manifest.versions.get('refinery', '')} from the recipe below; the corpus has the fingerprint "
        f"`{manifest.fingerprint}`. Licence and terms are those of the sources: add them here.",
        "",
        "```python",
        "from datasets import load_dataset",
        "",
        'load_dataset("this-folder", split="train")',
        "```",
        "",
        "## Sources",
        "",
        "| source | documents | tokens | bytes of text |",
        "| --- | --- | --- | --- |",
        *(f"| {n} | {c['documents']:,} | {c['tokens']:,} | {c['bytes']:,} |" for n, c in sorted(sources.items())),
        "",
        "## Fields",
        "",
        *(f"- `{name}`: {DESCRIPTIONS.get(name, 'noted by a stage of the recipe')}" for name in fields),
        "",
        "## From input to corpus",
        "",
        "| stage | source | in | kept | dropped | dead |",
        "| --- | --- | --- | --- | --- | --- |",
        *(_funnel_row(row) for row in manifest.funnel),
        "",
        "## Recipe",
        "",
        "```yaml",
        yaml.safe_dump(_without_paths(manifest.recipe), sort_keys=True, allow_unicode=True, width=120).rstrip(),
        "```",
        "",
    ]
    return "\n".join(lines).encode()


DESCRIPTIONS = {
    "id": "BLAKE2b-128 of the cleaned text, before lines were cut and personal data was replaced",
    "url": "address of the page, as far as the source has one",
    "source": "source of the recipe",
    "domain": "domain that the source belongs to",
    "origin": "input file and offset of the record",
    "copies": "documents that this one stands for, itself included",
    "sources": "sources that these came from",
    "text_bytes": "size of the text in UTF-8",
    "token_count": "tokens of the document in the corpus, with BOS and EOS",
    "meta": "further values, as a JSON object",
    "text": "the text that was encoded",
    "input_ids": "its tokens, with BOS and EOS",
}


def _funnel_row(row: Mapping[str, Any]) -> str:
    dropped = ", ".join(f"{reason} {count['documents']:,}" for reason, count in sorted(row["dropped"].items()))
    dead = sum(count["documents"] for count in row["dead"].values())
    kept = row["kept"]["documents"]
    return f"| {row['stage']} | {row['source']} | {row['in']['documents']:,} | {kept:,} | {dropped} | {dead:,} |"


def _without_paths(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """The recipe without where its inputs were: these are of the machine that ran it, and may be private."""
    sources = [{key: value for key, value in source.items() if key != "paths"} for source in recipe.get("sources", [])]
    return {**recipe, "sources": sources}
