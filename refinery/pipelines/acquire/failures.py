"""Whose failure it is: a repository's own, which costs that repository, or the output's, which ends the command."""

import contextlib
from collections.abc import Iterator
from typing import Any

from refinery.loader.storage.fetch import without_secrets
from refinery.loader.storage.full_disk import FULL, DiskFull
from refinery.pipelines.acquire.take import Add
from refinery.pipelines.acquire.tree_files import RepositoryError
from refinery.transforms.core.safe_text import safe


class OutputFailed(Exception):
    """The output cannot be written: no matter of the repository that is being read."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(cause)
        self.cause = cause


def of_the_output(add: Add) -> Add:
    """`add`, its errors as OutputFailed."""

    def added(record: dict[str, Any]) -> None:
        try:
            add(record)
        except Exception as error:  # whatever the store says, it is the output's
            raise OutputFailed(error) from error

    return added


@contextlib.contextmanager
def its_own_failure() -> Iterator[None]:
    """Whatever goes wrong where a repository is read is its own RepositoryError: its paths, its links, its files and
    git's answers are a stranger's."""
    try:
        yield
    except (RepositoryError, OutputFailed, DiskFull, MemoryError):
        raise
    except Exception as error:  # a stranger's bytes can raise anything in what reads them
        if isinstance(error, OSError) and error.errno in FULL:  # the scratch folder's
            raise
        said = error.strerror if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
        raise RepositoryError(f"it cannot be read: {safe(without_secrets(str(said)))[:200]}") from error
