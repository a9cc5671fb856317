"""Inputs and one finished corpus for all end-to-end tests, made once per test process."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fork_server import ForkServer
from tests.pipelines.inputs import make_inputs, refine
from tests.pipelines.small_runs import command, make_small_inputs


@pytest.fixture(scope="session")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small crawl, tokenizer, quality model and recipe.yaml; waves of one file."""
    return make_inputs(tmp_path_factory.mktemp("inputs"))


@pytest.fixture(scope="session")
def corpus(inputs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The corpus of an unbroken run with one worker process."""
    prefix = tmp_path_factory.mktemp("unbroken") / "corpus"
    refine(inputs, prefix, "--workers", 1)
    return prefix


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Inputs and recipe.yaml of a run that takes half a second: see small_runs.py."""
    return make_small_inputs(tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="session")
def forks(small: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkServer]:
    """Runs commands in forks of one warmed process."""
    folder = tmp_path_factory.mktemp("forks")
    with ForkServer(folder, command(small, folder / "warm")) as server:
        yield server
