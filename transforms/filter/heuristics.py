"""Heuristic quality rules: Gopher, C4, FineWeb and a few of our own, all compared with the counts of one kernel pass.

docs/heuristics.md lists every rule with its reason, default, source and differences.

No `from __future__ import annotations` here: Beam reads these hints.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import apache_beam as beam

from refinery.transforms.core.document import Document, Drop, document_id
from refinery.transforms.core.per_document import PerDocument, RejectParams
from refinery.transforms.native import heuristics as kernel
from refinery.transforms.native.heuristics import Features, measure

ENGLISH_STOP_WORDS = ("the", "be", "to", "of", "and", "that", "have", "with")  # Rae et al. 2021, appendix A1.1

_CITATION = re.compile(r"\[\d*\]|\[edit\]|\[citation needed\]")
_MAX_COUNT = 2**31 - 1


def _require(params: Any, names: str, most: float, allowed: str) -> None:
    for name in names.split():
        value = getattr(params, name)
        if value is not None and not 0 <= value <= most:
            raise ValueError(f"{name}: {value} given, {allowed} is allowed")


def _require_shares(params: Any, names: str) -> None:
    _require(params, names, 1, "null or a number from 0 to 1")


def _require_counts(params: Any, names: str) -> None:
    _require(params, names, _MAX_COUNT, "null or a number from 0 to 2**31 - 1")


def _require_order(params: Any, low: str, high: str) -> None:
    least, most = getattr(params, low), getattr(params, high)
    if least is not None and most is not None and least > most:
        raise ValueError(f"{low}: {least} given, at most {high} ({most}) is allowed")


@dataclass(frozen=True)
class BasicParams:
    """Rules beside the published sets. null switches a rule off.

    min_chars: characters, also of what C4's line rules leave; mT5 (Xue et al. 2021) takes 200 for a line of real text.
    min_unique_word_ratio: distinct words / words in windows of 1,000 words, averaged; of a shorter document the
        rps_doc_frac_unique_words of RedPajama-V2 (Weber et al. 2024), which sets no threshold.
    max_punctuation_ratio: punctuation and symbols / characters; 0.25 as NeMo Curator's NonAlphaNumericFilter.
    max_code_line_ratio: lines that look like code / lines. Prose about code stays below 0.6, C and C++ lie above.
    """

    min_chars: int | None = 200
    min_unique_word_ratio: float | None = 0.1
    max_punctuation_ratio: float | None = 0.25
    max_code_line_ratio: float | None = 0.6

    def __post_init__(self) -> None:
        _require_counts(self, "min_chars")
        _require_shares(self, "min_unique_word_ratio max_punctuation_ratio max_code_line_ratio")


@dataclass(frozen=True)
class GopherParams:
    """Gopher's quality rules: Rae et al. 2021, appendix A1.1. null switches a rule off.

    min_words, max_words, min_mean_word_chars, max_mean_word_chars: over words with a letter or a digit; the mean is not
        judged where most letters are of a script written without spaces.
    max_hash_ratio, max_ellipsis_ratio: "#", and "…" or "...", per word.
    max_bullet_lines, max_ellipsis_lines: shares of lines that start with a bullet, end in an ellipsis.
    min_alphabetic_words: share of words with a letter.
    min_stop_words: distinct words of `stop_words`, which maps the document's meta "language" to a list; a language
        without a list is not judged, a document without a language must pass with one list.
    """

    min_words: int | None = 50
    max_words: int | None = 100_000
    min_mean_word_chars: float | None = 3.0
    max_mean_word_chars: float | None = 10.0
    max_hash_ratio: float | None = 0.1
    max_ellipsis_ratio: float | None = 0.1
    max_bullet_lines: float | None = 0.9
    max_ellipsis_lines: float | None = 0.3
    min_alphabetic_words: float | None = 0.8
    min_stop_words: int | None = 2
    stop_words: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: {"en": ENGLISH_STOP_WORDS})

    def __post_init__(self) -> None:
        _require_counts(self, "min_words max_words min_mean_word_chars max_mean_word_chars min_stop_words")
        _require_counts(self, "max_hash_ratio max_ellipsis_ratio")
        _require_shares(self, "max_bullet_lines max_ellipsis_lines min_alphabetic_words")
        _require_order(self, "min_words", "max_words")
        _require_order(self, "min_mean_word_chars", "max_mean_word_chars")
        for language, words in self.stop_words.items():
            for word in words:
                if measure(word, (), 0, 0, 0, 0, 0).words != 1 or word != word.strip():
                    raise ValueError(f"stop_words.{language}: {word!r} given, a single word is allowed")

    @cached_property
    def stop_lists(self) -> dict[str, tuple[str, ...]]:
        """`stop_words` without repeated words."""
        return {language: tuple(dict.fromkeys(words)) for language, words in self.stop_words.items()}

    def lists_for(self, language: Any) -> tuple[tuple[str, ...], ...]:
        """The lists that a document of `language` is held against; () when it is not judged."""
        if self.min_stop_words is None:
            return ()
        if not language:
            return tuple(self.stop_lists.values())
        words = self.stop_lists.get(language)
        return () if words is None else (words,)


@dataclass(frozen=True)
class RepetitionParams:
    """Gopher's repetition rules: Rae et al. 2021, table A1. Shares of lines, paragraphs or characters; null: off."""

    max_duplicate_lines: float | None = 0.30
    max_duplicate_paragraphs: float | None = 0.30
    max_duplicate_line_chars: float | None = 0.20
    max_duplicate_paragraph_chars: float | None = 0.20
    max_top_2_gram: float | None = 0.20
    max_top_3_gram: float | None = 0.18
    max_top_4_gram: float | None = 0.16
    max_duplicate_5_grams: float | None = 0.15
    max_duplicate_6_grams: float | None = 0.14
    max_duplicate_7_grams: float | None = 0.13
    max_duplicate_8_grams: float | None = 0.12
    max_duplicate_9_grams: float | None = 0.11
    max_duplicate_10_grams: float | None = 0.10

    def __post_init__(self) -> None:
        _require_shares(self, " ".join(self.__dataclass_fields__))

    @cached_property
    def ngram_rules(self) -> tuple[tuple[int, str, float, str], ...]:
        """(n, count, threshold, reason) of the n-gram rules that are on, n rising."""
        top = [(n, f"top_{n}_gram_chars", f"max_top_{n}_gram", f"repetition-top-{n}-gram") for n in range(2, 5)]
        duplicate = [
            (n, f"duplicate_{n}_gram_chars", f"max_duplicate_{n}_grams", f"repetition-duplicate-{n}-grams")
            for n in range(5, 11)
        ]
        rules = [(n, count, getattr(self, name), reason) for n, count, name, reason in top + duplicate]
        return tuple(rule for rule in rules if rule[2] is not None)


