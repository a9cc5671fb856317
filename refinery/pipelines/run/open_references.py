"""The published corpora that a recipe is deduplicated against: found, checked, and put as phase 2 takes them."""

from refinery.loader.errors import FormatError
from refinery.loader.read.corpus import Corpus
from refinery.pipelines.recipe.recipe import Recipe
from refinery.pipelines.run.phases import Phase, read_phase
from refinery.transforms.core.data_text.plain_yaml import RecipeError
from refinery.transforms.dedup.reference_corpora import ReferenceCorpus, ReferenceCorpusParams
from refinery.transforms.dedup.signatures import SignatureParams, scheme_of

PLACES = SignatureParams.PLACES


def load_reference_corpora(recipe: Recipe) -> tuple[ReferenceCorpus, ...]:
    """Every corpus of the recipe's `reference_corpora`, in its order.

    Raises RecipeError, one line, for a prefix that is not a published corpus, for signatures that were made in another
    way (they cannot be compared), and if the work location with its signatures is gone.
    """
    found = []
    for index, corpus in enumerate(recipe.reference_corpora):
        try:
            found.append(_load(corpus, recipe))
        except (FormatError, OSError, ValueError) as error:
            raise RecipeError(f"reference_corpora[{index}]: {error}") from error
    return tuple(found)


def _load(corpus: ReferenceCorpusParams, recipe: Recipe) -> ReferenceCorpus:
    published = Corpus(corpus.prefix)
    store, manifest, payload = published.store, published.manifest, published.run
    recorded = {name: value for name, value in payload["recipe"]["signature"].items() if name not in PLACES}
    theirs, ours = {"key_id": "", **recorded}, recipe.signature.plain()
    scheme, expected = manifest.versions.get("signatures", ""), scheme_of(recipe.signature)
    if (scheme, theirs) != (expected, {name: ours[name] for name in ours if name not in PLACES}):
        raise ValueError(
            f"{corpus.prefix}: signatures of {scheme} {theirs} found, {expected} {ours} expected; "
            "give this recipe the same signature section (`key` may name another place, but the same secret)"
        )
    work = corpus.work or store.url("work")
    clean: Phase | None = read_phase(work, "clean", payload["phases"]["clean"])
    if clean is None:
        raise ValueError(
            f"{work}: the signatures of {corpus.prefix} are not there; name its work location with `work`, or make it "
            "again without --discard-work"
        )
    return ReferenceCorpus(
        name=corpus.prefix,
        parts=tuple((clean.url(part), part["rows"]) for part in clean.parts("signatures")),
        provenance=tuple(
            (store.url(shard.provenance.path), shard.documents, shard.provenance.crc32c) for shard in manifest.shards
        ),
    )
