"""What was done about licences, credentials, personal data, unwanted content and benchmarks, stage by stage."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from refinery.pipelines.reports.cards.facts import NAMED, CardFacts
from refinery.pipelines.reports.cards.markdown import code, text
from refinery.pipelines.reports.cards.tables import inline
from refinery.pipelines.reports.run.facts import StageCounts
from refinery.transforms.core.lane import AnyStage
from refinery.transforms.core.stage import CONCERNS

MOST_VALUES = 12  # parameters of a stage that a line names; the recipe has all
LONGEST = 80  # characters of a parameter's value that it shows


@dataclass(frozen=True)
class Handling:
    """A stage that takes care of something. version: in this corpus. is_on: whether the run had it. params: of the
    recipe. counts: of the funnel; None where nothing reached it."""

    stage: AnyStage
    version: int
    is_on: bool
    params: Mapping[str, Any]
    counts: StageCounts | None


def handlings(facts: CardFacts, concern: str) -> list[Handling]:
    """The stages of the corpus' lane that are declared to take care of it, in the order of the funnel."""
    counts = {stage.name: stage for stage in facts.stages}
    found = []
    for entry in facts.manifest.stages:
        stage = facts.declared.get(entry.name)
        if stage is not None and concern in stage.concerns:
            section = facts.manifest.recipe.get(stage.key)
            params = section if isinstance(section, Mapping) else {}
            found.append(Handling(stage, entry.version, bool(section), params, counts.get(stage.name)))
    return found


def handling_lines(facts: CardFacts, concern: str) -> Iterator[str]:
    """A line a stage: what it does, its parameters, what it did. Says so where nothing was done."""
    found = handlings(facts, concern)
    if not any(each.is_on for each in found):
        off = f" ({', '.join(code(each.stage.name) for each in found)} was off)" if found else ""
        known = all(entry.name in {*facts.declared, *NAMED} for entry in facts.manifest.stages)
        which = "" if known else " that is known here"
        yield f"- No stage of this run{which} takes care of {CONCERNS[concern]}{off}."
    for each in found:
        if each.is_on:
            yield f"- {code(each.stage.name)}, version {each.version}: {inline(each.stage.summary)} {_outcome(each)}"
            if each.params:
                yield f"  Parameters: {_parameters(each.params)}."
    yield ""


def _outcome(each: Handling) -> str:
    counts = each.counts
    if counts is None:
        return "No document reached it."
    dropped = ", ".join(f"{text(why)} {documents:,}" for why, (documents, _) in counts.dropped.items())
    found = ", ".join(f"{text(what)} {items:,} in {documents:,}" for what, (items, documents) in counts.found.items())
    said = [f"Of {counts.entered:,} documents it dropped {sum(n for n, _ in counts.dropped.values()):,}"]
    said[0] += f" ({dropped})." if dropped else "."
    if counts.kept_bytes != counts.entered_bytes and not counts.dropped:
        said.append("It changed texts.")
    if found:
        said.append(f"Found, items in documents: {found}.")
    return " ".join(said)


def _parameters(params: Mapping[str, Any]) -> str:
    shown = []
    for name, value in sorted(params.items()):
        plain = str(value)
        if value not in (None, "", [], {}):
            shown.append(code(f"{name}: {plain if len(plain) <= LONGEST else f'{plain[:LONGEST]}…'}"))
    more = len(shown) - MOST_VALUES
    return ", ".join(shown[:MOST_VALUES]) + (f", and {more} more in the recipe" if more > 0 else "")
