"""What deserves attention: each rule at and beside its threshold."""

from dataclasses import replace
from typing import Any

import pytest

from refinery.pipelines.reports.run.attention import FEW, Finding, findings
from refinery.pipelines.reports.run.facts import Facts
from tests.pipelines.reports.run.made_facts import made_facts, made_statistics, point, row, total


def said(facts: Facts, words: str) -> list[Finding]:
    return [finding for finding in findings(facts) if words in finding.text]


def with_points(**changes: dict[str, Any]) -> Facts:
    """Facts whose points "extracted", "final" and "published" have these changes."""
    sizes = {"extracted": 980, "final": 499, "published": 499}
    points = [point(name, size, **changes.get(name, {})) for name, size in sizes.items()]
    return made_facts(statistics=made_statistics(points))


@pytest.mark.parametrize(("dropped", "named"), [(301, True), (300, False)])
def test_a_reason_that_takes_more_than_thirty_percent(dropped: int, named: bool) -> None:
    facts = made_facts([row("language", 1000, 1000 - dropped, dropped={"language-not-allowed": dropped})])
    (finding,) = said(facts, "as language-not-allowed") or [None]
    assert (finding is not None) == named
    if finding:
        assert "30.1 %" in finding.text and "its language is not" in finding.text
        assert finding.advice == "add the language"


@pytest.mark.parametrize(("size", "named"), [(3000, True), (2400, False)])
def test_a_reason_that_takes_few_but_long_documents(size: int, named: bool) -> None:
    dropped = {"c4-curly-bracket": {"documents": 10, "bytes": size}, "basic-code-like": 10}
    facts = made_facts([row("extract", 1000, 1000), row("heuristics", 1000, 980, dropped=dropped)])
    assert bool(said(facts, "drops only 10 documents as c4-curly-bracket")) == named
    assert not said(facts, "basic-code-like")


def test_reasons_that_say_nothing_about_pages_are_left_out() -> None:
    funnel = [row("read", 1000, 100, dropped={"record-type": 700, "not-sampled": 200})]
    assert not said(made_facts(funnel), "drops")
    assert not said(made_facts(funnel), "stays")  # of the pages all stay


@pytest.mark.parametrize(("kept", "named"), [(49, True), (50, False)])
def test_a_source_of_which_little_stays(kept: int, named: bool) -> None:
    funnel = [
        row("read", 1000, 1000, "books"),
        row("read", 1000, 1000, "crawl"),
        row("language", 1000, 900, "books", dropped={"language-score": 100}),
        row("language", 1000, kept, "crawl", dropped={"language-score": 1000 - kept}),
    ]
    assert bool(said(made_facts(funnel), "of source crawl stays")) == named
    assert not said(made_facts(funnel), "of source books")


@pytest.mark.parametrize(
    ("entered", "dead", "named"), [(5000, 10, True), (10_000, 10, False), (10_000, 11, True), (100, 9, False)]
)
def test_dead_letters(entered: int, dead: int, named: bool) -> None:
    """More than one in a thousand, and not a handful."""
    facts = made_facts([row("read", entered, entered - dead, dead={"BadGzip": dead})])
    assert bool(said(facts, "BadGzip")) == named


def test_a_handful_of_documents_is_no_alarm() -> None:
    dropped = {"c4-curly-bracket": {"documents": 3, "bytes": 3000}, "basic-code-like": 7}
    facts = made_facts([row("read", 20, 17, dead={"BadGzip": 3}), row("heuristics", 20, 10, dropped=dropped)])
    assert not [finding for finding in findings(facts) if finding.warns]


@pytest.mark.parametrize(("p_value", "named"), [(0.009, True), (0.011, False)])
def test_shards_that_differ(p_value: float, named: bool) -> None:
    assert bool(said(made_facts(statistics=made_statistics(p_value=p_value)), "The shards differ")) == named


def test_few_documents_say_nothing() -> None:
    facts = made_facts([row("language", FEW - 1, 0, dropped={"language-score": FEW - 1})], seconds={})
    assert findings(facts) == []


def test_artefacts_that_stay_or_rise() -> None:
    def of(documents: int) -> dict[str, Any]:
        return {"artefacts": [{"name": "markup", "meaning": "m", "documents": documents, "bytes": 1, "sources": []}]}

    assert not said(with_points(extracted=of(20), final=of(24)), "have markup")
    assert said(with_points(extracted=of(100), final=of(26)), "have markup")
    (risen,) = said(with_points(extracted=of(2), final=of(22)), "have markup")
    assert "a stage puts it in" in risen.advice


def test_languages_that_the_tokenizer_fits_poorly() -> None:
    def of(german: int) -> dict[str, Any]:
        values = [{"value": "en", **total(300, 7500)}, {"value": "de", **total(199, german)}]
        return {"categories": [{"name": "language", "meaning": "", "values": values, "other": None, "distinct": 2}]}

    assert not said(with_points(published=of(7400)), "tokenizer")
    (finding,) = said(with_points(published=of(7600)), "tokenizer")
    assert "language de (0.38)" in finding.text and "0.25 of language en" in finding.text


def test_hosts_that_weigh_much_or_have_risen() -> None:
    facts = with_points()
    assert "en.example (50.1 %)" in said(facts, "A few hosts hold")[0].text
    assert not said(facts, "favour")
    hosts = point("extracted", 980)["hosts"]
    hosts["top"][0]["documents"] = 100
    assert said(with_points(extracted={"hosts": hosts}), "the rules favour it")


def test_groups_of_near_duplicates() -> None:
    funnel = [row("near-duplicates", 400, 390, dropped={"near-duplicate": 10})]
    statistics = made_statistics()
    assert not said(made_facts(funnel, statistics=statistics), "in one group")
    large = statistics.clusters[0].model_copy(update={"largest": 30})
    grown = statistics.model_copy(update={"clusters": (large,)})
    assert "7.5 %" in said(made_facts(funnel, statistics=grown), "in one group")[0].text


def test_stages_whose_time_buys_little() -> None:
    funnel = [row("extract", 100, 100), row("toxicity", 100, 100), row("url", 100, 50, dropped={"hard-word": 50})]
    facts = made_facts(funnel, seconds={"extract": 5.0, "toxicity": 1.0, "url": 1.0})
    (finding,) = said(facts, "Core time")
    assert "toxicity" in finding.text and "url" not in finding.text and "extract" not in finding.text
    changing = replace(facts.stages[1], kept_bytes=facts.stages[1].kept_bytes - 1)  # it redacts
    assert not said(replace(facts, stages=[facts.stages[0], changing, facts.stages[2]]), "Core time")


def test_a_rule_says_no_more_than_eight_sentences() -> None:
    funnel = [row("read", 1000, 0, f"s{n}", dropped={"empty": 1000}) for n in range(500)]
    assert len(said(made_facts(funnel), "of source s")) == 7
    assert [finding.text for finding in said(made_facts(funnel), "more of this kind")] == ["And 493 more of this kind."]


def test_what_is_good_to_know_comes_last() -> None:
    found = findings(with_points())
    assert [finding.warns for finding in found] == sorted((finding.warns for finding in found), reverse=True)
    notes = [finding.text for finding in found if not finding.warns]
    assert notes[0].startswith("By language, documents are en 100.0 %")
