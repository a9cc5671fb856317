"""A plan: every input, and what each stage of the funnel keeps."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from refinery.pipelines.reports.plan.formulas import compute, finish_days, product
from refinery.pipelines.reports.plan.inputs import BY_NAME, MOST, OF_TARGET, REFERENCE, check_input
from refinery.pipelines.reports.plan.presets import PRESETS, check_stages

MOST_KEPT = 10.0  # of a stage: what a run measured may be above 1, since masks are longer than what they replace
LEAST_LEFT = 1e-12  # of all stages


@dataclass(frozen=True)
class Scenario:
    """A plan: every input, and every stage's retention in the order of the lane. derived: the input that was computed
    so that the target is met exactly: "raw", or "tokens" where no target was given; "" for a target that may be missed.

    Raises ValueError for an input that is missing, unknown or impossible.
    """

    inputs: Mapping[str, float]
    retentions: Mapping[str, float]
    derived: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if self.inputs.keys() != BY_NAME.keys():
            raise ValueError(f"inputs: {', '.join(sorted(self.inputs.keys() ^ BY_NAME.keys()))} missing or unknown")
        check_stages(self.retentions, list(self.retentions), MOST_KEPT)
        if product(self.retentions) < LEAST_LEFT:
            left = f"{product(self.retentions):g} of the bytes, {LEAST_LEFT:g} or more is allowed"
            raise ValueError(f"retention: the stages together leave {left}")
        for name, value in self.inputs.items():
            check_input(BY_NAME[name], value)

    def values(self) -> dict[str, float]:
        """Every quantity by name: the inputs, "retention", and what the formulas give."""
        return compute({**self.inputs, "retention": product(self.retentions)})


def scenario(given: Mapping[str, float], retentions: Mapping[str, float] | None = None) -> Scenario:
    """The reference case with other inputs or retentions. Without "raw" it reads what a target of its own needs.

    Raises ValueError for an impossible input or retention.
    """
    kept = PRESETS["reference"].retentions if retentions is None else dict(retentions)
    plan = Scenario({**REFERENCE, **given}, kept)
    if "raw" not in given and (retentions is not None or any(name in given for name in OF_TARGET)):
        plan = Scenario({**plan.inputs, "raw": plan.values()["raw_needed"]}, kept, "raw")
    return plan


def on_hosts(plan: Scenario, hosts: float) -> Scenario:
    """The same plan on that many hosts: the offline pass takes the days that they need. Raises ValueError."""
    if not 1 <= hosts <= MOST:
        raise ValueError(f"--hosts: {hosts:g} given, 1 or more is allowed")
    names = ("raw", "cores_per_host", "core_speed")
    days = finish_days(hosts=hosts, **{name: plan.inputs[name] for name in names})
    return Scenario({**plan.inputs, "pass_days": days}, plan.retentions, plan.derived)
