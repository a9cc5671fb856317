"""What became of a document, in a line."""

from refinery.pipelines.corpus.trace.answers import (
    Answer,
    Cycle,
    Dead,
    Elsewhere,
    End,
    Kept,
    Missing,
    Passed,
    Rejected,
    Removed,
    Replayed,
    TakenDown,
)


def outcome_of(answer: Answer | End) -> str:
    """The line."""
    if isinstance(answer, Kept):
        return f"kept: {answer.shard}, document {answer.document}"
    if isinstance(answer, Removed):
        return f"removed: {answer.steps[0].reason}, similarity {answer.steps[0].similarity:.3f}"
    if isinstance(answer, TakenDown):
        return f"taken down by takedown {answer.takedown}"
    if isinstance(answer, Rejected):
        return f"dropped by {answer.stage}: {answer.reason}"
    if isinstance(answer, Dead):
        return f"failed in {answer.stage}: {answer.error}"
    if isinstance(answer, Passed):
        return "dropped after deduplication; the rule is not listed"
    if isinstance(answer, Elsewhere) and answer.is_withheld:
        return "dropped for its licence, and so are its copies"
    if isinstance(answer, Elsewhere):
        return f"kept in the corpus {answer.prefix}"
    if isinstance(answer, Replayed):
        return "listed nowhere; its record was read"
    if isinstance(answer, Missing):
        return "not found"
    return "in a cycle of removals: the corpus is damaged" if isinstance(answer, Cycle) else "unknown"
