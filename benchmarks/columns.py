"""What the columns of tokens cost: time of the encoder, bytes of the shuffle, bytes of packed rows.

    python -m benchmarks.columns --input files.jsonl.gz --tokenizer o200k_base.tiktoken llama.model [--budget 4000]

Rows have the fields path and content. Each file gets a note of its chunks under the budget, then is encoded in
turns without and with the note, `--rounds` times; the median of each side counts, and of the pairs' ratio. Files that
lose their columns are counted by reason. Bytes are those of batches of about 1 MB as they cross the shuffle, and of
Parquet files of rows of 4,096 tokens (BOS and EOS are two ids after the vocabulary).
"""

import argparse
import os
import platform
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.chunking import read_files
from refinery.loader.format.packed import PackedFormat
from refinery.transforms.code.chunk_stage import ChunkParams, load_counter
from refinery.transforms.code.chunks import chunk_source
from refinery.transforms.core.answers import Answer, answer_of
from refinery.transforms.core.document import Document, document_id
from refinery.transforms.tokenize.chunk_notes import CHUNKS, CHUNKS_OF, text_hash, write_chunks
from refinery.transforms.tokenize.encode import Encoder, TokenizerParams, encode_document, load_encoder
from refinery.transforms.write.document_batch import DocumentBatch, new_compressor
from refinery.transforms.write.packing.build_rows import PackedDocuments
from refinery.transforms.write.packing.column_files import write_columns
from refinery.transforms.write.packing.write_packed import PackedParams, packed_format, write_packed
from refinery.transforms.write.shuffle_to_shards import BATCH_BYTES


def noted(files: Sequence[tuple[str, str]], path: str, budget: int) -> tuple[list[Document], float]:
    """The files as documents with their chunks, and the seconds that chunking took."""
    count, found, start = load_counter(ChunkParams(tokenizer=path)), [], time.perf_counter()
    for number, (language, text) in enumerate(files):
        chunks = write_chunks(chunk_source(text, language, count, budget).chunks)
        meta = {CHUNKS: chunks, CHUNKS_OF: text_hash(text)}
        found.append(Document(document_id(text), text, "", "files", f"file@{number}", number, meta))
    return found, time.perf_counter() - start


def encode_all(docs: Sequence[Document], encoder: Encoder, params: TokenizerParams) -> tuple[list[Any], float]:
    """What the encoder answers, and its seconds."""
    start = time.perf_counter()
    answers = [encode_document(doc, encoder, params) for doc in docs]
    return answers, time.perf_counter() - start


def shuffle_bytes(docs: Sequence[Any], columns: bool) -> int:
    """Bytes of all batches."""
    batch, compressor = DocumentBatch(), new_compressor()
    total = 0
    for number, doc in enumerate([*docs, None]):
        if batch.size and (doc is None or batch.size >= BATCH_BYTES):
            total += len(batch.pack(compressor))
            batch = DocumentBatch()
        if doc is not None:
            batch.add(number, replace(doc, meta={}), doc.columns if columns else b"")
    return total


def row_bytes(docs: Sequence[Any], layout: PackedFormat) -> int:
    """Bytes of the files of packed rows."""
    ends = layout.bos_id, layout.pad_id
    tokens = [np.concatenate([[ends[0]], doc.tokens, [ends[1]]]) for doc in docs]
    lengths = list(map(len, tokens))
    with TemporaryDirectory() as scratch:
        structure, borders = write_columns([around(doc.columns) for doc in docs], lengths, layout, Path(scratch))
        documents = PackedDocuments(
            np.concatenate(tokens),
            np.array(lengths),
            pa.array([doc.id for doc in docs], pa.binary(16)),
            pa.array([doc.source for doc in docs]),
            structure,
            borders,
        )
        orders = np.arange(len(docs), dtype=np.uint64)
        return sum(path.stat().st_size for path, _ in write_packed(documents, orders, layout, Path(scratch)))


def around(columns: bytes) -> bytes:
    """The columns of the same document with BOS and EOS, which its first two bytes count."""
    return columns and b"\1\1" + columns[2:]


def measure(path: str, files: Sequence[tuple[str, str]], budget: int, rounds: int) -> None:
    """A tokenizer's lines of the table."""
    params = TokenizerParams(path=path, eos=None)
    docs, chunking = noted(files, path, budget)
    bare = [replace(doc, meta={}) for doc in docs]
    encoder = load_encoder(params)
    answers, _ = encode_all(docs, encoder, params)  # tables are made, caches filled
    pairs = [(encode_all(bare, encoder, params)[1], encode_all(docs, encoder, params)[1]) for _ in range(rounds)]
    lost = Counter(answer.found[0].partition("/")[0] for answer in answers if isinstance(answer, Answer))
    encoded = [answer_of(answer).result for answer in answers]
    tokens, size = sum(len(doc.tokens) for doc in encoded), sum(doc.text_bytes for doc in encoded)
    plain, with_columns = (statistics.median(side) for side in zip(*pairs, strict=True))
    ratio = statistics.median(b / a for a, b in pairs)
    print(f"\n{Path(path).name} ({encoder.tokenizer.engine}): {len(docs)} files, {size:,} bytes, {tokens:,} tokens")
    print(f"without columns: {dict(lost) or 'none'}")
    print(f"encoding {size / plain / 1e6:.1f} MB/s, with columns {size / with_columns / 1e6:.1f} MB/s: x {ratio:.2f}, "
          f"{(with_columns - plain) / tokens * 1e9:.0f} ns a token more; chunking took {chunking:.1f} s, "
          f"{chunking / plain:.0f} x the encoding")  # fmt: skip
    shuffled = [shuffle_bytes(encoded, columns) / tokens for columns in (False, True)]
    special = encoder.tokenizer.vocab_size + 2, encoder.tokenizer.vocab_size, encoder.tokenizer.vocab_size + 1
    made = [packed_format(PackedParams(), *special, columns) for columns in (False, True)]
    packed = [row_bytes(encoded, layout) / tokens for layout in made]
    print("bytes a token: " + ", ".join(
        f"{what} {before:.2f} without, {after:.2f} with"
        for what, (before, after) in (("shuffle", shuffled), ("rows in Parquet", packed))
    ))  # fmt: skip


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--input", required=True)
    parser.add_argument("--tokenizer", nargs="+", required=True)
    parser.add_argument("--budget", type=int, default=4000)
    parser.add_argument("--files", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    print(f"{date.today()}, {platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}")
    files = read_files(options.input, options.files)
    for path in options.tokenizer:
        measure(path, files, options.budget, options.rounds)


if __name__ == "__main__":
    main()
