"""`refinery export`, `status`, `shards` and `adopt` on the command line; what they do is imported when they run."""

import argparse
from collections.abc import Sequence
from typing import Any

from refinery.loader.format.manifest import SPLITS
from refinery.loader.stream.assignment import SHARDS
from refinery.pipelines.commands.arguments import (
    add_runner_arguments,
    check_beam_flags,
    refuse_flags,
    result,
    say,
)
from refinery.pipelines.export.options import COMPRESSIONS, DTYPES, FORMATS, MEGATRON, SHARD_TOKENS, ExportOptions
from refinery.pipelines.progress.flags import add_output_arguments
from refinery.pipelines.shell.exit_codes import ExitCode

EXPORT_EXAMPLES = """examples:
  refinery export out/web --format jsonl --output out/web-jsonl                   one .jsonl.zst for each shard
  refinery export out/web --format jsonl --single-file --compression gzip --output out/web-one
  refinery export out/web --format huggingface --output out/web-hf                Parquet and a card, for load_dataset
  refinery export out/web --format parquet --fields id,text,input_ids --output out/web-parquet
  refinery export out/web --format torch --output out/web-pt                      shards of exactly 2,500,000 tokens
  refinery export out/web --to megatron --output out/web-megatron         .bin and .idx again, of its packed rows
  refinery export out/web-november --format torch --append --output out/web-pt    goes on where out/web ended
  refinery export out/web-2 --format torch --rewrite --output out/web-pt          without what a takedown took out
Any flag that is not listed here goes to Beam. Interrupted? Run the same command again: it goes on where it stopped.
`refinery verify` checks an export as it does a corpus; `refinery status` tells where it stands."""

STATUS_EXAMPLES = """examples:
  refinery status out/web-pt
  refinery status gs://bucket/web-jsonl --json"""

SHARDS_EXAMPLES = """examples:
  refinery shards https://host/corpus --node node-17
  refinery shards gs://bucket/web-pt --node node-17 --count 3 --fetch shards"""


ADOPT_EXAMPLES = """examples:
  refinery adopt data/web_text_document --tokenizer tokenizer.json --output data --no-bos
  refinery adopt web=data/web code=data/code.bin --tokenizer t.model --output data --validation web=data/held_out
  refinery adopt /mnt/old --tokenizer tokenizer.json --output out/old --copy
  refinery adopt gs://bucket/tokens --tokenizer gs://bucket/tokenizer.json --output gs://bucket/tokens
Every byte is read and checked; only then are the manifest and the tokenizer written. Where documents come from is not
known of such files, so `refinery trace` and `refinery export` refuse the corpus."""


