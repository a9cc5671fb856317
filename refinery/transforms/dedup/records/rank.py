"""The total order that decides which of several copies is kept."""

from datetime import UTC, datetime
from typing import Literal

from refinery.transforms.code.paths import VENDORED, folders_above, path_of
from refinery.transforms.core.document import Document, hash64, text_bytes
from refinery.transforms.core.params import Params

RANK_BYTES = 24
WORST = 2**64 - 1
MAX_FOLDERS, MAX_SIZE = 2**15 - 1, 2**48 - 1  # what fits beside each other
YEAR_ONE = datetime(1, 1, 1, tzinfo=UTC)


class RankParams(Params):
    """Which of several copies is kept, among sources of one priority."""

    prefer: Literal["longest", "newest", "first", "provenance"] = "longest"
    """`longest`: most UTF-8 bytes; `newest`: latest meta `date`; `first`: lowest position in its source; `provenance`,
    for source files: not in a folder of other people's code, then in fewest folders, then most bytes"""


def rank_key(doc: Document, priority: int, params: RankParams) -> bytes:
    """24 bytes; of two documents the one with the smaller key is kept.

    Three big-endian 64-bit numbers: priority of the source (lower wins), preference, and a hash of source, url and
    origin. Ties are broken by the documents' ids. Raises OverflowError for a negative priority.
    """
    if params.prefer == "longest":
        preference = WORST - text_bytes(doc.text)
    elif params.prefer == "newest":
        preference = WORST - seconds_of_date(doc.meta.get("date", ""))
    elif params.prefer == "provenance":
        preference = provenance_of(path_of(doc), text_bytes(doc.text))
    else:
        preference = doc.position
    tie = hash64("rank", doc.source, doc.url, doc.origin)
    return priority.to_bytes(8, "big") + preference.to_bytes(8, "big") + tie.to_bytes(8, "big")


def provenance_of(path: str, size: int) -> int:
    """64 bits, less for the file that others were rather copied from than the copy.

    The repository's own file comes before one in a folder such as third_party/, whatever their sizes: it has the
    history, the licence and the name that others know. Then the file in fewer folders, since what a project takes over
    it puts below a folder of its own; then the larger one. Licences do not count: the stricter of two may well be the
    one that holds.
    """
    vendored = VENDORED.search(path) is not None
    folders = min(folders_above(path), MAX_FOLDERS)
    return vendored << 63 | folders << 48 | MAX_SIZE - min(size, MAX_SIZE)


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
