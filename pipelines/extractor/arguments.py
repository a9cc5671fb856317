"""The command train-extractor: the weights of the engine `blocks` from pages whose main text is known."""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any


@dataclass(frozen=True)
class Tools:
    """What commands share: refuse flags of Beam, look whether a file may be made, make it, speak unless quiet."""

    refuse_flags: Callable[[Sequence[str]], None]
    check_new: Callable[[str], None]
    write_new: Callable[[str, bytes, bool], None]
    say_unless: Callable[[bool, str], None]


def add_train_extractor(commands: Any, tools: Tools) -> None:
    """Add train-extractor to argparse's commands."""
    extractor = commands.add_parser("train-extractor", help="train the page extractor on pages with their main text")
    extractor.add_argument(
        "gold", nargs="+", metavar="GOLD", help="JSON lines with html and main text, or such without and their WARC"
    )
    extractor.add_argument("--output", required=True, metavar="FILE", help="the weights to write (.npy)")
    extractor.add_argument("--folds", type=int, default=5, help="of the cross-validation by domain; 0: none")
    extractor.add_argument("--trees", type=int, default=120)
    extractor.add_argument("--seed", type=int, default=1)
    extractor.add_argument("--overwrite", action="store_true", help="replace FILE if it is there")
    extractor.add_argument("--quiet", action="store_true", help="no figures")
    extractor.set_defaults(run=partial(run_train_extractor, tools))


def run_train_extractor(tools: Tools, args: argparse.Namespace, flags: Sequence[str]) -> int:
    """Train, measure and write. The output is looked at before anything is read."""
    from refinery.pipelines.extractor.boosting import BoostingParams
    from refinery.pipelines.extractor.train import train_extractor

    tools.refuse_flags(flags)
    if not args.overwrite:
        tools.check_new(args.output)
    params = BoostingParams(seed=args.seed, trees=args.trees)
    data = train_extractor(args.gold, params, args.folds, lambda line: tools.say_unless(args.quiet, line))
    tools.write_new(args.output, data, args.overwrite)
    tools.say_unless(args.quiet, f"{args.output}: {params.trees} trees, {len(data):,} bytes")
    return 0