def add_export_commands(commands: Any) -> None:
    """Add the parsers of the four commands to `commands`, the subparsers of the command line."""
    export = commands.add_parser(
        "export",
        help="the documents or tokens of a corpus in another format: JSONL, Parquet, Hugging Face, PyTorch, …",
        epilog=EXPORT_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    export.add_argument("prefix", metavar="PREFIX", help="a finished corpus: a folder, gs://… or s3://…")
    export.add_argument("--format", "--to", required=True, choices=(*FORMATS, MEGATRON), help="what it is made into")
    export.add_argument(
        "--output", required=True, metavar="LOCATION", help="where the export goes: a folder, gs://… or s3://…"
    )
    export.add_argument(
        "--fields", default="", metavar="A,B", help="of a document (default: all but input_ids), such as id,url,text"
    )
    export.add_argument("--compression", default="", choices=tuple(COMPRESSIONS), help="of jsonl (default: zstd)")
    export.add_argument("--single-file", action="store_true", help="jsonl: one file for each split")
    export.add_argument(
        "--shard-tokens", type=int, default=SHARD_TOKENS, metavar="N", help=f"torch: of a shard ({SHARD_TOKENS:,})"
    )
    export.add_argument("--dtype", default=DTYPES[0], choices=DTYPES, help=f"torch: of the tensors ({DTYPES[0]})")
    export.add_argument("--append", action="store_true", help="torch: go on in an export of other corpora")
    export.add_argument(
        "--rewrite", action="store_true", help="torch: take out of an export what takedowns took out of PREFIX"
    )
    export.add_argument(
        "--work", default="", metavar="LOCATION", help="where the corpus' parts are (PREFIX/work), if they are needed"
    )
    export.add_argument(
        "--recipe", default="", metavar="FILE", help="the corpus' recipe, if it has stages of your own and is needed"
    )
    export.add_argument(
        "--tokenizer", default="", metavar="FILE", help="megatron: the tokenizer of Parquet that has no manifest"
    )
    for key, where in (("bos", "begins"), ("eos", "ends")):
        export.add_argument(
            f"--no-{key}", action="store_true", help=f"megatron: no {key.upper()} {where} documents of it"
        )
    add_runner_arguments(export)
    export.set_defaults(run=run_export)

    status = commands.add_parser("status", help="where an export stands, by source", epilog=STATUS_EXAMPLES)
    status.add_argument("location", metavar="LOCATION", help="of `refinery export`")
    status.add_argument("--json", action="store_true", help="one JSON object instead of text")
    status.set_defaults(run=run_status)

    shards = commands.add_parser(
        "shards", help="which shards of a corpus or a torch export a lone node trains on", epilog=SHARDS_EXAMPLES
    )
    shards.add_argument("location", metavar="LOCATION", help="a folder, gs://…, s3://… or https://…")
    shards.add_argument("--node", required=True, metavar="NAME", help="the node's name, the same after every restart")
    shards.add_argument("--count", type=int, default=SHARDS, metavar="N", help="the primary and the next ones")
    shards.add_argument("--split", default="train", choices=SPLITS, help="train (default) or validation")
    shards.add_argument("--fetch", default="", metavar="FOLDER", help="download these files, verified, resumable")
    shards.add_argument("--json", action="store_true", help="one JSON object per line instead of text")
    add_output_arguments(shards)
    shards.set_defaults(run=run_shards)

    _add_adopt(commands)


def _add_adopt(commands: Any) -> None:
    parser = commands.add_parser(
        "adopt",
        help="a manifest for .bin and .idx that Megatron's own tools wrote, so that the loader streams them",
        epilog=ADOPT_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
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
    parser.set_defaults(run=run_adopt)


def run_export(args: argparse.Namespace, flags: Sequence[str]) -> ExitCode:
    """Export, and say what is there now."""
    if args.format == MEGATRON:
        return _export_megatron(args, flags)
    if given := [name for name in ("tokenizer", "no_bos", "no_eos") if getattr(args, name)]:
        raise ValueError(f"--{given[0].replace('_', '-')}: given with --format {args.format}, it is for {MEGATRON}")
    from refinery.pipelines.export.export import export_corpus
    from refinery.pipelines.runners.runner import Runner, launch_flags

    check_beam_flags(flags)
    options = ExportOptions(
        format=args.format,
        fields=tuple(name.strip() for name in args.fields.split(",") if name.strip()),
        compression=args.compression,
        single_file=args.single_file,
        shard_tokens=args.shard_tokens,
        dtype=args.dtype,
    )
    full = launch_flags(args.runner, flags, args.output, f"{args.output.rstrip('/')}/_export")
    runner = Runner(args.runner, args.workers, full, args.quiet, args.traceback, say, scratch=args.scratch)
    with runner.open():
        more = args.append, args.rewrite, args.work, args.recipe, say
        found = export_corpus(args.prefix, args.output, options, runner, *more)
    totals = found["totals"]
    result(f"{totals['shards']:,} shards, {totals['tokens']:,} tokens in {args.output}")
    result(f"check it:   refinery verify {args.output}")
    return ExitCode.DONE


def _export_megatron(args: argparse.Namespace, flags: Sequence[str]) -> ExitCode:
    """Runs in this process: a shard at a time, without Beam."""
    from refinery.pipelines.adopt.megatron_export import export_megatron

    refuse_flags(flags)
    given = ("fields", "compression", "single_file", "append", "rewrite", "work", "recipe")
    names = [name for name in given if getattr(args, name)]
    names += [
        name for name, usual in (("shard_tokens", SHARD_TOKENS), ("dtype", DTYPES[0])) if vars(args)[name] != usual
    ]
    if names:
        raise ValueError(f"--{names[0].replace('_', '-')}: given with --to {MEGATRON}, it is for other formats")
    absent = args.no_bos, args.no_eos
    if any(absent) and not args.tokenizer:
        raise ValueError("--no-bos, --no-eos: given without --tokenizer; a manifest says what documents have")
    found = export_megatron(args.prefix, args.output, say, args.tokenizer, absent)
    result(f"{found.totals['documents']:,} documents, {found.totals['tokens']:,} tokens in {args.output}")
    result(f"check it:   refinery verify {args.output}")
    return ExitCode.DONE


def run_status(args: argparse.Namespace, flags: Sequence[str]) -> ExitCode:
    """Print where an export stands; 1 if it is not complete."""
    from refinery.pipelines.export.status import export_status, json_line, text_lines

    refuse_flags(flags)
    found = export_status(args.location)
    for line in [json_line(found)] if args.json else text_lines(found):
        say(line)
    return ExitCode.DONE if found.state == "complete" else ExitCode.FAILED


def run_shards(args: argparse.Namespace, flags: Sequence[str]) -> ExitCode:
    """Print a node's shards, then fetch them if that is asked for. Imports no Beam."""
    from refinery.pipelines.export.distribution import fetch_shards, json_lines, shards_of_node, text_lines

    refuse_flags(flags)
    found = shards_of_node(args.location, args.node, args.count, args.split)
    for line in json_lines(found) if args.json else text_lines(found):
        result(line)
    if args.fetch:
        fetch_shards(args.location, found, args.fetch, say)
    return ExitCode.DONE


def run_adopt(args: argparse.Namespace, flags: Sequence[str]) -> ExitCode:
    """Adopt, and say what there is now."""
    from refinery.pipelines.adopt.adopt import AdoptOptions, adopt

    refuse_flags(flags)
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
        f"{found.totals['documents']:,} documents, {found.totals['tokens']:,} tokens in {args.output}; no provenance"
    )
    result(f"check it:   refinery verify {args.output}")
    return ExitCode.DONE
