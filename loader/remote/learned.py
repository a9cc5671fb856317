"""Block checksums for files whose corpus publishes none, made from the checksum of the whole file.

verify="before": the first use of a file reads all of it once, in parallel, into the cache. The block checksums found on
the way are believed when they combine to the manifest's. From then on the file is read like one whose checksums are
published. No byte is delivered before; the price is the time of that read, once per host and file.

verify="late": blocks are delivered as they come, checked by what the transport offers (TLS, lengths, ETag, the object's
own crc32c where Cloud Storage sends it). When the processes that share the cache have seen all blocks of a file, their
checksums must combine to the manifest's. If not, the file is read once more as above. Wrong bytes are found, but tokens
made of them may have been delivered by then.

Either way a file that is wrong twice raises CorruptShard with both values.
"""

import os
import struct
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import google_crc32c
import numpy as np

from refinery.loader.format.block_checksums import combine_blocks
from refinery.loader.remote.cache import BlockCache, Key

if TYPE_CHECKING:
    from refinery.loader.remote.blocks import RemoteFile, SourceParams

_RECORD = struct.Struct("<II")  # block, CRC-32C


class Learned:
    """Checksums of the blocks of whole files, kept in the cache's folder. fetch: stores blocks [first, last), returns
    their checksums.
    """

    def __init__(
        self, cache: BlockCache, fetch: "Callable[[RemoteFile, int, int], list[int]]", params: "SourceParams"
    ) -> None:
        self._cache = cache
        self._fetch = fetch
        self._params = params
        self._known: dict[str, tuple[int, ...]] = {}
        self._wrong: dict[str, Exception] = {}
        self._seen: dict[str, dict[int, int]] = {}
        self._lock = threading.Lock()
        self._learning = threading.Lock()

    def checksums(self, file: "RemoteFile") -> tuple[int, ...] | None:
        """Those of all blocks of `file`; None where verify is "late" and not all were seen yet. Raises CorruptShard."""
        known = self._known.get(file.id)
        if known is not None:
            return known
        if file.id in self._wrong:
            raise self._wrong[file.id]
        known = self._load(file)
        if known is not None or self._params.verify == "late":
            return known
        return self._learn(file, passes=2)

    def note(self, file: "RemoteFile", first: int, values: Iterable[int]) -> None:
        """These blocks have arrived with these checksums. Raises CorruptShard when a file is wrong twice."""
        with self._lock:
            seen = self._seen.setdefault(file.id, {})
            new = {first + i: value for i, value in enumerate(values) if seen.get(first + i) != value}
            seen.update(new)
        everybody = dict(seen) | self._share(file, new)
        if len(everybody) < file.blocks:
            return
        values = [everybody[block] for block in range(file.blocks)]
        if self._believe(file, values) is None:
            self._forget(file)
            self._learn(file, passes=1)

    def _learn(self, file: "RemoteFile", passes: int) -> tuple[int, ...]:
        """Read the whole file, one process of the host and one thread of it at a time."""
        until = time.monotonic() + self._params.fetch.deadline
        with self._learning:
            while True:
                with self._cache.fetching(file.id, None) as mine:
                    known = self._known.get(file.id) or self._load(file)
                    if known is not None:
                        return known
                    # A holder of the lock that is merely stopped must not stop everybody.
                    if mine or time.monotonic() > until:
                        return self._read_all(file, passes)
                time.sleep(0.02)

    def _read_all(self, file: "RemoteFile", passes: int) -> tuple[int, ...]:
        from refinery.loader.remote.blocks import CorruptShard

        starts = range(0, file.blocks, self._params.group)
        found = 0
        for _ in range(passes):
            with ThreadPoolExecutor(self._params.threads, "refinery-learn") as pool:
                parts = pool.map(lambda a: self._fetch(file, a, min(a + self._params.group, file.blocks)), starts)
                values = [value for part in parts for value in part]
            known = self._believe(file, values)
            if known is not None:
                return known
            found = combine_blocks(values, file.size)
            self._forget(file)
        error = CorruptShard(f"{file.path}: crc32c {found:08x} of all its blocks found, {file.crc32c} expected")
        self._wrong[file.id] = error
        raise error

    def _believe(self, file: "RemoteFile", values: Iterable[int]) -> tuple[int, ...] | None:
        """Keep checksums that combine to the file's; None for others."""
        known = tuple(values)
        if f"{combine_blocks(known, file.size):08x}" != file.crc32c:
            return None
        self._known[file.id] = known
        self._seen.pop(file.id, None)
        data = np.array(known, "<u4").tobytes()
        with self._cache.tolerant():
            temporary = self._cache.folder / "sums" / f".tmp-{os.getpid()}-{threading.get_ident()}-{file.id}"
            temporary.write_bytes(data + google_crc32c.value(data).to_bytes(4, "little"))
            temporary.rename(self._path(file))
            self._path(file, ".seen").unlink(missing_ok=True)
        return known

    def _load(self, file: "RemoteFile") -> tuple[int, ...] | None:
        try:
            data = self._path(file).read_bytes()
        except OSError:
            return None
        body = data[:-4]
        if len(data) != 4 * file.blocks + 4 or google_crc32c.value(body) != int.from_bytes(data[-4:], "little"):
            return None
        known = tuple(int(value) for value in np.frombuffer(body, "<u4"))
        if f"{combine_blocks(known, file.size):08x}" != file.crc32c:
            return None
        self._known[file.id] = known
        return known

    def _share(self, file: "RemoteFile", new: dict[int, int]) -> dict[int, int]:
        """Append `new` to what all processes of the host have seen, and return all of it where that can be complete."""
        if not new:
            return {}
        path = self._path(file, ".seen")
        with self._cache.tolerant():
            # One small write at the end of a file: those of several processes do not mix.
            with path.open("ab", buffering=0) as stream:
                stream.write(b"".join(_RECORD.pack(block, value) for block, value in new.items()))
                if stream.tell() < _RECORD.size * file.blocks:
                    return {}
            data = path.read_bytes()
            whole = data[: len(data) // _RECORD.size * _RECORD.size]
            return {block: value for block, value in _RECORD.iter_unpack(whole) if block < file.blocks}
        return {}

    def _forget(self, file: "RemoteFile") -> None:
        with self._lock:
            self._seen.pop(file.id, None)
        with self._cache.tolerant():
            self._path(file, ".seen").unlink(missing_ok=True)
        for block in range(file.blocks):
            self._cache.drop(Key(file.id, block))

    def _path(self, file: "RemoteFile", suffix: str = "") -> Path:
        return self._cache.folder / "sums" / f"{file.id}{suffix}"
