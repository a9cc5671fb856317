"""Documents to read: what rules dropped beside what stayed, with a box that filters both."""

from collections.abc import Iterator, Sequence

from refinery.pipelines.recipe.quantities.quantity import show, three_digits
from refinery.pipelines.reports.pages.markup import Html, el, prose
from refinery.pipelines.reports.run.attention import words_of
from refinery.pipelines.reports.run.facts import Facts
from refinery.pipelines.reports.run.quotes import marked
from refinery.pipelines.reports.run.samples import KeptText, Reject

OPEN = 12  # kept documents that are shown at once
WITHOUT_TEXT = 3  # samples of a reason that has no excerpts: their addresses


def sample_section(facts: Facts) -> Html | None:
    """Rejects by reason on one side, kept documents on the other."""
    keys = sample_keys(facts)
    if not keys and not facts.kept:
        return None
    rejects = facts.rejects
    few = f"{rejects.files} of {rejects.of_files} files of rejects/" if rejects.files < rejects.of_files else "rejects/"
    chosen = "among all that was dropped" if rejects.is_whole else f"from {few}"
    decoded = ", decoded from their tokens" if facts.manifest.has_tokens else ""
    quoted = any(reject.excerpt for key in keys for reject in rejects.samples[key])
    hint = (
        ""
        if quoted or not keys
        else " `refinery report --texts` shows their texts, and so does a run with `rejects: {excerpt_chars: 400}`."
    )
    return el(
        "section",
        el("h2", "Documents to read"),
        el(
            "p",
            f"Dropped: of each reason the documents with the smallest hashes {chosen}, with what was measured beside "
            f"the threshold. Kept: the beginnings of documents, chosen by hash{decoded}. No text is shown of what was "
            "dropped for secrets, personal data, harmful content or rights.",
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
                el("h3", "Dropped documents"),
                [_group(facts, number, key) for number, key in enumerate(keys)] or el("p", "No samples."),
            ),
            el("div", el("h3", "Kept documents"), list(_kept_texts(facts.kept)) or el("p", "No samples.")),
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
    if not facts.rejects.is_whole:
        samples = [each for each in samples if each.excerpt or each.found] or samples[:WITHOUT_TEXT]
    meaning, _ = words_of(facts, stage, reason)
    lost = sum(each.dropped[reason][0] for each in facts.stages if each.name == stage and reason in each.dropped)
    said = f"{len(samples)} of {max(lost, len(samples)):,}"
    return el(
        "details",
        el("summary", el("b", f"{stage}: {reason}"), f" · {said}"),
        el("p", prose(meaning)) if meaning else None,
        [_reject(key, reject) for reject in samples],
        id=f"sample-{number}",
        class_="group",
        open=not number,
    )


def _measured(reject: Reject) -> Html | None:
    """What decided, beside the thresholds."""
    pieces = []
    for name, value, limit in reject.values:
        shown = value if isinstance(value, str) else three_digits(float(value))
        beside = f" (threshold {three_digits(limit)})" if limit is not None else ""
        pieces.append(el("li", el("bdi", name), ": ", el("b", el("bdi", shown)), beside))
    return el("ul", pieces, class_="measured") if pieces else None


def _quote(text: str, reason: str) -> Html | None:
    """A dropped text, with what the reason is about marked."""
    if not text.strip():
        return None
    return el("blockquote", [el("mark", piece) if hit else piece for piece, hit in marked(text, reason)], dir="auto")


def _reject(key: tuple[str, str], reject: Reject) -> Html:
    size = f" · {show(reject.size, 'bytes')}" if reject.size else ""
    return el(
        "article",
        _quote(reject.excerpt, key[1]),
        _measured(reject),
        el("p", el("bdi", f"found: {reject.found}")) if reject.found else None,
        el("p", el("bdi", reject.url or reject.origin), f" · {reject.source}{size}", class_="origin"),
        class_="sample",
        data_words=" ".join(key),
    )


def _kept_texts(texts: Sequence[KeptText]) -> Iterator[Html]:
    """All of them, those behind the first few in a part that can be opened."""
    yield from (_kept(text) for text in texts[:OPEN])
    if more := texts[OPEN:]:
        yield el("details", el("summary", f"{len(more)} more"), [_kept(text) for text in more], class_="group kept")


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
