"""A comparison as text for a terminal. Names and addresses are untrusted, so unprintable characters are escaped."""

from collections.abc import Iterator, Mapping, Sequence

from refinery.pipelines.corpus.compare.compare import Comparison, Documents, FateCount
from refinery.pipelines.corpus.compare.joining.listing import Entry, Listed
from refinery.pipelines.corpus.compare.joining.overlap import Count
from refinery.pipelines.corpus.compare.words import (
    EXPLAINED,
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
    sizes,
    value,
)
from refinery.pipelines.progress.words import human_bytes
from refinery.transforms.core.safe_text import safe

REASONS = 15  # that moved most
DISTRIBUTIONS = 20  # that are furthest apart
SETTINGS = 40  # lines of settings
LINE = 400  # characters of a line that are shown


UNITS = ("documents", "tokens", "bytes")  # of totals, as far as both corpora count them


def text_lines(found: Comparison) -> Iterator[str]:
    """The whole comparison, what matters most first."""
    yield from (safe(line if len(line) <= LINE else f"{line[: LINE - 1]}…").rstrip() for line in _lines(found))


def _lines(found: Comparison) -> Iterator[str]:
    yield headline(found)
    yield from _totals(found)
    yield from (f"  {line}" for line in (found.relation.lines() if found.relation else ()))
    yield from (f"note: {note}" for note in found.notes)
    yield from _settings(found)
    if found.documents is not None:
        yield from _documents(found.documents)
    yield from _funnel(found)
    yield from _distributions(found)


def _totals(found: Comparison) -> Iterator[str]:
    sides = [side.manifest for side in (found.a, found.b)]
    width = max(len(found.a.prefix), len(found.b.prefix))
    for side, manifest in zip((found.a, found.b), sides, strict=True):
        total = manifest.totals
        tokens = f"{total['tokens']:>16,} tokens" if "tokens" in total else f"{'':>23}"
        counts = f"{total['documents']:>12,} documents {tokens} {human_bytes(total['bytes']):>9}"
        yield f"  {side.label}  {side.prefix:<{width}}  {counts} of text, lane {manifest.lane}"
    before, after = (manifest.totals for manifest in sides)
    changes = [f"{name} {change(before[name], after[name])}" for name in UNITS if name in before and name in after]
    yield f"  B - A: {', '.join(changes)}"


def _settings(found: Comparison) -> Iterator[str]:
    yield ""
    yield "Settings that differ (A → B)" if found.settings else "Settings: the same"
    for each in found.settings[:SETTINGS]:
        path = f"{each.section} {each.path}".strip()
        yield f"  {path:<44} {value(each.a)} → {value(each.b)}"
    if len(found.settings) > SETTINGS:
        yield f"  and {len(found.settings) - SETTINGS} more, in --json"
    for files in found.inputs:
        if files.only_a or files.only_b or files.other_bytes:
            yield (
                f"  input files of {files.source}: {files.only_a:,} only in A, {files.only_b:,} only in B, "
                f"{files.both:,} in both, {files.other_bytes:,} of these with other bytes"
            )


def _documents(found: Documents) -> Iterator[str]:
    yield ""
    yield "Documents"
    yield f"  the same                   {sizes(found.same[0])}"
    if found.moved_inputs:
        yield f"    {found.moved_inputs:,} input files have another path and the same bytes: taken as the same"
    if found.other_record:
        yield f"    {found.other_record:,} texts come from another record now"
    for which, before, after, count in found.moves:
        yield f"    {PLACES[which]}: {count:,} documents from {before} to {after}"
    for name, pair in (("another final text", found.cut), ("same page, another text", found.changed)):
        if pair[0].documents:
            yield f"  {name:<26} {_both(*pair)}"
            yield f"    ({EXPLAINED['cut' if pair is found.cut else 'changed']})"
            yield from _examples(found.entries["cut" if pair is found.cut else "changed"])
    for label, other in (("A", "B"), ("B", "A")):
        lost = found.lost(label)
        yield f"  {f'only in {label}':<26} {sizes(lost)}" if lost.documents else f"  only in {label}: none"
        if lost.documents:
            yield f"    what became of them in {other}:"
        for each in found.only[label]:
            part = share(each.count.documents / lost.documents)
            yield f"    {each.count.documents:>10,}  {part:>7}  {fate_words(each.fate)}"
            yield from _replayed(each)
            yield from _examples(each.entries, " " * 14, each.replays.by_id if each.replays else {})


