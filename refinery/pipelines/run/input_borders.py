"""Where shards in input order begin, once deduplication has decided what is kept: counted here, or by a job."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import apache_beam as beam

from refinery.pipelines.recipe import graphs
from refinery.pipelines.recipe.recipe import Recipe
from refinery.pipelines.run.phase_jobs import PhaseJobs
from refinery.pipelines.run.phases import ORDER, ORDER_REPORT, Phase
from refinery.transforms.core.job.task_list import TaskList
from refinery.transforms.write.count_kept import KIND
from refinery.transforms.write.input_order import STRETCHES_PER_SHARD, domain_stretches, first_files, write_borders
from refinery.transforms.write.kept_documents import PartPair, write_pairs
from refinery.transforms.write.kept_sizes import File, KeptSizes, count_part, stretch_bits

FEW_ROWS = 5_000_000  # that a command counts itself, within some 100 MB
Joined = tuple[File, Sequence[int], Sequence[int]]


def input_borders(
    recipe: Recipe,
    inputs: Iterable[Mapping[str, Any]],
    counts: Mapping[str, int],
    clean: Phase,
    pairs: Sequence[PartPair],
    jobs: PhaseJobs,
) -> TaskList | None:
    """Publish where the shards begin; None for a corpus in shuffled order. inputs: as described. counts: shards of each
    "split/domain". pairs: of phase 1, `clean`, and of phase 2. The same whoever counts."""
    if recipe.shards.order != "input":
        return None
    described = list(inputs)
    files = Counter(entry["source"] for entry in described)
    firsts = first_files({source.name: files[source.name] for source in recipe.sources})
    grain = max(1, recipe.shards.target_bytes // STRETCHES_PER_SHARD)
    bits = stretch_bits(max((entry["size"] for entry in described), default=0), grain)
    rows = sum(part["rows"] for part in clean.parts("documents"))
    counted = _count_here(pairs, bits, grain) if rows <= FEW_ROWS else _count_by_job(pairs, bits, grain, jobs)
    domains = {source: facts.domain for source, facts in recipe.source_facts().items()}
    return write_borders(jobs.work, domain_stretches(counted, firsts, domains), counts, firsts)


def _count_here(pairs: Iterable[PartPair], bits: int, grain: int) -> Iterable[Joined]:
    total: dict[File, KeptSizes] = {}
    for pair in pairs:
        for file, found in count_part(pair, bits):
            total[file] = total[file].merge(found) if file in total else found
    return [(file, *found.joined(grain)) for file, found in total.items()]


def _count_by_job(pairs: Sequence[PartPair], bits: int, grain: int, jobs: PhaseJobs) -> Iterable[Joined]:
    def build(pipeline: beam.Pipeline) -> None:
        graphs.order(pipeline, write_pairs(jobs.work, pairs), bits, grain, jobs.work, ORDER_REPORT, jobs.facts(ORDER))

    report = jobs.run(ORDER, ORDER_REPORT, "kept bytes of the inputs", build)
    return [((source, index), starts, sizes) for source, index, starts, sizes in report[KIND]]
