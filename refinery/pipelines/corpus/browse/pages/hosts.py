"""Hosts: documents of each before filters and in the corpus, as the run counted them (statistics.json)."""

from refinery.pipelines.corpus.browse.pages.frame import Frame, count, note, page, section, share, table
from refinery.pipelines.corpus.browse.pages.visit import Visit
from refinery.pipelines.corpus.browse.reading.listing import HOST
from refinery.pipelines.published.statistics.published import Host, Hosts, Point
from refinery.pipelines.recipe.quantities.quantity import show
from refinery.pipelines.reports.pages.markup import Html, el

BEFORE, AFTER = ("extracted", "cleaned"), ("published", "final", "deduplicated")


def hosts_page(visit: Visit) -> str:
    """The page. Cost: statistics.json."""
    frame, statistics = visit.frame, visit.opened.corpus.statistics()
    points = statistics.points if statistics else ()
    before, after = (_point(points, names) for names in (BEFORE, AFTER))
    if before is None and after is None:
        return page(frame, "Hosts", note("The run counted no hosts: it has no statistics.json, or no addresses."))
    return page(
        frame,
        "Hosts",
        note(
            "The hosts with most documents, at most 100 of each point, as the run counted them. "
            "A dash: not among these."
        ),
        section("Before and after", _facts(before, after), _table(frame, before, after)),
    )


def _point(points: tuple[Point, ...], names: tuple[str, ...]) -> Point | None:
    known = {point.name: point for point in points if point.collected and point.hosts}
    return next((known[name] for name in names if name in known), None)


def _facts(before: Point | None, after: Point | None) -> Html:
    rows = []
    for name, point in (("before", before), ("after", after)):
        if point and point.hosts:
            hosts = point.hosts
            exact = "exact" if hosts.exact else f"at most {hosts.documents_error:,} too large"
            rows.append([f"{name}: {point.name}", count(hosts.distinct), count(hosts.without_host.documents), exact])
    return table(["point", "hosts", "documents without a host", "counts are"], rows)


def _table(frame: Frame, before: Point | None, after: Point | None) -> Html:
    one, other = (_by_name(point.hosts if point else None) for point in (before, after))
    names = sorted({*one, *other}, key=lambda name: (-_documents(one.get(name)), -_documents(other.get(name)), name))
    rows = [
        [
            frame.link(el("bdi", name), "documents", host=name) if HOST.fullmatch(name) else el("bdi", name),
            *(count(each.documents) if each else "–" for each in (one.get(name), other.get(name))),
            share(_documents(other.get(name)), _documents(one.get(name))) if name in one and name in other else "–",
            show(other[name].bytes, "bytes") if name in other else "–",
        ]
        for name in names
    ]
    return table(["host", "before", "after", "share", "text after"], rows)


def _by_name(hosts: Hosts | None) -> dict[str, Host]:
    return {each.host: each for each in hosts.top} if hosts else {}


def _documents(host: Host | None) -> int:
    return host.documents if host else 0
