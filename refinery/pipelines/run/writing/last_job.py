"""What the job of phase 3 must know of a run: to write shards, or files of the shape of the inputs."""

from collections.abc import Mapping, Sequence
from typing import Any

from refinery.loader.format.indexed import dtype_for
from refinery.pipelines.recipe.checks import kept_columns, packed_rows
from refinery.pipelines.recipe.recipe import Recipe
from refinery.pipelines.run.writing.output_files import files_job
from refinery.transforms.read.task import ReadTask
from refinery.transforms.statistics.tally import measured_notes
from refinery.transforms.tokenize.encode import TokenizerInfo
from refinery.transforms.write.rows.files_job import FilesJob
from refinery.transforms.write.rows.writer import AS_INPUT
from refinery.transforms.write.shards import ShardsJob, provenance_columns
from refinery.transforms.write.shuffle import shard_counts


def last_job(
    recipe: Recipe,
    tokenizer: TokenizerInfo | None,
    kept: Mapping[str, Mapping[str, int]],
    tasks: Sequence[ReadTask],
    work: str,
    prefix: str,
    counters: Sequence[Mapping[str, Any]],
) -> ShardsJob | FilesJob:
    """The job. kept: documents and bytes of each domain that are to be expected. tasks: of all inputs. counters: of
    phase 1."""
    if recipe.LANE.writer == AS_INPUT:
        return files_job(recipe, tasks, work, prefix, counters)
    return shards_job(recipe, tokenizer, kept, prefix)


def shards_job(
    recipe: Recipe, tokenizer: TokenizerInfo | None, kept: Mapping[str, Mapping[str, int]], prefix: str
) -> ShardsJob:
    """The job that writes shards. kept: as of `last_job`."""
    return ShardsJob(
        params=recipe.shards,
        counts=shard_counts(kept, recipe.shards),
        domains={name: facts.domain for name, facts in recipe.source_facts().items()},
        dtype="" if tokenizer is None else dtype_for(tokenizer.vocab_size).name,
        columns=provenance_columns(recipe.provenance()),
        prefix=prefix,
        targets=recipe.targets(),
        packed=packed_rows(recipe, tokenizer),
        notes=measured_notes(recipe.notes()),
        counted=recipe.counted(),
        writer=recipe.LANE.writer,
        kept=kept_columns(recipe),
    )
