"""`refinery remove`: a new version of a corpus without some documents."""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from refinery.pipelines.shell.arguments import add_runner_arguments, result, say
from refinery.pipelines.shell.command import Command, Section
from refinery.pipelines.shell.exit_codes import ExitCode

if TYPE_CHECKING:
    from refinery.pipelines.corpus.remove.takedown import Options
    from refinery.transforms.filter.decontaminate import DecontaminateParams

EXAMPLES = """examples:
  refinery remove out/web --urls urls.txt --output out/web-2
  refinery remove out/web --hosts hosts.txt --dry-run               says what would be removed, and writes nothing
  refinery remove out/web --documents ids.txt --no-reinstate --output out/web-2
  refinery remove out/web --source crawl --output out/web-2
  refinery remove out/code --licence GPL-3.0-only --output out/code-2
  refinery remove out/web --where "edu < 0.1 and language == 'de'" --output out/web-2
  refinery remove out/web --benchmarks gsm8k.jsonl mmlu.parquet --dry-run --report matches.jsonl
  refinery remove out/web --benchmarks my.yaml --output out/web-2   the section `decontaminate` of a recipe
Lists have one entry a line. A host includes its subdomains. Several flags remove all that any of them names.
Flags that are not listed here go to Beam. Interrupted? Run the same command again to continue where it stopped.
PREFIX stays as it is: remove it yourself when nothing reads it any more (docs/takedown.md)."""
ASKED = ("urls", "hosts", "documents", "licence", "source", "where", "benchmarks")
YAML = (".yaml", ".yml")


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("prefix", metavar="PREFIX", help="a finished corpus: a folder, gs://… or s3://…")
    parser.add_argument(
        "--urls", default="", metavar="FILE", help="addresses, in any spelling that url_dup treats as equal"
    )
    parser.add_argument("--hosts", default="", metavar="FILE", help="hosts; each includes its subdomains")
    parser.add_argument("--documents", default="", metavar="FILE", help="ids of documents, 32 hexadecimal digits each")
    parser.add_argument(
        "--licence", action="append", default=[], metavar="L", help="documents whose column `license` names it"
    )
    parser.add_argument("--source", action="append", default=[], metavar="S", help="all documents of this source")
    parser.add_argument(
        "--where",
        default="",
        metavar="EXPR",
        help="documents whose columns meet this rule, in the language of docs/labels.md",
    )
    parser.add_argument(
        "--benchmarks",
        nargs="+",
        default=[],
        metavar="FILE",
        help="documents whose text holds items of these files, or of a recipe's section `decontaminate`",
    )
    parser.add_argument(
        "--output", default="", metavar="PREFIX", help="where the new version goes: a folder, gs://… or s3://…"
    )
    parser.add_argument(
        "--copies",
        default="",
        choices=("remove", "keep"),
        help="what happens to documents with the same text as a removed one, and to those kept in favour of one "
        "(default: remove; keep if only --source, --licence or --where are given)",
    )
    parser.add_argument(
        "--no-reinstate", action="store_true", help="do not put a duplicate of a removed document in its place"
    )
    parser.add_argument("--dry-run", action="store_true", help="say what would be removed; nothing is written")
    parser.add_argument("--report", default="", metavar="FILE", help="write what was found as JSON lines, with matches")
    parser.add_argument("--work", default="", metavar="LOCATION", help="where the parts of PREFIX are (PREFIX/work)")
    parser.add_argument("--recipe", default="", metavar="FILE", help="the corpus' recipe, if it has stages of your own")
    add_runner_arguments(parser)


def run(args: Namespace, flags: Sequence[str]) -> ExitCode:
    """Make the new version, or say what it would be."""
    if not any(getattr(args, name) for name in ASKED):
        raise ValueError(f"remove: what is to go? Name {', '.join(f'--{name}' for name in ASKED[:-1])} or --benchmarks")
    if not args.output and not args.dry_run:
        raise ValueError("remove: --output names the prefix of the new version; --dry-run needs none")
    if args.dry_run and args.output:
        raise ValueError("remove: --output given with --dry-run, which writes nothing; leave one of them out")
    from refinery.pipelines.runners.forked_pool import prepare_to_fork

    prepare_to_fork("local" if args.dry_run else args.runner)
    from refinery.pipelines.corpus.remove.request import LISTS, Request, many, read_list
    from refinery.pipelines.corpus.remove.takedown import TakedownRun
    from refinery.pipelines.corpus.remove.text import done_lines, foreseen_lines, write_found
    from refinery.pipelines.runners.runner import Runner, launch_flags
    from refinery.pipelines.runners.scratch import scratch_of

    lists = {name: read_list(name, getattr(args, name)) for name in LISTS if getattr(args, name)}
    request = Request(lists, many(args.licence), many(args.source))
    local = args.dry_run  # a few documents to look for: not worth a job elsewhere, and nothing may stay there
    runner = Runner(
        "local" if local else args.runner,
        args.workers,
        tuple(flags),
        args.quiet,
        args.traceback,
        say,
        scratch=scratch_of(args.scratch, f"{args.output}/work" if args.output else ""),
    )
    run = TakedownRun(
        args.prefix, args.output, request, _options(args), runner, args.work, args.recipe, say, args.where
    )
    with runner.open():
        if args.dry_run:
            foreseen = run.foresee()
            write_found(args.report, foreseen)
            for line in foreseen_lines(run, foreseen):
                result(line)
            return ExitCode.DONE
        runner.flags = launch_flags(args.runner, flags, args.output, f"{args.output}/work")
        if args.report:
            write_found(args.report, run.foresee())
        manifest = run.run()
    for line in done_lines(run, manifest):
        result(line)
    return ExitCode.DONE


def _options(args: Namespace) -> "Options":
    from refinery.pipelines.corpus.remove.takedown import Options

    claims = args.urls or args.hosts or args.documents or args.benchmarks
    copies = args.copies or ("remove" if claims else "keep")
    return Options(copies, not args.no_reinstate, benchmarks_of(args.benchmarks) if args.benchmarks else None)


def benchmarks_of(files: Sequence[str]) -> "DecontaminateParams":
    """The section `decontaminate` of a recipe, or these files with its defaults. Raises ValueError."""
    from refinery.pipelines.recipe.load_recipe import load_recipe
    from refinery.transforms.filter.decontaminate import DECONTAMINATE, DecontaminateParams

    if not files[0].endswith(YAML):
        return DecontaminateParams(benchmarks=tuple(files))  # type: ignore[arg-type]
    if len(files) > 1:
        raise ValueError(f"--benchmarks: {files[1]!r} given beside a recipe; name one recipe, or files of benchmarks")
    recipe = load_recipe(files[0])
    found = next((params for stage, params in recipe.active("shards") if stage.name == DECONTAMINATE.name), None)
    if found is None:
        raise ValueError(
            f"--benchmarks {files[0]}: the recipe has no section `decontaminate`; name files of benchmarks"
        )
    return cast(DecontaminateParams, found)


COMMAND = Command(
    name="remove",
    summary="remove documents in a new version of a corpus: by address, host, id, licence, source, rule or benchmark",
    section=Section.MAKE,
    examples=EXAMPLES,
    arguments=arguments,
    beam_flags=True,
    run=run,
)
