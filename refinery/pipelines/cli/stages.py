"""`refinery stages`: all stages, or a new one."""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from refinery.pipelines.shell.arguments import say
from refinery.pipelines.shell.command import Command, Section
from refinery.pipelines.shell.exit_codes import ExitCode

EXAMPLES = """examples:
  refinery stages                          all stages of the web lane (--lane code: of the lane of source code)
  refinery stages language                 one of them
  refinery stages new too-many-digits      writes too_many_digits.py, an example of a stage, and its test
  refinery stages --recipe my.yaml         includes your own stages that the recipe uses
  refinery stages --schema > recipe.schema.json     for completion and warnings in an editor"""


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "words", nargs="*", metavar="NAME | new NAME", help="only this stage; or a new one with this name"
    )
    parser.add_argument("--recipe", default="", metavar="FILE", help="include your own stages that this recipe uses")
    parser.add_argument(
        "--lane", default="", help="list the stages of this lane (default: the lane of recipes that name none)"
    )
    parser.add_argument("--folder", default=".", metavar="DIR", help="where `new` writes (default: the current folder)")
    parser.add_argument("--markdown", action="store_true", help="print a page with tables")
    parser.add_argument("--schema", action="store_true", help="print the JSON schema of the lane's recipes instead")


def run(args: Namespace, flags: Sequence[str]) -> ExitCode:
    """Print what stages there are, or write a new one."""
    from refinery.pipelines.recipe.load_recipe import load_recipe, with_target
    from refinery.pipelines.recipe.recipe import DEFAULT_LANE, find_lane, recipe_class
    from refinery.pipelines.recipe.schema import schema_text
    from refinery.pipelines.recipe.stages.listing import list_stages, new_stage
    from refinery.pipelines.recipe.stages.tables import stage_page

    if args.words[:1] == ["new"]:
        if len(args.words) != 2:
            raise ValueError("stages new: one name is needed, such as `refinery stages new too-many-digits`")
        lines = new_stage(args.words[1], args.folder)
    else:
        lane = load_recipe(args.recipe).LANE if args.recipe else with_target(find_lane(args.lane or DEFAULT_LANE))
        if len(args.words) > 1:
            raise ValueError(f"stages: {' '.join(args.words)} given, one name is allowed")
        listed = list(list_stages(lane, *args.words))
        if args.schema:
            lines = [schema_text(recipe_class(lane))]
        else:
            lines = [stage_page(lane, *args.words)] if args.markdown else listed
    for line in lines:
        say(line)
    return ExitCode.DONE


COMMAND = Command(
    name="stages",
    summary="list stages with their parameters, reasons and versions; `stages new NAME` writes an example",
    section=Section.PREPARE,
    examples=EXAMPLES,
    arguments=arguments,
    run=run,
)
