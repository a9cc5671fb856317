"""Documents by a word: sources, languages, hosts, and signs of badly cleaned text, before and after."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from refinery.pipelines.published.statistics.published import Category, Hosts, Point, Total
from refinery.pipelines.recipe.quantities.quantity import show
from refinery.pipelines.reports.pages.charts import Chart, figure
from refinery.pipelines.reports.pages.markup import Html, el
from refinery.pipelines.reports.pages.page import table
from refinery.pipelines.reports.pages.treemap import Cell, treemap
from refinery.pipelines.reports.run.distributions import top
from refinery.pipelines.reports.run.facts import Facts
from refinery.pipelines.reports.run.words import count, share

ROWS = 30  # of a table
BARS = 12  # of a chart
MAP = 40  # hosts of a treemap
MAP_NOTE = "Each area is a host. Darker areas had a larger share of their extracted documents published."


def source_section(facts: Facts) -> Html:
    """What was read of each source, and what of it stays: from the funnel, so always known."""
    rows: dict[str, list[Mapping[str, Any]]] = {}
    for row in facts.manifest.funnel:
        rows.setdefault(row["source"], []).append(row)
    tokens, has_tokens = tokens_of(facts, "source"), facts.manifest.has_tokens
    lines = []
    for source in top(((name, each[0]["in"]["documents"]) for name, each in rows.items()), ROWS):
        first, last = rows[source][0]["in"], rows[source][-1]["kept"]
        own = tokens.get(source)
        parts = ["–", "–"]
        if own is not None and has_tokens:
            parts = [count(own), share(own, facts.manifest.totals["tokens"])]
        lines.append(
            [
                source,
                count(first["documents"]),
                count(last["documents"]),
                share(last["documents"], first["documents"]),
                show(last["bytes"], "bytes"),
                *(parts if has_tokens else []),
            ]
        )
    more = len(rows) - len(lines)
    head = ["source", "records read", "documents kept", "of read", "text kept"]
    head += ["tokens", "of all tokens"] if has_tokens else []
    said = el("p", f"and {more:,} more sources, in manifest.json") if more > 0 else None
    return el("section", el("h2", "Sources"), table(head, lines), said, id="sources")


def tokens_of(facts: Facts, category: str) -> dict[str, int]:
    """Value of a category -> tokens of its published documents."""
    point = facts.statistics.point("published") if facts.statistics else None
    found = [each for each in point.categories if each.name == category] if point else []
    return {value.value: value.tokens for each in found for value in each.values if value.tokens is not None}


def category_section(facts: Facts) -> tuple[Html | None, list[Chart]]:
    """Each category but the source, before and after; and tokens per byte of all of them."""
    names: dict[str, list[tuple[Point, Category]]] = {}
    for point in facts.statistics.points if facts.statistics else ():
        for category in point.categories if point.collected else ():
            names.setdefault(category.name, []).append((point, category))
    drawn = [_category(name, found) for name, found in names.items() if name != "source"]
    last = [found[-1] for found in names.values()]
    encoded = [each for each in last if each[0].total and each[0].total.tokens is not None]
    densities = [_density(*each) for each in encoded if each[0].name == "published" and each[1].distinct > 1]
    if not drawn and not densities:
        return None, []
    section = el(
        "section",
        el("h2", "Languages and other classes"),
        el("div", [shown for shown, _ in drawn], class_="charts") if drawn else None,
        [
            el("h3", "Tokens per byte"),
            el("p", "How well the tokenizer fits; fewer tokens per byte of text are better."),
            el("div", densities, class_="charts"),
        ]
        if densities
        else None,
        id="classes",
    )
    return section, [chart for _, chart in drawn]


def _category(name: str, found: Sequence[tuple[Point, Category]]) -> tuple[Html, Chart]:
    (point, before), (last, after) = found[0], found[-1]
    both = {point.name: (point, before), last.name: (last, after)}
    counts = {
        where: {value.value: value.documents for value in category.values} for where, (_, category) in both.items()
    }
    sums = {where: each.total.documents if each.total else 0 for where, (each, _) in both.items()}
    shown = top(
        ((value, sum(each.get(value, 0) for each in counts.values())) for value in set().union(*counts.values())), BARS
    )
    columns = {where: [each.get(value, 0) / (sums[where] or 1) for value in shown] for where, each in counts.items()}
    chart = Chart(
        *(f"category-{name}", name.replace("_", " ").capitalize(), [value or "(none)" for value in shown], columns),
        *("bars", name, "share"),
    )
    return figure(chart, f"{before.meaning}; share of documents, {before.distinct:,} values"), chart


def _density(point: Point, category: Category) -> Html:
    rows = [_tokens(value.value or "(none)", value) for value in category.values[:ROWS]]
    rows += [_tokens("all others", category.other)] if category.other else []
    rows += [_tokens("all", point.total)] if point.total else []
    return table([category.name.replace("_", " "), "documents", "text", "tokens", "tokens per byte"], rows)


def _tokens(name: str, total: Total) -> list[object]:
    density = f"{total.tokens / total.bytes:.3f}" if total.tokens is not None and total.bytes else "–"
    tokens = "–" if total.tokens is None else count(total.tokens)
    return [name, count(total.documents), show(total.bytes, "bytes"), tokens, density]


def host_section(facts: Facts) -> tuple[Html | None, list[Chart]]:
    """Hosts of what was extracted and of what is published."""
    points = [facts.statistics.point(name) if facts.statistics else None for name in ("extracted", "published")]
    before, after = (point.hosts if point else None for point in points)
    if not before or not after or not (before.top or after.top):
        return None, []
    sums = [sum_with_host(point) for point in points]
    read, kept = ({host.host: host.documents for host in hosts.top} for hosts in (before, after))
    shown = top(kept.items(), BARS)
    chart = Chart(
        *("hosts", "Hosts with the most documents", shown),
        {
            "extracted": [read[host] / sums[0] if host in read and sums[0] else None for host in shown],
            "published": [kept[host] / sums[1] if sums[1] else 0.0 for host in shown],
        },
        *("bars", "host", "share"),
    )
    most = top(((host, max(read.get(host, 0), kept.get(host, 0))) for host in {*read, *kept}), ROWS)
    section = el(
        "section",
        el("h2", "Hosts"),
        el("p", f"Extracted: {distinct(before)} Published: {distinct(after)}"),
        el("div", *_maps(points, sums), class_="charts"),
        figure(chart, "share of the documents with an address"),
        el(
            "details",
            el("summary", f"the {len(most)} largest hosts, in and out"),
            table(
                ["host", "extracted", "published", "kept"],
                [
                    [
                        host,
                        in_top(before, read.get(host)),
                        in_top(after, kept.get(host)),
                        _kept(host, read, kept, after),
                    ]
                    for host in most
                ],
            ),
        ),
        id="hosts",
    )
    return section, [chart]


def _maps(points: Sequence[Point | None], sums: Sequence[int]) -> Iterator[Html]:
    """The hosts before and after, as areas. Darker: more of the host was kept."""
    before, after = (
        {host.host: host.documents for host in point.hosts.top} for point in points if point and point.hosts
    )
    for name, own, total in zip(("extracted", "published"), (before, after), sums, strict=True):
        largest = top(own.items(), MAP)
        cells = [
            Cell(
                *(host, own[host], min(1.0, after.get(host, 0) / before[host]) if host in before else 1.0),
                f"{host}: {own[host]:,} documents, {share(own[host], total)}",
            )
            for host in largest
        ]
        rest = total - sum(own[host] for host in largest)
        if rest > 0:
            cells.append(Cell("all others", rest, None, f"all other hosts: {rest:,} documents, {share(rest, total)}"))
        if cells:
            said = f"Hosts of {name} documents"
            yield el("figure", el("figcaption", el("b", said), MAP_NOTE), treemap(cells, said))


def sum_with_host(point: Point | None) -> int:
    """Documents with an address."""
    return point.total.documents - point.hosts.without_host.documents if point and point.total and point.hosts else 0


def distinct(hosts: Hosts) -> str:
    """How many hosts there are."""
    if hosts.distinct_low == hosts.distinct_high:
        return f"{hosts.distinct:,} hosts."
    return f"about {hosts.distinct:,} hosts ({hosts.distinct_low:,} to {hosts.distinct_high:,} with 95 %)."


def in_top(hosts: Hosts, documents: int | None) -> str:
    """A host's documents; what is known of one that is not among the largest."""
    if documents is not None:
        return count(documents) if hosts.exact or not hosts.documents_error else f"≤ {documents:,}"
    least = min((host.documents for host in hosts.top), default=0)
    return "0" if hosts.exact and hosts.distinct == len(hosts.top) else f"≤ {least:,}"


