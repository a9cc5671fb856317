"""Servers, and an environment that names them and nothing else."""

import os
from collections.abc import Iterator

import pytest

from refinery.transforms.remote import s3
from tests.fake_hub import FakeHub, fake_hub
from tests.fake_s3 import FakeS3, fake_s3


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in list(os.environ):
        if name.startswith(("AWS_", "HF_")):
            monkeypatch.delenv(name)
    s3._bucket_store.cache_clear()
    yield
    s3._bucket_store.cache_clear()


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    with fake_hub() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        yield server


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeS3]:
    with fake_s3() as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
        yield server
