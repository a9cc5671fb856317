"""What a plan says, quantity by quantity: one declaration for the text, the JSON's order and the page."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from refinery.pipelines.recipe.quantities.prices import UNVERIFIED
from refinery.pipelines.recipe.quantities.quantity import show
from refinery.pipelines.reports.plan.from_run import FromRun
from refinery.pipelines.reports.plan.inputs import MET
from refinery.pipelines.reports.plan.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Output:
    """A line: heading, the quantity's name, how it is formatted, what it is."""

    group: str
    name: str
    kind: str
    label: str


CORPUS, PASS, LOADER, COST = "The corpus", "The offline pass", "The loader's contract", "Cost"
OUTPUTS = (
    Output(CORPUS, "retention", "share", "of the raw bytes stays"),
    Output(CORPUS, "raw_needed", "bytes", "raw, for the target"),
    Output(CORPUS, "raw", "bytes", "raw, to be read"),
    Output(CORPUS, "output_tokens", "tokens", "come out"),
    Output(CORPUS, "target_share", "share", "of the target"),
    Output(CORPUS, "corpus_bytes", "bytes", "of shards to store"),
    Output(PASS, "pass_speed", "bytes/s", "to be read, all hosts together"),
    Output(PASS, "cores", "number", "cores"),
    Output(PASS, "hosts", "count", "hosts"),
    Output(PASS, "finish_days", "number", "days, on these whole hosts"),
    Output(PASS, "core_hours", "number", "core hours of work"),
    Output(LOADER, "train_speed", "tokens/s", "all GPUs together"),
    Output(LOADER, "gpu_speed", "number", "tokens/s for each GPU"),
    Output(LOADER, "loader_speed", "bytes/s", "from the storage, all nodes together"),
    Output(COST, "work_cost", "dollars", "cores and memory"),
    Output(COST, "shuffle_cost", "dollars", "the global shuffle"),
    Output(COST, "pass_cost", "dollars", "the offline pass"),
    Output(COST, "storage_cost", "dollars", "storage: raw during the pass, shards during training"),
)
# What stands in the place of the target's share where it would be 100 % by construction.
DERIVED = {
    "raw": "of the target: the raw bytes were computed from it (--raw says what there is)",
    "tokens": "no target was given (--tokens); what comes out is taken for it",
}
WIDTH = 18  # of the numbers' column


def plan_lines(plan: Scenario) -> Iterator[str]:
    """The plan as text."""
    values = plan.values()
    kept = " × ".join(f"{stage} {value:.3g}" for stage, value in plan.retentions.items() if abs(value - 1) >= 5e-4)
    yield f"retention: {kept or 'every stage keeps everything'}"
    group = ""
    for output in OUTPUTS:
        if output.group != group:
            group = output.group
            yield ""
            yield group
        if output.name == "target_share" and plan.derived:
            yield f"{'–':>{WIDTH}}  {DERIVED[plan.derived]}"
            continue
        yield f"{show(values[output.name], output.kind):>{WIDTH}}  {output.label}"
        if output.name == "target_share" and values["target_share"] < MET:
            missing = show(values["raw_needed"] - values["raw"], "bytes")
            yield f"{'':>{WIDTH}}  the target is missed: {missing} more raw text is needed (--raw)"
    yield ""
    speed, days = show(plan.inputs["core_speed"], "bytes/s"), show(plan.inputs["pass_days"])
    cores = show(plan.inputs["cores_per_host"], "count")
    yield f"(at {speed} per core through all phases, within {days} days, on hosts of {cores} cores;"
    yield f"{UNVERIFIED})"


def plan_json(plan: Scenario, found: FromRun | None) -> str:
    """Every quantity in SI units, the retentions, and with `found` what the run says of the whole, on one line."""
    said: dict[str, Any] = {"retentions": dict(plan.retentions), "quantities": plan.values(), "derived": plan.derived}
    if found:
        forecast = asdict(found.forecast) if found.forecast else None
        said["from"] = {"times": found.times, "forecast": forecast, "why": found.measured.why}
    return json.dumps(said, allow_nan=False)
