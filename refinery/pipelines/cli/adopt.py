"""`refinery adopt`: a manifest for Megatron's files."""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from refinery.pipelines.progress.flags import add_output_arguments
from refinery.pipelines.shell.arguments import result, say
from refinery.pipelines.shell.command import Command, Section
from refinery.pipelines.shell.exit_codes import ExitCode
from refinery.transforms.core.wording import many

EXAMPLES = """examples:
  refinery adopt data/web_text_document --tokenizer tokenizer.json --output data --no-bos
  refinery adopt web=data/web code=data/code.bin --tokenizer t.model --output data --validation web=data/held_out
  refinery adopt /mnt/old --tokenizer tokenizer.json --output out/old --copy
  refinery adopt gs://bucket/tokens --tokenizer gs://bucket/tokenizer.json --output gs://bucket/tokens
Every byte is read and checked; only then are the manifest and the tokenizer written. Where documents come from is not
known of such files, so `refinery trace` and `refinery export` refuse the corpus."""


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "files", nargs="+", metavar="[DOMAIN=]LOCATION", help="a .bin or .idx, the name of both, or a folder of them"
    )
    parser.add_argument("--tokenizer", required=True, metavar="FILE", help="the tokenizer that wrote the tokens")
    parser.add_argument("--output", required=True, metavar="PREFIX", help="where the manifest goes: above the files")
    parser.add_argument(
        "--validation",
        action="append",
        default=[],
        metavar="[DOMAIN=]LOCATION",
        help="files of the validation split; may be repeated",
    )
    parser.add_argument("--copy", action="store_true", help="copy files that are not below PREFIX")
    parser.add_argument("--name", default="", help="of the corpus (default: the last part of PREFIX)")
    for key, where in (("bos", "begins"), ("eos", "ends")):
        either = parser.add_mutually_exclusive_group()
        either.add_argument(
            f"--{key}", default="auto", metavar="TOKEN", help=f"{where} every document (default: the tokenizer's own)"
        )
        either.add_argument(f"--no-{key}", action="store_true", help="documents have none")
    add_output_arguments(parser)


def run(args: Namespace, flags: Sequence[str]) -> ExitCode:
    """Adopt, and say what there is now."""
    from refinery.pipelines.corpus.adopt.adopt import AdoptOptions, adopt

    found = adopt(
        AdoptOptions(
            train=args.files,
            tokenizer=args.tokenizer,
            output=args.output,
            validation=args.validation,
            bos=None if args.no_bos else args.bos,
            eos=None if args.no_eos else args.eos,
            copy=args.copy,
            name=args.name,
        ),
        say,
    )
    result(
        f"{many(found.totals['documents'], 'document')}, "
        f"{many(found.totals['tokens'], 'token')} in {args.output}; no provenance"
    )
    result(f"check it:   refinery verify {args.output}")
    return ExitCode.DONE


COMMAND = Command(
    name="adopt",
    summary="a manifest for .bin and .idx that Megatron's own tools wrote, so that the loader streams them",
    section=Section.MAKE,
    examples=EXAMPLES,
    arguments=arguments,
    run=run,
)
