"""A plan from a finished run: what the whole takes, of which the run is a sample, and how sure that is."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from refinery.pipelines.recipe.quantities.quantity import show
from refinery.pipelines.recipe.recipe import find_lane
from refinery.pipelines.reports.plan.extrapolate import Copies, Forecast, copies_in, forecast, why_none
from refinery.pipelines.reports.plan.formulas import HOUR
from refinery.pipelines.reports.plan.inputs import REFERENCE
from refinery.pipelines.reports.plan.measured import Measured
from refinery.pipelines.reports.plan.scenario import Scenario, scenario
from refinery.transforms.dedup.cutting_pass import CuttingPass

DEDUP = tuple(stage.name for stage in find_lane("web").dedup)
# Cut what other documents have, too; their growth is not modelled.
LINEAR = tuple(stage.name for stage in find_lane("web").shards if isinstance(stage, CuttingPass))
MOST_TIMES = 1e9  # the whole over the sample


@dataclass(frozen=True)
class FromRun:
    """times: the whole's bytes over the run's. forecast: None, with the reason in measured.why, where files are too few
    or unknown; then copies are taken to be as frequent as in the run."""

    measured: Measured
    times: float
    forecast: Forecast | None
    plan: Scenario

    @property
    def retentions(self) -> Mapping[str, float]:
        return self.plan.retentions


def plan_from(measured: Measured, given: Mapping[str, float], share: float = 0.0) -> FromRun:
    """The plan with these inputs given, everything else measured or the reference's.

    share: how much of the whole the run read; 0: as "raw", or else the target in "tokens" says. Raises ValueError where
    that is not said or said twice, or the target is beyond reach.
    """
    said = sorted({"--share": bool(share), "--raw": "raw" in given}.items())
    if all(known for _, known in said) or not (any(known for _, known in said) or "tokens" in given):
        raise ValueError("--from: say how large the whole is, by one of --share, --raw and --tokens")
    copies = copies_in(measured.sample) if measured.sample and not why_none(measured.sample) else None
    if share:
        times = 1 / share
    elif "raw" in given:
        times = given["raw"] / measured.raw
    else:
        times = _times_for(measured, copies, given["tokens"])
    if times < 1:
        raise ValueError(f"--raw: {given['raw']:g} given, but the run itself read {measured.raw:,.0f} bytes")
    found = forecast(measured.sample, times, copies) if measured.sample and copies else None
    kept = {stage: _rounded(value) for stage, value in measured.retentions.items()}
    if found:
        ran = [stage for stage in DEDUP if kept[stage] != 1] or [DEDUP[-1]]
        kept[ran[-1]] = _rounded(kept[ran[-1]] * found.distinct.middle / found.in_sample)
    inputs = {"bytes_per_token": _rounded(measured.text / measured.tokens), "token_bytes": measured.token_bytes}
    if measured.seconds:
        inputs["core_speed"] = _rounded(measured.raw / measured.seconds)
    if share:
        inputs["raw"] = _rounded(measured.raw * times)
    plan = scenario({**inputs, **given}, kept)
    if "tokens" not in given:  # the target is what comes out
        tokens = _rounded(plan.values()["output_tokens"] * (1 - 1e-4))
        plan = replace(scenario({**plan.inputs, "tokens": tokens}, kept), derived="tokens")
    why = measured.why or (why_none(measured.sample) if measured.sample else "")
    return FromRun(replace(measured, why=why), times, found, plan)


def _rounded(value: float) -> float:
    """To five digits: for fields that people read and change; far finer than any interval."""
    return float(f"{value:.5g}")


def _times_for(measured: Measured, copies: Copies | None, tokens: float) -> float:
    """How many times the run's bytes give that many tokens; by bisection, since copies grow with the whole."""
    if measured.tokens > tokens:
        raise ValueError(f"--tokens: {tokens:g} given; the run itself has {measured.tokens:,.0f} already")

    def given(times: float) -> float:
        if measured.sample is None or copies is None:
            return measured.tokens * times
        return forecast(measured.sample, times, copies).tokens.middle

    if given(MOST_TIMES) < tokens:
        raise ValueError(f"--tokens: {tokens:g} given; {MOST_TIMES:g} times what the run read would not give that many")
    low, high = 1.0, MOST_TIMES
    for _ in range(60):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if given(middle) < tokens else (low, middle)
    return high


def forecast_lines(found: FromRun) -> Iterator[str]:
    """What was measured and what the whole will be, before the plan itself."""
    run, said = found.measured, found.forecast
    files = f"{run.files:,} file{'s' * (run.files != 1)}"
    per_file = f" ({run.stored / run.raw:.3g} bytes in the files for each byte read)" if run.raw else ""
    yield f"measured: {show(run.raw, 'bytes')} of {files}{per_file}, {show(run.tokens, 'tokens')}"
    if run.seconds:
        yield f"  {show(run.raw / run.seconds, 'bytes/s')} per core through all stages, without starting up"
    else:
        speed = show(REFERENCE["core_speed"], "bytes/s")
        yield f"  no speed: the work location is gone; assumed is {speed} per core (--core-speed)"
    rest = run.raw * (found.times - 1)
    hours = show(rest / found.plan.inputs["core_speed"] / HOUR)
    yield f"the whole: {found.times:,.4g} times that; the rest: {show(rest, 'bytes')}, {hours} core hours"
    if said is None:
        yield f"  no interval: {run.why}"
        yield "  copies are taken to be as frequent as in the run; in a larger whole there are more"
    else:
        for what, tokens in (("the whole gives", said.tokens), ("the rest adds", said.rest)):
            low, middle, high = (show(each, "tokens") for each in (tokens.low, tokens.middle, tokens.high))
            yield f"  {what} {middle}; 95 % interval {low} to {high}"
        share, sampled = said.distinct, show(said.in_sample, "share")
        low, middle, high = (show(each, "share") for each in (share.low, share.middle, share.high))
        yield f"  copies in other files leave {middle} of them, {low} to {high}; in the run {sampled}"
        yield "  (files taken for drawn at random and alike; how: docs/planning.md)"
    for stage in LINEAR:
        if run.retentions.get(stage, 1.0) != 1:
            yield f"  {stage}: cuts what documents share, more of it in a larger whole; taken to be as in the run"
    yield ""
