"""What would fail on Flink, Spark, Prism or another engine behind a job service, found before a launch."""

from collections.abc import Iterator, Sequence

from refinery.pipelines.recipe.recipe import Recipe
from refinery.pipelines.runners.doctor.finding import Finding, State
from refinery.pipelines.runners.portable.addresses import environment_type, portable_problems, servers_of
from refinery.pipelines.runners.portable.versions import versions
from refinery.pipelines.runners.portable.visible_paths import run_places, unseen
from refinery.pipelines.runners.runner import refused_flags

SHOWN = 5  # paths of one kind; the others are counted


def launch(runner: str, recipe: Recipe | None, flags: Sequence[str], output: str, work: str) -> Iterator[Finding]:
    """Every check of a launch. recipe: None where none is given or it cannot be read.

    Cost: up to five seconds for each server that the flags name, twice for one that also says its version.
    """
    problems = [*refused_flags(flags), *portable_problems(runner, flags)]
    yield from (Finding(runner, State.PROBLEM, line) for line in problems)
    if not problems:
        servers = ", ".join(f"{server.what} at {server.value}" for server in servers_of(runner, flags))
        workers = f"workers: {environment_type(runner, flags)}"
        yield Finding(runner, State.OK, f"{servers} answer; {workers}" if servers else f"it starts itself; {workers}")
    yield from (Finding(f"{runner}, versions", State(note.what), note.line) for note in versions(runner, flags))
    places = run_places(recipe, output, work) if recipe is not None else [("--output", output)] * bool(output)
    notes = list(unseen(runner, flags, places))
    yield from (Finding(f"{runner}, paths", State(note.what), note.line) for note in notes[:SHOWN])
    if len(notes) > SHOWN:
        more = f"{len(notes) - SHOWN:,} more paths, as those above; use a bucket"
        yield Finding(f"{runner}, paths", State(notes[-1].what), more)
