"""`refinery cluster kubernetes`: a run as Indexed Jobs of Kubernetes."""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from refinery.pipelines.cli import refine
from refinery.pipelines.cli.cluster_slurm import add_tasks_argument, add_throttle_argument
from refinery.pipelines.shell.arguments import result, say
from refinery.pipelines.shell.command import Command, Section
from refinery.pipelines.shell.exit_codes import ExitCode

EXAMPLES = """examples:
  refinery cluster kubernetes web.yaml --output s3://bucket/web --tasks 200 --workers 8 --image registry/refinery:1
  refinery cluster kubernetes web.yaml --output s3://bucket/web --tasks 200 --image registry/refinery:1 --scripts jobs
Further arguments are those of `refinery refine`. Inputs, output, models and lists must be in buckets. Steps that are
done are left out, so the same command resumes a run. See docs/engines/kubernetes.md."""


def arguments(parser: ArgumentParser) -> None:
    refine.run_arguments(parser)
    add_tasks_argument(parser)
    parser.add_argument("--image", required=True, metavar="IMAGE", help="an image with the command `refinery`")
    parser.add_argument("--namespace", default="", metavar="NAME", help="where the objects go (default: kubectl's)")
    parser.add_argument(
        "--service-account", default="", metavar="NAME", help="whom pods act as: one with a workload identity"
    )
    parser.add_argument(
        "--secret", default="", metavar="NAME", help="a secret whose keys become environment variables of the pods"
    )
    add_throttle_argument(parser, "pods", "all")
    parser.add_argument(
        "--scripts", default="", metavar="DIR", help="write run.yaml and run.sh there, instead of printing the objects"
    )


def run(args: Namespace, flags: Sequence[str]) -> ExitCode:
    """Seal the cut; print or write the objects of the steps that are not done."""
    from pathlib import Path

    from refinery.pipelines.run.cluster.begin import begin, check_arguments
    from refinery.pipelines.run.cluster.pods import make_objects
    from refinery.pipelines.runners.cluster.kubernetes import Place, write_objects, yaml_text

    place = Place(args.image, args.namespace, args.service_account, args.secret)
    words = check_arguments(args, refine.run_arguments)
    objects = make_objects(args, words, place, lambda: begin(args, words))
    if objects is None:
        say(f"{args.output} is complete; nothing to do")
    elif args.scripts:
        for path in write_objects(Path(args.scripts), objects):
            say(f"{path}")
    else:
        for line in yaml_text(objects.all()).splitlines():
            result(line)
    return ExitCode.DONE


COMMAND = Command(
    name="cluster kubernetes",
    summary="print a run's steps as Indexed Jobs of Kubernetes",
    section=Section.MAKE,
    examples=EXAMPLES,
    arguments=arguments,
    run=run,
)
