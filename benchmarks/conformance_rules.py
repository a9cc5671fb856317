"""Single rules on texts, each decided by datatrove's own filter and by our stage. Needs the extra [bench].

A rule stands alone: in datatrove's filter and in our parameters every other rule is off.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from typing import Any, NamedTuple

from datatrove.data import Document as TheirDocument
from datatrove.pipeline.filters import (
    C4QualityFilter,
    FineWebQualityFilter,
    GopherQualityFilter,
    GopherRepetitionFilter,
)
from datatrove.utils.word_tokenizers import WordTokenizer

from refinery.transforms.core.document import Document, Drop, document_id
from refinery.transforms.core.params import Params
from refinery.transforms.filter.heuristics import judge_heuristics
from refinery.transforms.filter.heuristics_rules import C4Params, HeuristicsParams
from refinery.transforms.native import scripts
from refinery.transforms.native.heuristics import measure


class Decision(NamedTuple):
    """What one side says of a text: the reason against it, "" for none, and the text that is left, if it changes."""

    reason: str
    text: str = ""

    @property
    def keeps(self) -> bool:
        return not self.reason


class Rule(NamedTuple):
    """One decision, made twice. by_text: the texts that are left are compared, too, line by line."""

    name: str
    theirs: Callable[[str], Decision]
    ours: Callable[[str], Decision]
    by_text: bool = False


_FIRST = [first for first, _ in scripts.unspaced()]
_LAST = [last for _, last in scripts.unspaced()]


@lru_cache(maxsize=65_536)
def kind_of(character: str) -> int:
    """1: a letter of a script written without spaces, 2: a mark that may follow it, else 0, as in our kernel."""
    at = bisect_right(_FIRST, ord(character)) - 1
    if character.isalpha():
        return int(at >= 0 and ord(character) <= _LAST[at])
    return 2 if measure(f"一{character}", (), 0, 0, 0, 0, 0).words == 1 and not character.isspace() else 0


def words_of(text: str) -> list[str]:
    """The words that our kernel counts: between spaces, and letter by letter in scripts that are written without."""
    found: list[str] = []
    for run in text.split():
        if run.isascii():
            found.append(run)
            continue
        start, after_letter = 0, False
        for i, character in enumerate(run):
            kind = kind_of(character)
            if i and (kind == 1 or (after_letter and kind != 2)):
                found.append(run[start:i])
                start = i
            after_letter = kind == 1 or (after_letter and kind == 2)
        found.append(run[start:])
    return found


class SameWords(WordTokenizer):  # type: ignore[misc, unused-ignore]
    """Our words, and as many sentences as we count, for datatrove's filters. Instances compare equal, so they
    share its cache of split texts."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SameWords)

    def __hash__(self) -> int:
        return 1

    def word_tokenize(self, text: str) -> list[str]:
        return words_of(text)

    def sent_tokenize(self, text: str) -> list[str]:
        return [text[a:b] for a, b in self.span_tokenize(text)]

    def span_tokenize(self, text: str) -> list[tuple[int, int]]:
        ends = [len(text)] * measure(text, (), 0, 0, 0, 0, 0).kept_sentences
        return [(0, end) for end in ends]


def theirs(block: Any) -> Callable[[str], Decision]:
    """A filter of datatrove as a decision."""

    def decide(text: str) -> Decision:
        doc = TheirDocument(text=text, id="0")
        try:
            found = block.filter(doc)
        except ZeroDivisionError:
            return Decision("division by zero")
        if isinstance(found, tuple):
            return Decision("" if found[0] else found[1])
        return Decision("" if found else "dropped", doc.text)

    return decide


def ours(params: HeuristicsParams, language: str = "en") -> Callable[[str], Decision]:
    """Our stage as a decision, on a document of that language."""

    def decide(text: str) -> Decision:
        doc = Document(document_id(text), text, "", "", "", 0, {"language": language})
        found = judge_heuristics(doc, params)
        return Decision(found.reason) if isinstance(found, Drop) else Decision("", found.text)

    return decide


def values_of(params: Params | None) -> dict[str, Any]:
    """Name -> value of every field."""
    return {name: getattr(params, name) for name in type(params).model_fields} if params else {}


