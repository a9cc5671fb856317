"""What reading a page's licence and rights adds to extraction.

    python -m benchmarks.page_rights GOLD… [--rounds 7] [--every N]

GOLD as for `refinery train-extractor`. Each page is extracted with and without `page_declarations`, in turns; the least
processor time of all rounds counts, of each page and way.
"""

import argparse
import time
from collections.abc import Sequence
from unittest.mock import patch

from refinery.pipelines.training.extractor.gold import read_gold
from refinery.transforms.core.document import RawDocument, Scalar
from refinery.transforms.extract import extract
from refinery.transforms.extract.page_rights.page_declarations import page_declarations


def nothing(given: str | bytes) -> dict[str, Scalar]:
    """What stands for `page_declarations` without it."""
    return {}


def seconds(raw: RawDocument, rounds: int) -> tuple[float, float]:
    """Processor time of extraction, with and without."""
    least = {page_declarations: float("inf"), nothing: float("inf")}
    for number in range(rounds):
        for way in (page_declarations, nothing)[:: 1 if number % 2 else -1]:
            with patch.object(extract, "page_declarations", way):
                start = time.process_time_ns()
                extract.extract_document(raw, extract.ExtractParams())
                least[way] = min(least[way], (time.process_time_ns() - start) / 1e9)
    return least[page_declarations], least[nothing]


def compare(contents: Sequence[bytes], rounds: int) -> str:
    """A row of Markdown."""
    both = [seconds(RawDocument(each, True, "utf-8", "", "", "", 0, {}), rounds) for each in contents]
    having, without = (sum(each) for each in zip(*both, strict=True))
    declaring = sum(bool(page_declarations(each)) for each in contents)
    size = sum(map(len, contents)) / 1e6
    cells = (f"{len(contents):,}", f"{size:,.0f} MB", f"{declaring:,}", f"{without:.3f} s", f"{having:.3f} s")
    return f"| {' | '.join(cells)} | {having / without - 1:.2%} |"


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gold", nargs="+", metavar="GOLD")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--every", type=int, default=1, help="take each N-th page")
    args = parser.parse_args()
    contents = [page.html.encode() for page in read_gold(args.gold)[:: args.every]]
    print("| pages | HTML | that declare something | without | with | added |\n| --- | --- | --- | --- | --- | --- |")
    print(compare(contents, args.rounds))


if __name__ == "__main__":
    main()
