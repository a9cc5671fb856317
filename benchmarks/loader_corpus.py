"""Shared by the loaders of `benchmarks/loader.py`: the shape of a batch, and a generated corpus."""

import json
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from refinery.loader.format.block_checksums import block_checksums
from refinery.loader.format.manifest import (
    DTYPE_CODES,
    KIND,
    MANIFEST,
    SUFFIXES,
    WRITER,
    IndexedWriter,
    dtype_for,
    shard_name,
    write_provenance,
)
from refinery.loader.format.publish_manifest import make_manifest
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import checksums

SEQUENCE, BATCH = 4096, 8
VOCABULARY, EOS = 100_000, 99_999  # too many ids for uint16, so tokens are int32
MEAN, SPREAD = 500, 1.0  # tokens of a document: log-normal, the mean and the logarithm's standard deviation
SEED = 1


@dataclass(frozen=True)
class Corpus:
    """A generated corpus of one shard.

    shard: its path without suffix; Megatron's files are `shard`.bin, a plain array of `dtype`, and `shard`.idx.
    """

    folder: Path
    shard: Path
    tokens: int
    documents: int
    dtype: np.dtype[Any]

    @property
    def samples(self) -> int:
        """Rows of SEQUENCE tokens, each with the token after it."""
        return (self.tokens - 1) // SEQUENCE

    @property
    def steps(self) -> int:
        """Batches of an epoch, without the last incomplete one."""
        return self.samples // BATCH

    @property
    def bin(self) -> Path:
        return self.shard.with_suffix(".bin")

    def open(self) -> npt.NDArray[Any]:
        """All tokens, in a new memory map."""
        return np.memmap(self.bin, self.dtype, "r")


Batches = Generator[Any, None, None]  # without end: dicts, or pairs of inputs and labels
Start = Callable[[int], Batches]  # of a new loader, from a step on


@dataclass(frozen=True)
class Side:
    """A loader. about: its configuration in a sentence. prepare: imports and conversion; what it returns is timed."""

    about: str
    prepare: Callable[[Corpus], Start]


def document_lengths(tokens: int) -> npt.NDArray[np.int64]:
    """Lengths of documents, 1 or more each, that add up to `tokens`; deterministic."""
    generator = np.random.default_rng(SEED)
    drawn = generator.lognormal(np.log(MEAN) - SPREAD**2 / 2, SPREAD, 2 * tokens // MEAN + 100)
    ends = np.cumsum(np.maximum(1, drawn.astype(np.int64)))
    ends = np.append(ends[ends < tokens], tokens)
    return np.diff(ends, prepend=0)


def make_corpus(folder: Path, tokens: int, vocabulary: int = VOCABULARY) -> Corpus:
    """Write a corpus of `tokens` random ids to `folder`, with an EOS after each document, unless it exists already.

    vocabulary: ids, of which the last is EOS; up to 65,500 of them are uint16, more int32. Its provenance is empty and
    it has no tokenizer, so only readers of tokens can use it. Takes about 5 s for 10^8.
    """
    lengths = document_lengths(tokens)
    name = shard_name("train", "web", 0, 1)
    dtype, eos = dtype_for(vocabulary), vocabulary - 1
    corpus = Corpus(folder, folder / name, tokens, len(lengths), dtype)
    if (folder / MANIFEST).exists():
        found = json.loads((folder / MANIFEST).read_bytes())
        there = found["totals"]["tokens"], found["tokenizer"]["vocab_size"]
        if there != (tokens, vocabulary):
            raise SystemExit(
                f"{folder}: a corpus of {there[0]} tokens of {there[1]} ids exists, {tokens} of {vocabulary} requested"
            )
        return corpus
    corpus.bin.parent.mkdir(parents=True, exist_ok=True)
    ids = np.random.default_rng([SEED, 1]).integers(0, eos, tokens, dtype)
    ends = np.cumsum(lengths)
    ids[ends - 1] = eos
    with IndexedWriter(corpus.bin, dtype) as writer:
        for document in np.split(ids, ends[:-1]):
            writer.add(document)
    write_provenance(folder / (name + SUFFIXES["provenance"]), [], ())

    paths = {key: name + suffix for key, suffix in SUFFIXES.items()}
    files = {key: {"path": path, **checksums(folder / path)._asdict()} for key, path in paths.items()}
    files["bin"]["block_crc32c"] = block_checksums(corpus.bin)  # so that the stream verifies what it reads
    shard = {"split": "train", "domain": "web", "index": 0, "count": 1, "documents": len(lengths), "tokens": tokens}
    manifest: dict[str, Any] = {
        "kind": KIND,
        "name": "benchmark",
        "lane": "web",
        "stages": [],
        "columns": [],
        "writer": WRITER,
        "fingerprint": "0" * 64,
        "dtype": dtype.name,
        "dtype_code": DTYPE_CODES[dtype],
        "tokenizer": {"path": "none", "vocab_size": vocabulary, "bos_id": None, "eos_id": eos},
        "shards": [shard | {"files": files}],
        "files": [],
        "totals": {"documents": len(lengths), "tokens": tokens, "bytes": 0},
        "funnel": [],
        "recipe": {},
        "versions": {},
    }
    make_manifest(manifest).publish(open_store(folder))
    return corpus
