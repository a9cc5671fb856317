"""`refinery export`: documents or tokens in another format."""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from refinery.pipelines.shell.arguments import add_push_arguments, add_runner_arguments, counted, result, say
from refinery.pipelines.shell.command import Command, Section
from refinery.pipelines.shell.exit_codes import ExitCode
from refinery.pipelines.shell.help_text import Suggested
from refinery.transforms.core.wording import many

EXAMPLES = """examples:
  refinery export out/web --format jsonl --output out/web-jsonl                   one .jsonl.zst for each shard
  refinery export out/web --format jsonl --single-file --compression gzip --output out/web-one
  refinery export out/web --format huggingface --output out/web-hf                Parquet and a card, for load_dataset
  refinery export out/web --format parquet --fields id,text,input_ids --output out/web-parquet
  refinery export out/web --format torch --output out/web-pt                      shards of exactly 2,500,000 tokens
  refinery export out/web --to megatron --output out/web-megatron         .bin and .idx again, of its packed rows
  refinery export out/web --format huggingface --output out/web-hf --push hub my-org/web       then to a data set
  refinery export out/web-november --format torch --append --output out/web-pt    goes on where out/web ended
  refinery export out/web-2 --format torch --rewrite --output out/web-pt          without what a takedown took out
Any flag that is not listed here goes to Beam. Interrupted? Run the same command again: it goes on where it stopped.
`refinery verify` checks an export as it does a corpus; `refinery status` tells where it stands."""


def arguments(parser: ArgumentParser) -> None:
    from refinery.pipelines.corpus.export.export_format import COMPRESSIONS
    from refinery.pipelines.corpus.export.options import DTYPES, MEGATRON, SHARD_TOKENS, format_names

    formats = Suggested((*format_names(), MEGATRON))

    parser.add_argument("prefix", metavar="PREFIX", help="a finished corpus: a folder, gs://… or s3://…")
    parser.add_argument(
        "--format",
        "--to",
        required=True,
        choices=formats,
        metavar="FORMAT",
        help=f"{', '.join(formats)}; or module:NAME, a format of your own",
    )
    parser.add_argument(
        "--output", required=True, metavar="LOCATION", help="where the export goes: a folder, gs://… or s3://…"
    )
    parser.add_argument(
        "--fields", default="", metavar="A,B", help="of a document (default: all but input_ids), such as id,url,text"
    )
    parser.add_argument("--compression", default="", choices=tuple(COMPRESSIONS), help="of jsonl (default: zstd)")
    parser.add_argument("--single-file", action="store_true", help="jsonl: one file for each split")
    parser.add_argument(
        "--shard-tokens", type=counted, default=SHARD_TOKENS, metavar="N", help=f"torch: of a shard ({SHARD_TOKENS:,})"
    )
    parser.add_argument("--dtype", default=DTYPES[0], choices=DTYPES, help=f"torch: of the tensors ({DTYPES[0]})")
    parser.add_argument("--append", action="store_true", help="torch: go on in an export of other corpora")
    parser.add_argument(
        "--rewrite", action="store_true", help="torch: take out of an export what takedowns took out of PREFIX"
    )
    parser.add_argument(
        "--work", default="", metavar="LOCATION", help="where the corpus' parts are (PREFIX/work), if they are needed"
    )
    parser.add_argument(
        "--recipe", default="", metavar="FILE", help="the corpus' recipe, if it has stages of your own and is needed"
    )
    parser.add_argument(
        "--tokenizer", default="", metavar="FILE", help="megatron: the tokenizer of Parquet that has no manifest"
    )
    for key, where in (("bos", "begins"), ("eos", "ends")):
        parser.add_argument(
            f"--no-{key}", action="store_true", help=f"megatron: no {key.upper()} {where} documents of it"
        )
    add_push_arguments(parser)
    add_runner_arguments(parser)


def runs_a_job(args: Namespace) -> bool:
    """Whether Beam runs it."""
    from refinery.pipelines.corpus.export.options import MEGATRON

    return bool(args.format != MEGATRON)


def run(args: Namespace, flags: Sequence[str]) -> ExitCode:
    """Export, and say what is there now."""
    from refinery.pipelines.corpus.export.options import MEGATRON, ExportOptions
    from refinery.pipelines.corpus.export.push.push_hub import check_push

    name = check_push(args.push)
    if args.public and not name:
        raise ValueError("--public: given without --push, which is needed with it")
    if name and args.format == MEGATRON:
        raise ValueError(f"--push: given with --to {MEGATRON}, it is for other formats; choose one")
    if args.format == MEGATRON:
        return _export_megatron(args)
    if given := [name for name in ("tokenizer", "no_bos", "no_eos") if getattr(args, name)]:
        raise ValueError(f"--{given[0].replace('_', '-')}: given with --format {args.format}, it is for {MEGATRON}")
    from refinery.pipelines.corpus.export.export import export_corpus
    from refinery.pipelines.runners.runner import Runner, launch_flags

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
    result(f"{many(totals['shards'], 'shard')}, {many(totals['tokens'], 'token')} in {args.output}")
    result(f"check it:   refinery verify {args.output}")
    if name:
        from refinery.loader.storage.open_store import open_store
        from refinery.pipelines.corpus.export.push.hub_files import files_of_export
        from refinery.pipelines.corpus.export.push.push_hub import push_to_hub

        store = open_store(args.output)
        files = files_of_export(store)
        result(f"{len(files.stored):,} files are in {push_to_hub(store, files, name, args.public, say)}")
    return ExitCode.DONE


def _export_megatron(args: Namespace) -> ExitCode:
    """Runs in this process: a shard at a time, without Beam."""
    from refinery.pipelines.corpus.adopt.megatron_export import export_megatron
    from refinery.pipelines.corpus.export.options import DTYPES, MEGATRON, SHARD_TOKENS

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
    result(f"{many(found.totals['documents'], 'document')}, {many(found.totals['tokens'], 'token')} in {args.output}")
    result(f"check it:   refinery verify {args.output}")
    return ExitCode.DONE


COMMAND = Command(
    name="export",
    summary="the documents or tokens of a corpus in another format: JSONL, Parquet, Hugging Face, PyTorch, …",
    section=Section.HAND_ON,
    examples=EXAMPLES,
    arguments=arguments,
    beam_flags=runs_a_job,
    run=run,
)
