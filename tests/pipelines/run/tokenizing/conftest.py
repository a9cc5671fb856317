from pathlib import Path

import pytest

from tests.pipelines.run.tokenizing.text_runs import TEXTS, make_text_inputs, refine


@pytest.fixture(scope="session")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_text_inputs(tmp_path_factory.mktemp("inputs"))


@pytest.fixture(scope="session")
def texts(inputs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The corpus of texts, as Parquet."""
    return refine(inputs, tmp_path_factory.mktemp("texts") / "corpus", *TEXTS)


@pytest.fixture(scope="session")
def direct(inputs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The corpus of one run with the tokenizer."""
    return refine(inputs, tmp_path_factory.mktemp("direct") / "corpus")


@pytest.fixture(scope="session")
def lines(inputs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The corpus of texts, as JSON Lines in the order of the inputs."""
    words = ["--set", "tokenizer=null", "--set", "writer=text-jsonl", "--set", "shards.order=input"]
    return refine(inputs, tmp_path_factory.mktemp("lines") / "corpus", *words)
