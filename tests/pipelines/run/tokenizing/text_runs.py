"""Texts of two domains, with cut lines and redacted addresses; as a corpus of texts, and as one of tokens."""

import json
from pathlib import Path
from typing import Any

import yaml

from refinery.pipelines.training.train_tokenizer import TrainTokenizerParams, train_tokenizer
from tests.pipelines.inputs import corpus_bytes, run
from tests.pipelines.small_runs import OFF, text_of

NOTE = "\nSign up for our newsletter today, dear reader"  # a line that deduplication cuts
TEXTS = ["--set", "tokenizer=null", "--set", "writer=text"]
LINEAGE = {"_run.json", "manifest.json"}  # files that say what a corpus is made of, and those that list them


def documents(source: str, numbers: range) -> list[dict[str, Any]]:
    """Some have an address, some a title, most the line that is cut; two are copies, one is no text of any token."""
    found = [
        {
            "text": text_of(number) + (f" write to anna.berg{number}@old-mill-gauges.net" if number % 3 else "") + NOTE,
            "url": f"https://{source}.example/{number}",
            **({"title": f"Title, “{number}”"} if number % 2 else {}),
        }
        for number in numbers
    ]
    return [*found, {**found[0], "url": f"https://{source}.example/copy"}, {"text": ""}]


def make_text_inputs(folder: Path) -> Path:
    """Files of two sources, tokenizer.json, and recipe.yaml."""
    folder.mkdir(parents=True, exist_ok=True)
    for source, numbers in (("a", range(40)), ("b", range(35, 60))):
        lines = "".join(json.dumps(row) + "\n" for row in documents(source, numbers)) + '{"text": "broken\n'
        (folder / f"{source}.jsonl").write_text(lines)
    settings = TrainTokenizerParams(vocab_size=300, held_out=0, special_tokens=("</s>", "<s>"))
    train_tokenizer([text_of(number) for number in range(200)], str(folder / "tokenizer.json"), settings)
    recipe = {
        "name": "small",
        "sources": [
            {"name": "a", "paths": [str(folder / "a.jsonl")], "domain": "web", "meta_fields": ["title"]},
            {"name": "b", "paths": [str(folder / "b.jsonl")], "domain": "notes", "priority": 1},
        ],
        "tokenizer": {"path": str(folder / "tokenizer.json")},
        "rejects": {"rate": 1.0, "excerpt_chars": 20},
        **OFF,
        "pii": {"action": "redact"},
        "line_dup": {"max_documents": 2, "min_chars": 1},
        "columns": ["title", "pii"],
        "shards": {"validation": 0.2, "target_bytes": 2500},
    }
    (folder / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    return folder


def refine(inputs: Path, output: Path, *more: object) -> Path:
    """A run of the recipe; with TEXTS, one of texts."""
    run("refine", inputs / "recipe.yaml", "--output", output, "--workers", 0, "--quiet", *more)
    return output


def tokenize(texts: Path, inputs: Path, output: Path, *more: object, check: bool = True) -> str:
    """What the command says."""
    words = ["tokenize", texts, "--tokenizer", inputs / "tokenizer.json", "--output", output, "--workers", 0, *more]
    done = run(*words, check=check)
    return done.stdout + done.stderr


def published(prefix: Path) -> dict[str, str]:
    """Name -> sha256 of all that is published but the lineage."""
    files = corpus_bytes(prefix)
    return {name: digest for name, digest in files.items() if name not in LINEAGE and "manifests/files" not in name}
