"""The report of a run as one page of HTML: what deserves attention first, then the funnel, then everything else."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from refinery.pipelines.recipe.quantities.quantity import show
from refinery.pipelines.reports.pages.chart_library import VERSION, licence
from refinery.pipelines.reports.pages.charts import Chart, chart_data, chart_scripts
from refinery.pipelines.reports.pages.markup import Html, el, prose
from refinery.pipelines.reports.pages.page import own_file, page
from refinery.pipelines.reports.pages.tabs import Panel, tab_bar, tab_panels, tab_script
from refinery.pipelines.reports.run import breakdown, distributions, loss_view, tables
from refinery.pipelines.reports.run.attention import Finding, findings
from refinery.pipelines.reports.run.facts import Facts
from refinery.pipelines.reports.run.funnel_view import funnel_section, reasons_section
from refinery.pipelines.reports.run.sample_view import sample_keys, sample_section
from refinery.pipelines.reports.run.words import count, moment, seconds, share

TITLES = {
    "funnel": "Funnel",
    "reasons": "Reasons",
    "losses": "Losses by source",
    "dropped-classes": "Classes of dropped documents",
    "dropped-scores": "Scores",
    "duplicates": "Duplicates",
    "dead": "Dead letters",
    "samples": "Documents",
    "sources": "Sources",
    "classes": "Languages",
    "hosts": "Hosts",
    "artefacts": "Artefacts",
    "found": "Found",
    "distributions": "Distributions",
    "shards": "Shards",
    "cost": "Time and cost",
    "run": "Recipe",
}
QUOTES = "This page quotes texts that the recipe dropped. It is no part of the corpus. Read it before you pass it on."
# Tabs: anchor -> title, and the sections in it.
TABS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "overview": ("Overview", ("attention", "funnel")),
    "lost": ("What was lost", ("reasons", "losses", "dropped-classes", "dropped-scores", "duplicates", "dead")),
    "documents": ("Documents", ("samples",)),
    "content": ("Content", ("sources", "classes", "hosts", "artefacts", "found")),
    "numbers": ("Distributions", ("distributions",)),
    "run-facts": ("Run", ("cost", "shards", "run")),
}


def report_page(facts: Facts) -> str:
    """The page. Its size is bounded: so are all facts."""
    charts: list[Chart] = []

    def with_charts(drawn: tuple[Html | None, list[Chart]]) -> Html | None:
        charts.extend(drawn[1])
        return drawn[0]

    keys = sample_keys(facts)
    sections = {
        "funnel": funnel_section(facts),
        "reasons": reasons_section(facts, keys),
        "losses": with_charts(loss_view.loss_section(facts)),
        "dropped-classes": loss_view.language_section(facts),
        "dropped-scores": with_charts(loss_view.score_section(facts)),
        "sources": breakdown.source_section(facts),
        "classes": with_charts(breakdown.category_section(facts)),
        "hosts": with_charts(breakdown.host_section(facts)),
        "artefacts": with_charts(breakdown.artefact_section(facts)),
        "duplicates": tables.duplicate_section(facts),
        "found": tables.found_section(facts),
        "distributions": with_charts(distributions.distribution_section(facts)),
        "shards": tables.shard_section(facts),
        "cost": with_charts(tables.cost_section(facts)),
        "samples": sample_section(facts),
        "dead": tables.dead_section(facts),
        "run": tables.run_section(facts),
    }
    there = [name for name, section in sections.items() if section is not None]
    sections["attention"] = _attention(facts, there)
    panels = [
        Panel(name, title, [_parts(names, there), *map(sections.get, names)]) for name, (title, names) in TABS.items()
    ]
    body = (
        el(
            "header",
            el("p", "Report of a corpus", class_="eyebrow"),
            el("h1", facts.manifest.name),
            el("p", headline(facts), class_="headline"),
            el("p", QUOTES, class_="caution") if facts.quotes else None,
            _when(facts),
        ),
        el("main", _totals(facts), tab_bar(panels), tab_panels(panels)),
        el(
            "footer",
            el("p", f"Of {facts.where}, fingerprint ", el("code", facts.manifest.fingerprint[:16]), "."),
            el("details", el("summary", f"Charts: Chart.js {VERSION}, its licence"), el("pre", licence())),
        ),
    )
    data = {"charts": chart_data(charts)}
    scripts = [tab_script(), *chart_scripts(), own_file("report.js", __package__)]
    return page(f"{facts.manifest.name}: report", body, data, [own_file("report.css", __package__)], scripts)


def _parts(names: Iterable[str], there: Sequence[str]) -> Html | None:
    """Links to the sections of a tab, where there are several."""
    links = [el("a", TITLES[name], href=f"#{name}") for name in names if name in there]
    return el("p", links, class_="parts") if links else None


def headline(facts: Facts) -> str:
    """The run in a sentence or two."""
    totals, stages = facts.manifest.totals, facts.stages
    if not stages or not stages[0].entered:
        return "Nothing was read."
    read = stages[0]
    said = (
        f"Of {read.entered:,} records read, {totals['documents']:,} documents stay "
        f"({share(totals['documents'], read.entered)}): {show(totals['bytes'], 'bytes')} of text"
    )
    said += f", {show(totals['tokens'], 'tokens')}." if facts.manifest.has_tokens else "."
    most = max(facts.of_texts, key=lambda stage: stage.entered_bytes - stage.kept_bytes, default=None)
    if most and most.entered_bytes > most.kept_bytes:
        lost = most.entered_bytes - most.kept_bytes
        said += (
            f" The {most.name} stage removes the most clean text: {show(lost, 'bytes')}, "
            f"{share(lost, most.entered_bytes)} of what enters it."
        )
    return said


def _when(facts: Facts) -> Html | None:
    """When the run started, and how long it took by the clock, pauses included."""
    if facts.times is None:
        return None
    started, ended = facts.times
    return el("p", f"Started {moment(started)}, ended {moment(ended)}: {seconds(ended - started)} by the clock.")


def _totals(facts: Facts) -> Html:
    """The numbers that everybody asks for."""
    totals, stages = facts.manifest.totals, facts.stages
    read = stages[0] if stages else None
    work, tokens = sum(facts.seconds.values()), totals.get("tokens")
    pairs = [
        ("documents", count(totals["documents"])),
        *([("tokens", show(tokens, "tokens").removesuffix("tokens").strip())] if tokens is not None else []),
        ("of text", show(totals["bytes"], "bytes")),
        ("of records read", share(totals["documents"], read.entered) if read else "–"),
        *([("bytes per token", f"{totals['bytes'] / tokens:.2f}" if tokens else "–")] if tokens is not None else []),
        ("of core time", seconds(work) if work else "–"),
        ("for the cores", tables.dollars(work, facts.price) if work else "–"),
    ]
    return el("dl", [el("div", el("dt", label), el("dd", value)) for label, value in pairs], class_="totals")


def _attention(facts: Facts, there: list[str]) -> Html:
    """What to look at first."""
    found = findings(facts)
    warnings = sum(1 for finding in found if finding.warns)
    lines = list(_lines(found, there))
    missing = el("details", el("summary", "not in this report"), el("ul", [el("li", each) for each in facts.missing]))
    return el(
        "section",
        el("h2", "What deserves attention"),
        el("ul", lines, class_="findings") if lines else None,
        el("p", "Nothing stands out by the rules of this page.") if not warnings else None,
        missing if facts.missing else None,
        id="attention",
    )


def _lines(found: list[Finding], there: list[str]) -> Iterator[Html]:
    for finding in found:
        link = el("a", TITLES[finding.section], href=f"#{finding.section}") if finding.section in there else None
        yield el(
            "li",
            el("span", "look" if finding.warns else "note", class_="tag"),
            el(
                "span",
                prose(finding.text),
                el(
                    "small",
                    [finding.advice[:1].upper(), prose(finding.advice[1:]), ". "] if finding.advice else None,
                    ["See ", link, "."] if link else None,
                ),
            ),
            class_="warns" if finding.warns else "notes",
        )
