"""Where each input file of a run goes, and what copying it needs to know."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from refinery.loader.format.sealed import seal
from refinery.pipelines.published.outputs import OUTPUTS_KIND, outputs_of
from refinery.pipelines.recipe.recipe import Recipe
from refinery.transforms.core.job.task_list import write_task_list
from refinery.transforms.extract.extract import EXTRACT, ExtractParams
from refinery.transforms.read.find_files import find_files
from refinery.transforms.read.params import SourceParams
from refinery.transforms.read.task import COLUMN_CLASH, ReadTask
from refinery.transforms.statistics.tally import measured_notes
from refinery.transforms.write.rows.attributes import attributes_ending
from refinery.transforms.write.rows.copy_rows import refuse_uncopyable
from refinery.transforms.write.rows.files_job import FilesJob, OutputFile
from refinery.transforms.write.rows.labels import known_labels
from refinery.transforms.write.rows.output_paths import output_paths
from refinery.transforms.write.rows.row_labels import NO_COLUMN, NO_TEXT, OVER_LIMITS
from refinery.transforms.write.rows.rows import Label
from refinery.transforms.write.rows.rows_stage import rows_params
from refinery.transforms.write.rows.write_files import KIND
from refinery.transforms.write.rows.writer import LAYOUT
from refinery.transforms.write.shards import provenance_columns


def output_files(recipe: Recipe, tasks: Sequence[ReadTask]) -> list[OutputFile]:
    """Each input file with its place, in the order of sources and files. tasks: of all inputs, or parts of them. Raises
    ValueError where two would go to one place."""
    facts = recipe.source_facts()
    whole = [replace(task, part=0, parts=1) for task in tasks if task.part == 0]
    endings = {task.path: attributes_ending(task) for task in whole} if not rows_params(recipe).has_rows else {}
    places = output_paths(chain.from_iterable(_patterns(source, whole) for source in recipe.sources), endings)
    counts = Counter(facts[task.source].domain for task in whole)
    return [
        OutputFile(task, domain := facts[task.source].domain, task.file_index, counts[domain], places[task.path])
        for task in whole
    ]


def _patterns(source: SourceParams, files: Iterable[ReadTask]) -> Iterator[tuple[str, str]]:
    """(pattern, file) of a source's files. They are listed again only where several patterns could mean one."""
    mine = [task.path for task in files if task.source == source.name]
    if len(source.paths) == 1 and not source.path_lists:
        yield from ((source.paths[0], path) for path in mine)
        return
    for pattern in source.paths:
        yield from ((pattern, file.path) for file in find_files(source.replace(paths=(pattern,), path_lists=())))
    yield from ((path, path) for path in mine)  # those of lists go by their own names


def check_outputs(recipe: Recipe, tasks: Sequence[ReadTask], prefix: str) -> None:
    """Raise ValueError, before anything runs, where the files have no place: a prefix whose name says none, two files
    for one place, or a format whose rows cannot be copied."""
    outputs_of(prefix)
    if not rows_params(recipe).has_rows and not recipe.annotate:
        raise ValueError("rows.labels: attributes given, which needs names of labels in `annotate`")
    for task in {task.path: task for task in tasks}.values():
        refuse_uncopyable(task)
    output_files(recipe, tasks)


def new_fields(recipe: Recipe) -> tuple[str, ...]:
    """Names of the fields that the rows of such a run get."""
    if recipe.layout != LAYOUT or not (rows := rows_params(recipe)).has_rows:
        return ()
    return (*([rows.into] if rows.into else []), *recipe.annotate)


def files_job(
    recipe: Recipe, tasks: Sequence[ReadTask], work: str, prefix: str, counters: Sequence[Mapping[str, Any]]
) -> FilesJob:
    """The job that copies the rows back. work: where the list of files is written. prefix: of the accounts. counters:
    of phase 1, which found the columns that have the name of a label; that label is named apart, in all files."""
    taken = {entry["reason"] for entry in counters if entry["outcome"] == "found"}
    known = known_labels(recipe.notes(), [stage.name for stage in recipe.LANE.stages])
    labels = [known[name] for name in recipe.annotate]
    files = output_files(recipe, tasks)
    largest = sorted(files, key=lambda file: (-file.task.size, file.domain, file.number))
    rows = rows_params(recipe)
    into = None
    if rows.into:
        into = Label(rows.into, "")
        into = into.named_apart() if f"{COLUMN_CLASH}/{rows.into}" in taken else into
    return FilesJob(
        files=write_task_list(work, "shards", [file.to_line() for file in largest]),
        outputs=outputs_of(prefix),
        prefix=prefix,
        domains={name: facts.domain for name, facts in recipe.source_facts().items()},
        counts=Counter(file.domain for file in files),
        limits=recipe.limits,
        columns=provenance_columns(recipe.provenance()),
        notes=measured_notes(recipe.notes()),
        counted=recipe.counted(),
        labels=tuple(each.named_apart() if f"{COLUMN_CLASH}/{each.label.name}" in taken else each for each in labels),
        extract=recipe.params_of(EXTRACT) or ExtractParams(),
        beside=has_rows_beside(counters, bool(labels)),
        into=into,
        experiment="" if rows.has_rows else outputs_of(prefix).rpartition("/")[2],
    )


def has_rows_beside(counters: Sequence[Mapping[str, Any]], labels: bool) -> bool:
    """Whether rows stay of which no document was made, by the counters of phase 1: they have no text, exceed the limits
    or, where rows get labels, extraction made none."""
    reasons = {*NO_TEXT, *OVER_LIMITS, NO_COLUMN}
    return any(
        entry["documents"]
        and entry["outcome"] in ("dropped", "dead")
        and (entry["reason"] in reasons or (labels and entry["stage"] == EXTRACT.name))
        for entry in counters
    )


def dump_outputs(report: Mapping[str, Any]) -> bytes:
    """The file OUTPUTS of the report of phase 3: {"path", "input", "rows", "documents", "without_text", "size",
    "crc32c", "sha256", "differs"} of every file, in the order of the inputs."""
    return seal({"kind": OUTPUTS_KIND, "files": report[KIND]})
