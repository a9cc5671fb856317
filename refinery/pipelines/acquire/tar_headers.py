"""The members of a tar file: ustar, pax and GNU's long names, nothing extracted.

Why not tarfile: it reads an extension header of any size into memory, recurses through chains of them, and keeps every
member; a hostile file costs it gigabytes. Here a header has at most MAX_EXTENSION bytes, and the time is linear.
Format: POSIX.1-2017, pax, "ustar Interchange Format"; GNU tar manual, "Basic Tar Format".
"""

from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from refinery.pipelines.acquire.tree_files import MAX_ENTRIES, MAX_PATH, Limit, RepositoryError

BLOCK = 512
MAX_EXTENSION = 64 << 10  # bytes of a pax header or a long name
KINDS = {b"0": "", b"\0": "", b"7": "", b"1": "hard-link", b"2": "symlink", b"5": "folder", b"S": "sparse-file"}
WITHOUT_DATA = b"123456"  # of these kinds nothing follows the header, whatever size it states


class Member(NamedTuple):
    """kind: "" for a file, "folder", or the reason that it is neither. offset: of its bytes."""

    path: bytes
    kind: str
    size: int
    offset: int


class TarReader:
    """Members of an uncompressed tar file. commit: what `git archive` notes in its first header, "" if nothing."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self.file, self.size = file, size
        self.commit = ""

    def __iter__(self) -> Iterator[Member]:
        """In the file's order. Raises RepositoryError for anything that is not whole."""
        at = 0
        limit = Limit()
        path: bytes | None = None
        length: int | None = None
        sparse = False
        for _ in range(2 * MAX_ENTRIES):
            header = self._bytes(at, BLOCK)
            if not any(header):
                return
            flag = header[156:157]
            size = number(header[124:136]) if length is None else length
            if not checked(header) or size is None:
                raise RepositoryError(f"not a header of a tar file at byte {at:,}")
            at += BLOCK
            if flag in b"LKxg":
                data = self._bytes(at, size if size <= MAX_EXTENSION else self._refuse(at, size))
                at += padded(size)
                if flag == b"L":
                    path = data.rstrip(b"\0")
                elif flag in b"xg":
                    fields = records(data)
                    if flag == b"g":
                        self.commit = fields.get(b"comment", b"").decode("ascii", "replace")
                    else:
                        path = fields.get(b"path", path)
                        sparse = sparse or any(name.startswith(b"GNU.sparse") for name in fields)
                        given = fields.get(b"size", b"")
                        length = int(given) if given.isdigit() and len(given) < 19 else length
                continue
            at = self._behind_sparse(header, at) if flag == b"S" else at
            name = (path_of(header) if path is None else path)[: MAX_PATH + 1]  # as much as shows that it is too long
            limit.see(name)
            kind = "sparse-file" if sparse else KINDS.get(flag, "special-file")
            if flag in b"0\0" and name.endswith(b"/"):  # as tar wrote folders before POSIX
                kind = "folder"
            yield Member(name, kind, size, at)
            at += 0 if flag in WITHOUT_DATA else padded(size)
            if at > self.size:
                raise RepositoryError(f"it ends at byte {self.size:,}, in the middle of a file")
            path, length, sparse = None, None, False
        raise RepositoryError(f"more than {2 * MAX_ENTRIES:,} headers")

    def _bytes(self, at: int, size: int) -> bytes:
        self.file.seek(at)
        data = self.file.read(size)
        if len(data) < size:
            raise RepositoryError(f"it ends at byte {self.size:,}, before its end mark")
        return data

    def _behind_sparse(self, header: bytes, at: int) -> int:
        """Where the bytes of GNU's sparse file begin: behind the rest of its map."""
        more = header[482]
        while more:
            more = self._bytes(at, BLOCK)[504]
            at += BLOCK
        return at

    def _refuse(self, at: int, size: int) -> int:
        raise RepositoryError(f"an extension header of {size:,} bytes at byte {at:,}, {MAX_EXTENSION:,} are allowed")


def padded(size: int) -> int:
    return -(-size // BLOCK) * BLOCK


def number(field: bytes) -> int | None:
    """Octal digits, or, with the first bit set, a number in base 256; None for anything else and below 0."""
    if field[0] == 0x80:
        return int.from_bytes(field[1:], "big")
    text = field.partition(b"\0")[0].strip()
    return int(text or b"0", 8) if set(text) <= set(b"01234567") else None


def checked(header: bytes) -> bool:
    """Whether the header's checksum holds, with bytes signed or unsigned (old writers)."""
    rest = header[:148] + b" " * 8 + header[156:]
    unsigned = sum(rest)
    return number(header[148:156]) in (unsigned, unsigned - 256 * sum(byte > 127 for byte in rest))


def path_of(header: bytes) -> bytes:
    """The path in the header's own fields."""
    name = header[:100].partition(b"\0")[0]
    prefix = header[345:500].partition(b"\0")[0] if header[257:263] == b"ustar\0" else b""
    return prefix + b"/" + name if prefix else name


def records(data: bytes) -> dict[bytes, bytes]:
    """The records "LENGTH KEY=VALUE\\n" of a pax header. Raises RepositoryError. Linear."""
    found = {}
    at = 0
    while at < len(data) and data[at]:
        digits, blank, _ = data[at : at + 8].partition(b" ")
        length = int(digits) if blank and digits.isdigit() else 0
        record = data[at + len(digits) + 1 : at + length]
        key, equals, value = record.partition(b"=")
        if not equals or at + length > len(data) or not value.endswith(b"\n"):
            raise RepositoryError("a damaged pax header")
        found[key] = value[:-1]
        at += length
    return found
