"""Fixtures of several test files of the loader; some define their own `server`."""

from collections.abc import Iterator

import pytest

from tests.loader.range_server import RangeServer
from tests.loader.remote_split import serving


@pytest.fixture
def server() -> Iterator[RangeServer]:
    """A range server with the .bin of all shards of `remote_split`."""
    with serving() as server:
        yield server
