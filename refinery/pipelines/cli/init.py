"""`refinery init`: a recipe written from what files hold."""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from refinery.pipelines.shell.arguments import progress, result, say
from refinery.pipelines.shell.command import Command, Section
from refinery.pipelines.shell.exit_codes import ExitCode

EXAMPLES = """examples:
  refinery init data/                                      writes recipe.yaml for all files below data/
  refinery init 'crawl/*.warc.gz' books/ --output my.yaml --name my-corpus
  refinery init hf://datasets/allenai/c4@main/en/ --output c4.yaml
  refinery init gs://bucket/texts/ s3://bucket/more/*.parquet
A sample is read: of each kind of file up to eight files, 100 records and 4 MiB of text of each. Nothing is run. What
cannot be read is said in a line each. docs/init.md has what the recipe says."""


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "files", nargs="+", metavar="FILES", help="files, folders, globs, gs://, s3://, hf:// or https:// addresses"
    )
    parser.add_argument("--output", default="recipe.yaml", metavar="FILE", help="the recipe (default: recipe.yaml)")
    parser.add_argument("--overwrite", action="store_true", help="replace FILE if it is there")
    parser.add_argument("--name", default="", help="name of the corpus (default: from the files)")


def run(args: Namespace, flags: Sequence[str]) -> ExitCode:
    """Write a recipe, and say what to run next."""
    from refinery.pipelines.recipe.draft.draft import draft_recipe
    from refinery.pipelines.training.new_file import check_new, write_new

    if not args.overwrite:
        check_new(args.output)
    draft = draft_recipe(args.files, args.output, args.name, progress)
    write_new(args.output, draft.text.encode(), args.overwrite)
    for problem in draft.problems:
        say(f"warning: {problem}")
    for source in draft.sources:
        say(f"source {source.name}: {', '.join(source.paths[:3])}{', …' if len(source.paths) > 3 else ''}")
    result(f"{args.output} is written; run next:")
    for line in draft.commands:
        result(f"  {line}")
    return ExitCode.DONE


COMMAND = Command(
    name="init",
    summary="a commented recipe from what files hold, and what to run next",
    section=Section.PREPARE,
    examples=EXAMPLES,
    arguments=arguments,
    run=run,
    exit_codes={
        ExitCode.DONE: "the recipe is written; warnings say what was not read",
        ExitCode.USAGE: "no file holds documents, or the recipe's file is there: nothing is written",
    },
)
