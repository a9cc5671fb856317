"""The total order that decides which of several copies is kept."""

from datetime import UTC, datetime
from typing import Literal

from refinery.transforms.core.document import Document, hash64, text_bytes
from refinery.transforms.core.params import Params

RANK_BYTES = 24
WORST = 2**64 - 1
YEAR_ONE = datetime(1, 1, 1, tzinfo=UTC)


class RankParams(Params):
    """Which of several copies is kept, among sources of one priority."""

    prefer: Literal["longest", "newest", "first"] = "longest"
    """`longest`: most UTF-8 bytes; `newest`: latest meta `date`; `first`: lowest position in its source"""


def rank_key(doc: Document, priority: int, params: RankParams) -> bytes:
    """24 bytes; of two documents the one with the smaller key is kept.

    Three big-endian 64-bit numbers: priority of the source (lower wins), preference, and a hash of source, url and
    origin. Ties are broken by the documents' ids. Raises OverflowError for a negative priority.
    """
    if params.prefer == "longest":
        preference = WORST - text_bytes(doc.text)
    elif params.prefer == "newest":
        preference = WORST - seconds_of_date(doc.meta.get("date", ""))
    else:
        preference = doc.position
    tie = hash64("rank", doc.source, doc.url, doc.origin)
    return priority.to_bytes(8, "big") + preference.to_bytes(8, "big") + tie.to_bytes(8, "big")


def seconds_of_date(date: object) -> int:
    """Seconds from the year 1 to a date, 0 for anything that is not one.

    Takes ISO 8601 as `datetime.fromisoformat` does, and the 14 digits YYYYMMDDhhmmss of ARC files; no zone means UTC.
    """
    text = str(date).strip()
    if len(text) == 14 and text.isascii() and text.isdigit():
        text = f"{text[:8]}T{text[8:]}"
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return 0
    if parsed.tzinfo is None:
        parsed = parsed.replace(tzinfo=UTC)
    seconds = (parsed - YEAR_ONE).total_seconds()
    return max(0, int(seconds))