@dataclass(frozen=True)
class C4Params:
    """C4's rules: Raffel et al. 2020, section 2.2, and its released code. null or false switches a rule off.

    In the released code's order. A line that a rule removes is not there for the rules behind it:
        max_word_chars: lines with a longer word are removed (the document goes on with the rest).
        remove_citations: "[1]", "[edit]", "[citation needed]" are cut out (off: it also eats x[1] in technical text).
        require_terminal_punctuation: lines that do not end in terminal punctuation or a quote, or end in "...", are
            removed (off, since it eats hard-wrapped text; FineWeb (Penedo et al. 2024, section 3.5) left it out
            because it removes 30 % of the tokens).
        min_words_per_line: lines with fewer words are removed.
        drop_lorem_ipsum: a line with "lorem ipsum" drops the document.
        remove_javascript_lines: lines with "javascript" are removed.
        drop_curly_brackets: a line with "{" drops the document (turn it off for technical text).
        remove_policy_lines: lines with a cookie or policy phrase are removed.
    min_sentences: documents with fewer sentences in what is left are dropped.
    """

    require_terminal_punctuation: bool = False
    min_words_per_line: int | None = 3
    max_word_chars: int | None = 1000
    remove_javascript_lines: bool = True
    remove_policy_lines: bool = True
    remove_citations: bool = False
    drop_lorem_ipsum: bool = True
    drop_curly_brackets: bool = True
    min_sentences: int | None = 5

    def __post_init__(self) -> None:
        _require_counts(self, "min_words_per_line min_sentences")
        if self.max_word_chars is not None and not 1 <= self.max_word_chars <= _MAX_COUNT:
            raise ValueError(
                f"max_word_chars: {self.max_word_chars} given, null or a number from 1 to 2**31 - 1 is allowed"
            )


