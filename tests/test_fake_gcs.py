"""The fake Cloud Storage, with Google's own clients as judges of its answers."""

import gc
import gzip
import io
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
import requests
from google.api_core import exceptions
from google.cloud import storage
from google.cloud.storage.exceptions import DataCorruption

from tests.fake_gcs import FAULTS, Call, FakeGcs, Fault, fake_gcs
from tests.fake_gcs_wire import selected

BIG = bytes(range(251)) * 8000  # 2 MB
CHUNK = 512 << 10


@pytest.fixture(scope="module")
def running() -> Iterator[FakeGcs]:
    with pytest.MonkeyPatch.context() as patch, fake_gcs("bucket", "other") as server:
        server.use(patch)
        yield server


@pytest.fixture
def server(running: FakeGcs) -> FakeGcs:
    running.clear()
    running.api.page_size = 1000
    return running


@pytest.fixture
def client(server: FakeGcs) -> Iterator[storage.Client]:
    client = storage.Client(project=None)
    yield client
    client.close()


@pytest.fixture
def bucket(client: storage.Client) -> Any:
    return client.bucket("bucket")


def upload(bucket: Any, name: str, data: bytes, **options: Any) -> Any:
    """In chunks, as everything that is large."""
    blob = bucket.blob(name, chunk_size=CHUNK)
    blob.upload_from_file(io.BytesIO(data), **options)  # of unknown size: always resumable
    return blob


