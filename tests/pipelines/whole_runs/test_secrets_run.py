"""Canaries: made-up secrets in texts, addresses and meta of documents with every end. No file of a run has one."""

import gzip
import io
import json
import random
import string
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest
import yaml

from refinery.loader.read.corpus import Corpus
from refinery.pipelines.corpus.trace.answers import Query, Rejected, Trace
from refinery.pipelines.corpus.trace.trace_documents import trace
from refinery.pipelines.corpus.trace.trace_text import text_lines
from refinery.transforms.tokenize.load_tokenizer import load_tokenizer
from tests.pipelines.inputs import run
from tests.pipelines.small_runs import OFF, folder_files, make_small_inputs
from tests.sampling import FILE_ON_ONE_COMMIT_IN_FOUR

pytestmark = FILE_ON_ONE_COMMIT_IN_FOUR

# Where a document ends. Each has canaries in its text, its address and its meta.
ENDS = ("kept", "copy", "url", "heuristics", "toxicity", "dead", "pii", "read", "extract", "secrets")
EARLY = ("read", "extract", "secrets")  # dropped before the stage of secrets has redacted them, or by it
BROKEN = '''"""A stage that fails, with the text in its message."""

from refinery.transforms.core.document import Document
from refinery.transforms.core.params import Params
from refinery.transforms.core.stage import Stage


class BrokenParams(Params):
    """Nothing."""


def judge(doc: Document, params: BrokenParams) -> Document:
    """Raises ValueError for a document of which it says so."""
    if "to fail" in doc.text:
        raise ValueError(doc.text + doc.url + str(dict(doc.meta)))
    return doc


BROKEN = Stage(name="broken", version=1, summary="Fail.", params=BrokenParams, judge=judge)
'''


def canary(name: str) -> str:
    letters = string.ascii_letters + string.digits
    return "Q7z" + "".join(random.Random(name).choices(letters, k=33))


def sentences(end: str) -> str:
    """Prose that the stages keep, but for what its end asks."""
    words = {
        "toxicity": "The " + "swine " * 9 + "came home.",
        "heuristics": "The old page was nothing but lorem ipsum.",
        "dead": "This page is made to fail in its stage.",
        "pii": "Questions go to the address a@b.example in the town.",
    }
    number = ENDS.index("kept" if end == "copy" else end)
    nouns = [("river", "town"), ("market", "garden"), ("letter", "bridge"), ("forest", "window"), ("road", "hill")]
    first, second = nouns[number % len(nouns)]
    lines = [
        f"The {first} that runs by the {second} was seen from {i} houses of the village {number}." for i in range(9)
    ]
    return "\n".join([words.get(end, ""), *lines]).strip()


def document(end: str) -> dict[str, str]:
    name = "kept" if end == "copy" else end
    bare, token, password = (canary(kind + name) for kind in ("bare", "text", "pw"))
    text = f"{sentences(end)}\nThe old key was {bare} here.\nThen they set api_key = {bare} in it.\n"
    text += f"The token ghp_{token} was on the back of the map.\nIt says password: {password} too."
    text = {"read": "", "extract": f"Here: ghp_{token}", "secrets": text + f" ghp_{token}" * 60}.get(end, text)
    host = "spamfarm.example" if end == "url" else f"{end}.example"
    return {
        "text": text,
        "url": f"https://user:{canary('user' + end)}@{host}/page?access_token={canary('url' + end)}"
        + (f"&mail={canary('mail' + end)}@{host}&c={canary('mail' + end)}%40{host}" if end in EARLY else ""),
        "title": f"secret={canary('meta' + end)}",
    }


