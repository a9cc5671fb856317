"""Single rules on texts, decided by dolma's taggers or DCLM's filters and by our stage: benchmarks/conformance.py.

dolma 1.2.1 pins libraries that the pipeline cannot have, but its taggers run with newer ones; docs/conformance.md has
what to install. Taggers note figures; the decision is the figure beside the threshold of the recipe.

DCLM's code is in no package: the folder is a checkout of mlfoundations/dclm, whose filters are imported as they are.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import patch

from benchmarks.conformance_others import stage
from benchmarks.conformance_rules import OFF, Decision, Rule, alone, ours, values_of
from refinery.transforms.filter.heuristics_rules import C4Params, HeuristicsParams
from refinery.transforms.filter.language import LanguageParams, bundled_model, judge_language, load_language

Figures = Mapping[str, float]
Drops = Callable[[Figures], bool]
DOLMA_GOPHER = {  # our rule: their figure, and whether it drops from above
    "min_words": ("word_count", False),
    "max_words": ("word_count", True),
    "min_mean_word_chars": ("median_word_length", False),
    "max_mean_word_chars": ("median_word_length", True),
    "max_hash_ratio": ("symbol_to_word_ratio", True),
    "max_bullet_lines": ("fraction_of_lines_starting_with_bullet_point", True),
    "max_ellipsis_lines": ("fraction_of_lines_ending_with_ellipsis", True),
    "min_alphabetic_words": ("fraction_of_words_with_alpha_character", False),
    "min_stop_words": ("required_word_count", False),
}
DOLMA_REPETITION = {
    "max_duplicate_lines": "fraction_of_duplicate_lines",
    "max_duplicate_line_chars": "fraction_of_characters_in_duplicate_lines",
    **{f"max_top_{n}_gram": f"fraction_of_characters_in_most_common_{n}grams" for n in range(2, 5)},
    **{f"max_duplicate_{n}_grams": f"fraction_of_characters_in_duplicate_{n}grams" for n in range(5, 11)},
}
DOLMA_LINES = {
    "require_terminal_punctuation": "lines_with_no_ending_punctuation",
    "min_words_per_line": "lines_with_too_few_words",
}
DOLMA_MARKS = {"drop_lorem_ipsum": "has_lorem_ipsum", "drop_curly_brackets": "has_curly_brace"}


def dolma_rules(recipe: Any) -> Iterator[Rule]:
    """Gopher's rules by `gopher_v1`, C4's by `c4_v2`, English by `ft_lang_id_en_only_v2`."""
    with patch("nltk.download"):  # its sentences, which no tagger here asks for
        from dolma.core.data_types import Document
        from dolma.taggers import c4, gopher, language
    whole = _counting(recipe.heuristics, "dolma")
    spans = lru_cache(4)(lambda tagger, text: tagger.predict(Document(source="", id="", version="", text=text)).spans)
    gopher_v1, c4_v2 = gopher.GopherTagger(), c4.FasterC4Tagger()

    def figures(text: str) -> Figures:
        return {span.type: span.score for span in spans(gopher_v1, text)}

    everything: list[Drops] = []
    for section, name, figure, above in _dolma_figures():
        drops = partial(_is_beyond, figure, getattr(getattr(whole, section), name), above)
        everything.append(drops)
        yield Rule(f"{section}.{name}", _of_figures(figures, [drops]), ours(alone(whole, section, [name])))
    both = {name: value for name, value in values_of(whole).items() if name not in ("basic", "c4", "fineweb")}
    yield Rule("gopher, all", _of_figures(figures, everything), ours(HeuristicsParams.model_validate({**OFF, **both})))
    for name, mark in (DOLMA_MARKS | DOLMA_LINES).items():
        limit = C4Params().min_words_per_line if name == "min_words_per_line" else True
        params = alone(HeuristicsParams.model_validate({**OFF, "c4": C4Params(), "counting": "dolma"}), "c4", [])
        params = HeuristicsParams.model_validate(
            {**values_of(params), "c4": C4Params(**{**values_of(params.c4), name: limit})}
        )
        left = partial(_without, lambda text: spans(c4_v2, text), mark, mark in DOLMA_MARKS.values())
        yield Rule(f"c4.{name}", left, ours(params), by_text=True)
    tagger_type = language.FastTextEnglishOnlyLanguageDocumentTagger
    tagger_type.MODEL_PATH = str(bundled_model())  # otherwise it downloads lid.176.bin
    tagger, own = tagger_type(), LanguageParams(languages={"en": 0.65}, max_chars=None, relatives=False)
    judge = stage(partial(judge_language, model=load_language(own), params=own))
    theirs = _of_figures(
        lambda text: {span.type: span.score for span in spans(tagger, text)}, [lambda f: f["en"] < 0.65]
    )
    yield Rule("language.en", theirs, judge)
    yield Rule("language.en, small letters", theirs, lambda text: judge(text.lower()))


def _dolma_figures() -> Iterator[tuple[str, str, str, bool]]:
    yield from (("gopher", name, figure, above) for name, (figure, above) in DOLMA_GOPHER.items())
    yield from (("repetition", name, figure, True) for name, figure in DOLMA_REPETITION.items())


def _is_beyond(figure: str, limit: float, above: bool, found: Figures) -> bool:
    return figure in found and (found[figure] > limit if above else found[figure] < limit)


def _of_figures(figures: Callable[[str], Figures], drops: list[Drops]) -> Callable[[str], Decision]:
    return lambda text: Decision("dropped" if any(each(figures(text)) for each in drops) else "")


def _without(spans: Callable[[str], Any], mark: str, drops: bool, text: str) -> Decision:
    """The text without what was marked; dropped, where the mark is one of documents or nothing is left."""
    found = [span for span in spans(text) if span.type == mark]
    if drops:
        return Decision(mark if found else "", text)
    kept: list[str] = []
    at = 0
    for span in found:
        kept, at = [*kept, text[at : span.start]], span.end
    return Decision("", "".join([*kept, text[at:]]))


def dclm_rules(recipe: Any, checkout: Path) -> Iterator[Rule]:
    """Gopher's rules by content_filters.py, each with the threshold of the recipe."""
    filters = _dclm_filters(checkout)
    whole = _counting(recipe.heuristics, "dclm")
    gopher, repetition = whole.gopher, whole.repetition
    if not (gopher and repetition):
        raise SystemExit("heuristics: gopher and repetition must be on in this recipe")
    words = {"length_type": "word", "ignore_punctuation": True}
    rules: dict[tuple[str, str], Callable[[dict[str, str]], list[Any]]] = {
        ("gopher", "min_words"): partial(filters.page_length_filter, min_length=gopher.min_words, **words),
        ("gopher", "max_words"): partial(filters.page_length_filter, max_length=gopher.max_words, **words),
        ("gopher", "min_mean_word_chars"): partial(filters.word_length_filter, min_length=gopher.min_mean_word_chars),
        ("gopher", "max_mean_word_chars"): partial(filters.word_length_filter, max_length=gopher.max_mean_word_chars),
        ("gopher", "max_hash_ratio"): partial(
            filters.symbol_ratio_filter, max_symbol_to_word_ratio=gopher.max_hash_ratio
        ),
        ("gopher", "max_bullet_lines"): partial(
            filters.bullet_count_filter, max_bullet_start_ratio=gopher.max_bullet_lines
        ),
        ("gopher", "max_ellipsis_lines"): partial(
            filters.ellipsis_count_filter, max_ellipsis_end_ratio=gopher.max_ellipsis_lines
        ),
        ("gopher", "min_alphabetic_words"): partial(
            filters.alphabetic_word_ratio_filter, max_ratio=round(1 - (gopher.min_alphabetic_words or 0), 6)
        ),
        ("gopher", "min_stop_words"): partial(filters.stop_word_filter, min_stop_word=gopher.min_stop_words),
    }
    cached: dict[str, dict[str, Any]] = {}  # of one document, as their own loop over the rules has it
    for figure, most, _ in repetition.rules:
        granularity = figure.ngram or ("paragraph" if "paragraph" in figure.name else "line")
        rules["repetition", f"max_{figure.name}"] = partial(
            _repeated, filters.repetition_filter, cached, granularity, most, "char" in figure.name
        )

    def decide(chosen: list[Callable[[dict[str, str]], list[Any]]], text: str) -> Decision:
        page = {"text": text}
        return Decision("" if all(rule(page) for rule in chosen) else "dropped")

    for (section, name), rule in rules.items():
        yield Rule(f"{section}.{name}", partial(decide, [rule]), ours(alone(whole, section, [name])))
    both = {"gopher": gopher, "repetition": repetition, "counting": "dclm"}
    yield Rule(
        "both sets", partial(decide, list(rules.values())), ours(HeuristicsParams.model_validate({**OFF, **both}))
    )


