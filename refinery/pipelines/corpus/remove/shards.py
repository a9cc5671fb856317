"""What becomes of every affected shard, from what goes, what comes back, and whose copies went."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from refinery.loader.format.manifest import Manifest
from refinery.loader.format.removals import URL_DUPLICATE
from refinery.loader.storage.store import Store
from refinery.pipelines.corpus.remove.decide import Decision
from refinery.pipelines.corpus.remove.fates import Demoted, Lost, Outcome, Recount, Reinstated
from refinery.pipelines.corpus.remove.rewrite import ShardChange, ShardPlace
from refinery.pipelines.corpus.remove.rows import (
    Removals,
    all_behind,
    counts_of,
    is_head,
    is_own,
    key_of,
    links_behind,
    locate,
    plan_of,
)
from refinery.pipelines.published.placement import Plan
from refinery.transforms.write.shuffle import ShardParams, shard_counts

Changes = dict[str, ShardChange]  # name of a shard -> what becomes of it
BEFORE_SHARDS = ("clean", "dedup")  # phases that decide how many shards there are


def shard_changes(store: Store, manifest: Manifest, decision: Decision, outcome: Outcome) -> Changes:
    """The affected shards. A document that loses or gets copies is rewritten with its new count, and one that comes
    back may belong into a shard that no document was in so far."""
    changes: Changes = {}
    plan = plan_of(manifest)
    counts = shard_counts_after(manifest, plan, outcome)
    entries = {(entry.split, entry.domain, entry.index): entry for entry in manifest.shards}

    def change(split: str, domain: str, index: int) -> ShardChange:
        place = ShardPlace(split, domain, index, counts[split, domain])
        return changes.setdefault(place.name, ShardChange(place, entries.get((split, domain, index))))

    gone = [*decision.gone, *outcome.demoted]
    for row in gone:
        change(row["split"], row["domain"], row["index"]).drop.append(row["row"])
    for fate in outcome.of(Reinstated):
        doc = fate.document
        split, domain = plan.split(doc.id), plan.domains[doc.source]
        change(split, domain, plan.order(doc.id) * counts[split, domain] >> 64).add.append(doc)
    went = {key_of(row) for row in gone}
    recounts = recounted(store, manifest, decision) if outcome.recounts is None else outcome.recounts
    for each in recounts:
        row = each.place
        if key_of(row) not in went:
            change(row["split"], row["domain"], row["index"]).copies[row["id"]] = each.copies, list(each.sources)
    return changes


def shard_counts_after(manifest: Manifest, plan: Plan, outcome: Outcome) -> dict[tuple[str, str], int]:
    """(split, domain) -> how many shards it is cut into: as many as before, and where there was none as many as a run
    gives what its deduplication keeps."""
    before = counts_of(manifest)
    back = [fate.document for fate in outcome.of(Reinstated)]
    if all((plan.split(doc.id), plan.domains[doc.source]) in before for doc in back):
        return before
    kept: dict[str, dict[str, int]] = {}

    def keep(source: str, documents: int, size: int) -> None:
        total = kept.setdefault(plan.domains[source], {"documents": 0, "bytes": 0})
        total["documents"] += documents
        total["bytes"] += size

    phases = {stage.name: stage.phase for stage in manifest.stages}
    rows = [row for row in manifest.funnel if phases.get(row["stage"]) in BEFORE_SHARDS]
    last: Mapping[str, Mapping[str, Any]] = {row["source"]: row["kept"] for row in rows}
    for source, counted in last.items():
        keep(source, counted["documents"], counted["bytes"])
    for fate in outcome.fates:
        if isinstance(fate, Reinstated | Lost | Demoted):
            sign = -1 if isinstance(fate, Demoted) else 1
            keep(fate.row["source"], sign, sign * fate.size)
    made = shard_counts(kept, ShardParams(**manifest.recipe["shards"]))
    after: dict[tuple[str, str], int] = {}
    for place, count in made.items():
        split, _, domain = place.partition("/")
        after[split, domain] = count
    return after | before


def with_new(before: Sequence[Mapping[str, Any]], written: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A manifest's shards in their order, with the new entries of those that were written. One that was not there comes
    to its domain's place, and that of a new domain behind all others, so places in an earlier version stay."""
    new = {_place(shard): dict(shard) for shard in written}
    shards = [new.pop(_place(shard), dict(shard)) for shard in before]
    for place, shard in sorted(new.items()):
        after = [at for at, other in enumerate(shards, 1) if _place(other)[:2] == place[:2] and _place(other) < place]
        first = [at for at, other in enumerate(shards) if _place(other)[:2] == place[:2]]
        shards.insert(after[-1] if after else first[0] if first else len(shards), shard)
    return shards


def _place(shard: Mapping[str, Any]) -> tuple[str, str, int]:
    return shard["split"], shard["domain"], shard["index"]


def recounted(store: Store, manifest: Manifest, decision: Decision) -> Iterator[Recount]:
    """Every document that stays in a shard and of which a copy went, where nothing was compared again."""
    removals = Removals(store, manifest)
    went = {key_of(row) for row in (*decision.deleted, *decision.candidates)}
    heads = _ends(removals, [row["kept_id"] for row in decision.deleted if row["was"] != URL_DUPLICATE])
    roots = heads - decision.gone_ids
    links = links_behind(removals, roots, went)
    for row in locate(store, manifest, roots):
        behind = all_behind(links, row["id"])
        yield Recount(row, 1 + len(behind), tuple(sorted({row["source"], *(other["source"] for other in behind)})))


def _ends(removals: Removals, ids: Iterable[bytes]) -> set[bytes]:
    """Where chains of kept_id lead from these ids, themselves among them."""
    found, frontier = set(ids), set(ids)
    while frontier:
        above = {row["kept_id"] for row in removals.of(frontier) if is_head(row) and is_own(row)}
        frontier = above - found
        found |= above
    return found
