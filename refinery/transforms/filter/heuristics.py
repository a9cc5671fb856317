"""Heuristic quality rules: Gopher, C4, FineWeb and a few of our own, all compared with the counts of one kernel pass.

The sets, their parameters and reasons are in heuristics_rules.py; docs/heuristics.md explains how they count.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

from refinery.transforms.core.document import Document, Drop, document_id
from refinery.transforms.core.last_call import LastCall
from refinery.transforms.core.stage import Note, Stage
from refinery.transforms.filter.counting import datatrove
from refinery.transforms.filter.counting.counts import Counts
from refinery.transforms.filter.counting.occurrences import UNITS, repetition_reason, word_length
from refinery.transforms.filter.heuristics_rules import (
    BASIC_REASONS,
    C4_REASONS,
    FINEWEB_REASONS,
    GOPHER_REASONS,
    REPETITION_REASONS,
    BasicParams,
    C4Params,
    FineWebParams,
    GopherParams,
    HeuristicsParams,
    RepetitionParams,
)
from refinery.transforms.native import counting
from refinery.transforms.native import heuristics as kernel
from refinery.transforms.native.heuristics import Features, measure

_NOT_MEASURED = measure("", (), 0, 0, 0, 0, 0)  # where no rule compares what it counts
_CITATION = re.compile(r"\[\d*\]|\[edit\]|\[citation needed\]")


def _judge_basic(found: Features, chars: int, p: BasicParams) -> str | None:
    if p.min_unique_word_ratio is not None and found.window_unique_words / (found.words or 1) < p.min_unique_word_ratio:
        return "basic-low-unique-word-ratio"
    if p.max_punctuation_ratio is not None and found.punctuation / (chars or 1) > p.max_punctuation_ratio:
        return "basic-high-punctuation-ratio"
    if p.max_code_line_ratio is not None and found.code_lines / (found.lines or 1) > p.max_code_line_ratio:
        return "basic-code-like"
    return None


def _judge_gopher(
    found: Features | Counts | counting.Quality,
    mean: float | Fraction,
    bounds: tuple[float | None, float | None],
    stop_lists: tuple[tuple[str, ...], ...],
    p: GopherParams,
) -> str | None:
    words, lines = found.words or 1, found.lines or 1
    if p.min_words is not None and found.alnum_words < p.min_words:
        return "gopher-too-few-words"
    if p.max_words is not None and found.alnum_words > p.max_words:
        return "gopher-too-many-words"
    if 2 * found.spaceless_letters <= found.letters:
        least, most = bounds
        if least is not None and mean < least:
            return "gopher-short-words"
        if most is not None and mean > most:
            return "gopher-long-words"
    if p.max_hash_ratio is not None and found.hashes / words > p.max_hash_ratio:
        return "gopher-hash-ratio"
    if p.max_ellipsis_ratio is not None and found.ellipses / words > p.max_ellipsis_ratio:
        return "gopher-ellipsis-ratio"
    if p.max_bullet_lines is not None and found.bullet_lines / lines > p.max_bullet_lines:
        return "gopher-bullet-lines"
    if p.max_ellipsis_lines is not None and found.ellipsis_lines / lines > p.max_ellipsis_lines:
        return "gopher-ellipsis-lines"
    if p.min_alphabetic_words is not None and found.alphabetic_words / words < p.min_alphabetic_words:
        return "gopher-few-alphabetic-words"
    if p.min_stop_words is not None and stop_lists and found.stop_words < p.min_stop_words:
        return "gopher-few-stop-words"
    return None


def _judge_counted_gopher(
    found: Features | Counts, language: Any, stop_lists: tuple[tuple[str, ...], ...], p: GopherParams
) -> str | None:
    mean = found.alnum_word_chars / (found.alnum_words or 1)
    return _judge_gopher(found, mean, p.word_bounds(language), stop_lists, p)


def _judge_repetition(found: Features | Counts, chars: int, p: RepetitionParams) -> str | None:
    repeats = found.top_2_gram_chars  # 0: no n-gram occurs twice
    for figure, most, reason in p.rules:
        if (repeats or not figure.ngram) and figure.of(found, chars) > most:
            return reason
    return None


def _cut_citations(text: str, max_word_chars: int) -> str:
    """`text` without citations; a line with a word of more than max_word_chars (0: any) stays whole, to be removed."""

    def is_too_long(line: str) -> bool:
        return 0 < max_word_chars < len(line) and not measure(line, (), 0, 0, 0, max_word_chars, 0).kept_lines

    lines = text.splitlines(keepends=True)
    return "".join(line if "[" not in line or is_too_long(line) else _CITATION.sub("", line) for line in lines)


def _without_citations(
    text: str, found: Features, max_word_chars: int, limits: tuple[int, int, int, int, int]
) -> tuple[str, Features]:
    """`text` without citations, and what is counted of its lines then. found: the counts of `text`."""
    if "[" not in text or _CITATION.search(text) is None:
        return text, found
    left = _cut_citations(text, max_word_chars)
    _, short, words, chars, flags = limits
    return left, measure(left, (), 0, short, words, chars, flags & ~(kernel.WORDS | kernel.PARAGRAPHS))


# What is counted in a text, kept until the next text: no count depends on a threshold.
_counted, _left, _id = LastCall(measure), LastCall(_without_citations), LastCall(document_id)
_gopher_counts, _repetition_counts = LastCall(datatrove.gopher_counts), LastCall(datatrove.repetition_counts)
_c4_text, _fineweb_counts = LastCall(datatrove.c4_text), LastCall(datatrove.fineweb_counts)


def _judge_c4(found: Features | Counts, p: C4Params) -> str | None:
    if p.drop_lorem_ipsum and found.lorem_ipsum:
        return "c4-lorem-ipsum"
    if p.drop_curly_brackets and found.curly_brackets:
        return "c4-curly-bracket"
    if found.lines and not found.kept_lines:
        return "c4-no-lines-left"
    if p.min_sentences is not None and found.kept_sentences < p.min_sentences:
        return "c4-too-few-sentences"
    return None


def _judge_fineweb(found: Features | Counts, p: FineWebParams) -> str | None:
    lines, words = found.kept_lines or 1, found.kept_words or 1
    if p.min_terminal_lines is not None and found.kept_terminal_lines / lines < p.min_terminal_lines:
        return "fineweb-few-terminal-lines"
    if p.max_short_lines is not None and found.kept_short_lines / lines > p.max_short_lines:
        return "fineweb-short-lines"
    most, chars = p.max_duplicate_line_chars, found.kept_line_chars or 1
    if most is not None and found.kept_duplicate_line_chars / chars > most:
        return "fineweb-duplicate-line-chars"
    if p.max_newline_ratio is not None and found.kept_line_breaks / words > p.max_newline_ratio:
        return "fineweb-newline-ratio"
    return None


def _judge_as_measured(
    text: str, found: Features, language: Any, stop_lists: tuple[tuple[str, ...], ...], params: HeuristicsParams
) -> tuple[str, str | None]:
    """The text that is left, and the reason of the first rule that fails."""
    basic, c4 = params.basic, params.c4
    reason = (
        (_judge_basic(found, len(text), basic) if basic else None)
        or (_judge_counted_gopher(found, language, stop_lists, params.gopher) if params.gopher else None)
        or (_judge_repetition(found, len(text), params.repetition) if params.repetition else None)
    )
    if reason is not None:
        return text, reason
    if c4 and c4.remove_citations:
        text, found = _left(text, found, c4.max_word_chars or 0, params.limits)
    return _judge_lines(text, found, params)


def _judge_as_datatrove(
    text: str, found: Features, language: Any, stop_lists: tuple[tuple[str, ...], ...], params: HeuristicsParams
) -> tuple[str, str | None]:
    """The same, by datatrove's counts."""
    basic, gopher, c4, fineweb = params.basic, params.gopher, params.c4, params.fineweb
    reason = _judge_basic(found, len(text), basic) if basic else None
    if reason is None and gopher:
        known = language if language in gopher.word_lengths else None  # no lengths of words by language there
        reason = _judge_counted_gopher(_gopher_counts(text, found), known, stop_lists, gopher)
    if reason is None and params.repetition:
        reason = _judge_repetition(_repetition_counts(text, found), len(text), params.repetition)
    if reason is None and c4:
        text, left = _c4_text(text, params.limits, c4.remove_citations)
        reason = _judge_c4(Counts(left, lines=found.lines), c4)
        text = (text if left.text is None else left.text).strip()
        if reason is None and fineweb:  # the words of what the line rules left
            found = measure(text, (), 0, 0, 0, 0, 0)
    if reason is None and fineweb:
        reason = _judge_fineweb(_fineweb_counts(text, found, fineweb.short_line_chars), fineweb)
    return text, reason