@contextmanager
def dropping_connections() -> Iterator[None]:
    """Google's client does not close the connection of an answer that it does not like."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        yield
        gc.collect()


def kinds(server: FakeGcs) -> list[str]:
    return [call.kind for call in server.calls]


# Objects


def test_small_upload_and_metadata(server: FakeGcs, bucket: Any) -> None:
    blob = bucket.blob("a b/ä?#.bin")
    blob.upload_from_string(b"data", content_type="text/x", checksum="crc32c")
    found = bucket.get_blob("a b/ä?#.bin")
    assert (found.size, found.content_type, found.metageneration) == (4, "text/x", 1)
    assert found.generation == server.objects["bucket", "a b/ä?#.bin"].generation > 1 << 50
    assert found.crc32c == blob.crc32c and found.md5_hash == "jXd/OF09/siBXSD3SWAm3A=="
    found.metadata = {"x": "y"}
    found.patch()
    assert bucket.get_blob("a b/ä?#.bin").metadata == {"x": "y"}
    assert found.metageneration == 2 and found.generation == blob.generation
    assert bucket.get_blob("missing") is None
    first = server.calls[0]
    assert (first.number, first.method, first.bucket, first.name) == (1, "POST", "bucket", "a b/ä?#.bin")
    assert kinds(server) == ["upload", "stat", "patch", "stat", "stat"]
    assert server.answers == {1: 200, 2: 200, 3: 200, 4: 200, 5: 404}


def test_downloads(server: FakeGcs, bucket: Any) -> None:
    server.put("bucket", "x", BIG)
    server.put("bucket", "empty", b"")
    blob = bucket.blob("x")
    assert blob.download_as_bytes(checksum="crc32c") == blob.download_as_bytes(checksum="md5") == BIG
    assert blob.download_as_bytes(start=10, end=19) == BIG[10:20]
    assert blob.download_as_bytes(start=len(BIG) - 3) == BIG[-3:]
    assert bucket.blob("empty").download_as_bytes() == b""
    with pytest.raises(exceptions.RequestRangeNotSatisfiable):
        blob.download_as_bytes(start=len(BIG))
    with pytest.raises(exceptions.NotFound, match="No such object: bucket/none"):
        bucket.blob("none").download_as_bytes()
    with blob.open("rb", chunk_size=1 << 20) as stream:
        stream.seek(-5, 2)
        assert stream.read() == BIG[-5:]
    answer = requests.get(f"{server.url}/storage/v1/b/bucket/o/x?alt=media", headers={"Range": "bytes=-7"}, timeout=5)
    assert (answer.status_code, answer.content) == (206, BIG[-7:])
    assert answer.headers["Content-Range"] == f"bytes {len(BIG) - 7}-{len(BIG) - 1}/{len(BIG)}"


def test_gzip_is_stored_and_may_be_decompressed(server: FakeGcs, bucket: Any) -> None:
    stored = gzip.compress(b"text" * 100)
    server.put("bucket", "x", stored, contentEncoding="gzip")
    assert bucket.blob("x").download_as_bytes(raw_download=True) == stored
    address = f"{server.url}/storage/v1/b/bucket/o/x?alt=media"
    assert requests.get(address, headers={"Accept-Encoding": "identity"}, timeout=5).content == b"text" * 100


@pytest.mark.parametrize(
    ("condition", "value", "holds"),
    [
        ("if_generation_match", 0, False),
        ("if_generation_match", "now", True),
        ("if_generation_match", 12, False),
        ("if_generation_not_match", "now", False),
        ("if_generation_not_match", 12, True),
        ("if_metageneration_match", 1, True),
        ("if_metageneration_match", 2, False),
        ("if_metageneration_not_match", 1, False),
    ],
)
def test_preconditions(server: FakeGcs, bucket: Any, condition: str, value: Any, holds: bool) -> None:
    generation = server.put("bucket", "x", b"old").generation
    wanted = {condition: generation if value == "now" else value}
    blob = bucket.blob("x")

    def outcome(use: Any) -> Any:
        try:
            use()
        except exceptions.GoogleAPICallError as error:
            return error.code
        return True

    reading = True if holds else 304 if "not_match" in condition else 412
    writing = True if holds else 412
    assert outcome(lambda: blob.reload(**wanted)) == reading
    assert outcome(lambda: blob.download_as_bytes(**wanted)) == reading
    if condition in ("if_generation_match", "if_metageneration_match"):
        assert (
            outcome(lambda: bucket.blob("y").rewrite(blob, **{f"if_source{condition[2:]}": wanted[condition]}))
            == writing
        )
    if condition != "if_metageneration_not_match":  # google-cloud-storage 3.17 misspells it in uploads
        assert outcome(lambda: upload(bucket, "x", b"new", **wanted)) == writing
        assert (bucket.blob("x").download_as_bytes() == b"new") is holds


def test_create_only(server: FakeGcs, bucket: Any) -> None:
    at_once, in_chunks = partial(bucket.blob("x").upload_from_string, b"1"), partial(upload, bucket, "y", BIG)
    for write in (at_once, in_chunks):
        write(if_generation_match=0)
        with pytest.raises(exceptions.PreconditionFailed):
            write(if_generation_match=0)
    with pytest.raises(exceptions.PreconditionFailed):
        bucket.blob("none").upload_from_string(b"1", if_generation_match=12)
    assert server.changes == [("create", "bucket", "x"), ("create", "bucket", "y")]


def test_a_race_for_one_name_is_decided_at_the_end(server: FakeGcs, bucket: Any) -> None:
    """The condition is checked again when the last chunk arrives; until then nobody sees anything."""

    def interfere(call: Call) -> Fault | None:
        if call.kind == "upload-end":
            assert ("bucket", "x") not in server.objects
            server.put("bucket", "x", b"theirs")
        return None

    server.on_call = interfere
    with pytest.raises(exceptions.PreconditionFailed):
        upload(bucket, "x", BIG, if_generation_match=0)
    assert server.read("bucket") == {"x": b"theirs"}
    assert kinds(server).count("upload-chunk") == 3


def test_delete_batch_and_missing_buckets(server: FakeGcs, client: storage.Client, bucket: Any) -> None:
    for name in "abc":
        server.put("bucket", name, b"")
    bucket.delete_blob("a")
    with pytest.raises(exceptions.NotFound):
        bucket.delete_blob("a")
    server.on_call = lambda call: Fault("status", 503) if call.kind == "delete" and call.name == "c" else None
    with pytest.raises(exceptions.ServiceUnavailable), client.batch():
        for name in "abc":
            bucket.delete_blob(name)
    assert sorted(server.read("bucket")) == ["c"]
    assert kinds(server)[-4:] == ["batch", "delete", "delete", "delete"]
    with pytest.raises(exceptions.NotFound, match="The specified bucket does not exist"):
        list(client.list_blobs("nowhere"))
    assert client.lookup_bucket("nowhere") is None
    assert client.create_bucket("new", project="p").name == client.get_bucket("new").name
    server.api.buckets.discard("new")


@pytest.mark.parametrize("page", [1, 2, 1000])
def test_lists(server: FakeGcs, client: storage.Client, page: int) -> None:
    names = ["a", "a/b", "a/c/d", "a/c/e", "b", "ä", "\U0001f600", "�"]
    for name in names:
        server.put("bucket", name, name.encode())
    server.put("other", "a/z", b"")
    server.api.page_size = page
    in_order = sorted(names, key=str.encode)
    assert [blob.name for blob in client.list_blobs("bucket")] == in_order
    assert [blob.name for blob in client.list_blobs("bucket", prefix="a/c/")] == ["a/c/d", "a/c/e"]
    assert [blob.name for blob in client.list_blobs("bucket", start_offset="a/c", end_offset="b")] == ["a/c/d", "a/c/e"]
    assert [blob.name for blob in client.list_blobs("bucket", max_results=3)] == in_order[:3]
    found = client.list_blobs("bucket", prefix="a", delimiter="/")
    assert ([blob.name for blob in found], sorted(found.prefixes)) == (["a"], ["a/"])
    blobs = list(client.list_blobs("bucket", prefix="b", fields="items(name),nextPageToken"))
    assert [(blob.name, blob.size) for blob in blobs] == [("b", None)]


def test_selected_fields() -> None:
    value = {"kind": "k", "items": [{"name": "n", "size": "1", "owner": {"a": 1, "b": 2}}], "nextPageToken": "t"}
    assert selected(value, "items(name,size),nextPageToken") == {
        "items": [{"name": "n", "size": "1"}],
        "nextPageToken": "t",
    }
    assert selected(value, "items/name") == {"items": [{"name": "n"}]}
    assert selected(value, "*") == value


def test_copies(server: FakeGcs, client: storage.Client, bucket: Any) -> None:
    server.put("bucket", "x", BIG, contentType="text/x")
    server.api.rewrite_bytes = 1 << 20
    blob, target = bucket.blob("x"), client.bucket("other").blob("y")
    token, done, size = target.rewrite(blob)
    assert (done, size) == (1 << 20, len(BIG)) and ("other", "y") not in server.objects
    assert target.rewrite(blob, token=token) == (None, len(BIG), len(BIG))
    bucket.copy_blob(blob, client.bucket("other"), "z")
    assert server.read("other") == {"y": BIG, "z": BIG}
    assert server.objects["other", "z"].fields["contentType"] == "text/x"
    composed = bucket.blob("c")
    composed.compose([blob, blob], if_generation_match=0)
    assert composed.download_as_bytes(checksum="crc32c") == 2 * BIG
    assert composed.component_count == 2 and composed.md5_hash is None
    server.api.rewrite_bytes = 1 << 40


# Resumable uploads


@pytest.mark.parametrize("size", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, len(BIG)])
def test_resumable_uploads(server: FakeGcs, bucket: Any, size: int) -> None:
    blob = upload(bucket, "x", BIG[:size], checksum="crc32c", content_type="text/x")
    assert server.read("bucket") == {"x": BIG[:size]}
    assert (blob.size, blob.content_type) == (size, "text/x")


def test_the_protocol_of_a_resumable_upload(server: FakeGcs, bucket: Any) -> None:
    """Status queries, chunks that are kept in part, chunks sent twice, gaps, and the end."""
    session = bucket.blob("x").create_resumable_upload_session(size=len(BIG))

    def put(data: bytes, span: str) -> requests.Response:
        return requests.put(session, data=data, headers={"Content-Range": f"bytes {span}/{len(BIG)}"}, timeout=5)

    def kept(answer: requests.Response) -> str | None:
        assert answer.status_code == 308
        return answer.headers.get("Range")

    assert kept(put(b"", "*")) is None
    assert kept(put(BIG[:300_000], "0-299999")) == "bytes=0-262143"  # multiples of 256 KiB
    assert kept(put(b"", "*")) == "bytes=0-262143"
    assert kept(put(BIG[:CHUNK], f"0-{CHUNK - 1}")) == f"bytes=0-{CHUNK - 1}"  # what is there is not taken again
    assert put(BIG[CHUNK + 1 :], f"{CHUNK + 1}-{len(BIG) - 1}").status_code == 400
    assert put(b"xyz", f"{CHUNK}-{len(BIG) - 1}").status_code == 400
    assert server.read("bucket") == {}
    done = put(BIG[CHUNK:], f"{CHUNK}-{len(BIG) - 1}")
    assert (done.status_code, done.json()["name"]) == (200, "x")
    for again in (put(b"", "*"), put(BIG[CHUNK:], f"{CHUNK}-{len(BIG) - 1}")):
        assert again.json() == done.json()
    assert server.changes == [("create", "bucket", "x")] and server.read("bucket") == {"x": BIG}
    assert kinds(server)[:4] == ["upload-start", "upload-status", "upload-chunk", "upload-status"]
    other = bucket.blob("y").create_resumable_upload_session(size=3)
    assert requests.delete(other, timeout=5).status_code == 499
    assert requests.put(other, data=b"123", timeout=5).status_code == 499
    assert requests.put(other + "0", data=b"123", timeout=5).status_code == 404


def test_checksums_given_by_the_client(server: FakeGcs, bucket: Any) -> None:
    """A wrong one is refused, whichever way it comes; none of these leaves an object."""
    blob = bucket.blob("x")
    blob.crc32c = "AAAAAA=="
    with pytest.raises(exceptions.BadRequest, match="doesn't match calculated CRC32C"):
        blob.upload_from_string(BIG, checksum=None)
    with pytest.raises(exceptions.BadRequest, match="CRC32C"):
        upload(bucket, "x", BIG, crc32c_checksum_value="AAAAAA==", checksum=None)
    blob = bucket.blob("x")
    blob.md5_hash = "AAAAAA=="
    with pytest.raises(exceptions.BadRequest, match="doesn't match calculated MD5"):
        blob.upload_from_string(BIG, checksum=None)
    address = f"{server.url}/upload/storage/v1/b/bucket/o?uploadType=media&name=x"
    assert requests.post(address, data=b"1", headers={"x-goog-hash": "crc32c=AAAAAA=="}, timeout=5).status_code == 400
    assert server.read("bucket") == {}
    assert requests.post(address, data=b"1", timeout=5).status_code == 200
    assert server.read("bucket") == {"x": b"1"}


# Faults


@pytest.mark.parametrize("fault", ["503", "429", "408", "reset", "short", "reset in body", "stall in body", "200"])
def test_downloads_that_go_wrong_and_are_tried_again(server: FakeGcs, bucket: Any, fault: str) -> None:
    server.put("bucket", "x", BIG)
    server.script.append(fault)
    server.stall = 0.3
    retry = storage.retry.DEFAULT_RETRY.with_delay(0.01, 0.01)
    with dropping_connections():
        found = bucket.blob("x").download_as_bytes(start=5, end=len(BIG), timeout=0.2, retry=retry)
    assert found == (BIG if fault == "200" else BIG[5:])
    assert len(server.calls) == 1 + (fault != "200")


def test_wrong_bytes(server: FakeGcs, bucket: Any) -> None:
    server.put("bucket", "x", BIG)
    server.on_call = lambda call: Fault("wrong") if call.kind == "download" else None
    with pytest.raises(DataCorruption):
        bucket.blob("x").download_as_bytes(checksum="crc32c")
    found = bucket.blob("x").download_as_bytes(checksum=None)
    assert len(found) == len(BIG) and sum(a != b for a, b in zip(found, BIG, strict=True)) == 1


@pytest.mark.parametrize("kind", ["upload", "upload-start", "upload-chunk", "upload-end"])
@pytest.mark.parametrize("fault", ["503", "reset", "lost", "corrupt request", "part of request"])
def test_uploads_that_go_wrong(server: FakeGcs, bucket: Any, kind: str, fault: str) -> None:
    """Once, at that call: the client tries again and the object is what it should be, or it is refused."""
    todo = [Fault.named(fault)]
    server.on_call = lambda call: todo.pop() if call.kind == kind and todo else None
    options = {"checksum": "crc32c", "retry": storage.retry.DEFAULT_RETRY.with_delay(0.01, 0.01)}
    refused = {  # what google-cloud-storage makes of it, and what is there afterwards
        ("upload", "corrupt request"): exceptions.BadRequest,
        ("upload-chunk", "corrupt request"): exceptions.BadRequest,
        ("upload-end", "corrupt request"): exceptions.BadRequest,
    }.get((kind, fault))
    send = bucket.blob("x").upload_from_string if kind == "upload" else partial(upload, bucket, "x")
    if refused:
        with pytest.raises(refused):
            send(BIG, **options)
        assert server.read("bucket") == {}
    else:
        send(BIG, **options)
        assert server.read("bucket") == {"x": BIG}
    assert not todo
    assert server.changes[1:] == ([("replace", "bucket", "x")] if (kind, fault) == ("upload", "lost") else [])


def test_lost_acknowledgements_and_hooks_after_the_act(server: FakeGcs, bucket: Any) -> None:
    seen = []

    def after(call: Call) -> Fault | None:
        seen.append((call.number, call.kind, ("bucket", "x") in server.objects))
        return Fault("reset") if call.number == 1 else None

    server.after_call = after
    with pytest.raises(exceptions.PreconditionFailed):  # by the client's own second attempt
        bucket.blob("x").upload_from_string(b"1", if_generation_match=0)
    assert seen == [(1, "upload", True), (2, "upload", True)]
    server.after_call = lambda call: Fault("status", 403)
    with pytest.raises(exceptions.Forbidden):
        bucket.delete_blob("x")
    assert server.read("bucket") == {}


def test_a_stall_ends_with_the_server() -> None:
    began = time.monotonic()
    with pytest.MonkeyPatch.context() as patch, fake_gcs("bucket") as server:
        server.use(patch)
        server.on_call = lambda call: Fault("stall", seconds=600)
        client = storage.Client(project=None)
        with pytest.raises(requests.exceptions.ReadTimeout):
            client.bucket("bucket").blob("x").download_as_bytes(retry=None, timeout=0.05)
        client.close()
    assert time.monotonic() - began < 300


def test_names_of_faults() -> None:
    assert Fault.named("") is None
    assert Fault.named("429") == Fault("status", 429)
    for kind in FAULTS:
        assert Fault.named(kind) == Fault(kind)
    with pytest.raises(ValueError, match="kind: 'no' given"):
        Fault("no")


def test_what_the_fake_does_not_know_fails_the_test() -> None:
    with pytest.raises(NotImplementedError, match="/storage/v1/b/bucket/acl"), fake_gcs("bucket") as server:
        assert requests.get(f"{server.url}/storage/v1/b/bucket/acl", timeout=5).status_code == 501
