"""The rows of rejects/ and dead_letters/: what is said of a document that is dropped or dead. No Beam here."""

import hashlib
from typing import Any

from refinery.transforms.core.answers import NOT_SAMPLED
from refinery.transforms.core.document import hash64
from refinery.transforms.core.rejects import RejectParams
from refinery.transforms.core.safe_text import printable
from refinery.transforms.redaction.redact_address import redact_address

Row = dict[str, Any]


def is_rejected(reason: str, origin: str, rejects: RejectParams, is_listed: bool = False) -> bool:
    """Whether rejects/ has a document that was dropped for a reason: by hash, or whatever the rate."""
    sampled = hash64("reject", reason, origin) < rejects.rate * 2**64
    return reason != NOT_SAMPLED and (sampled or is_listed)


def reject_row(
    stage: str, reason: str, source: str, url: str, origin: str, text: str, found: str, rejects: RejectParams
) -> Row:
    """The row of a dropped document. text: "" where it may not be quoted. found: `Answer.summary`.

    Its address is redacted here, for every stage and reader: those before the stage of secrets, and that stage itself,
    have it as it was found.
    """
    return {
        "stage": stage,
        "reason": reason,
        "source": source,
        "url": redact_address(url),
        "origin": printable(origin),
        "excerpt": printable(text[: rejects.excerpt_chars]),
        "found": printable(found),
    }


def dead_row(stage: str, error: str, source: str, origin: str, data: bytes, size: int) -> Row:
    """The row of a dead document or record of `size` bytes. data: what there is of it; hashed, never kept."""
    return {
        "stage": stage,
        "error": error,
        "source": source,
        "origin": printable(origin),
        "sha256": hashlib.sha256(data).hexdigest(),
        "size": size,
    }
