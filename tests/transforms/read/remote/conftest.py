"""Servers, and an environment that names them and nothing else."""

import os
from collections.abc import Iterator

import pytest

from refinery.loader.storage import gcs_client
from tests.fake_gcs import FakeGcs, fake_gcs
from tests.fake_hub import FakeHub, fake_hub
from tests.fake_s3 import FakeS3, fake_s3


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("AWS_", "HF_")):
            monkeypatch.delenv(name)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, os.devnull)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    with fake_hub() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        yield server


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeS3]:
    with fake_s3("bucket") as server:
        server.api.page_size = 2
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
        yield server


@pytest.fixture
def gcs(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGcs]:
    with fake_gcs("bucket") as server:
        server.api.page_size = 2
        server.use(monkeypatch)
        yield server
        gcs_client.close()