@dataclass(frozen=True)
class FineWebParams:
    """FineWeb's rules: Penedo et al. 2024, section 3.6. They judge what C4's line rules left. null: off.

    min_terminal_lines: share of lines that end in terminal punctuation.
    max_short_lines: share of lines of at most short_line_chars characters.
    max_duplicate_line_chars: characters of lines met before / characters without line breaks.
    max_newline_ratio: line breaks per word.
    """

    min_terminal_lines: float | None = 0.12
    max_short_lines: float | None = 0.67
    short_line_chars: int = 30
    max_duplicate_line_chars: float | None = 0.01
    max_newline_ratio: float | None = 0.3

    def __post_init__(self) -> None:
        _require_shares(self, "min_terminal_lines max_short_lines max_duplicate_line_chars")
        _require_counts(self, "max_newline_ratio short_line_chars")


@dataclass(frozen=True)
class HeuristicsParams:
    """The rule sets, in the order in which they judge; null switches a set off."""

    basic: BasicParams | None = BasicParams()
    gopher: GopherParams | None = field(default_factory=GopherParams)
    repetition: RepetitionParams | None = RepetitionParams()
    c4: C4Params | None = C4Params()
    fineweb: FineWebParams | None = FineWebParams()

    @cached_property
    def limits(self) -> tuple[int, int, int, int, int]:
        """The kernel's max_ngram, short_line_chars, min_line_words, max_word_chars and flags: no work for rules off."""
        basic, gopher, repetition, c4, fineweb = self.basic, self.gopher, self.repetition, self.c4, self.fineweb
        flags = max_ngram = 0
        if repetition:
            max_ngram = max((rule[0] for rule in repetition.ngram_rules), default=0)
            if repetition.max_duplicate_paragraphs is not None or repetition.max_duplicate_paragraph_chars is not None:
                flags |= kernel.PARAGRAPHS
            if repetition.max_duplicate_lines is not None or repetition.max_duplicate_line_chars is not None:
                flags |= kernel.LINES
        if fineweb and fineweb.max_duplicate_line_chars is not None:
            flags |= kernel.LINES
        unique = basic is not None and basic.min_unique_word_ratio is not None
        if unique or max_ngram or (gopher is not None and gopher.min_stop_words is not None):
            flags |= kernel.WORDS
        if c4:
            flags |= kernel.NEED_TERMINAL if c4.require_terminal_punctuation else 0
            flags |= kernel.NO_JAVASCRIPT if c4.remove_javascript_lines else 0
            flags |= kernel.NO_POLICY if c4.remove_policy_lines else 0
        short = fineweb.short_line_chars if fineweb else 0
        return max_ngram, short, (c4 and c4.min_words_per_line) or 0, (c4 and c4.max_word_chars) or 0, flags


def _judge_basic(found: Features, chars: int, p: BasicParams) -> str | None:
    if p.min_unique_word_ratio is not None and found.window_unique_words / (found.words or 1) < p.min_unique_word_ratio:
        return "basic-low-unique-word-ratio"
    if p.max_punctuation_ratio is not None and found.punctuation / (chars or 1) > p.max_punctuation_ratio:
        return "basic-high-punctuation-ratio"
    if p.max_code_line_ratio is not None and found.code_lines / (found.lines or 1) > p.max_code_line_ratio:
        return "basic-code-like"
    return None


def _judge_gopher(found: Features, stop_lists: tuple[tuple[str, ...], ...], p: GopherParams) -> str | None:
    words, lines = found.words or 1, found.lines or 1
    if p.min_words is not None and found.alnum_words < p.min_words:
        return "gopher-too-few-words"
    if p.max_words is not None and found.alnum_words > p.max_words:
        return "gopher-too-many-words"
    if 2 * found.spaceless_letters <= found.letters:
        mean = found.alnum_word_chars / (found.alnum_words or 1)
        if p.min_mean_word_chars is not None and mean < p.min_mean_word_chars:
            return "gopher-short-words"
        if p.max_mean_word_chars is not None and mean > p.max_mean_word_chars:
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


