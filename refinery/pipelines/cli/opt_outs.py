"""`refinery opt-outs`: the table of opt-outs."""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from refinery.pipelines.shell.arguments import result
from refinery.pipelines.shell.command import Command, Section
from refinery.pipelines.shell.exit_codes import ExitCode

EXAMPLES = """examples:
  refinery opt-outs 'robotstxt/*.warc.gz' --output opt-outs.table          from a crawl's robotstxt archives
  refinery opt-outs rows.parquet more.jsonl.zst --hosts refused.txt --output opt-outs.table
A row has host (or an address on it), kind (robots.txt, ai.txt, tdmrep.json, host-list; left out where the address
names the file), fetched_at, status and body; docs/rights.md says how to collect them. Then, in the recipe:
`opt_out: {tables: [opt-outs.table], as_of: 2026-11-23}`."""


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "rows", nargs="*", metavar="FILE", help="rows as JSONL, Parquet, CSV or TSV, or WARC; files, globs or folders"
    )
    parser.add_argument(
        "--hosts",
        action="append",
        default=[],
        metavar="FILE",
        help="a list of hosts, one a line; they count at any date",
    )
    parser.add_argument(
        "--output", required=True, metavar="FILE", help="where the table goes: a file, gs://… or s3://…"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace the file if it exists")


def run(args: Namespace, flags: Sequence[str]) -> ExitCode:
    """Make the table and say what it was made of. FAILED where rows were left out and none is in the table."""
    from refinery.pipelines.training.new_file import check_new, split, write_new
    from refinery.transforms.rights.build_table import Built, build_table
    from refinery.transforms.rights.rule_rows import EPOCH, read_rows

    if not (args.rows or args.hosts):
        raise ValueError("rows: none given, files of rows or --hosts are needed")
    if not args.overwrite:
        check_new(args.output)
    above = None if "://" in args.output else Path(split(args.output)[0])
    if above is not None:
        above.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".opt-outs-", dir=above) as folder:
        target = Path(folder) / "table"
        built: Built = build_table(read_rows(args.rows, args.hosts), target)
        write_new(args.output, target, args.overwrite)
    for line in lines_of(built, str(EPOCH + timedelta(days=built.newest)) if built.newest else ""):
        result(line)
    return ExitCode.DONE


def lines_of(built: Any, newest: str) -> Sequence[str]:
    """What to say of a table."""
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(built.rows.items()))
    lines = [f"{built.rows.total():,} rows taken: {kinds}"]
    if built.problems:
        why = ", ".join(f"{count:,} {name}" for name, count in built.problems.most_common())
        lines.append(f"{built.problems.total():,} rows left out: {why} (docs/rights.md says what each means)")
    if built.overruled:
        lines.append(f"{built.overruled:,} rows of a host and day that another row of that day speaks for")
    changes = f"{built.entries:,} dated changes of hosts' files, {built.texts:,} different files"
    return [*lines, f"{changes}{f', the newest of {newest}' if newest else ''}"]


COMMAND = Command(
    name="opt-outs",
    summary="make the table of the stage `opt-out` from dated robots.txt, ai.txt and tdmrep.json files of hosts",
    section=Section.PREPARE,
    examples=EXAMPLES,
    arguments=arguments,
    run=run,
)
