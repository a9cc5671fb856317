"""`refinery compare --html`: a comparison as one page for a browser without a network.

Whatever comes from the corpora (addresses, reasons, names, settings) is text in it: `pages.markup`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from refinery.pipelines.corpus.compare.bars import bars, curves
from refinery.pipelines.corpus.compare.compare import Comparison, Documents, FateCount
from refinery.pipelines.corpus.compare.distributions import Distribution
from refinery.pipelines.corpus.compare.funnels import ReasonRow, StageRow
from refinery.pipelines.corpus.compare.joining.listing import Entry
from refinery.pipelines.corpus.compare.joining.overlap import Count
from refinery.pipelines.corpus.compare.words import (
    EXPLAINED,
    MEANS,
    NONE,
    PLACES,
    change,
    count_of,
    distance_words,
    fate_words,
    headline,
    number,
    share,
    size_change,
    tokens_of,
    value,
)
from refinery.pipelines.progress.words import human_bytes
from refinery.pipelines.reports.pages.markup import Html, el
from refinery.pipelines.reports.pages.page import own_file, page, table

REASONS = 40  # that moved most; all are in --json
BY_SOURCE = 200  # rows by source
SETTING = 400  # characters of a value


def compare_page(found: Comparison) -> str:
    """The page as HTML. Its size grows with stages, reasons, settings and the documents that are listed, not with the
    corpora."""
    body = (
        el("header", el("h1", "Two corpora compared"), el("p", headline(found), class_="headline")),
        el(
            "main",
            totals(found),
            documents(found.documents) if found.documents else None,
            funnel(found),
            settings(found),
            distributions(found.distributions),
        ),
        el("footer", el("p", "A is the first corpus of the command, B the second.")),
    )
    return page("Two corpora compared", body, styles=[own_file("page.css", __package__)])


def section(title: str, *children: object) -> Html:
    """A card of the page."""
    return el("section", el("h2", title), *children)


def key(*items: tuple[str, str]) -> Html:
    """What the colours mean: (class, words)."""
    shown = [el("li", el("svg", el("rect", class_=kind, width="100%", height="100%")), words) for kind, words in items]
    return el("ul", shown, class_="key")


A_AND_B = (("a", "A"), ("b", "B"))


def totals(found: Comparison) -> Html:
    """Which corpora, and how large."""
    sides = [(side.manifest.totals, side) for side in (found.a, found.b)]
    rows: list[Sequence[object]] = [
        ["lane", *(side.manifest.lane for _, side in sides), ""],
    ]
    for name in ("documents", "tokens", "bytes"):
        counts = [total[name] for total, _ in sides if name in total]
        if len(counts) == len(sides):
            rows.append([name, *(f"{count:,}" for count in counts), change(*counts)])
    related = found.relation.lines() if found.relation else ()
    notes = [el("p", note, class_="note") for note in (*related, *found.notes)]
    places = [el("p", el("b", side.label), " ", el("code", side.prefix)) for _, side in sides]
    return section("The two", places, table(["", "A", "B", "change"], rows), notes)


def documents(found: Documents) -> Html:
    """What became of every document."""
    lost = {label: found.lost(label) for label in "AB"}
    pairs = {"same": found.same, "cut": found.cut, "changed": found.changed}
    sums = [sum(pair[n].documents for pair in pairs.values()) + lost["AB"[n]].documents for n in (0, 1)]
    most = max(*sums, 1)
    parts = [[(what, pair[n].documents / most) for what, pair in pairs.items()] for n in (0, 1)]
    for n, side in enumerate("ab"):
        parts[n].append((side, lost[side.upper()].documents / most))
    counted = {**{MEANS[what]: pair for what, pair in pairs.items()}, MEANS["only"]: (lost["A"], lost["B"])}
    rows = [
        [words, *pair_cells(*pair, found.has_tokens)]
        for words, pair in counted.items()
        if any(each.documents for each in pair)
    ]
    moved = [
        el("p", f"{count:,} of these moved from {before} to {after} ({PLACES[which]})")
        for which, before, after, count in found.moves
    ]
    return el(
        "div",
        section(
            "Documents",
            key(*((what, MEANS[what]) for what in pairs), ("a", "only in A"), ("b", "only in B")),
            el("div", bars(parts, f"documents of A, {sums[0]:,}, and of B, {sums[1]:,}"), class_="pair"),
            table(
                ["", "in A", "in B", "bytes A", "bytes B", *(["tokens A", "tokens B"] if found.has_tokens else [])],
                rows,
            ),
            el(
                "details",
                el("summary", "What these mean"),
                [el("p", el("b", MEANS[what]), f": {said}") for what, said in EXPLAINED.items()],
            ),
            moved,
            el("p", f"{found.other_record:,} texts come from another record now.") if found.other_record else None,
            examples("Documents with another final text", found.entries["cut"]),
            examples("Pages with another text", found.entries["changed"]),
            examples("Documents in another split or domain", found.entries["moved"]),
        ),
        fates("A", "B", found.only["A"], lost["A"], found.has_tokens),
        fates("B", "A", found.only["B"], lost["B"], found.has_tokens),
        by_source(found),
    )


def pair_cells(a: Count, b: Count, has_tokens: bool) -> list[str]:
    """Documents, bytes and tokens of both."""
    return [
        *(f"{each.documents:,}" for each in (a, b)),
        *(human_bytes(each.bytes) for each in (a, b)),
        *(f"{each.tokens:,}" for each in (a, b) if has_tokens),
    ]


def fates(label: str, other: str, found: Sequence[FateCount], lost: Count, has_tokens: bool) -> Html | None:
    """Documents of one side alone, by what became of them on the other one."""
    if not lost.documents:
        return None
    largest = sorted(found, key=lambda each: -each.count.documents)
    rows = [
        [
            fate_words(each.fate),
            bars([[(label.lower(), part)]], share(part)),
            f"{each.count.documents:,}",
            share(part),
            *([f"{each.count.tokens:,}"] if has_tokens else []),
        ]
        for each in largest
        for part in (each.count.documents / lost.documents,)
    ]
    return section(
        f"Only in {label}: what became of them in {other}",
        table([f"in {other}", "", "documents", "share", *(["tokens"] if has_tokens else [])], rows),
        [[replayed(each), examples(fate_words(each.fate), each.entries, each)] for each in largest],
    )


def replayed(each: FateCount) -> Html | None:
    """What a replay of a sample says of documents whose rule no file names."""
    found = each.replays
    if found is None:
        return None
    rows: list[Sequence[object]] = [
        [rule.words, f"{rule.records:,}", f"{rule.low:,} to {rule.high:,}" if rule.low < rule.high else f"{rule.low:,}"]
        for rule in found.rules
    ]
    rows += [[f"unknown, not readable again: {why}", f"{records:,}", NONE] for why, records in found.failures]
    caption = f"{found.judged:,} of {found.documents:,}, chosen by hash, read again and judged: {fate_words(each.fate)}"
    return table(["rule", "records of the sample", "of all, with 95 %"], rows, caption)


def examples(title: str, entries: Sequence[Entry], each: FateCount | None = None) -> Html | None:
    """Some documents, those with the least ids."""
    if not entries:
        return None
    rules: Mapping[str, str] = each.replays.by_id if each and each.replays else {}
    return el("details", el("summary", f"{title}: {len(entries):,} shown"), [example(one, rules) for one in entries])


def example(entry: Entry, rules: Mapping[str, str]) -> Html | None:
    """One document."""
    here = entry.a or entry.b
    if here is None:
        return None
    more: list[object] = []
    if entry.a and entry.b:
        sizes = size_change(entry.a, entry.b)
        more = [el("p", sizes), el("p", "in B ", el("code", entry.b.id)) if entry.a.id != entry.b.id else None]
    elif here.id in rules:
        more = [el("p", rules[here.id])]
    elif entry.other:
        more = [el("p", "in favour of ", el("code", entry.other))]
    facts = f"{here.source}, {here.split}/{here.domain}, {here.text_bytes:,} bytes{tokens_of(here)}"
    return el(
        "div",
        el("p", here.url or here.origin),
        el("p", el("code", here.id), " ", facts),
        el("p", here.origin),
        more,
        class_="example",
    )


def by_source(found: Documents) -> Html | None:
    """The documents of each source."""
    rows = [
        [
            f"{source}: {MEANS[what]} ({side})",
            f"{count.documents:,}",
            human_bytes(count.bytes),
            *([f"{count.tokens:,}"] if found.has_tokens else []),
        ]
        for (what, side, source), count in sorted(found.by_source.items(), key=lambda item: -item[1].documents)
        if what != "same" and count.documents
    ]
    if not rows:
        return None
    shown = table(["source", "documents", "bytes", *(["tokens"] if found.has_tokens else [])], rows[:BY_SOURCE])
    return section("What differs, by source", el("details", el("summary", f"{len(rows):,} rows"), shown))


def funnel(found: Comparison) -> Html | None:
    """Both funnels, and which reasons moved most."""
    if not found.stages:
        return None
    moved = by_effect(row for row in found.reasons if row.difference)
    by_source = by_effect(row for row in found.reasons_by_source if row.difference)
    unlike = [row for row in found.stages if row.differs]
    alike = len(found.stages) - len(unlike)
    sources = [row for row in found.stages_by_source if row.differs]
    head = ["stage", "kept", "in A", "in B", "kept A", "kept B", "share A", "share B", "B - A"]
    if not unlike and not moved:
        return section("The funnel", el("p", f"All {alike:,} stages have the same counts on both sides."))
    return el(
        "div",
        section(
            "The funnel, side by side",
            el("p", "Only stages that differ are shown. Those whose share of kept documents changed most come first."),
            key(*A_AND_B),
            table(head, stages(sorted(unlike, key=StageRow.effect, reverse=True))),
            el("p", f"{alike:,} more stages have the same counts on both sides.") if alike else None,
            el(
                "details",
                el("summary", "By source"),
                table(head, stages(sorted(sources, key=StageRow.effect, reverse=True)[:BY_SOURCE])),
            )
            if sources
            else None,
        ),
        section(
            "What moved most",
            table(["reason", "", "A", "B", "change", "bytes A", "bytes B"], reasons(moved[:REASONS]))
            if moved
            else el("p", "Every reason has the same number of documents on both sides."),
            el("p", f"and {len(moved) - REASONS:,} more, in --json") if len(moved) > REASONS else None,
            el(
                "details",
                el("summary", "By source"),
                table(
                    ["reason", "", "A", "B", "change", "bytes A", "bytes B"],
                    reasons(by_source[:REASONS]),
                ),
            )
            if by_source
            else None,
        ),
    )


def by_effect(rows: Iterable[ReasonRow]) -> list[ReasonRow]:
    """Those that moved most documents first."""
    return sorted(rows, key=lambda row: (-abs(row.difference), row.stage, row.outcome, row.reason, row.source))


def stages(rows: Iterable[StageRow]) -> Iterator[Sequence[object]]:
    """Cells of a funnel's rows."""
    listed = list(rows)
    most = max((each.documents for row in listed for each in row.entered if each), default=0) or 1
    for row in listed:
        shares = row.retention(0), row.retention(1)
        moved = NONE if None in shares else f"{100 * ((shares[1] or 0) - (shares[0] or 0)):+.1f} pp"
        parts = [[(side, kept.documents / most if kept else 0)] for side, kept in zip("ab", row.kept, strict=True)]
        name = f"{row.stage}, {row.source}" if row.source else row.stage
        counts = [count_of(each) for each in (*row.entered, *row.kept)]
        label = f"kept of A {counts[2]}, of B {counts[3]}"
        yield [name, bars(parts, label), *counts, share(shares[0]), share(shares[1]), moved]


