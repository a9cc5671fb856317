"""Faults of Cloud Storage: retries, deadlines, checksums, large uploads, and errors that say what to do."""

import gc
import io
import os
import pickle
import subprocess
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import requests
import urllib3
from google.api_core import exceptions
from google.auth.exceptions import RefreshError, TransportError
from hypothesis import given, settings
from hypothesis import strategies as st

from refinery.loader.errors import CorruptObject
from refinery.loader.storage import gcs_client, gcs_store, gcs_upload
from refinery.loader.storage.fetch import FetchError, Transient
from refinery.loader.storage.gcs_store import GcsStore
from refinery.loader.storage.gcs_upload import UPLOAD_CHUNK
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import StorageConflict, StorageError, size_and_crc32c
from tests.fake_gcs import Call, FakeGcs, Fault, fake_gcs
from tests.loader.store_calls import QUICK, SHORT_DEADLINE, SMALL, TRANSIENT, once_at, patience, use, write_x
from tests.sampling import examples, one_commit_in_four, sampled

PIECE = 256 << 10  # the smallest chunk that the service takes
LARGE = os.urandom(PIECE) * 2 + b"tail"  # three chunks of that size


@pytest.fixture(scope="module")
def running() -> Iterator[FakeGcs]:
    """With uploads in small chunks; a process of its own has the real ones."""
    with pytest.MonkeyPatch.context() as patch, fake_gcs("bucket") as server:
        server.use(patch)
        for module in (gcs_store, gcs_upload):
            patch.setattr(module, "UPLOAD_CHUNK", PIECE)
        yield server
        gcs_client.close()


@pytest.fixture
def server(running: FakeGcs) -> FakeGcs:
    running.clear()
    running.stall = 0.2
    running.api.page_size = 2
    return running


@pytest.fixture
def store() -> GcsStore:
    return GcsStore("gs://bucket/p", QUICK)


# Every method with every fault


METHODS = {
    "read": "download", "open": "download", "size": "stat", "list": "list", "delete": "delete", "create": "upload",
    "replace": "upload", "check": "list",
}  # fmt: skip


@pytest.mark.parametrize(
    ("method", "fault"), sampled("faults of calls to Cloud Storage", product(METHODS, TRANSIENT), 18, lambda cell: cell)
)
def test_transient_faults(server: FakeGcs, method: str, fault: str) -> None:
    store = GcsStore("gs://bucket/p", patience(fault))
    for name in ("a", "b", "x"):
        server.put("bucket", f"p/{name}", SMALL)
    expected = {"read": SMALL, "open": SMALL, "size": len(SMALL), "list": ["a", "b", "x"]}.get(method)
    server.on_call = once_at(METHODS[method], fault)
    assert use(store, method) == expected
    # The short timeout of "stall" may be exceeded more than once on a loaded machine.
    stalled = fault == "stall"
    assert store.counters.retries == 1 or (stalled and store.counters.retries > 1)
    present = {"a": SMALL, "b": SMALL} | ({} if method == "delete" else {"x": SMALL})
    assert server.read("bucket", "p/") == present | ({"new": SMALL} if METHODS[method] == "upload" else {})
    written = [change for change in server.changes if change[2] == "p/new"]
    twice = (method, fault) == ("replace", "lost")
    assert len(written) == (METHODS[method] == "upload") + twice or (stalled and method == "replace" and written)


@pytest.mark.parametrize("method", METHODS)
def test_a_deadline_ends_it_in_one_line(server: FakeGcs, method: str) -> None:
    store = GcsStore("gs://bucket/p", SHORT_DEADLINE)
    server.put("bucket", "p/x", SMALL)
    server.on_call = lambda call: Fault("status", 503) if call.kind == METHODS[method] else None
    with pytest.raises((StorageError, FetchError), match=r"^gs://bucket/p.*status 503") as caught:
        use(store, method)
    assert "\n" not in str(caught.value) and "http://" not in str(caught.value)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("status", "advice"),
    [(400, ""), (401, "gcloud auth application-default login"), (403, "needs a role on the bucket"), (405, "")],
)
def test_refusals_are_not_retried(server: FakeGcs, store: GcsStore, method: str, status: int, advice: str) -> None:
    server.put("bucket", "p/x", SMALL)
    reason = "worker@p.iam.gserviceaccount.com does not have storage.objects.get access"
    fault = Fault("status", status, message=reason)
    server.on_call = lambda call: fault if call.kind == METHODS[method] else None
    cause = "no valid Google credentials" if status == 401 else f"status {status}: {reason}"  # of an anonymous client
    with pytest.raises((StorageError, FetchError), match=f"{cause}.*{advice}"):
        use(store, method)
    assert [call.kind for call in server.calls].count(METHODS[method]) == 1
    # google-auth leaves the answer 401 to a streamed read open; Python 3.12 reports its socket when it is collected.
    with warnings.catch_warnings(action="ignore", category=ResourceWarning):
        gc.collect()


