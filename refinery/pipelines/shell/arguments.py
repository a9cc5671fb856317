"""What the commands have in common: arguments of those that read a recipe, Beam's flags, lines for the user."""

import argparse
import contextlib
import io
import os
import sys
from collections.abc import Callable, Iterable, Sequence

from refinery.pipelines.progress.flags import add_output_arguments
from refinery.pipelines.progress.output import current
from refinery.pipelines.shell.help_text import CommandParser
from refinery.transforms.core.safe_text import safe
from refinery.transforms.core.wording import meant

# Keys of a source that one-step runs take as they are, and what each is the field of.
SOURCE_FIELDS = {"text_field": "text", "url_field": "address", "id_field": "own id", "date_field": "date"}


def add_recipe_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of every command that reads the sources of a recipe."""
    parser.add_argument("recipe", help="a YAML file, see docs/recipes.md")
    parser.add_argument(
        "--input", action="append", default=[], metavar="GLOB", help="read these files instead of the recipe's sources"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="override a recipe key, e.g. near_dup.threshold=0.8",
    )
    add_runner_arguments(parser)


def add_runner_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of every command that runs Beam jobs."""
    parser.add_argument(
        "--runner", default="local", help="local (default), DirectRunner, DataflowRunner, FlinkRunner, …"
    )
    parser.add_argument(
        "--workers",
        type=counted,
        default=os.cpu_count() or 1,
        metavar="N",
        help="processes of the local runner (default: cores)",
    )
    parser.add_argument(
        "--scratch",
        default="",
        metavar="FOLDER",
        help="where the local runner writes temporary files (default: the work location of `refine` and `remove` if it "
        "is on this machine, otherwise TMPDIR)",
    )
    add_output_arguments(parser)
    parser.add_argument("--traceback", action="store_true", help="show a traceback if a job fails, not only the reason")


def take_flags(parser: argparse.ArgumentParser, *options: str) -> None:
    """Let the values of these options begin with a dash, as in --sbatch '--mem=1G'."""
    if isinstance(parser, CommandParser):
        parser.flag_options |= {*options}


def counted(text: str) -> int:
    """The value of a flag that counts something but bytes: `type=counted`."""
    return _whole(text, "count")


def sized(text: str) -> int:
    """The value of a flag that counts bytes: `type=sized`."""
    return _whole(text, "bytes")


def rate(text: str) -> float:
    """The value of a flag that is a share: 0.05 or 5%."""
    from refinery.pipelines.recipe.quantities.quantity import parse_share

    try:
        return parse_share(text) if text.rstrip().endswith("%") else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r:.80} given, a share such as 0.05 or 5% is expected") from None


def _whole(text: str, kind: str) -> int:
    from refinery.pipelines.recipe.quantities.quantity import parse_whole

    negative = text.startswith("-")  # each command says what it allows
    try:
        return -parse_whole(text[1:], kind) if negative else parse_whole(text, kind)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def add_push_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of commands that hand a corpus on to a hub."""
    parser.add_argument(
        "--push",
        nargs=2,
        metavar=("hub", "REPO"),
        help="also write it to this data set on Hugging Face's hub (HF_TOKEN)",
    )
    parser.add_argument("--public", action="store_true", help="with --push: make a new data set public, not private")


def say(line: str) -> None:
    """Tell the user how a command gets on, or print an answer's line. Not with --quiet."""
    current().say(line)


def result(line: str) -> None:
    """Tell what a command ends with, also with --quiet."""
    current().result(line)


def progress(line: str) -> None:
    """Tell how far a search is: the person who waits, not who reads the answer."""
    print(safe(line), file=sys.stderr, flush=True)


def refuse_flags(flags: Sequence[str]) -> None:
    """For commands that run no Beam job."""
    if flags:
        raise ValueError(f"unknown argument: {flags[0]}; --help lists what this command takes")


def of_no_service() -> Iterable[str]:
    """No options."""
    return ()


def check_beam_flags(
    flags: Sequence[str], own: Iterable[str] = (), of_service: Callable[[], Iterable[str]] = of_no_service
) -> None:
    """Refuse flags that neither we nor Beam know, with a suggestion: Beam itself only warns and ignores them.

    own: options of the command, one of which may have been meant. of_service: those that the engine's job service
    knows; it is asked only where a flag is none of Beam's. Cost: Beam is imported.
    """
    from apache_beam.options.pipeline_options import PipelineOptions

    beam_parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for options in PipelineOptions.__subclasses__():
        options._add_argparse_args(beam_parser)
    known = [text for action in beam_parser._actions for text in action.option_strings]
    own = list(own)
    known += own
    names = [name for flag in flags if (name := flag.split("=")[0]).startswith("-")]
    if not {*names} <= {*known}:
        known += of_service()
    for name in names:
        if name not in known:
            hint = meant(name, own, cutoff=0.8) or meant(name, [*own, *known])
            raise ValueError(f"unknown flag {name}{hint}")
    with (
        contextlib.redirect_stderr(io.StringIO()),
        contextlib.suppress(SystemExit),
    ):  # Beam reports its own errors later
        stray = [word for word in beam_parser.parse_known_args(list(flags))[1] if not word.startswith("-")]
        if stray:  # the shell expanded a pattern: all words but the first would be ignored
            raise ValueError(f"{stray[0]!r} belongs to no flag; quote a pattern: --input 'crawl/*.warc.gz'")
