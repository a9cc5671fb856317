"""The flags of `refinery remove` and what it says; what it needs is imported when it runs."""

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from refinery.pipelines.commands.arguments import add_runner_arguments, check_beam_flags, result, say
from refinery.pipelines.progress.words import human_bytes
from refinery.pipelines.shell.exit_codes import ExitCode
from refinery.transforms.core.safe_text import printable

if TYPE_CHECKING:
    from refinery.loader.format.manifest import Manifest
    from refinery.pipelines.takedown.takedown import Foreseen, Options, TakedownRun
    from refinery.transforms.filter.decontaminate import DecontaminateParams

REMOVE_EXAMPLES = """examples:
  refinery remove out/web --urls urls.txt --output out/web-2
  refinery remove out/web --hosts hosts.txt --dry-run               says what would go, and writes nothing
  refinery remove out/web --documents ids.txt --no-reinstate --output out/web-2
  refinery remove out/web --source crawl --output out/web-2
  refinery remove out/code --licence GPL-3.0-only --output out/code-2
  refinery remove out/web --where "edu < 0.1 and language == 'de'" --output out/web-2
  refinery remove out/web --benchmarks gsm8k.jsonl mmlu.parquet --dry-run --report matches.jsonl
  refinery remove out/web --benchmarks my.yaml --output out/web-2   the section `decontaminate` of a recipe
Lists have a line for each entry. A host covers those below it. What is asked for by several flags goes, too.
Any flag that is not listed here goes to Beam. Interrupted? Run the same command again: it goes on where it stopped.
PREFIX stays as it is: remove it yourself when nothing reads it any more (docs/takedown.md)."""
ASKED = ("urls", "hosts", "documents", "licence", "source", "where", "benchmarks")
YAML = (".yaml", ".yml")


def add_remove(commands: Any) -> None:
    """Add the command's parser to `commands`, the subparsers of the command line."""
    parser = commands.add_parser(
        "remove",
        help="a new version of a corpus without some documents: by address, host, id, licence, source, rule, benchmark",
        epilog=REMOVE_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("prefix", metavar="PREFIX", help="a finished corpus: a folder, gs://… or s3://…")
    parser.add_argument(
        "--urls", default="", metavar="FILE", help="addresses, in any spelling that url_dup takes for one"
    )
    parser.add_argument("--hosts", default="", metavar="FILE", help="hosts, each with all below it")
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
        help="texts that hold items of these files, or of a recipe's section `decontaminate`",
    )
    parser.add_argument(
        "--output", default="", metavar="PREFIX", help="where the new version goes: a folder, gs://… or s3://…"
    )
    parser.add_argument(
        "--copies",
        default="",
        choices=("remove", "keep"),
        help="what has the text of a document that goes, or stands for one (default: remove; keep with --source, "
        "--licence and --where alone)",
    )
    parser.add_argument(
        "--no-reinstate", action="store_true", help="no duplicate of what goes takes its place in the corpus"
    )
    parser.add_argument("--dry-run", action="store_true", help="say what would go; nothing is written")
    parser.add_argument("--report", default="", metavar="FILE", help="write what was found as JSON lines, with matches")
    parser.add_argument("--work", default="", metavar="LOCATION", help="where the parts of PREFIX are (PREFIX/work)")
    parser.add_argument("--recipe", default="", metavar="FILE", help="the corpus' recipe, if it has stages of your own")
    add_runner_arguments(parser)
    parser.set_defaults(run=run_remove)


def run_remove(args: argparse.Namespace, flags: Sequence[str]) -> ExitCode:
    """Make the new version, or say what it would be."""
    if not any(getattr(args, name) for name in ASKED):
        raise ValueError(f"remove: what is to go? Name {', '.join(f'--{name}' for name in ASKED[:-1])} or --benchmarks")
    if not args.output and not args.dry_run:
        raise ValueError("remove: --output names the prefix of the new version; --dry-run needs none")
    if args.dry_run and args.output:
        raise ValueError("remove: --output given with --dry-run, which writes nothing; leave one of them out")
    check_beam_flags(flags)
    from refinery.pipelines.runners.runner import Runner, launch_flags
    from refinery.pipelines.runners.scratch import scratch_of
    from refinery.pipelines.takedown.request import LISTS, Request, many, read_list
    from refinery.pipelines.takedown.takedown import TakedownRun

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
            _report(args.report, foreseen)
            for line in foreseen_lines(run, foreseen):
                result(line)
            return ExitCode.DONE
        runner.flags = launch_flags(args.runner, flags, args.output, f"{args.output}/work")
        if args.report:
            _report(args.report, run.foresee())
        manifest = run.run()
    for line in done_lines(run, manifest):
        result(line)
    return ExitCode.DONE


