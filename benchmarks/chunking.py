"""Source files to chunks under a budget of tokens: this project beside fixed lines and LangChain, in one run.

    python -m benchmarks.chunking --input files.jsonl.gz --tokenizer tokenizer.json [--budget 4096] [--files 300]

Needs the extra [bench]. Rows have the fields path and content; files in a language that has a grammar are taken, evenly
over the input. All sides count tokens with the same tokenizer. "lines" puts whole lines together as long as the sum of
their tokens fits; "langchain" is RecursiveCharacterTextSplitter for the file's language with the tokenizer as its
length function and no overlap.

Columns: time; chunks; chunks above the budget; files that are not whole when their chunks are joined; tokens of a chunk
by budget, last ones of files left out; cuts that fall inside a function (by the syntax tree), of all cuts.
"""

import argparse
import gzip
import json
import os
import platform
import time
from collections.abc import Callable, Sequence
from datetime import date
from typing import Any, NamedTuple

from refinery.transforms.code.chunks import chunk_source
from refinery.transforms.code.languages import FUNC_BODY, LANGUAGES, language_of
from refinery.transforms.code.parse import parse
from refinery.transforms.code.units import kind_of
from refinery.transforms.tokenize.load_tokenizer import load_tokenizer

Count = Callable[[Sequence[str]], list[int]]
Split = Callable[[str, str], list[str]]
LANGCHAIN = {"c": "c", "cpp": "cpp", "python": "python", "java": "java", "javascript": "js", "typescript": "ts"}
LANGCHAIN |= {"go": "go", "rust": "rust", "tsx": "ts"}


class Row(NamedTuple):
    """What a side made of all files."""

    seconds: float
    chunks: int
    above: int
    broken: int
    fill: float
    inside: float


def read_files(path: str, most: int) -> list[tuple[str, str]]:
    """(language, text) of at most so many files, evenly over a JSONL file."""
    with gzip.open(path, "rt") if path.endswith(".gz") else open(path) as lines:
        rows = [json.loads(line) for line in lines]
    files = [(language, row["content"]) for row in rows if (language := language_of(row["path"], row["content"]))]
    return files[:: max(1, len(files) // most)]


def by_lines(text: str, count: Count, budget: int) -> list[str]:
    """Whole lines, as long as the sum of their tokens fits; a line above the budget is a chunk."""
    chunks, total = [""], 0
    lines = text.splitlines(keepends=True)
    for line, tokens in zip(lines, count(lines), strict=True):
        if chunks[-1] and total + tokens > budget:
            chunks.append("")
            total = 0
        chunks[-1] += line
        total += tokens
    return chunks


def is_inside_function(text: str, language: str, cuts: Sequence[int]) -> list[bool]:
    """For each cut (a character) whether a function's node is around it on both sides."""
    parsed = parse(text.encode(), LANGUAGES[language])
    found: list[bool] = []
    if parsed is None:
        return found
    for cut in cuts:
        place = len(text[:cut].encode())
        node = parsed.tree.root_node.descendant_for_byte_range(place, place)
        while node and not (kind_of(node, LANGUAGES[language]) == FUNC_BODY and node.start_byte < place):
            node = node.parent
        found.append(node is not None and place < node.end_byte)
    return found


def measure(split: Split, files: Sequence[tuple[str, str]], count: Count, budget: int) -> Row:
    """A side's row of the table."""
    begin = time.process_time()
    made = [split(language, text) for language, text in files]
    seconds = time.process_time() - begin
    tokens = [count(chunks) for chunks in made]
    cuts: list[bool] = []
    for (language, text), chunks in zip(files, made, strict=True):
        ends: list[int] = []
        place = 0
        for chunk in chunks[:-1]:
            place = max(place, text.find(chunk, place)) + len(chunk)
            ends.append(place)
        cuts += is_inside_function(text, language, ends)
    full = [one for each in tokens for one in each[:-1]]
    return Row(
        seconds,
        sum(map(len, made)),
        sum(one > budget for each in tokens for one in each),
        sum("".join(chunks) != text for (_, text), chunks in zip(files, made, strict=True)),
        sum(full) / max(1, len(full)) / budget,
        sum(cuts) / max(1, len(cuts)),
    )


def sides(count: Count, budget: int) -> dict[str, Split]:
    """Name -> splitter of (language, text)."""
    from langchain_text_splitters import Language, RecursiveCharacterTextSplitter

    def ours(language: str, text: str) -> list[str]:
        return [text[one.start : one.end] for one in chunk_source(text, language, count, budget).chunks]

    def langchain(language: str, text: str) -> list[str]:
        options: dict[str, Any] = {"chunk_size": budget, "chunk_overlap": 0, "length_function": lambda t: count([t])[0]}
        splitter = RecursiveCharacterTextSplitter.from_language(Language(LANGCHAIN[language]), **options)
        return list(splitter.split_text(text))

    return {"refinery": ours, "lines": lambda language, text: by_lines(text, count, budget), "langchain": langchain}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--input", required=True)
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--budget", type=int, default=4096)
    parser.add_argument("--files", type=int, default=300)
    args = parser.parse_args()
    tokenizer = load_tokenizer(args.tokenizer)

    def count(texts: Sequence[str]) -> list[int]:
        return [len(ids) for ids in tokenizer.encode_batch(texts)]

    files = read_files(args.input, args.files)
    size = sum(len(text.encode()) for _, text in files)
    print(f"{date.today()}, {platform.processor() or platform.machine()}, {os.cpu_count()} cores: ", end="")
    print(f"{len(files)} files, {size / 1e6:.1f} MB, budget {args.budget} tokens, one process\n")
    print("| | MB/s | chunks | above budget | files not whole | fill | cuts inside a function |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, split in sides(count, args.budget).items():
        row = measure(split, files, count, args.budget)
        print(
            f"| {name} | {size / row.seconds / 1e6:.2f} | {row.chunks} | {row.above} | {row.broken} "
            f"| {row.fill:.2f} | {row.inside:.1%} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
