"""What is said of a launch on other machines: files that their workers cannot see, and, by --dry-run, what to know
before it."""

from collections.abc import Iterator, Sequence

from refinery.pipelines.recipe.recipe import Recipe
from refinery.pipelines.runners.runner import Runner
from refinery.transforms.read.sources import ReadTask


def refuse_unseen(runner: Runner, recipe: Recipe, output: str, work: str, reuse: str) -> None:
    """Raises RecipeError, one line, for a file of the run that workers elsewhere cannot see."""
    if runner.remote:
        from refinery.pipelines.runners.dataflow.flag_checks import check_reach

        check_reach(recipe, reuse)
    elif runner.is_portable:
        from refinery.pipelines.runners.portable.visible_paths import check_seen, run_places

        check_seen(runner.name, runner.flags, run_places(recipe, output, work))


def launch_lines(runner: Runner, recipe: Recipe, output: str, work: str, tasks: Sequence[ReadTask]) -> Iterator[str]:
    """Warnings, and the quotas that a job on Dataflow will ask for. Costs a request for each bucket there, and up to
    five seconds for each server of another engine."""
    if runner.remote:
        from refinery.pipelines.runners.dataflow.flag_checks import named_files
        from refinery.pipelines.runners.dataflow.launch_report import Launch, report

        inputs = [path for _, path in named_files(recipe)]
        read = {task.path: task.size for task in tasks}
        for topic, level, line in report(Launch(runner.flags, output, work, inputs, sorted(recipe.CODE.files), read)):
            yield f"{level or topic}: {line}"
    elif runner.is_portable:
        from refinery.pipelines.runners.portable.versions import versions
        from refinery.pipelines.runners.portable.visible_paths import run_places, unseen

        places = run_places(recipe, output, work)
        notes = [*unseen(runner.name, runner.flags, places), *versions(runner.name, runner.flags)]
        yield from (f"{note.what}: {note.line}" for note in notes if note.what != "ok")
