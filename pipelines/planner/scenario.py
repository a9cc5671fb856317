"""A plan: every input, and what each stage of the funnel keeps."""

from collections.abc import Mapping
from dataclasses import dataclass

from refinery.pipelines.planner.formulas import compute, product
from refinery.pipelines.planner.inputs import BY_NAME, OF_TARGET, REFERENCE, check_input
from refinery.pipelines.planner.presets import PRESETS, check_stages


@dataclass(frozen=True)
class Scenario:
    """A plan: every input, and every stage's retention in the order of the lane.

    Raises ValueError for an input that is missing, unknown or impossible.
    """

    inputs: Mapping[str, float]
    retentions: Mapping[str, float]

    def __post_init__(self) -> None:
        if self.inputs.keys() != BY_NAME.keys():
            raise ValueError(f"inputs: {', '.join(sorted(self.inputs.keys() ^ BY_NAME.keys()))} missing or unknown")
        check_stages(self.retentions)
        for name, value in self.inputs.items():
            check_input(BY_NAME[name], value)

    def values(self) -> dict[str, float]:
        """Every quantity by name: the inputs, "retention", and what the formulas give."""
        return compute({**self.inputs, "retention": product(self.retentions)})


def scenario(given: Mapping[str, float], retentions: Mapping[str, float] | None = None) -> Scenario:
    """The reference case with other inputs or retentions. Without "raw" it reads what a target of its own needs."""
    for name, value in given.items():
        check_input(BY_NAME[name], value)
    kept = PRESETS["reference"].retentions if retentions is None else dict(retentions)
    check_stages(kept)
    inputs = {**REFERENCE, **given}
    if "raw" not in given and (retentions is not None or any(name in given for name in OF_TARGET)):
        inputs["raw"] = compute({**inputs, "retention": product(kept)})["raw_needed"]
    return Scenario(inputs, kept)
