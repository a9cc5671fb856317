"""A source's target: at most so many tokens of it in the corpus, and the same documents on every run.

Every id has a slice, one of 65,536, by its hash. Tokens are summed by source and slice where documents are encoded;
a source keeps its first slices, as many as its target allows. So what is kept is a sample of the source by hash, does
not depend on workers, bundles or other sources, stays below the target by less than a slice, and is part of what a
larger target keeps. What is cut crosses the shuffle and is dropped where shards are written, since only then all
tokens of the source are known.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from refinery.transforms.core.counters import Counters
from refinery.transforms.core.document import hash64
from refinery.transforms.core.names import OVER_TARGET, TARGET_STAGE
from refinery.transforms.core.params import Params
from refinery.transforms.core.stage import Reason, Stage
from refinery.transforms.statistics.dropped import Dropped, Example, Least, dropped_hash
from refinery.transforms.write.document_batch import read_batches

SLICES = 1 << 16
BYTES_PER_TOKEN = 4  # of text, about: how large the shards of a source with a target are expected to become

TARGET: Stage[Params] = Stage(
    name=TARGET_STAGE,
    version=1,
    summary="Keep a sample of a source's documents, of at most `target` tokens.",
    reasons=(
        Reason(
            OVER_TARGET,
            "the source has more tokens than its `target`; never in `rejects/`",
            "nothing; read less of the source (`max_files`, `sample`) if most of it is cut",
        ),
    ),
)


def slice_of(id_: bytes) -> int:
    """The slice of an id, 0 to SLICES - 1."""
    return hash64("target", id_) >> 48


def first_cut(sums: npt.NDArray[np.int64], target: int) -> int:
    """How many slices, from the first on, hold at most `target` tokens together. sums: tokens of each slice."""
    return int(np.searchsorted(np.cumsum(sums), target, side="right"))


def cut_tables(
    tables: Iterable[pa.Table], cuts: Mapping[str, int], counters: Counters, dropped: Dropped
) -> Iterator[pa.Table]:
    """The documents of a shard without those beyond the cuts. counters: counts each when its table is taken. dropped:
    gets examples of them."""
    least = Least()
    for table in tables:
        sources, sizes = table["source"].to_pylist(), table["text_bytes"].to_pylist()
        keep = []
        for place, (id_, source, size) in enumerate(zip(table["id"].to_pylist(), sources, sizes, strict=True)):
            is_kept = source not in cuts or slice_of(id_) < cuts[source]
            counters.add(source, "in", "", size)
            counters.add(source, "kept" if is_kept else "dropped", "" if is_kept else OVER_TARGET, size)
            keep.append(is_kept)
            if not is_kept:
                url, origin = table["url"][place].as_py(), table["origin"][place].as_py()
                number = dropped_hash(TARGET.name, OVER_TARGET, source, origin, id_)
                if least.takes(number):
                    dropped.put(TARGET.name, OVER_TARGET, number, Example.of(source, url, origin, size))
        yield table if all(keep) else table.filter(pa.array(keep, pa.bool_()))


def write_within_targets(
    shard: tuple[bytes, Iterable[bytes]],
    cuts: Mapping[str, int],
    write: Callable[[bytes, Iterable[pa.Table]], Iterable[bytes]],
) -> Iterator[bytes]:
    """What `write(key, tables)` reports of the documents within the targets, and the counters of the stage."""
    key, batches = shard
    counters, dropped = Counters(TARGET.name), Dropped()
    yield from write(key, cut_tables(read_batches(batches), cuts, counters, dropped))
    yield from counters.records()
    if dropped.examples:
        yield dropped.record()


def expected_bytes(kept: Mapping[str, Mapping[str, int]], targets: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """Source -> documents and bytes, those of sources with a target as far as it may reach. kept: the same before."""
    return {
        source: {**total, "bytes": min(total["bytes"], targets.get(source, 1 << 62) * BYTES_PER_TOKEN)}
        for source, total in kept.items()
    }
