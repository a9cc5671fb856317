"""What would fail on Dataflow, found without it: the checks of a launch, each asked for all that it finds."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType

from refinery.pipelines.recipe.recipe import Recipe
from refinery.pipelines.runners.dataflow.flag_checks import named_files, out_of_reach
from refinery.pipelines.runners.dataflow.job_request import JobRequest
from refinery.pipelines.runners.dataflow.launch_flags import launch_problems, with_environment
from refinery.pipelines.runners.dataflow.launch_report import Launch, report
from refinery.pipelines.runners.dataflow.worker_package import check_names
from refinery.pipelines.runners.doctor.finding import Finding, ok, problem, warning
from refinery.pipelines.runners.runner import refused_flags
from refinery.transforms.core.memory import BUNDLES, FIXED_BYTES, WORKER_BYTES
from refinery.transforms.write.shards import SHARD_MEMORY

NOTHING: Mapping[str, int] = MappingProxyType({})
SHOWN = 5  # files that workers cannot see; the others are counted


def launch(
    recipe: Recipe | None,
    flags: Sequence[str],
    output: str,
    work: str,
    read: Mapping[str, int] = NOTHING,
    looks: bool = True,
) -> Iterator[Finding]:
    """Every check of a launch. recipe: None where none is given or it cannot be read. output, work: "" where not
    given, which is a line then. read: bytes of each input file. looks: whether buckets are asked what they are.
    """
    if not output:
        yield problem("Dataflow", "--output is missing: gs://BUCKET/…, which workers can write to")
    place = output or "gs://bucket"
    lines = [*refused_flags(flags), *launch_problems(flags, output=place, work=work or f"{place.rstrip('/')}/work")]
    yield from (problem("Dataflow", line) for line in lines)
    if recipe is not None:
        yield from files(recipe)
    if not lines:
        yield ok("Dataflow", "all needed flags are given; only their names were checked")
        yield from workers(recipe, flags)
    inputs = [path for _, path in named_files(recipe)] if recipe is not None else ()
    own = sorted(recipe.CODE.files) if recipe is not None else ()
    yield from advice(Launch(flags, output, work, inputs, own, read, looks), not lines)


def files(recipe: Recipe) -> Iterator[Finding]:
    """Files that workers cannot see, and modules of the user's own that they could not import."""
    unseen = list(out_of_reach(recipe))
    yield from (problem("Dataflow, recipe", line) for line in islice(unseen, SHOWN))
    if len(unseen) > SHOWN:
        yield problem(
            "Dataflow, recipe", f"{len(unseen) - SHOWN:,} more files are only on this machine; copy them, too"
        )
    try:
        check_names(recipe.CODE.sources())
    except (ValueError, OSError) as error:
        yield problem("Dataflow, stages", str(error))


def workers(recipe: Recipe | None, flags: Sequence[str]) -> Iterator[Finding]:
    """What workers will be, by flags that are complete: their image, their code, their memory."""
    _, given = with_environment(flags)
    python = "{}.{}".format(*sys.version_info[:2])
    image = given.get("sdk_container_image")
    own = ", ".join(sorted(recipe.CODE.files)) if recipe is not None else ""
    if image:
        yield ok("Dataflow, image", f"{image}: a job ends at once unless it has this code and Python {python}")
    else:
        yield warning(
            "Dataflow, image", "none: every worker installs and compiles for minutes; build one (docs/operations.md)"
        )
    if own:
        where = f"must also be in {image}; build it with them" if image else "travel in the worker package"
        yield (warning if image else ok)("Dataflow, stages", f"your own modules, {own}, {where}")
    needed = FIXED_BYTES + BUNDLES * SHARD_MEMORY * (recipe.shards.target_bytes if recipe is not None else 0)
    machine = JobRequest(given).machine
    if given.get("flexrs_goal") and needed > WORKER_BYTES and "-highmem-" not in machine:
        yield warning(
            "Dataflow, machines",
            f"shards.target_bytes needs {needed / 1e9:.0f} GB a worker, and FlexRS takes no memory hints: a larger "
            "--machine_type, or smaller shards",
        )


def advice(launch: Launch, is_sound: bool) -> Iterator[Finding]:
    """Warnings of the table of checks, and the quotas; nothing for flags that Beam cannot read. is_sound: nothing else
    is wrong with the launch; then a line names the machines, unless a warning is about them."""
    try:
        found = list(report(launch))
    except ValueError:
        return
    if is_sound and not any(topic == "machines" for topic, _, _ in found):
        job = JobRequest(with_environment(launch.flags)[1])
        machines = "machines that Dataflow Prime chooses" if job.is_prime else job.machine
        yield ok("Dataflow, machines", f"{machines}, {job.most_workers} at most")
    for topic, level, line in found:
        yield (ok if level is None else warning)(f"Dataflow, {topic}", line)
