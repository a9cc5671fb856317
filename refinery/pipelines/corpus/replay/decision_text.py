"""What a stage decided about a document, as lines for a terminal. Values come from inputs, so they are escaped."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from refinery.transforms.core.safe_text import safe

if TYPE_CHECKING:
    from refinery.pipelines.corpus.replay.try_document import Decision
    from refinery.transforms.core.measured_rules import Reading


def decision_lines(decisions: "Iterable[Decision]", every: bool = True) -> Iterator[str]:
    """A line a stage, and below it what belongs to it. every: also rules that do not drop it."""
    for each in decisions:
        size = f"{each.size:,} bytes" if each.size else ""
        yield f"{safe(each.stage):<28}{each.outcome:<26}{size}".rstrip()
        yield from detail_lines(each, every)


def detail_lines(decision: "Decision", every: bool = True) -> Iterator[str]:
    """A line for each note, for each rule that measured something (those that drop it marked), and why it was lost."""
    for name, value in (decision.notes or {}).items():
        yield f"    {safe(name)} = {safe(str(value))}"
    for reading in decision.readings:
        if reading.value is not None and (every or reading.drops):
            yield _reading_line(reading)
    if decision.reason:
        yield f"  {'!' if decision.outcome == 'dead' else '-'} {safe(decision.reason)}"
    for name, value in (decision.limits or {}).items():
        yield f"    {safe(name)} = {safe(str(value))}"
    if decision.advice and decision.advice != "nothing":
        yield f"    {decision.advice}"


def _reading_line(reading: "Reading") -> str:
    rule, sign = reading.rule, "≥" if reading.rule.is_least else "≤"
    mark = "-" if reading.drops else " "
    form = ",.0f" if isinstance(rule.threshold, int) else ",.4g"
    return f"  {mark} {rule.key:<44}{reading.value:>12{form}}  {sign} {rule.threshold:{form}}"
