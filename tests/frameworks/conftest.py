"""A corpus whose tokens are their own positions, so that what a run has seen can be counted token by token."""

from pathlib import Path

import pytest

from tests.loader.numbered import build_numbered

TOKENS = 1930


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lengths = [[30 + 7 * (i % 9) for i in range(16)], [TOKENS - 16 * 30 - 7 * (36 + 21)]]
    assert sum(map(sum, lengths)) == TOKENS
    return build_numbered(tmp_path_factory.mktemp("frameworks") / "corpus", {"web": lengths}, vocab_size=2000)
