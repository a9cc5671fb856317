"""The page in a real headless Chromium: the same numbers as Python's, keyboard, phone, light and dark, nothing hostile.

How pages are opened: tests/chromium.py.
"""

from pathlib import Path
from typing import Any

import pytest

from refinery.pipelines.recipe.quantities.quantity import parse_quantity, show, three_digits
from refinery.pipelines.reports.plan.inputs import INPUTS
from refinery.pipelines.reports.plan.outputs import OUTPUTS
from refinery.pipelines.reports.plan.page import plan_page
from refinery.pipelines.reports.plan.presets import PRESETS
from refinery.pipelines.reports.plan.scenario import Scenario, scenario
from tests.chromium import faint_texts
from tests.pipelines.reports.plan.test_page import HOSTILE, hostile_page


def shown(page: Any) -> dict[str, tuple[float, str]]:
    """Name of an output -> (the number, the text)."""
    fields = page.eval_on_selector_all("dt", "all => all.map(e => [e.id, e.dataset.value, e.textContent])")
    return {id_.removeprefix("out-"): (float(value), text) for id_, value, text in fields}


def assert_same(page: Any, plan: Scenario) -> None:
    values, found = plan.values(), shown(page)
    for output in OUTPUTS:
        assert found[output.name] == (values[output.name], show(values[output.name], output.kind)), output.name


def test_every_preset_gives_pythons_numbers_to_the_last_bit(open_page: Any) -> None:
    page = open_page(plan_page(scenario({})))
    assert_same(page, scenario({}))
    for name, preset in PRESETS.items():
        page.click(f"[data-preset={name}]")
        assert page.get_attribute(f"[data-preset={name}]", "aria-pressed") == "true"
        assert_same(page, Scenario(scenario({}).inputs, preset.retentions))


def test_every_field_and_slider_gives_pythons_numbers(open_page: Any) -> None:
    page = open_page(plan_page(scenario({})))
    typed = {
        **{each.name: each.reference * 1.37 for each in INPUTS},
        "cores_per_host": 96.0,
        "gpus": 1000.0,
        "raw": parse_quantity("7.3 PB", "bytes"),
        "tokens": parse_quantity("3.3T", "tokens"),
    }
    for name, value in typed.items():
        page.fill(f"#in-{name}", {"raw": "7.3 PB", "tokens": "3.3T"}.get(name, repr(value).replace("e+", "e")))
    kept = dict(PRESETS["reference"].retentions)
    for number, stage in enumerate(kept):
        kept[stage] = (100 + 37 * number) / 1000
        page.evaluate("document.querySelector('details').open = true")
        page.fill(f"#slide-{stage}", repr(kept[stage]))
        assert page.input_value(f"#kept-{stage}") == repr(kept[stage])
    assert_same(page, Scenario(typed, kept))


def test_numbers_are_written_as_python_writes_them(open_page: Any) -> None:
    page = open_page(plan_page(scenario({})))
    for power in range(-9, 18):
        for digits in (1.0, 1.005, 2.345, 9.994, 9.996):
            value = digits * 10.0**power
            assert page.evaluate(f"threeDigits({value!r})") == three_digits(value)
            for kind in ("bytes", "tokens/s", "share", "dollars"):
                assert page.evaluate(f"show({value!r}, '{kind}')") == show(value, kind)


def test_the_meter_turns_green_at_the_target(open_page: Any) -> None:
    page = open_page(plan_page(scenario({})))
    assert page.get_attribute("#meter", "class") == "meter bad"
    red = page.eval_on_selector("#fill", "e => getComputedStyle(e).backgroundColor")
    assert "The target is missed" in page.inner_text("#verdict")
    page.click("#fit")
    assert page.get_attribute("#meter", "class") == "meter good"
    assert page.eval_on_selector("#fill", "e => getComputedStyle(e).backgroundColor") != red
    assert page.is_hidden("#fit")
    assert shown(page)["target_share"][0] >= 1
    page.click("[data-preset=strict]")
    assert page.get_attribute("#meter", "class") == "meter bad"
    page.click("[data-preset=lazy]")
    assert page.get_attribute("#meter", "class") == "meter good"


