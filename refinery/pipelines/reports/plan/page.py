"""`refinery plan --html`: the plan as one page that computes, for a browser without a network.

Whatever comes from outside (the plan's values, the name of a prefix) is text in it: `pages.markup`.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from refinery.pipelines.recipe.quantities.prices import PRICES, UNVERIFIED
from refinery.pipelines.recipe.quantities.quantity import BARE, FACTORS, GRAMMARS, UNITS, grammar_of, typed
from refinery.pipelines.reports.pages.markup import Html, el
from refinery.pipelines.reports.pages.page import own_file, page
from refinery.pipelines.reports.plan.drawn import COSTS, charts
from refinery.pipelines.reports.plan.formulas import FORMULAS
from refinery.pipelines.reports.plan.inputs import COST, INPUTS, MET, MOST, PASS, TARGET, TRAIN
from refinery.pipelines.reports.plan.javascript import to_javascript
from refinery.pipelines.reports.plan.outputs import OUTPUTS
from refinery.pipelines.reports.plan.presets import PRESETS
from refinery.pipelines.reports.plan.scenario import Scenario

LEAST_SLIDER = 0.001  # of a stage's retention; smaller ones can be typed


def plan_page(plan: Scenario, measured: Mapping[str, float] | None = None, notes: str = "") -> str:
    """The page as HTML. measured: retentions of a run, as a preset of their own. notes: about that run."""
    own = {"measured": dict(measured)} if measured else {}
    presets = {name: preset.retentions for name, preset in PRESETS.items()} | own
    summaries = {name: f"{preset.summary} Figures: {preset.source}." for name, preset in PRESETS.items()}
    summaries |= dict.fromkeys(own, notes)
    script = f"function compute(v) {{\n{to_javascript(FORMULAS)}\n}}\n{own_file('page.js', __package__)}"
    data = {
        "inputs": [
            {"name": i.name, "least": i.least, "free": i.name in PRICES, "read": grammar_of(i.kind)} for i in INPUTS
        ],
        "outputs": [{"name": o.name, "kind": o.kind} for o in OUTPUTS],
        "stages": list(plan.retentions),
        "presets": presets,
        "units": UNITS,
        "grammars": {name: grammar.pattern for name, grammar in GRAMMARS.items()},
        "bare": BARE.pattern,
        "factors": FACTORS,
        "met": MET,
        "most": MOST,
        "derived": plan.derived,
        "costs": list(COSTS),
        "mostKept": max(1.0, *plan.retentions.values()),
    }
    body = (
        el(
            "header",
            el("h1", "The plan of a corpus"),
            el("p", "From raw bytes to training: move a stage's slider, or type. Nothing leaves this page."),
        ),
        el(
            "main",
            meter(),
            el("div", stage_fields(plan, summaries), input_fields(plan, [TARGET, PASS, TRAIN])),
            el("div", charts(plan), output_fields(), input_fields(plan, [COST])),
        ),
        el("footer", el("p", f"{UNVERIFIED.capitalize()}.")),
    )
    return page("The plan of a corpus", body, data, [own_file("page.css", __package__)], [script])


def meter() -> Html:
    """How much of the target the plan makes."""
    bar = {"role": "progressbar", "aria_label": "share of the target", "aria_valuemin": "0", "aria_valuemax": "100"}
    track = el("div", el("div", class_="fill", id="fill"), class_="track", id="track", **bar)
    status = el("span", el("strong", id="verdict"), " ", el("span", id="amount"), role="status")
    button = el("button", type="button", id="fit", hidden=True)
    return el("section", track, el("p", status, button), id="meter", class_="meter bad", aria_label="Output")


def stage_fields(plan: Scenario, summaries: Mapping[str, str]) -> Html:
    """A slider for each stage, and the presets. summaries: preset -> what it is."""
    buttons = [el("button", name, type="button", data_preset=name, aria_pressed="false") for name in summaries]
    used = {stage for preset in PRESETS.values() for stage in preset.kept}
    shown = [stage for stage, kept in plan.retentions.items() if kept != 1 or stage in used]
    return el(
        "section",
        el("h2", "What each stage keeps of its bytes"),
        el("div", buttons, class_="presets", role="group", aria_label="Presets"),
        [el("p", el("b", name), f": {text}") for name, text in summaries.items()],
        [stage_field(stage, plan.retentions[stage]) for stage in shown],
        el(
            "details",
            el("summary", "Stages that keep everything here"),
            [stage_field(stage, kept) for stage, kept in plan.retentions.items() if stage not in shown],
        ),
    )


def stage_field(stage: str, kept: float) -> Html:
    """A slider, and the same number to be typed."""
    slide, number = f"slide-{stage}", f"kept-{stage}"
    step = LEAST_SLIDER
    return el(
        "div",
        el("label", stage, for_=slide),
        el("input", type="range", id=slide, min=step, max=1, step=step, value=typed(kept)),
        el("input", type="number", id=number, min=0, step="any", value=typed(kept), aria_label=f"{stage}, typed"),
        class_="row",
    )


def input_fields(plan: Scenario, groups: Sequence[str]) -> Iterator[Html]:
    """A field for each quantity that is given."""
    wanted = [each for each in INPUTS if each.group in groups]
    for group, inputs in groupby(wanted, key=lambda each: each.group):
        fields = [
            el(
                "div",
                el("label", each.name.replace("_", " "), el("small", each.meaning), for_=f"in-{each.name}"),
                text_input(f"in-{each.name}", typed(plan.inputs[each.name])),
                class_="row plain",
            )
            for each in inputs
        ]
        yield el("section", el("fieldset", el("legend", group), fields))


def text_input(name: str, value: str) -> Html:
    """A field to type into."""
    return el("input", type="text", inputmode="text", id=name, value=value, autocomplete="off")


def output_fields() -> Iterator[Html]:
    """A place for each quantity that is computed, and how."""
    for group, outputs in groupby(OUTPUTS, key=lambda each: each.group):
        pairs = [(el("dt", id=f"out-{each.name}"), el("dd", each.label)) for each in outputs]
        yield el("section", el("h2", group), el("dl", pairs), aria_live="off")
    formulas = []
    for formula in FORMULAS:
        parameters = ", ".join(formula.__code__.co_varnames[: formula.__code__.co_argcount])
        text = " ".join((formula.__doc__ or "").split())
        formulas.append(el("p", el("code", f"{formula.__name__}({parameters})"), f" {text}"))
    yield el("section", el("details", el("summary", "How it is computed"), formulas))
