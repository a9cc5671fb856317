"""A file of a remote corpus as the manifest describes it: its size, its checksums, its name in the cache."""

from dataclasses import dataclass, field
from typing import Any, cast

from refinery.loader.format.block_checksums import CHECKSUM_BLOCK, parse_blocks
from refinery.loader.read.remote.cache import file_id


@dataclass(frozen=True)
class RemoteFile:
    """A file of a corpus. crc32c: 8 hexadecimal digits. block_crc32c: the manifest's string. id: its folder in the
    cache."""

    corpus: str
    path: str
    size: int
    crc32c: str
    block_crc32c: str
    # Not functools.cached_property: before Python 3.12 it takes a lock, and a child forked meanwhile would deadlock.
    _computed: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    id: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", file_id(self.corpus, self.path, self.size, self.crc32c))

    @property
    def checksums(self) -> tuple[int, ...]:
        """CRC-32C of each block. Raises FormatError if they contradict that of the whole file."""
        if "checksums" not in self._computed:
            self._computed["checksums"] = parse_blocks(self.block_crc32c, self.size, self.crc32c, self.path)
        return cast(tuple[int, ...], self._computed["checksums"])

    def length(self, block: int) -> int:
        return min(CHECKSUM_BLOCK, self.size - block * CHECKSUM_BLOCK)