def test_a_target_that_is_met_by_construction_is_not_called_met(open_page: Any) -> None:
    page = open_page(plan_page(scenario({"tokens": 1e12})))
    assert page.get_attribute("#meter", "class") == "meter open"
    assert "were computed from the target" in page.inner_text("#verdict")
    assert page.inner_text("#out-target_share") == "–"
    page.fill("#kept-extract", "0.4")
    assert page.get_attribute("#meter", "class") == "meter bad"
    assert page.inner_text("#out-target_share") == "80 %"


def test_the_charts_follow_the_fields(open_page: Any) -> None:
    page = open_page(plan_page(scenario({})))

    def bar(name: str) -> float:
        return float(page.eval_on_selector(f"#bar-{name}", "e => e.value"))

    assert bar("raw") == 1 and bar("extract") == 0.5 and bar("language") == 0.2
    assert page.inner_text("#text-language") == "1.2 PB" and page.is_hidden("#bar-toxicity")
    page.fill("#kept-extract", "0.25")
    assert bar("language") == 0.1 and page.inner_text("#text-language") == "600 TB"
    assert bar("work_cost") == 1 and bar("storage_cost") < 1


def test_no_field_cuts_its_number(open_page: Any) -> None:
    plan = Scenario(scenario({}).inputs, dict.fromkeys(scenario({}).retentions, 0.98765))
    for width in (390, 1280):
        page = open_page(plan_page(plan), viewport={"width": width, "height": 800})
        cut = "all => all.filter(e => e.scrollWidth > e.clientWidth && e.checkVisibility()).map(e => e.id)"
        assert page.eval_on_selector_all("input[type=number], input[type=text]", cut) == []


def test_a_field_that_holds_no_number_says_so(open_page: Any) -> None:
    page = open_page(plan_page(scenario({})))
    for text in ("", "-3", "0", "1e99", "many", "<b>"):
        page.fill("#in-raw", text)
        assert page.get_attribute("#in-raw", "aria-invalid") == "true"
        assert "no valid number" in page.inner_text("#verdict")
        assert page.inner_text("#out-output_tokens") == "–"
    page.fill("#in-raw", "6P")
    page.fill("#kept-extract", "11")
    assert page.get_attribute("#kept-extract", "aria-invalid") == "true"
    page.fill("#kept-extract", "0.5")
    assert_same(page, scenario({}))


def test_the_keyboard_is_enough(open_page: Any) -> None:
    page = open_page(plan_page(scenario({})))
    order = []
    for _ in range(12):
        page.keyboard.press("Tab")
        order.append(page.evaluate("document.activeElement.id || document.activeElement.dataset.preset"))
    assert order[:6] == ["fit", "reference", "lazy", "strict", "slide-extract", "kept-extract"]
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.focus("#slide-language")
    page.keyboard.press("ArrowRight")
    assert page.input_value("#kept-language") == "0.401"
    page.focus("[data-preset=lazy]")
    page.keyboard.press("Enter")
    assert page.get_attribute("#meter", "class") == "meter good"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 390, 1280])
def test_it_fits_a_phone_and_can_be_read_in_the_dark(open_page: Any, tmp_path: Path, scheme: str, width: int) -> None:
    page = open_page(plan_page(scenario({})), viewport={"width": width, "height": 800}, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.screenshot(path=str(tmp_path / f"{scheme}-{width}.png"), full_page=True)
    assert faint_texts(page) == []


def test_hostile_names_and_notes_do_nothing(open_page: Any) -> None:
    page = open_page(hostile_page())
    assert HOSTILE.replace("\u2028", r"\u2028") in page.inner_text("main")
    assert page.eval_on_selector_all("img, script[src]", "all => all.length") == 0
    page.click("[data-preset=measured]")
    assert shown(page)["retention"][0] == pytest.approx(0.0095 * 0.5)


def test_no_other_script_can_run(open_page: Any) -> None:
    """The policy holds even if markup got in."""
    html = plan_page(scenario({})).replace("<main>", "<main><b id=b onclick=\"document.title='run'\">x</b>")
    page = open_page(html.replace("<main>", "<main><script>document.title = 'run'</script>"))
    page.click("#b")
    assert page.title() == "The plan of a corpus"
    assert [text for text in open_page.said if "Content Security Policy" not in text] == []
    open_page.said.clear()
