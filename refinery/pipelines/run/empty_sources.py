"""A source of which nothing is kept: if a run drops all of it, the recipe is almost certainly wrong about it.

Such a run would end well: every document is accounted for. So it fails, unless the recipe allows it.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from refinery.pipelines.run.errors import RefineError
from refinery.transforms.core.answers import NOT_SAMPLED

if TYPE_CHECKING:
    from refinery.pipelines.recipe.recipe import FailureParams

SHOWN = 3  # of the places where a source's documents went
LARGE_LOSS = 0.9  # of a source's documents, at one stage
FEW = 10  # documents about which a share says nothing
NO_PAGES = (NOT_SAMPLED, "record-type")  # reasons of reading that say nothing about documents


def may_be_empty(failures: "FailureParams", source: str) -> bool:
    """Whether the recipe allows that nothing of a source is kept."""
    allowed = failures.allow_empty
    return allowed if isinstance(allowed, bool) else source in allowed


def refuse_empty(problems: Mapping[str, str], failures: "FailureParams", say: Callable[[str], None]) -> None:
    """Raises RecipeError, a line for each source whose first files hold no document; says so if the recipe allows it.

    problems: source -> what is wrong, as `probe_sources` found.
    """
    for source, problem in problems.items():
        if may_be_empty(failures, source):
            say(f"warning: source {source}: {problem}")
    from refinery.transforms.core.data_text.plain_yaml import (
        RecipeError,  # commands that only look at a run do not need it
    )

    fatal = [f"source {name}: {problem}" for name, problem in problems.items() if not may_be_empty(failures, name)]
    if fatal:
        raise RecipeError("\n".join(fatal))


def check_sources(funnel: Sequence[Mapping[str, Any]], failures: "FailureParams", off: Collection[str] = ()) -> None:
    """Raises RefineError where nothing is left of a source. funnel: of the phases so far, every source in it. off:
    names of sources that are switched off, of which nothing is expected.
    """
    lost = empty_sources(row for row in funnel if row["source"] not in off)
    if problems := [_describe(funnel, source) for source in lost if not may_be_empty(failures, source)]:
        raise RefineError(
            "\n".join(problems) + "\nFix the source, or the rule that dropped it (`refinery try` shows what "
            "each rule measures), and choose another --output. Or, to go on without it, run the same command with "
            "--set failures.allow_empty=true: it continues where it stopped."
        )


def empty_sources(funnel: Iterable[Mapping[str, Any]]) -> list[str]:
    """Sources of which the stages so far kept nothing."""
    kept = {row["source"]: row["kept"]["documents"] for row in funnel}
    return [source for source, count in kept.items() if not count]


def losses(funnel: Iterable[Mapping[str, Any]], source: str) -> list[tuple[str, str, int]]:
    """(stage, reason, documents) of what was dropped of a source or is dead, the largest first."""
    found = [
        (row["stage"], reason, entry["documents"])
        for row in funnel
        if row["source"] == source
        for outcome in ("dropped", "dead")
        for reason, entry in row[outcome].items()
    ]
    return sorted(found, key=lambda loss: (-loss[2], loss[0], loss[1]))


def _describe(funnel: Sequence[Mapping[str, Any]], source: str) -> str:
    read = next(row["in"]["documents"] for row in funnel if row["source"] == source)
    if not read:
        return f"source {source}: no record was found in its files"
    most = ", ".join(f"{stage} {reason} {count:,}" for stage, reason, count in losses(funnel, source)[:SHOWN])
    what = "its only record is not kept" if read == 1 else f"none of its {read:,} records is kept"
    return f"source {source}: {what}: {most}"


def loss_warnings(funnel: Iterable[Mapping[str, Any]]) -> list[str]:
    """A line for each stage that took more than 90 % of a source's documents (of 10 and more), with the main reason.

    What `sample` left out and a crawler's own notes do not count as documents here.
    """
    lines = []
    for row in funnel:
        lost = {
            reason: entry["documents"]
            for outcome in ("dropped", "dead")
            for reason, entry in row[outcome].items()
            if reason not in NO_PAGES
        }
        count = sum(lost.values())
        total = count + row["kept"]["documents"]
        if total >= FEW and count > LARGE_LOSS * total:
            reason, most = min(lost.items(), key=lambda item: (-item[1], item[0]))
            lines.append(
                f"warning: {row['stage']} took {count / total:.1%} of the {total:,} documents of source "
                f"{row['source']}, {most:,} as {reason}"
            )
    return lines
