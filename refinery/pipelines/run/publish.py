"""The last step of a run: tokenizer, rejects, dead letters, and then, if all counts hold, the manifest."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import apache_beam as beam
import pyarrow as pa

from refinery.loader.format.listed import first_of_shards, shard_totals
from refinery.loader.format.manifest import (
    KEPT,
    KIND,
    RUN,
    Manifest,
    check_funnel,
)
from refinery.loader.format.packed import describe_format
from refinery.loader.format.publish_manifest import make_manifest
from refinery.loader.storage.store import Store, checksums
from refinery.pipelines.published.deduplicated import BEFORE, kept_by_source
from refinery.pipelines.published.deduplicated import KEY as DEDUPLICATED
from refinery.pipelines.published.dropped import DROPPED, build_dropped, dump_dropped
from refinery.pipelines.published.outputs import OUTPUTS
from refinery.pipelines.published.statistics.build import build_statistics
from refinery.pipelines.published.statistics.published import STATISTICS, dump_statistics
from refinery.pipelines.recipe import graphs
from refinery.pipelines.recipe.checks import kept_columns, packed_rows
from refinery.pipelines.recipe.recipe import Recipe
from refinery.pipelines.reports.cards.text_card import with_text_card
from refinery.pipelines.run.funnel import CountsDisagree, check_removals, check_shards
from refinery.pipelines.run.inputs_read.published import INPUTS, KEY, dump_inputs
from refinery.pipelines.run.phase_jobs import PhaseJobs
from refinery.pipelines.run.phases import PUBLISHED_FOLDERS, RECORDS, Phase
from refinery.pipelines.run.writing.output_files import dump_outputs
from refinery.transforms.core.resources import read_resource
from refinery.transforms.core.spill.sorted_tables import sort_rows
from refinery.transforms.tokenize.encode import TokenizerInfo
from refinery.transforms.tokenize.published import published_files
from refinery.transforms.write.lookup.entries import FOLDER as LOOKUP
from refinery.transforms.write.lookup.tasks import LookupTask, files_for, folder_tasks, shard_tasks
from refinery.transforms.write.lookup.write_lookup import write_lookup_tasks, write_whole_lookup
from refinery.transforms.write.records import (
    DEAD,
    FOLDERS,
    REJECTS,
    count_record_files,
    publish_file,
    read_records,
    write_record_tasks,
)
from refinery.transforms.write.records import KIND as PUBLISHED
from refinery.transforms.write.rows.write_files import KIND as KIND_OF_OUTPUTS
from refinery.transforms.write.shard_reports import reported_shards
from refinery.transforms.write.shards import provenance_columns

NOTHING: Mapping[str, Any] = MappingProxyType({})
FEW_PARTS = 200  # that the launcher reads itself, one after the other; a job reads more


def publish_corpus(
    store: Store,
    phases: Sequence[Phase],
    recipe: Recipe,
    tokenizer: TokenizerInfo | None,
    fingerprint: str,
    funnel: list[dict[str, Any]],
    versions: Mapping[str, str],
    publish_records: Callable[[], list[dict[str, Any]]],
    small_files: Callable[[pa.Table], Iterable[tuple[str, bytes]]],
    further: Mapping[str, Any] = NOTHING,
) -> Manifest:
    """Write the manifest, last of all, and return it. tokenizer: None of a corpus of texts. publish_records: publishes
    rejects and dead letters, and returns their files. small_files: of the table of shards, gives names and bytes of the
    others, as `measured_files`. further: fields of the manifest beside or in place of those of a run. Raises
    CountsDisagree, naming every disagreement."""
    shards, removals = reported_shards(phases[-1].report), phases[-1].report["removals"]
    totals = shard_totals(shards)
    problems = (
        check_funnel(funnel)
        + check_shards(funnel, totals["documents"], recipe.LANE.funnel[-1])
        + check_removals(funnel, removals)
    )
    if problems:
        raise CountsDisagree("the counts do not reconcile, so no manifest is written:\n  " + "\n  ".join(problems))
    check_written(store, (*shards["path"].to_pylist(), *(file["path"] for file in removals)))
    own = [] if tokenizer is None else publish_tokenizer(store, recipe, tokenizer)
    files = [describe(store, RUN), *own, *removals, *publish_records()]
    for name, data in small_files(shards):
        store.create(name, data)
        files.append(describe(store, name))
    lane = recipe.LANE
    payload = {
        "kind": KIND,
        "name": recipe.name,
        "lane": lane.name,
        "stages": [{"name": s.name, "phase": lane.phase_of(s), "version": s.version} for s in lane.stages],
        "columns": [{"name": column.name, "type": column.type} for column in provenance_columns(recipe.provenance())],
        **({KEPT: [column.plain() for column in kept]} if (kept := kept_columns(recipe)) else {}),
        "writer": lane.writer.name,
        "fingerprint": fingerprint,
        **lane.writer.stated(tokenizer, own[0]["path"] if own else ""),
        "shards": shards,
        "files": sorted(files, key=lambda f: f["path"]),
        "totals": {
            **totals,
            "bytes": sum(row["kept"]["bytes"] for row in funnel if row["stage"] == lane.funnel[-1]),
        },
        "funnel": funnel,
        "recipe": recipe.deciding(),
        "versions": dict(versions),
    }
    if layout := packed_rows(recipe, tokenizer):
        payload["packed"] = describe_format(layout)
    if tokenizer is None:
        before = {stage.name for phase in BEFORE for stage in lane.phase(phase)}
        payload[DEDUPLICATED] = kept_by_source(funnel, before)
        payload = with_text_card(store, payload)
    made = make_manifest({**payload, **further})  # what readers will accept, before it counts
    made.publish(store)
    return made.manifest


def measured_files(phases: Sequence[Phase], recipe: Recipe, shards: pa.Table) -> Iterator[tuple[str, bytes]]:
    """The small files of a run that its phases have measured, by name."""
    reports = {phase.name: phase.report for phase in phases}
    yield STATISTICS, dump_statistics(build_statistics(reports, recipe, len(first_of_shards(shards))))
    yield DROPPED, dump_dropped(build_dropped(reports))
    if KEY in phases[0].report:
        yield INPUTS, dump_inputs(phases[0].report[KEY])
    if KIND_OF_OUTPUTS in phases[-1].report:
        yield OUTPUTS, dump_outputs(phases[-1].report)


def check_written(store: Store, paths: Iterable[str]) -> None:
    """Raises CountsDisagree unless the files of shards and removals at a prefix are these."""
    lost = set(paths)
    foreign = ""
    for page in (page for folder in PUBLISHED_FOLDERS for page in store.pages(folder)):
        others = [path for path in page if path not in lost]
        foreign = min([*others, *filter(None, [foreign])], default="")
        lost.difference_update(page)
    lost = {path for path in lost if store.size(path) is None}  # a listing of a shared disk may be old
    if foreign:
        raise CountsDisagree(f"{store.url(foreign)} was not written by this run; remove it and run the command again")
    if lost:
        raise CountsDisagree(
            f"{store.url(min(lost))} was written by this run and is gone; put it back, or remove shards.json and "
            "shards/report.json from the work location, and run the command again"
        )


def describe(store: Store, path: str) -> dict[str, Any]:
    """A published file as the manifest lists it."""
    with store.open(path) as stream:
        size, crc32c, sha256 = checksums(stream)
    return {"path": path, "size": size, "crc32c": crc32c, "sha256": sha256}


def publish_tokenizer(store: Store, recipe: Recipe, tokenizer: TokenizerInfo) -> list[dict[str, Any]]:
    """Write the exact tokenizer used to tokenizer/, as others load it; returns the files, the tokenizer first."""
    path = recipe.tokenizer.path
    files = published_files(path, read_resource(path), tokenizer.bos_id, tokenizer.eos_id)
    for name, data in files.items():
        store.create(f"tokenizer/{name}", data)
    return [describe(store, f"tokenizer/{name}") for name in files]


def publish_records(recipe: Recipe, phases: Sequence[Phase], jobs: PhaseJobs) -> list[dict[str, Any]]:
    """Write rejects/ and dead_letters/ of the rows that the phases left in parts, and lookup/ of all rows; returns the
    files for the manifest.

    The same files whoever writes them: the launcher what is one file of few parts, a job of its own the rest.
    """
    many: dict[str, tuple[list[tuple[str, str]], int]] = {}
    files: list[dict[str, Any]] = []
    rows: dict[str, int] = {}
    for folder, schema in FOLDERS.items():
        parts = [(phase.root_of(part), part) for phase in phases for part in phase.parts(folder)]
        rows[folder] = sum(part["rows"] for _, part in parts)
        count = count_record_files(rows[folder], recipe.rejects.excerpt_chars if folder == REJECTS else 0)
        places = [(root, part["path"]) for root, part in parts]
        if count > 1 or len(parts) > FEW_PARTS:
            many[folder] = places, count
        elif parts:
            table = sort_rows(read_records(*place, schema) for place in places)
            files.append(publish_file(folder, 0, [table], jobs.prefix))
    shards, removals = reported_shards(phases[-1].report), phases[-1].report["removals"]
    tasks = [
        *shard_tasks(jobs.prefix, shards),
        *folder_tasks(jobs.prefix, [*removals, *files]),
        *(LookupTask(*place, folder, -1, count) for folder, (places, count) in many.items() for place in places),
    ]
    removed = sum(file["rows"] for file in removals)
    lookups = files_for(shard_totals(shards)["documents"], removed, rows[REJECTS], rows[DEAD])
    if lookups > 1 or len(tasks) > FEW_PARTS or many:
        name = f"{RECORDS}/report.json"

        def build(pipeline: beam.Pipeline) -> None:
            folders = {folder: (write_record_tasks(jobs.work, places), n) for folder, (places, n) in many.items()}
            lookup = write_lookup_tasks(jobs.work, tasks), lookups
            graphs.records(pipeline, folders, lookup, jobs.prefix, jobs.work, name, jobs.facts(RECORDS))

        files += jobs.run(RECORDS, name, ", ".join([*sorted(many), LOOKUP]), build)[PUBLISHED]
    else:
        files.append(write_whole_lookup(tasks, jobs.prefix))
    return files
