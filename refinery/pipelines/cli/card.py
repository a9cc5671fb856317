"""`refinery card`: what a corpus is."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence

from refinery.pipelines.shell.arguments import add_push_arguments, result, say
from refinery.pipelines.shell.command import Command, Section
from refinery.pipelines.shell.exit_codes import ExitCode

EXAMPLES = """examples:
  refinery card out/web                                      prints the data card
  refinery card out/web --output out/cards                   writes all cards into a folder
  refinery card out/web --format eu-summary --about about.yaml
  refinery card gs://bucket/corpus --format croissant --format sbom --output cards
  refinery card out/web --push hub my-org/my-corpus          card, report and shards to a private data set
Cards are made of manifest.json, and of _run.json and statistics.json beside it, whose checksums it has: no shard is
read, and the same corpus gives the same bytes. What no run can know is asked for in about.yaml (docs/cards.md)."""


def arguments(parser: ArgumentParser) -> None:
    from refinery.pipelines.reports.cards.cards import CARDS, DEFAULT

    named = "; ".join(f"{name}: {each.what}" for name, each in CARDS.items())
    parser.add_argument("prefix", metavar="PREFIX", help="a finished corpus: a folder, gs://…, s3://… or https://…")
    parser.add_argument(
        "--format",
        action="append",
        default=[],
        choices=list(CARDS),
        help=f"{named}; may be repeated (all with --output, else {DEFAULT})",
    )
    parser.add_argument("--output", default="", metavar="FOLDER", help="where the files go, a folder, gs://… or s3://…")
    parser.add_argument("--overwrite", action="store_true", help="replace files that are there")
    parser.add_argument(
        "--about", default="", metavar="FILE", help="YAML: what only the publisher knows (docs/cards.md)"
    )
    add_push_arguments(parser)


def run(args: Namespace, flags: Sequence[str]) -> ExitCode:
    """Print a card, or write cards and say where they are; with --push hand the corpus on."""
    if args.push:
        return _push(args)
    if args.public:
        raise ValueError("--public: given without --push, which is needed with it")
    for line in _lines(args):
        say(line)
    return ExitCode.DONE


def _push(args: Namespace) -> ExitCode:
    from refinery.loader.errors import written_by_a_run
    from refinery.loader.storage.open_store import open_store
    from refinery.pipelines.corpus.export.push.hub_files import files_of_corpus
    from refinery.pipelines.corpus.export.push.push_hub import check_push, push_to_hub

    name = check_push(args.push)
    if args.format or args.output:
        raise ValueError("--push: given with --format or --output; it is allowed alone, or with --about and --public")
    store = open_store(args.prefix)
    with written_by_a_run(f"{args.prefix}: its small files are"):
        files = files_of_corpus(store, args.about)
    result(f"{len(files.stored):,} files are in {push_to_hub(store, files, name, args.public, say)}")
    return ExitCode.DONE


def _lines(args: Namespace) -> Iterator[str]:
    """Lines of the card that is printed, or of the files that were written. Raises ValueError for a prefix without a
    finished corpus, several cards to print, or a file that is there."""
    from refinery.loader.errors import written_by_a_run
    from refinery.loader.storage.open_store import open_store
    from refinery.pipelines.reports.cards.about import read_about
    from refinery.pipelines.reports.cards.cards import CARDS, DEFAULT
    from refinery.pipelines.reports.cards.facts import read_card_facts
    from refinery.pipelines.training.new_file import check_new, write_new

    chosen = list(dict.fromkeys(args.format)) or (list(CARDS) if args.output else [DEFAULT])
    if not args.output and len(chosen) > 1:
        raise ValueError(
            f"--format: {' and '.join(chosen)} given; one can be printed, give --output FOLDER for several"
        )
    places = {name: f"{args.output.rstrip('/')}/{CARDS[name].file}" for name in chosen}
    if args.output and not args.overwrite:
        for place in places.values():
            check_new(place)
    with written_by_a_run(f"{args.prefix}: its small files are"):
        facts = read_card_facts(open_store(args.prefix), read_about(args.about))
        made = {name: CARDS[name].write(facts) for name in chosen}
    if not args.output:
        yield from made[chosen[0]].decode().splitlines()
        return
    for name, place in places.items():
        write_new(place, made[name], args.overwrite)
        yield f"{place}: {CARDS[name].what}"


COMMAND = Command(
    name="card",
    summary="what a corpus is, from its manifest: data card, Croissant, the European summary, bill of materials",
    section=Section.HAND_ON,
    examples=EXAMPLES,
    arguments=arguments,
    run=run,
    exit_codes={
        ExitCode.DONE: "the cards are there",
        ExitCode.USAGE: "there is no finished corpus, or a file is there",
    },
)
