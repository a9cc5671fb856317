"""Stores of a fake S3 whose parts are small."""

import sys
from collections.abc import Iterator

import pytest

from refinery.loader.storage import s3_upload
from refinery.loader.storage.s3_client import forget_clients
from refinery.loader.storage.s3_store import S3Store
from tests.fake_s3 import FakeS3, fake_s3
from tests.loader.storage.s3.stores import PIECE, tried
from tests.loader.store_calls import QUICK


@pytest.fixture(scope="module")
def running() -> Iterator[FakeS3]:
    """With parts that are small; a process of its own has the real ones."""
    with pytest.MonkeyPatch.context() as patch, fake_s3("bucket") as server:
        server.use(patch)
        for module in (s3_upload, sys.modules["refinery.loader.storage.s3_store"]):
            patch.setattr(module, "PART", PIECE)
        yield server
        forget_clients()


@pytest.fixture
def server(running: FakeS3) -> FakeS3:
    running.clear()
    running.stall = 0.2
    running.api.page_size, running.api.least_part = 2, PIECE
    forget_clients()
    return running


@pytest.fixture
def store(server: FakeS3) -> S3Store:
    """Of a service that was tried out already, so that the calls of a test are its own."""
    return tried(S3Store("s3://bucket/p", QUICK), server)