def alone(whole: HeuristicsParams, section: str, rules: Iterable[str]) -> HeuristicsParams:
    """`whole` with these rules of a section on and all else off; settings that are not rules (lengths, lists) stay."""
    params: Params = getattr(whole, section)
    values = values_of(params)
    for name in RULES_OF[section]:
        if name not in rules:
            values[name] = False if isinstance(values[name], bool) else None
    return HeuristicsParams(**{**values_of(whole), **OFF, section: type(params)(**values)})


OFF = dict.fromkeys(("basic", "gopher", "repetition", "c4", "fineweb"))
GOPHER = {  # our rule: theirs
    "min_words": "min_doc_words",
    "max_words": "max_doc_words",
    "min_mean_word_chars": "min_avg_word_length",
    "max_mean_word_chars": "max_avg_word_length",
    "max_hash_ratio": "max_symbol_word_ratio",
    "max_ellipsis_ratio": "max_symbol_word_ratio",
    "max_bullet_lines": "max_bullet_lines_ratio",
    "max_ellipsis_lines": "max_ellipsis_lines_ratio",
    "min_alphabetic_words": "max_non_alpha_words_ratio",
    "min_stop_words": "min_stop_words",
}
REPETITION = {
    "max_duplicate_lines": "dup_line_frac",
    "max_duplicate_paragraphs": "dup_para_frac",
    "max_duplicate_line_chars": "dup_line_char_frac",
    "max_duplicate_paragraph_chars": "dup_para_char_frac",
}
TOP, DUPLICATE = (2, 3, 4), (5, 6, 7, 8, 9, 10)
C4: dict[str, dict[str, Any]] = {
    "require_terminal_punctuation": {"filter_no_terminal_punct": True},
    "min_words_per_line": {"min_words_per_line": 3},
    "max_word_chars": {"max_word_length": 1000},
    "remove_javascript_lines": {"filter_javascript": True},
    "remove_policy_lines": {"filter_policy": True},
    "remove_citations": {"remove_citations": True},
    "drop_lorem_ipsum": {"filter_lorem_ipsum": True},
    "drop_curly_brackets": {"filter_curly_bracket": True},
    "min_sentences": {"min_num_sentences": 5, "min_words_per_line": 3},  # without it a blank line is a sentence there
}
FINEWEB = {
    "min_terminal_lines": "line_punct_thr",
    "max_short_lines": "short_line_thr",
    "max_duplicate_line_chars": "char_duplicates_ratio",
    "max_newline_ratio": "new_line_ratio",
}
RULES_OF = {
    "gopher": tuple(GOPHER),
    "repetition": (
        *REPETITION,
        *(f"max_top_{n}_gram" for n in TOP),
        *(f"max_duplicate_{n}_grams" for n in DUPLICATE),
    ),
    "c4": tuple(C4),
    "fineweb": tuple(FINEWEB),
}


