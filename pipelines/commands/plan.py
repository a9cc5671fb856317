"""`refinery plan` on the command line; what it computes is imported when it runs."""

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from refinery.pipelines.commands.arguments import refuse_flags, say

PLAN_EXAMPLES = """examples:
  refinery plan                                                     the reference case
  refinery plan --tokens 1T --preset strict --pass-days 7 --gpus 256 --train-days 20
  refinery plan --tokens 1T --retention quality=0.2 --retention language=0.35 --hosts 100
  refinery plan --from out/one-percent --share 1%                   what the whole will take, with an interval
  refinery plan --from out/one-percent --share 1% --html plan.html  the same as a page with sliders
Numbers may end in k, M, G, T, P or E (decimal) and B. docs/planning.md says what is computed and what is assumed.
exit code 0: computed; 2: an input is impossible, or there is no corpus to measure."""

RETENTIONS = "retentions"


def add_plan(commands: Any) -> None:
    """Add the command's parser to `commands`, the subparsers of the command line. Its flags are the planner's inputs."""
    plan = commands.add_parser(
        "plan",
        help="what a corpus will take: raw bytes, cores, hosts, days, cost, and the loader's tokens per second",
        epilog=PLAN_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    plan.set_defaults(run=run_plan)
    source = plan.add_argument_group("retentions").add_mutually_exclusive_group()
    source.add_argument("--preset", default="", metavar="NAME", help="reference (default), lazy or strict")
    source.add_argument("--from", default="", dest="prefix", metavar="PREFIX", help="measured by a finished run")
    plan.add_argument(
        "--retention",
        action="append",
        default=[],
        metavar="STAGE=SHARE",
        help="what a stage keeps of the bytes that enter it, in place of the preset's; may be repeated",
    )
    plan.add_argument("--share", default="", metavar="SHARE", help="with --from: how much of the whole it read, e.g. 1%%")
    plan.add_argument("--hosts", default="", metavar="N", help="hosts that there are: the days follow from them")
    plan.add_argument("--html", default="", metavar="FILE", help="write the plan as a page that computes, for offline use")
    plan.add_argument("--json", action="store_true", help="one JSON object of every quantity instead of text")
    for name, meaning in FLAGS.items():
        plan.add_argument(f"--{name}", default="", metavar="N", help=meaning)
