"""Tokens of a shard, and whose they are: from one row group and one range of bytes."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from refinery.loader.errors import FormatError, missing_file
from refinery.loader.format.manifest import Manifest, ShardEntry
from refinery.loader.format.parquet.guarded import GuardedFile
from refinery.loader.read.corpus import Corpus
from refinery.pipelines.published.find_rows import Row

if TYPE_CHECKING:
    from refinery.transforms.tokenize.tokenizer import Tokenizer


def shard_path(shard: ShardEntry) -> str:
    """The shard's name: the path of its files without suffix."""
    return shard.name


def find_token(corpus: Corpus, shard: ShardEntry, offset: int) -> tuple[int, Row]:
    """(number, provenance row) of the document with token `offset` of the shard.

    Cost: the column of offsets in one row group, and that row. Raises ValueError for an offset that the shard does not
    have, FormatError where its provenance does not say whose it is.
    """
    if not offset < shard.tokens:
        raise ValueError(
            f"--token {shard_path(shard)}:{offset}: the shard has {shard.tokens:,} tokens, 0 to {shard.tokens - 1} "
            "are allowed"
        )
    columns = [name for name in corpus.schema.names if name != "meta"]
    path = shard.provenance.path
    with corpus.parquet(path, corpus.manifest.provenance_schema) as file:
        for first, group in _groups(file, offset):
            offsets = file.read_row_group(group, columns=["token_offset"], use_threads=False)["token_offset"].to_numpy()
            row = int(np.searchsorted(offsets, offset, "right")) - 1  # the last: those before it may have no tokens
            if row >= 0:
                found = file.read_row_group(group, columns=columns, use_threads=False).slice(row, 1).to_pylist()[0]
                if found["token_offset"] <= offset < found["token_offset"] + found["token_count"]:
                    return first + row, found
    raise FormatError(
        f"{corpus.store.url(path)}: no document has token {offset}; the corpus is damaged, run refinery verify"
    )


def _groups(file: GuardedFile, offset: int) -> Iterator[tuple[int, int]]:
    """(first row, number) of the row groups that may hold it, the last first."""
    firsts, start = [], 0
    for group in range(file.metadata.num_row_groups):
        facts = file.metadata.row_group(group)
        chunks = (facts.column(i) for i in range(facts.num_columns))
        statistics = next((c.statistics for c in chunks if c.path_in_schema == "token_offset"), None)
        if statistics is None or not statistics.has_min_max or statistics.min <= offset:
            firsts.append((start, group))
        start += facts.num_rows
    return reversed(firsts)


def read_row(corpus: Corpus, shard: ShardEntry, number: int, columns: Sequence[str] = ()) -> Row:
    """The provenance row of document `number` of the shard. columns: those of the row; all but `meta` if none is given.
    Cost: its row group."""
    columns = columns or [name for name in corpus.schema.names if name != "meta"]
    path = shard.provenance.path
    with corpus.parquet(path, corpus.manifest.provenance_schema) as file:
        for group in range(file.metadata.num_row_groups):
            rows = file.metadata.row_group(group).num_rows
            if number < rows:
                table = file.read_row_group(group, columns=columns, use_threads=False)
                row: Row = table.slice(number, 1).to_pylist()[0]
                return row
            number -= rows
    raise FormatError(
        f"{corpus.store.url(path)}: fewer rows than documents; the corpus is damaged, run refinery verify"
    )


def read_tokens(corpus: Corpus, shard: ShardEntry, start: int, stop: int) -> npt.NDArray[Any]:
    """Tokens [start, stop) of a shard, int64. Cost: their bytes. Raises FormatError where the file is missing, or
    ends before."""
    dtype = np.dtype(corpus.manifest.dtype).newbyteorder("<")
    try:
        data = corpus.store.read(shard.bin.path, start * dtype.itemsize, (stop - start) * dtype.itemsize)
    except FileNotFoundError:
        raise missing_file(corpus.store.url(shard.bin.path)) from None
    if len(data) != (stop - start) * dtype.itemsize:
        raise FormatError(
            f"{corpus.store.url(shard.bin.path)}: ends before token {stop}; the corpus is damaged, run refinery verify"
        )
    return np.frombuffer(data, dtype).astype(np.int64)


def corpus_tokenizer(corpus: Corpus) -> "Tokenizer":
    """The tokenizer in the corpus; that of a corpus with loss masks, whose control tokens count, writes their names.
    Raises ValueError or FormatError where it is damaged."""
    from refinery.transforms.tokenize.load_tokenizer import load_tokenizer_bytes
    from refinery.transforms.tokenize.stretches import WithControls, read_stretches

    path = corpus.manifest.tokenizer.path
    if corpus.manifest.written.is_masked and not path.endswith(".model"):
        return WithControls(read_stretches(corpus.read(path), path))
    return load_tokenizer_bytes(corpus.read(path), path)


def without_ends(manifest: Manifest, ids: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A document's tokens without BOS and EOS."""
    special = manifest.tokenizer
    start = int(len(ids) > 0 and ids[0] == special.bos_id)
    return ids[start : len(ids) - int(len(ids) > start and ids[-1] == special.eos_id)]
