"""The corpus of texts that `refinery tokenize` reads, and the recipe of the corpus of tokens that it makes."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from refinery.loader.errors import NoTexts, written_by_a_run
from refinery.loader.format.manifest import RUN
from refinery.pipelines.published.deduplicated import read_deduplicated
from refinery.pipelines.published.published import PublishedCorpus
from refinery.pipelines.recipe.load_recipe import load_recipe, parse_recipe, recorded_recipe
from refinery.pipelines.recipe.recipe import Recipe, find_lane, lane_names
from refinery.transforms.core.data_text.plain_yaml import RecipeError, override
from refinery.transforms.write.text_stage import TEXT
from refinery.transforms.write.text_writers import TEXT_WRITERS

OWN = ("tokenizer", "shards", "packed", "failures", "run")  # sections that this step may set, beside its stages'


@dataclass(frozen=True)
class TextCorpus:
    """A finished corpus of texts. recipe: of the corpus of tokens. kept: documents and bytes of each source that
    deduplication kept."""

    corpus: PublishedCorpus
    recipe: Recipe
    kept: Mapping[str, Mapping[str, int]]

    @property
    def run(self) -> Mapping[str, Any]:
        """`_run.json` of the run that made the texts."""
        return self.corpus.run

    @property
    def version(self) -> int:
        """1, and 1 more for each takedown."""
        return 1 + len(self.corpus.versions)

    @property
    def lineage(self) -> dict[str, Any]:
        """What the corpus of tokens says of it."""
        return {"name": self.corpus.name, "version": self.version, "manifest_sha256": self.corpus.sha256}


def open_texts(
    prefix: str, tokenizer: Mapping[str, Any], settings: Sequence[str] = (), recipe_file: str = ""
) -> TextCorpus:
    """The corpus of texts at a prefix. tokenizer: the section of the recipe. settings: as --set. recipe_file: its
    recipe, where that has code of its own.

    Raises FormatError or ValueError for anything but a corpus of texts of this version, RecipeError for settings.
    """
    corpus = PublishedCorpus(prefix)
    if not corpus.manifest.has_tokens and not corpus.manifest.written.has_texts:
        raise NoTexts(corpus.root)
    manifest = corpus.manifest
    if manifest.has_tokens:
        raise ValueError(
            f"{prefix}: a corpus of tokens, a corpus of texts is expected (`writer: text` in its recipe); "
            "`refinery retokenize` makes a run's corpus again with another tokenizer"
        )
    if manifest.written.writer not in TEXT_WRITERS:
        known, found = ", ".join(TEXT_WRITERS), manifest.written.writer
        raise ValueError(f"{prefix}: a corpus of the writer {found!r:.80} given, one of {known} is expected")
    if manifest.kept:
        raise ValueError(
            f"{prefix}: a corpus with typed columns for fields of records given, which only texts have; refine "
            "the same sources with a tokenizer, where the fields are one column of JSON"
        )
    corpus.file(RUN)
    with written_by_a_run(f"{corpus.store.url(RUN)}: its fields are"):
        recipe = tokens_recipe(prefix, corpus.run["recipe"], tokenizer, settings, recipe_file)
    return TextCorpus(corpus, recipe, read_deduplicated(manifest))


def tokens_recipe(
    prefix: str,
    recorded: Mapping[str, Any],
    tokenizer: Mapping[str, Any],
    settings: Sequence[str] = (),
    recipe_file: str = "",
) -> Recipe:
    """The recipe that makes the tokens in one run. recorded: that of the texts. Raises RecipeError."""
    data: Any = {**recorded, "writer": "", "tokenizer": dict(tokenizer)}
    data["shards"] = {**data["shards"], "order": "shuffled"}  # that of tokens, whatever that of the texts
    data.pop(TEXT.key, None)
    own = own_sections(recorded)
    for setting in settings:
        check_setting(setting, own)
        data = override(data, setting)
    if recipe_file:
        check_recipe_file(recipe_file, recorded)
        return parse_recipe(data, None if "://" in recipe_file else Path(recipe_file).parent)
    return recorded_recipe(prefix, data)


def own_sections(recorded: Mapping[str, Any]) -> tuple[str, ...]:
    """Sections of the recipe that this step may set."""
    lane = recorded["lane"]
    encoding = find_lane(lane).encoding if lane in lane_names() else ()
    return tuple(dict.fromkeys([*OWN, *(stage.key for stage in encoding if stage.key)]))


def check_setting(setting: str, own: Sequence[str] = OWN) -> None:
    """Raise RecipeError for a setting that decided the texts. own: sections that this step may set."""
    keys = re.sub(r"\[([0-9]+)\]", r".\1", setting.partition("=")[0].strip()).split(".")
    if keys[0] in own or (keys[0] == "sources" and keys[-1] == "target" and len(keys) == 3):
        return
    raise RecipeError(
        f"--set {keys[0]}: given, {', '.join(own)} and sources.NAME.target are allowed: everything else decided the "
        "texts, run their recipe again"
    )


def check_recipe_file(path: str, recorded: Mapping[str, Any]) -> None:
    """Raise RecipeError unless a recipe names the same code as the corpus: only code that the user names is loaded."""
    given = load_recipe(path).plain()
    for what, mine, its in (
        ("lane", given["lane"], recorded["lane"]),
        ("stages", given["stages"], recorded["stages"]),
        ("formats", _formats(given), _formats(recorded)),
    ):
        if mine != its:
            raise RecipeError(f"--recipe {path}: {what} {mine!r:.200} given, {its!r:.200} expected by the corpus")


def _formats(recipe: Mapping[str, Any]) -> list[str]:
    return [source["format"] for source in recipe["sources"]]