def canaries() -> list[str]:
    return [canary(kind + end) for end in ENDS for kind in ("bare", "text", "pw", "user", "url", "meta", "mail")]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A finished run, and everything that it printed."""
    folder = make_small_inputs(tmp_path_factory.mktemp("canaries"))
    (folder / "broken_stage.py").write_text(BROKEN)
    lines = [json.dumps(document(end)) for end in ENDS]
    (folder / "c.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    recipe = yaml.safe_load((folder / "recipe.yaml").read_text())
    recipe |= {
        "sources": [
            {
                "name": "s",
                "paths": [str(folder / "c.jsonl.gz")],
                "text_field": "text",
                "url_field": "url",
                "meta_fields": ["title"],
            }
        ],
        **OFF,
        "secrets": {"max_secrets": 50},
        "extract": {"min_chars": 100},
        "rejects": {"rate": 1.0, "excerpt_chars": 2000},
        "url": {"blocked_domains": ["spamfarm.example"]},
        "heuristics": dict.fromkeys(("basic", "gopher", "repetition", "fineweb"), False),
        "toxicity": {"words": ["swine"]},
        "pii": {"action": "drop"},
        "failures": {"max_ratio": 1.0},
        "stages": [{"use": "broken_stage:BROKEN", "after": "heuristics"}],
    }
    (folder / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    done = run("refine", folder / "recipe.yaml", "--workers", 0, "--output", folder / "out", "--traceback")
    said = done.stdout + done.stderr
    for row in pq.read_table(folder / "out" / "rejects").to_pylist():
        traced = run("trace", folder / "out", "--origin", row["origin"])
        said += traced.stdout + traced.stderr
    said += run("inspect", folder / "out").stdout + run("inspect", folder / "out", "--json").stdout
    return folder / "out", said


def tables(data: bytes) -> Iterator[str]:
    """What a file says once it is decoded, as text: Parquet, Arrow, anything else as it is."""
    if data.startswith(b"PAR1"):
        yield str(pq.read_table(io.BytesIO(data)).to_pylist())
    elif data.startswith(b"ARROW1"):
        yield str(pyarrow.ipc.open_file(io.BytesIO(data)).read_all().to_pylist())
    elif data.startswith(b"\x28\xb5\x2f\xfd"):
        yield pa.CompressedInputStream(io.BytesIO(data), "zstd").read().decode("latin-1")
    yield data.decode("latin-1")


def test_every_end_was_met(corpus: tuple[Path, str]) -> None:
    prefix, _ = corpus
    rejects = {row["stage"] for row in pq.read_table(prefix / "rejects").to_pylist()}
    assert rejects == {*EARLY, "url", "heuristics", "toxicity", "pii"}
    assert {row["stage"] for row in pq.read_table(prefix / "dead_letters").to_pylist()} == {"broken"}
    assert len(pq.read_table(prefix / "removals").to_pylist()) == 1


def test_no_canary_is_in_any_file(corpus: tuple[Path, str]) -> None:
    prefix, said = corpus
    for name, data in folder_files(prefix).items():
        for text in tables(data):
            assert not [secret for secret in canaries() if secret in text], name
    assert not [secret for secret in canaries() if secret in said]
    excerpts = {row["stage"]: row["excerpt"] for row in pq.read_table(prefix / "rejects").to_pylist()}
    quoted = ("url", "heuristics", "toxicity")
    assert all("API_KEY_REDACTED" in excerpts.pop(stage) for stage in quoted)
    assert set(excerpts.values()) == {""}  # of what is dropped before it is clean, or for what it says


def test_pages_are_traced_by_their_addresses(corpus: tuple[Path, str]) -> None:
    """As the crawl has them, though rejects/ does not."""
    prefix, _ = corpus
    queries = [Query("url", document(end)["url"]) for end in ENDS if end not in ("kept", "copy", "dead")]
    found = trace(str(prefix), queries)
    assert [answer.stage for _, answer in found.answers if isinstance(answer, Rejected)] == [
        *("url", "heuristics", "toxicity", "pii", "read", "extract", "secrets")
    ]
    said = "\n".join(text_lines(Trace(tuple((Query("origin", "x"), answer) for _, answer in found.answers), {}, ())))
    assert not [secret for secret in canaries() if secret in said]


def test_no_canary_is_in_the_tokens(corpus: tuple[Path, str]) -> None:
    prefix, _ = corpus
    tokenizer = load_tokenizer(str(prefix / "tokenizer" / "tokenizer.json"))
    shards = [shard for split in ("train", "validation") for shard in Corpus(str(prefix)).shards(split)]
    texts = [tokenizer.decode(shard[i][:-1].tolist()) for shard in shards for i in range(len(shard.provenance()))]
    assert len(texts) == 1
    assert texts[0].count("API_KEY_REDACTED") == 4
    assert not [secret for secret in canaries() if secret in texts[0]]


def test_the_canaries_would_be_seen(tmp_path: Path) -> None:
    """The search itself finds a canary in each kind of file."""
    table = pa.table({"text": ["x" * 100 + canary("bare" + "kept")] * 9})
    pq.write_table(table, tmp_path / "a.parquet", compression="zstd")
    with pa.ipc.new_file(
        tmp_path / "b.arrow", table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")
    ) as file:
        file.write_table(table)
    for name, data in folder_files(tmp_path).items():
        assert any(canary("bare" + "kept") in text for text in tables(data)), name
    assert sys.flags.optimize == 0
