"""Whether what a stream reads from at the same time fits where its blocks are kept.

A cache that is smaller fetches blocks again for nearly every sample: a hundred times the corpus instead of once.
"""

import logging
import os
import shutil
from collections.abc import Callable, Iterable
from dataclasses import replace

from refinery.loader.format.block_checksums import CHECKSUM_BLOCK
from refinery.loader.read.remote.blocks import RemoteParams
from refinery.loader.read.remote.cache import LOW, bytes_in_use

_log = logging.getLogger("refinery.loader")


def bytes_in_blocks(sizes: Iterable[int]) -> int:
    """What files of these sizes take in the cache."""
    return sum(-(-size // CHECKSUM_BLOCK) for size in sizes) * CHECKSUM_BLOCK


MARGIN = 4 * CHECKSUM_BLOCK  # blocks on their way


def fit_cache(
    params: RemoteParams, corpus_bytes: int, live_bytes: Callable[[], int], free: int | None = None
) -> RemoteParams:
    """`params`, or the same with memory in place of a cache that is too small, which is logged as a warning; so
    is one that suffices for one rank, but not for all of the host.

    corpus_bytes: what the stream reads in an epoch. live_bytes: how much of it at the same time; only asked for if the
    cache may be too small, since it takes a tenth of a second. free: what the cache may take of its disk; None: looked
    up. Raises ValueError if neither cache nor memory suffices.
    """
    bound, free = params.cache_bytes, _free(params) if free is None else free
    room = int(min(bound, free) * LOW)
    if corpus_bytes + MARGIN <= room:
        return params
    live = live_bytes()
    need = min(live, corpus_bytes) + MARGIN
    if need <= room:
        shared = min(_ranks_here() * live, corpus_bytes) + MARGIN
        if shared > room:
            _log.warning(
                "the cache has room for %d bytes, and the %d ranks of this host together may read from %d at a time: "
                "blocks may be fetched again and again; cache_bytes of %d is enough for all",
                min(bound, free), _ranks_here(), shared, _enough(shared),
            )  # fmt: skip
        return params
    why = f"cache_bytes is {bound}" if bound <= free else f"the cache's disk has room for {free} bytes"
    if need <= params.memory_bytes:
        if bound:
            _log.warning("%s, %d bytes are read from at a time: they are kept in memory", why, need)
        return replace(params, cache_bytes=0)
    raise ValueError(
        f"remote: {why} and memory_bytes {params.memory_bytes}, but {need} bytes are read from at a time, so blocks "
        f"would be fetched again and again; cache_bytes of {_enough(need)} or more (for each rank that shares the "
        "cache), as much memory_bytes, or OrderParams with fewer lanes or a smaller window (another order) is allowed"
    )


def _enough(need: int) -> int:
    """The cache_bytes, whole blocks, of which eviction leaves `need`."""
    return -(-int(need / LOW + 1) // CHECKSUM_BLOCK) * CHECKSUM_BLOCK


def _ranks_here() -> int:
    """Processes of this host that train together, as torchrun says; they share the cache."""
    given = os.environ.get("LOCAL_WORLD_SIZE", "")
    return max(1, int(given)) if given.isascii() and given.isdigit() else 1


def _free(params: RemoteParams) -> int:
    """Bytes that the cache may take on its disk, with those that it has."""
    folder = params.folder
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        return shutil.disk_usage(folder).free + bytes_in_use(params.folder)
    except OSError:  # the cache says so itself, and is done without
        return params.cache_bytes
