"""What becomes of every affected shard, from what goes, what comes back, and whose copies went."""

from collections.abc import Iterable

from refinery.loader.format.manifest import Manifest
from refinery.loader.storage.store import Store
from refinery.pipelines.takedown.decide import Decision
from refinery.pipelines.takedown.reinstate import Fate, Moved, Reinstated
from refinery.pipelines.takedown.rewrite import ShardChange
from refinery.pipelines.takedown.rows import Key, Removals, Row, is_head, is_own, key_of, locate, plan_of, shard_of

Changes = dict[str, ShardChange]  # path of a shard's .bin -> what becomes of it


def shard_changes(store: Store, manifest: Manifest, decision: Decision, fates: Iterable[Fate]) -> Changes:
    """The affected shards. A document that loses or gets copies is written anew with its new count."""
    changes: Changes = {}
    entries = {(entry.split, entry.domain, entry.index): entry.bin.path for entry in manifest.shards}

    def change(row: Row) -> ShardChange:
        return changes.setdefault(entries[row["split"], row["domain"], row["index"]], ShardChange())

    for row in decision.gone:
        change(row).drop.append(row["row"])
    fates = list(fates)
    plan = plan_of(manifest)
    shards = shard_of(manifest, plan)
    for fate in fates:
        if isinstance(fate, Reinstated):
            doc = fate.document
            members = shards[plan.split(doc.id), plan.domains[doc.source]]
            path = members[plan.order(doc.id) * len(members) >> 64].bin.path
            changes.setdefault(path, ShardChange()).add.append(doc)
    gone = {key_of(row) for row in decision.gone}
    for row, copies, sources in recounted(store, manifest, decision, fates):
        if key_of(row) not in gone:
            change(row).copies[row["id"]] = copies, sources
    return changes


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
