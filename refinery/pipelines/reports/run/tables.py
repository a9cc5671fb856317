"""Duplicates, what was found, shards, time and cost, dead letters, recipe: sections that are mostly tables."""

import json
from collections import Counter
from typing import Any

from refinery.pipelines.recipe.quantities.prices import PRICES
from refinery.pipelines.recipe.quantities.quantity import show, three_digits
from refinery.pipelines.reports.pages.charts import Chart, figure
from refinery.pipelines.reports.pages.markup import Html, el
from refinery.pipelines.reports.pages.page import table
from refinery.pipelines.reports.run.attention import ALIKE, compared_by
from refinery.pipelines.reports.run.distributions import top
from refinery.pipelines.reports.run.facts import Facts
from refinery.pipelines.reports.run.words import MEDIAN, count, seconds, share

ROWS = 40
BARS = 16
CENT = 0.01
MOST_RECIPE = 20_000  # characters of the recipe that are shown


def duplicate_section(facts: Facts) -> Html | None:
    """What deduplication removed, and the groups that near-duplicate detection joined."""
    clusters = facts.statistics.clusters if facts.statistics else None
    names = {stage.name for stage in facts.manifest.stages if stage.phase == "dedup"}
    stages = [stage for stage in facts.stages if stage.name in names]
    if not stages:
        return None
    rows = [
        [
            *(stage.name, count(stage.entered), count(stage.lost), share(stage.lost, stage.entered)),
            show(stage.entered_bytes - stage.kept_bytes, "bytes"),
        ]
        for stage in stages
    ]
    joined = []
    for each in clusters or ():
        stage = compared_by(facts, each.scope)
        joined.append(
            [
                *(each.scope, count(each.components), count(each.documents), count(each.largest)),
                three_digits(each.documents / each.components) if each.components else "–",
                share(each.documents, stage.entered) if stage else "–",
            ]
        )
    return el(
        "section",
        el("h2", "Duplicates"),
        table(["stage", "documents compared", "removed", "share", "text removed"], rows),
        el("h3", "Groups of near duplicates") if joined else None,
        table(["compared", "groups", "documents in them", "largest", "mean size", "of all compared"], joined)
        if joined
        else None,
        id="duplicates",
    )


def found_section(facts: Facts) -> Html | None:
    """What stages redacted, counted by document, and what they found by name, as items of benchmarks."""
    rows = [
        [f"{stage.name}: {group}", count(items), count(documents), share(documents, stage.entered)]
        for stage in facts.stages
        for group, (items, documents) in stage.found.items()
    ]
    more = f"and {len(rows) - ROWS:,} more, in manifest.json" if len(rows) > ROWS else None
    point = facts.statistics.point("published") if facts.statistics else None
    notes = {note.name for stage in facts.declared.values() for note in stage.notes if note.type is int}
    counted = [
        [
            el("span", series.name, el("small", series.meaning)),
            *(count(series.all.documents), share(series.all.documents, point.total.documents)),
            *(three_digits(number or 0.0) for number in (series.all.quantiles[MEDIAN], series.all.most)),
        ]
        for series in (point.series if point else ())
        if point and point.total and series.name in notes and 0 < series.all.documents < point.total.documents
    ]
    if not rows and not counted:
        return None
    return el(
        "section",
        el("h2", "Redacted and found"),
        table(["counted in documents that stay", "documents", "of all", "median", "most"], counted)
        if counted
        else None,
        el("h3", "Found by name") if rows and counted else None,
        table(["what", "different items", "documents", "of those looked at"], rows[:ROWS]) if rows else None,
        el("p", more) if more else None,
        id="found",
    )


def shard_section(facts: Facts) -> Html:
    """Sizes of the shards, and whether they are alike."""
    unit = "tokens" if facts.manifest.has_tokens else "documents"
    sizes = [getattr(shard, unit) for shard in facts.manifest.shards if shard.split == "train"]
    units = list(dict.fromkeys(["documents", unit]))
    splits: dict[str, Counter[str]] = {}
    for shard in facts.manifest.shards:
        numbers = {"shards": 1, **{each: getattr(shard, each) for each in units}}
        splits.setdefault(f"{shard.split}/{shard.domain}", Counter()).update(numbers)
    rows = [[name, *(count(splits[name][each]) for each in ("shards", *units))] for name in sorted(splits)[:ROWS]]
    said = f"Shards of “train” have {count(min(sizes))} to {count(max(sizes))} {unit}." if sizes else "There are none."
    return el(
        "section",
        el("h2", "Shards"),
        el("p", said, f" The first {ROWS} splits are listed." if len(splits) > ROWS else None),
        table(["split and domain", "shards", *units], rows),
        _tests(facts),
        id="shards",
    )


def _tests(facts: Facts) -> Html | None:
    shards = facts.statistics.shards if facts.statistics else None
    if shards is None:
        return None
    limit = ALIKE / max(1, sum(1 for test in shards.tests if test.degrees_of_freedom))
    rows = []
    for test in shards.tests:
        alike = "alike" if test.p_value >= limit else "NOT alike"
        verdict = alike if test.degrees_of_freedom else "nothing to compare"
        numbers = (three_digits(test.statistic), count(test.degrees_of_freedom), three_digits(test.p_value))
        rows.append([test.category, count(test.documents), *numbers, verdict])
    unlike = [row for row in rows if row[-1] == "NOT alike"]
    conclusion = "They differ by more than chance explains." if unlike else "There is no sign that they differ."
    return el(
        "div",
        el("h3", "Are the shards alike?"),
        el(
            "p",
            el("b", conclusion),
            f" Pearson's chi-squared test over {shards.tested:,} of {shards.shards:,} shards, for each category. p is "
            f"how often chance gives differences as large. Below {three_digits(limit)} (0.01 divided by the number of "
            "tests) the shards count as different.",
        ),
        table(["category", "documents", "χ²", "degrees of freedom", "p", "shards are"], rows),
    )


