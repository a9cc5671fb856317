"""Every engine gives the bytes of the local runner: the demo's crawl and the code demo, whole runs each."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.engines.engines import ENGINES, Engine
from tests.engines.lanes import RECIPES, digests, refinery

pytestmark = [
    pytest.mark.skipif(not os.environ.get("REFINERY_ENGINES"), reason="minutes of whole runs: make test-engines"),
    pytest.mark.timeout(900),
]


@pytest.fixture(scope="module", params=RECIPES)
def lane(request: pytest.FixtureRequest, lane_folder: Callable[[str], Path]) -> tuple[str, Path]:
    """A lane and its folder."""
    name = str(request.param)
    return name, lane_folder(name)


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
def test_the_same_bytes(lane: tuple[str, Path], engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every published file but the report, and every file of rejects and dead letters."""
    if engine.missing:
        pytest.skip(engine.missing)
    name, folder = lane
    monkeypatch.chdir(folder)  # workers of a pool see the recipe's relative paths from there
    prefix = folder / engine.name.replace(", ", "-").replace(" ", "-")
    with engine.start() as flags:
        refinery(folder, "refine", RECIPES[name], "--output", prefix.name, *flags)
    expected = digests(folder / "expected")
    assert len(expected) > 5 and digests(prefix) == expected
    refinery(folder, "verify", prefix.name)
