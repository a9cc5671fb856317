"""The charts of the plan's page: what is left behind each stage, and what the plan costs, part by part.

They are drawn here, so that they are there without scripts; page.js sets their bars and texts again when a field
changes.
"""

from collections.abc import Iterable

from refinery.pipelines.recipe.quantities.quantity import show
from refinery.pipelines.reports.pages.markup import Html, el
from refinery.pipelines.reports.plan.scenario import Scenario

# The parts of the cost, by phase of the work: quantity -> what it is.
COSTS = {
    "work_cost": "offline pass: cores and memory",
    "shuffle_cost": "offline pass: global shuffle",
    "storage_cost": "pass and training: storage",
}


def charts(plan: Scenario) -> Html:
    """Both, as one card."""
    return el("section", el("h2", "The funnel"), funnel_bars(plan), el("h2", "Cost by phase"), cost_bars(plan))


def funnel_bars(plan: Scenario) -> Html:
    """The bytes that are left behind each stage, of the raw bytes. A stage that keeps everything has no bar."""
    left = raw = plan.inputs["raw"]
    rows = [_row("raw", "raw bytes", 1.0, show(raw, "bytes"))]
    for stage, kept in plan.retentions.items():
        left *= kept
        rows.append(_row(stage, stage, left / raw, show(left, "bytes"), kept == 1))
    return el("div", rows, class_="bars-of", role="list", aria_label="bytes left behind each stage")


def cost_bars(plan: Scenario) -> Html:
    """Dollars of each part; the longest bar is the dearest one."""
    values = plan.values()
    most = max(*(values[name] for name in COSTS), 0.0) or 1.0
    rows: Iterable[Html] = [
        _row(name, said, values[name] / most, show(values[name], "dollars")) for name, said in COSTS.items()
    ]
    return el("div", rows, class_="bars-of", role="list", aria_label="dollars by phase")


def _row(name: str, label: str, part: float, text: str, hidden: bool = False) -> Html:
    drawn = el("progress", id=f"bar-{name}", max=1, value=f"{min(1.0, part):.5f}", aria_label=label)
    return el("div", el("span", label), drawn, el("b", text, id=f"text-{name}"), role="listitem", hidden=hidden)
