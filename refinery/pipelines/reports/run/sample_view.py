"""Documents to read: what rules dropped beside what stayed, with a box that filters both."""

from collections.abc import Sequence

from refinery.pipelines.reports.pages.markup import Html, el, prose
from refinery.pipelines.reports.run.attention import words_of
from refinery.pipelines.reports.run.facts import Facts
from refinery.pipelines.reports.run.samples import KeptText, Reject

WITHOUT_TEXT = 3  # samples of a reason that has no excerpts: their addresses


def sample_section(facts: Facts) -> Html | None:
    """Rejects by reason on one side, kept documents on the other."""
    keys = sample_keys(facts)
    if not keys and not facts.kept:
        return None
    rejects = facts.rejects
    read = f" Read were {rejects.files} of its {rejects.of_files} files." if rejects.files < rejects.of_files else ""
    decoded = ", decoded from their tokens" if facts.manifest.has_tokens else ""
    quoted = any(reject.excerpt for key in keys for reject in rejects.samples[key])
    hint = "" if quoted or not keys else " Excerpts are there with `rejects: {excerpt_chars: 400}` in the recipe."
    return el(
        "section",
        el("h2", "Documents to read"),
        el(
            "p",
            "On one side what rules dropped, a few of each reason, chosen by hash from rejects/; on the other the "
            f"beginnings of documents that stayed, chosen by hash{decoded}.{read}",
            prose(hint),
        ),
        el(
            "div",
            el("label", "Filter by words, host, reason or source", for_="filter"),
            el(
                "input", type="search", id="filter", autocomplete="off", spellcheck="false", placeholder="quality-score"
            ),
            el("span", id="matches", role="status"),
            class_="filter",
            hidden=True,
        ),
        el(
            "div",
            el(
                "div",
                el("h3", "Dropped"),
                [_group(facts, number, key) for number, key in enumerate(keys)] or el("p", "No samples."),
            ),
            el("div", el("h3", "Stayed"), [_kept(text) for text in facts.kept] or el("p", "No samples.")),
            class_="sides",
        ),
        id="samples",
    )


def sample_keys(facts: Facts) -> list[tuple[str, str]]:
    """(stage, reason) of the samples, in the order of the funnel and of the documents lost."""
    order = [(stage.name, reason) for stage in facts.stages for reason in stage.dropped]
    known = [key for key in order if facts.rejects.samples.get(key)]
    return known + [key for key in facts.rejects.samples if key not in known]


def _group(facts: Facts, number: int, key: tuple[str, str]) -> Html:
    stage, reason = key
    samples: Sequence[Reject] = facts.rejects.samples[key]
    samples = [each for each in samples if each.excerpt or each.found] or samples[:WITHOUT_TEXT]
    meaning, _ = words_of(facts, stage, reason)
    return el(
        "details",
        el("summary", el("b", f"{stage}: {reason}"), f" · {facts.rejects.rows[key]:,} in rejects/"),
        el("p", prose(meaning)) if meaning else None,
        [_reject(key, reject) for reject in samples],
        id=f"sample-{number}",
        class_="group",
        open=not number,
    )


def _reject(key: tuple[str, str], reject: Reject) -> Html:
    return el(
        "article",
        _excerpt(reject.excerpt),
        el("p", el("bdi", f"found: {reject.found}")) if reject.found else None,
        el("p", el("bdi", reject.url or reject.origin), f" · {reject.source}", class_="origin"),
        class_="sample",
        data_words=" ".join(key),
    )


def _kept(text: KeptText) -> Html:
    notes = " · ".join(f"{name} {value}" for name, value in text.notes.items())
    copies = f" · {text.copies:,} copies" if text.copies > 1 else ""
    tokens = "" if text.tokens is None else f" · {text.tokens:,} tokens"
    return el(
        "article",
        _excerpt(text.text),
        el(
            "p",
            el("bdi", text.url or "no address"),
            f" · {text.source}{tokens}{copies}",
            class_="origin",
        ),
        el("p", notes, class_="origin") if notes else None,
        class_="sample",
    )


def _excerpt(text: str) -> Html | None:
    return el("blockquote", text, dir="auto") if text.strip() else None