def _options(args: argparse.Namespace) -> "Options":
    from refinery.pipelines.takedown.takedown import Options

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


def _report(path: str, foreseen: "Foreseen") -> None:
    """A line for each document that was found: where it is, what asks for it, the text that matched."""
    if not path:
        return
    with open(path, "x", encoding="utf-8") as out:
        for row in foreseen.found.to_pylist():
            plain = {name: value.hex() if isinstance(value, bytes) else value for name, value in row.items()}
            out.write(json.dumps(plain, ensure_ascii=False) + "\n")


def foreseen_lines(run: "TakedownRun", foreseen: "Foreseen") -> Iterator[str]:
    """What would go, and what it would cost."""
    from refinery.pipelines.takedown.fates import Demoted, Lost, Moved, Reinstated, Unrepresented

    outcome, shards = foreseen.outcome, run.manifest.shards
    gone = [*foreseen.decision.gone, *outcome.demoted]
    tokens = sum(row["token_count"] for row in gone)
    yield f"{len(gone):,} documents with {tokens:,} tokens would go from {run.prefix}"
    if len(gone) == run.manifest.totals["documents"]:
        yield "these are all its documents: nothing but what comes back would be left"
    why = Counter(row["why"] for row in gone)
    yield from (f"  {count:>12,} {name}" for name, count in sorted(why.items()))
    yield from (f"  {line}" for line in benchmark_lines(foreseen.found.to_pylist()))
    if foreseen.decision.deleted:
        yield f"{len(foreseen.decision.deleted):,} more, which deduplication had removed, would go from removals/"
    names = {Reinstated: "would come back", Moved: "are duplicates of others now", Lost: "later stages would drop"}
    for kind, words in names.items():
        if count := len(outcome.of(kind)):
            yield f"{count:,} of their duplicates {words}"
    if count := len(outcome.of(Demoted)):
        yield f"{count:,} documents would be duplicates of better ones that come back"
    left = Counter(fate.why for fate in outcome.of(Unrepresented))
    yield from (f"{count:,} of their duplicates would not come back: {why}" for why, count in sorted(left.items()))
    touched = [shard for shard in shards if shard.bin.path in foreseen.changes]
    sizes = [
        sum(file.size for shard in group for file in (*shard.files, *shard.packed))
        for group in (touched, [shard for shard in shards if shard not in touched])
    ]
    yield (
        f"{len(touched):,} of {len(shards):,} shards would be rewritten ({human_bytes(sizes[0])}), the others copied "
        f"where they are ({human_bytes(sizes[1])})"
    )
    back = outcome.of(Reinstated)
    documents = run.manifest.totals["documents"] - len(gone) + len(back)
    now = run.manifest.totals["tokens"] - tokens + sum(len(fate.document.tokens) for fate in back)
    yield f"{documents:,} documents with {now:,} tokens would be left"
    if new := sum(change.before is None for change in foreseen.changes.values()):
        yield f"{new:,} shards would be new"


def benchmark_lines(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A line for each benchmark: items that were found, and documents that hold any."""
    items: dict[str, set[str]] = {}
    documents: Counter[str] = Counter()
    for row in rows:
        asked = [each.removeprefix("benchmark:") for each in row["request"].split() if each.startswith("benchmark:")]
        names = {each.partition("/")[0] for each in asked}
        documents.update(names)
        for each in asked:
            items.setdefault(each.partition("/")[0], set()).add(each)
    for name in sorted(items):
        yield f"benchmark {printable(name)}: {len(items[name]):,} items in {documents[name]:,} documents"


def done_lines(run: "TakedownRun", manifest: "Manifest") -> Iterator[str]:
    """What a takedown ends with."""
    last, totals = manifest.takedowns[-1], manifest.totals
    yield (
        f"{last.documents:,} documents with {last.tokens:,} tokens removed, {last.added_documents:,} reinstated; "
        f"{totals['documents']:,} documents, {totals['tokens']:,} tokens in {run.output}"
    )
    yield f"its proof:  {last.proof} (what went: {last.removed})"
    yield f"check it:   refinery verify {run.output}"
    old = run.corpus.root
    delete = f"gcloud storage rm --recursive {old}" if "://" in old else f"rm -r {old}"
    yield f"{run.prefix} still holds all of it, and so do its work/ and exports. When nothing reads it: {delete}"
