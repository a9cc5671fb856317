import hashlib
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from uuid import uuid4

import pytest

from refinery.loader.storage.copy_object import copy_object
from refinery.loader.storage.fetch import FetchError
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.s3_client import forget_clients
from refinery.loader.storage.store import (
    CHUNK,
    Checksums,
    StorageConflict,
    Store,
    check_name,
    checksums,
    size_and_crc32c,
)
from tests.fake_gcs import FakeGcs, fake_gcs
from tests.fake_s3 import FakeS3, fake_s3
from tests.sampling import one_commit_in_four

# Of real services, for the same tests: "REFINERY_TEST_STORES=s3://bucket/prefix,gs://bucket/prefix make test-stores".
REAL = {place: place for place in os.environ.get("REFINERY_TEST_STORES", "").split(",") if place}


@pytest.fixture(scope="module")
def gcs() -> Iterator[FakeGcs]:
    """Lists have pages of two."""
    with pytest.MonkeyPatch.context() as patch, fake_gcs("bucket") as server:
        server.use(patch)
        server.api.page_size = 2
        yield server


@pytest.fixture(scope="module")
def s3() -> Iterator[FakeS3]:
    """Lists have pages of two."""
    with pytest.MonkeyPatch.context() as patch, fake_s3("bucket") as server:
        server.use(patch)
        yield server


@pytest.fixture(params=["local", "gcs", "s3", "s3 without checksums", *REAL])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """All backends behave the same."""
    if request.param == "local":
        yield open_store(tmp_path / "root")
        return
    if request.param in REAL:
        location = f"{REAL[request.param]}/{uuid4()}"
    else:
        kind = "gcs" if request.param == "gcs" else "s3"
        server = request.getfixturevalue(kind)
        server.clear()
        server.api.page_size = 2
        location = f"{'gs' if kind == 'gcs' else kind}://bucket/some/prefix/"
        if "without" in request.param:
            server.api.checksums, server.api.random_etags = "refused", True
            forget_clients()
    store = open_store(location)
    yield store
    if request.param in REAL:
        for name in store.list():  # one by one: not every emulator knows batches
            store.delete(name)
    store.close()


def test_read_open_size(store: Store) -> None:
    store.create("a/b.bin", b"0123456789")
    assert store.read("a/b.bin") == b"0123456789"
    assert store.read("a/b.bin", 4) == b"456789"
    assert store.read("a/b.bin", 4, 3) == b"456"
    assert store.read("a/b.bin", 8, 100) == b"89"
    assert store.read("a/b.bin", 10) == store.read("a/b.bin", 99, 5) == store.read("a/b.bin", 3, 0) == b""
    assert store.size("a/b.bin") == 10
    with store.open("a/b.bin") as stream:
        assert stream.read(4) == b"0123"
        stream.seek(-2, 2)
        assert stream.read() == b"89"
    for start, length in ((-1, None), (0, -1)):
        with pytest.raises(ValueError, match="0 or more is allowed"):
            store.read("a/b.bin", start, length)


def test_empty_object(store: Store) -> None:
    store.create("empty", b"")
    assert store.size("empty") == 0
    assert store.read("empty") == store.read("empty", 0, 10) == b""
    with store.open("empty") as stream:
        assert stream.read() == b""


def test_missing(store: Store) -> None:
    assert store.size("no/such") is None
    assert store.list() == store.list("no") == []
    for read in (store.read, store.open, lambda name: store.read(name, 0, 0)):
        with pytest.raises(FileNotFoundError):
            read("no/such")
    store.delete("no/such")


def test_list_is_recursive_and_sorted(store: Store) -> None:
    names = ["b", "a/z", "a/b/c", "a.txt", "ab/c", "ä"]
    for name in names:
        store.create(name, name.encode())
    assert store.list() == sorted(names)
    assert store.list("a") == ["a/b/c", "a/z"]
    assert store.list("b") == []  # an object, not a folder


def test_create_is_exclusive(store: Store, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"same")
    store.create("x", source)
    store.create("x", b"same")
    store.create("x", source)
    for other in (b"diff", b"longer than it", b""):
        with pytest.raises(StorageConflict, match=f"x exists with other bytes: 4 bytes, crc32c .*; {len(other)} bytes"):
            store.create("x", other)
    assert store.read("x") == b"same"
    assert store.list() == ["x"]


@one_commit_in_four
def test_large_objects(store: Store, tmp_path: Path) -> None:
    """In several requests, where there are any; a copy has the same bytes."""
    data = os.urandom(1 << 20) * 17 + b"tail"
    (tmp_path / "source").write_bytes(data)
    store.create("large", tmp_path / "source")
    store.create("large", data)
    with pytest.raises(StorageConflict, match="large exists with other bytes"):
        store.create("large", data[:-1] + b"!")
    assert store.read("large", len(data) - 6) == data[-6:]
    with store.open("large") as stream:
        assert size_and_crc32c(stream) == size_and_crc32c(data)
    other = open_store(f"{store.root}/copies")
    copy_object(store, other, "large", *size_and_crc32c(data))
    assert other.read("large") == data


