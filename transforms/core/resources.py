"""Models and lists that a recipe names by path: a local file or gs://bucket/name.

Every stage reads its resources here, so that all of them know the same kinds of places, retries and checksums.
"""

import gzip
import hashlib
import hmac
import os
import re
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from refinery.loader.storage.open_store import open_store
from refinery.transforms.core.hub_file import HUB, read_hub_file

REMOTE = ("gs://", "https://", "http://")
MIN_KEY_BYTES = 16
ID_DIGITS = 8


def read_resource(path: str) -> bytes:
    """The bytes of a local file, of gs://bucket/name or of hf://ORG/NAME@COMMIT/FILE.

    Raises OSError, also for a missing file, naming the path.
    """
    if path.startswith(HUB):
        return read_hub_file(path)
    folder, _, name = path.rpartition("/")
    if "://" in path:
        if not path.startswith(REMOTE):
            kinds = ", ".join(f"{kind}…" for kind in (*REMOTE[:2], HUB))
            raise OSError(f"{path}: a local file, {kinds} are allowed: copy it to one of these first")
        return open_store(folder).read(name)
    return Path(path).read_bytes()


def read_list_file(path: str) -> bytes:
    """Like `read_resource`, decompressed where the name ends in .gz. Raises OSError."""
    data = read_resource(path)
    if not path.endswith(".gz"):
        return data
    try:
        return gzip.decompress(data)
    except (EOFError, zlib.error) as error:
        raise OSError(f"{path}: {error}") from error


def read_key(place: str, given_id: str, field: str, purpose: str) -> bytes:
    """A secret key from "env:NAME" or a file, local or remote; white space around it is left out.

    given_id: its `key_id` for that purpose, as the recipe has it. field: of the parameters that name the place. Raises
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
    """A local file with the bytes of `path`, for libraries that load files alone: `path` itself if it is local.

    A download is removed at the end. Raises OSError.
    """
    if "://" not in path:
        Path(path).stat()
        yield Path(path)
        return
    with tempfile.TemporaryDirectory(prefix="refinery-") as folder:
        target = Path(folder) / path.rpartition("/")[2]
        target.write_bytes(read_resource(path))
        yield target


def check_place(pattern: str) -> None:
    """Raise OSError, one line, where the folder of a remote file or glob cannot be listed. Local ones pass.

    Costs one request and takes 15 seconds at most, where Beam's own listing looks for credentials for 16 and then tries
    for two minutes.
    """
    if "://" in pattern:
        open_store(re.split(r"[*?\[{]", pattern)[0].rpartition("/")[0]).check()