@pytest.mark.parametrize("method", METHODS)
def test_a_missing_bucket(server: FakeGcs, method: str) -> None:
    with pytest.raises(OSError, match=r"gs://nowhere.*bucket does not exist\. Create it, or correct its name"):
        use(GcsStore("gs://nowhere/p", QUICK), method)
    assert len(server.calls) == 1


def test_retry_after_is_respected(server: FakeGcs, store: GcsStore, monkeypatch: pytest.MonkeyPatch) -> None:
    waits = []
    monkeypatch.setattr(threading.Event, "wait", lambda self, seconds=None: waits.append(seconds))
    store.params = replace(QUICK, max_delay=3)
    server.on_call = once_at("stat", Fault("status", 429, retry_after="2"))
    assert store.size("x") is None
    assert 2 <= waits[0] <= 2.001


@pytest.mark.parametrize(
    ("kind", "text", "verdict"),
    [
        (requests.ConnectionError, "refused", Transient),
        (requests.exceptions.ChunkedEncodingError, "cut", Transient),
        (requests.exceptions.SSLError, "EOF occurred", Transient),
        (requests.exceptions.SSLError, "CERTIFICATE_VERIFY_FAILED", gcs_client.Refusal),
        (urllib3.exceptions.ProtocolError, "cut", Transient),
        (ConnectionResetError, "reset", Transient),
        (TransportError, "metadata server", Transient),
        (partial(RefreshError, retryable=True), "token server", Transient),
        (RefreshError, "invalid_grant", gcs_client.Refusal),
        (exceptions.ServiceUnavailable, "", Transient),
        (exceptions.MethodNotImplemented, "", gcs_client.Refusal),
        (exceptions.NotFound, "", exceptions.NotFound),
        (exceptions.PreconditionFailed, "", exceptions.PreconditionFailed),
        (ValueError, "a bug", ValueError),
    ],
)
def test_classification_of_errors(kind: Any, text: str, verdict: type[Exception]) -> None:
    with pytest.raises(verdict) as caught, gcs_client.classified():
        raise kind(text)
    assert type(caught.value) is verdict


def test_what_a_server_answers_cannot_steer_a_terminal() -> None:
    with pytest.raises(Transient) as caught, gcs_client.classified():
        raise exceptions.ServiceUnavailable("", response=SimpleNamespace(text="busy \x1b[2J\x9b\u202e", headers={}))
    assert str(caught.value).isprintable() and "busy" in str(caught.value)


