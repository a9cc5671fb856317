"""A plan from a finished run: what the whole takes, of which the run is a sample, and how sure that is."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from refinery.pipelines.planner.extrapolate import Forecast, forecast
from refinery.pipelines.planner.formulas import HOUR
from refinery.pipelines.planner.inputs import REFERENCE
from refinery.pipelines.planner.measured import Measured
from refinery.pipelines.planner.quantity import show
from refinery.pipelines.planner.scenario import Scenario, scenario
from refinery.pipelines.recipe.recipe import find_lane

DEDUP = tuple(stage.name for stage in find_lane("web").dedup)
LINEAR = ("substrings", "lines")  # cut what other documents have, too; their growth is not modelled
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
    if bool(share) == ("raw" in given) and (share or "tokens" not in given):
        raise ValueError("--from: say how large the whole is, by one of --share, --raw and --tokens")
    if share:
        times = 1 / share
    elif "raw" in given:
        times = given["raw"] / measured.raw
    else:
        times = _times_for(measured, given["tokens"])
    found, why = _forecast(measured, times)
    measured = replace(measured, why=why)
    kept = dict(measured.retentions)
    if found:
        ran = [stage for stage in DEDUP if kept[stage] != 1] or [DEDUP[-1]]
        kept[ran[-1]] *= found.distinct.middle / found.in_sample
    inputs = {"bytes_per_token": measured.text / measured.tokens, "raw": measured.raw * times}
    inputs["token_bytes"] = measured.token_bytes
    if measured.seconds:
        inputs["core_speed"] = measured.raw / measured.seconds
    inputs["tokens"] = found.tokens.middle if found else measured.tokens * times
    return FromRun(measured, times, found, scenario({**inputs, **given}, kept))


def _forecast(measured: Measured, times: float) -> tuple[Forecast | None, str]:
    if measured.sample is None:
        return None, measured.why
    try:
        return forecast(measured.sample, times), ""
    except ValueError as error:
        if times < 1:
            raise
        return None, str(error)


def _times_for(measured: Measured, tokens: float) -> float:
    """How many times the run's bytes give that many tokens; by bisection, since copies grow with the whole."""
    low, high = 1.0, MOST_TIMES
    for _ in range(100):
        middle = (low * high) ** 0.5
        found, _why = _forecast(measured, middle)
        low, high = (
            (middle, high) if (found.tokens.middle if found else measured.tokens * middle) < tokens else (low, middle)
        )
    if high == MOST_TIMES:
        raise ValueError(f"--tokens: {tokens:g} given; {MOST_TIMES:g} times what the run read would not give that many")
    if measured.tokens > tokens:
        raise ValueError(f"--tokens: {tokens:g} given; the run itself has {measured.tokens:,.0f} already")
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
        low, middle, high = (
            show(each, "share") for each in (said.distinct.low, said.distinct.middle, said.distinct.high)
        )
        yield f"  copies in other files leave {middle} of the tokens, {low} to {high}; in the run {show(said.in_sample, 'share')}"
        yield "  (files taken for drawn at random and alike; how: docs/planning.md)"
    for stage in LINEAR:
        if run.retentions.get(stage, 1.0) != 1:
            yield f"  {stage}: cuts what documents share, more of it in a larger whole; taken to be as in the run"
    yield ""
