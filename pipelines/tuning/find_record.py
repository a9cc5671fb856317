"""The document that is tried: a file, standard input, or a record of the recipe's sources, read at its origin again."""

import sys
from collections.abc import Callable
from pathlib import Path

from refinery.pipelines.recipe.recipe import Recipe
from refinery.transforms.core.document import RawDocument
from refinery.transforms.read.sources import plan_sources, read_task

STDIN = "-"


def from_text(path: str, limit: int, is_html: bool, url: str) -> RawDocument:
    """The bytes of a local file, or of standard input for "-", as a document without a source. Raises OSError, and
    ValueError above `limit` bytes."""
    if path == STDIN:
        data = sys.stdin.buffer.read(limit + 1)
    else:
        with Path(path).open("rb") as stream:
            data = stream.read(limit + 1)
    if len(data) > limit:
        raise ValueError(f"--text: more than {limit:,} bytes given (limits.max_record_bytes)")
    return RawDocument(data, is_html, "", url, "try", f"{path}@0", 0)


def from_sources(recipe: Recipe, url: str, origin: str) -> RawDocument:
    """The first record of the recipe's sources with this URL or, if one is given, this origin.

    Cost: an origin reads its file up to the record; a URL reads all files up to it. Raises ValueError where there is
    none, and says so where a reader skipped it.
    """
    wanted: Callable[[str, str], bool] = lambda at, address: at == origin if origin else address == url  # noqa: E731
    path = origin.rpartition("@")[0]
    tasks = [task for task in plan_sources(recipe.sources, notes=recipe.LANE.notes) if not path or task.path == path]
    if not tasks:
        raise ValueError(f"--origin: {path!r:.300} is no input file of the recipe; `refinery trace` prints origins")
    for task in tasks:
        for record in read_task(task, recipe.limits):
            if isinstance(record, RawDocument):
                if wanted(record.origin, record.url):
                    return record
            elif wanted(record.origin, getattr(record, "url", "")):
                why = getattr(record, "reason", "") or getattr(record, "error", "")
                raise ValueError(f"{record.origin}: the reader gives no document of it: {why} (docs/reasons.md)")
    raise ValueError(f"{origin or url}: not found in {len(tasks):,} tasks of the recipe's sources")