def test_a_redirect_to_no_address(server: FakeGcs, store: GcsStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests raises a plain ValueError for it: an attempt that failed like others."""
    server.put("bucket", "p/x", SMALL)
    session = gcs_client.client()._http
    get, wrong = session.get, [ValueError("Invalid IPv6 URL")]

    def redirected(*args: Any, **options: Any) -> Any:
        if wrong:
            raise wrong.pop()
        return get(*args, **options)

    monkeypatch.setattr(session, "get", redirected)
    assert store.read("x") == SMALL and store.counters.retries == 1


def test_no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a process without credentials: immediately one line that says what to do."""
    script = (
        "import sys; from refinery.loader.storage.open_store import open_store\n"
        "store = open_store('gs://bucket/p')\n"
        "for use in (store.check, lambda: store.size('x'), lambda: store.create('x', b''), lambda: store.read('x')):\n"
        "    try: use()\n"
        "    except OSError as error: print(error)"
    )
    hidden = {"NO_GCE_CHECK": "true", "CLOUDSDK_CONFIG": "/nonexistent", "HOME": "/nonexistent"}
    names = ("STORAGE_EMULATOR_HOST", "GOOGLE_APPLICATION_CREDENTIALS")
    environment = {name: value for name, value in os.environ.items() if name not in names} | hidden
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert len(lines) == 4 and all("run `gcloud auth application-default login`" in line for line in lines)
    assert lines[0].startswith("gs://bucket/p: cannot be listed: no valid Google credentials")


# Bytes


def test_wrong_bytes(server: FakeGcs, store: GcsStore) -> None:
    """Once: read again. Twice: an error with both checksums. A stream raises it at its end."""
    server.put("bucket", "p/x", SMALL)
    server.script.extend(["wrong"])
    assert store.read("x") == SMALL
    server.script.extend(["wrong", "wrong"])
    with pytest.raises(CorruptObject, match=r"gs://bucket/p/x: crc32c \w{8} found, \w{8} expected"):
        store.read("x")
    server.script.extend(["wrong"])
    with store.open("x") as stream, pytest.raises(CorruptObject, match=r"gs://bucket/p/x: crc32c \w{8} found"):
        stream.read()
    with store.open("x") as stream:
        assert stream.read() == SMALL


@settings(max_examples=examples(30), deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(SMALL) + 9), st.integers(0, 5000)), max_size=6))
def test_streams_are_files(running: FakeGcs, steps: list[tuple[int, int]]) -> None:
    running.clear()
    running.put("bucket", "p/x", SMALL)
    model = io.BytesIO(SMALL)
    with GcsStore("gs://bucket/p", QUICK).open("x") as stream:
        for position, size in steps:
            assert stream.seek(position) == model.seek(position)
            assert stream.read(size) == model.read(size)
        stream.seek(0)
        assert stream.read() == SMALL


UPLOADS = (
    ("upload", "upload-start", "upload-chunk", "upload-end"),
    ("503", "reset", "lost", "corrupt request", "part of request", "half kept", "stall"),
    ("create", "replace"),
)


@pytest.mark.parametrize(
    ("kind", "fault", "method"), sampled("faults of uploads", product(*UPLOADS), 14, lambda cell: cell)
)
def test_uploads(server: FakeGcs, kind: str, fault: str, method: str, tmp_path: Path) -> None:
    """After any single fault of any call the object is complete, and written once."""
    store = GcsStore("gs://bucket/p", patience(fault))
    data = SMALL if kind == "upload" else LARGE
    server.on_call = once_at(kind, fault)
    write_x(store, method, data, tmp_path)
    assert server.read("bucket") == {"p/x": data}
    repeated = (method, kind, fault) == ("replace", "upload", "lost")
    if fault == "stall" and method == "replace":  # the short timeout may be exceeded again on a loaded machine
        assert {change[0] for change in server.changes} <= {"create", "replace"}
        return
    assert server.changes == [("create", "bucket", "p/x")] + [("replace", "bucket", "p/x")] * repeated
    assert "delete" not in {call.kind for call in server.calls}
    again = {"corrupt request": len(data), "lost": 0 if "-" in kind else len(data)}.get(fault, PIECE)
    sent = sum(call.size for call in server.calls)
    assert fault == "stall" or sent <= len(data) + again + 4096, "a fault in one chunk must not resend all of them"


