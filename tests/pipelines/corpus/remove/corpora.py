"""A corpus with a file for each document, so that leaving one out changes nothing of the others' origins."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import yaml

from refinery.pipelines.training.train_tokenizer import TrainTokenizerParams, train_tokenizer
from tests.pipelines.inputs import run
from tests.pipelines.small_runs import OFF

WORDS = [f"word{number}" for number in range(400)]
RECIPE: dict[str, Any] = {
    "name": "taken",
    **OFF,
    "near_dup": {"threshold": 0.6, "bands": 28, "rows": 4},
    "pii": {},
    "columns": ["pii"],
    "failures": {"allow_empty": True},  # all of the source notes are duplicates
    "rejects": {"rate": 1.0, "excerpt_chars": 40},
    "shards": {"validation": 0.2, "target_bytes": 6000},
}


def text(start: int, words: int = 60, end: str = "") -> str:
    """Texts of another start share nothing."""
    return " ".join([*(WORDS[(start * 7 + k) % len(WORDS)] + f"x{start}" for k in range(words)), end]).strip()


SOURCES = ("news", "web", "books", "letters", "notes")  # by priority
LONG, LONG_WORDS = "https://letters.example/long", 740
# url -> (source, text). a1 is kept, a2 is nearly the same, a3 nearly the same as a2, b2 the same text as b1, and so on.
PAGES: Mapping[str, tuple[str, str]] = {
    "https://a.example/1": ("web", text(1, 60, "the longest of them all")),
    "https://a.example/2": ("web", text(1, 60, "of them")),
    "https://mirror.example/a": ("web", text(1, 60)),
    "https://b.example/1": ("news", text(2)),
    "https://news.example/9": ("news", text(9)),
    "https://b.example/copy": ("web", text(2)),
    "https://other.example/b": ("books", text(2)),
    "https://c.example/1": ("web", text(3, 60, "here and there")),
    "https://c.example/near": ("books", text(3, 60, "here")),
    "https://sub.c.example/x": ("web", text(4)),
    LONG: ("letters", text(50, LONG_WORDS)),  # alone in its domain, which is cut into two shards
    "https://letters.example/25": ("letters", text(25, 37, "dear reader")),  # it would be in the other one
    "https://notes.example/26": ("notes", text(26, 38, "write to ann@notes.org")),  # nothing else is in its domain
    **{f"https://site{n}.example/{n}": ("web" if n % 3 else "books", text(n, 30 + n % 9)) for n in range(10, 40)},
}

# What two takedowns ask for, one after the other.
FIRST = ["https://a.example/1", "https://site10.example/10", "https://site23.example/23", "https://site25.example/25"]
SECOND = [
    "https://site31.example/31",
    "https://mirror.example/a",
    "https://sub.c.example/x",
    "https://site26.example/26",
]


def make_inputs(folder: Path, without: Iterable[str] = ()) -> Path:
    """A file for each page but those of these addresses, a tokenizer that knows all, recipe.yaml."""
    for number, (url, (source, words)) in enumerate(PAGES.items()):
        if url not in without:
            path = folder / source / f"{number:03d}.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({"url": url, "text": words}) + "\n")
    return folder


def write_recipe(folder: Path, inputs: Path, tokenizer: Path | None, **more: Any) -> Path:
    """The recipe of these inputs. Origins name the folder, so it has to be the same for corpora that are compared."""
    sources = [
        {"name": name, "paths": [str(inputs / name / "*.jsonl")], "priority": number}
        for number, name in enumerate(SOURCES)
    ]
    recipe = {**RECIPE, "sources": sources, "tokenizer": tokenizer and {"path": str(tokenizer)}, **more}
    path = folder / "recipe.yaml"
    path.write_text(yaml.safe_dump(recipe))
    return path


def make_tokenizer(path: Path) -> Path:
    """Of all texts."""
    texts = [words for _, words in PAGES.values()]
    train_tokenizer(texts, str(path), TrainTokenizerParams(vocab_size=400, held_out=0))
    return path


def remove(prefix: object, output: object, *more: object, **options: Any) -> Any:
    """`refinery remove` inside the process."""
    return run("remove", prefix, "--output", output, "--workers", 0, *more, **options)


def rows(prefix: Path, columns: Iterable[str] = ("id", "url", "source", "copies", "sources")) -> list[dict[str, Any]]:
    """Provenance of all documents."""
    files = sorted((prefix / split) for split in ("train", "validation"))
    paths = [path for folder in files for path in sorted(folder.rglob("*.provenance.parquet"))]
    return [row for path in paths for row in pq.read_table(path, columns=list(columns)).to_pylist()]


def removed_rows(prefix: Path) -> list[dict[str, Any]]:
    """Rows of removals/."""
    return [row for path in sorted((prefix / "removals").glob("*")) for row in pq.read_table(path).to_pylist()]


def write_list(path: Path, lines: Iterable[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines))
    return path
