"""Texts of the chosen documents of a corpus of texts: read once with their rows, and compared by digest."""

import hashlib
from collections.abc import Sequence

from refinery.pipelines.corpus.audit.recorded import AuditedRun
from refinery.pipelines.corpus.audit.sample import KEPT, PublishedFile, Row
from refinery.pipelines.published.shard_texts import shard_texts

PUBLISHED_TEXT, SHA256 = "text", "text_sha256"


def add_texts(run: AuditedRun, file: PublishedFile, rows: Sequence[Row]) -> None:
    """Give the rows of a shard, of `chosen_rows`, the SHA-256 of their texts; and the texts themselves where the recipe
    cuts parts out of documents, since these are then compared word by word.

    It does nothing to other rows, and in a corpus of tokens. Cost: a read of the shard. Raises the same errors as
    `shard_texts`.
    """
    if run.manifest.has_tokens or file.kind != KEPT or not rows:
        return
    wanted = {row["row"]: row for row in rows}
    is_cut = bool(run.recipe.cutting())
    for number, text in enumerate(shard_texts(run.store, run.writer, run.shards[file.shard])):
        if row := wanted.get(number):
            row[SHA256] = digest_of(text.encode())
            if is_cut:
                row[PUBLISHED_TEXT] = text


def digest_of(content: bytes) -> str:
    """The SHA-256 of a text in UTF-8, in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()
