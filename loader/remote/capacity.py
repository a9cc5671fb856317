"""Whether what a stream reads from at the same time fits where its blocks are kept.

A cache that is smaller fetches blocks again for nearly every sample: a hundred times the corpus instead of once.
"""

import logging
import shutil
from collections.abc import Callable, Iterable
from dataclasses import replace

from refinery.loader.format.block_checksums import CHECKSUM_BLOCK
from refinery.loader.remote.blocks import RemoteParams
from refinery.loader.remote.cache import LOW, bytes_in_use

_log = logging.getLogger("refinery.loader")


def bytes_in_blocks(sizes: Iterable[int]) -> int:
    """What files of these sizes take in the cache."""
    return sum(-(-size // CHECKSUM_BLOCK) for size in sizes) * CHECKSUM_BLOCK


MARGIN = 4 * CHECKSUM_BLOCK  # blocks on their way


def fit_cache(
    params: RemoteParams, corpus_bytes: int, live_bytes: Callable[[], int], free: int | None = None
) -> RemoteParams:
    """`params`, or the same with memory in place of a cache that is too small, which is logged as a warning.

    corpus_bytes: what the stream reads in an epoch. live_bytes: how much of it at the same time; only asked for if the
    cache may be too small, since it takes a tenth of a second. free: what the cache may take of its disk; None: looked
    up. Raises ValueError if neither cache nor memory suffices.
    """
    bound, free = params.cache_bytes, _free(params) if free is None else free
    room = int(min(bound, free) * LOW)
    if corpus_bytes + MARGIN <= room:
        return params
    need = min(live_bytes(), corpus_bytes) + MARGIN
    if need <= room:
        return params
    why = f"cache_bytes is {bound}" if bound <= free else f"the cache's disk has room for {free} bytes"
    if need <= params.memory_bytes:
        if bound:
            _log.warning("%s, %d bytes are read from at a time: they are kept in memory", why, need)
        return replace(params, cache_bytes=0)
    most = -(-int(need / LOW + 1) // CHECKSUM_BLOCK) * CHECKSUM_BLOCK
    raise ValueError(
        f"remote: {why} and memory_bytes {params.memory_bytes}, but {need} bytes are read from at a time, so blocks "
        f"would be fetched again and again; cache_bytes of {most} or more (for each rank that shares the cache), as "
        "much memory_bytes, or OrderParams with fewer lanes or a smaller window (another order) is allowed"
    )


def _free(params: RemoteParams) -> int:
    """Bytes that the cache may take on its disk, with those that it has."""
    folder = params.folder
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        return shutil.disk_usage(folder).free + bytes_in_use(params.folder)
    except OSError:  # the cache says so itself, and is done without
        return params.cache_bytes
