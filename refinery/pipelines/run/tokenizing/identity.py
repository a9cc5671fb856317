"""What a corpus made by `refinery tokenize` says of itself: the run that it equals, and the texts that it is made of.

Its fingerprint is that of one run with the tokenizer, since the shards are that run's, byte for byte. Stages that ran
for the texts are described as that run recorded them.
"""

from collections.abc import Callable
from typing import Any

from refinery.pipelines.recipe.params import fingerprint
from refinery.pipelines.recipe.recipe import Recipe
from refinery.pipelines.run.differences import TOKENIZED_FROM
from refinery.pipelines.run.fingerprint import describe_environment, describe_phase, describe_stages, file_digest
from refinery.pipelines.run.inputs_read.text_fields import KEY as TEXT_FIELDS
from refinery.pipelines.run.prefix import describe_run
from refinery.pipelines.run.tokenizing.text_corpus import TextCorpus
from refinery.transforms.write.text_stage import TEXT

PHASE = "shards"


def encoding_stages(recipe: Recipe) -> tuple[str, ...]:
    """Names of the stages that turn texts into shards, and of those behind them."""
    return tuple(stage.name for stage in recipe.LANE.encoding)


def recorded_digest(texts: TextCorpus) -> Callable[[str], str]:
    """sha256 of a file: of the tokenizer as it is now, of others as the run recorded them. Models that made the texts
    may be gone."""
    stages = (stage for listed in texts.run["stages"].values() for stage in listed)
    known = {path: digest for stage in stages for path, digest in stage.get("files", ())}
    known.pop(texts.recipe.tokenizer.path, None)
    return lambda path: known[path] if path in known else file_digest(path)


def describe_tokens(texts: TextCorpus) -> dict[str, Any]:
    """`_run.json` of the corpus of tokens; its `phases` has the fingerprints. Cost: a read of the tokenizer."""
    recipe, run = texts.recipe, texts.run
    digest = recorded_digest(texts)
    here, before = describe_environment(), run["environment"]
    environment = here if here == before else {**before, "tokenized": here}
    own = {*encoding_stages(recipe), recipe.LANE.writer.name}
    left_out = {TEXT.name, texts.corpus.manifest.written.writer}
    stages = [
        *(entry for entry in run["stages"][PHASE] if entry["name"] not in left_out),
        *(entry for entry in describe_stages(recipe, PHASE, digest) if entry["name"] in own),
    ]
    described = {**describe_phase(recipe, PHASE, digest), **environment, "stages": stages}
    fingerprints = {
        **run["phases"],
        PHASE: fingerprint({"before": run["phases"]["dedup"], **described}),
    }
    return {
        **describe_run(recipe, run["inputs"], fingerprints, digest, run.get(TEXT_FIELDS, {})),
        "stages": {**run["stages"], PHASE: stages},
        "cleaning": run["cleaning"],
        "environment": environment,
        TOKENIZED_FROM: texts.lineage,
    }
