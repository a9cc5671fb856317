"""`--reuse`: what another run has finished and ours need not do again. Whole phases, and waves of phase 1.

A phase is reused if its fingerprint is ours. If only the inputs differ, waves of phase 1 are reused: those whose files
are all ours, too, with the same bytes and read in the same way. Nothing is copied. Reports name where the parts are, in
one step, so the other run's work location has to stay.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import RUN, seal, unseal
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.progress.words import human_bytes
from refinery.pipelines.recipe.recipe import Recipe
from refinery.pipelines.run.differences import phase_differences
from refinery.pipelines.run.errors import RefineError
from refinery.pipelines.run.inputs_read.published import known_crc32c
from refinery.pipelines.run.phases import part_root, read_phase, read_waves, reuse_phase
from refinery.pipelines.run.prefix import location, work_places
from refinery.pipelines.run.waves import unread_tasks
from refinery.transforms.core.job.task_list import TaskList, read_task_list, write_task_list
from refinery.transforms.dedup.cutting_pass import ComparingStage
from refinery.transforms.read.sources import ReadTask

WEB = ("http://", "https://")
# Fields of a wave's report that are of its own run; "number" is `read_waves`' addition.
OWN_FIELDS = ("number", "waves_left", "fingerprint", "tasks", "parts")


def take_over(
    work: str,
    reuse: str,
    recipe: Recipe,
    identity: Mapping[str, Any],
    tasks: Sequence[ReadTask],
    say: Callable[[str], None],
) -> None:
    """Point from `work` at what is finished in `reuse` (a prefix, or its work location) and the same here.

    identity: what our `_run.json` says. tasks: all of ours. Raises RefineError when `reuse` holds nothing finished.
    """
    for name, phase, why in reusable_phases(reuse, recipe, identity):
        if phase is not None:
            if read_phase(work, name, phase.fingerprint) is None:
                reuse_phase(work, phase)
                say(f"reuse: {name} reused from {reuse}")
            continue
        if read_phase(work, name, identity["phases"][name]) is not None:
            return  # an earlier command has finished it
        say(f"reuse: {name} {why}")
        if name == "clean":
            left = unread_tasks(work, tasks, read_waves(open_store(work), "clean"))
            waves = list(reusable_waves(reuse, recipe, identity, left))
            for wave in waves:
                wave.take_over(work, identity["phases"]["clean"])
            say(f"reuse: {describe_waves(reuse, waves, left)}")


def describe_waves(reuse: str, waves: Sequence["Wave"], left: Sequence[ReadTask]) -> str:
    """What is reused of a phase 1 with other inputs, and what is left to read. left: tasks before that."""
    taken = {task_key(task) for wave in waves for task in wave.tasks}
    todo = [task for task in left if task_key(task) not in taken]
    if not waves:
        return f"no wave of the clean phase can be reused; {_amount(todo)} to read"
    done = [task for task in left if task_key(task) in taken]
    what = "1 wave" if len(waves) == 1 else f"{len(waves):,} waves"
    return f"{what} of the clean phase reused from {reuse} ({_amount(done)}); {_amount(todo)} to read"


def _amount(tasks: Sequence[ReadTask]) -> str:
    files = len({(task.source, task.path) for task in tasks})
    return f"{files:,} file{'s' * (files != 1)}, {human_bytes(sum(task.share_bytes for task in tasks))}"


# --- phases -----------------------------------------------------------------------------------------------------------


def place_of(reuse: str) -> str:
    """The work location of `reuse` that holds something finished, in a form that holds from any folder. Raises
    RefineError where there is none.
    """
    for place in work_places(reuse):
        store = open_store(place)
        if store.size("clean.json") is not None or (not place.startswith(WEB) and read_waves(store, "clean")):
            return location(place)
    raise RefineError(
        f"--reuse {reuse}: there is no finished phase; name a prefix whose work/ was kept, or its --work location"
    )


def read_run(reuse: str) -> dict[str, Any]:
    """`_run.json` of a prefix, of its work location, or of the prefix around that; {} where there is none."""
    around = reuse.rstrip("/").rpartition("/")[0] or "."
    for place in (reuse, *work_places(reuse)[:1], around):
        store = open_store(place)
        if store.size(RUN) is not None:
            return unseal(store.read(RUN), store.url(RUN))
    return {}


def reusable_phases(reuse: str, recipe: Recipe, identity: Mapping[str, Any]) -> Iterator[tuple[str, Any, str]]:
    """(name, phase, "") of the phases that can be reused, then (name, None, why) of the first that cannot."""
    other, theirs = place_of(reuse), read_run(reuse)
    for name in ("clean", "dedup"):
        phase = read_phase(other, name, identity["phases"][name])
        if phase is None:
            if open_store(other).size(f"{name}.json") is None:
                yield name, None, "is not finished there"
            else:
                hashed = [stage.key for stage in recipe.LANE.stages if isinstance(stage, ComparingStage)]
                told = partial(phase_differences, theirs, identity, name, recipe.LANE.sections(name), hashed)
                why = told() if theirs else "another run"
                yield name, None, f"differs, so it runs again: {why}"
            return
        yield name, phase, ""


# --- waves ------------------------------------------------------------------------------------------------------------


class Wave:
    """A finished wave of another run. report: its own; root: the work location that holds it."""

    def __init__(self, root: str, report: Mapping[str, Any]) -> None:
        self.root, self.report = root, report
        self.lines = read_task_list(TaskList(root, **report["tasks"]))
        self.tasks = [ReadTask.from_json(line) for line in self.lines]

    def parts(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """(folder, part), each part with the location that holds it."""
        for folder, entries in self.report["parts"].items():
            yield from ((folder, {**entry, "root": part_root(entry, self.root)}) for entry in entries)

    def take_over(self, work: str, fingerprint: str) -> None:
        """Write it as a wave of the run in `work`, under the next number."""
        store = open_store(work)
        number = max((report["number"] for report in read_waves(store, "clean")), default=-1) + 1
        parts: dict[str, list[dict[str, Any]]] = {}
        for folder, part in self.parts():
            parts.setdefault(folder, []).append(part)
        fields = {name: value for name, value in self.report.items() if name not in OWN_FIELDS}
        tasks = write_task_list(work, "clean", self.lines).plain()
        report = {**fields, "fingerprint": fingerprint, "tasks": tasks, "parts": parts}
        store.create(f"clean/wave-{number:05d}.json", seal(report))


def task_key(task: ReadTask) -> tuple[str, str, int, int]:
    """Which part of which file."""
    return task.source, task.path, task.part, task.parts


def reusable_waves(reuse: str, recipe: Recipe, identity: Mapping[str, Any], left: Sequence[ReadTask]) -> Iterator[Wave]:
    """The finished waves of `reuse` all of whose tasks are among `left`, with the same result.

    Where something may look at a file's place in its source (`rank.prefer: first`, stages of the user's own), that has
    to be the same, too. Cost: the reports and task lists of all waves, and a listing of the parts.
    """
    other, theirs = place_of(reuse), read_run(reuse)
    if other.startswith(WEB) or theirs.get("cleaning") != identity["cleaning"]:
        return
    store = open_store(other)
    if store.size("clean.json") is not None:
        other = unseal(store.read("clean.json"), store.url("clean.json"))["reused_from"] or other
        if other.startswith(WEB):
            raise FormatError(f"{store.url('clean.json')}: reused_from is {other!r}: no run writes that here")
        store = open_store(other)
    in_place = recipe.rank.prefer == "first" or bool(recipe.CODE.files)
    digests, facts = _digests(theirs), _facts(theirs)
    ours, our_facts = _digests(identity), _facts(identity)

    whole = {(entry["source"], entry["path"]) for entry in identity["inputs"] if known_crc32c(entry)}

    def comparable(task: ReadTask) -> ReadTask:
        named = replace(task, crc32c="")  # the digests are compared below; when a file was written says more than one
        if (task.source, task.path) in whole:  # of a sample, and nothing beside one of all its bytes
            named = replace(named, changed=0, version="")
        return named if in_place else replace(named, file_index=0)

    wanted = {comparable(task) for task in left}
    listed: dict[tuple[str, str], frozenset[str]] = {}

    def is_there(folder: str, part: Mapping[str, Any]) -> bool:
        if (part["root"], folder) not in listed:
            listed[part["root"], folder] = frozenset(open_store(part["root"]).list(folder))
        return part["path"] in listed[part["root"], folder]

    for report in read_waves(store, "clean"):
        if report.get("fingerprint") != theirs["phases"]["clean"]:
            continue
        wave = Wave(other, report)
        same = all(
            comparable(task) in wanted
            and digests.get((task.source, task.path)) == ours[task.source, task.path]
            and facts.get(task.source) == our_facts[task.source]
            for task in wave.tasks
        )
        if same and wave.tasks and all(is_there(folder, part) for folder, part in wave.parts()):
            wanted -= {comparable(task) for task in wave.tasks}
            yield wave


def _digests(run: Mapping[str, Any]) -> dict[tuple[str, str], tuple[int, str]]:
    """(source, path) -> size and digest of the inputs of a `_run.json`."""
    return {(entry["source"], entry["path"]): (entry["size"], entry["digest"]) for entry in run["inputs"]}


def _facts(run: Mapping[str, Any]) -> dict[str, tuple[int, str]]:
    """Source -> priority and domain, which parts hold, too."""
    return {s["name"]: (s["priority"], s["domain"] or s["name"]) for s in run["recipe"]["sources"]}
