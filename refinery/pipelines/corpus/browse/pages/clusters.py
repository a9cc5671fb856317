"""Near-duplicates: removed documents in pages, and one cluster with the differences of a removed and the kept one."""

from dataclasses import replace

from refinery.pipelines.corpus.browse.pages.frame import Frame, alert, note, page, section, words
from refinery.pipelines.corpus.browse.pages.lists import documents_page
from refinery.pipelines.corpus.browse.pages.texts import NOT_ALIGNED, side_by_side
from refinery.pipelines.corpus.browse.pages.visit import Visit
from refinery.pipelines.corpus.browse.reading.clusters import Cluster, Member, Pair, cluster_of, compare_pair
from refinery.pipelines.corpus.browse.reading.deadline import Deadline
from refinery.pipelines.reports.pages.markup import Html


def clusters_page(visit: Visit) -> str:
    """Removed documents; each row links to its cluster."""
    return documents_page(replace(visit, query={"reason": "near-duplicate", **visit.query, "in": "removed"}))


def cluster_page(visit: Visit) -> str:
    """One cluster. query: `id` of the kept document, `removed`: origin of the one that is compared with it. Raises
    ValueError, Busy."""
    frame, opened, query = visit.frame, visit.opened, visit.query
    cluster = cluster_of(opened, query.get("id", ""), Deadline())
    chosen = next((each for each in cluster.members if each.doc.origin == query.get("removed")), None)
    chosen = chosen or (cluster.members[0] if cluster.members else None)
    pair = compare_pair(visit.run, opened, cluster.kept, chosen) if chosen and cluster.kept else None
    return page(
        frame,
        "Cluster",
        section("Kept document", _kept(frame, cluster)),
        _members(frame, cluster, chosen),
        _pair(pair) if pair else None,
    )


def _kept(frame: Frame, cluster: Cluster) -> Html:
    if cluster.kept is None:
        return note("It is not in the corpus: a later stage dropped it, it was taken down, or it was removed itself.")
    doc = cluster.kept.doc
    return note(frame.document(doc), f", source {doc.source}, stands for {cluster.kept.copies:,} documents")


def _members(frame: Frame, cluster: Cluster, chosen: Member | None) -> Html:
    rows: list[list[object]] = []
    for each in cluster.members:
        query = {"id": cluster.id, "removed": each.doc.origin}
        compared = "compared below" if each == chosen else frame.link("compare", "cluster", **query)
        rows.append([frame.document(each.doc), each.doc.source, each.reason, f"{each.similarity:.3f}", compared])
    read = f"{cluster.files:,} of {cluster.of_files:,} files of removals/ were looked through."
    return section(
        "Removed in its favour",
        note(read, " There are more." if cluster.more else None),
        words(["document", "source", "reason", "similarity", "difference"], rows) if rows else note("None was found."),
    )


def _pair(pair: Pair) -> Html:
    if pair.found is None:
        return section("What differs", alert("No texts are shown: ", pair.problem))
    removed, kept = (doc.url or doc.origin for doc in (pair.member.doc, pair.kept.doc))
    return section(
        "What differs",
        note("Only their beginnings are compared.") if pair.cut else None,
        None if pair.found.aligned else note(NOT_ALIGNED),
        side_by_side([(f"removed: {removed:.300}", pair.found.before), (f"kept: {kept:.300}", pair.found.after)]),
    )
