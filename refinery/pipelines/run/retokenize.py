"""`refinery retokenize`: make a corpus again with another tokenizer, from the documents that a run has kept.

Phases 1 and 2 are reused from `work/`; only phase 3 runs. The raw sources may be gone, because the run recorded them.
The result is what a whole run with that tokenizer would give, byte for byte.
"""

from collections.abc import Mapping
from typing import Any

from refinery.loader.errors import NoTokens
from refinery.loader.format.manifest import RUN, unseal
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.recipe.load_recipe import parse_recipe
from refinery.pipelines.recipe.recipe import Recipe
from refinery.pipelines.run.differences import TOKENIZED_FROM
from refinery.pipelines.run.errors import RefineError
from refinery.pipelines.run.phases import Phase
from refinery.pipelines.run.refine import Refinement
from refinery.transforms.read.task import CHAT
from refinery.transforms.write.text_writers import TEXT_WRITERS


def recorded_run(prefix: str) -> dict[str, Any]:
    """What `_run.json` says. Raises ValueError where there is none."""
    store = open_store(prefix)
    if store.size(RUN) is None:
        raise ValueError(f"{prefix}: there is no {RUN}; name the prefix of a run")
    run = unseal(store.read(RUN), store.url(RUN))
    if "recipe" not in run:
        raise ValueError(
            f"{prefix}: this is an export, not a run; name the prefix of the corpus from which it was made"
        )
    return run


def with_tokenizer(run: Mapping[str, Any], tokenizer: Mapping[str, Any]) -> Recipe:
    """The recipe of that run with some parameters of its tokenizer replaced. Raises RecipeError."""
    recipe = dict(run["recipe"])
    if recipe.get("writer") in TEXT_WRITERS:
        raise ValueError(f"{run['name']:.100}: a corpus of texts: `refinery tokenize` makes one of tokens of it")
    if texts := run.get(TOKENIZED_FROM):
        raise ValueError(
            f"{run['name']:.100}: `refinery tokenize` made it of the texts {texts['name']:.100}: run that on them "
            "again, with this tokenizer and another --output"
        )
    if recipe.get("lane") == CHAT:
        raise ValueError(
            f"{run['name']:.100}: conversations, which are written by their tokenizer's template; run `refinery "
            "refine` with their recipe, --set tokenizer.path=… and another --output"
        )
    if recipe.get("tokenizer") is None:
        raise NoTokens(run["name"])
    return parse_recipe({**recipe, "tokenizer": {**recipe["tokenizer"], **tokenizer}})


class Retokenization(Refinement):
    """A run that reuses what `reuse` holds, and refuses to clean or deduplicate anything.

    recorded: what `_run.json` of that run says; it must be set before `run`.
    """

    recorded: Mapping[str, Any]

    def _plan(self, probe: bool) -> None:
        self.tasks = []
        self.inputs = list(self.recorded["inputs"])

    def _clean(self) -> Mapping[str, Any]:
        raise self._lost("clean")

    def _dedup(self, clean: Phase) -> Mapping[str, Any]:
        raise self._lost("dedup")

    def _lost(self, phase: str) -> RefineError:
        why = "its work/ no longer holds it"
        if self.recorded["phases"][phase] != self.fingerprints[phase]:
            why = "it was made by another version of the code, its libraries or its files"
        return RefineError(
            f"{self.reuse}: {phase} cannot be reused: {why}; run `refinery refine` with the recipe, "
            "--set tokenizer.path=… and --reuse"
        )