def _kept(host: str, read: Mapping[str, int], kept: Mapping[str, int], after: Hosts) -> str:
    if host in read and host in kept:
        return share(kept[host], read[host])
    gone = host in read and after.exact and after.distinct == len(after.top)
    return "0 %" if gone else "–"


def artefact_section(facts: Facts) -> tuple[Html | None, list[Chart]]:
    """Signs of badly cleaned text, in what was extracted and in the final texts."""
    points = [facts.statistics.point(name) if facts.statistics else None for name in ("extracted", "final")]
    before, after = points
    if not before or not after or not before.total or not after.total or not after.artefacts:
        return None, []
    counts = [{each.name: each.documents for each in point.artefacts} for point in (before, after)]
    names = [each.name for each in after.artefacts]
    sums = before.total.documents or 1, after.total.documents or 1
    chart = Chart(
        *("artefacts", "Texts with signs of bad cleaning", names),
        {
            where: [each.get(name, 0) / total for name in names]
            for where, each, total in zip(("extracted", "final"), counts, sums, strict=True)
        },
        *("bars", "sign", "share"),
    )
    rows = list(_artefacts(after, counts, sums))
    section = el(
        "section",
        el("h2", "Markup, code and white space left in texts"),
        figure(chart, "share of documents", rows=()),
        table(["sign", "extracted", "final", "share of extracted", "share of final"], rows),
        id="artefacts",
    )
    return section, [chart]


def _artefacts(after: Point, counts: Sequence[Mapping[str, int]], sums: tuple[int, int]) -> Iterator[list[object]]:
    for each in after.artefacts:
        numbers = [column.get(each.name, 0) for column in counts]
        shares = [share(number, total) for number, total in zip(numbers, sums, strict=True)]
        yield [el("span", each.name, el("small", each.meaning)), *map(count, numbers), *shares]
