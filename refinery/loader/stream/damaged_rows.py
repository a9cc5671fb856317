"""Which documents a stream left out because they are damaged, for `NotDelivered`."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import ShardEntry
from refinery.loader.format.shard_files import load_index
from refinery.loader.read.versions.versions import NotDelivered, Version
from refinery.loader.stream.left_out import LeftOut, LeftOuts
from refinery.loader.stream.origins import provenance
from refinery.loader.view.opened import OpenedCorpus
from refinery.loader.view.past_view import PastView

UNKNOWN = {"id": "", "url": "", "source": "", "origin": ""}


def with_damage(
    found: NotDelivered | None, left: LeftOuts, opened: OpenedCorpus, shards: Sequence[Any], past: Any
) -> NotDelivered:
    """What was taken out, and what is damaged beside it. shards: of the stream, in the version `past` if it has one."""
    found = found or NotDelivered(0, 0, 0, 0, lambda: iter(()))
    if isinstance(past, Version):
        shards = past.now
    elif isinstance(past, PastView):
        shards = past.entries_now(shards)
    places = left.places
    return replace(
        found,
        _listings=partial(_rows, found, places, opened, shards),
        damaged_tokens=left.tokens,
        damaged=tuple((opened.path(p.shard, shards[p.shard]), p.epoch, p.start, p.stop) for p in places),
        is_complete=left.is_complete,
    )


def _rows(
    found: NotDelivered, places: Sequence[LeftOut], opened: OpenedCorpus, shards: Sequence[Any]
) -> Iterator[dict[str, Any]]:
    yield from found.rows()
    for place in places:
        entry = shards[place.shard]
        index = entry.index if isinstance(entry, ShardEntry) else -1
        own = {"split": entry.split, "domain": entry.domain, "index": index, "epoch": place.epoch}
        for row, first, count, address in _parts(opened, place, entry):
            yield {"kind": "damaged", **address, **own, "row": row, "token_offset": first, "token_count": count}


def _parts(opened: OpenedCorpus, place: LeftOut, entry: Any) -> Iterator[tuple[int, int, int, dict[str, str]]]:
    """(row, first token in the shard, tokens, address) of each document's part."""
    store = opened.place(place.shard)
    try:
        if not isinstance(entry, ShardEntry):  # of packed rows: what was in them is what is damaged
            raise FormatError(entry.bin.path)
        offsets = load_index(store, entry).offsets
        first = int(np.searchsorted(offsets, place.start, "right")) - 1
        rows = range(first, int(np.searchsorted(offsets, place.stop)))
        addresses = provenance(store, entry, rows)
    except FormatError:
        yield -1, place.start, place.stop - place.start, UNKNOWN
        return
    ends = np.append(offsets[1:], entry.tokens)
    for row, address in zip(rows, addresses, strict=True):
        begin, end = max(int(offsets[row]), place.start), min(int(ends[row]), place.stop)
        if begin < end:
            yield row, begin, end - begin, {**UNKNOWN, **address}
