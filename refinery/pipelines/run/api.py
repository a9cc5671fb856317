"""`refinery refine` and its --dry-run as functions: the same run, from Python."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from refinery.loader.format.manifest import Manifest
from refinery.pipelines.recipe.load_recipe import load_recipe, parse_recipe
from refinery.pipelines.recipe.recipe import Recipe
from refinery.pipelines.run.refine import Refinement
from refinery.pipelines.runners.dataflow.worker_package import build_package
from refinery.pipelines.runners.runner import Runner, launch_flags
from refinery.pipelines.runners.scratch import scratch_of


def silent(line: str) -> None:
    """Says nothing."""


def refine(
    recipe: str | PathLike[str] | Mapping[str, Any] | Recipe,
    output: str | PathLike[str],
    *,
    runner: str = "local",
    workers: int | None = None,
    flags: Sequence[str] = (),
    settings: Sequence[str] = (),
    inputs: Sequence[str] = (),
    work: str = "",
    reuse: str = "",
    discard_work: bool = False,
    scratch: str = "",
    quiet: bool = True,
    traceback: bool = False,
    say: Callable[[str], None] = silent,
) -> Manifest:
    """Run a recipe to its end, from wherever `output` stands, and return the manifest of the corpus.

    recipe: a YAML file, plain data, or what `load_recipe` returned. output: a folder, gs:// or s3:// prefix. runner:
    "local", or the name of a Beam runner, which gets `flags` (["--region=…"]). workers: processes of the local
    runner, one per core by default; 0 runs inside this process. settings ("a.b=c") and inputs (globs): as --set and
    --input, of a YAML file alone. work, reuse, discard_work, scratch: as the flags of those names. quiet: no
    progress line. traceback: let Beam log where a failing job failed. say: receives the lines that the command would
    print.

    Raises RecipeError and ValueError for what is wrong with the recipe, its inputs or the flags, before anything runs;
    RefineError for a prefix that belongs to another run, too many dead letters, or counts that do not reconcile; and
    whatever a job raises. Called again, it goes on where it stopped.
    """
    prefix = str(output)
    made = _recipe(recipe, settings, inputs)
    options = runner_flags(made, runner, flags, prefix, work)
    scratch = scratch_of(scratch, work or f"{prefix.rstrip('/')}/work")
    jobs = Runner(runner, flags=options, quiet=quiet, traceback=traceback, say=say, scratch=scratch)
    if workers is not None:
        jobs = Runner(runner, workers, options, quiet, traceback, say, scratch=scratch)
    with jobs.open() as opened:
        return Refinement(made, prefix, opened, work, reuse, discard_work, say).run()


def dry_run(
    recipe: str | PathLike[str] | Mapping[str, Any] | Recipe,
    output: str | PathLike[str],
    *,
    runner: str = "local",
    flags: Sequence[str] = (),
    settings: Sequence[str] = (),
    inputs: Sequence[str] = (),
    work: str = "",
    reuse: str = "",
    say: Callable[[str], None] = print,
) -> None:
    """Check all that `refine` checks before it runs; `say` what it would read, take over and run. Nothing is written.

    Parameters and errors are those of `refine`.
    """
    prefix = str(output)
    made = _recipe(recipe, settings, inputs)
    scratch = scratch_of("", work or f"{prefix.rstrip('/')}/work")
    options = runner_flags(made, runner, flags, prefix, work)
    jobs = Runner(runner, 0, options, quiet=True, say=say, scratch=scratch)
    with jobs.open() as opened:
        Refinement(made, prefix, opened, work, reuse, say=say).dry_run()


def runner_flags(recipe: Recipe, runner: str, flags: Sequence[str], prefix: str, work: str) -> tuple[str, ...]:
    """Beam's flags for the run, completed where the runner is Dataflow; its worker package holds the recipe's code."""
    build = partial(build_package, recipe.CODE.sources())
    return launch_flags(runner, flags, prefix, work or f"{prefix.rstrip('/')}/work", build)


def _recipe(recipe: Any, settings: Sequence[str], inputs: Sequence[str]) -> Recipe:
    if isinstance(recipe, (str, PathLike)):
        return load_recipe(str(recipe), settings, inputs)
    if settings or inputs:
        raise ValueError("settings and inputs: given for a recipe that is not a file; change the recipe itself")
    return recipe if isinstance(recipe, Recipe) else parse_recipe(dict(recipe), Path())
