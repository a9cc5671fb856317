"""All that the doctor looks at, in order; each check on its own, so one that breaks hides no other."""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from refinery.pipelines.runners.doctor import amazon_s3, google_cloud, installation, machine
from refinery.pipelines.runners.doctor.finding import Finding, State, ok, problem, warning, within

if TYPE_CHECKING:
    from refinery.pipelines.recipe.recipe import Recipe
    from refinery.transforms.read.sources import ReadTask


@dataclass(frozen=True)
class Asked:
    """What the doctor is asked about: a run as `refinery refine` gets it; without a recipe, this machine alone.

    commands: words of the command line that commands of other packages cannot have.
    """

    recipe: str = ""
    settings: Sequence[str] = ()
    inputs: Sequence[str] = ()
    runner: str = "local"
    workers: int = 1
    output: str = ""
    work: str = ""
    flags: Sequence[str] = ()
    scratch: str = ""
    commands: Collection[str] = ()


def examine(asked: Asked) -> Iterator[Finding]:
    """Every finding, as soon as it is there. Nothing is written, except an object on s3:// that is removed again.
    Cost: two seconds, and what the sources cost."""
    is_run = bool(asked.recipe)
    yield from guarded("Python", lambda: [installation.python_version()])
    yield from guarded("kernels", installation.kernels)
    yield from guarded("libraries", lambda: installation.libraries(is_run))
    yield from guarded("commands", lambda: installation.commands(asked.commands))
    yield from guarded("open files", lambda: [machine.open_files()])
    yield from guarded("shared memory", lambda: [machine.shared_memory()])
    yield from guarded("encoding", lambda: [machine.encoding()])
    yield from guarded("clock", lambda: [machine.clock()])
    if find_spec("apache_beam") is None:  # what follows imports the pipeline; that it is not there was said
        places = [asked.output, asked.work]
        yield from guarded("Google credentials", lambda: google_cloud.google(places))
        yield from guarded(amazon_s3.CHECK, lambda: amazon_s3.amazon(places, places))
    else:
        yield from guarded("run", lambda: examine_run(asked))


def examine_run(asked: Asked) -> Iterator[Finding]:
    """What needs the pipeline's libraries: the recipe, its sources, room for them, buckets, Dataflow."""
    from refinery.pipelines.runners.capacity import DATAFLOW
    from refinery.pipelines.runners.doctor import dataflow_launch, portable_launch, recipe_inputs, room
    from refinery.pipelines.runners.portable.addresses import is_portable
    from refinery.pipelines.runners.runner import runner_name

    recipes: list[Recipe] = []
    tasks: list[ReadTask] = []
    yield from guarded("runner", lambda: runner(asked))
    places = [asked.output, asked.work]
    if asked.recipe:
        yield from guarded("recipe", lambda: read_recipe(asked, recipes))
    recipe = recipes[0] if recipes else None
    places += places_of(recipe) if recipe is not None else ()
    name = runner_name(asked.runner)
    cut_off: list[str] = []  # kinds of storage that cannot be reached
    written = [place for place in (asked.output, asked.work) if place]
    for scheme, check, look in (
        ("gs://", "Google credentials", lambda: google_cloud.google(places, name == DATAFLOW)),
        ("s3://", amazon_s3.CHECK, lambda: amazon_s3.amazon(places, written)),
    ):
        findings = list(guarded(check, look))
        yield from findings
        cut_off += [scheme] * any(finding.state is State.PROBLEM for finding in findings)
    if recipe is not None:
        yield from guarded("recipe", lambda: recipe_inputs.stage_files(recipe, cut_off))
        yield from guarded("sources", lambda: recipe_inputs.sources(recipe, cut_off, tasks))
        yield from guarded("recipe", lambda: recipe_inputs.settings(recipe, tasks))
    local = [place for place in (asked.output, asked.work) if place and "://" not in place]
    if asked.output and not asked.output.startswith(tuple(cut_off)):
        yield from guarded("output", lambda: [output(asked.output)])
    from refinery.pipelines.recipe.quantities.disk import text_bytes
    from refinery.pipelines.runners.scratch import scratch_of

    scratch = scratch_of(asked.scratch, asked.work or (f"{asked.output}/work" if asked.output else ""))
    load = room.Load(text_bytes(tasks), max(1, asked.workers), name == "local", local, scratch)
    yield from guarded("room", lambda: room.room(load))
    if name == DATAFLOW:
        read = {task.path: task.size for task in tasks}
        looks = "gs://" not in cut_off
        yield from guarded(
            "Dataflow", lambda: dataflow_launch.launch(recipe, asked.flags, asked.output, asked.work, read, looks)
        )
    elif is_portable(name):
        yield from guarded(name, lambda: portable_launch.launch(name, recipe, asked.flags, asked.output, asked.work))


