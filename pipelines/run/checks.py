"""What can be wrong with the files that a recipe names, found before anything runs."""

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from refinery.pipelines.run.params import RecipeError
from refinery.pipelines.run.recipe import Recipe
from refinery.transforms.filter.language import load_language
from refinery.transforms.filter.quality import check_quality
from refinery.transforms.filter.toxicity import load_lexicon
from refinery.transforms.filter.url import load_rules
from refinery.transforms.tokenize.encode import TokenizerInfo, check_tokenizer

HINTS = {
    "tokenizer": "; refinery train-tokenizer learns one",
    "quality": "; refinery train-quality trains one",
}


def check_models(recipe: Recipe) -> TokenizerInfo:
    """Load every list and model of the recipe once; returns what the run must know of its tokenizer.

    Raises RecipeError, one line with the section's path. Cost: about a second, most of it the tokenizer.
    """
    for section, check in model_checks(recipe):
        at_path(section, check)
    info: TokenizerInfo = at_path("tokenizer", partial(check_tokenizer, recipe.tokenizer))
    return info


def model_checks(recipe: Recipe) -> Iterator[tuple[str, Callable[[], Any]]]:
    """(section, check) of every stage that loads something."""
    if recipe.url:
        yield "url", partial(load_rules, recipe.url)
    if recipe.language:
        yield "language", partial(load_language, recipe.language)
    if recipe.quality:
        yield "quality", partial(check_quality, recipe.quality)
    if recipe.toxicity:
        yield "toxicity", partial(load_lexicon, recipe.toxicity)


def at_path(section: str, check: Callable[[], Any]) -> Any:
    """The check's result; its ValueError or OSError ("field: …") becomes a RecipeError that names the section, too."""
    try:
        return check()
    except (ValueError, OSError) as error:
        message = str(error).removeprefix("location: ")  # of a store: no key of a recipe
        joint = "." if re.match(r"[a-z_]+(\.\w+)?: ", message) else ": "
        hint = HINTS.get(section, "") if "cannot be read" in message else ""
        raise RecipeError(f"{section}{joint}{message}{hint}") from error
