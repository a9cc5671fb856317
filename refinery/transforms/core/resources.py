"""Models and lists that a recipe names by path: a local file, gs://bucket/name or s3://bucket/name.

Every stage reads its resources here, so all of them know the same kinds of places, retries and checksums.
"""

import gzip
import hashlib
import hmac
import io
import os
import re
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from refinery.loader.storage.locks import holding, machine_name
from refinery.loader.storage.open_store import open_store
from refinery.transforms.core.hub_file import HUB, read_hub_file

REMOTE = ("gs://", "s3://", "https://", "http://")
MIN_KEY_BYTES = 16
ID_DIGITS = 8
MAX_LIST = 512 << 20  # bytes of a list that is read into memory; the largest of hosts that is published has 100 MB
PIECE = 64 << 20  # bytes read at once of what may be larger than memory
SMALL = 16 << 20  # bytes that take a process some 40 ms to hash

_OPENED: dict[str, str] = {}  # path -> sha256 of what this process read under it last


def read_resource(path: str) -> bytes:
    """The bytes of a local file, gs://bucket/name, s3://bucket/name or hf://ORG/NAME@COMMIT/FILE; their digest is kept
    for `opened_digest`.

    Raises OSError, also for a missing file, naming the path.
    """
    data = _read(path)
    _OPENED[path] = hashlib.sha256(data).hexdigest()
    return data


def opened_digest(path: str) -> str:
    """sha256 of what this process opened last under that path, "" for nothing: of the bytes that it works with,
    whatever the file has become since."""
    return _OPENED.get(path, "")


def _read(path: str) -> bytes:
    if path.startswith(HUB):
        return read_hub_file(path)
    folder, _, name = path.rpartition("/")
    if "://" in path:
        if not path.startswith(REMOTE):
            kinds = ", ".join(f"{kind}…" for kind in (*REMOTE[:3], HUB))
            raise OSError(f"{path}: a local file, {kinds} are allowed; copy it to one of these first")
        return open_store(folder).read(name)
    return Path(path).read_bytes()


def read_list_file(path: str) -> bytes:
    """Like `read_resource`, decompressed where the name ends in .gz: at most MAX_LIST bytes. Raises OSError."""
    data = read_resource(path)
    if path.endswith(".gz"):
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
                data = file.read(MAX_LIST + 1)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise OSError(f"{path}: is cut or is not gzip ({error}); copy it again") from error
    if len(data) > MAX_LIST:
        raise OSError(f"{path}: more than {MAX_LIST} bytes found, which is too long for a list")
    return data


def read_key(place: str, given_id: str, field: str, purpose: str) -> bytes:
    """A secret key from "env:NAME" or a file, local or remote; white space around it is left out.

    given_id: its `key_id` for that purpose, from the recipe. field: of the parameters that name the place. Raises
    ValueError "field: …" where there is none or a short one, or one with another id, OSError for a missing file. Errors
    never quote it.
    """
    key = (os.environ.get(place[4:], "").encode() if place.startswith("env:") else read_resource(place)).strip()
    if len(key) < MIN_KEY_BYTES:
        raise ValueError(f"{field}: {len(key)} bytes in {place!r} given, {MIN_KEY_BYTES} or more are needed")
    if given_id != (found := key_id(key, purpose)):
        raise ValueError(f"{field}_id: {repr(given_id) if given_id else 'none'} given, the secret's is {found!r}")
    return key


def key_id(key: bytes, purpose: str) -> str:
    """Eight hexadecimal digits that tell keys apart and nothing else about them."""
    return hmac.new(key, f"refinery {purpose} key id".encode(), hashlib.sha256).hexdigest()[:ID_DIGITS]


@contextmanager
def local_copy(path: str) -> Iterator[Path]:
    """A local file with the bytes of `path`, for libraries that load only files: `path` itself if it is local.

    A download is removed at the end. Raises OSError. Cost: the file is hashed, at some 400 MB/s.
    """
    if "://" not in path:
        _OPENED[path] = resource_digest(path)
        yield Path(path)
        return
    with tempfile.TemporaryDirectory(prefix="refinery-") as folder:
        target = Path(folder) / path.rpartition("/")[2]
        target.write_bytes(read_resource(path))
        yield target


def read_pieces(path: str, piece: int = PIECE) -> Iterator[bytes]:
    """The bytes of `path` as of `read_resource`, in pieces: memory is one piece, except for hf://. Raises OSError."""
    if "://" not in path:
        with open(path, "rb") as file:
            while data := file.read(piece):
                yield data
        return
    if path.startswith(HUB):
        yield _read(path)
        return
    folder, _, name = path.rpartition("/")
    store = open_store(folder)
    size = store.size(name)
    if size is None:
        raise FileNotFoundError(f"{path}: is not there")
    for at in range(0, size, piece):
        yield store.read(name, at, min(piece, size - at))


def resource_digest(path: str) -> str:
    """sha256 of the bytes of `path`, in hexadecimal. Raises OSError."""
    digest = hashlib.sha256()
    for data in read_pieces(path):
        digest.update(data)
    return digest.hexdigest()


def machine_copy(path: str, head_bytes: int) -> Path:
    """A local file with the bytes of `path` to map into memory: itself if it is local, else one download that all
    processes of the machine share, as long as its temporary folder lives. Raises OSError.

    head_bytes: of the file's beginning, which has to differ from any other version's; read again on every call. All of
    the file is hashed once a machine (`machine_digest`), and the digest kept for `opened_digest`.
    """
    if "://" not in path:
        Path(path).stat()
        _OPENED[path] = machine_digest(Path(path))
        return Path(path)
    name = hashlib.sha256(path.encode() + b"\n" + next(read_pieces(path, head_bytes), b"")).hexdigest()
    folder = machine_folder()
    target = folder / name
    with _locked(folder / f"{name}.lock"):
        if not target.exists():
            half = folder / f"{name}.half"
            with half.open("wb") as file:
                for data in read_pieces(path):
                    file.write(data)
            half.replace(target)
    _OPENED[path] = machine_digest(target)
    return target


def machine_digest(path: Path) -> str:
    """sha256 of a local file. Of one over SMALL bytes one process of the machine computes it, and the others take it
    over as long as the file is the same by its inode, its size and its times of change. Raises OSError."""
    found = path.stat()
    if found.st_size <= SMALL:
        return resource_digest(str(path))
    facts = (os.path.realpath(path), found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
    folder = machine_folder()
    stamp = folder / f"{hashlib.sha256(repr(facts).encode()).hexdigest()}.sha256"
    with _locked(stamp.with_suffix(".lock")):
        known = stamp.read_text() if stamp.exists() else ""
        if re.fullmatch("[0-9a-f]{64}", known):
            return known
        digest = resource_digest(str(path))
        half = stamp.with_suffix(".half")
        half.write_text(digest)
        half.replace(stamp)
        return digest


def machine_folder() -> Path:
    """A folder of this user's processes on this machine, also where machines share the place for temporary files.
    Raises OSError where somebody else has it."""
    folder = Path(tempfile.gettempdir()) / f"refinery-{os.getuid()}-{machine_name()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
        raise OSError(f"{folder}: belongs to somebody else; remove it, or set TMPDIR")
    return folder


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock, holding(lock.fileno(), path):
        yield
