"""What deserves attention in a run, in words: rules over its counts, each with a threshold that this file says.

The thresholds are about what a person would want to know, not about what is wrong: a crawl is meant to lose most of
its pages.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from refinery.pipelines.published.statistics.published import Category, Value
from refinery.pipelines.recipe.quantities.quantity import show
from refinery.pipelines.reports.run.facts import Facts, StageCounts
from refinery.pipelines.reports.run.words import median, share

MOST = 8  # sentences by one rule
FEW = 20  # documents about which a share says nothing
LEAST = 10  # documents of which something is wrong: fewer give no warning
MUCH = 0.3  # of what enters a stage, lost to one reason
LONGER, TEXT = 2.5, 0.02  # times the mean length of what enters a stage, and of its text, lost to one reason
LITTLE = 0.05  # of a source's documents, kept
DEAD = 0.001  # of what enters a stage, dead letters
ALIKE = 0.01  # of a p-value, divided by the number of tests (Bonferroni)
COSTLY = 0.05  # of all seconds, in a stage that drops less than one in a hundred
HOST = 0.1  # of the documents with an address, from one host
NAMED = 3  # hosts in one sentence
RISEN = 3.0  # times: a host's share of what stays over its share of what was read
ARTEFACT = 0.05  # of the final documents
POORLY = 1.5  # times the least tokens per byte: a language or source that the tokenizer fits poorly
LARGE = 0.05  # of all bytes: languages and sources whose tokens per byte are compared
LONGEST = 0.05  # of the documents
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
    """Everything worth saying, warnings first, in the order of the rules below; of a rule at most eight sentences, the
    last of which says how many more there are."""
    found: list[Finding] = []
    for rule in RULES:
        said = list(rule(facts))
        if len(said) > MOST:
            more = len(said) - MOST + 1
            said = [*said[: MOST - 1], replace(said[-1], text=f"And {more:,} more of this kind.", advice="")]
        found += said
    return sorted(found, key=lambda finding: not finding.warns)


def large_reasons(facts: Facts) -> Iterator[Finding]:
    """A reason that takes more than 30 % of what enters its stage."""
    for stage in facts.stages:
        pages = stage.entered - sum(stage.dropped[reason][0] for reason in NO_PAGES if reason in stage.dropped)
        for reason, (documents, _) in stage.dropped.items():
            if reason not in NO_PAGES and pages >= FEW and documents > max(LEAST, MUCH * pages):
                meaning, advice = words_of(facts, stage.name, reason)
                said = f" ({meaning})" if meaning else ""
                yield Finding(
                    f"The {stage.name} stage drops {share(documents, pages)} of what enters it as {reason}{said}.",
                    "reasons",
                    advice,
                )


def long_losses(facts: Facts) -> Iterator[Finding]:
    """Reasons that take few documents, but long ones: most of what they cost is hidden where documents are counted."""
    for stage in facts.of_texts:
        for reason, (documents, size) in stage.dropped.items():
            longer = size * stage.entered > LONGER * documents * stage.entered_bytes
            if (
                stage.entered >= FEW
                and documents >= LEAST
                and longer
                and size > TEXT * stage.entered_bytes
                and documents <= MUCH * stage.entered
            ):
                portion = share(size, stage.entered_bytes)
                times = size / documents / (stage.entered_bytes / stage.entered)
                meaning, advice = words_of(facts, stage.name, reason)
                yield Finding(
                    f"The {stage.name} stage drops only {documents:,} documents as {reason}, but they are "
                    f"{times:.1f} times as long as the mean and make up {portion} of the text"
                    f"{f' ({meaning})' if meaning else ''}.",
                    "reasons",
                    advice or "read its examples; rules made for short pages hit long ones by chance",
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
            said = f"; {most[1]} removes the most as {most[2]} ({share(most[0], pages)})" if most[0] else ""
            yield Finding(
                f"Source {source} keeps only {share(kept, pages)}, {kept:,} of {pages:,} documents{said}.",
                "sources",
                "read some of its rejects below; either the source is not worth its cost, or a rule does not suit it",
            )


def dead_letters(facts: Facts) -> Iterator[Finding]:
    """A stage that fails on more than one document in a thousand."""
    for stage in facts.stages:
        dead = sum(documents for documents, _ in stage.dead.values())
        if dead > DEAD * stage.entered and dead >= LEAST:
            errors = ", ".join(f"{error} {documents:,}" for error, (documents, _) in list(stage.dead.items())[:3])
            yield Finding(
                f"{dead:,} of the {stage.entered:,} documents that entered the {stage.name} stage failed "
                f"({share(dead, stage.entered)}): {errors}.",
                "dead",
                "run `refinery trace --origin` with one of the places below to learn more; fetch damaged inputs again",
            )


def damaged_inputs(facts: Facts) -> Iterator[Finding]:
    """Each input file that could not be read in whole."""
    for file in facts.damaged:
        yield Finding(
            f"An input file could not be read in whole: {file.line}.",
            "dead",
            "fetch it again; what stands behind the place where a file is cut is in no count",
        )


def unlike_shards(facts: Facts) -> Iterator[Finding]:
    """Shards that hold the values of a category in different shares."""
    shards = facts.statistics.shards if facts.statistics else None
    tests = [test for test in shards.tests if test.degrees_of_freedom] if shards else []
    for test in tests:
        if test.p_value < ALIKE / len(tests):
            yield Finding(
                f"The shards differ in {test.category} more than chance explains (p = {test.p_value:.2g}).",
                "shards",
                "documents are dealt to shards by hash, so this should not happen; run `refinery verify` and report it",
            )


def dear_stages(facts: Facts) -> Iterator[Finding]:
    """Stages that take time and drop next to nothing, though dropping is all that they do."""
    total = sum(facts.seconds.values())
    dear = []
    for stage in facts.of_texts:
        lost = sum(documents for documents, _ in stage.dropped.values())
        size = sum(size for _, size in stage.dropped.values())
        changes = stage.entered_bytes - size != stage.kept_bytes  # then it is there to redact or cut texts
        declared = facts.declared.get(stage.name)
        if not (total and stage.seconds and declared and declared.reasons) or changes or stage.entered < FEW:
            continue
        if stage.seconds > COSTLY * total and lost < 0.01 * stage.entered:
            dear.append(f"{stage.name} ({share(stage.seconds, total)} of it, {lost:,} of {stage.entered:,} dropped)")
    if dear:
        yield Finding(f"Stages that take much core time and drop little: {', '.join(dear)}.", "cost", warns=False)


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
    large = [host for host in after.hosts.top if host.documents > max(LEAST, HOST * addressed)]
    if large:
        named_hosts = ", ".join(f"{host.host} ({share(host.documents, addressed)})" for host in large[:NAMED])
        more = f" and {len(large) - NAMED} more" if len(large) > NAMED else ""
        yield Finding(
            f"A few hosts have a large share of the published documents: {named_hosts}{more}.",
            "hosts",
            "a model will see much of these sites; block or sample them if that is too much",
        )
    for host in after.hosts.top:
        portion = host.documents / addressed
        former = read[host.host] / with_host if with_host and host.host in read else 0.0
        if former > 0 and portion > RISEN * former and portion > HOST / 10 and host.documents >= LEAST:
            yield Finding(
                f"{host.host} has {share(portion)} of the published documents, but only {share(former)} of the "
                "extracted ones: the rules favour it.",
                "hosts",
                "read some of it; a site that suits the rules by its form passes them as a whole",
            )


def artefacts(facts: Facts) -> Iterator[Finding]:
    """Signs of badly cleaned text in more than 5 % of the final texts, or in more of them than of those extracted."""
    before, after = (facts.statistics.point(name) if facts.statistics else None for name in ("extracted", "final"))
    if after is None or not after.total:
        return
    former = {each.name: each.documents for each in before.artefacts} if before else {}
    read = before.total.documents if before and before.total else 0
    for each in after.artefacts:
        portion = each.documents / max(1, after.total.documents)
        first = former.get(each.name, 0) / read if read else portion
        risen = each.documents >= FEW and portion > RISEN * first
        if each.documents >= FEW and (portion > ARTEFACT or risen):
            was = f" ({share(first)} of the extracted ones)" if read else ""
            yield Finding(
                f"{share(portion)} of the final texts have {each.name}{was}: {each.meaning}.",
                "artefacts",
                "a stage inserts it; look at its placeholders in the documents below" if risen else "",
            )


def poorly_encoded(facts: Facts) -> Iterator[Finding]:
    """Languages or sources that take half as many tokens again per byte as the one that the tokenizer fits best."""
    point = facts.statistics.point("published") if facts.statistics else None
    if point is None or point.total is None or not point.total.bytes:
        return
    for category in point.categories:
        known = [(value, value.tokens / value.bytes) for value in category.values if value.bytes and value.tokens]
        large = [pair for pair in known if pair[0].bytes > LARGE * point.total.bytes and pair[0].documents >= FEW]
        if len(large) < 2:
            continue
        best, least = min(large, key=lambda pair: pair[1])
        poor = [f"{named(category, value)} ({density:.2f})" for value, density in large if density > POORLY * least]
        if poor:
            yield Finding(
                f"The tokenizer fits {', '.join(poor)} poorly (tokens per byte; {named(category, best)} "
                f"has {least:.2f}).",
                "classes",
                "train it on a sample with more of them (`refinery train-tokenizer --share`)",
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
            f"Published documents are {direction} than extracted ones: their median is {show(last, 'bytes')} instead "
            f"of {show(first, 'bytes')}.",
            "distributions",
            warns=False,
        )


def classes(facts: Facts) -> Iterator[Finding]:
    """What the corpus mostly consists of."""
    point = facts.statistics.point("published") if facts.statistics else None
    for category in point.categories if point and point.total and point.total.documents >= FEW else ():
        if category.name != "source" and point and point.total and category.distinct > 1:
            most = [
                f"{value.value or 'unknown'} {share(value.documents, point.total.documents)}"
                for value in category.values[:NAMED]
            ]
            more = f" and {category.distinct - NAMED:,} more" if category.distinct > NAMED else ""
            yield Finding(
                f"Documents by {category.name.replace('_', ' ')}: {', '.join(most)}{more}.", "classes", warns=False
            )


def long_documents(facts: Facts) -> Iterator[Finding]:
    """How much of all tokens the longest twentieth of the documents holds, from the bins of their lengths."""
    point = facts.statistics.point("published") if facts.statistics else None
    for series in point.series if point else ():
        if series.unit != "tokens" or series.all.documents < FEW:
            continue
        wanted = LONGEST * series.all.documents
        held = total = 0.0
        for lower, upper, documents in reversed(series.all.bins):
            mean = (lower + upper) / 2
            total += mean * documents
            held += mean * min(documents, max(0.0, wanted))
            wanted -= documents
        yield Finding(
            f"The longest {LONGEST:.0%} of the documents have about {share(held, total)} of the tokens.".replace(
                "%", " %", 1
            ),
            "distributions",
            warns=False,
        )


def gone_hosts(facts: Facts) -> Iterator[Finding]:
    """Hosts of which nothing stays."""
    before, after = (facts.statistics.point(name) if facts.statistics else None for name in ("extracted", "published"))
    if before and after and before.hosts and after.hosts and before.hosts.distinct >= FEW:
        gone = before.hosts.distinct - after.hosts.distinct
        if gone > 0 and (before.hosts.distinct_low > after.hosts.distinct_high):
            about = "" if before.hosts.exact and after.hosts.exact else "about "
            portion = share(gone, before.hosts.distinct)
            yield Finding(
                f"{gone:,} of {about}{before.hosts.distinct:,} hosts have no document left ({portion}).",
                "hosts",
                warns=False,
            )


def contamination(facts: Facts) -> Iterator[Finding]:
    """What stages found by name: benchmarks' items, say."""
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
        yield Finding(f"Stages that could drop documents and dropped none: {', '.join(idle)}.", "reasons", warns=False)


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


Rule = Callable[[Facts], Iterator[Finding]]
RULES: tuple[Rule, ...] = (
    *(
        dead_letters,
        damaged_inputs,
        poor_sources,
        large_reasons,
        long_losses,
        unlike_shards,
        hosts,
        artefacts,
        poorly_encoded,
        chains,
    ),
    *(contamination, classes, lengths, long_documents, gone_hosts, dear_stages, never_used),
)