def reasons(rows: Sequence[ReasonRow]) -> Iterator[Sequence[object]]:
    """Cells of reasons."""
    most = max((max(row.a.documents, row.b.documents) for row in rows), default=0) or 1
    for row in rows:
        name = f"{row.stage}: {row.outcome} {row.reason}" + (f", {row.source}" if row.source else "")
        parts = [[("a", row.a.documents / most)], [("b", row.b.documents / most)]]
        yield [
            name,
            bars(parts, f"A {row.a.documents:,}, B {row.b.documents:,}"),
            f"{row.a.documents:,}",
            f"{row.b.documents:,}",
            change(row.a.documents, row.b.documents),
            human_bytes(row.a.bytes),
            human_bytes(row.b.bytes),
        ]


def settings(found: Comparison) -> Html:
    """What the runs were given."""
    rows = [[f"{each.section} {each.path}", value(each.a, SETTING), value(each.b, SETTING)] for each in found.settings]
    files = [
        [each.source, *(f"{count:,}" for count in (each.only_a, each.only_b, each.both, each.other_bytes))]
        for each in found.inputs
        if each.only_a or each.only_b or each.other_bytes
    ]
    return section(
        "Settings and inputs",
        el("div", table(["setting", "A", "B"], rows), class_="plain")
        if rows
        else el("p", "All settings are the same."),
        table(["input files of", "only in A", "only in B", "in both", "of these with other bytes"], files)
        if files
        else el("p", "Both runs read the same input files."),
    )


