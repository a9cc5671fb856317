"""The rule sets of the heuristics: their parameters, and a reason for each rule.

docs/heuristics.md explains how the rules count and where they differ from their sources.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

from pydantic import Field, field_validator, model_validator

from refinery.transforms.core.params import Params, Positive, Share
from refinery.transforms.core.stage import Reason
from refinery.transforms.core.wording import given, nearest
from refinery.transforms.filter.heuristics_data import STOP_WORDS, WORD_LENGTHS
from refinery.transforms.native import heuristics as kernel
from refinery.transforms.native.heuristics import measure

GOPHER = "Rae et al. 2021, appendix A1.1"
GOPHER_TABLE = "Rae et al. 2021, table A1"
C4 = "Raffel et al. 2020, section 2.2"
FINEWEB = "Penedo et al. 2024, section 3.6"
REDPAJAMA = "Weber et al. 2024"

Limit = Annotated[int, Field(ge=0, le=2**31 - 1)]
Ratio = Annotated[float, Field(ge=0, le=2**31 - 1)]


def _check_order(params: Any, low: str, high: str) -> None:
    least, most = getattr(params, low), getattr(params, high)
    if least is not None and most is not None and least > most:
        raise ValueError(f"{low}: {least} given, at most {high} ({most}) is allowed")


class BasicParams(Params):
    """Rules beside the published sets. null switches a rule off."""

    min_chars: Limit | None = 200
    """characters, also of what C4's line rules leave; mT5 (Xue et al. 2021) takes 200 for a line of real text"""
    min_unique_word_ratio: Share | None = 0.1
    """distinct words / words in windows of 1,000 words, averaged; of a shorter document the rps_doc_frac_unique_words
    of RedPajama-V2 (Weber et al. 2024), which sets no threshold"""
    max_punctuation_ratio: Share | None = 0.25
    """punctuation and symbols / characters; 0.25 as NeMo Curator's NonAlphaNumericFilter"""
    max_code_line_ratio: Share | None = 0.6
    """lines that look like code / lines; prose about code stays below 0.6, C and C++ are above"""


BASIC_REASONS = (
    Reason("basic-too-few-characters", "fewer characters than `min_chars`", source="Xue et al. 2021"),
    Reason("basic-low-unique-word-ratio", "distinct words / words is below `min_unique_word_ratio`", source=REDPAJAMA),
    Reason("basic-high-punctuation-ratio", "punctuation / characters is above `max_punctuation_ratio`"),
    Reason("basic-code-like", "lines that look like code / lines is above `max_code_line_ratio`"),
)


class GopherParams(Params):
    """Gopher's quality rules: Rae et al. 2021, appendix A1.1. null switches a rule off."""

    min_words: Limit | None = 50
    """words with a letter or a digit"""
    max_words: Limit | None = 100_000
    """words with a letter or a digit"""
    min_mean_word_chars: Ratio | None = 3.0
    """mean length of such words; not judged where most letters are of a script written without spaces"""
    max_mean_word_chars: Ratio | None = 10.0
    """mean length of such words; not judged where most letters are of a script written without spaces"""
    word_lengths: Mapping[str, Ratio] = {}
    """language (meta `language`) to its mean word length over that of English, by which both bounds are multiplied, in
    place of the built-in one (111 languages); others: 1"""
    max_hash_ratio: Ratio | None = 0.1
    """`#` per word"""
    max_ellipsis_ratio: Ratio | None = 0.1
    """`…` and `...` per word"""
    max_bullet_lines: Share | None = 0.9
    """share of lines that start with a bullet"""
    max_ellipsis_lines: Share | None = 0.3
    """share of lines that end in an ellipsis"""
    min_alphabetic_words: Share | None = 0.8
    """share of words with a letter"""
    min_stop_words: Limit | None = 2
    """distinct words of the language's list in `stop_words`"""
    stop_words: Mapping[str, tuple[str, ...]] = {"en": STOP_WORDS["en"]}
    """language (meta `language`) to its list, [] for none, in place of the built-in one (56 languages); a language
    without any list is not judged, a document without a language must satisfy one of those named here"""

    @model_validator(mode="after")
    def _check(self) -> Self:
        _check_order(self, "min_words", "max_words")
        _check_order(self, "min_mean_word_chars", "max_mean_word_chars")
        for language, words in self.stop_words.items():
            for word in words:
                if measure(word, (), 0, 0, 0, 0, 0).words != 1 or word != word.strip():
                    raise ValueError(f"stop_words.{language}: {word!r} given, a single word is allowed")
        return self

    @cached_property
    def stop_lists(self) -> dict[str, tuple[str, ...]]:
        """`stop_words` without repeated words."""
        return {language: tuple(dict.fromkeys(words)) for language, words in self.stop_words.items()}

    def word_length(self, language: Any) -> float:
        """Mean word length of `language` over that of English; 1 where it is not known."""
        return self.word_lengths.get(language, WORD_LENGTHS.get(language, 1.0))

    def word_bounds(self, language: Any) -> tuple[float | None, float | None]:
        """The least and the greatest mean word length of `language`; None: no bound."""
        ratio, least, most = self.word_length(language), self.min_mean_word_chars, self.max_mean_word_chars
        return None if least is None else ratio * least, None if most is None else ratio * most

    def lists_for(self, language: Any) -> tuple[tuple[str, ...], ...]:
        """The lists that a document of `language` is compared with; () when it is not judged."""
        if self.min_stop_words is None:
            return ()
        if not language:
            return tuple(self.stop_lists.values())
        words = self.stop_lists.get(language) if language in self.stop_lists else STOP_WORDS.get(language)
        return (words,) if words else ()