def _judge_all_occurrences(
    text: str, found: Features, language: Any, stop_lists: tuple[tuple[str, ...], ...], params: HeuristicsParams
) -> tuple[str, str | None]:
    """The same, Gopher's sets by the counts of DCLM or dolma, and C4's by those of dolma."""
    gopher, repetition, c4 = params.gopher, params.repetition, params.c4
    units = UNITS[params.counting]
    reason = _judge_basic(found, len(text), params.basic) if params.basic else None
    if reason is None and gopher:
        known = language if language in gopher.word_lengths else None  # no lengths of words by language there
        counts, bounds = counting.quality(text, stop_lists, units), gopher.word_bounds(known)
        reason = _judge_gopher(counts, word_length(counts, units, bounds), bounds, stop_lists, gopher)
    if reason is None and repetition:
        reason = repetition_reason(text, units, repetition.line_limits, repetition.ngram_limits)
    if reason is not None:
        return text, reason
    if c4 and params.counting == "dolma":
        whole = text = _cut_citations(text, 0) if c4.remove_citations else text
        text = counting.c4_lines(text, c4.require_terminal_punctuation, c4.min_words_per_line or 0)
        _, short, _, chars, flags = params.limits
        limits = (0, short, 0, chars, flags & ~(kernel.NEED_TERMINAL | kernel.WORDS | kernel.PARAGRAPHS))
        marks = {"lorem_ipsum": "lorem ipsum" in whole.lower(), "curly_brackets": "{" in whole}
        return _judge_lines(text, Counts(measure(text, (), *limits), lines=found.lines, **marks), params)
    if c4 and c4.remove_citations:
        text, found = _left(text, found, c4.max_word_chars or 0, params.limits)
    return _judge_lines(text, found, params)


