"""The page of a run: what it says, and that nothing from outside is more than text. In a browser: see beside."""

import doctest
import json
import re

import pytest

from refinery.pipelines.reports.pages import charts, markup
from refinery.pipelines.reports.run import words
from refinery.pipelines.reports.run.distributions import axis_ticks, distribution_of_bins
from refinery.pipelines.reports.run.histogram import histogram
from refinery.pipelines.reports.run.report_page import TITLES, report_page
from refinery.pipelines.reports.run.samples import KeptText, Reject, Rejects
from tests.pipelines.reports.pages.test_pages import Parsed
from tests.pipelines.reports.run.made_facts import (
    HOSTILE,
    hostile_facts,
    made_dropped,
    made_facts,
    made_statistics,
    row,
)


def text_of(page: str) -> str:
    return " ".join(" ".join(Parsed(page.split("<main>")[1].split("</main>")[0]).texts).split())


def test_the_examples_of_the_docstrings() -> None:
    for module in (words, markup):
        assert doctest.testmod(module).failed == 0


def test_what_was_collected_has_a_section_and_a_link() -> None:
    page = Parsed(report_page(made_facts(statistics=made_statistics())))
    sections = [attrs["id"] for tag, attrs in page.tags if tag == "section"]
    links = [attrs["href"] for tag, attrs in page.tags if tag == "a" and "href" in attrs]
    there = {"funnel", "reasons", "sources", "distributions", "classes", "hosts", "artefacts", "shards", "cost", "dead"}
    there |= {"losses"}
    assert set(sections) == there | {"attention", "run"}
    assert {f"#{name}" for name in there | {"run"}} <= set(links)
    assert set(sections) - {"attention"} <= set(TITLES)
    assert {link for link in links if link is not None} <= {
        f"#{attrs['id']}" for _, attrs in page.tags if "id" in attrs
    }


def test_the_numbers_are_those_of_the_run() -> None:
    said = text_of(report_page(made_facts(statistics=made_statistics())))
    assert "499" in said and "of records read" in said and "49.9 %" in said
    assert "language drops 480 of 980 documents (49.0 %)" in said.replace(" .", ".")
    assert "its language is not in languages" in said  # the words of the reason's declaration
    assert "9 s of work on one core" in said and "$0.05 per core hour" in said
    assert "Nothing speaks against it." in said


def test_what_was_lost_is_shown_by_source_class_and_score() -> None:
    funnel = [
        row("toxicity", 100, 70, "crawl", dropped={"toxic-density": 30}),
        row("toxicity", 9, 8, "books", dead={"Bad": 1}),
    ]
    page = Parsed(report_page(made_facts(funnel, statistics=made_statistics(), dropped=made_dropped(word="toxicity"))))
    data = json.loads(next(text for text in page.texts if text.startswith('{"charts"')))
    charts = {chart["name"]: chart for chart in data["charts"]}
    lost = charts["loss-by-source"]
    assert lost["stacked"] and lost["labels"] == ["toxicity"]
    assert {each["label"]: each["data"] for each in lost["series"]} == {"crawl": [30], "books": [1]}
    score = charts["dropped-toxicity-toxicity"]
    assert [each["label"] for each in score["series"]] == ["dropped"] and score["limits"] == [[0, "1"]]
    said = text_of(report_page(made_facts(funnel, dropped=made_dropped(word="toxicity"))))
    assert "dropped by toxicity" in said and "Scores of dropped and kept documents" in said


def test_an_axis_has_round_numbers() -> None:
    bins = histogram({"a": distribution_of_bins([(100.0, 112.0, 1), (5120.0, 5376.0, 3)])}, "bytes")
    assert [text for _, text in axis_ticks(bins, "bytes")] == ["100 B", "200 B", "500 B", "1 kB", "2 kB", "5 kB"]
    scores = histogram({"a": distribution_of_bins([(0.03125, 0.0625, 1), (0.9375, 0.96875, 3)])}, "")
    assert [text for _, text in axis_ticks(scores, "")] == ["0.2", "0.4", "0.6", "0.8"]


def test_what_was_not_collected_is_missing_and_said() -> None:
    facts = made_facts(seconds={}, missing=["Seconds are not known."])
    page = report_page(facts)
    assert "Seconds are not known." in page
    for name in ("classes", "hosts", "artefacts", "cost", "samples"):
        assert f'id="{name}"' not in page
    assert 'id="funnel"' in page


def test_every_chart_has_its_numbers_as_a_table() -> None:
    page = Parsed(report_page(made_facts(statistics=made_statistics())))
    data = json.loads(next(text for text in page.texts if text.startswith('{"charts"')))
    canvases = [attrs["data-chart"] for tag, attrs in page.tags if tag == "canvas"]
    assert [chart["name"] for chart in data["charts"]] == canvases
    assert len(canvases) == len(set(canvases)) >= 4
    after_canvas = " ".join(tag for tag, _ in page.tags).split("canvas")[1:]
    assert all("table" in rest for rest in after_canvas)


def test_hostile_texts_are_text() -> None:
    page = Parsed(report_page(hostile_facts()))
    names = {tag for tag, _ in page.tags}
    assert not names & {"img", "link", "iframe", "object", "embed", "base", "form", "bdo"}
    assert [attrs.get("type") for tag, attrs in page.tags if tag == "script"] == ["application/json", *[None] * 4]
    attributes = [(name, value) for _, attrs in page.tags for name, value in attrs.items()]
    assert not [name for name, _ in attributes if name.startswith("on") or name in ("src", "style", "action")]
    assert all(str(value).startswith("#") for name, value in attributes if name == "href")
    data = next(text for text in page.texts if text.startswith('{"charts"'))
    assert not re.search(r"[<>&\u2028\u202e]", data)
    assert not [text for text in page.texts if re.search(r"[\u202e\u2028\x07\x1b]", text)]
    assert text_of(report_page(hostile_facts())).count("alert(1)") > 10


def test_the_page_does_not_grow_with_the_run() -> None:
    """Thousands of sources and reasons, a megabyte in every address: the same page but for its top rows."""
    made = made_facts()
    funnel = [
        row(stage.name, stage.entered, stage.kept, f"source-{number}", dropped={f"reason-{n}": 9 for n in range(100)})
        for stage in made.stages
        for number in range(1000)
    ]
    keys = [("read", f"reason-{number}") for number in range(240)]
    reject = Reject("crawl", "https://example.org/" + "a" * 180, "a.warc.gz@0", "b" * 400, "")
    kept = KeptText("crawl", "https://example.org/", 9, 1, "c" * 400, {})
    most = made_facts(
        funnel,
        statistics=made_statistics(),
        rejects=Rejects({key: [reject] for key in keys}, dict.fromkeys(keys, 9), 1, 1),
        kept=[kept] * 48,
    )
    assert len(report_page(most)) < 600_000


@pytest.mark.parametrize(("labels", "values"), [(1, 2), (61, 61)])
def test_a_chart_that_cannot_be_drawn_is_refused(labels: int, values: int) -> None:
    with pytest.raises(ValueError, match="chart x"):
        charts.Chart("x", "t", ["a"] * labels, {"s": [1.0] * values}, "bars", "axis")


def test_the_same_facts_make_the_same_page() -> None:
    assert report_page(hostile_facts()) == report_page(hostile_facts())
    assert HOSTILE not in report_page(hostile_facts())
