"""Which documents go, and which come into question to take their place.

A document that is asked for may be in a shard, or in removals/: then another one, which deduplication had kept, stands
for it in the corpus, and has the same text or nearly. With copies "remove" that one goes, too, and so does every
document of the very text of one that was asked for. With "keep" what was asked for goes by itself.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa

from refinery.loader.format.manifest import Manifest
from refinery.loader.format.removals import REFERENCE
from refinery.loader.format.takedown import COPY, NOWHERE
from refinery.loader.storage.store import Store
from refinery.pipelines.corpus.remove.rows import Key, Removals, Row, is_head, is_own, key_of, locate

COPIES = ("remove", "keep")
ELSEWHERE = {"split": "", "domain": "", "index": NOWHERE, "row": NOWHERE, "token_offset": NOWHERE}


@dataclass
class Decision:
    """gone: documents of the shards that go. deleted: rows of removals/ that go. candidates: rows of removals/ whose
    survivor went, and that nobody asked for. Rows of the first two have `was`, `why` and `request`."""

    gone: list[Row] = field(default_factory=list)
    deleted: list[Row] = field(default_factory=list)
    candidates: list[Row] = field(default_factory=list)

    @property
    def gone_ids(self) -> set[bytes]:
        return {row["id"] for row in self.gone}


def decide(store: Store, manifest: Manifest, found: pa.Table, copies: str) -> Decision:
    """What goes, from what was found (FOUND_SCHEMA). Cost: some passes over the ids of removals/, and over those of
    the shards that hold a copy. Memory: what goes, and the candidates."""
    removals = Removals(store, manifest)
    rows = found.to_pylist()
    decision = Decision([row for row in rows if row["split"]], [row for row in rows if not row["split"]])
    if copies == "remove":
        _with_copies(store, manifest, removals, decision)
    deleted = {key_of(row) for row in decision.deleted}
    heads = [row["id"] for row in decision.deleted if _was_head(row)]
    decision.candidates = _behind(removals, decision.gone_ids | set(heads), deleted)
    return decision


def _was_head(row: Row) -> bool:
    return is_head({"reason": row["was"], "id": row["id"], "kept_id": row["kept_id"]})


def _with_copies(store: Store, manifest: Manifest, removals: Removals, decision: Decision) -> None:
    """Add what has the text of a document that was asked for, and what stands for one."""
    request = {row["id"]: row["request"] for row in decision.gone}
    frontier: dict[bytes, str] = {}
    for row in decision.deleted:
        if is_own({"reason": row["was"], "scope": ""}):
            request.setdefault(row["id"], row["request"])
            frontier.setdefault(row["kept_id"], row["request"])
    while frontier:
        request = {**frontier, **request}
        above = {
            row["kept_id"]: request[row["id"]]
            for row in sorted(removals.of(frontier), key=key_of)
            if is_head(row) and is_own(row)
        }
        frontier = {id_: asked for id_, asked in above.items() if id_ not in request}
    known = {key_of(row) for row in (*decision.gone, *decision.deleted)}
    for row in sorted(removals.of(request), key=key_of):
        if key_of(row) not in known:
            more = {**ELSEWHERE, "was": row["reason"], "why": COPY, "request": request[row["id"]]}
            decision.deleted.append({**row, **more, "token_count": 0, "text_bytes": 0})
    for row in locate(store, manifest, request):
        if key_of(row) not in known:
            decision.gone.append({**row, "why": COPY, "request": request[row["id"]], "kept_id": row["id"]})


def _behind(removals: Removals, ids: Iterable[bytes], deleted: set[Key]) -> list[Row]:
    """All that these ids stood for, directly or by another one, but for what goes itself."""
    seen = set(ids)
    frontier, found = seen, dict[Key, Row]()
    while frontier:
        rows = [row for row in removals.behind(frontier) if not row["scope"].startswith(REFERENCE)]
        new = [row for row in rows if key_of(row) not in deleted and key_of(row) not in found]
        found |= {key_of(row): row for row in new}
        frontier = {row["id"] for row in new if is_head(row)} - seen
        seen |= frontier
    return [found[key] for key in sorted(found)]
