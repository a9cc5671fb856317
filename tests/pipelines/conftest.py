"""Inputs and one finished corpus for all end-to-end tests, made once per test process."""

from pathlib import Path

import pytest

from tests.pipelines.inputs import make_inputs, refine


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
