"""What became of a document that one corpus has and the other lacks, in the words of the one that lacks it."""

from dataclasses import dataclass
from enum import IntEnum


class Kind(IntEnum):
    """How the other run lost a document. Where it says several things of a record, the smaller number is taken."""

    CHANGED = 0
    """the same record gave another text, which the other corpus has in its stead"""
    SPLIT = 1
    """the same record was split into other documents, which the other corpus has"""
    SAME_TEXT_ELSEWHERE = 2
    """the same record gave another text, which both corpora have, from other records"""
    TAKEN_DOWN = 3
    """it was taken out of the finished corpus"""
    REMOVED = 4
    """deduplication removed it, in favour of another document"""
    DROPPED = 5
    """a rule dropped it; it is in the sample of rejects"""
    DEAD = 6
    """it failed: a dead letter"""
    PASSED = 7
    """it came through cleaning and deduplication; which later stage dropped it is not listed"""
    REMOVED_ELSEWHERE = 8
    """its record was not read; the same text of another record was removed by deduplication"""
    NOT_READ = 9
    """its file is not among the inputs"""
    UNLISTED = 10
    """its file was read, and cleaning lost it: dropped but not in the sample of rejects, or left out by a reader"""
    UNKNOWN = 11
    """nothing of it is recorded"""

    @property
    def word(self) -> str:
        """As in JSON and in the file of documents.

        >>> Kind.NOT_READ.word
        'not-read'
        """
        return self.name.lower().replace("_", "-")


MEANINGS = {
    Kind.CHANGED: "same page, another text",
    Kind.SPLIT: "same page, split into other documents",
    Kind.SAME_TEXT_ELSEWHERE: "same page, now with a text that both have from another page",
    Kind.TAKEN_DOWN: "removed by `refinery remove`",
    Kind.REMOVED: "removed as a duplicate",
    Kind.DROPPED: "dropped",
    Kind.DEAD: "failed",
    Kind.PASSED: "dropped after deduplication, not in the sample of rejects",
    Kind.REMOVED_ELSEWHERE: "not read; its text was read elsewhere, and removed as a duplicate",
    Kind.NOT_READ: "its file was not read",
    Kind.UNLISTED: "lost in cleaning, not in the sample of rejects",
    Kind.UNKNOWN: "not recorded",
}
NAMED = (Kind.TAKEN_DOWN, Kind.REMOVED)  # said of one document, whatever else is said of its record
# Of these a replay of the record may find the rule.
REPLAYED = (Kind.PASSED, Kind.UNLISTED, Kind.UNKNOWN)


@dataclass(frozen=True)
class Fate:
    """stage, reason: where they are known; of a dead letter, its error. scope: of a removal, what was compared."""

    kind: Kind
    stage: str = ""
    reason: str = ""
    scope: str = ""


# A record whose documents are known to be in both corpora. split: it is there with other documents of the same record.
ASIDE = [("id", "S16"), ("origin", "S16"), ("split", "?")]
# A row of what the other run says of a record: its id ("" where that is not said), its origin's hash, the id of the
# document kept instead ("" where there is none), the number of its fate.
EVIDENCE = [("id", "S16"), ("origin", "S16"), ("other", "S16"), ("fate", "<u4")]
