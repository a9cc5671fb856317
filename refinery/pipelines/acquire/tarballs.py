"""Tarballs as trees: .tar, and compressed by gzip, Zstandard, LZ4, xz or bzip2 (the first bytes say which)."""

import bz2
import hashlib
import http.client
import io
import lzma
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from refinery.loader.storage.fetch import without_secrets
from refinery.loader.storage.http_store import HttpStore
from refinery.loader.storage.store import CHUNK
from refinery.pipelines.acquire.tar_headers import Member, TarReader
from refinery.pipelines.acquire.tree_files import MAX_TAKEN, Deadline, Found, RepositoryError

XZ, BZIP2 = b"\xfd7zXZ\0", b"BZh"
XZ_MEMORY = 256 << 20  # bytes; xz -9 needs 65 MiB
STALL = 60  # seconds without a byte after which a server is given up


class TarTree:
    """The files of an uncompressed tar file. strip: leave out the one folder that holds everything, if there is one."""

    def __init__(self, file: BinaryIO, size: int, strip: bool) -> None:
        self.file = file
        reader = TarReader(file, size)
        self.members = [plain(member) for member in reader if member.kind != "folder"]
        self.commit = reader.commit
        tops = {member.path.partition(b"/")[0] if b"/" in member.path else b"" for member in self.members}
        self.cut = len(min(tops)) + 1 if strip and len(tops) == 1 and tops.isdisjoint((b"", b".", b"..")) else 0

    def entries(self) -> Iterator[Found]:
        for path, kind, size, offset in self.members:
            yield Found(path[self.cut :], kind, size, (offset, size))

    def read(self, places: Sequence[tuple[int, int]]) -> Iterator[bytes]:
        for offset, size in places:
            self.file.seek(offset)
            yield self.file.read(size)


def plain(member: Member) -> Member:
    """Without the "./" that `tar -c .` puts in front of paths."""
    return member._replace(path=member.path.removeprefix(b"./"))


def unpacked(path: Path, scratch: Path, deadline: Deadline, most: int = MAX_TAKEN) -> tuple[Path, str]:
    """An uncompressed tar file with the bytes of a tarball, and the tarball's SHA-256. Memory: some MB.

    Raises RepositoryError for a damaged one and for one that inflates to more than `most` bytes.
    """
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    target = scratch / "tar"
    size = 0
    with target.open("wb") as out:
        for data in inflated(path):
            deadline.check()
            size += len(data)
            if size > most:
                raise RepositoryError(f"it inflates to more than {most >> 20:,} MiB")
            out.write(data)
    return target, digest


def inflated(path: Path) -> Iterator[bytes]:
    """The decompressed bytes of a file, in pieces."""
    from refinery.transforms.read.byte_source import MemberStream, open_source

    with path.open("rb") as stream:
        head = stream.read(8)
    if head.startswith((XZ, BZIP2)):
        yield from inflated_by(xz if head.startswith(XZ) else bz2.BZ2Decompressor, path)
        return
    with open_source(str(path)) as source:
        members = MemberStream(source)
        while data := members.read():
            yield data
        if members.broken:
            raise RepositoryError(f"it is damaged ({members.broken})")


def xz() -> lzma.LZMADecompressor:
    return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=XZ_MEMORY)


def inflated_by(kind: Any, path: Path) -> Iterator[bytes]:
    """The bytes of an xz or bzip2 file of one or more streams."""
    with path.open("rb") as stream:
        inflater = kind()
        data = b""
        while True:
            if inflater.eof:
                data = inflater.unused_data or data
                if not (data := data.lstrip(b"\0") or stream.read(CHUNK).lstrip(b"\0")):
                    return
                inflater = kind()
            elif inflater.needs_input and not data and not (data := stream.read(CHUNK)):
                raise RepositoryError("it is damaged (Truncated)")
            try:
                found = inflater.decompress(data, CHUNK)
            except (OSError, EOFError, lzma.LZMAError) as error:
                raise RepositoryError(f"it is damaged ({error})") from None
            data = b""
            yield found


class SafeRedirects(urllib.request.HTTPRedirectHandler):
    """To https:// alone; a server on this machine may stay on this machine."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        local = req.full_url.startswith("http://") and newurl.startswith(("http://127.0.0.1:", "http://localhost:"))
        if not newurl.startswith("https://") and not local:
            raise urllib.error.URLError("redirected to a protocol other than https")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def download(url: str, target: Path, timeout: float, most: int = MAX_TAKEN) -> None:
    """A file at an address (of `check_url`), by one request. Raises RepositoryError.

    Not by ranges, as corpora are read: servers that make tarballs when asked know no ranges of them.
    """
    until = time.monotonic() + timeout
    opener = urllib.request.build_opener(SafeRedirects())
    request = urllib.request.Request(HttpStore(url).root, headers={"User-Agent": "refinery"})  # noqa: S310 - checked
    size = 0
    try:
        with opener.open(request, timeout=min(STALL, timeout)) as response, target.open("wb") as out:
            declared = response.headers.get("Content-Length")
            while data := response.read1(CHUNK):
                size += len(data)
                if size > most:
                    raise RepositoryError(f"more than {most >> 20:,} MiB arrived")
                if time.monotonic() > until:
                    raise RepositoryError(f"the download took more than {timeout:g} s (--timeout)")
                out.write(data)
            if declared is not None and declared != str(size):
                raise RepositoryError(f"{size:,} bytes arrived, {declared:.20} were announced")
    except urllib.error.HTTPError as error:
        raise RepositoryError(f"status {error.code}") from None
    except urllib.error.URLError as error:
        raise RepositoryError(f"it cannot be reached: {without_secrets(str(error.reason))[:200]}") from None
    except (OSError, http.client.HTTPException) as error:
        if isinstance(error, RepositoryError):
            raise
        raise RepositoryError(f"it broke off: {without_secrets(str(error))[:200]}") from None


def open_tar(path: Path, strip: bool) -> tuple[BinaryIO, TarTree]:
    """The tree of an uncompressed tar file, and the open file that it reads from."""
    file = path.open("rb")
    try:
        return file, TarTree(file, file.seek(0, io.SEEK_END), strip)
    except BaseException:
        file.close()
        raise
