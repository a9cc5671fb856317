"""Signatures of a published corpus whose work location is gone: its texts are read and hashed again, for one run.

Documents count by their ids, as published. One whose text was changed after it got its id (cut, redacted) has another
id by its published text, so it is not compared; how many these are is said.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import ShardEntry
from refinery.loader.read.corpus import Corpus
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.published.outputs import OUTPUTS, load_outputs, outputs_of
from refinery.pipelines.recipe.load_recipe import parse_recipe
from refinery.pipelines.recipe.recipe import Recipe
from refinery.pipelines.run.errors import RefineError
from refinery.pipelines.run.phases import Phase, read_phase
from refinery.pipelines.run.refine import Refinement
from refinery.pipelines.run.steps.step import switched_off
from refinery.pipelines.runners.runner import Runner
from refinery.transforms.core.document import TEXT_ID
from refinery.transforms.core.wording import many
from refinery.transforms.dedup.reference_corpora import ReferenceCorpus, ReferenceCorpusParams
from refinery.transforms.write.rows.rows_stage import RowsParams
from refinery.transforms.write.rows.writer import LAYOUT
from refinery.transforms.write.text_writers import TEXT_WRITERS

FOLDER = "against"  # below the work location of the run that compares


@dataclass
class Signing(Refinement):
    """Phase 1 of a run over published texts, and nothing behind it. What it leaves are work files. cleaned: the phase,
    once it has run."""

    cleaned: Phase | None = field(default=None, init=False)

    def _run_phases(self) -> Any:
        self.cleaned = self._phase("clean", self._clean)


def is_signed(given: ReferenceCorpusParams, corpus: Corpus) -> bool:
    """Whether the signatures of a corpus are where its run left them. What is wrong with the corpus is said later."""
    try:
        return read_phase(given.work or corpus.store.url("work"), "clean", corpus.run["phases"]["clean"]) is not None
    except (FormatError, OSError, ValueError, KeyError):
        return True


def published_source(corpus: Corpus) -> dict[str, Any]:
    """The files with the texts of a corpus as a source of a recipe. Raises ValueError for a corpus of tokens, and for
    one whose texts are nowhere."""
    manifest = corpus.manifest
    if manifest.recipe.get("layout") == LAYOUT:
        source = manifest.recipe["sources"][0]
        files = load_outputs(corpus.read(OUTPUTS), corpus.store.url(OUTPUTS))
        store = open_store(outputs_of(corpus.root))
        paths = [store.url(file["path"]) for file in files]
        rows = RowsParams(**(manifest.recipe.get("rows") or {}))
        if not rows.has_rows:
            raise ValueError(f"{corpus.root}: a run that wrote labels and no texts; name the run that wrote the texts")
        fields = {name: source[name] for name in ("text_field", "content", "format") if source.get(name)}
        return {**fields, "paths": paths, **({"text_field": rows.into, "content": "text"} if rows.into else {})}
    if manifest.has_tokens or manifest.written.writer not in TEXT_WRITERS:
        raise ValueError(
            f"{corpus.root}: a corpus of tokens, whose signatures are gone; make it again without --discard-work, or "
            "run `refinery export --format jsonl` and a one-step command on its files, and name the accounts of that"
        )
    return {"paths": [corpus.store.url(shard.written[0].path) for shard in manifest.shards], "text_field": "text"}


def changed_texts(corpus: Corpus, shard: ShardEntry) -> int:
    """How many documents of a shard have a text that is not that of their id."""
    metas = (meta for batch in corpus.provenance(shard, ["meta"]) for meta in batch.column("meta").to_pylist())
    return sum(TEXT_ID in orjson.loads(meta) for meta in metas)


def folder_of(work: str, number: int) -> str:
    """Where the work files of a corpus go that is read again."""
    return f"{work}/{FOLDER}/{number}"


def signing_recipe(recipe: Recipe, source: Mapping[str, Any]) -> Recipe:
    """The recipe that hashes the texts of a source as another one does."""
    signature = recipe.signature.plain()
    off = {**switched_off(), "exact_dup": False, "near_dup": False}
    return parse_recipe(
        {"name": FOLDER, "writer": "text", "sources": [{"name": FOLDER, **source}], "signature": signature, **off}
    )


def sign_again(given: ReferenceCorpusParams, number: int, recipe: Recipe, work: str, runner: Runner) -> ReferenceCorpus:
    """The corpus as phase 2 takes it, with signatures below `work`. Raises what `Refinement.run` raises."""
    corpus = Corpus(given.prefix)
    place = folder_of(work, number)
    runner.say(f"{given.prefix}: its signatures are gone, so its texts are read again")
    signing = Signing(signing_recipe(recipe, published_source(corpus)), place, runner, say=runner.say)
    signing.run()
    cleaned = signing.cleaned
    if cleaned is None:
        raise RefineError(f"{place}: its texts were not read; run the same command again")
    parts = cleaned.parts("signatures")
    documents, read = corpus.manifest.totals["documents"], sum(part["rows"] for part in parts)
    changed = sum(changed_texts(corpus, shard) for shard in corpus.manifest.shards)
    runner.say(
        f"{given.prefix}: {many(read, 'text')} of {many(documents, 'document')} read again"
        + (f"; {changed:,} whose texts were changed are not compared" if changed else "")
    )
    return ReferenceCorpus(
        name=given.prefix,
        parts=tuple((cleaned.url(part), part["rows"]) for part in parts),
        provenance=tuple(
            (corpus.store.url(shard.provenance.path), shard.documents, shard.provenance.crc32c)
            for shard in corpus.manifest.shards
        ),
    )
