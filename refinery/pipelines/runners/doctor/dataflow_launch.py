"""What would fail on Dataflow, found without it: the checks of a launch, each asked for all that it finds."""

import re
import sys
from collections.abc import Iterator, Sequence
from itertools import islice

from refinery.pipelines.recipe.recipe import Recipe
from refinery.pipelines.runners.dataflow.flag_checks import out_of_reach
from refinery.pipelines.runners.dataflow.launch_flags import DEFAULTS, launch_problems, with_environment
from refinery.pipelines.runners.dataflow.worker_package import check_names
from refinery.pipelines.runners.doctor.finding import Finding, ok, problem, warning
from refinery.pipelines.runners.runner import refused_flags
from refinery.transforms.core.memory import BUNDLES, FIXED_BYTES, WORKER_BYTES
from refinery.transforms.write.shards import SHARD_MEMORY

SHOWN = 5  # files that workers cannot see; the others are counted
# Machines with less memory for each vCPU than the 4 GB that the default has (Compute Engine's families of machines).
SMALL = re.compile(r"-highcpu-|^e2-(micro|small|medium)|^[fg]1-")


def launch(recipe: Recipe | None, flags: Sequence[str], output: str, work: str) -> Iterator[Finding]:
    """Every check of a launch. recipe: None where none is given or it cannot be read. output, work: "" where not
    given, which is a line then.
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
    machine = given.get("machine_type") or DEFAULTS["machine_type"]
    if SMALL.search(machine):
        yield warning(
            "Dataflow, machines",
            f"{machine} has less than 4 GB for each vCPU, which stages with models need: --machine_type="
            f"{DEFAULTS['machine_type']}, or a -highmem- one",
        )
    else:
        yield ok(
            "Dataflow, machines", f"{machine}, {given.get('max_num_workers') or DEFAULTS['max_num_workers']} at most"
        )
    needed = FIXED_BYTES + BUNDLES * SHARD_MEMORY * (recipe.shards.target_bytes if recipe is not None else 0)
    if given.get("flexrs_goal") and needed > WORKER_BYTES and "-highmem-" not in machine:
        yield warning(
            "Dataflow, machines",
            f"shards.target_bytes needs {needed / 1e9:.0f} GB a worker, and FlexRS takes no memory hints: a larger "
            "--machine_type, or smaller shards",
        )