def test_concurrent_creators(store: Store) -> None:
    """Of many writers of different bytes exactly one wins; writers of the winner's bytes succeed too."""
    barrier = threading.Barrier(8)
    outcomes: list[tuple[int, bool]] = []

    def write(i: int) -> None:
        barrier.wait()
        try:
            store.create("shard", b"%d" % (i % 4) * 1000)
        except StorageConflict:
            outcomes.append((i % 4, False))
        else:
            outcomes.append((i % 4, True))

    threads = [threading.Thread(target=write, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    winner = int(store.read("shard")[:1])
    assert sorted(outcomes) == sorted((i % 4, i % 4 == winner) for i in range(8))
    assert store.list() == ["shard"]


def test_replace_and_delete(store: Store) -> None:
    store.replace("marker", b"one")
    store.replace("marker", b"two")
    assert store.read("marker") == b"two"
    store.delete("marker")
    assert store.size("marker") is None


@pytest.mark.parametrize(
    "name", ["", "/a", "a/", "a//b", "..", "a/../b", "./a", "a\0b", ".tmp-1", "a/.tmp-1/b", "\udcff"]
)
def test_names_refused(store: Store, name: str) -> None:
    with pytest.raises(ValueError):
        check_name(name)
    for use in (store.read, store.open, store.size, store.delete, store.url, lambda n: store.create(n, b"")):
        with pytest.raises(ValueError):
            use(name)


def test_stores_can_be_pickled(store: Store) -> None:
    store.create("a", b"1")
    again = pickle.loads(pickle.dumps(store))  # noqa: S301 - our own bytes
    assert again.root == store.root
    assert again.url("a") == store.url("a") == f"{store.root}/a"


@pytest.mark.parametrize(
    "url",
    [
        "", "s3://", "s3:///x", "s3://BUCKET/x", "s3://bucket/../x", "ftp://host/x", "https://", "gs://", "gs:///x",
        "gs://bucket/../x", "a\0b",
    ],
)  # fmt: skip
def test_locations_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"location|name"):
        open_store(url)


def test_files_of_a_killed_writer_are_invisible(tmp_path: Path) -> None:
    """A writer killed before publishing leaves a temporary file and no object; the next attempt publishes."""
    script = (
        "import os, sys; from refinery.loader.storage.open_store import open_store;"
        "os.link = lambda *a: os.kill(os.getpid(), 9);"
        "open_store(sys.argv[1]).create('train/x.bin', b'data')"
    )
    assert subprocess.run([sys.executable, "-c", script, tmp_path]).returncode == -9
    assert len(list((tmp_path / "train").iterdir())) == 1
    store = open_store(tmp_path)
    assert store.list() == []
    store.create("train/x.bin", b"data")
    assert store.list() == ["train/x.bin"]


def test_failed_source_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        open_store(tmp_path).create("x", tmp_path / "missing")
    assert list(tmp_path.iterdir()) == []


def test_foreign_objects_in_a_bucket(gcs: FakeGcs) -> None:
    """Folder placeholders are not objects; other prefixes are not listed."""
    gcs.clear()
    for name in ("p/", "p/a/", "p/a/x", "px", "p/.tmp-1", "q/y"):
        gcs.put("bucket", name, b"")
    store = open_store("gs://bucket/p")
    assert store.list() == ["a/x"]
    store.close()


def test_a_stream_stays_on_one_generation(gcs: FakeGcs) -> None:
    gcs.clear()
    store = open_store("gs://bucket")
    store.replace("x", b"old")
    with store.open("x") as stream:
        store.replace("x", b"new")
        with pytest.raises(FetchError, match="the object has changed: generation"):
            stream.read()
    store.close()


def test_checksums(tmp_path: Path) -> None:
    data = bytes(range(256)) * (CHUNK // 256) + b"tail"
    (tmp_path / "x").write_bytes(data)
    expected = Checksums(len(data), size_and_crc32c(data)[1], hashlib.sha256(data).hexdigest())
    assert checksums(data) == checksums(tmp_path / "x") == checksums(BytesIO(data)) == expected
    assert size_and_crc32c(tmp_path / "x") == expected[:2]
    # The check value of CRC-32C (RFC 3720, appendix B.4: 32 bytes of zeros) and of SHA-256 for "".
    assert checksums(bytes(32)).crc32c == "8a9136aa"
    assert checksums(b"") == (0, "00000000", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")


def test_what_a_service_needs_loads_only_for_it(tmp_path: Path) -> None:
    script = (
        "import sys; from refinery.loader.storage.open_store import open_store;"
        "open_store(sys.argv[1]).list(); open_store('gs://b/p');"
        "services = {'google.cloud.storage', 'refinery.loader.storage.s3_store', 'refinery.loader.storage.aws'};"
        "assert not {*services, 'apache_beam', 'torch'} & set(sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script, tmp_path]).returncode == 0


@pytest.mark.parametrize("link", [False, True])
def test_only_regular_files_are_opened(tmp_path: Path, link: bool) -> None:
    """Opening a FIFO without a writer would block forever."""
    os.mkfifo(tmp_path / "fifo")
    if link:
        (tmp_path / "x").symlink_to(tmp_path / "fifo")
    store, name = open_store(tmp_path), "x" if link else "fifo"
    for use in (store.read, store.open, lambda n: store.read(n, 0, 0), lambda n: store.create(n, b"data")):
        with pytest.raises(OSError, match=f"not a regular file: .*{name}"):
            use(name)
    assert store.size(name) is None
    with pytest.raises(IsADirectoryError):
        open_store(tmp_path.parent).open(tmp_path.name)


def test_pruning_removes_empty_folders_alone(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    for name in ("a/b/c/file", "a/d/file"):
        store.create(name, b"x")
    store.delete("a/b/c/file")
    store.prune("a")
    assert [path.relative_to(tmp_path).as_posix() for path in sorted(tmp_path.rglob("*"))] == ["a", "a/d", "a/d/file"]
    store.delete("a/d/file")
    store.prune("a")
    store.prune("none")
    assert list(tmp_path.iterdir()) == []
    for name in ("..", "/", "a/../.."):
        with pytest.raises(ValueError, match="a relative path"):
            store.prune(name)