@pytest.mark.parametrize("data", [SMALL, LARGE], ids=["small", "large"])
def test_a_service_that_does_not_check_checksums(
    server: FakeGcs, store: GcsStore, data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checksum in its response is compared too."""
    write: Any = server.api._write
    monkeypatch.setattr(server.api, "_write", lambda *request: write(*request[:4], {}))
    server.on_call = once_at("upload" if data is SMALL else "upload-end", "corrupt request")
    with pytest.raises(StorageError, match="gs://bucket/p/x: cannot be written; the service stored different bytes"):
        store.create("x", data)


def test_create_of_a_large_object_that_exists(server: FakeGcs, store: GcsStore) -> None:
    """The same bytes are success and are not sent; others are a conflict."""
    server.put("bucket", "p/x", LARGE)
    store.create("x", LARGE)
    with pytest.raises(StorageConflict, match="gs://bucket/p/x exists with other bytes"):
        store.create("x", LARGE[:-1] + b"!")
    assert [call.kind for call in server.calls] == ["upload-start", "stat"] * 2
    assert server.changes == [("create", "bucket", "p/x")]


def test_another_writer_is_faster(server: FakeGcs, store: GcsStore) -> None:
    """Another object is created while the last chunk is sent."""

    def interfere(call: Call) -> None:
        if call.kind == "upload-end":
            server.put("bucket", call.name, LARGE if call.name == "p/same" else b"theirs")

    server.on_call = interfere
    store.create("same", LARGE)
    with pytest.raises(StorageConflict):
        store.create("other", LARGE)
    assert [change[0] for change in server.changes] == ["create", "create"]


def test_lost_sessions_are_bounded(server: FakeGcs, store: GcsStore) -> None:
    server.on_call = lambda call: Fault("status", 410) if call.kind == "upload-chunk" else None
    with pytest.raises(StorageError, match="gs://bucket/p/x: cannot be written: 3 upload sessions were lost"):
        store.create("x", LARGE)
    assert Counter(call.kind for call in server.calls) == {"upload-start": 3, "upload-chunk": 3}


def test_permission_to_create_but_not_to_overwrite(server: FakeGcs, store: GcsStore) -> None:
    """A role without storage.objects.delete: the same bytes are success, others a conflict, a new name an error."""
    server.put("bucket", "p/x", SMALL)
    server.on_call = lambda call: Fault("status", 403, message="no delete") if call.kind == "upload" else None
    store.create("x", SMALL)
    with pytest.raises(StorageConflict):
        store.create("x", b"other")
    with pytest.raises(StorageError, match="status 403: no delete"):
        store.create("new", b"other")


@one_commit_in_four
def test_large_uploads_need_little_memory(server: FakeGcs, store: GcsStore, tmp_path: Path) -> None:
    with (tmp_path / "source").open("wb") as out:
        out.truncate(6 * UPLOAD_CHUNK)
    peaks: list[int] = []
    server.on_call = lambda call: peaks.append(call.size)
    script = (
        "import resource, sys; from pathlib import Path\n"
        "from refinery.loader.storage.open_store import open_store\n"
        "store = open_store('gs://bucket/p'); store.create('first', b'x' * (9 << 20))\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "store.create('x', Path(sys.argv[1])); print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, tmp_path / "source"], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) << 10 < 3 * UPLOAD_CHUNK
    assert max(peaks) <= UPLOAD_CHUNK
    assert server.objects["bucket", "p/x"].data == bytes(6 * UPLOAD_CHUNK)


# Clients


def test_one_client_per_process(server: FakeGcs) -> None:
    """Shared by stores and threads, recreated in a forked child; a pickled store uses that of its new process."""
    server.put("bucket", "p/x", SMALL)
    store = open_store("gs://bucket/p")
    again = pickle.loads(pickle.dumps(store))  # noqa: S301 - our own bytes
    assert again.root == store.root
    found: list[bytes] = []
    threads = [threading.Thread(target=lambda: found.append(again.read("x"))) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [SMALL] * 16
    first = gcs_client.client()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about forking with threads, which is tested here
        child = os.fork()
    if child == 0:
        os._exit(0 if gcs_client.client() is not first and store.read("x") == SMALL else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert gcs_client.client() is first and store.read("x") == SMALL
    store.close()
    assert store.read("x") == SMALL
    gc.collect()


def test_check_fails_within_seconds(server: FakeGcs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("refinery.loader.storage.remote_store.CHECK_SECONDS", 0.1)
    server.on_call = lambda call: Fault("status", 503)
    with pytest.raises(StorageError, match="gs://bucket: cannot be listed"):
        open_store("gs://bucket").check()


@pytest.mark.parametrize("data", [SMALL, LARGE], ids=["small", "large"])
def test_caches_keep_what_never_changes(server: FakeGcs, store: GcsStore, data: bytes) -> None:
    """And ask again for what names it; also of an object that the service copied."""
    for name in ("train/shard.bin", "manifest.json"):
        store.create(name, data)
    store.replace("marker", data)
    GcsStore("gs://bucket/copied", QUICK).copy_from(store, "train/shard.bin", size_and_crc32c(data))
    kept = {name: stored.fields.get("cacheControl") for (_, name), stored in server.objects.items()}
    immutable = "max-age=31536000, immutable"
    assert kept == {
        "p/train/shard.bin": immutable,
        "copied/train/shard.bin": immutable,
        "p/manifest.json": "no-cache",
        "p/marker": "no-cache",
    }
