"""Faults of S3 and of what is like it: retries, checksums, conditions, uploads in parts, errors that say what to do."""

import logging
import os
import threading
from itertools import product

import pytest

from refinery.loader.errors import CorruptObject
from refinery.loader.storage.fetch import FetchError
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.s3_store import S3Store
from refinery.loader.storage.store import StorageError
from tests.fake_s3 import KEY, SECRET, FakeS3
from tests.loader.storage.s3.stores import refuse, tried
from tests.loader.store_calls import QUICK, SHORT_DEADLINE, SMALL, TRANSIENT, once_at, patience, use
from tests.sampling import sampled

# Every method with every fault


METHODS = {
    "read": "get", "open": "get", "size": "head", "list": "list", "delete": "delete", "create": "put",
    "replace": "put", "check": "list", "delete_many": "delete-many",
}  # fmt: skip


@pytest.mark.parametrize(
    ("method", "fault"), sampled("faults of calls to S3", product(METHODS, TRANSIENT), 20, lambda cell: cell)
)
def test_transient_faults(server: FakeS3, store: S3Store, method: str, fault: str) -> None:
    store.params = patience(fault)
    for name in ("a", "b", "x"):
        server.put("bucket", f"p/{name}", SMALL)
    expected = {"read": SMALL, "open": SMALL, "size": len(SMALL), "list": ["a", "b", "x"], "delete_many": []}.get(
        method
    )
    server.on_call = once_at(METHODS[method], fault)
    assert use(store, method) == expected
    # The short timeout of "stall" may be exceeded more than once on a loaded machine.
    assert store.counters.retries == 1 or (fault == "stall" and store.counters.retries > 1)
    present = {"a": SMALL, "b": SMALL} | ({} if method.startswith("delete") else {"x": SMALL})
    assert server.read("bucket", "p/") == present | ({"new": SMALL} if METHODS[method] == "put" else {})


@pytest.mark.parametrize("method", METHODS)
def test_a_deadline_ends_it_in_one_line_with_the_services_words(server: FakeS3, store: S3Store, method: str) -> None:
    store.params = SHORT_DEADLINE
    server.put("bucket", "p/x", SMALL)
    server.on_call = refuse("SlowDown", 503, METHODS[method], *(["get"] if method == "size" else []))
    with pytest.raises((StorageError, FetchError), match=r"^s3://bucket/p.*status 503 SlowDown") as caught:
        use(store, method)
    assert "\n" not in str(caught.value) and "http://" not in str(caught.value)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("status", "code", "advice"),
    [
        (400, "MalformedRequest", ""),
        (400, "ExpiredToken", "the credentials of AWS_ACCESS_KEY_ID have expired: renew them"),
        (403, "AccessDenied", "s3:ListBucket and s3:GetObject to read"),
        (403, "InvalidAccessKeyId", "were rejected: look at AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
    ],
)
def test_refusals_are_not_retried(
    server: FakeS3, store: S3Store, method: str, status: int, code: str, advice: str
) -> None:
    server.put("bucket", "p/x", SMALL)
    server.on_call = refuse(code, status, METHODS[method], *(["get"] if method == "size" else ["delete"]))
    with pytest.raises((StorageError, FetchError), match=f"status {status} {code}.*{advice}") as caught:
        use(store, method)
    assert [call.kind for call in server.calls].count(METHODS[method]) == 1
    assert SECRET not in str(caught.value) and KEY not in str(caught.value)


@pytest.mark.parametrize("method", METHODS)
def test_a_missing_bucket(server: FakeS3, method: str) -> None:
    """An answer to HEAD does not say what is missing: the first one is followed by a listing."""
    with pytest.raises(OSError, match=r"s3://nowhere.*NoSuchBucket.*Create it, or correct its name"):
        use(S3Store("s3://nowhere/p", QUICK), method)
    assert len(server.calls) <= 2


def test_what_a_service_answers_cannot_steer_a_terminal(server: FakeS3, store: S3Store) -> None:
    server.on_call = refuse("busy \x9b2J\u202e", 418)
    with pytest.raises(StorageError) as caught:
        store.check()
    assert str(caught.value).isprintable() and "busy" in str(caught.value)


def test_without_credentials(server: FakeS3, monkeypatch: pytest.MonkeyPatch) -> None:
    """A public bucket can be read; what needs a key says so."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    server.put("bucket", "p/x", SMALL)
    before = server.unsigned
    assert S3Store("s3://bucket/p", QUICK).read("x") == SMALL
    assert server.unsigned == before + 1
    server.api.signed = True
    with pytest.raises(FetchError, match="there are no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"):
        S3Store("s3://bucket/p", QUICK).read("x")


def test_an_answer_may_say_how_to_ask_again(server: FakeS3, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bucket's region, the service's clock, and other keys than those that have expired."""
    server.put("bucket", "p/x", SMALL)
    server.api.region, server.api.ahead = "eu-west-9", 3600
    store = S3Store("s3://bucket/p", QUICK)
    assert store.read("x") == SMALL and store.counters.retries == 0
    assert store.size("x") == len(SMALL) and len(server.calls) == 4
    server.api.expired.add("OLD")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "OLD")
    with pytest.raises(FetchError, match=r"ExpiredToken.*renew them"):
        store.read("x")
    keys = [KEY]
    server.on_call = lambda call: os.environ.update(AWS_ACCESS_KEY_ID=keys[0])  # type: ignore[func-returns-value]
    assert store.read("x") == SMALL


