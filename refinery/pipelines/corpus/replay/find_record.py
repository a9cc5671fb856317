"""The document that is tried: a file, standard input, or a record of the recipe's sources, read at its origin again."""

import sys
from pathlib import Path

from refinery.pipelines.corpus.replay.replay import Replayer
from refinery.pipelines.recipe.recipe import Recipe
from refinery.transforms.core.answers import Damaged, Skipped
from refinery.transforms.core.document import RawDocument
from refinery.transforms.read.sources import plan_sources, read_task
from refinery.transforms.read.text_fields import settle_tasks

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
    """The record at this origin or, without one, the first record of the recipe's sources with this URL.

    Cost: that of `read_at`; a URL reads all files up to it. Raises ValueError where there is none, and says so where a
    reader skipped it.
    """
    record = Replayer(recipe).record(origin)[0] if origin else search(recipe, url)
    if isinstance(record, RawDocument):
        return record
    why = getattr(record, "reason", "") or getattr(record, "error", "")
    raise ValueError(f"{record.origin}: the reader makes no document of it: {why} (docs/reasons.md)")


def search(recipe: Recipe, url: str) -> RawDocument | Skipped | Damaged:
    """The first record with this URL. Raises ValueError where there is none."""
    planned = plan_sources(recipe.sources, notes=recipe.notes())
    tasks = settle_tasks(recipe.sources, planned, recipe.limits)
    for task in tasks:
        for record in read_task(task, recipe.limits):
            if getattr(record, "url", "") == url:
                return record
    raise ValueError(f"{url}: not found in {len(tasks):,} tasks of the recipe's sources")
