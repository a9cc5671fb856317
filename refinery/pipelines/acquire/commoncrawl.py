"""`refinery acquire commoncrawl`: some files of a crawl on this machine, whole and checked, at a polite rate.

One connection, one request at a time, 8 MiB each. A file grows as NAME.part beside its place; the same command goes on
where it stopped. When it is whole it is read once: every gzip member's checksum must hold, and the server's MD5 where
its ETag is one. Then it takes its name, and acquired.jsonl its size, ETag and SHA-256.
"""

import contextlib
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from refinery.loader.storage.fetch import FetchParams
from refinery.loader.storage.http_store import HttpStore
from refinery.loader.storage.local_files import naming_file
from refinery.loader.storage.locks import hold
from refinery.loader.storage.store import CHUNK, StorageError
from refinery.pipelines.progress.output import current
from refinery.pipelines.progress.work import Step, Work
from refinery.transforms.core.live import WORK
from refinery.transforms.read.remote.files import Found, choose_files

LEDGER = "acquired.jsonl"
PIECE = 8 << 20
SNAPSHOT = re.compile(r"CC-MAIN-\d{4}-\d{2}|CC-NEWS/\d{4}/\d{2}")
CRAWL_FILE = re.compile(r"crawl-data/[\w./+=-]+\.gz", re.ASCII)
MOST_ZIPPED = 64 << 20  # bytes of a list of files, compressed; the largest ones have 300 kB
# The crawl's server asks those who come too often to wait; so we wait, and for long.
PATIENCE = FetchParams(deadline=900, first_delay=1.0, max_delay=60, hedge_after=0)


@dataclass(frozen=True)
class Crawl:
    """Which files: `files` of the snapshot's, of a kind ("warc", "wet"), chosen by hash of their names and `seed`."""

    snapshot: str
    files: int
    kind: str
    seed: int
    server: str


def acquire_crawl(crawl: Crawl, output: str, rate: float, check: bool, say: Callable[[str], None]) -> Iterator[str]:
    """Download files into the folder `output`; the last lines say how a recipe names it.

    rate: most bytes a second. check: read again what is there, and fetch what has changed. Raises ValueError for
    arguments that cannot work, OSError for what the server or the disk refuses; a file whose checksum is wrong twice is
    a StorageError.
    """
    if crawl.files < 1:
        raise ValueError(f"--files: {crawl.files} given, 1 or more is allowed")
    if not rate > 0:
        raise ValueError(f"--rate: {rate / 1e6:g} given, a number above 0 is allowed")
    if not SNAPSHOT.fullmatch(crawl.snapshot):
        raise ValueError(f"--snapshot: {crawl.snapshot!r} given, CC-MAIN-YEAR-WEEK or CC-NEWS/YEAR/MONTH is allowed")
    if "://" in output:
        raise ValueError(f"--output: {output!r} given, a local folder is allowed; recipes read s3:// and https://")
    folder = Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    with _alone(folder):
        download = Download(HttpStore(crawl.server, PATIENCE, anywhere=True), folder, rate, say)
        names = download.choose(f"crawl-data/{crawl.snapshot}/{crawl.kind}.paths.gz", crawl.files, crawl.seed)
        total = 0
        for number, name in enumerate(names, 1):
            total += download.fetch(name, f"{number} of {len(names)}", check)
        listing = folder / f"{crawl.kind}.paths"
        listing.write_text("".join(f"{name}\n" for name in names))
    yield f"{len(names)} files, {total / 1e9:,.2f} GB, are in {folder}"
    yield f"in a recipe:   sources: [{{name: crawl, path_lists: [{listing}]}}]"


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """The folder to oneself, on this machine. Of two machines each compares what it has with the server's checksums."""
    path = folder / ".acquire.lock"
    with path.open("w") as file:
        try:
            lock = hold(file.fileno(), path, wait=False)
        except BlockingIOError:
            raise ValueError(f"--output: another command is at work in {folder}") from None
        try:
            yield
        finally:
            if lock != file.fileno():
                os.close(lock)


