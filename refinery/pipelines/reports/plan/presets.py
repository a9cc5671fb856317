"""Retentions by stage: what a stage keeps of the bytes that enter it. Stages are the lane's, in its order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from refinery.pipelines.recipe.recipe import find_lane
from refinery.transforms.core.wording import meant

STAGES = find_lane("web").funnel


@dataclass(frozen=True)
class Preset:
    """A funnel by its stages' retentions; others keep everything. source: where the figures are from."""

    name: str
    summary: str
    source: str
    kept: Mapping[str, float]

    def __post_init__(self) -> None:
        check_stages(self.kept)

    @property
    def retentions(self) -> dict[str, float]:
        """Of every stage of the lane, in order."""
        return {stage: self.kept.get(stage, 1.0) for stage in STAGES}


def check_stages(kept: Mapping[str, float], stages: Sequence[str] = STAGES, most: float = 1.0) -> None:
    """Raise ValueError for a stage that is not among `stages`, and for a retention not above 0 and up to `most`."""
    for stage, value in kept.items():
        if stage not in stages:
            raise ValueError(f"retention: no stage {stage!r}; the stages are {', '.join(stages)}{meant(stage, stages)}")
        if not 0 < value <= most:
            raise ValueError(f"retention of {stage}: {value:g} given, above 0 and up to {most:g} is allowed")


# The reference's eight figures have no names. They are given to eight stages of the lane in its order; their product,
# 0.0095, and all that follows from it do not depend on that choice.
PRESETS = {
    preset.name: preset
    for preset in (
        Preset(
            "reference",
            "The reference case: eight stages, 0.95 % of the bytes stay.",
            "the reference case's figures (docs/planning.md); which stage has which is this project's reading",
            {
                "extract": 0.50,
                "language": 0.40,
                "heuristics": 0.50,
                "exact-duplicates": 0.50,
                "near-duplicates": 0.50,
                "quality": 0.40,
                "decontaminate": 0.95,
                "encode": 1.00,
            },
        ),
        Preset(
            "lazy",
            "A lazy pipeline: weak rules, exact copies alone, no classifier. More tokens, of which fewer are worth it.",
            "an assumption, to compare with; not measured",
            {"extract": 0.50, "language": 0.40, "heuristics": 0.80, "exact-duplicates": 0.60},
        ),
        Preset(
            "strict",
            "A strict pipeline: the reference with a classifier that keeps a tenth.",
            "an assumption, to compare with; not measured. Classifiers of educational pages keep about a tenth",
            {
                "extract": 0.50,
                "language": 0.40,
                "heuristics": 0.50,
                "exact-duplicates": 0.50,
                "near-duplicates": 0.50,
                "quality": 0.10,
                "decontaminate": 0.95,
                "encode": 1.00,
            },
        ),
    )
}


def chosen(name: str, kept: Mapping[str, float]) -> dict[str, float]:
    """The retentions of a preset ("": the reference's), with these instead of its own. Raises ValueError."""
    if name and name not in PRESETS:
        raise ValueError(f"preset: {name!r:.80} given, {', '.join(PRESETS)} is allowed{meant(name, PRESETS)}")
    check_stages(kept)
    return {**PRESETS[name or "reference"].retentions, **kept}
