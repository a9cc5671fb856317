"""What `_run.json` says of a run fits together, or verify says what does not."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from refinery.pipelines.corpus.checks.identity import check_identity
from refinery.pipelines.recipe.load_recipe import parse_recipe
from refinery.pipelines.run.fingerprint import phase_fingerprints
from refinery.pipelines.run.prefix import describe_run

RECIPE = {
    "name": "tiny",
    "sources": [{"name": "crawl", "paths": ["a.jsonl"]}, {"name": "books", "paths": ["b.jsonl"], "enabled": False}],
    "language": None,
    "tokenizer": {"path": "tokenizer.json"},
}
INPUTS = [{"source": "crawl", "path": "a.jsonl", "size": 9, "digest": "00"}]


def recorded(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """As a run writes it, whose only file is its tokenizer."""
    monkeypatch.setattr("refinery.pipelines.run.fingerprint.file_digest", lambda path: f"digest of {path}")
    recipe = parse_recipe(RECIPE)
    run = describe_run(recipe, INPUTS, phase_fingerprints(recipe, INPUTS))

    def refuse(path: str) -> str:
        raise AssertionError(f"verify opens {path}")

    monkeypatch.setattr("refinery.pipelines.run.fingerprint.file_digest", refuse)
    return dict(json.loads(json.dumps(run)))


def test_a_run_as_it_was_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    run = recorded(monkeypatch)
    assert any("files" in part for parts in run["stages"].values() for part in parts)
    assert list(check_identity(run)) == []


@pytest.mark.parametrize(
    ("forge", "said"),
    [
        (lambda run: run["recipe"]["near_dup"].update(threshold=0.9), "phases.dedup is "),
        (lambda run: run["recipe"]["shards"].update(seed=7), "phases.shards is "),
        (lambda run: run["inputs"][0].update(digest="01"), "phases.clean is "),
        (lambda run: run["phases"].update(shards="00"), "phases.shards is '00'"),
        (lambda run: run["inputs"].clear(), "no file of source 'crawl'"),
        (lambda run: run.pop("inputs"), "a list of files expected"),
        (lambda run: run.update(inputs=["a.jsonl"]), "a list of files expected"),
    ],
)
def test_what_was_changed_later_does_not_fit(
    monkeypatch: pytest.MonkeyPatch, forge: Callable[[Any], object], said: str
) -> None:
    run = recorded(monkeypatch)
    forge(run)
    assert said in "; ".join(check_identity(run))


@pytest.mark.parametrize(
    "change",
    [
        lambda run: run["environment"].update(python="3.99"),
        lambda run: run["stages"]["clean"][0].update(version=99),
        lambda run: run["recipe"].update(stages=[{"use": "os:system", "after": "url"}]),
        lambda run: run.update(stages={}),
        lambda run: run["recipe"].update(unheard_of=1),
    ],
)
def test_of_other_versions_nothing_is_said(monkeypatch: pytest.MonkeyPatch, change: Callable[[Any], object]) -> None:
    run = recorded(monkeypatch)
    run["recipe"]["shards"]["seed"] = 7
    change(run)
    assert list(check_identity(run)) == []
