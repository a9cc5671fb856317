"""What the tests of engines share: a lane is made once in a session."""

import functools
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.engines.lanes import make_lane


@pytest.fixture(scope="session")
def lane_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a lane: its input, tokenizer and expected corpus."""

    @functools.cache
    def folder(name: str) -> Path:
        return make_lane(name, tmp_path_factory.mktemp(name))

    return folder
