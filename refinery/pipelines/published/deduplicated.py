"""What deduplication kept of each source, from which the number of shards follows.

manifest.json of a corpus of texts has it as the section `deduplicated`, so `refinery tokenize` makes the shards that a
run with the tokenizer would have made. The funnel says it, too, until a takedown changes it; the section stays.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from refinery.loader.errors import FormatError
from refinery.loader.format.fields import Fields
from refinery.loader.format.manifest import MANIFEST, Manifest
from refinery.pipelines.recipe.params import parse
from refinery.transforms.write.shuffle import ShardParams, shard_counts

KEY = "deduplicated"  # the section of manifest.json
BEFORE = ("clean", "dedup")  # the phases whose end it describes

Counts = Mapping[str, Mapping[str, int]]  # source or domain -> documents and bytes


def kept_by_source(funnel: Iterable[Mapping[str, Any]], stages: Collection[str]) -> dict[str, dict[str, int]]:
    """Documents and bytes of each source that the last of these stages kept. funnel: rows in order."""
    return {row["source"]: row["kept"] for row in funnel if row["stage"] in stages}


def by_domain(kept: Counts, domains: Mapping[str, str]) -> dict[str, dict[str, int]]:
    """The sums of each domain. domains: source -> domain."""
    totals: dict[str, dict[str, int]] = {}
    for source, counts in kept.items():
        total = totals.setdefault(domains[source], {"documents": 0, "bytes": 0})
        for unit in total:
            total[unit] += counts[unit]
    return totals


def read_deduplicated(manifest: Manifest) -> dict[str, dict[str, int]]:
    """Source -> documents and bytes. Raises FormatError where the manifest does not say it."""
    top = Fields(manifest.further, f"{MANIFEST} of {manifest.name!r:.100}")
    if KEY not in manifest.further:
        raise FormatError(
            f"{top.where}: {KEY} is missing: its texts were written by an older version; run its recipe again"
        )
    section = top.inner(KEY)
    return {
        source: {unit: section.inner(source).count(unit) for unit in ("documents", "bytes")} for source in section.value
    }


def domains_of(recipe: Mapping[str, Any]) -> dict[str, str]:
    """Source -> domain, of a recipe as plain data."""
    return {source["name"]: source.get("domain") or source["name"] for source in recipe["sources"]}


def check_deduplicated(manifest: Manifest) -> Iterator[str]:
    """What is wrong with the section of a corpus of texts: it is what the funnel of the first version says, and the
    shards are as many as follow from it."""
    if not manifest.written.has_texts or KEY not in manifest.further:
        return
    kept = read_deduplicated(manifest)
    stages = {stage.name for stage in manifest.stages if stage.phase in BEFORE}
    expected = kept_by_source(manifest.funnel, stages)
    if not manifest.takedowns and kept != expected:
        yield f"{MANIFEST}: {KEY} is {kept!r:.200}, {expected!r:.200} expected from the funnel"
        return
    domains = domains_of(manifest.recipe)
    if strange := sorted(kept.keys() - domains.keys()):
        yield f"{MANIFEST}: {KEY}: source {strange[0]!r:.80} is not in the recipe"
        return
    counts = shard_counts(by_domain(kept, domains), parse(ShardParams, manifest.recipe["shards"]))
    for shard in manifest.shards:
        count = counts.get(f"{shard.split}/{shard.domain}")
        if count is None and manifest.takedowns:
            continue  # of a domain that had none: a document came back
        if count != shard.count:
            yield (
                f"{MANIFEST}: {shard.split}/{shard.domain} has {shard.count} shards, {count or 0} expected from {KEY}"
            )
            return
