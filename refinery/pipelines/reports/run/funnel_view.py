"""The funnel as bands that narrow, a stage a row, and the reasons of each stage."""

from collections.abc import Sequence

from refinery.pipelines.recipe.quantities.quantity import show
from refinery.pipelines.reports.pages.markup import Html, el, prose
from refinery.pipelines.reports.run.attention import words_of
from refinery.pipelines.reports.run.facts import Facts, StageCounts
from refinery.pipelines.reports.run.words import count, seconds, share

HEIGHT = 20  # of a band, in units of its drawing; 100 are its width
MOST_REASONS = 50  # of a stage
UNITS = ("documents", "text")


def funnel_section(facts: Facts) -> Html:
    """Documents, bytes, tokens, retention and seconds of each stage."""
    read = facts.stages[0] if facts.stages else None
    density = tokens_per_byte(facts)
    has_tokens = facts.manifest.has_tokens
    head = ["stage", "", "documents", "text", *(["tokens"] if has_tokens else []), "kept", "of read", "core time"]
    texts = facts.of_texts
    whole = texts[0].entered_bytes if texts else 0
    made = len(facts.stages) - len(texts) - 1  # the stage that makes texts
    rows = [
        _row(
            *(stage, read, whole if stage in texts else 0),
            _tokens(facts, stage, density if place >= made else 0.0) if has_tokens else None,
        )
        for place, stage in enumerate(facts.stages)
        if read
    ]
    return el(
        "section",
        el("h2", "The funnel"),
        el(
            "fieldset",
            el("legend", "Bands show"),
            [
                el("label", el("input", type="radio", name="bands", value=unit, checked=unit == UNITS[0]), unit)
                for unit in UNITS
            ],
            class_="choice",
        ),
        el(
            "table",
            el("thead", el("tr", [el("th", each, scope="col") for each in head])),
            el("tbody", rows),
            class_="funnel",
        ),
        el(
            "p",
            "A row shows what a stage kept. “kept” is the share of the documents that entered it, “of read” of all "
            "records read; “created” counts documents made by splitting. Text is what the stage hands on, in UTF-8. "
            "Before extraction that is HTML, which the text bands leave out. ",
            f"Tokens are estimated at {density:.3f} per byte, except in the last row." if density else None,
        ),
        id="funnel",
    )


def tokens_per_byte(facts: Facts) -> float:
    """Of the published texts; 0 without any, and in a corpus of texts."""
    totals = facts.manifest.totals
    return float(totals.get("tokens", 0) / totals["bytes"]) if totals["bytes"] else 0.0


def _tokens(facts: Facts, stage: StageCounts, density: float) -> str:
    """Estimated, but for the last stage; "–" where there are no texts yet."""
    if stage is facts.stages[-1] and facts.manifest.has_tokens:
        return show(facts.manifest.totals["tokens"], "tokens").removesuffix("tokens").strip()
    return f"≈ {show(stage.kept_bytes * density, 'tokens').removesuffix('tokens').strip()}" if density else "–"


def _row(stage: StageCounts, read: StageCounts, texts: int, tokens: str | None) -> Html:
    """texts: bytes of the texts before the first stage that judges them; 0 for a stage before that. tokens: None in a
    corpus of texts."""
    cells = [
        ("documents", el("span", count(stage.kept), note(f"−{stage.lost:,}" if stage.lost > 0 else ""))),
        ("text", show(stage.kept_bytes, "bytes")),
        *([("tokens", tokens)] if tokens is not None else []),
        ("kept", share(stage.kept, stage.entered + stage.created)),
        ("of read", share(stage.kept, read.entered)),
        ("core time", seconds(stage.seconds)),
    ]
    return el(
        "tr",
        el("th", stage.name, note(f"+{stage.created:,} created" if stage.created else ""), scope="row"),
        el(
            "td",
            band(stage.entered, stage.kept, read.entered, UNITS[0]),
            band(stage.entered_bytes, stage.kept_bytes, texts, UNITS[1])
            if texts
            else el("small", "not text yet", class_="band text"),
            class_="bands",
        ),
        [el("td", value, data_label=label) for label, value in cells],
    )