def runner(asked: Asked) -> Iterator[Finding]:
    """Whether Beam knows a runner of that name, and the number of processes can be."""
    from refinery.pipelines.runners.runner import Runner

    try:
        yield ok("runner", Runner(asked.runner, asked.workers).name)
    except ValueError as error:
        yield problem("runner", f"{error}: --runner local, DirectRunner, FlinkRunner or DataflowRunner, for example")


def output(prefix: str) -> Finding:
    """What is at the prefix already, as a run would find it. Whose it is, shows when the run begins."""
    from refinery.loader.format.manifest import MANIFEST, RUN
    from refinery.loader.storage.open_store import open_store

    store = open_store(prefix)
    there = within(google_cloud.SECONDS, lambda: [name for name in (RUN, MANIFEST) if store.size(name) is not None])
    if MANIFEST in there:
        return warning("output", f"{prefix} holds a finished corpus, which is not replaced; choose another --output")
    if there:
        return ok(
            "output", f"a run has begun in {prefix}; the same command resumes it, `refinery inspect` shows its progress"
        )
    return ok("output", f"{prefix} is free")


def read_recipe(asked: Asked, recipes: "list[Recipe]") -> Iterator[Finding]:
    """Every problem of the recipe's text, a line each; one that is sound goes to `recipes`."""
    from refinery.pipelines.recipe.load_recipe import load_recipe
    from refinery.transforms.core.data_text.plain_yaml import RecipeError

    try:
        recipes.append(load_recipe(asked.recipe, asked.settings, asked.inputs))
    except RecipeError as error:
        yield from (problem("recipe", line) for line in str(error).splitlines())


def places_of(recipe: "Recipe") -> Iterator[str]:
    """Every place that a run of the recipe reads by name, but those that only a source's own project may list: that
    source is looked at as a whole."""
    from refinery.pipelines.runners.dataflow.flag_checks import named_files

    billed = {
        path for source in recipe.sources if source.requester_pays for path in (*source.paths, *source.path_lists)
    }
    yield from (path for _, path in named_files(recipe) if path not in billed)


def guarded(check: str, call: Callable[[], Iterable[Finding]]) -> Iterator[Finding]:
    """What a check finds. One that raises is a problem itself: a broken installation can raise anything."""
    try:
        yield from call()
    except Exception as error:  # noqa: BLE001 - said, and the other checks go on
        yield problem(check, f"this check itself failed ({type(error).__name__}: {error}); reinstall, then try again")


def text_lines(findings: Iterable[Finding]) -> Iterator[str]:
    """A line each, and a last one that counts."""
    counts = dict.fromkeys(State, 0)
    for finding in findings:
        counts[finding.state] += 1
        yield finding.line()
    yield ", ".join(f"{count} {state}" for state, count in counts.items())


def json_line(findings: Sequence[Finding]) -> str:
    """One object: ok (no problem), and the findings in order."""
    sound = all(finding.state is not State.PROBLEM for finding in findings)
    return json.dumps({"ok": sound, "findings": [asdict(finding) for finding in findings]}, ensure_ascii=False)
