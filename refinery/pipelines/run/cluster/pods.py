"""A run as objects of Kubernetes: what its pods cannot reach is refused before anything is made."""

from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path

from refinery.pipelines.recipe.load_recipe import load_recipe
from refinery.pipelines.recipe.quantities.disk import SCRATCH_PER_TEXT
from refinery.pipelines.recipe.recipe import Recipe
from refinery.pipelines.run.cluster.begin import Words
from refinery.pipelines.run.cluster.progress import ProgressReader
from refinery.pipelines.run.slices.cut import read_cut
from refinery.pipelines.run.slices.names import PUBLISH
from refinery.pipelines.runners.cluster.kubernetes import Objects, Place, StepJob
from refinery.pipelines.runners.cluster.task_resources import task_resources
from refinery.pipelines.runners.dataflow.flag_checks import named_files
from refinery.transforms.core.resources import read_resource
from refinery.transforms.read.lines import COMPRESSED_RATIO
from refinery.transforms.read.remote.files import is_remote
from refinery.transforms.write.write_documents import PART_BYTES

BUCKETS = ("s3://", "gs://")


def make_objects(args: Namespace, words: Words, place: Place, begin: Callable[[], ProgressReader]) -> Objects | None:
    """The objects of the steps that are not done; None where all are. begin:
    seals the cut. Raises ValueError for what pods cannot reach."""
    recipe = load_recipe(args.recipe, args.set, args.input)
    for line in out_of_reach(recipe, args):
        raise ValueError(line)
    reader = begin()
    found = reader.read()
    cut = read_cut(reader.work_store)
    if found.is_complete or cut is None:
        return None
    slice_bytes = [sum(wave.bytes for wave in cut.waves_of(number)) for number in range(cut.slices)]
    scratch = round(max(slice_bytes, default=0) * COMPRESSED_RATIO * SCRATCH_PER_TEXT) + PART_BYTES * args.workers
    steps = [
        StepJob(
            step=step.name,
            tasks=step.tasks,
            slices=0 if step.name == PUBLISH else cut.slices,
            resources=task_resources(slice_bytes, step.tasks, args.workers),
            scratch_bytes=scratch if step.tasks > 1 else 0,
        )
        for step in found.steps
        if step.missing
    ]
    text = read_resource(args.recipe).decode()
    return Objects(recipe.name, text, words.all[1:], words.ending, steps, place, args.throttle)


def out_of_reach(recipe: Recipe, args: Namespace) -> Iterator[str]:
    """A line for everything that pods cannot read or write."""
    for name in ("output", "work"):
        value = getattr(args, name)
        if value and not value.startswith(BUCKETS):
            yield f"--{name}: {value!r:.200} given; pods share no files, s3://… or gs://… is allowed"
    for key, path in named_files(recipe):
        if not path.startswith(BUCKETS) and not is_remote(path):
            yield f"{key}: {path!r:.200} given, which pods cannot see; copy it to a bucket, and name s3://… or gs://…"
    if recipe.CODE.folder:
        folder: str | Path = recipe.CODE.folder
        yield f"{folder}: the recipe has stages of its own; install them into the image as a package"