def _both(a: Count, b: Count) -> str:
    return f"{a.documents:,} documents, {size_change(a, b)}"


def _replayed(each: FateCount) -> Iterator[str]:
    found = each.replays
    if found is None:
        return
    indent = " " * 14
    if found.judged:
        yield f"{indent}{found.judged:,} of these, chosen by hash, were read again and judged:"
    for rule in found.rules:
        of_all = f"{rule.low:,} to {rule.high:,} of all" if rule.low < rule.high else f"{rule.low:,} of all"
        yield f"{indent}  {rule.records:>6,}  {rule.words} ({of_all}{', with 95 %' if rule.low < rule.high else ''})"
    for why, records in found.failures:
        yield f"{indent}  {records:>6,}  unknown: not in the sample of rejects, and not readable again ({why})"


def _examples(entries: Sequence[Entry], indent: str = "    ", rules: Mapping[str, str] | None = None) -> Iterator[str]:
    for entry in entries:
        here = entry.a or entry.b
        if here is None:
            continue
        yield f"{indent}- {_listed(here)}"
        if entry.a and entry.b:
            now = f", id {entry.b.id} in B" if entry.a.id != entry.b.id else ""
            yield f"{indent}    {size_change(entry.a, entry.b)}{now}"
        elif rules and here.id in rules:
            yield f"{indent}    {rules[here.id]}"
        elif entry.other:
            yield f"{indent}    in favour of {entry.other}" if entry.other != here.id else f"{indent}    of a copy"


def _listed(doc: Listed) -> str:
    return f"{doc.url or doc.origin}  id {doc.id}, {doc.text_bytes:,} bytes"


def _funnel(found: Comparison) -> Iterator[str]:
    if not found.stages:
        return
    yield ""
    yield f"{'Funnel, documents':<28}{'in A':>12}{'in B':>12}{'kept A':>12}{'kept B':>12}{'A':>9}{'B':>9}{'B - A':>10}"
    for row in found.stages:
        shares = row.retention(0), row.retention(1)
        moved = NONE if None in shares else f"{100 * ((shares[1] or 0) - (shares[0] or 0)):+.1f} pp"
        cells = [count_of(each) for each in (*row.entered, *row.kept)]
        numbers = "".join(f"{cell:>12}" for cell in cells)
        yield f"  {row.stage:<26}{numbers}{share(shares[0]):>9}{share(shares[1]):>9}{moved:>10}"
    moved_rows = [row for row in found.reasons if row.difference]
    yield ""
    yield "What moved most (documents A → B)" if moved_rows else "Reasons: as many documents on both sides"
    for reason in moved_rows[:REASONS]:
        name = f"{reason.stage}: {reason.outcome} {reason.reason}"
        before, after = reason.a.documents, reason.b.documents
        yield f"  {name:<60}{before:>12,} → {after:<12,}{change(before, after)}"
    if len(moved_rows) > REASONS:
        yield f"  and {len(moved_rows) - REASONS} more, in --json"


def _distributions(found: Comparison) -> Iterator[str]:
    if not found.distributions:
        return
    yield ""
    yield "Distributions (TV: total variation, KS: Kolmogorov-Smirnov; 0 is alike, 1 is apart)"
    ordered = sorted(found.distributions, key=lambda each: -(each.distance or 0))
    apart = [each for each in ordered if each.total_variation]
    for each in apart[:DISTRIBUTIONS]:
        distances = f"TV {number(each.total_variation)}"
        if each.numbers:
            medians = each.medians()
            distances += f", KS {number(each.kolmogorov_smirnov)}, median {number(medians[0])} → {number(medians[1])}"
        yield f"  {f'{each.where}: {each.name}':<44} {distances}; {distance_words(each)}"
    if len(apart) > DISTRIBUTIONS:
        yield f"  and {len(apart) - DISTRIBUTIONS:,} more, in --json"
    if alike := sum(each.total_variation == 0 for each in ordered):
        yield f"  the same: {alike:,} distributions"