def cost_section(facts: Facts) -> tuple[Html | None, list[Chart]]:
    """Seconds, throughput and cost of each part of the work."""
    total = sum(facts.seconds.values())
    if not total:
        return None, []
    stages = {stage.name: stage for stage in facts.stages}
    rows = []
    for name in top(facts.seconds.items(), ROWS):
        took, stage = facts.seconds[name], stages.get(name)
        rate = speed = million = "–"
        if stage and stage.entered and took:
            rate = three_digits(stage.entered / took)
            speed = show(stage.entered_bytes / took, "bytes/s")
            million = dollars(took / stage.entered * 1e6, facts.price)
        rows.append([name, seconds(took), share(took, total), rate, speed, million, dollars(took, facts.price)])
    rows.append(["all", seconds(total), "100 %", "", "", "", dollars(total, facts.price)])
    drawn = top(facts.seconds.items(), BARS)
    chart = Chart(
        *("seconds", "Core time by part of the work", drawn, {"seconds": [facts.seconds[name] for name in drawn]}),
        *("bars", "part", "seconds"),
    )
    tokens = facts.manifest.totals.get("tokens")
    price = PRICES["core_hour_price"]
    noted = f" (list price noted {price.noted}, not verified)" if facts.price == price.dollars else ""
    section = el(
        "section",
        el("h2", "Time and cost"),
        el(
            "p",
            f"{seconds(total)} of work on one core, {dollars(total, facts.price)} at ${facts.price:g} per core "
            f"hour{noted}",
            f", {dollars(total * 1e9 / tokens, facts.price)} per billion tokens" if tokens else None,
            ". Documents/s and speed are those of a core at work on the part. Idle cores, shuffles, starts and storage "
            "are not included; ",
            el("code", "refinery plan --from"),
            " estimates them.",
        ),
        figure(chart, rows=()),
        table(["part", "core time", "share", "documents/s", "speed", "per million documents", "cost"], rows),
        id="cost",
    )
    return section, [chart]


def dollars(time: float, price: float) -> str:
    """What seconds of a core cost."""
    cost = time / 3600 * price
    return show(cost, "dollars") if cost >= CENT or not cost else "< 1 ¢"


def dead_section(facts: Facts) -> Html | None:
    """What failed, and where."""
    rows: list[list[object]] = []
    for stage in facts.stages:
        for error, (documents, size) in list(stage.dead.items())[:ROWS]:
            places = facts.dead.get((stage.name, error), ())
            origins = el("span", [el("code", place, el("br")) for place in places], class_="words")
            what = f"{stage.name}: {error}"
            rows.append([what, count(documents), share(documents, stage.entered), show(size, "bytes"), origins])
    if not rows:
        return None
    return el(
        "section",
        el("h2", "Dead letters"),
        el("p", "Documents that could not be processed, and some of the places where they were read."),
        table(["stage and error", "documents", "of those entered", "size", "places"], rows),
        id="dead",
    )


def run_section(facts: Facts) -> Html:
    """Inputs, versions and the recipe."""
    manifest = facts.manifest
    inputs: dict[str, Counter[str]] = {}
    for entry in facts.run.get("inputs", ()):
        inputs.setdefault(str(entry["source"]), Counter()).update(files=1, bytes=int(entry["size"]))
    listed = top(((name, numbers["bytes"]) for name, numbers in inputs.items()), ROWS)
    files = [[name, count(inputs[name]["files"]), show(inputs[name]["bytes"], "bytes")] for name in listed]
    text = json.dumps(manifest.recipe, indent=1, sort_keys=True, ensure_ascii=False)
    shown_text = text if len(text) <= MOST_RECIPE else text[:MOST_RECIPE] + "\n… (all of it is in manifest.json)"
    facts_of_run: list[list[object]] = [
        ["lane", manifest.lane],
        ["fingerprint", el("code", manifest.fingerprint)],
        ["tokenizer", f"{manifest.tokenizer.vocab_size:,} ids, {manifest.dtype}"]
        if manifest.has_tokens
        else ["shards", f"texts, written by {manifest.written.writer}"],
        *(pair(name, str(value)) for name, value in sorted(manifest.versions.items())),
        *(pair(name, _plain(value)) for name, value in sorted(_environment(facts).items())),
    ]
    return el(
        "section",
        el("h2", "Recipe and versions"),
        table(["", "of this run"], facts_of_run),
        table(["source", "input files", "size"], files) if files else None,
        el(
            "details",
            el("summary", "stages and their versions"),
            table(["stage", "phase", "version"], _versions(facts)),
        ),
        el("details", el("summary", "the recipe"), el("pre", shown_text)),
        id="run",
    )


def pair(name: str, value: str) -> list[object]:
    """A row of two cells."""
    return [name, value]


def _environment(facts: Facts) -> dict[str, Any]:
    found = facts.run.get("environment", {})
    return found if isinstance(found, dict) else {}


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)


def _versions(facts: Facts) -> list[list[object]]:
    return [[stage.name, stage.phase, stage.version] for stage in facts.manifest.stages]
