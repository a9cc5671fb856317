"""Models and lists that a recipe names by path: a local file or gs://bucket/name."""

import tempfile
from pathlib import Path

from loader.storage import open_store


def read_resource(path: str) -> bytes:
    """The bytes of a local file or of gs://bucket/name. Raises OSError, also for a missing file, naming the path."""
    folder, _, name = path.rpartition("/")
    if "://" in path:
        return open_store(folder).read(name)
    return Path(path).read_bytes()


def local_copy(path: str) -> Path:
    """A local file with the bytes of `path`, for libraries that load files alone: `path` itself if it is local.

    A download stays in a new temporary folder until its reader removes it. Raises OSError.
    """
    if "://" not in path:
        return Path(path)
    target = Path(tempfile.mkdtemp(prefix="refinery-")) / path.rpartition("/")[2]
    target.write_bytes(read_resource(path))
    return target
