"""What a manifest lists: published files, and the shards that they make up."""

import re
from dataclasses import dataclass, replace

from refinery.loader.errors import FormatError, NoTokens
from refinery.loader.format.fields import Fields
from refinery.loader.format.provenance import ADOPTED

SPLITS = ("train", "validation")
_DOMAIN = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")


def check_domain(domain: str) -> str:
    """`domain` itself if it is 1 to 64 of a-z 0-9 _ . - and starts with a letter or digit; else ValueError."""
    if not _DOMAIN.fullmatch(domain):
        raise ValueError(f"domain: {domain!r} given, up to 64 of a-z 0-9 _ . - after a letter or digit are allowed")
    return domain


def shard_name(split: str, domain: str, index: int, count: int) -> str:
    """Name of shard `index` of `count`, without suffix.

    >>> shard_name("train", "web", 0, 16)
    'train/web/shard-00000-of-00016'
    """
    if split not in SPLITS:
        raise ValueError(f"split: {split!r} given, {' or '.join(SPLITS)} is allowed")
    if not 0 <= index < count:
        raise ValueError(f"index: {index} of {count} given, 0 to count - 1 is allowed")
    return f"{split}/{check_domain(domain)}/shard-{index:05d}-of-{count:05d}"


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A published file: path below the prefix, bytes, CRC-32C and SHA-256 in hexadecimal. rows: of a removals file, and
    of one of packed rows, which also has `documents` (with parts of cut ones) and `tokens` (with the BOS before these).

    block_crc32c: of a .bin and of packed rows, the CRC-32C of each MiB as refinery.loader.format.block_checksums writes
    it; "" for other files.
    """

    path: str
    size: int
    crc32c: str
    sha256: str
    rows: int | None = None
    block_crc32c: str = ""
    documents: int | None = None
    tokens: int | None = None


@dataclass(frozen=True, slots=True)
class ShardEntry:
    """Shard `index` of `count` of a domain in a split, with its files. token_count: None where it holds texts. written:
    the files that its writer wrote, the one with its documents first. provenance_file: None in a corpus that was
    adopted. packed: its documents as packed rows."""

    split: str
    domain: str
    index: int
    count: int
    documents: int
    token_count: int | None
    written: tuple[FileEntry, ...]
    provenance_file: FileEntry | None
    packed: tuple[FileEntry, ...] = ()

    @property
    def files(self) -> tuple[FileEntry, ...]:
        more = () if self.provenance_file in (None, *self.written) else (self.provenance_file,)
        return (*self.written, *more)

    @property
    def content(self) -> FileEntry:
        """The file with its documents: their tokens, or their texts."""
        return self.written[0]

    @property
    def name(self) -> str:
        """The path of its files without endings."""
        path = self.written[0].path
        if self.token_count is not None:
            return path.removesuffix(".bin")
        folder, _, file = path.rpartition("/")
        return f"{folder}/{file.partition('.')[0]}"

    @property
    def tokens(self) -> int:
        """Raises NoTokens for a shard of texts, as `bin` and `idx`."""
        if self.token_count is None:
            raise NoTokens(self.written[0].path)
        return self.token_count

    @property
    def bin(self) -> FileEntry:
        """Its tokens."""
        return self._of_tokens(0)

    @property
    def idx(self) -> FileEntry:
        """Their index."""
        return self._of_tokens(1)

    def _of_tokens(self, place: int) -> FileEntry:
        if self.token_count is None:
            raise NoTokens(self.written[0].path)
        return self.written[place]

    @property
    def provenance(self) -> FileEntry:
        """Where its documents come from. Raises FormatError in a corpus that was adopted: nobody knows."""
        if self.provenance_file is None:
            raise FormatError(
                f"{self.written[0].path}: no provenance: it is another tool's file, and its corpus was adopted"
            )
        return self.provenance_file


def file_entry(entry: Fields) -> FileEntry:
    crc32c, sha256 = entry.checksum("crc32c", 8), entry.checksum("sha256", 64)
    rows, documents, tokens = (
        entry.count(key) if key in entry.value else None for key in ("rows", "documents", "tokens")
    )
    path, size = entry.path("path"), entry.count("size")
    return FileEntry(path, size, crc32c, sha256, rows, documents=documents, tokens=tokens)


def _read_in_blocks(entry: Fields) -> FileEntry:
    """A .bin or packed rows, which are read block by block: block checksums are required."""
    file = file_entry(entry)
    if "block_crc32c" not in entry.value:
        raise FormatError(f"{entry.where}: {file.path}: block_crc32c is missing, the CRC-32C of each MiB expected")
    return replace(file, block_crc32c=entry.block_checksums("block_crc32c", file.size))


def parse_shard(entry: Fields, lane: str) -> ShardEntry:
    """A shard as a manifest of that lane lists it. Raises FormatError for a field that is missing or wrong."""
    files = entry.inner("files")
    split, domain = entry.text("split"), entry.text("domain")
    if split not in SPLITS:
        raise FormatError(f"{entry.where}: split is {split!r:.80}, {' or '.join(SPLITS)} expected")
    if not _DOMAIN.fullmatch(domain):
        raise FormatError(f"{entry.where}: domain is {domain!r:.80}, up to 64 of a-z 0-9 _ . - expected")
    return ShardEntry(
        split=split,
        domain=domain,
        index=entry.count("index"),
        count=entry.count("count"),
        documents=entry.count("documents"),
        token_count=entry.count("tokens"),
        written=(_read_in_blocks(files.inner("bin")), file_entry(files.inner("idx"))),
        provenance_file=None if lane == ADOPTED else file_entry(files.inner("provenance")),
        packed=tuple(_packed_file(file) for file in entry.list("packed")) if "packed" in entry.value else (),
    )


def _packed_file(entry: Fields) -> FileEntry:
    for key in ("rows", "documents", "tokens"):
        entry.count(key)
    return _read_in_blocks(entry)
