"""`refinery plan --html`: the plan as one page that computes, for a browser without a network.

Everything is inline; a content security policy lets nothing else be loaded and no other script run. Whatever comes from
outside (the plan's values, the name of a prefix) is escaped.
"""

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from importlib.resources import files
from itertools import groupby

from refinery.pipelines.planner.formulas import FORMULAS
from refinery.pipelines.planner.inputs import COST, INPUTS, MET, MOST, PASS, TARGET, TRAIN
from refinery.pipelines.planner.javascript import to_javascript
from refinery.pipelines.planner.outputs import OUTPUTS
from refinery.pipelines.planner.presets import PRESETS
from refinery.pipelines.planner.prices import PRICES, UNVERIFIED
from refinery.pipelines.planner.quantity import NUMBER, UNITS, typed
from refinery.pipelines.planner.scenario import Scenario

LEAST_SLIDER = 0.001  # of a stage's retention; smaller ones can be typed


def plan_page(plan: Scenario, measured: Mapping[str, float] | None = None, notes: str = "") -> str:
    """The page as HTML. measured: retentions of a run, as a preset of their own. notes: about that run."""
    own = {"measured": dict(measured)} if measured else {}
    presets = {name: preset.retentions for name, preset in PRESETS.items()} | own
    summaries = {name: f"{preset.summary} Figures: {preset.source}." for name, preset in PRESETS.items()}
    summaries |= dict.fromkeys(own, notes)
    style, script = _file("page.css"), f"function compute(v) {{\n{to_javascript(FORMULAS)}\n}}\n{_file('page.js')}"
    policy = "default-src 'none'; base-uri 'none'; form-action 'none'"
    policy += f"; style-src '{_digest(style)}'; script-src '{_digest(script)}'"
    data = {
        "inputs": [{"name": i.name, "least": i.least, "free": i.name in PRICES} for i in INPUTS],
        "outputs": [{"name": o.name, "kind": o.kind} for o in OUTPUTS],
        "stages": list(plan.retentions),
        "presets": presets,
        "units": UNITS,
        "number": NUMBER.pattern,
        "met": MET,
        "most": MOST,
        "mostKept": max(1.0, *plan.retentions.values()),
    }
    parts = [
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>The plan of a corpus</title>\n<style>{style}</style>\n</head>\n<body>",
        "<header><h1>The plan of a corpus</h1>",
        "<p>From raw bytes to training: move a stage's slider, or type. Nothing leaves this page.</p></header>\n<main>",
        *_meter(),
        "<div>",
        *_stages(plan, summaries),
        *_inputs(plan, [TARGET, PASS, TRAIN]),
        "</div>\n<div>",
        *_outputs(),
        *_inputs(plan, [COST]),
        "</div>\n</main>",
        f"<footer><p>{escape(UNVERIFIED.capitalize())}.</p></footer>",
        f'<script type="application/json" id="data">{_inert(data)}</script>',
        f"<script>{script}</script>\n</body>\n</html>\n",
    ]
    return "\n".join(parts)


def _file(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8")


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _inert(data: object) -> str:
    """JSON that no HTML parser takes for anything else: no `<`, `>` or `&` in it."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _meter() -> Iterator[str]:
    yield '<section id="meter" class="meter bad" aria-label="Output">'
    yield '<div class="track" id="track" role="progressbar" aria-label="share of the target" aria-valuemin="0"'
    yield ' aria-valuemax="100"><div class="fill" id="fill"></div></div>'
    yield '<p><span role="status"><strong id="verdict"></strong> <span id="amount"></span></span>'
    yield '<button type="button" id="fit" hidden></button></p></section>'


def _stages(plan: Scenario, summaries: Mapping[str, str]) -> Iterator[str]:
    yield '<section><h2>What each stage keeps of its bytes</h2><div class="presets" role="group" aria-label="Presets">'
    for name in summaries:
        yield f'<button type="button" data-preset="{escape(name)}" aria-pressed="false">{escape(name)}</button>'
    yield "</div>"
    for name, text in summaries.items():
        yield f"<p><b>{escape(name)}</b>: {escape(text)}</p>"
    used = {stage for preset in PRESETS.values() for stage in preset.kept}
    shown = [stage for stage, kept in plan.retentions.items() if kept != 1 or stage in used]
    yield from (_stage(stage, plan.retentions[stage]) for stage in shown)
    yield "<details><summary>Stages that keep everything here</summary>"
    yield from (_stage(stage, kept) for stage, kept in plan.retentions.items() if stage not in shown)
    yield "</details></section>"


def _stage(stage: str, kept: float) -> str:
    name = escape(stage)
    value = f'min="{LEAST_SLIDER}" max="1" step="{LEAST_SLIDER}" value="{typed(kept)}"'
    return (
        f'<div class="row"><label for="slide-{name}">{name}</label><input type="range" id="slide-{name}" {value}>'
        f'<input type="number" id="kept-{name}" min="0" step="any" value="{typed(kept)}" '
        f'aria-label="{name}, typed"></div>'
    )


def _inputs(plan: Scenario, groups: Sequence[str]) -> Iterator[str]:
    wanted = [each for each in INPUTS if each.group in groups]
    for group, inputs in groupby(wanted, key=lambda each: each.group):
        yield f"<section><fieldset><legend>{escape(group)}</legend>"
        for each in inputs:
            name, value = escape(each.name), typed(plan.inputs[each.name])
            yield f'<div class="row plain"><label for="in-{name}">{escape(each.name.replace("_", " "))}'
            yield f"<small>{escape(each.meaning)}</small></label>"
            yield f'<input type="text" inputmode="text" id="in-{name}" value="{value}" autocomplete="off"></div>'
        yield "</fieldset></section>"


def _outputs() -> Iterator[str]:
    for group, outputs in groupby(OUTPUTS, key=lambda each: each.group):
        yield f'<section aria-live="off"><h2>{escape(group)}</h2><dl>'
        for each in outputs:
            yield f'<dt id="out-{each.name}"></dt><dd>{escape(each.label)}</dd>'
        yield "</dl></section>"
    yield "<section><details><summary>How it is computed</summary>"
    for formula in FORMULAS:
        parameters = ", ".join(formula.__code__.co_varnames[: formula.__code__.co_argcount])
        text = escape(" ".join((formula.__doc__ or "").split()))
        yield f"<p><code>{formula.__name__}({escape(parameters)})</code> {text}</p>"
    yield "</details></section>"
