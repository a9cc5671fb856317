"""The small runs that comparisons are tested with, made once per session."""

from pathlib import Path

import pytest

from tests.pipelines.corpus.compare.two_runs import make_runs
from tests.shared import shared


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the corpora a/, b/ and c/."""
    return shared(tmp_path_factory, "compared", make_runs)