GOPHER_REASONS = (
    Reason("gopher-too-few-words", "fewer words with a letter or a digit than `min_words`", source=GOPHER),
    Reason("gopher-too-many-words", "more words with a letter or a digit than `max_words`", source=GOPHER),
    Reason("gopher-short-words", "their mean length is below `min_mean_word_chars`", source=GOPHER),
    Reason("gopher-long-words", "their mean length is above `max_mean_word_chars`", source=GOPHER),
    Reason("gopher-hash-ratio", "`#` / words is above `max_hash_ratio`", source=GOPHER),
    Reason("gopher-ellipsis-ratio", "`…` and `...` / words is above `max_ellipsis_ratio`", source=GOPHER),
    Reason("gopher-bullet-lines", "lines that start with a bullet / lines is above `max_bullet_lines`", source=GOPHER),
    Reason(
        "gopher-ellipsis-lines", "lines that end in an ellipsis / lines is above `max_ellipsis_lines`", source=GOPHER
    ),
    Reason("gopher-few-alphabetic-words", "words with a letter / words is below `min_alphabetic_words`", source=GOPHER),
    Reason("gopher-few-stop-words", "fewer distinct words of the language's list than `min_stop_words`", source=GOPHER),
)


class RepetitionParams(Params):
    """Gopher's repetition rules: Rae et al. 2021, table A1. Shares of lines, paragraphs or characters; null: off."""

    max_duplicate_lines: Share | None = 0.30
    """repeated lines / lines"""
    max_duplicate_paragraphs: Share | None = 0.30
    """repeated paragraphs / paragraphs"""
    max_duplicate_line_chars: Share | None = 0.20
    """characters of repeated lines / characters"""
    max_duplicate_paragraph_chars: Share | None = 0.20
    """characters of repeated paragraphs / characters"""
    max_top_2_gram: Share | None = 0.20
    """characters of the most frequent 2-gram × its occurrences / characters"""
    max_top_3_gram: Share | None = 0.18
    """the same for n = 3"""
    max_top_4_gram: Share | None = 0.16
    """the same for n = 4"""
    max_duplicate_5_grams: Share | None = 0.15
    """characters of 5-grams met before, none counted twice / characters"""
    max_duplicate_6_grams: Share | None = 0.14
    """the same for n = 6"""
    max_duplicate_7_grams: Share | None = 0.13
    """the same for n = 7"""
    max_duplicate_8_grams: Share | None = 0.12
    """the same for n = 8"""
    max_duplicate_9_grams: Share | None = 0.11
    """the same for n = 9"""
    max_duplicate_10_grams: Share | None = 0.10
    """the same for n = 10"""

    @cached_property
    def rules(self) -> tuple[tuple["Figure", float, str], ...]:
        """(figure, threshold, reason) of the rules that are on, in the order of the fields."""
        found = ((figure, getattr(self, f"max_{name}")) for name, figure in FIGURES.items())
        return tuple((figure, most, figure.reason) for figure, most in found if most is not None)

    @cached_property
    def line_limits(self) -> tuple[tuple[str, float, str], ...]:
        """(name of the figure, threshold, reason) of the rules for lines and paragraphs."""
        return tuple((figure.name, most, reason) for figure, most, reason in self.rules if not figure.ngram)

    @cached_property
    def ngram_limits(self) -> tuple[tuple[int, float, str], ...]:
        """(n, threshold, reason) of the rules for n-grams; n ascends."""
        return tuple((figure.ngram, most, reason) for figure, most, reason in self.rules if figure.ngram)


