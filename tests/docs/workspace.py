"""A folder in which the pages' snippets run: the demo's files where `make demo` leaves them, and files of one's own."""

import gzip
import json
from pathlib import Path

import pyarrow.parquet as pq
import yaml
import zstandard

from tests.docs.blocks import ROOT

TEXT = """The old railway ran along the river, and people of the valley used it for a hundred years. Every morning the
first train brought milk from the farms to the market in town. In winter the men of the station cleared the snow with
shovels before sunrise. My grandmother told me that the driver knew each child by name. When a new road was built on
the other bank, fewer passengers came, and the company closed the line. Some of us still remember the sound of the
whistle behind the mill. Last spring a group of friends began to repair the smallest bridge. They want to open a path
there, with benches made from old sleepers and a view of the water.
"""


def make_workspace(folder: Path, inputs: Path, corpus: Path) -> Path:
    """`inputs` and `corpus`: those of tests/pipelines/conftest.py; they are linked, and nobody may write into them."""
    for name, there in {
        "out/demo/input": inputs / "input",
        "out/demo/tokenizer.json": inputs / "tokenizer.json",
        "out/demo/quality.bin": inputs / "quality.bin",
        "out/demo/corpus": corpus,
        "out/web": corpus,
        "out/one-percent": corpus,
        "tokenizer.json": inputs / "tokenizer.json",
        "recipes": ROOT / "recipes",
        "examples": ROOT / "examples",
        "crawl/17.warc.gz": inputs / "input" / "crawl-00001.warc.gz",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).symlink_to(there)
    for name in ("books", "docs", "web/documents"):
        (folder / name).mkdir(parents=True)
    (folder / "docs" / "docs.jsonl").write_text(json.dumps({"text": TEXT}) + "\n")
    row = {"id": "1", "text": TEXT, "metadata": {"url": "https://a.example/1"}}
    (folder / "web" / "documents" / "a.jsonl.gz").write_bytes(gzip.compress(json.dumps(row).encode() + b"\n"))
    rows = "".join(json.dumps({"body": f"{TEXT}And {number}."}) + "\n" for number in range(3))
    (folder / "books" / "books.jsonl.zst").write_bytes(zstandard.compress(rows.encode()))
    (folder / "page.txt").write_text(TEXT)
    (folder / "gsm8k.jsonl").write_text(json.dumps({"id": "1", "question": TEXT}) + "\n")
    sources = [
        {"name": "web", "paths": [str(inputs / "input" / "crawl-0000[01].warc.gz")]},
        {"name": "code", "paths": ["out/demo/input/notes.jsonl.gz"]},
        {"name": "books", "paths": ["books/*.jsonl.zst"], "text_field": "body"},
    ]
    recipe = {"name": "mine", "sources": sources, "tokenizer": {"path": "tokenizer.json"}, "failures": {"grace": 10}}
    (folder / "my.yaml").write_text(yaml.safe_dump(recipe))
    return folder


def stand_ins(corpus: Path) -> dict[str, str]:
    """Words of the pages' commands -> what stands for them here: places, and an English page of the first file."""
    (shard,) = sorted((corpus / "train" / "web").glob("shard-00000-*.parquet"))
    pages = pq.read_table(shard).to_pylist()
    page = next(page for page in pages if "crawl-00000" in page["origin"] and page["language"] == "en")
    return {
        "PREFIX": "out/web",
        "FORMAT": "jsonl",
        "LOCATION": "out/exported",
        "https://example.com/page": page["url"],
        "https://example.org/page": page["url"],
        "crawl/a.warc.gz@1024": page["origin"],
    }
