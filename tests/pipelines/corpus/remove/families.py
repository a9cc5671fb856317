"""Corpora of many small families of duplicates: copies, near copies and chains of them, captures of one address, spread
over sources. Each family has words of its own, so that one corpus tries as many cases as it has families."""

import json
import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from refinery.pipelines.training.train_tokenizer import TrainTokenizerParams, train_tokenizer
from tests.pipelines.inputs import run
from tests.pipelines.small_runs import OFF

SOURCES = ("web", "books", "letters")  # by priority
SENTENCE = 6  # words
RECIPE: dict[str, Any] = {
    "name": "families",
    **OFF,
    "near_dup": {"threshold": 0.6},
    "failures": {"allow_empty": True},
    "rejects": {"rate": 1.0, "excerpt_chars": 40},
    "shards": {"validation": 0.2, "target_bytes": 1 << 30},  # one shard a domain and split, however much is left
}


@dataclass(frozen=True)
class Record:
    """A line of a source's file."""

    source: str
    url: str
    text: str
    date: str = ""

    @property
    def line(self) -> str:
        return json.dumps({"url": self.url, "text": self.text, "date": self.date})


def sentence(family: str, number: int) -> str:
    """Of words that no other sentence has."""
    return " ".join(f"{family}s{number}w{word}" for word in range(SENTENCE))


def random_family(draw: random.Random, name: str) -> list[Record]:
    """One to eight documents: each a text that is there already, or one with a few sentences more, less or others."""
    texts = [[*range(draw.randint(4, 14))]]
    fresh = 100
    records = []
    for number in range(draw.randint(1, 8)):
        sentences = list(draw.choice(texts))
        if number and draw.random() < 0.7:
            for _ in range(draw.randint(1, 3)):
                kind = draw.choice(("append", "append", "drop", "swap"))
                if kind != "append" and len(sentences) > 3:
                    sentences.pop(draw.choice((0, -1)))
                if kind != "drop":
                    sentences.append(fresh)
                    fresh += 1
        texts.append(sentences)
        same = records and draw.random() < 0.15  # another capture of an address
        url = draw.choice(records).url if same else f"https://{name}.example/{number}"
        date = f"2024-0{draw.randint(1, 9)}-01T00:00:00Z"
        words = " ".join(sentence(name, each) for each in sentences)
        records.append(Record(draw.choice(SOURCES), url, words, date))
    return records


def random_items(draw: random.Random, records: Sequence[Record]) -> list[str]:
    """Two sentences of some of the records, which others of their families have, too, or not."""
    chosen = [record.text.split() for record in records if draw.random() < 0.15]
    return [" ".join(words[-2 * SENTENCE :]) for words in chosen]


class Corpus:
    """The files of some records, and the recipe that reads them."""

    def __init__(self, folder: Path, records: Sequence[Record], items: Sequence[str] = (), **more: Any) -> None:
        """items: of a benchmark; documents that hold one are dropped, behind deduplication."""
        self.folder, self.records = folder, records
        folder.mkdir(parents=True, exist_ok=True)
        if items:
            (folder / "items.jsonl").write_text("".join(json.dumps({"text": item}) + "\n" for item in items))
            more = {**more, "decontaminate": {"benchmarks": [str(folder / "items.jsonl")], "ngram": 8}}
        self.write()
        words = [record.text for record in records[:40]]
        train_tokenizer(words, str(folder / "tokenizer.json"), TrainTokenizerParams(vocab_size=300, held_out=0))
        sources = [
            {"name": name, "paths": [str(folder / f"{name}.jsonl")], "priority": number}
            for number, name in enumerate(SOURCES)
        ]
        recipe = {**RECIPE, "sources": sources, "tokenizer": {"path": str(folder / "tokenizer.json")}, **more}
        (folder / "recipe.yaml").write_text(yaml.safe_dump(recipe))

    def number(self, source: str, origin: str) -> int:
        """The record that was read at an origin: a line's place in its file."""
        place = int(origin.rpartition("@")[2])
        for number, record in enumerate(self.records):
            if record.source == source:
                if not place:
                    return number
                place -= len(record.line) + 1
        raise ValueError(origin)

    def write(self, without: Collection[int] = ()) -> None:
        """The files without the records of these numbers: a line of blanks stands for each, so that origins stay."""
        lines: dict[str, list[str]] = {name: [] for name in SOURCES}
        for number, record in enumerate(self.records):
            lines[record.source].append(" " * len(record.line) if number in without else record.line)
        for name, every in lines.items():
            (self.folder / f"{name}.jsonl").write_text("".join(f"{line}\n" for line in every))

    def refine(self, output: Path, without: Collection[int] = ()) -> Path:
        """The corpus of all records but these."""
        self.write(without)
        try:
            run("refine", self.folder / "recipe.yaml", "--output", output, "--workers", 0)
        finally:
            self.write()
        return output
