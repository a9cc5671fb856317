"""The hostile runs, made once per session."""

from pathlib import Path

import pytest

from tests.pipelines.corpus.browse.hostile import Visitor, browser_of, make_runs
from tests.shared import shared


@pytest.fixture(scope="session")
def runs(small: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shared(tmp_path_factory, "browse", lambda folder: make_runs(folder, small))


@pytest.fixture(scope="module")
def visitor(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Visitor:
    """Of the first run."""
    return Visitor(browser_of(tmp_path_factory.mktemp("judged") / "j.jsonl", runs / "first"))
