"""Models and lists that a recipe names by path: a local file or gs://bucket/name.

Every stage reads its resources here, so that all of them know the same kinds of places, retries and checksums.
"""

import gzip
import re
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from refinery.loader.storage.open_store import open_store
from refinery.transforms.core.hub_file import HUB, read_hub_file

REMOTE = ("gs://", "https://", "http://")


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
