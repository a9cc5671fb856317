"""From the tallies in the phases' reports to what statistics.json says. Pure: the same reports give the same bytes."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from refinery.pipelines.published.statistics.published import (
    Artefact,
    BySource,
    Category,
    Cluster,
    Distribution,
    Host,
    Hosts,
    Point,
    Series,
    Shards,
    ShardTest,
    Statistics,
    Total,
    Value,
)
from refinery.pipelines.recipe.recipe import Recipe
from refinery.transforms.core.histogram import STEPS, lower_edge, quantile
from refinery.transforms.core.safe_text import printable
from refinery.transforms.core.stage import Note
from refinery.transforms.redaction.redact_address import redact_address
from refinery.transforms.statistics import measure
from refinery.transforms.statistics.artefacts import ARTEFACTS
from refinery.transforms.statistics.bins import Bins
from refinery.transforms.statistics.hosts import HostCounts
from refinery.transforms.statistics.keyed import Keyed, add_numbers
from refinery.transforms.statistics.likeness import Table, compare
from refinery.transforms.statistics.points import POINTS, PUBLISHED, points_of
from refinery.transforms.statistics.points import Point as Place
from refinery.transforms.statistics.tally import BUILT_IN, RATIO, SOURCE, Tally, unpack

VALUES = 32  # of a category
SOURCES = 16  # with distributions of their own
HOSTS = 100
SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)  # of quantiles
COARSE = 4  # bins of sizes to an octave
DIGITS = 6  # of a test's numbers, so no machine's mathematics shows


def build_statistics(reports: Mapping[str, Mapping[str, Any]], recipe: Recipe, shards: int) -> Statistics:
    """All that was measured. reports: of the phases, by name; those of a run that did not measure lack the key. shards:
    how many there are."""
    notes = recipe.notes()
    tallies = {point.name: find_tally(reports[point.phase], point) for point in POINTS}
    published = tallies[PUBLISHED.name]
    return Statistics(
        points=tuple(
            describe_point(point, after, tallies[point.name], notes, recipe.LANE.writer.counts_tokens)
            for point, after in places(recipe, reports["dedup"])
        ),
        clusters=tuple(
            Cluster(**{name: entry[name] for name in Cluster.model_fields})
            for entry in reports["dedup"].get("components", ())
        ),
        shards=None if published is None else describe_shards(published, shards, recipe.LANE.writer.counts_tokens),
    )


def find_tally(report: Mapping[str, Any], point: Place) -> Tally | None:
    """What a phase's report says of a point; None where nobody measured. A job without documents has no tally of texts,
    but every shard has one."""
    if measure.KIND not in report:
        return None
    packed = report[measure.KIND].get(point.name)
    if packed is not None:
        return unpack(packed)
    return Tally() if point.text else None


def places(recipe: Recipe, dedup: Mapping[str, Any]) -> Iterator[tuple[Place, str]]:
    """Each point with the stage of the funnel behind which it is, in order. dedup: the report of that phase, which
    counts the stages that ran."""
    active = {phase: [stage for stage, _ in recipe.active(phase)] for phase in ("clean", "shards")}
    for after, point in points_of("clean", active["clean"]):
        yield point, after
    ran = {counter["stage"] for counter in dedup["counters"]}
    before = [*active["clean"], *(stage for stage in recipe.LANE.phase("dedup") if stage.name in ran)]
    for after, point in points_of("shards", active["shards"]):
        yield point, after or before[-1].name
    yield PUBLISHED, recipe.LANE.funnel[-1]


def describe_point(
    point: Place, after: str, tally: Tally | None, notes: Sequence[Note], has_tokens: bool = True
) -> Point:
    """A point of the funnel. has_tokens: whether the corpus is one of tokens."""
    told: dict[str, Any] = {"name": point.name, "meaning": point.meaning, "phase": point.phase, "after": after}
    if tally is None:
        nothing: dict[str, Any] = dict.fromkeys(("categories", "series", "artefacts"), ())
        return Point(**told, collected=False, total=None, hosts=None, **nothing)
    encoded = has_tokens and not point.text
    meanings = {SOURCE: "source of the recipe"} | {note.name: note.meaning for note in notes}
    categories = tuple(
        describe_category(name, meanings[name], tally.categories[name], encoded)
        for name in meanings
        if has_values(tally.categories.get(name))
    )
    sources = [value.value for value in categories[0].values[:SOURCES]] if categories else []
    return Point(
        **told,
        collected=True,
        total=total(tally.total, encoded),
        categories=categories,
        series=tuple(describe_series(tally, sources, notes)),
        hosts=describe_hosts(tally.hosts) if point.hosts else None,
        artefacts=tuple(
            Artefact(name=row.name, meaning=row.meaning, **describe_artefact(tally.artefacts.get(row.name)))
            for row in (ARTEFACTS if point.artefacts else ())
        ),
    )


def has_values(keyed: Keyed[list[int]] | None) -> bool:
    """Whether any document has a value of a category other than none."""
    return keyed is not None and (any(keyed.sums) or keyed.rest is not None)


def total(sums: Sequence[int], encoded: bool) -> Total:
    """Documents, bytes and tokens."""
    return Total(documents=sums[0], bytes=sums[1], tokens=sums[2] if encoded else None)


def values_of(keyed: Keyed[list[int]], encoded: bool) -> tuple[tuple[Value, ...], Total | None]:
    """The values with most documents, and the sum of all others."""
    order = sorted(keyed.sums.items(), key=lambda entry: (-entry[1][0], -entry[1][1], entry[0]))
    values = tuple(Value(value=printable(key), **dict(total(sums, encoded))) for key, sums in order[:VALUES])
    others = [sums for _, sums in order[VALUES:]] + ([] if keyed.rest is None else [keyed.rest])
    rest = [0, 0, 0]
    for sums in others:
        add_numbers(rest, sums)
    return values, total(rest, encoded) if others else None


def describe_category(name: str, meaning: str, keyed: Keyed[list[int]], encoded: bool) -> Category:
    """Documents by value of a category."""
    values, other = values_of(keyed, encoded)
    distinct = len(keyed.sums) + (keyed.rest is not None)
    return Category(name=name, meaning=meaning, values=values, other=other, distinct=distinct)


def describe_artefact(keyed: Keyed[list[int]] | None) -> dict[str, Any]:
    """Documents and bytes with an artefact, and of which sources."""
    if keyed is None:
        return {"documents": 0, "bytes": 0, "sources": ()}
    sums = [0, 0, 0]
    for each in (*keyed.sums.values(), *([] if keyed.rest is None else [keyed.rest])):
        add_numbers(sums, each)
    return {"documents": sums[0], "bytes": sums[1], "sources": values_of(keyed, False)[0]}


def describe_series(tally: Tally, sources: Sequence[str], notes: Iterable[Note]) -> Iterator[Series]:
    """Every series that has documents: what is built in, then notes in the order of the funnel."""
    known = [(*row, STEPS if row is RATIO else COARSE) for row in BUILT_IN]
    known += [(note.name, "", note.meaning, COARSE if note.type is int else STEPS) for note in notes]
    for name, unit, meaning, steps in known:
        keyed = tally.series.get(name)
        if keyed is None:
            continue
        by_source = [(source, keyed.sums[source]) for source in sources if source in keyed.sums]
        others = Bins()
        for source, bins in keyed.sums.items():
            if source not in sources:
                others.merge(bins)
        if keyed.rest is not None:
            others.merge(keyed.rest)
        by_source += [("", others)] if others.counts else []
        yield Series(
            name=name,
            meaning=meaning,
            unit=unit,
            all=distribution(tally.distribution(name), steps),
            sources=tuple(
                BySource(source=source, distribution=distribution(bins, steps))
                for source, bins in (by_source if len(sources) > 1 else ())
            ),
        )


def distribution(bins: Bins, steps: int) -> Distribution:
    """steps: bins to an octave; a divisor of STEPS."""
    if not bins.counts:
        return Distribution(documents=0, least=None, most=None, quantiles=(), bins=())
    wide, documents = STEPS // steps, dict[int, int]()
    for place, count in bins.counts.items():
        documents[place // wide] = documents.get(place // wide, 0) + count
    least, most = float(bins.least), float(bins.most)
    first = min(0.0, least)  # in the bin of the smallest numbers are zero and less, too
    edges = {lower_edge(place) if place else first: count for place, count in bins.counts.items()}
    return Distribution(
        documents=bins.documents,
        least=least,
        most=most,
        quantiles=tuple(max(least, min(most, quantile(edges, share))) for share in SHARES),
        bins=tuple(
            (lower_edge(place * wide) if place else first, lower_edge((place + 1) * wide), count)
            for place, count in sorted(documents.items())
        ),
    )


def describe_hosts(hosts: HostCounts) -> Hosts:
    """What is known of hosts. Names are redacted like addresses: who writes a page chooses them."""
    estimate, low, high = hosts.distinct()
    documents_error, bytes_error, confidence = hosts.errors()
    return Hosts(
        without_host=total([*hosts.without, 0], False),
        distinct=estimate,
        distinct_low=low,
        distinct_high=high,
        exact=hosts.sketches is None,
        documents_error=documents_error,
        bytes_error=bytes_error,
        confidence=confidence,
        sampled=0 if hosts.sketches is None else len(hosts.sample),
        top=tuple(
            Host(host=printable(redact_address(host)), documents=documents, bytes=size)
            for host, documents, size in hosts.top(HOSTS)
        ),
    )


def describe_shards(published: Tally, shards: int, has_tokens: bool = True) -> Shards:
    """Tests of the sampled shards that have documents. shards: how many there are."""
    rows = [(name, row) for name, row in sorted(published.shards.sums.items()) if row["documents"]]
    categories = [name for name, keyed in sorted(published.categories.items()) if has_values(keyed)]
    documents, tokens = Bins(), Bins()
    for name, row in rows:
        if name.startswith("train/"):
            documents.add(row["documents"])
            if has_tokens:
                tokens.add(row["tokens"])
    return Shards(
        shards=shards,
        tested=len(rows),
        tests=tuple(describe_test(category, rows) for category in [*categories, "length"]),
        documents=distribution(documents, STEPS),
        tokens=distribution(tokens, STEPS),
    )


def describe_test(category: str, rows: Sequence[tuple[str, Mapping[str, Any]]]) -> ShardTest:
    """The test of one category: between the shards of each split and domain, and between the splits of each domain.
    rows: (name, what it holds) of each shard."""
    tables: dict[str, list[Mapping[str, int]]] = {}
    splits: dict[str, dict[str, Counter[str]]] = {}
    for name, row in rows:
        split, domain, _ = name.split("/")
        counts = row["values"].get(category, {})
        tables.setdefault(f"{split}/{domain}", []).append(counts)
        splits.setdefault(domain, {}).setdefault(split, Counter()).update(counts)
    between: list[Table] = [list(splits[domain].values()) for domain in sorted(splits)]
    found = compare([*(tables[place] for place in sorted(tables)), *between])
    return ShardTest(
        category=category,
        documents=sum(row["documents"] for _, row in rows),
        statistic=float(f"{found.statistic:.{DIGITS}g}"),
        degrees_of_freedom=found.freedom,
        p_value=float(f"{found.p_value:.{DIGITS}g}"),
    )
