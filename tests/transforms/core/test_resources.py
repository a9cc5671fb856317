"""Files that a recipe names: local or in a bucket, the same bytes and the same kinds of errors."""

import gzip
import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from refinery.loader.storage import gcs_client
from refinery.transforms.core import resources
from refinery.transforms.core.resources import (
    local_copy,
    machine_copy,
    read_list_file,
    read_pieces,
    read_resource,
    resource_digest,
)
from tests.fake_gcs import FakeGcs, fake_gcs


@pytest.fixture(scope="module")
def server() -> Iterator[FakeGcs]:
    with pytest.MonkeyPatch.context() as patch, fake_gcs("bucket") as server:
        server.use(patch)
        yield server
        gcs_client.close()


@pytest.fixture(params=["local", "gs"])
def folder(request: pytest.FixtureRequest, server: FakeGcs, tmp_path: Path) -> str:
    """Two files in each kind of place."""
    server.clear()
    for name, data in (("a.txt", b"text"), ("a.txt.gz", gzip.compress(b"text")), ("bad.gz", gzip.compress(b"t")[:-3])):
        (tmp_path / name).write_bytes(data)
        server.put("bucket", f"lists/{name}", data)
    return str(tmp_path) if request.param == "local" else "gs://bucket/lists"


def test_reading(folder: str) -> None:
    assert read_resource(f"{folder}/a.txt") == read_list_file(f"{folder}/a.txt") == b"text"
    assert read_list_file(f"{folder}/a.txt.gz") == b"text"
    with pytest.raises(OSError, match=r"bad\.gz"):
        read_list_file(f"{folder}/bad.gz")
    for read in (read_resource, read_list_file):
        with pytest.raises(FileNotFoundError, match=r"none\.txt"):
            read(f"{folder}/none.txt")


@pytest.mark.parametrize(
    "data",
    [gzip.compress(b"text" * 99)[:-9], b"text", gzip.compress(b"t") + b"more", b"\x1f\x8b"],
    ids=["cut", "plain", "more", "head"],
)
def test_a_damaged_list_is_one_line_with_its_name(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "list.gz").write_bytes(data)
    with pytest.raises(OSError, match=r"list\.gz: is cut or is not gzip \(.*\); copy it again$"):
        read_list_file(str(tmp_path / "list.gz"))


def test_a_list_is_bounded_also_when_it_is_inflated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "MAX_LIST", 1000)
    for name, data in (("a.gz", gzip.compress(b"x" * 1001)), ("a.txt", b"x" * 1001)):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(OSError, match=r"a\.(gz|txt): more than 1000 bytes found, which is too long for a list"):
            read_list_file(str(tmp_path / name))
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"x" * 1000))
    assert len(read_list_file(str(tmp_path / "a.gz"))) == 1000


def test_other_kinds_of_places_are_refused_by_name() -> None:
    allowed = "a local file, gs://…, s3://…, https://…, hf://… are allowed"
    with pytest.raises(OSError, match=rf"^ftp://host/a\.txt: {allowed}"):
        read_resource("ftp://host/a.txt")


def test_local_copies_do_not_stay(folder: str) -> None:
    with local_copy(f"{folder}/a.txt") as path:
        assert path.read_bytes() == b"text" and path.name == "a.txt"
    assert path.exists() is ("://" not in folder)
    with pytest.raises(FileNotFoundError, match=r"none\.txt"), local_copy(f"{folder}/none.txt"):
        pass


def test_an_object_beside_the_bucket(server: FakeGcs) -> None:
    server.clear()
    server.put("bucket", "top.txt", b"top")
    assert read_resource("gs://bucket/top.txt") == b"top"


def test_pieces_are_the_file(folder: str) -> None:
    assert list(read_pieces(f"{folder}/a.txt", 3)) == [b"tex", b"t"]
    assert resource_digest(f"{folder}/a.txt") == hashlib.sha256(b"text").hexdigest()
    with pytest.raises(FileNotFoundError):
        resource_digest(f"{folder}/none.txt")


def test_a_copy_is_shared_by_a_machine_until_the_file_is_another_one(
    server: FakeGcs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.clear()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    copies = []
    for data in (b"first " * 10, b"first " * 10, b"second " * 10):
        server.put("bucket", "lists/table", data)
        copies.append(machine_copy("gs://bucket/lists/table", 8))
        assert copies[-1].read_bytes() == data
    assert copies[0] == copies[1] != copies[2]
    assert machine_copy(str(copies[0]), 8) == copies[0]
    with pytest.raises(FileNotFoundError):
        machine_copy("gs://bucket/lists/none", 8)
