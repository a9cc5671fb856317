"""A stage whose output changes needs a new version: fingerprints name versions, not code."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from refinery.pipelines.recipe.recipe import find_lane
from refinery.transforms.core.document import Drop
from refinery.transforms.filter.toxicity import TOXICITY
from tests import golden

STORED = json.loads(golden.FILE.read_text())


def test_the_inputs_are_those_of_the_stored_digests() -> None:
    assert STORED["inputs"] == golden.inputs(), "the inputs changed: run python -m tests.golden"


@pytest.mark.parametrize("name", golden.parts())
def test_output_and_version_change_together(name: str) -> None:
    assert name in STORED, f"{name} is new: run python -m tests.golden"
    found = golden.golden(name)
    assert not golden.is_unversioned(STORED[name], found), (
        f"the output of {name} changed: raise its version in the declaration, then run python -m tests.golden"
    )
    assert found == STORED[name], f"{name} has another version than stored: run python -m tests.golden"


def test_nothing_is_stored_that_is_not_declared() -> None:
    assert STORED.keys() - {"inputs"} == golden.parts().keys()


def test_a_changed_rule_shows() -> None:
    """One comparison the other way round, and the digest is another one."""

    def lenient(doc, resource, params):
        answer = TOXICITY.judge(doc, resource, params)
        return doc if isinstance(answer, Drop) else answer

    docs, params = golden.documents(), TOXICITY.params()
    before = golden.digest(golden.judged(TOXICITY, docs, params))
    assert golden.digest(golden.judged(replace(TOXICITY, judge=lenient), docs, params)) != before
    assert {"version": TOXICITY.version, "sha256": before} == STORED["toxicity"]


def test_most_reasons_of_the_text_stages_are_met(tmp_path: Path) -> None:
    """The fixed inputs are worth something: most declared reasons occur among the answers."""
    stages = [stage for stage in find_lane("web").stages if stage.name in ("url", "language", "heuristics", "toxicity")]
    answers = [answer for stage in stages for answer in golden.outputs(find_lane("web"), stage, tmp_path)]
    met = {answer.reason for answer in answers if isinstance(answer, Drop)}
    declared = {reason.name for stage in stages for reason in stage.reasons}
    assert met <= declared and len(met) > 0.6 * len(declared), sorted(declared - met)
