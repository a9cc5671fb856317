"""What becomes of every affected shard, from what goes, what comes back, and whose copies went."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from refinery.loader.format.manifest import Manifest
from refinery.loader.storage.store import Store
from refinery.pipelines.checks.placement import Plan
from refinery.pipelines.takedown.decide import Decision
from refinery.pipelines.takedown.reinstate import Fate, Lost, Moved, Reinstated
from refinery.pipelines.takedown.rewrite import ShardChange, ShardPlace
from refinery.pipelines.takedown.rows import Key, Removals, Row, counts_of, is_head, is_own, key_of, locate, plan_of
from refinery.transforms.write.shuffle import ShardParams, shard_counts

Changes = dict[str, ShardChange]  # path of a shard's .bin -> what becomes of it
BEFORE_SHARDS = ("clean", "dedup")  # phases that decide how many shards there are


def shard_changes(store: Store, manifest: Manifest, decision: Decision, fates: Iterable[Fate]) -> Changes:
    """The affected shards. A document that loses or gets copies is written anew with its new count, and one that comes
    back may belong into a shard that no document was in so far."""
    changes: Changes = {}
    fates = list(fates)
    plan = plan_of(manifest)
    counts = shard_counts_after(manifest, plan, fates)
    entries = {(entry.split, entry.domain, entry.index): entry for entry in manifest.shards}

    def change(split: str, domain: str, index: int) -> ShardChange:
        place = ShardPlace(split, domain, index, counts[split, domain])
        return changes.setdefault(place.path, ShardChange(place, entries.get((split, domain, index))))

    for row in decision.gone:
        change(row["split"], row["domain"], row["index"]).drop.append(row["row"])
    for fate in fates:
        if isinstance(fate, Reinstated):
            doc = fate.document
            split, domain = plan.split(doc.id), plan.domains[doc.source]
            change(split, domain, plan.order(doc.id) * counts[split, domain] >> 64).add.append(doc)
    gone = {key_of(row) for row in decision.gone}
    for row, copies, sources in recounted(store, manifest, decision, fates):
        if key_of(row) not in gone:
            change(row["split"], row["domain"], row["index"]).copies[row["id"]] = copies, sources
    return changes


def shard_counts_after(manifest: Manifest, plan: Plan, fates: Iterable[Fate]) -> dict[tuple[str, str], int]:
    """(split, domain) -> how many shards it is cut into: as many as before, and where there was none as many as a run
    gives what its deduplication keeps."""
    before = counts_of(manifest)
    revived = [fate for fate in fates if isinstance(fate, Reinstated | Lost)]
    back = [fate.document for fate in revived if isinstance(fate, Reinstated)]
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
    for fate in revived:
        keep(fate.row["source"], 1, fate.size)
    made = shard_counts(kept, ShardParams(**manifest.recipe["shards"]))
    after: dict[tuple[str, str], int] = {}
    for place, count in made.items():
        split, _, domain = place.partition("/")
        after[split, domain] = count
    return after | before


def with_new(before: Sequence[Mapping[str, Any]], written: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A manifest's shards in their order, with the new entries of those that were written. One that was not there comes
    to its domain's place, and that of a new domain behind all others, so that places in an earlier version stay."""
    new = {_place(shard): dict(shard) for shard in written}
    shards = [new.pop(_place(shard), dict(shard)) for shard in before]
    for place, shard in sorted(new.items()):
        after = [at for at, other in enumerate(shards, 1) if _place(other)[:2] == place[:2] and _place(other) < place]
        first = [at for at, other in enumerate(shards) if _place(other)[:2] == place[:2]]
        shards.insert(after[-1] if after else first[0] if first else len(shards), shard)
    return shards


def _place(shard: Mapping[str, Any]) -> tuple[str, str, int]:
    return shard["split"], shard["domain"], shard["index"]


def recounted(
    store: Store, manifest: Manifest, decision: Decision, fates: Iterable[Fate]
) -> Iterable[tuple[Row, int, list[str]]]:
    """(its place, how many documents it stands for, their sources) of every document that stays in a shard and of
    which a copy went, or that got one."""
    removals = Removals(store, manifest)
    went = {key_of(row) for row in (*decision.deleted, *decision.candidates)}
    got: dict[bytes, list[Row]] = {}
    for fate in fates:
        if isinstance(fate, Moved) and fate.behind:
            got.setdefault(fate.behind, []).append(fate.row)
    heads = _ends(removals, [row["kept_id"] for row in decision.deleted if row["was"] != "url-duplicate"])
    roots = (heads | set(got)) - decision.gone_ids
    links = _links(removals, roots, went)
    for row in locate(store, manifest, roots):
        behind = _all_behind(links, row["id"]) + got.get(row["id"], [])
        sources = {row["source"], *(other["source"] for other in behind)}
        yield row, 1 + len(behind), sorted(sources)


def _ends(removals: Removals, ids: Iterable[bytes]) -> set[bytes]:
    """Where chains of kept_id lead from these ids, themselves among them."""
    found, frontier = set(ids), set(ids)
    while frontier:
        above = {row["kept_id"] for row in removals.of(frontier) if is_head(row) and is_own(row)}
        frontier = above - found
        found |= above
    return found


def _links(removals: Removals, roots: set[bytes], went: set[Key]) -> dict[bytes, list[Row]]:
    """kept_id -> the documents that stay removed in favour of it, for these ids and all that are behind them."""
    links: dict[bytes, list[Row]] = {}
    seen, frontier = set(roots), set(roots)
    while frontier:
        rows = [row for row in removals.behind(frontier) if is_own(row) and key_of(row) not in went]
        for row in rows:
            links.setdefault(row["kept_id"], []).append(row)
        frontier = {row["id"] for row in rows if is_head(row)} - seen
        seen |= frontier
    return links


def _all_behind(links: dict[bytes, list[Row]], id_: bytes) -> list[Row]:
    """The documents that a document stands for, directly or by another one."""
    found: list[Row] = []
    todo = [id_]
    while todo:
        rows = links.get(todo.pop(), [])
        found += rows
        todo += [row["id"] for row in rows if is_head(row)]
    return found
