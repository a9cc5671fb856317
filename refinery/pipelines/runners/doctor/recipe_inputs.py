"""The recipe of a run: whether it can be read, whether its models and lists load, what its sources hold."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from refinery.pipelines.progress.words import human_bytes
from refinery.pipelines.recipe.checks import check_stage, packed_rows
from refinery.pipelines.recipe.idle import idle_settings
from refinery.pipelines.recipe.recipe import Recipe
from refinery.pipelines.runners.doctor.finding import Finding, ok, problem, warning, within
from refinery.transforms.core.names import PHASES
from refinery.transforms.read.params import SourceParams
from refinery.transforms.read.plan import plan_sources
from refinery.transforms.read.probe import probe_sources
from refinery.transforms.read.sources import ReadTask
from refinery.transforms.read.text_fields import choose_text_fields, field_line, with_text_fields
from refinery.transforms.tokenize.encode import check_tokenizer

T = TypeVar("T")
CUT_OFF = "its files cannot be reached, see above"
REMOTE_SECONDS = (
    10.0  # for the files of a stage, and for listing and looking into a source, that are not on this machine
)


def patient(paths: Sequence[str], call: Callable[[], T]) -> T:
    """`call()`; where it reaches over the network, for ten seconds at most. Raises ValueError or OSError: TimeoutError
    is one.
    """
    return within(REMOTE_SECONDS, call) if any("://" in path for path in paths) else call()


def stage_files(recipe: Recipe, cut_off: Sequence[str]) -> Iterator[Finding]:
    """Every model and list of the recipe, loaded once, and the tokenizer. cut_off: kinds of
    storage that cannot be reached ("gs://").
    Cost: about a second.
    """
    failed = False
    active = [(stage, params) for phase in PHASES for stage, params in recipe.active(phase)]
    for stage, params in active:
        paths = list(stage.files(params))
        if is_cut_off(paths, cut_off):
            failed = True
            yield warning(f"recipe, {stage.name}", f"its files were not checked: {CUT_OFF}")
            continue
        try:
            patient(paths, lambda stage=stage, params=params: check_stage(stage, params))  # type: ignore[misc]
        except (ValueError, OSError) as error:
            failed = True
            yield problem(f"recipe, {stage.name}", said(error, "give the path of a file that can be read"))
    if failed:
        return
    if not recipe.LANE.writer.counts_tokens:
        yield ok("recipe", f"{recipe.name}: {len(active)} stages, whose files load")
        return
    try:
        packed_rows(recipe, patient([recipe.tokenizer.path], lambda: check_tokenizer(recipe.tokenizer)))
    except (ValueError, OSError) as error:
        yield problem("recipe, packed", said(error, "name another token, or leave `packed` out"))
    else:
        yield ok("recipe", f"{recipe.name}: {len(active)} stages, whose files and tokenizer load")


def sources(recipe: Recipe, cut_off: Sequence[str], tasks: list[ReadTask]) -> Iterator[Finding]:
    """A line a source: its files, and whether the first of them hold documents. What is to be read goes to `tasks`.
    cut_off: as of `stage_files`.
    """
    for source in recipe.sources:
        check = f"source {source.name}"
        if not source.enabled:
            yield ok(check, "off (enabled)")
            continue
        paths = (*source.paths, *source.path_lists)
        if is_cut_off(paths, cut_off):
            yield warning(check, f"not checked: {CUT_OFF}")
            continue
        try:
            planned, wrong, found = patient(paths, lambda source=source: look_into(recipe, source))  # type: ignore[misc]
        except (ValueError, OSError) as error:
            yield problem(check, said(error, "correct `paths`, or give the files with --input"))
            continue
        tasks += planned
        sizes = {task.path: task.size for task in planned}
        formats = ", ".join(sorted({task.format for task in planned}))
        files = f"{len(sizes):,} file{'s' * (len(sizes) != 1)}, {human_bytes(sum(sizes.values()))}, {formats}"
        if source.name in wrong:
            yield problem(check, said(wrong[source.name], "correct the source, or skip it with `enabled: off`"))
        else:
            yield ok(check, "; ".join([f"{files}; the first hold documents", *map(field_line, found.values())]))


def settings(recipe: Recipe, tasks: Sequence[ReadTask]) -> Iterator[Finding]:
    """A warning for each key that decides nothing."""
    yield from (warning("recipe", f"{line}; leave it out") for line in idle_settings(recipe, tasks))


def look_into(recipe: Recipe, source: SourceParams) -> tuple[list[ReadTask], dict[str, str], dict[str, str]]:
    """What a source is to be read by, what is wrong with its first files, and the field of its text where that is
    found."""
    planned = plan_sources([source], notes=recipe.notes())
    found = choose_text_fields([source], planned, recipe.limits)
    tasks = with_text_fields(planned, found)
    return tasks, probe_sources(tasks, recipe.limits), found


def is_cut_off(paths: Iterable[str], cut_off: Sequence[str]) -> bool:
    return any(path.startswith(tuple(cut_off)) for path in paths)


def said(error: object, advice: str) -> str:
    """An error and what to do next, which its own sentence may say already."""
    text = re.sub(r"^source [^:]*: ", "", str(error))
    if isinstance(error, TimeoutError):
        return f"{text}: check the network, or use a copy on this machine"
    has_advice = any(word in text for word in (" allowed", "did you mean", "; ", ": `"))
    return text if has_advice else f"{text}: {advice}"
