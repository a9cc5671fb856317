"""What deserves attention in a run, in words: rules over its counts, each with a threshold that this file says.

The thresholds are about what a person would want to know, not about what is wrong: a crawl is meant to lose most of
its pages.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from refinery.pipelines.quantities.quantity import show
from refinery.pipelines.report.facts import Facts, StageCounts
from refinery.pipelines.report.words import median, share
from refinery.pipelines.statistics.published import Category, Value

FEW = 20  # documents about which a share says nothing
MUCH = 0.3  # of what enters a stage, lost to one reason
LITTLE = 0.05  # of a source's documents, kept
DEAD = 0.001  # of what enters a stage, dead letters
ALIKE = 0.01  # of a p-value, divided by the number of tests (Bonferroni)
COSTLY = 0.3  # of all seconds, in a stage that drops less than one in a hundred
HOST = 0.1  # of the documents with an address, from one host
NAMED = 3  # hosts in one sentence
RISEN = 3.0  # times: a host's share of what stays over its share of what was read
ARTEFACT = 0.05  # of the final documents
POORLY = 1.5  # times the tokens per byte of the whole: a language or source that the tokenizer fits poorly
CHAIN = 0.02  # of what was compared, in one group of near duplicates
CUT = 0.2  # of a series' median: a change of length that is worth a sentence
# Reasons of reading that say nothing about pages: a crawler's own notes, and what `sample` left out on purpose.
NO_PAGES = ("record-type", "not-sampled")


@dataclass(frozen=True)
class Finding:
    """text: a sentence or two. advice: what could be done; "" for nothing. section: of the page, that shows it. warns:
    whether it may be wrong, rather than good to know."""

    text: str
    section: str
    advice: str = ""
    warns: bool = True


def findings(facts: Facts) -> list[Finding]:
    """Everything worth saying, warnings first, in the order of the rules below."""
    found = [finding for rule in RULES for finding in rule(facts)]
    return sorted(found, key=lambda finding: not finding.warns)


def large_reasons(facts: Facts) -> Iterator[Finding]:
    """A reason that takes more than 30 % of what enters its stage."""
    for stage in facts.stages:
        pages = stage.entered - sum(stage.dropped[reason][0] for reason in NO_PAGES if reason in stage.dropped)
        for reason, (documents, _) in stage.dropped.items():
            if reason not in NO_PAGES and pages >= FEW and documents > MUCH * pages:
                meaning, advice = words_of(facts, stage.name, reason)
                said = f" ({meaning})" if meaning else ""
                yield Finding(
                    f"{stage.name} drops {share(documents, pages)} of what reaches it as {reason}{said}.",
                    "reasons",
                    advice,
                )


def poor_sources(facts: Facts) -> Iterator[Finding]:
    """A source of which less than 5 % of the documents are kept."""
    rows: dict[str, list[Mapping[str, Any]]] = {}
    for row in facts.manifest.funnel:
        rows.setdefault(row["source"], []).append(row)
    for source, stages in rows.items():
        no_pages = sum(stages[0]["dropped"].get(reason, {"documents": 0})["documents"] for reason in NO_PAGES)
        pages, kept = stages[0]["in"]["documents"] - no_pages, stages[-1]["kept"]["documents"]
        if pages >= FEW and kept < LITTLE * pages:
            losses = [
                (entry["documents"], row["stage"], reason)
                for row in stages
                for reason, entry in row["dropped"].items()
                if reason not in NO_PAGES
            ]
            most = max(losses, default=(0, "", ""))
            said = f", most to {most[1]} as {most[2]} ({share(most[0], pages)})" if most[0] else ""
            yield Finding(
                f"Only {share(kept, pages)} of source {source} stays: {kept:,} of {pages:,} documents{said}.",
                "sources",
                "read some of its rejects below: either the source is not worth its cost, or a rule does not fit it",
            )


def dead_letters(facts: Facts) -> Iterator[Finding]:
    """A stage that fails on more than one document in a thousand."""
    for stage in facts.stages:
        dead = sum(documents for documents, _ in stage.dead.values())
        if dead > DEAD * stage.entered:
            errors = ", ".join(f"{error} {documents:,}" for error, (documents, _) in list(stage.dead.items())[:3])
            yield Finding(
                f"{dead:,} of {stage.entered:,} documents that {stage.name} was given failed "
                f"({share(dead, stage.entered)}): {errors}.",
                "dead",
                "`refinery trace --origin` says more about one of the places below; fetch damaged inputs again",
            )


def unlike_shards(facts: Facts) -> Iterator[Finding]:
    """Shards that hold the values of a category in different shares."""
    shards = facts.statistics.shards if facts.statistics else None
    tests = [test for test in shards.tests if test.degrees_of_freedom] if shards else []
    for test in tests:
        if test.p_value < ALIKE / len(tests):
            yield Finding(
                f"The shards differ in {test.category}: chance alone gives such a difference in {test.p_value:.2g} of "
                "cases.",
                "shards",
                "documents are dealt to shards by hash, so this should not be: `refinery verify`, and report it",
            )


def dear_stages(facts: Facts) -> Iterator[Finding]:
    """A stage that takes much of the time and drops next to nothing, though dropping is what it is for."""
    total = sum(facts.seconds.values())
    for stage in facts.stages:
        declared = facts.declared.get(stage.name)
        if not (total and stage.seconds and declared and declared.reasons) or stage.entered < FEW:
            continue
        lost = sum(documents for documents, _ in stage.dropped.values())
        if stage.seconds > COSTLY * total and lost < 0.01 * stage.entered:
            yield Finding(
                f"{stage.name} takes {share(stage.seconds, total)} of all core seconds and drops {lost:,} of "
                f"{stage.entered:,} documents.",
                "cost",
                "a cheaper stage in front of it that drops more would save its time",
                warns=False,
            )


def hosts(facts: Facts) -> Iterator[Finding]:
    """One host with more than 10 % of what stays, or three times the share that it had of what was read."""
    before, after = (facts.statistics.point(name) if facts.statistics else None for name in ("extracted", "published"))
    if after is None or after.hosts is None or after.total is None:
        return
    addressed = after.total.documents - after.hosts.without_host.documents
    if addressed < FEW:
        return
    read: dict[str, int] = {}
    with_host = 0
    if before and before.hosts and before.total:
        read = {host.host: host.documents for host in before.hosts.top}
        with_host = before.total.documents - before.hosts.without_host.documents
    large = [host for host in after.hosts.top if host.documents > HOST * addressed]
    if large:
        named_hosts = ", ".join(f"{host.host} ({share(host.documents, addressed)})" for host in large[:NAMED])
        more = f" and {len(large) - NAMED} more" if len(large) > NAMED else ""
        yield Finding(
            f"Much of what stays is of few hosts: {named_hosts}{more}.",
            "hosts",
            "a model will see much of these sites; block or sample them if they should not weigh so much",
        )
    for host in after.hosts.top:
        portion = host.documents / addressed
        former = read[host.host] / with_host if with_host and host.host in read else 0.0
        if former > 0 and portion > RISEN * former and portion > HOST / 10:
            yield Finding(
                f"{host.host} has {share(portion)} of the documents that stay, but had {share(former)} of those "
                "extracted: the rules favour it.",
                "hosts",
                "read some of it: rules that one site meets by its form let all of it through",
            )


def artefacts(facts: Facts) -> Iterator[Finding]:
    """Signs of badly cleaned text in more than 5 % of the final texts."""
    point = facts.statistics.point("final") if facts.statistics else None
    for artefact in point.artefacts if point and point.total else ():
        if point and point.total and artefact.documents > max(FEW, ARTEFACT * point.total.documents):
            yield Finding(
                f"{share(artefact.documents, point.total.documents)} of the final texts still have {artefact.name} "
                f"({artefact.meaning}).",
                "artefacts",
            )


def poorly_encoded(facts: Facts) -> Iterator[Finding]:
    """A source or language that takes half as many tokens again per byte as the whole."""
    point = facts.statistics.point("published") if facts.statistics else None
    if point is None or point.total is None or not point.total.tokens or not point.total.bytes:
        return
    usual = point.total.tokens / point.total.bytes
    for category in point.categories:
        for value in category.values:
            density = (value.tokens or 0) / value.bytes if value.bytes else 0.0
            if value.documents >= FEW and density > POORLY * usual:
                yield Finding(
                    f"The tokenizer fits {named(category, value)} poorly: {density:.3f} tokens per byte, "
                    f" {usual:.3f} over all.",
                    "classes",
                    "learn the tokenizer from a sample with more of it",
                )


def chains(facts: Facts) -> Iterator[Finding]:
    """A group of near duplicates so large that it may be a chain of documents that are not alike."""
    clusters = facts.statistics.clusters if facts.statistics else None
    for cluster in clusters or ():
        stage = compared_by(facts, cluster.scope)
        compared = stage.entered if stage else 0
        if compared >= FEW and cluster.largest > max(FEW, CHAIN * compared):
            yield Finding(
                f"{cluster.scope} joined {cluster.largest:,} documents ({share(cluster.largest, compared)} of those "
                "compared) in one group.",
                "duplicates",
                "such a group is a template or a chain; removals/ lists its members with their similarities",
            )


def lengths(facts: Facts) -> Iterator[Finding]:
    """Documents that have become longer or shorter on the way."""
    before, after = (facts.statistics.point(name) if facts.statistics else None for name in ("extracted", "published"))
    if before is None or after is None:
        return
    first, last = (median(point, "text-bytes") for point in (before, after))
    if first and last and abs(last / first - 1) > CUT:
        direction = "longer" if last > first else "shorter"
        yield Finding(
            f"What stays is {direction} than what was extracted: the median document has {show(last, 'bytes')} instead "
            f"of {show(first, 'bytes')}.",
            "distributions",
            warns=False,
        )


def contamination(facts: Facts) -> Iterator[Finding]:
    """What stages found by name: benchmarks' items, personal data."""
    for stage in facts.stages:
        for group, (items, documents) in stage.found.items():
            yield Finding(
                f"{stage.name} found {items:,} items of {group} in {documents:,} documents.", "found", warns=False
            )


