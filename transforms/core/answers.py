"""What a reader answers for a record that is no document. No Beam here: readers are declared without it."""

from dataclasses import dataclass

NOT_SAMPLED = "not-sampled"  # the one reason that says nothing about a record, so it is not worth a reject


@dataclass(frozen=True, slots=True)
class Skipped:
    """A record that a reader leaves out for a named reason: not content, not sampled, too large. `size` in bytes."""

    reason: str
    origin: str
    size: int
    url: str = ""


@dataclass(frozen=True, slots=True)
class Damaged:
    """A record, or the tail of a file, that a reader could not read. `data` (may be a part) is hashed, never kept."""

    error: str
    origin: str
    data: bytes = b""
    size: int = 0
