"""The last step of a takedown: files, funnel, listings, the proof, and then, if all counts hold, the manifest."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from refinery.loader.format.listed import shard_table, shard_totals
from refinery.loader.format.manifest import (
    SCHEMA_VERSION,
    Manifest,
    ShardEntry,
    check_funnel,
    seal,
)
from refinery.loader.format.publish_manifest import describe_file, make_manifest, reported_shard, whole_payload
from refinery.loader.format.removals import FOLDER as REMOVALS
from refinery.loader.format.takedown import (
    PROOF_KIND,
    STAGE,
    UNREPRESENTED,
    Takedown,
    describe_takedown,
    takedown_name,
)
from refinery.loader.format.written import WrittenFiles
from refinery.loader.storage.store import Store, checksums
from refinery.pipelines.corpus.checks.takedowns import check_left
from refinery.pipelines.corpus.export.place import SourceCorpus
from refinery.pipelines.corpus.remove.decide import Decision
from refinery.pipelines.corpus.remove.fates import Demoted, Lost, Moved, Outcome, Reinstated, Unrepresented
from refinery.pipelines.corpus.remove.files import (
    IN_REJECTS,
    REJECTS,
    added_table,
    copied,
    copy_files,
    count_left,
    elsewhere,
    publish_listing,
    removed_table,
    rewrite_rejects,
    rewrite_removals,
)
from refinery.pipelines.corpus.remove.funnel import Funnel
from refinery.pipelines.corpus.remove.lookup import publish_lookup
from refinery.pipelines.corpus.remove.place import Place
from refinery.pipelines.corpus.remove.recount import publish_statistics
from refinery.pipelines.corpus.remove.request import Request
from refinery.pipelines.corpus.remove.rows import Row, key_of, rows_of
from refinery.pipelines.corpus.remove.shards import with_new
from refinery.pipelines.published.dropped import DROPPED
from refinery.pipelines.published.statistics.published import STATISTICS
from refinery.pipelines.reports.cards.text_card import README, with_text_card
from refinery.pipelines.reports.run.write import REPORT, leave_report
from refinery.pipelines.run.funnel import CountsDisagree, check_removals
from refinery.transforms.core.safe_text import printable
from refinery.transforms.write.lookup.entries import FOLDER as LOOKUP

LEFT_OUT = (STATISTICS, DROPPED, REPORT, "work/")  # made of what went, too; what can be counted again is


@dataclass(frozen=True)
class Result:
    """What was decided, and the affected shards as they were written: entries of a manifest."""

    decision: Decision
    outcome: Outcome
    shards: Sequence[Mapping[str, Any]]

    @property
    def gone(self) -> list[Row]:
        """All that went from the shards."""
        return [*self.decision.gone, *self.outcome.demoted]


def publish_version(
    place: Place,
    corpus: SourceCorpus,
    request: Request,
    identity: Mapping[str, Any],
    result: Result,
    say: Callable[[str], None],
    recipe: str = "",
) -> Manifest:
    """Write all that the shards are not, the manifest last; returns it. recipe: the corpus' own file, where it has
    stages of its own. Raises CountsDisagree."""
    old, new, manifest = corpus.store, place.store, corpus.manifest
    payload = whole_payload(old)
    shards = with_new(payload["shards"], result.shards)
    kind = manifest.written.kinds[0]
    written = {shard["files"][kind]["path"] for shard in result.shards}
    same = [entry for entry in manifest.shards if entry.content.path not in written]
    ways = copy_files(old, new, [file for entry in same for file in (*entry.files, *entry.packed)])
    rewritten = (STATISTICS, DROPPED, README, f"{REJECTS}/", f"{REMOVALS}/", f"{LOOKUP}/")
    others = list(copied(manifest.files, rewritten))
    copy_files(old, new, others)
    decision, outcome = result.decision, result.outcome
    lower = outcome.of(Demoted)
    named = (*decision.gone, *decision.deleted, *(fate.row for fate in lower if fate.place is None))
    origins = {(row["source"], printable(row["origin"])) for row in named}
    lost = [fate.reject for fate in outcome.of(Lost) if fate.reject]
    rejects, rejects_gone, rejected = rewrite_rejects(old, new, manifest, request, origins, lost)
    went = [*decision.deleted, *(fate.row for fate in outcome.fates if not isinstance(fate, Demoted))]
    moved = outcome.of(Moved)
    removals = rewrite_removals(old, new, manifest, map(key_of, went), [fate.row for fate in (*moved, *lower)])
    rest = [elsewhere(f.row, UNREPRESENTED, f.why) for f in outcome.of(Unrepresented)]

    taken = {row["id"] for row in (*decision.gone, *decision.deleted, *rest)}

    number = len(manifest.takedowns) + 1
    files = [*map(describe_file, others), *rejects, *removals]
    listed = shard_table(shards)
    files += publish_lookup(place, listed, files, rejected, manifest.funnel)
    files.append(
        publish_listing(new, number, "removed.parquet", removed_table(result.gone, [*decision.deleted, *rest]))
    )
    removed_path, added_path = files[-1]["path"], ""
    added = list(_added(new, manifest.written, shards, outcome.of(Reinstated)))
    if added:
        files.append(publish_listing(new, number, "added.parquet", added_table(added)))
        added_path = files[-1]["path"]
    before = {shard.content.path: shard for shard in manifest.shards}
    takedown = Takedown(
        previous=corpus.sha256,
        fingerprint=place.fingerprint,
        proof=takedown_name(number, "removal.json"),
        removed=removed_path,
        added=added_path,
        documents=len(result.gone),
        tokens=sum(row["token_count"] for row in result.gone),
        added_documents=len(added),
        added_tokens=sum(row["token_count"] for row in added),
    )
    stages = [*payload["stages"]]
    if all(stage["name"] != STAGE for stage in stages):
        stages.append({"name": STAGE, "phase": "shards", "version": 1})
    funnel = new_funnel(payload["funnel"], [stage["name"] for stage in stages], result, rest)
    totals = {
        **shard_totals(listed),
        "bytes": sum(row["kept"]["bytes"] for row in funnel if row["stage"] == STAGE),
    }
    _check(manifest, takedown, totals, funnel, removals)
    statistics = publish_statistics(place, corpus, recipe, shards, funnel)
    files += [statistics] if statistics else []
    left = _left(new, result.shards, removals, rejects, request.lasting)
    proof = {
        "kind": PROOF_KIND,
        "schema_version": SCHEMA_VERSION,
        "previous": {"manifest_sha256": corpus.sha256, "name": manifest.name, "totals": dict(manifest.totals)},
        **{name: identity[name] for name in ("scheme", "request", "options")},
        "fingerprint": place.fingerprint,
        "totals": totals,
        "removed": _removed(result, rest),
        "reinstated": {"documents": len(added), "tokens": takedown.added_tokens},
        "duplicates": {
            "of_another_document_now": len(moved),
            "dropped_by_a_later_stage": len(outcome.of(Lost)),
            "dropped_later": sorted({id_.hex() for fate in outcome.of(Lost) if (id_ := fate.row["id"]) in taken}),
            "of_a_document_that_came_back": len(lower),
            "not_reinstated": dict(sorted(Counter(fate.why for fate in outcome.of(Unrepresented)).items())),
        },
        "rejects_removed": rejects_gone,
        "shards": {
            "rewritten": [_both(before.get(shard["files"][kind]["path"]), shard, kind) for shard in result.shards],
            "same": len(same),
        },
        "left_out": [name for name in LEFT_OUT if name != STATISTICS or not statistics],
        "left": left,
    }
    data = seal(proof)
    new.create(takedown.proof, data)
    size, crc32c, sha256 = checksums(data)
    files.append({"path": takedown.proof, "size": size, "crc32c": crc32c, "sha256": sha256})
    payload |= {
        "shards": listed,
        "files": sorted(files, key=lambda file: str(file["path"])),
        "totals": totals,
        "funnel": funnel,
        "stages": stages,
        "takedowns": [*(describe_takedown(each) for each in (*manifest.takedowns, takedown))],
    }
    made = make_manifest(with_text_card(new, payload))  # what readers will accept, before it counts
    if problems := list(check_left(new, made.manifest)):
        raise CountsDisagree(
            "removed documents are still in the files, so no manifest is written:\n  " + "\n  ".join(problems)
        )
    made.publish(new)
    leave_report(new, None, (), say)
    how = ", ".join(f"{count:,} {way}" for way, count in sorted(ways.items()))
    say(f"{len(result.shards):,} shards rewritten, {len(same):,} reused (files: {how or 'none'})")
    return made.manifest


def new_funnel(
    funnel: Sequence[Mapping[str, Any]], stages: Sequence[str], result: Result, rest: Iterable[Row]
) -> list[dict[str, Any]]:
    """The funnel with what went, and what came back."""
    rows, outcome = Funnel(funnel, stages), result.outcome
    for row in (*result.decision.deleted, *rest):
        rows.rename(row, row["why"], outcome.sizes.get(key_of(row)))
    for fate in outcome.fates:
        source = fate.row["source"]
        if isinstance(fate, Moved):
            rows.forget(source, fate.size, fate.was["reason"])
            rows.count(source, fate.size, fate.row["reason"])
        elif isinstance(fate, Reinstated | Lost):
            rows.forget(source, fate.size, fate.row["reason"])
            rows.count(source, fate.size, "", fate.steps)
        elif isinstance(fate, Demoted):
            rows.forget(source, fate.size, "", fate.steps)
            rows.count(source, fate.size, fate.row["reason"])
    return rows.finish(result.decision.gone)


def _added(
    new: Store, files: WrittenFiles, shards: Iterable[Mapping[str, Any]], fates: Sequence[Reinstated]
) -> Iterable[dict[str, Any]]:
    """Rows of ADDED_SCHEMA: where what came back is now."""
    wanted = {key_of(fate.row): fate for fate in fates}
    ids = {fate.row["id"] for fate in fates}
    for entry in [reported_shard(shard, files) for shard in shards] if wanted else ():
        for row in rows_of(new, files, entry, ids):
            if fate := wanted.get(key_of(row)):
                yield {**{name: row[name] for name in row if name != "was"}, "instead_of": fate.instead_of}


def _both(before: ShardEntry | None, after: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """A rewritten shard before, null where there was none, and after. kind: of the file with its documents."""
    file = after["files"][kind]
    now = {"documents": after["documents"], "tokens": after.get("tokens"), "sha256": file["sha256"]}
    was = before and {
        "documents": before.documents, "tokens": before.token_count, "sha256": before.content.sha256
    }  # fmt: skip
    return {"path": file["path"], "before": was and _known(was), "after": _known(now)}


def _known(counts: Mapping[str, Any]) -> dict[str, Any]:
    """Without what a corpus of texts does not count."""
    return {name: value for name, value in counts.items() if value is not None}


def _removed(result: Result, rest: Sequence[Row]) -> dict[str, Any]:
    """Documents, tokens and bytes that went, by source and by why; and duplicates that removals/ had listed."""
    sources: dict[str, dict[str, int]] = {}
    for row in result.gone:
        entry = sources.setdefault(row["source"], {"documents": 0, "tokens": 0, "bytes": 0})
        for name, value in (("documents", 1), ("tokens", row["token_count"]), ("bytes", row["text_bytes"])):
            entry[name] += value
    return {
        "documents": len(result.gone),
        "tokens": sum(row["token_count"] for row in result.gone),
        "bytes": sum(row["text_bytes"] for row in result.gone),
        "sources": dict(sorted(sources.items())),
        "why": dict(sorted(Counter(row["why"] for row in result.gone).items())),
        "duplicates": dict(sorted(Counter(row["why"] for row in (*result.decision.deleted, *rest)).items())),
    }


def _left(
    store: Store,
    shards: Iterable[Mapping[str, Any]],
    removals: Sequence[Mapping[str, Any]],
    rejects: Sequence[Mapping[str, Any]],
    request: Request,
) -> dict[str, int]:
    """The request once more, on the files as they are now: rows that it asks for. All of them are to be 0; texts were
    looked through before."""
    provenance = [shard["files"]["provenance"] for shard in shards]
    known = ("id", "url", "source", "origin")
    return {
        "in_rewritten_shards": count_left(store, provenance, request, sorted({*known, *request.columns})),
        "in_removals": count_left(store, removals, request, known),
        "in_rejects": count_left(store, rejects, request, IN_REJECTS),
    }


def _check(
    manifest: Manifest,
    takedown: Takedown,
    totals: Mapping[str, int],
    funnel: Sequence[Mapping[str, Any]],
    removals: Sequence[Mapping[str, Any]],
) -> None:
    """Raise CountsDisagree unless what was there is what is there now and what went, without what came back."""
    problems = check_funnel(funnel) + check_removals(funnel, removals)
    for unit, came in (("documents", takedown.added_documents), ("tokens", takedown.added_tokens)):
        if unit not in totals:
            continue
        now = totals[unit] + getattr(takedown, unit) - came
        if now != manifest.totals[unit]:
            problems.append(f"{manifest.totals[unit]} {unit} were there, {now} are accounted for")
    kept = sum(row["kept"]["documents"] for row in funnel if row["stage"] == STAGE)
    if kept != totals["documents"]:
        problems.append(f"{STAGE}: {kept} documents were kept, {totals['documents']} are in the shards")
    if problems:
        raise CountsDisagree("the counts do not reconcile, so no manifest is written:\n  " + "\n  ".join(problems))