class Figure(NamedTuple):
    """What a repetition rule compares with its threshold: a share. name: of the rule's field without `max_`. count,
    whole: names of the kernel's counts; "" as whole for the characters of the text. ngram: 0 for lines and paragraphs.
    """

    name: str
    counted: str
    whole: str
    ngram: int = 0

    @property
    def reason(self) -> str:
        return f"repetition-{self.name.replace('_', '-')}"

    @property
    def column(self) -> str:
        """The column of the provenance files that has it, where a recipe asks for it."""
        return f"repetition_{self.name}"

    def of(self, found: Any, chars: int) -> float:
        """Its value for what was counted in a text of so many characters; 0 of nothing. found: kernel.Features, or
        counts under the same names."""
        whole: int = getattr(found, self.whole) if self.whole else chars
        count: int = getattr(found, self.counted)
        return count / (whole or 1)


FIGURES = {
    figure.name: figure
    for figure in (
        Figure("duplicate_lines", "duplicate_lines", "lines"),
        Figure("duplicate_paragraphs", "duplicate_paragraphs", "paragraphs"),
        Figure("duplicate_line_chars", "duplicate_line_chars", ""),
        Figure("duplicate_paragraph_chars", "duplicate_paragraph_chars", ""),
        *(Figure(f"top_{n}_gram", f"top_{n}_gram_chars", "", n) for n in range(2, 5)),
        *(Figure(f"duplicate_{n}_grams", f"duplicate_{n}_gram_chars", "", n) for n in range(5, 11)),
    )
}

REPETITION_REASONS = (
    *(
        Reason(f"repetition-duplicate-{what}", f"above `max_duplicate_{what.replace('-', '_')}`", source=GOPHER_TABLE)
        for what in ("lines", "paragraphs", "line-chars", "paragraph-chars")
    ),
    *(Reason(f"repetition-top-{n}-gram", f"above `max_top_{n}_gram`", source=GOPHER_TABLE) for n in range(2, 5)),
    *(
        Reason(f"repetition-duplicate-{n}-grams", f"above `max_duplicate_{n}_grams`", source=GOPHER_TABLE)
        for n in range(5, 11)
    ),
)


class C4Params(Params):
    """C4's rules, in the order of its released code: Raffel et al. 2020, section 2.2. null or false switches one off.

    A line that a rule removes is not there for the rules behind it.
    """

    require_terminal_punctuation: bool = False
    """lines that do not end in terminal punctuation or a quote, or end in `...`, are removed; off, because it removes
    hard-wrapped text, and FineWeb (Penedo et al. 2024, section 3.5) left it out because it removes 30 % of the
    tokens"""
    min_words_per_line: Limit | None = 3
    """lines with fewer words are removed"""
    max_word_chars: Annotated[Positive, Field(le=2**31 - 1)] | None = 1000
    """lines with a longer word are removed"""
    remove_javascript_lines: bool = True
    """lines with "javascript" are removed"""
    remove_policy_lines: bool = True
    """lines with a cookie or policy phrase are removed"""
    remove_citations: bool = False
    """`[1]`, `[edit]`, `[citation needed]` are cut out; off, because it also removes `x[1]` in technical text"""
    drop_lorem_ipsum: bool = True
    """a line with "lorem ipsum" drops the document"""
    drop_curly_brackets: bool = True
    """a line with `{` drops the document; switch it off for technical text"""
    min_sentences: Limit | None = 5
    """sentences that must be left"""


C4_REASONS = (
    Reason("c4-lorem-ipsum", "a line with lorem ipsum, with `drop_lorem_ipsum`", source=C4),
    Reason("c4-curly-bracket", "a line with `{`, with `drop_curly_brackets`", "switch it off for technical text", C4),
    Reason("c4-no-lines-left", "the line rules removed all lines", source=C4),
    Reason("c4-too-few-sentences", "the lines that are left have fewer sentences than `min_sentences`", source=C4),
)


