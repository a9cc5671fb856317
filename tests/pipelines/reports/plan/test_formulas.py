"""The reference case, and what a formula may be."""

import math
from itertools import pairwise

import pytest

from refinery.pipelines.recipe.recipe import find_lane
from refinery.pipelines.reports.plan.formulas import FORMULAS, compute, product
from refinery.pipelines.reports.plan.inputs import BY_NAME, INPUTS, REFERENCE
from refinery.pipelines.reports.plan.javascript import expression, to_javascript
from refinery.pipelines.reports.plan.outputs import OUTPUTS
from refinery.pipelines.reports.plan.presets import PRESETS, STAGES
from refinery.pipelines.reports.plan.scenario import on_hosts, scenario


def test_the_reference_case() -> None:
    """Retentions .50 .40 .50 .50 .50 .40 .95 1.00; 14.8 T tokens of 4 bytes; 6 PB in 14 days; 54 days on 2,048 GPUs."""
    kept = list(PRESETS["reference"].kept.values())
    assert kept == [0.50, 0.40, 0.50, 0.50, 0.50, 0.40, 0.95, 1.00]
    values = scenario({}).values()
    assert values["retention"] == pytest.approx(0.0095, rel=1e-12)
    assert values["raw_needed"] == pytest.approx(6.23e15, rel=1e-3)
    assert values["cores"] == pytest.approx(4960, abs=0.5)
    assert values["hosts"] == 78
    assert values["train_speed"] == pytest.approx(3.17e6, rel=1e-3)
    assert values["gpu_speed"] == pytest.approx(1549, abs=0.5)
    assert values["loader_speed"] == pytest.approx(12.7e6, rel=1e-3)
    assert values["output_tokens"] == pytest.approx(6e15 * 0.0095 / 4)


def test_two_of_the_figures_handed_down_belong_to_other_units() -> None:
    """docs/planning.md says so: at 10 MB/s per core 6 PB in 14 days take 496 cores, and 3.17 M tokens/s of 4 bytes are
    12.7 MB/s."""
    faster = scenario({"core_speed": 10e6}).values()
    assert faster["cores"] == pytest.approx(496, abs=0.5)
    assert faster["hosts"] == 8
    assert scenario({}).inputs["core_speed"] == 1e6
    assert scenario({}).values()["loader_speed"] < 13e6


def test_every_stage_is_one_of_the_lane_in_its_order() -> None:
    assert find_lane("web").funnel == STAGES
    for preset in PRESETS.values():
        places = [STAGES.index(stage) for stage in preset.kept]
        assert all(a < b for a, b in pairwise(places)), preset.name
        assert list(preset.retentions) == list(STAGES)
    lazy, reference, strict = (product(PRESETS[name].retentions) for name in ("lazy", "reference", "strict"))
    assert lazy > reference > strict


def test_formulas_need_only_what_is_known_by_then() -> None:
    known = {*BY_NAME, "retention"}
    for formula in FORMULAS:
        assert set(formula.__code__.co_varnames[: formula.__code__.co_argcount]) <= known, formula.__name__
        assert formula.__doc__, formula.__name__
        known.add(formula.__name__)
    assert {output.name for output in OUTPUTS} <= known
    assert len({each.name for each in INPUTS}) == len(INPUTS)


def test_more_raw_bytes_give_more_tokens_and_take_more_cores() -> None:
    small, large = (compute({**REFERENCE, "raw": raw, "retention": 0.01}) for raw in (1e15, 2e15))
    for name in ("output_tokens", "cores", "pass_cost", "storage_cost", "core_hours"):
        assert large[name] > small[name], name
    assert large["raw_needed"] == small["raw_needed"]


def test_days_follow_from_hosts() -> None:
    plan = on_hosts(scenario({}), 100)
    assert plan.values()["hosts"] == pytest.approx(100, abs=1)
    assert plan.inputs["pass_days"] == pytest.approx(14 * 4960.3 / 6400, rel=1e-4)
    assert plan.values()["core_hours"] == scenario({}).values()["core_hours"]


def test_a_target_of_ones_own_reads_what_it_needs() -> None:
    for given in ({"tokens": 3e11}, {"bytes_per_token": 3.7}):
        values = scenario(given).values()
        assert values["raw"] == values["raw_needed"]
        assert values["target_share"] == pytest.approx(1, abs=1e-12)
    assert scenario({}).values()["raw"] == 6e15


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"pass_days": 0.0}, "--pass-days: 0 given"),
        ({"train_days": -1.0}, "--train-days: -1 given"),
        ({"gpus": 0.5}, "--gpus: 0.5 given"),
        ({"tokens": math.inf}, "--tokens: inf given"),
        ({"core_speed": math.nan}, "--core-speed: nan given"),
        ({"raw": 1e31}, r"--raw: 1e\+31 given"),
        ({"storage_price": -0.1}, "--storage-price: -0.1 given"),
    ],
)
def test_impossible_inputs(given: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        scenario(given)
    assert scenario({"storage_price": 0.0}).values()["storage_cost"] == 0


@pytest.mark.parametrize(
    ("kept", "message"),
    [
        ({"extract": 0.0}, "retention of extract: 0 given"),
        ({"extract": 11.0}, "retention of extract: 11 given"),
        ({"extract": math.nan}, "retention of extract: nan given"),
        ({"extract": 1e-13}, "the stages together leave 1e-13"),
    ],
)
def test_impossible_retentions(kept: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        scenario({}, {**PRESETS["reference"].retentions, **dict.fromkeys(STAGES, 1.0), **kept})


def test_formulas_in_javascript() -> None:
    assert to_javascript(FORMULAS[:1]) == "v.raw_needed = ((v.tokens * v.bytes_per_token) / v.retention);"
    assert all(f"v.{formula.__name__} = " in to_javascript(FORMULAS) for formula in FORMULAS)

    def powers(raw: float) -> float:
        return raw**2

    def foreign(raw: float) -> float:
        return math.sqrt(raw)

    def steps(raw: float) -> float:
        double = raw * 2
        return double

    for formula, message in ((powers, r"raw \*\* 2"), (foreign, r"math.sqrt"), (steps, "double is not known")):
        with pytest.raises(ValueError, match=message):
            expression(formula)
