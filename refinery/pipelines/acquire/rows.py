"""Files that somebody has laid out as rows already: repo, commit, path, content, in JSON Lines or Parquet.

What the rows lack is the licence of their repository. So they are read twice: for the licence files, then for all.
Where no licence file is above a row, its own repo_license counts, if it has one.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from refinery.loader.storage.fetch import without_secrets
from refinery.pipelines.acquire.git_sources import HEX
from refinery.pipelines.acquire.take import TOO_LONG, Add, bounded, record
from refinery.pipelines.acquire.tree_files import Counts, Deadline, RepositoryError, check_path, text_of
from refinery.transforms.code.licences.license_expressions import MAX_EXPRESSION
from refinery.transforms.code.licences.license_files import licence_files, licences_of_folders, nearest_licence
from refinery.transforms.core.answers import Skipped
from refinery.transforms.core.document import RawDocument
from refinery.transforms.read.sources import LimitParams, ReadTask, SourceParams, plan_sources, read_task

COLUMNS = ("repo", "commit", "path", "repo_license")
TEXT = "content"


class Rows:
    """The rows of some files, local or remote. Memory: the expressions of the licence files of all repositories."""

    def __init__(self, pattern: str, most: int) -> None:
        source = SourceParams(name="files", paths=(pattern,), content="text", text_field=TEXT, meta_fields=COLUMNS)
        self.tasks: list[ReadTask] = plan_sources([source], split_bytes=1 << 62)
        held = LimitParams().max_decompressed_bytes
        self.limits = LimitParams(max_record_bytes=most, max_decompressed_bytes=max(held, min(8 * most, 1 << 30)))

    def inputs(self) -> list[dict[str, Any]]:
        """What was read, for the report: names and sizes, and what a store knows the versions by."""
        return [{"file": Path(task.path).name, "size": task.size, "version": task.version} for task in self.tasks]

    def take(self, add: Add, deadline: Deadline) -> Counts:
        """Give the records to `add` in the order of files and rows; returns where every row went.

        deadline: of both readings together. Raises RepositoryError where it has passed.
        """
        expressions: dict[tuple[str, str], list[tuple[str, str]]] = {}
        for repo, commit, path, text, _ in self._files(Counts(), deadline):
            for found in licence_files([(path, text)]):
                expressions.setdefault((repo, commit), []).append(found)
        licences = {key: bounded(licences_of_folders(found)) for key, found in expressions.items()}
        counts = Counts()
        for repo, commit, path, text, own in self._files(counts, deadline):
            licence = nearest_licence(path, licences.get((repo, commit), {})) or own
            add(record(text, repo, commit, path, licence))
            counts.taken += 1
            counts.taken_bytes += len(text.encode())
        return counts

    def _files(self, counts: Counts, deadline: Deadline) -> Iterator[tuple[str, str, str, str, str]]:
        """(repo, commit, path, text, own licence) of the rows that are taken; the others are counted."""
        for task in self.tasks:
            for row in read_task(task, self.limits):
                deadline.check()
                counts.entries += 1
                if not isinstance(row, RawDocument):
                    skipped = isinstance(row, Skipped) and row.reason in ("empty", "too-large")
                    counts.skip(row.reason if skipped else "row-damaged")  # type: ignore[union-attr]
                    continue
                repo, commit, raw, own = (str(row.meta.get(name, "")) for name in COLUMNS)
                repo = without_secrets(repo).partition("://")[2] or repo
                path, reason = check_path(raw.encode())
                text, unread = text_of(row.content if isinstance(row.content, bytes) else row.content.encode())
                if not repo or not raw or not HEX.fullmatch(commit):
                    reason = "row-incomplete"
                elif check_path(repo.encode())[1] and not reason:
                    reason = check_path(repo.encode())[1]
                if reason or unread:
                    counts.skip(reason or unread)
                    continue
                yield repo, commit, path, text, own if len(own) <= MAX_EXPRESSION else TOO_LONG


def rows_of(pattern: str, most: int) -> Rows:
    """The rows at a path, a glob or an address. Raises RepositoryError where there are none."""
    try:
        return Rows(pattern, most)
    except ValueError as error:
        raise RepositoryError(str(error)) from None