def _judge_repetition(found: Features, chars: int, p: RepetitionParams) -> str | None:
    lines, paragraphs, chars = found.lines or 1, found.paragraphs or 1, chars or 1
    if p.max_duplicate_lines is not None and found.duplicate_lines / lines > p.max_duplicate_lines:
        return "repetition-duplicate-lines"
    if p.max_duplicate_paragraphs is not None and found.duplicate_paragraphs / paragraphs > p.max_duplicate_paragraphs:
        return "repetition-duplicate-paragraphs"
    if p.max_duplicate_line_chars is not None and found.duplicate_line_chars / chars > p.max_duplicate_line_chars:
        return "repetition-duplicate-line-chars"
    most = p.max_duplicate_paragraph_chars
    if most is not None and found.duplicate_paragraph_chars / chars > most:
        return "repetition-duplicate-paragraph-chars"
    if found.top_2_gram_chars:  # else no n-gram occurs twice
        for _, count, threshold, reason in p.ngram_rules:
            if getattr(found, count) / chars > threshold:
                return reason
    return None


def _cut_citations(text: str, max_word_chars: int) -> str:
    """`text` without citations; a line with a word of more than max_word_chars (0: any) stays whole, to be removed."""

    def is_too_long(line: str) -> bool:
        return 0 < max_word_chars < len(line) and not measure(line, (), 0, 0, 0, max_word_chars, 0).kept_lines

    lines = text.splitlines(keepends=True)
    return "".join(line if "[" not in line or is_too_long(line) else _CITATION.sub("", line) for line in lines)


def _judge_c4(found: Features, p: C4Params) -> str | None:
    if p.drop_lorem_ipsum and found.lorem_ipsum:
        return "c4-lorem-ipsum"
    if p.drop_curly_brackets and found.curly_brackets:
        return "c4-curly-bracket"
    if found.lines and not found.kept_lines:
        return "c4-no-lines-left"
    if p.min_sentences is not None and found.kept_sentences < p.min_sentences:
        return "c4-too-few-sentences"
    return None


def _judge_fineweb(found: Features, p: FineWebParams) -> str | None:
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


def judge_heuristics(doc: Document, params: HeuristicsParams) -> Document | Drop:
    """`doc`, `doc` without the lines that C4's rules remove (with a new id), or Drop with the first rule that fails.

    Rules judge in the order of the fields of `HeuristicsParams` and of the checks in each set. Basic, Gopher and
    repetition see the text as it came, C4's document rules and FineWeb what the line rules left, and min_chars both. A
    share of nothing is 0. Cost: one kernel pass, about 10 microseconds for 900 characters of English, linear for any
    text. Raises UnicodeEncodeError when lines are removed from a text with lone surrogates.
    """
    text, basic, c4 = doc.text, params.basic, params.c4
    min_chars = 0 if basic is None or basic.min_chars is None else basic.min_chars
    if len(text) < min_chars:
        return Drop("basic-too-few-characters")
    stop_lists = params.gopher.lists_for(doc.meta.get("language")) if params.gopher else ()
    found = measure(text, stop_lists, *params.limits)
    reason = (
        (_judge_basic(found, len(text), basic) if basic else None)
        or (_judge_gopher(found, stop_lists, params.gopher) if params.gopher else None)
        or (_judge_repetition(found, len(text), params.repetition) if params.repetition else None)
    )
    if reason is None and c4:
        if c4.remove_citations and "[" in text:
            text = _cut_citations(text, c4.max_word_chars or 0)
            found = measure(text, (), *params.limits)
        reason = _judge_c4(found, c4)
    if reason is None and params.fineweb:
        reason = _judge_fineweb(found, params.fineweb)
    if reason is not None:
        return Drop(reason)
    text = text if found.text is None else found.text
    if len(text) < min_chars:
        return Drop("basic-too-few-characters")
    return doc if text == doc.text else replace(doc, text=text, id=document_id(text))


@dataclass
class FilterHeuristics(beam.PTransform):
    """Drop documents that fail a heuristic quality rule, and remove the lines that C4's line rules name."""

    params: HeuristicsParams = field(default_factory=HeuristicsParams)
    rejects: RejectParams = field(default_factory=RejectParams)

    def expand(self, docs: beam.PCollection) -> beam.PCollection:
        return docs | PerDocument("heuristics", partial(judge_heuristics, params=self.params), rejects=self.rejects)
