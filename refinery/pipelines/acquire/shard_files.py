"""Records into JSON Lines, compressed, in files of limited size: the same bytes for the same records."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import zstandard

from refinery.loader.storage.store import Store, checksums

SHARD_BYTES = 64 << 20  # of lines in a file; compressed that is what one reader takes
LEVEL = 6
FOLDER = "files"


class ShardWriter:
    """Files `files/NAME-00000.jsonl.zst`, …, published one by one. Memory: a line; disk: a file in `scratch`.

    progress: told the number of records so far when a file is full.
    """

    def __init__(self, store: Store, name: str, scratch: Path, progress: Callable[[int], None]) -> None:
        self.store, self.name, self.progress = store, name, progress
        self.files: list[dict[str, Any]] = []
        self._path = scratch / "shard"
        self._size = self._records = 0
        self._out: Any = None

    def add(self, record: dict[str, Any]) -> None:
        line = orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)
        if self._out and self._size + len(line) > SHARD_BYTES:
            self.close()
            self.progress(sum(file["records"] for file in self.files))
        if not self._out:
            compressor = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True)
            self._out = compressor.stream_writer(self._path.open("wb"))
        self._out.write(line)
        self._size += len(line)
        self._records += 1

    def close(self) -> None:
        """Publish what is open. The same file there is success, another one StorageConflict."""
        if not self._out:
            return
        self._out.close()
        name = f"{FOLDER}/{self.name}-{len(self.files):05d}.jsonl.zst"
        self.store.create(name, self._path)
        size, crc32c, sha256 = checksums(self._path)
        found = {"path": name, "size": size, "crc32c": crc32c, "sha256": sha256}
        self.files.append(found | {"records": self._records})
        self._path.unlink()
        self._out, self._size, self._records = None, 0, 0

    def abandon(self) -> None:
        """Close the open file without publishing it."""
        if self._out:
            self._out.close()
            self._out = None
