"""Whole files of a location into a folder: by range requests, continued where they ended, compared by SHA-256."""

import hashlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from refinery.loader.errors import CorruptShard, FormatError
from refinery.loader.format.manifest import FileEntry
from refinery.loader.storage.local_files import naming_file
from refinery.loader.storage.store import Store

PIECE = 8 << 20  # bytes of one request
PARTIAL = ".partial"


def fetch_files(
    store: Store, entries: Iterable[FileEntry], folder: Path, say: Callable[[str], None] = lambda line: None
) -> list[Path]:
    """The files below `folder`, each under its own path; those that are there, and right, are not fetched again.

    A file has its name only when all of it has arrived and was compared. A wrong one is fetched once more from its
    beginning. Raises CorruptShard if it is wrong again, FormatError if it is missing, and as the store does. Memory: a
    piece of 8 MiB.
    """
    return [_fetch(store, entry, folder / entry.path, say) for entry in entries]


def _fetch(store: Store, entry: FileEntry, path: Path, say: Callable[[str], None]) -> Path:
    if path.is_file() and _digest(path) == entry.sha256:
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + PARTIAL)
    for attempt in range(2):
        say(f"{store.url(entry.path)}: {entry.size:,} bytes")
        _append(store, entry, partial)
        if (found := _digest(partial)) == entry.sha256:
            os.replace(partial, path)
            return path
        partial.unlink()
        if attempt:
            raise CorruptShard(f"{store.url(entry.path)}: sha256 {found} found, {entry.sha256} expected")
    raise AssertionError("unreachable")


def _append(store: Store, entry: FileEntry, partial: Path) -> None:
    """Add what is missing of the file. One that is too long is begun anew."""
    if partial.is_file() and partial.stat().st_size > entry.size:
        partial.unlink()
    with partial.open("ab") as out:
        while (start := out.tell()) < entry.size:
            try:
                data = store.read(entry.path, start, min(PIECE, entry.size - start))
            except FileNotFoundError:
                raise FormatError(f"{store.url(entry.path)}: missing, {entry.size} bytes expected") from None
            if not data:
                return  # shorter than it must be: the digest says so
            with naming_file(partial):
                out.write(data)
        with naming_file(partial):
            out.flush()
            os.fsync(out.fileno())


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