def never_used(facts: Facts) -> Iterator[Finding]:
    """Stages that have reasons to drop documents and dropped none."""
    idle = [
        stage.name
        for stage in facts.stages
        if stage.entered >= FEW
        and not stage.dropped
        and (declared := facts.declared.get(stage.name)) is not None
        and declared.reasons
    ]
    if idle:
        yield Finding(f"Dropped nothing, though they could: {', '.join(idle)}.", "reasons", warns=False)


def words_of(facts: Facts, stage: str, reason: str) -> tuple[str, str]:
    """(meaning, advice) of a reason, "" where it is not declared."""
    declared = facts.declared.get(stage)
    for each in declared.reasons if declared else ():
        if each.name == reason:
            return each.meaning, "" if each.advice == "nothing" else each.advice
    return "", ""


def named(category: Category, value: Value) -> str:
    """A value in words."""
    return f"{category.name} {value.value}" if value.value else f"documents without {category.name}"


def compared_by(facts: Facts, scope: str) -> StageCounts | None:
    """The stage that joined the clusters of a scope: its name, or that of its reason."""
    for stage in facts.stages:
        declared = facts.declared.get(stage.name)
        if scope == stage.name or (declared and scope in (reason.name for reason in declared.reasons)):
            return stage
    return None


def lost_most(stages: Iterable[StageCounts]) -> StageCounts | None:
    """The stage that lost the most bytes of text. Not of reading and extraction, which change what a byte is."""
    texts = [stage for stage in stages if stage.name not in ("read", "extract")]
    return max(texts, key=lambda stage: stage.entered_bytes - stage.kept_bytes, default=None)


Rule = Callable[[Facts], Iterator[Finding]]
RULES: tuple[Rule, ...] = (
    *(dead_letters, poor_sources, large_reasons, unlike_shards, hosts, artefacts, poorly_encoded, chains),
    *(dear_stages, lengths, contamination, never_used),
)