@dataclass
class Download:
    """One store into one folder. rate: most bytes a second."""

    store: HttpStore
    folder: Path
    rate: float
    say: Callable[[str], None]

    def __post_init__(self) -> None:
        self.known = read_ledger(self.folder / LEDGER)

    def choose(self, listing: str, files: int, seed: int) -> list[str]:
        """That many of the files that a list at the server names; all of them if it names fewer."""
        where = self.store.url(listing)
        try:
            lines = dict.fromkeys(unzip_list(self.store.read(listing, 0, MOST_ZIPPED)).decode().split())
        except FileNotFoundError:
            raise ValueError(f"--snapshot: {where} is not there: no such crawl") from None
        except (EOFError, zlib.error, UnicodeDecodeError) as error:
            raise StorageError(f"{where}: not a gzip file of names: {error}") from None
        for line in lines:  # each will be a file below the folder
            if not CRAWL_FILE.fullmatch(line) or not {"", ".", ".."}.isdisjoint(line.split("/")):
                raise StorageError(f"{where}: it lists {line[:200]!a}, which is not a file of a crawl")
        # Like `max_files` of a source that names the same list, so both mean the same files.
        root = f"{self.store.root}/"
        chosen = choose_files((Found(root + line) for line in lines), files, seed)
        return [file.path.removeprefix(root) for file in chosen]

    def fetch(self, name: str, number: str, check: bool) -> int:
        """The file under its name in the folder, downloaded unless it is there; returns its size."""
        final = self.folder / name
        known = self.known.get(name)
        if known and final.is_file() and final.stat().st_size == known["size"]:
            if not check or digests(final)[0] == known["sha256"]:
                self.say(f"{number}: {name} is there")
                return int(known["size"])
            final.unlink()
        size, etag = self.describe(name)
        if final.is_file() and not check and (final.stat().st_size != size or self.problem(final, etag)):
            final.unlink()
        for attempt in (1, 2):
            part = final.with_name(f"{final.name}.part")
            if not final.is_file():
                self.download(name, part, size, etag, number)
                if problem := self.problem(part, etag):
                    part.unlink()
                    if attempt == 2:
                        raise StorageError(f"{self.store.url(name)}: {problem}, twice; try again later")
                    self.say(f"{number}: {name}: {problem}; trying again")
                    continue
                os.replace(part, final)
            break
        self.note({"path": name, "size": size, "etag": etag, "sha256": digests(final)[0]})
        return size

    def describe(self, name: str) -> tuple[int, str]:
        """Size and ETag, by one request."""
        try:
            found = self.store.range(name, 0, 1)
        except FileNotFoundError:
            raise StorageError(f"{self.store.url(name)} is listed, but is not there") from None
        if found.size is None:
            raise StorageError(f"{self.store.url(name)}: the server does not say how large it is")
        return found.size, found.version

    def download(self, name: str, part: Path, size: int, etag: str, number: str) -> None:
        """Bring `part` to its size, from where it stands if it is of the same version."""
        part.parent.mkdir(parents=True, exist_ok=True)
        mark = part.with_name(f"{part.name}.etag")
        if not part.is_file() or not mark.is_file() or mark.read_text() != etag or part.stat().st_size > size:
            part.write_bytes(b"")
            mark.write_text(etag)
        start = part.stat().st_size
        free = shutil.disk_usage(part.parent).free
        if free < size - start:
            raise OSError(
                f"{part.parent}: {(size - start) / 1e9:.2f} GB are needed for {name}, {free / 1e9:.2f} are free"
            )
        got: Counter[str] = Counter()
        label = f"{number}: {name}"
        work = Work(label, steps=[Step("bytes", size - start)], bytes=size - start, bytes_before=start)
        with part.open("ab") as out, current().watch(label, lambda: Counter(got), work):
            while start < size:
                begun = time.monotonic()
                data = self.store.range(name, start, min(start + PIECE, size), etag).data
                with naming_file(part):
                    out.write(data)
                start += len(data)
                got[f"{WORK} bytes"] += len(data)
                time.sleep(max(0.0, len(data) / self.rate - (time.monotonic() - begun)))
            with naming_file(part):
                out.flush()
                os.fsync(out.fileno())
        mark.unlink()

    def problem(self, path: Path, etag: str) -> str:
        """What is wrong with a whole file; "" if nothing."""
        from refinery.transforms.read.byte_source import MemberStream, open_source

        md5 = etag.strip('"')
        if re.fullmatch("[0-9a-f]{32}", md5) and (found := digests(path)[1]) != md5:
            return f"md5 {found} found, {md5} expected"
        with open_source(str(path)) as source:
            stream = MemberStream(source)
            while stream.read():
                pass
        return f"a checksum inside it is wrong ({stream.broken})" if stream.broken else ""

    def note(self, entry: dict[str, Any]) -> None:
        path = self.folder / LEDGER
        with naming_file(path), path.open("a+b") as out:
            torn = out.tell() and os.pread(out.fileno(), 1, out.tell() - 1) != b"\n"
            out.write((b"\n" if torn else b"") + json.dumps(entry, sort_keys=True).encode() + b"\n")
            out.flush()
            os.fsync(out.fileno())


def unzip_list(data: bytes) -> bytes:
    """A gzip file in memory, decompressed. Raises EOFError, zlib.error and, beyond MAX_LIST_BYTES, StorageError."""
    from refinery.transforms.read.find_files import MAX_LIST_BYTES

    with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
        try:
            found = stream.read(MAX_LIST_BYTES + 1)
        except gzip.BadGzipFile as error:
            raise EOFError(str(error)) from None
    if len(found) > MAX_LIST_BYTES:
        raise StorageError(f"the list of files has more than {MAX_LIST_BYTES:,} bytes")
    return found


def read_ledger(path: Path) -> dict[str, dict[str, Any]]:
    """path -> what is known of the file. The last line may be torn: a command was killed in it."""
    entries = {}
    for line in path.read_text().splitlines() if path.is_file() else ():
        try:
            entry = json.loads(line)
            entries[entry["path"]] = entry
        except (ValueError, TypeError, KeyError):
            continue
    return entries


def digests(path: Path) -> tuple[str, str]:
    """SHA-256 and MD5 of a file, in hexadecimal."""
    sha256, md5 = hashlib.sha256(), hashlib.md5(usedforsecurity=False)
    with path.open("rb") as stream:
        while chunk := stream.read(CHUNK):
            sha256.update(chunk)
            md5.update(chunk)
    return sha256.hexdigest(), md5.hexdigest()
