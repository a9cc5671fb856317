"""Thresholds: the rules of the run, and what a sample's documents would be if one of them were moved."""

from collections.abc import Sequence

from refinery.pipelines.corpus.browse.pages.document import number
from refinery.pipelines.corpus.browse.pages.frame import Frame, entry, field, note, page, section, share, table, words
from refinery.pipelines.corpus.browse.pages.visit import Visit
from refinery.pipelines.corpus.browse.reading.what_if import LISTED, Flip, RuleAt, WhatIf, find_rule, rules, what_if
from refinery.pipelines.reports.pages.markup import Html, el, prose


def thresholds_page(visit: Visit) -> str:
    """The rules. Raises Busy; ValueError where the recipe cannot be used."""
    frame = visit.frame
    with visit.run.judging():
        found = rules(visit.opened)
    rows = [
        [
            frame.link(f"{at.stage.name}.{at.rule.key}", "threshold", **_named(at)),
            at.rule.reason,
            f"{'≥' if at.rule.is_least else '≤'} {number(at.rule.threshold)}",
        ]
        for at in found
    ]
    return page(
        frame,
        "Thresholds",
        note("Rules whose thresholds are numbers. Choose one to see what another threshold would change in a sample."),
        section("Rules", table(["rule", "reason", "allowed"], rows) if rows else note("The run has none.")),
    )


def threshold_page(visit: Visit) -> str:
    """One rule. query: `stage`, `reason`, `key`, the new threshold `to`, a document's `value`. Raises ValueError."""
    frame, query = visit.frame, visit.query
    with visit.run.judging():
        at = find_rule(visit.opened, *(query.get(name, "") for name in ("stage", "reason", "key")))
    to = threshold(query["to"]) if query.get("to") else None
    meaning = next((each.meaning for each in at.stage.reasons if each.name == at.rule.reason), "")
    sign = "at least" if at.rule.is_least else "at most"
    value = query.get("value", "")
    return page(
        frame,
        f"{at.stage.name}: {at.rule.key}",
        note(prose(meaning), f". Documents must have {sign} {number(at.rule.threshold)}."),
        note(f"The document that you came from has {threshold(value):.6g}.") if value else None,
        _form(frame, at, at.rule.threshold if to is None else to, value),
        None if to is None else _result(frame, what_if(visit.run, visit.opened, at, to, visit.sample)),
    )


def threshold(text: str) -> float:
    """A number that was typed. Raises ValueError."""
    try:
        found = float(text)
    except ValueError:
        raise ValueError(f"threshold: {text!r:.40} given, a number is allowed") from None
    if found != found or abs(found) > 1e12:
        raise ValueError(f"threshold: {text!r:.40} given, a number below 1e12 is allowed")
    return found


def plain(value: float) -> float:
    """A whole number as one.

    >>> plain(134217728.0), plain(0.5)
    (134217728, 0.5)
    """
    return int(value) if value == int(value) else value


def _named(at: RuleAt) -> dict[str, str]:
    return {"stage": at.stage.name, "reason": at.rule.reason, "key": at.rule.key}


def _form(frame: Frame, at: RuleAt, to: float, value: str) -> Html:
    whole = isinstance(at.rule.threshold, int)
    least, most = slider_range(at, to)
    step = "1" if whole else f"{(most - least) / 200:.4g}"
    slider = el(
        "input",
        type="range",
        id="slider",
        data_for="to",
        min=f"{least:.6g}",
        max=f"{most:.6g}",
        step=step,
        value=f"{to:.6g}",
        aria_label="threshold, as a slider",
    )
    return section(
        "Move the threshold",
        frame.form(
            "threshold",
            [el("input", type="hidden", name=name, value=each) for name, each in _named(at).items()],
            el("input", type="hidden", name="value", value=value) if value else None,
            field("threshold", "to", entry("to", f"{to:.6g}", inputmode="decimal", maxlength="20")),
            el("div", slider, class_="field slider"),
            el("button", "Judge the sample", type="submit"),
            class_="fields",
        ),
        note(
            f"{number(plain(at.least))} to {number(plain(at.most))} is allowed, ",
            f"{number(at.rule.threshold)} is set.",
        ),
    )


def slider_range(at: RuleAt, to: float) -> tuple[float, float]:
    """What the slider reaches: from the least to three times the threshold, as far as that is allowed. Others can be
    typed."""
    near = max(3 * abs(at.rule.threshold), abs(to), 1 if isinstance(at.rule.threshold, float) else 10)
    return at.least, min(at.most, near)


def _result(frame: Frame, found: WhatIf) -> Html:
    said = [
        el("b", f"{len(found.now_dropped):,} of {found.kept:,} kept documents would be dropped"),
        f" ({share(len(found.now_dropped), found.kept)}), ",
        el("b", f"{len(found.now_kept):,} of {found.dropped:,} dropped ones would be kept"),
        f" ({share(len(found.now_kept), found.dropped)}).",
    ]
    still = f" {len(found.still):,} more would be lost to another rule." if found.still else ""
    unread = f" {found.unread:,} records could not be read, or not in time." if found.unread else ""
    cut = "" if found.complete else " The time was up before all were judged."
    return section(
        f"With {number(found.to)}",
        note(said, still),
        note(
            "The sample is drawn by hash: kept documents from all shards, dropped ones from the "
            f"{found.listed:,} that the files of rejects/ list for this rule (at most 20 files are read). "
            f"Duplicates and targets are not decided again.{unread}{cut}"
        ),
        _flips(frame, "Kept now, dropped then", found.now_dropped),
        _flips(frame, "Dropped now, kept then", found.now_kept),
        _flips(frame, "Dropped now, lost to another rule then", found.still),
        id="result",
    )


def _flips(frame: Frame, title: str, flips: Sequence[Flip]) -> list[object]:
    if not flips:
        return []
    rows = [
        [frame.document(each.doc), each.doc.source, number(each.value), el("bdi", each.then)] for each in flips[:LISTED]
    ]
    more = note(f"and {len(flips) - LISTED:,} more") if len(flips) > LISTED else None
    return [el("h3", title), words(["document", "source", "measured", "then"], rows), more]
