"""Writes the recipe of FineWeb2's funnel for another language, from the figures that the project published for it.

    python recipes/fineweb2_language.py configs/fra_Latn.yml > french.yaml

The file is one of configs/ of github.com/huggingface/fineweb-2 (Penedo et al. 2025); its name is GlotLID's
label of the language. All that does not depend on the language comes from recipes/fineweb2.yaml. Needs only PyYAML.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

RECIPE = Path(__file__).with_name("fineweb2.yaml")
# Their key -> our section of `heuristics` and its key.
KEYS = {
    "dup_line_frac": ("repetition", "max_duplicate_lines"),
    "line_punct_thr": ("fineweb", "min_terminal_lines"),
    "new_line_ratio": ("fineweb", "max_newline_ratio"),
    "min_avg_word_length": ("gopher", "min_mean_word_chars"),
    "max_avg_word_length": ("gopher", "max_mean_word_chars"),
    "max_non_alpha_words_ratio": ("gopher", "min_alphabetic_words"),  # the least share of words with a letter there
}
NGRAMS = {"top_n_grams": "max_top_{}_gram", "dup_n_grams": "max_duplicate_{}_grams"}
OTHERS = ("language_score", "stopwords", *NGRAMS)


def figures(config: Mapping[str, Any]) -> Iterator[tuple[str, str, float]]:
    """(section, key, figure) for every threshold of `heuristics`."""
    for key, (section, name) in KEYS.items():
        yield section, name, config[key]
    for key, name in NGRAMS.items():
        for size, most in config[key]:
            yield "repetition", name.format(size), most


def language_recipe(base: Mapping[str, Any], config: Mapping[str, Any], language: str) -> dict[str, Any]:
    """`base` with the figures of `config`. Raises ValueError for a file of other keys."""
    known = {*KEYS, *OTHERS}
    if wrong := sorted(known ^ set(config)):
        raise ValueError(f"{', '.join(map(ascii, wrong))}: missing or unknown; a file of configs/ has {sorted(known)}")
    heuristics = {name: dict(each) if isinstance(each, Mapping) else each for name, each in base["heuristics"].items()}
    for section, name, figure in figures(config):
        heuristics[section][name] = figure
    heuristics["gopher"]["stop_words"] = {language: config["stopwords"]}
    languages = {language: config["language_score"]}
    return {
        **base,
        "name": f"fineweb2-{language.lower().replace('_', '-')}",
        "language": {**base["language"], "languages": languages},
        "heuristics": heuristics,
    }


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", type=Path, metavar="CONFIG.yml", help="a file of configs/ of huggingface/fineweb-2")
    args = parser.parse_args()
    try:
        config = yaml.safe_load(args.config.read_text(encoding="utf-8"))
        if not isinstance(config, dict):
            raise ValueError("no keys and values; a file of configs/ of huggingface/fineweb-2 has them")
        recipe = language_recipe(yaml.safe_load(RECIPE.read_text(encoding="utf-8")), config, args.config.stem)
    except (OSError, ValueError, TypeError, yaml.YAMLError) as error:
        sys.exit(f"{str(args.config)!a}: {ascii(str(error))[1:-1]}")
    print(f"# FineWeb2's funnel for {args.config.stem}, made by recipes/fineweb2_language.py; about it: fineweb2.yaml.")
    yaml.safe_dump(recipe, sys.stdout, allow_unicode=True, sort_keys=False)


if __name__ == "__main__":
    main()
