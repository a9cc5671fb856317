"""Write a shard's documents once more as packed rows: `packed:` of a recipe.

The documents of a shard are packed by themselves, on the worker that writes the shard: a hash of their ids put them
there, so what is in a row does not depend on workers or bundles, and no worker ever holds more than a shard. Its last
rows are what is not full: in a shard of 16,000 rows that is nothing.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from pydantic import Field

from refinery.loader.format.block_checksums import block_checksums
from refinery.loader.format.packed import (
    FILE_DOCUMENTS,
    GROUP_TOKENS,
    MAX_LENGTH,
    STRUCTURE,
    PackedFormat,
    PackedWriter,
    packed_name,
    padding_id,
)
from refinery.loader.storage.full_disk import scratch_folder
from refinery.loader.storage.store import Store, checksums
from refinery.transforms.core.params import Params
from refinery.transforms.write.packing.build_rows import PackedDocuments, build_rows
from refinery.transforms.write.packing.plan_rows import plan_rows

# Bytes a place of a row group while it is built and written: 69 measured, for rows of 4,096 and of 65,536; with columns
# of tokens 103.
PLACE_MEMORY, PLACE_MEMORY_WITH_COLUMNS = 72, 112


class PackedParams(Params):
    """Rows of a fixed length with whole documents in them, beside the shards."""

    length: Annotated[int, Field(ge=2, le=MAX_LENGTH)] = 4096
    """tokens of a row; a longer document is cut to pieces that fit"""


def packed_format(
    params: PackedParams,
    vocab_size: int,
    bos_id: int | None,
    eos_id: int | None,
    columns: bool = False,
    masked: bool = False,
) -> PackedFormat:
    """What the rows of a corpus share. columns: whether documents may have columns for their tokens.
    masked: whether their tokens are trained by spans; such documents are never cut, and need no BOS.

    Raises ValueError where documents have no BOS, which is how rows are checked.
    """
    if bos_id is None and not masked:
        raise ValueError(
            "packed rows given, tokenizer.bos must name the token that begins every document, or be `auto`"
        )
    if eos_id == bos_id is not None:
        raise ValueError("packed rows given, tokenizer.bos and tokenizer.eos must be different tokens")
    return PackedFormat(
        params.length, vocab_size, bos_id, padding_id(bos_id, eos_id), tuple(STRUCTURE) if columns else ()
    )


def packed_memory(layout: PackedFormat) -> int:
    """Bytes that a worker needs for the rows of a shard, beside those of the shard."""
    return (PLACE_MEMORY_WITH_COLUMNS if layout.structure else PLACE_MEMORY) * GROUP_TOKENS


def write_packed(
    documents: PackedDocuments, orders: npt.NDArray[np.uint64], layout: PackedFormat, folder: Path
) -> Iterator[tuple[Path, dict[str, int]]]:
    """Each file in `folder` as it is finished, and its counts: rows, documents (with parts of cut ones) and tokens.

    orders: uint64 [documents], ascending, the corpus' order. The caller may remove a file before it takes the next.
    Cost: the plan's, and that of Parquet; memory is `packed_memory` and 60 bytes a document.
    """
    plan = plan_rows(documents.lengths, orders, layout.length, documents.borders)
    for part, (first, last) in enumerate(plan.files(FILE_DOCUMENTS)):
        path = folder / f"rows-{part:05d}.parquet"
        writer = PackedWriter(path, layout)
        tokens = 0
        for row in range(first, last, layout.group_rows):
            rows, pack_ids, columns = build_rows(documents, plan, layout, row, min(row + layout.group_rows, last))
            writer.write(rows, pack_ids, columns)
            tokens += int(rows.valid_token_count.sum())
        writer.close()
        parts = int(plan.bounds[last] - plan.bounds[first])
        yield path, {"rows": last - first, "documents": parts, "tokens": tokens}


def publish_packed(
    store: Store,
    shard: tuple[str, str, int, int],
    documents: PackedDocuments,
    orders: npt.NDArray[np.uint64],
    layout: PackedFormat,
) -> Iterator[dict[str, Any]]:
    """Write and publish a shard's packed rows, a file at a time; each as the manifest lists it.

    shard: split, domain, index, count. orders: as of `write_packed`.
    """
    split, domain, index, count = shard
    with scratch_folder(packed_name(split, domain, (index, count), 0)) as scratch:
        for part, (path, counts) in enumerate(write_packed(documents, orders, layout, scratch)):
            name = packed_name(split, domain, (index, count), part)
            facts = {"path": name, **checksums(path)._asdict(), "block_crc32c": block_checksums(path)}
            store.create(name, path)
            path.unlink()
            yield facts | counts