def _judge_lines(text: str, found: Features | Counts, params: HeuristicsParams) -> tuple[str, str | None]:
    """What C4's line rules left, and the reason of C4's document rules or of FineWeb's."""
    reason = _judge_c4(found, params.c4) if params.c4 else None
    if reason is None and params.fineweb:
        reason = _judge_fineweb(found, params.fineweb)
    return text if found.text is None else found.text, reason


_JUDGES = {"own": _judge_as_measured, "datatrove": _judge_as_datatrove} | dict.fromkeys(UNITS, _judge_all_occurrences)


def judge_heuristics(doc: Document, params: HeuristicsParams) -> Document | Drop:
    """`doc`, `doc` without the lines that C4's rules remove (with a new id), or Drop with the first rule that fails.

    Rules judge in the order of the fields of `HeuristicsParams` and of the checks in each set. Basic, Gopher and
    repetition see the text as it came, C4's document rules and FineWeb what the line rules left, and min_chars both. A
    share of nothing is 0. The figures in `columns` are recorded in meta, 4 digits. Cost: one kernel pass, about 10
    microseconds for 900 characters of English, linear for any text. Raises UnicodeEncodeError when lines are removed
    from a text with lone surrogates.
    """
    text, basic = doc.text, params.basic
    min_chars = 0 if basic is None or basic.min_chars is None else basic.min_chars
    if len(text) < min_chars:
        return Drop("basic-too-few-characters")
    language = doc.meta.get("language")
    stop_lists = params.gopher.lists_for(language) if params.gopher else ()
    found = _counted(text, stop_lists, *params.limits) if params.measured else _NOT_MEASURED
    text, reason = _JUDGES[params.counting](text, found, language, stop_lists, params)
    if reason is not None:
        return Drop(reason)
    if len(text) < min_chars:
        return Drop("basic-too-few-characters")
    if params.columns:
        figures = {figure.column: round(figure.of(found, len(doc.text)), 4) for figure in params.figures}
        doc = replace(doc, meta={**doc.meta, **figures})
    return doc if text == doc.text else replace(doc, text=text, id=_id(text))


def asked_notes(params: HeuristicsParams) -> Iterator[Note]:
    """Figures that become columns."""
    for figure in params.figures:
        yield Note(
            figure.column, float, f"what the rule `max_{figure.name}` compares, of the text as it came", column=True
        )


HEURISTICS = Stage(
    name="heuristics",
    version=2,
    summary="Drop documents that fail a heuristic quality rule, and remove the lines that C4's line rules name.",
    params=HeuristicsParams,
    judge=judge_heuristics,
    asked_notes=asked_notes,
    reasons=BASIC_REASONS + GOPHER_REASONS + REPETITION_REASONS + C4_REASONS + FINEWEB_REASONS,
)