def note(text: str | Html) -> Html | None:
    """What stands smaller beside a number."""
    return el("small", text) if text else None


def band(entered: float, kept: float, whole: float, unit: str) -> Html:
    """What enters a stage at the top, what it keeps at the bottom, on a light ground of what it lost."""
    top, bottom = (100 * min(1.0, value / whole) if whole else 0.0 for value in (entered, kept))

    def points(upper: float, lower: float) -> str:
        edges = ((-upper, 0), (upper, 0), (lower, HEIGHT), (-lower, HEIGHT))
        return " ".join(f"{50 + x / 2:.2f},{y}" for x, y in edges)

    return el(
        "svg",
        el("polygon", points=points(top, top), class_="lost"),
        el("polygon", points=points(top, bottom), class_="left"),
        viewBox=f"0 0 100 {HEIGHT}",
        preserveAspectRatio="none",
        class_=f"band {unit}",
        aria_hidden="true",
    )


def bar(part: float, whole: float) -> Html:
    """A bar in a cell of a table."""
    width = 100 * min(1.0, part / whole) if whole else 0.0
    return el(
        "svg",
        el("rect", width="100", height="8", class_="lost"),
        el("rect", width=f"{width:.2f}", height="8", class_="left"),
        viewBox="0 0 100 8",
        preserveAspectRatio="none",
        class_="bar",
        aria_hidden="true",
    )


def reasons_section(facts: Facts, samples: Sequence[tuple[str, str]]) -> Html:
    """What each stage dropped, by reason, with the words of its declaration. samples: (stage, reason) of which the
    page has examples, in the order of its anchors."""
    shares = [documents / stage.entered for stage in facts.stages for documents, _ in stage.dropped.values()]
    groups = [_reasons(facts, stage, samples, max(shares)) for stage in facts.stages if stage.dropped]
    head = ("reason", "", "documents", "share", "text", "if that is too much")
    return el(
        "section",
        el("h2", "Why documents were dropped"),
        el("p", "Shares refer to the documents that entered the stage; the longest bar is the largest share."),
        el("table", el("thead", el("tr", [el("th", each, scope="col") for each in head])), groups, class_="reasons")
        if groups
        else el("p", "Nothing was dropped."),
        id="reasons",
    )


def _reasons(facts: Facts, stage: StageCounts, samples: Sequence[tuple[str, str]], largest: float) -> Html:
    lost = sum(documents for documents, _ in stage.dropped.values())
    declared = facts.declared.get(stage.name)
    rows = []
    for reason, (documents, size) in list(stage.dropped.items())[:MOST_REASONS]:
        meaning, advice = words_of(facts, stage.name, reason)
        key = stage.name, reason
        link = el("a", "examples", href=f"#sample-{samples.index(key)}") if key in samples else None
        rows.append(
            el(
                "tr",
                el("th", el("span", reason, class_="name"), note(prose(meaning)), scope="row"),
                el("td", bar(documents, stage.entered * largest), class_="bars"),
                el("td", count(documents)),
                el("td", share(documents, stage.entered)),
                el("td", show(size, "bytes")),
                el("td", el("span", prose(advice), " " if advice else None, link, class_="words"), class_="advice"),
            )
        )
    more = len(stage.dropped) - MOST_REASONS
    said = f" drops {lost:,} of {stage.entered:,} documents ({share(lost, stage.entered)})."
    title = [el("b", stage.name), said, note(prose(declared.summary)) if declared else None]
    last = el("tr", el("td", f"and {more} more reasons, in manifest.json", colspan=6)) if more > 0 else None
    return el("tbody", el("tr", el("th", title, colspan=6, scope="rowgroup"), class_="stage"), rows, last)
