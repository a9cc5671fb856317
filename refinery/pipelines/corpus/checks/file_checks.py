"""One listed file against its checksums, and the failures of any check: shared by the checks of corpora and exports."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import BinaryIO

from refinery.loader.errors import FormatError
from refinery.loader.format.block_checksums import BlockHasher
from refinery.loader.format.manifest import FileEntry
from refinery.loader.format.shard_files import differences
from refinery.loader.storage.store import CHUNK, Checksums, Hasher, Store
from refinery.transforms.core.live import LIVE, WORK
from refinery.transforms.core.safe_text import safe

SCRATCH = "refinery-verify-"  # begin of the names of temporary folders


def verdict_lines(failures: Sequence[str]) -> list[str]:
    """Every failure, and the verdict. Names in a damaged manifest or in a bucket can hold anything, terminal codes
    included, so they are escaped.
    """
    found = len(failures)
    return [*map(safe, failures), f"{found} failure{'s' if found > 1 else ''}" if found else "all checks passed"]


def collect(what: str, check: Iterable[str]) -> list[str]:
    """All failures of a check. An exception becomes one more: on corrupt input any library may raise anything. A
    FormatError names its file, and is reported in the same words by every tool."""
    failures = []
    try:
        for failure in check:
            failures.append(failure)
    except FormatError as error:
        failures.append(str(error))
    except Exception as error:  # noqa: BLE001 - see above; nothing may stop the other checks
        failures.append(f"{what}: {type(error).__name__}: {error}")
    return failures


def check_file(store: Store, entry: FileEntry, watch: Callable[[bytes], None] | None = None) -> Iterator[str]:
    """Check presence, size, crc32c, sha256 and block checksums in one pass; `watch` gets the bytes in chunks of 8
    MiB.
    """
    hasher = Hasher()
    blocks = BlockHasher()
    try:
        with store.open(entry.path) as stream:
            while chunk := _read_fully(stream, CHUNK):
                hasher.update(chunk)
                LIVE[WORK, "bytes"] += len(chunk)
                if entry.block_crc32c:
                    blocks.update(chunk)
                if watch:
                    watch(chunk)
    except FileNotFoundError:
        yield f"{entry.path}: missing, {entry.size} bytes expected"
        return
    except OSError as error:
        yield f"{entry.path}: {type(error).__name__}: {error}"
        return
    yield from compare(entry, hasher.result())
    if entry.block_crc32c and blocks.result() != entry.block_crc32c:
        yield f"{entry.path}: block_crc32c {blocks.result():.60} found, {entry.block_crc32c:.60} expected"


def compare(entry: FileEntry, found: Checksums) -> Iterator[str]:
    """One failure that names all of size, crc32c and sha256 that differ."""
    if told := differences(entry, found):
        yield f"{entry.path}: {told}"


def _read_fully(stream: BinaryIO, size: int) -> bytes:
    """`size` bytes, fewer only at the end: a remote stream may return less than requested, and tokens must not be
    split.
    """
    data = stream.read(size)
    while data and len(data) < size and (more := stream.read(size - len(data))):
        data += more
    return data
