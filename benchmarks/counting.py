"""What each value of `heuristics.counting` costs: MB of text per second of processor time, on one core.

    python -m benchmarks.counting TEXTS.jsonl.gz --every 20 --most-chars 8000

Lines have `text`. Both of Gopher's sets with the defaults, then each alone; basic, C4's and FineWeb's rules are off.
The least time of some rounds, in which the countings take turns.
"""

import argparse
import gzip
import json
import time
from collections.abc import Iterator
from functools import partial
from itertools import islice, product
from typing import Any

from refinery.transforms.core.document import Document, Drop, document_id
from refinery.transforms.filter.heuristics import judge_heuristics
from refinery.transforms.filter.heuristics_rules import HeuristicsParams

COUNTINGS = ("own", "datatrove", "dclm", "dolma")
OFF: dict[str, Any] = dict.fromkeys(("basic", "c4", "fineweb"))
SETS: dict[str, dict[str, Any]] = {"both": {}, "quality": {"repetition": None}, "repetition": {"gopher": None}}


def documents(path: str, every: int, most_chars: int) -> Iterator[Document]:
    """English documents out of every so many-th line, cut."""
    opened = gzip.open if path.endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8") as lines:
        for line in islice(lines, 0, None, every):
            text = json.loads(line)["text"][:most_chars]
            yield Document(document_id(text), text, "", "", "", 0, {"language": "en"})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts")
    parser.add_argument("--every", type=int, default=20)
    parser.add_argument("--most-chars", type=int, default=8_000)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    docs = list(documents(args.texts, args.every, args.most_chars))
    size = sum(len(doc.text.encode()) for doc in docs)
    print(f"{len(docs):,} documents, {size:,} bytes\n\ncounting    rules         MB/s   µs/document   dropped")
    cells = list(product(COUNTINGS, SETS))
    least = dict.fromkeys(cells, float("inf"))
    dropped = dict.fromkeys(cells, 0)
    for _, cell in product(range(args.rounds), cells):
        params = HeuristicsParams.model_validate({**OFF, **SETS[cell[1]], "counting": cell[0]})
        start = time.process_time()
        answers = list(map(partial(judge_heuristics, params=params), docs))
        least[cell] = min(least[cell], time.process_time() - start)
        dropped[cell] = sum(isinstance(answer, Drop) for answer in answers)
    for (counting, rules), seconds in least.items():
        cost = f"{size / seconds / 1e6:8.1f}{1e6 * seconds / len(docs):14.1f}"
        print(f"{counting:12}{rules:10}{cost}{dropped[counting, rules]:10,}")


if __name__ == "__main__":
    main()