# Bytes


@pytest.mark.parametrize("checksums", ["known", "refused", ""])
def test_wrong_bytes(server: FakeS3, checksums: str) -> None:
    """Once: read again. Twice: an error with both checksums. A service that knows none keeps ours."""
    server.api.checksums = checksums
    store = tried(S3Store("s3://bucket/p", QUICK), server)
    store.create("x", SMALL)
    server.script.extend(["wrong"])
    assert store.read("x") == SMALL
    server.script.extend(["wrong", "wrong"])
    with pytest.raises(CorruptObject, match=r"s3://bucket/p/x: crc32c \w{8} found, \w{8} expected"):
        store.read("x")
    server.script.extend(["wrong"])
    with store.open("x") as stream, pytest.raises(CorruptObject, match=r"s3://bucket/p/x: crc32c \w{8} found"):
        stream.read()


@pytest.mark.parametrize("fault", ["short", "reset in body", "stall in body", "whole", "long"])
def test_answers_that_are_not_the_range(server: FakeS3, store: S3Store, fault: str) -> None:
    store.params = patience(fault)
    server.put("bucket", "p/x", SMALL)
    server.script.append(fault)
    assert store.read("x", 5, 1000) == SMALL[5:1005]
    assert store.counters.retries >= 1


def test_a_stream_stays_on_one_version(server: FakeS3, store: S3Store) -> None:
    server.put("bucket", "p/x", b"old")
    with store.open("x") as stream:
        server.put("bucket", "p/x", b"new")
        with pytest.raises(FetchError, match="the object has changed: ETag"):
            stream.read()


# Addresses


def test_names_are_counted_in_bytes(server: FakeS3) -> None:
    store = S3Store("s3://bucket", QUICK)
    store.replace("k" * 1024, b"x")
    with pytest.raises(ValueError, match="1025 bytes with its prefix given"):
        store.replace("k" + "ü" * 512, b"x")
    assert len(server.calls) == 1


@pytest.mark.parametrize(
    "endpoint", ["http://example.org", "ftp://localhost", "https://a:b@host", "https://host/path", "x"]
)
def test_endpoints_refused(monkeypatch: pytest.MonkeyPatch, endpoint: str) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    with pytest.raises(ValueError, match=r"AWS_ENDPOINT_URL: .* https://HOST") as caught:
        open_store("s3://bucket")
    assert "a:b" not in str(caught.value)


@pytest.mark.parametrize(
    ("environment", "origin", "path"),
    [
        ({"AWS_REGION": "eu-west-1"}, "https://bkt.s3.eu-west-1.amazonaws.com", "/a%20b/%2B"),
        ({"AWS_REGION": "cn-north-1"}, "https://bkt.s3.cn-north-1.amazonaws.com.cn", "/a%20b/%2B"),
        ({"AWS_ENDPOINT_URL": "https://host:9000/"}, "https://host:9000", "/bkt/a%20b/%2B"),
        (
            {"AWS_ENDPOINT_URL": "https://host", "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "true"},
            "https://bkt.host",
            "/a%20b/%2B",
        ),
    ],
)
def test_where_requests_go(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], origin: str, path: str
) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    client = S3Store("s3://bkt").client
    assert (client.origin, client.path("a b/+")) == (origin, path)


def test_requests_that_the_reader_pays_for(server: FakeS3, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REQUEST_PAYER", "requester")
    server.put("bucket", "p/x", SMALL)
    assert S3Store("s3://bucket/p", QUICK).read("x") == SMALL
    assert server.calls[0].headers["x-amz-request-payer"] == "requester"


def test_a_forked_child_has_connections_of_its_own(server: FakeS3, store: S3Store) -> None:
    server.put("bucket", "p/x", SMALL)
    assert store.read("x") == SMALL
    child = os.fork()
    if child == 0:
        os._exit(0 if store.read("x") == SMALL else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert store.read("x") == SMALL


def test_many_threads(server: FakeS3, store: S3Store) -> None:
    server.put("bucket", "p/x", SMALL)
    found: list[bytes] = []
    threads = [threading.Thread(target=lambda: found.append(store.read("x"))) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [SMALL] * 16


def test_no_secret_is_logged(server: FakeS3, store: S3Store, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    server.on_call = once_at("head", "503")
    assert store.size("x") is None
    assert caplog.text and SECRET not in caplog.text and KEY not in caplog.text