def ends(each: Distribution) -> str:
    """What stands at the left and at the right of its curves."""
    edges = [edge for edge in {*each.a, *each.b} if not isinstance(edge, str)]
    return f"from {number(min(edges))} to {number(max(edges))} {each.unit}".rstrip() if edges else ""


def distributions(found: Sequence[Distribution]) -> Html | None:
    """How far apart the distributions are, and their curves."""
    if not found:
        return None
    ordered = sorted((each for each in found if each.distance), key=lambda each: -(each.distance or 0))
    alike = len(found) - len(ordered)
    if not ordered:
        return section("Distributions", el("p", f"All {alike:,} distributions are the same."))
    rows = [
        [
            f"{each.where}: {each.name}",
            bars([[("a", each.distance or 0)]], share(each.distance)),
            number(each.total_variation),
            number(each.kolmogorov_smirnov),
            *(number(median) for median in each.medians()),
        ]
        for each in ordered
    ]
    shown = [
        [
            el("p", f"{each.where}: {each.name}. {distance_words(each)}"),
            curves(each),
            el("p", ends(each), class_="ends"),
        ]
        for each in ordered
        if each.numbers and (each.a or each.b)
    ]
    return section(
        "Distributions",
        el("p", "Total variation is the share of documents that would need another value to make both corpora alike."),
        el("p", "Kolmogorov-Smirnov is the largest difference between the cumulative shares of A and B."),
        table(["of", "", "total variation", "Kolmogorov-Smirnov", "median A", "median B"], rows),
        el("p", f"{alike:,} more distributions are the same, or one side has no documents in them.") if alike else None,
        el("details", el("summary", "Curves"), key(*A_AND_B), shown) if shown else None,
    )
