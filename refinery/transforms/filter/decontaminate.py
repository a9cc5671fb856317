"""Documents that hold items of benchmarks: dropped, or the items cut out of them.

An n-gram of 13 words that a document shares with an item is enough (GPT-3, Brown et al. 2020, appendix C); which
n-grams count, and how short items are found, is in ngram_index.py.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, Literal

from pydantic import Field

from refinery.transforms.core.answers import Answer
from refinery.transforms.core.document import Document, Drop
from refinery.transforms.core.params import Count, Params, Positive
from refinery.transforms.core.resources import read_list_file
from refinery.transforms.core.stage import Note, Reason, Stage
from refinery.transforms.filter.benchmarks import BenchmarkParams, Benchmarks
from refinery.transforms.filter.boilerplate import BOILERPLATE
from refinery.transforms.filter.ngram_index import NgramIndex, build_index

GPT3 = "Brown et al. 2020, appendix C"
MAX_WORD = 40  # characters that a cut is moved at most, so it leaves whole words


class DecontaminateParams(Params):
    """Which benchmarks, and what becomes of a document that holds items of them."""

    benchmarks: Annotated[tuple[BenchmarkParams, ...], Field(min_length=1)]
    """the items: files, or mappings with `path` and how to read it"""
    ngram: Annotated[int, Field(ge=8, le=32)] = 13  # GPT-3's longest
    """number of words in a row that a document and an item must share"""
    action: Literal["drop", "cut", "note"] = "drop"
    """`drop` drops the document, `cut` cuts the items out, `note` only records their number and share of the
    text"""
    max_items: Positive = 10
    """an n-gram that occurs in more items is ignored as an instruction or a licence"""
    ignore: tuple[str, ...] = ()
    """text files whose n-grams are also ignored, local, `gs://` or `s3://`; common licences and notices are
    known"""
    margin: Count = 200
    """characters on each side of an n-gram that `cut` also removes"""
    min_chars: Count = 200
    """a shorter piece between cuts is removed as well"""
    max_cuts: Positive = 10
    """a document with more cuts is dropped"""


@dataclass(frozen=True)
class Contents:
    """What `judge_contamination` needs: the table, and what benchmarks are called."""

    index: NgramIndex
    names: tuple[str, ...]

    def label(self, item: int) -> str:
        """benchmark/item."""
        return f"{self.names[self.index.benchmarks[item]]}/{self.index.names[item].as_py()}"


@lru_cache(maxsize=2)
def load_benchmarks(params: DecontaminateParams) -> Contents:
    """The table of all benchmarks, kept for this process' next job. About 5 s for a million n-grams, 15 bytes each.

    Raises ValueError, one line, for a file that cannot be read and for benchmarks without anything to look for.
    """
    try:
        ignored = [read_list_file(path).decode("utf-8-sig") for path in params.ignore]
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"ignore: a file given that cannot be read ({error})") from None
    found = Benchmarks(params.benchmarks)
    index = build_index(found.read, params.ngram, params.max_items, (*BOILERPLATE, *ignored))
    if not len(index.keys):
        raise ValueError(f"benchmarks: {len(index.names)} items given, at least one with something to find is needed")
    return Contents(index, tuple(found.names))


def benchmark_files(params: DecontaminateParams) -> tuple[str, ...]:
    """All files: their content decides the result."""
    return (*(benchmark.path for benchmark in params.benchmarks), *params.ignore)


def judge_contamination(doc: Document, contents: Contents, params: DecontaminateParams) -> Document | Drop | Answer:
    """`doc` where it shares no n-gram with an item; else, with the items found, a Drop or the text without them.

    With `action: note` every document has the number of items and the share of its characters in common n-grams (4
    digits) in its meta.

    The id stays: it names the text before the cut. Cost: about 100 MB/s, half of it where questions of symbols are
    among the items.
    """
    spans, owners = contents.index.scan(doc.text)
    if not len(owners):
        return _noted(doc, 0, 0.0) if params.action == "note" else doc
    found = tuple(dict.fromkeys(contents.label(item) for item in contents.index.found(owners)))
    if params.action == "note":
        return Answer(_noted(doc, len(found), covered(spans.tolist()) / len(doc.text)), found)
    if params.action == "drop":
        return Answer(Drop("benchmark-overlap"), found)
    text, cuts = cut_spans(doc.text, spans.tolist(), params.margin, params.min_chars)
    if cuts > params.max_cuts:
        return Answer(Drop("many-benchmark-cuts"), found)
    if not text:
        return Answer(Drop("little-beside-benchmark"), found)
    return Answer(replace(doc, text=text, meta={**doc.meta, "benchmark_cuts": cuts}), found)


def _noted(doc: Document, items: int, share: float) -> Document:
    return replace(doc, meta={**doc.meta, "benchmark_items": items, "benchmark_share": round(share, 4)})


def covered(spans: Iterable[list[int]]) -> int:
    """How many characters are in any of these spans.

    >>> covered([[5, 9], [0, 6], [20, 21]])
    10
    """
    total = at = 0
    for start, end in sorted(spans):
        total += max(0, end - max(start, at))
        at = max(at, end)
    return total


def cut_spans(text: str, spans: Iterable[list[int]], margin: int, min_chars: int) -> tuple[str, int]:
    """(`text` without these spans and `margin` characters on each side, number of cuts).

    Cuts end at whitespace, where there is any within MAX_WORD characters. Pieces of fewer than `min_chars` characters
    are left out; a blank line joins the others. Linear in the text and its spans, which are sorted.

    >>> cut_spans("one two three four five", [[8, 13]], 1, 0)
    ('one\\n\\nfive', 1)
    """
    pieces, at, cuts = [], 0, 0
    for start, end in sorted(spans):
        start, end = max(0, start - margin), min(len(text), end + margin)
        if not cuts or start > at:
            least = max(at, start - MAX_WORD)
            cut = next((i for i in range(start, least, -1) if text[i - 1].isspace()), at if least == at else start)
            pieces.append(text[at:cut])
            cuts += 1
        most = min(len(text), end + MAX_WORD)
        at = max(at, next((i for i in range(end, most) if text[i].isspace()), most if most == len(text) else end))
    pieces.append(text[at:])
    kept = [piece.strip() for piece in pieces]
    return "\n\n".join(piece for piece in kept if piece and len(piece) >= min_chars), cuts


def asked_notes(params: DecontaminateParams) -> tuple[Note, ...]:
    """What `action: note` measures."""
    if params.action != "note":
        return ()
    return (
        Note("benchmark_items", int, "items of benchmarks that were found"),
        Note("benchmark_share", float, "share of the characters in n-grams of items"),
    )


DECONTAMINATE = Stage(
    name="decontaminate",
    version=1,
    summary="Drop documents that contain items of benchmarks, or cut the items out.",
    concerns=("benchmarks",),
    params=DecontaminateParams,
    on=False,
    judge=judge_contamination,
    prepare=load_benchmarks,
    files=benchmark_files,
    notes=(Note("benchmark_cuts", int, "how often text around items of benchmarks was cut out", counts=True),),
    asked_notes=asked_notes,
    reasons=(
        Reason(
            "benchmark-overlap",
            "`ngram` words in a row match an item of a benchmark, or the text has a whole short question",
            "look at `found` in `rejects/`; list texts that are quoted everywhere in `ignore`, or use `action: cut`",
            GPT3,
        ),
        Reason(
            "many-benchmark-cuts",
            "with `action: cut`, the text would be cut in more than `max_cuts` places",
            "raise `max_cuts`",
            GPT3,
        ),
        Reason(
            "little-beside-benchmark",
            "with `action: cut`, every piece that is left has fewer than `min_chars` characters",
            "lower `min_chars` or `margin`",
            GPT3,
        ),
    ),
)