def text_rules(whole: HeuristicsParams, words: Any) -> Iterator[Rule]:
    """Every rule of the sets that are on alone, with our thresholds on both sides; C4's as they work together in
    FineWeb, and FineWeb's behind them; all sets together.

    words: a tokenizer of datatrove, or the language of one.
    """
    if not (whole.gopher and whole.repetition and whole.fineweb):
        raise SystemExit("heuristics: gopher, repetition and fineweb must be on; recipes/fineweb.yaml has all of them")
    language, stop_words = next(iter(whole.gopher.stop_words.items()))
    decide = partial(ours, language=language)
    off: dict[str, Any] = dict.fromkeys(set(GOPHER.values()))
    for name, their_name in GOPHER.items():
        block = GopherQualityFilter(
            **{**off, their_name: getattr(whole.gopher, name)}, stop_words=list(stop_words), language=words
        )
        hidden = {"max_hash_ratio": ("...…", "*"), "max_ellipsis_ratio": ("#", "*")}.get(name, ("", ""))
        yield Rule(f"gopher.{name}", _hiding(theirs(block), *hidden), decide(alone(whole, "gopher", [name])))
    off = {**dict.fromkeys(REPETITION.values(), 0), "top_n_grams": (), "dup_n_grams": ()}
    pairs = _repetition(whole)
    for name, on in pairs.items():
        block = GopherRepetitionFilter(**{**off, **on}, language=words)
        yield Rule(f"repetition.{name}", theirs(block), decide(alone(whole, "repetition", [name])))
    if whole.c4:
        yield from _c4_rules(whole, words)
    off = {"line_punct_thr": -1.0, "short_line_thr": 999, "char_duplicates_ratio": 999, "new_line_ratio": 999}
    fineweb = {their: most for name, their in FINEWEB.items() if (most := getattr(whole.fineweb, name)) is not None}
    fineweb_c4 = theirs(C4QualityFilter(filter_no_terminal_punct=False, remove_citations=True, language=words))
    for name, their_name in FINEWEB.items():
        if their_name not in fineweb:
            continue
        block = theirs(FineWebQualityFilter(**{**off, their_name: fineweb[their_name]}, language=words))
        own = alone(whole, "fineweb", [name])
        yield Rule(f"fineweb.{name}", block, decide(own))
        if whole.c4:
            both = HeuristicsParams(**{**values_of(own), "c4": whole.c4})
            yield Rule(f"c4, then fineweb.{name}", _in_order(fineweb_c4, block), decide(both))
    if whole.c4:
        our_c4 = decide(HeuristicsParams(**{**values_of(whole), **OFF, "c4": whole.c4}))
        yield Rule("c4, all", fineweb_c4, our_c4, by_text=True)
    merged: dict[str, Any] = {**dict.fromkeys(REPETITION.values(), 0)}
    for key in ("top_n_grams", "dup_n_grams"):
        merged[key] = tuple(pair for on in pairs.values() for pair in on.get(key, ()))
    merged |= {key: most for on in pairs.values() for key, most in on.items() if key in REPETITION.values()}
    gopher = {their: getattr(whole.gopher, name) for name, their in GOPHER.items()}
    yield Rule(
        "all sets",
        _in_order(
            theirs(GopherRepetitionFilter(**merged, language=words)),
            theirs(GopherQualityFilter(**gopher, stop_words=list(stop_words), language=words)),
            *([fineweb_c4] if whole.c4 else []),
            theirs(FineWebQualityFilter(**{**off, **fineweb}, language=words)),
        ),
        decide(HeuristicsParams(**{**values_of(whole), "basic": None})),
        by_text=True,
    )


def _repetition(whole: HeuristicsParams) -> dict[str, dict[str, Any]]:
    """Our rules that are on -> their arguments."""
    limits = values_of(whole.repetition)
    pairs: dict[str, dict[str, Any]] = {name: {their: limits[name]} for name, their in REPETITION.items()}
    for key, kind, sizes in (
        ("top_n_grams", "max_top_{}_gram", TOP),
        ("dup_n_grams", "max_duplicate_{}_grams", DUPLICATE),
    ):
        pairs |= {kind.format(n): {key: ((n, limits[kind.format(n)]),)} for n in sizes}
    return {name: on for name, on in pairs.items() if limits[name] is not None}


def _c4_rules(whole: HeuristicsParams, words: Any) -> Iterator[Rule]:
    """Each rule of C4 alone, also those that FineWeb left out."""
    off = {name: False if isinstance(value, bool) else -1 for on in C4.values() for name, value in on.items()}
    for name, on in C4.items():
        block = C4QualityFilter(**{**off, **on}, language=words)
        params = alone(whole, "c4", [name, *(["min_words_per_line"] if len(on) > 1 else [])])
        if whole.c4 and params.c4 and not getattr(whole.c4, name):
            params = HeuristicsParams(**{**values_of(params), "c4": C4Params(**{**values_of(params.c4), name: True})})
        yield Rule(f"c4.{name}", theirs(block), ours(params), by_text=True)


def _hiding(decide: Callable[[str], Decision], characters: str, cover: str) -> Callable[[str], Decision]:
    """The decision on a text without these characters: of two rules that share a threshold, one."""
    table = {ord(character): cover for character in characters}
    return (lambda text: decide(text.translate(table))) if table else decide


def _in_order(*steps: Callable[[str], Decision]) -> Callable[[str], Decision]:
    """Filters one behind the other, each on what the one before it left."""

    def decide(text: str) -> Decision:
        for step in steps:
            found = step(text)
            if found.reason:
                return found
            text = found.text
        return Decision("", text)

    return decide