class FineWebParams(Params):
    """FineWeb's rules: Penedo et al. 2024, section 3.6. They judge what C4's line rules left. null: off."""

    min_terminal_lines: Share | None = 0.12
    """share of lines that end in terminal punctuation"""
    max_short_lines: Share | None = 0.67
    """share of lines of at most `short_line_chars` characters"""
    short_line_chars: Limit = 30
    """characters of a short line"""
    max_duplicate_line_chars: Share | None = 0.01
    """characters of repeated lines / characters without line breaks"""
    max_newline_ratio: Ratio | None = 0.3
    """line breaks per word"""


FINEWEB_REASONS = (
    Reason("fineweb-few-terminal-lines", "below `min_terminal_lines`", source=FINEWEB),
    Reason("fineweb-short-lines", "above `max_short_lines`", source=FINEWEB),
    Reason("fineweb-duplicate-line-chars", "above `max_duplicate_line_chars`", source=FINEWEB),
    Reason("fineweb-newline-ratio", "above `max_newline_ratio`", source=FINEWEB),
)


class HeuristicsParams(Params):
    """The rule sets, in the order in which they judge; null switches a set off."""

    basic: BasicParams | None = BasicParams()
    """rules outside the published sets"""
    gopher: GopherParams | None = GopherParams()
    """Gopher's quality rules"""
    repetition: RepetitionParams | None = RepetitionParams()
    """Gopher's repetition rules"""
    c4: C4Params | None = C4Params()
    """C4's rules"""
    fineweb: FineWebParams | None = FineWebParams()
    """FineWeb's rules"""
    columns: tuple[str, ...] = ()
    """figures of the repetition rules that become columns, each with the prefix `repetition_`: `duplicate_lines`,
    `top_2_gram`, … (the rules' keys without `max_`), whether the rules are on or not"""
    counting: Literal["own", "datatrove", "dclm", "dolma"] = "own"
    """whose units are used: `datatrove`, all sets except `basic` as in FineWeb's code; `dclm`, Gopher's two sets as
    in the code of DCLM and Dolma 3; `dolma`, Gopher's and C4's sets as in the taggers of dolma 1:
    [conformance.md](conformance.md)"""
    LATER: ClassVar[tuple[str, ...]] = ("columns", "counting")

    @field_validator("columns")
    @classmethod
    def _check_columns(cls, columns: tuple[str, ...]) -> tuple[str, ...]:
        for name in columns:
            if name not in FIGURES:
                raise ValueError(f"columns: {given(name)} given, {nearest(name, FIGURES)}")
        if len(set(columns)) < len(columns):
            raise ValueError("columns: a figure given twice, each is allowed once")
        return columns

    @cached_property
    def figures(self) -> tuple[Figure, ...]:
        """Those that become columns."""
        return tuple(FIGURES[name] for name in self.columns)

    @cached_property
    def by_kernel(self) -> bool:
        """Whether Gopher's sets compare counts of the kernel `heuristics`; else those of the kernel `counting`."""
        return self.counting in ("own", "datatrove")

    @cached_property
    def measured(self) -> bool:
        """Whether any rule or column compares counts of the kernel `heuristics`."""
        basic = self.basic
        ratios = basic and (basic.min_unique_word_ratio, basic.max_punctuation_ratio, basic.max_code_line_ratio)
        sets = any(ratio is not None for ratio in ratios or ()) or self.c4 or self.fineweb
        return bool(self.by_kernel or sets or self.columns)

    @cached_property
    def limits(self) -> tuple[int, int, int, int, int]:
        """The kernel's max_ngram, short_line_chars, min_line_words, max_word_chars and flags: no work for rules off."""
        basic, c4, fineweb = self.basic, self.c4, self.fineweb
        gopher, repetition = (self.gopher, self.repetition) if self.by_kernel else (None, None)
        own_lines = self.counting != "datatrove"  # its kernel counts lines and paragraphs
        rules = repetition.rules if repetition else ()
        used = {*self.figures, *(figure for figure, _, _ in rules if figure.ngram or own_lines)}
        max_ngram = max((figure.ngram for figure in used), default=0)
        flags = kernel.PARAGRAPHS if any("paragraph" in figure.counted for figure in used) else 0
        flags |= kernel.LINES if any("line" in figure.counted for figure in used) else 0
        flags |= kernel.LONE_NGRAMS if repetition and self.counting == "datatrove" else 0
        if fineweb and fineweb.max_duplicate_line_chars is not None and own_lines:
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
