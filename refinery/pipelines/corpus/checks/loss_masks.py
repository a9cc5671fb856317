"""The checks of a shard's loss masks: runs that ascend inside documents, and packed rows with the same masks."""

from collections import Counter
from collections.abc import Iterator
from hashlib import blake2b

import numpy as np

from refinery.loader.format.manifest import Manifest, ShardEntry
from refinery.loader.format.packed import packed_schema, parse_rows
from refinery.loader.format.parquet.batches import bounded_table
from refinery.loader.format.parquet.guarded import GuardedFile
from refinery.loader.format.shard_files import load_index
from refinery.loader.read.trained_tokens import Bools, load_runs
from refinery.loader.storage.store import Store

Masks = Counter[tuple[bytes, bytes]]  # id and hash of the mask of each document


def check_masks(store: Store, manifest: Manifest, shard: ShardEntry) -> Iterator[str]:
    """Failures of the masks of a shard whose files are otherwise right.

    Raises FormatError for runs that cannot be. Cost: a look at every document and packed row; memory: a bit less than
    the shard's tokens.
    """
    starts, ends = load_runs(store, shard)
    index = load_index(store, shard)
    steps = np.zeros(shard.tokens + 1, np.int8)
    np.add.at(steps, starts, 1)
    np.subtract.at(steps, ends, 1)
    trained = np.cumsum(steps[:-1], dtype=np.int8).astype(np.bool_)
    offsets, lengths = index.offsets.astype(np.int64).tolist(), index.lengths.tolist()
    masks = [trained[offset : offset + length] for offset, length in zip(offsets, lengths, strict=True)]
    without = [number for number, mask in enumerate(masks) if not mask.any()]
    if without:
        yield f"{shard.provenance.path}: {len(without)} documents train no token, such as document {without[0]}"
    first = [number for number, mask in enumerate(masks) if mask[:1].any()]
    if first:
        yield f"{shard.provenance.path}: the first token of document {first[0]} is trained, which nothing predicts"
    if manifest.packed is None or not shard.packed:
        return
    with store.open(shard.provenance.path) as stream:
        ids = bounded_table(stream, store.url(shard.provenance.path), ["id"])["id"].to_pylist()
    expected: Masks = Counter((id_, _hash(mask)) for id_, mask in zip(ids, masks, strict=True))
    found = _packed_masks(store, manifest, shard)
    if wrong := sorted(id_.hex() for id_, _ in (expected - found)):
        yield f"{shard.bin.path}: {len(wrong)} documents have other loss masks in packed rows; the first: {wrong[0]}"


def _hash(mask: Bools) -> bytes:
    """Of a document's mask, which its first token has no part in."""
    return blake2b(mask[1:].tobytes(), digest_size=8).digest()


def _packed_masks(store: Store, manifest: Manifest, shard: ShardEntry) -> Masks:
    """The masks of the documents in packed rows."""
    layout, found = manifest.packed, Counter[tuple[bytes, bytes]]()
    assert layout is not None  # noqa: S101 - the caller has looked
    for entry in shard.packed:
        with store.open(entry.path) as stream:
            file = GuardedFile(stream, entry.path, packed_schema(layout))
            for group in range(file.num_row_groups):
                table = file.read_row_group(group, use_threads=False)
                rows = parse_rows(table, layout, entry.path)
                for ids, docs, loss in zip(
                    table["document_ids"].to_pylist(), rows.doc_ids, rows.loss_mask, strict=True
                ):
                    for number, id_ in enumerate(ids):
                        places = np.flatnonzero(docs == number)
                        found[id_, blake2b(loss[places[:-1]].tobytes(), digest_size=8).digest()] += 1
    return found
