"""The writer of Megatron's indexed data sets, declared."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from refinery.loader.errors import FormatError
from refinery.loader.format.indexed import DTYPE_CODES, IndexedWriter, dtype_for, read_index
from refinery.loader.format.written import MASKED, MEGATRON_FILES, WRITER
from refinery.transforms.core.stage import ShardContent, Writer


def write_indexed(paths: Mapping[str, Path], shard: ShardContent) -> None:
    """The tokens of all documents end to end, and their index. Memory: a document, and 12 bytes of each."""
    writer = IndexedWriter(paths["bin"], np.dtype(shard.dtype))
    for tokens in shard.contents():
        writer.add(np.frombuffer(tokens, shard.dtype))
    writer.close()


def read_indexed(files: Mapping[str, BinaryIO]) -> Iterator[bytes]:
    """The tokens of each document. Raises FormatError where the files do not agree."""
    index = read_index(files["idx"].read())
    for number, length in enumerate(index.lengths.tolist()):
        tokens = files["bin"].read(length * index.dtype.itemsize)
        if len(tokens) != length * index.dtype.itemsize:
            raise FormatError(f".bin: ends inside document {number}")
        yield tokens
    if files["bin"].read(1):
        raise FormatError(".bin: more tokens than its index has")


def state_tokens(tokenizer: Any, path: str) -> dict[str, Any]:
    """What manifest.json says of tokens. tokenizer: its TokenizerInfo. path: where it is published."""
    dtype = dtype_for(tokenizer.vocab_size)
    ids = {name: getattr(tokenizer, name) for name in ("vocab_size", "bos_id", "eos_id")}
    return {"dtype": dtype.name, "dtype_code": DTYPE_CODES[dtype], "tokenizer": {"path": path, **ids}}


MEGATRON = Writer(
    name=WRITER,
    version=2,
    summary="Shuffle the documents and write them as Megatron's indexed data sets, with provenance.",
    uses=("name", "shards", "packed", "columns"),
    libraries=("pyarrow",),
    files=dict(MEGATRON_FILES),
    write=write_indexed,
    read=read_indexed,
    counts_tokens=True,
    state=state_tokens,
)

# The same files. Its name says that a column of the provenance has the tokens that are trained, so a reader that does
# not know of it refuses the corpus and trains nothing by mistake.
MEGATRON_MASKED = replace(
    MEGATRON,
    name=MASKED,
    summary="Shuffle the documents and write them as Megatron's indexed data sets, with the tokens that are trained.",
)
