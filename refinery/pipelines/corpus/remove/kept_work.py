"""What the work files of a run still have: its documents and their signatures, and the recipe that judges them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from refinery.pipelines.corpus.export.place import SourceCorpus
from refinery.pipelines.corpus.remove.families import Compared, PartFiles
from refinery.pipelines.recipe.load_recipe import recorded_recipe
from refinery.pipelines.recipe.recipe import Recipe
from refinery.pipelines.run.differences import differences
from refinery.pipelines.run.fingerprint import phase_fingerprints
from refinery.pipelines.run.phases import Phase, read_phase
from refinery.pipelines.run.prefix import describe_run
from refinery.transforms.dedup.stages import URL_DUPLICATES


class NotKept(ValueError):
    """Why nothing can come back. One sentence, without a full stop."""


@dataclass(frozen=True)
class KeptWork:
    """Phase 1 of a corpus as it was left, and its recipe: with `recipe`'s own result, checked by fingerprint. salt: of
    the comparisons of phase 2. digests: of the files that the recipe names, as the run recorded them."""

    recipe: Recipe
    clean: Phase
    salt: str
    digests: Mapping[str, str] = field(default_factory=dict)

    @property
    def parts(self) -> list[PartFiles]:
        """Every part with documents, in the order in which phase 2 takes them. Raises FormatError as `part_root`."""
        documents = {_name(part): part for part in self.clean.parts("documents")}
        return [
            PartFiles(self.clean.root_of(part), documents[_name(part)]["path"], part["path"])
            for part in self.clean.parts("signatures")
        ]

    @property
    def withheld(self) -> list[tuple[str, int]]:
        """(url, rows) of the signatures of what was dropped with its copies."""
        return [(self.clean.url(part), part["rows"]) for part in self.clean.parts("withheld")]

    @property
    def compared(self) -> Compared:
        """What phase 2 compares."""
        recipe = self.recipe
        near = [recipe.near_dup, *recipe.near_dup_in_source.values()]
        layouts = tuple(dict.fromkeys(params for params in near if params is not None))
        return Compared(layouts, recipe.signature.permutations, recipe.params_of(URL_DUPLICATES) is not None)


def _name(part: Mapping[str, Any]) -> str:
    return str(part["path"]).rpartition("/")[2]


def read_kept_work(corpus: SourceCorpus, work: str, recipe_file: str, use_code: Any) -> KeptWork:
    """The work files that a corpus was made from. use_code: tells the runner of stages of the user's own.

    Raises NotKept where they are not there, or where this code would judge them otherwise.
    """
    run = corpus.run
    try:
        recipe = recorded_recipe(corpus.root, run["recipe"], recipe_file)
        fingerprints = phase_fingerprints(recipe, run["inputs"])
    except (ValueError, OSError) as error:
        raise NotKept(f"its recipe cannot be run here ({error})") from None
    use_code(recipe.CODE.folder, tuple(recipe.CODE.files))
    clean = read_phase(work, "clean", run["phases"]["clean"])
    if clean is None:
        raise NotKept(f"its text is gone: {work} does not hold the parts of the run; --work names where they are")
    if fingerprints["shards"] != corpus.manifest.fingerprint:
        told = differences(run, describe_run(recipe, run["inputs"], fingerprints))
        raise NotKept(f"it would not be judged as the others were: {told}")
    stages = (stage for listed in run["stages"].values() for stage in listed)
    digests = {path: digest for stage in stages for path, digest in stage.get("files", ())}
    return KeptWork(recipe, clean, run["phases"]["clean"], digests)