def _repeated(
    rule: Callable[..., list[Any]],
    cached: dict[str, dict[str, Any]],
    granularity: str | int,
    most: float,
    characters: bool,
    page: dict[str, str],
) -> list[Any]:
    return rule(page, granularity, most, count_characters=characters, cache=_cache_of(cached, page["text"]))


def _cache_of(cached: dict[str, dict[str, Any]], text: str) -> dict[str, Any]:
    if text not in cached:
        cached.clear()
        cached[text] = {}
    return cached[text]


def _dclm_filters(checkout: Path) -> Any:
    """Their module. It imports a model's tokenizer for a filter that is not used here."""
    if not (checkout / "baselines").is_dir():
        raise SystemExit(f"--checkout: {str(checkout)!a} given, a checkout of github.com/mlfoundations/dclm is needed")
    sys.path[:0] = [str(checkout), str(checkout / "baselines")]
    unused = ModuleType("transformers")
    unused.AutoTokenizer = SimpleNamespace()  # type: ignore[attr-defined]
    with patch.dict(sys.modules, {"transformers": unused}):
        from baselines.mappers.filters import content_filters
    return content_filters


def _counting(whole: HeuristicsParams, counting: str) -> HeuristicsParams:
    return HeuristicsParams.model_validate({**values_of(whole), "counting": counting})
