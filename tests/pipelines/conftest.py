"""Inputs and one finished corpus for all end-to-end tests, made once per session."""

from pathlib import Path

import pytest

from tests.chromium import browser, open_page
from tests.fork_server import ForkServer, fork_server
from tests.pipelines.inputs import make_inputs, refine
from tests.pipelines.small_runs import make_small_inputs
from tests.shared import shared

__all__ = ["browser", "open_page"]


@pytest.fixture(scope="session")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small crawl, tokenizer, quality model and recipe.yaml; waves of two files."""
    return shared(tmp_path_factory, "inputs", make_inputs)


@pytest.fixture(scope="session")
def corpus(inputs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The corpus of an unbroken run with one worker process; beside it what the command printed."""

    def fill(folder: Path) -> None:
        done = refine(inputs, folder / "corpus", "--workers", 1)
        (folder / "stdout").write_text(done.stdout)
        (folder / "stderr").write_text(done.stderr)

    return shared(tmp_path_factory, "unbroken", fill) / "corpus"


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Inputs and recipe.yaml of a run that takes half a second: see small_runs.py."""
    return make_small_inputs(tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="session")
def forks() -> ForkServer:
    """Runs commands in forks of one warmed process."""
    return fork_server()
