"""Which tokens are trained, by shard and row: the runs in the provenance of a corpus with loss masks."""

import io
from collections import OrderedDict
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from refinery.loader.errors import FormatError
from refinery.loader.format.entries import ShardEntry
from refinery.loader.format.parquet.batches import bounded_parquet
from refinery.loader.format.shard_files import load_index, read_file
from refinery.loader.order.arrays import I64, Batch, distinct
from refinery.loader.read.loss_runs import COLUMN, read_runs
from refinery.loader.storage.fetch import Stop
from refinery.loader.storage.store import Store

Bools = npt.NDArray[np.bool_]
Runs = tuple[I64, I64]

MAX_RUNS = 1 << 25  # of shards that are held: 16 bytes each
_SCHEMA = pa.schema([pa.field(COLUMN, pa.string())])


def load_runs(store: Store, entry: ShardEntry, stop: Stop | None = None) -> Runs:
    """(starts, ends) of the runs of trained tokens of a shard, int64 [runs] each, ascending. Raises CorruptShard for
    wrong bytes, FormatError for a file without the column, or with runs outside documents."""
    offsets = load_index(store, entry, stop).offsets.astype(np.int64, copy=False)
    path, data = entry.provenance.path, io.BytesIO(read_file(store, entry.provenance, stop))
    url = store.url(path)
    with bounded_parquet(data, url, [COLUMN], _SCHEMA) as (_, batches):
        values = [value or "" for batch in batches for value in batch.column(0).to_pylist()]
    if len(values) != entry.documents:
        raise FormatError(f"{url}: {len(values)} rows found, {entry.documents} expected from the manifest")
    return read_runs(values, np.append(offsets[: len(values)], entry.tokens), url)


class TrainedTokens:
    """Which tokens of rows are trained. load: the runs of a shard by its number; None where all tokens are."""

    def __init__(self, load: Callable[[int], Runs | None]) -> None:
        self._load = load
        self._held: OrderedDict[int, Runs | None] = OrderedDict()
        self._size = 0

    def inside(self, pieces: I64, row: int, rows: int, width: int) -> Bools:
        """bool [rows, width]: the tokens of rows `row` to `row + rows - 1` that are trained.

        pieces: of these rows, as Domain.pieces gives them. Cost: two binary searches for each piece, and passes over
        the rows.
        """
        steps = np.zeros((rows, width + 1), np.int8)
        flat = steps.reshape(-1)
        for shard in distinct(pieces[:, 1]).tolist():
            of, _, begins, sizes, places = pieces[pieces[:, 1] == shard].T
            shift = (of - row) * (width + 1) + places - begins  # from a token of the shard to its place in `flat`
            runs = self._of(shard)
            if runs is None:
                flat[begins + shift] += 1
                flat[begins + sizes + shift] -= 1
                continue
            starts, ends = runs
            first, stop = np.searchsorted(ends, begins, "right"), np.searchsorted(starts, begins + sizes)
            counts = np.maximum(stop - first, 0)
            piece = np.repeat(np.arange(len(begins)), counts)
            run = np.repeat(first - (np.cumsum(counts) - counts), counts) + np.arange(len(piece))
            np.add.at(flat, np.maximum(starts[run], begins[piece]) + shift[piece], 1)
            np.subtract.at(flat, np.minimum(ends[run], (begins + sizes)[piece]) + shift[piece], 1)
        return np.cumsum(steps[:, :-1], axis=1, dtype=np.int8).astype(np.bool_)

    def _of(self, shard: int) -> Runs | None:
        if shard not in self._held:
            runs = self._held[shard] = self._load(shard)
            self._size += 0 if runs is None else len(runs[0])
            while self._size > MAX_RUNS and len(self._held) > 1:
                gone = self._held.popitem(last=False)[1]
                self._size -= 0 if gone is None else len(gone[0])
        self._held.move_to_end(shard)
        return self._held[shard]


def cut_mask(trained: Bools, parts: int) -> Bools:
    """The mask [B, S + 1] of rows that are cut into `parts` (refinery.loader.order.subdivide)."""
    if parts == 1:
        return trained
    rows, length = trained.shape[0], (trained.shape[1] - 1) // parts
    found = np.empty((rows, parts, length + 1), np.bool_)
    found[:, :, :-1] = trained[:, :-1].reshape(rows, parts, length)
    found[:, :, -1] = trained[:, length::length]
    return found.reshape(rows * parts, length + 1)


def with_loss(batch: Batch, trained: Bools, ignore: int | None) -> Batch:
    """The batch without labels, and with no loss, where the token to be predicted is not trained. trained: of its
    tokens, bool [B, S + 1]. ignore: the label of such places, in an array of its own; None to leave labels as they
    are."""
    wanted = trained[:, 1:]
    if ignore is not None:
        batch["labels"][~wanted] = ignore
    if "loss_mask" in batch:
        batch["loss_mask"] &= wanted
    return batch


def refused(**given: object) -> None:
    """Raise ValueError for the first argument that is given and has no meaning where masks come with the data."""
    for name, value in given.items():
        if value:
            raise ValueError(
                f"{name}: given with a corpus of loss masks, which it would put out of place; leave it out"
            )
