"""The flags of `refinery card` and what it does; what it reads is imported when it runs."""

import argparse
from collections.abc import Iterator
from typing import Any, cast

from refinery.pipelines.cards.cards import CARDS, DEFAULT

CARD_EXAMPLES = """examples:
  refinery card out/web                                      prints the data card
  refinery card out/web --output out/cards                   writes all cards into a folder
  refinery card out/web --format eu-summary --about about.yaml
  refinery card gs://bucket/corpus --format croissant --format sbom --output cards
Cards are made of manifest.json, and of _run.json and statistics.json beside it, whose checksums it has: no shard is
read, and the same corpus gives the same bytes. What no run can know is asked for in about.yaml (docs/cards.md)."""


def add_card(commands: Any) -> argparse.ArgumentParser:
    """Add the command's parser to `commands`, the subparsers of the command line."""
    card = commands.add_parser(
        "card",
        help="what a corpus is, from its manifest: data card, Croissant, the European summary, bill of materials",
        epilog=CARD_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    card.add_argument("prefix", metavar="PREFIX", help="a finished corpus: a folder, gs://…, s3://… or https://…")
    named = "; ".join(f"{name}: {each.what}" for name, each in CARDS.items())
    card.add_argument(
        "--format",
        action="append",
        default=[],
        choices=list(CARDS),
        help=f"{named}; may be repeated (all with --output, else {DEFAULT})",
    )
    card.add_argument("--output", default="", metavar="FOLDER", help="where the files go, a folder, gs://… or s3://…")
    card.add_argument("--overwrite", action="store_true", help="replace files that are there")
    card.add_argument("--about", default="", metavar="FILE", help="YAML: what only the publisher knows (docs/cards.md)")
    return cast(argparse.ArgumentParser, card)


def card_command(args: argparse.Namespace) -> Iterator[str]:
    """Lines of the card that is printed, or of the files that were written. Raises ValueError for a prefix without a
    finished corpus, several cards to print, or a file that is there."""
    from refinery.loader.errors import written_by_a_run
    from refinery.loader.storage.open_store import open_store
    from refinery.pipelines.cards.about import read_about
    from refinery.pipelines.cards.facts import read_card_facts
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
