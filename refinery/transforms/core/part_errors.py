"""Errors of Parquet files with the name of the file, which pyarrow's own do not tell."""

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa


class UnreadablePart(OSError):
    """A file that is damaged, or that its storage does not give."""


@contextmanager
def naming(url: str) -> Iterator[None]:
    """Raises UnreadablePart, which names `url`, for what reading it raises: no Parquet, a wrong checksum, storage."""
    try:
        yield
    except UnreadablePart:
        raise
    except (OSError, pa.ArrowException, KeyError, TypeError) as error:  # the last two: a damaged schema
        raise UnreadablePart(f"{url}: cannot be read: {' '.join(str(error).split())}") from error
