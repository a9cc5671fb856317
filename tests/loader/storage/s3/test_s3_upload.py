"""Objects written to S3, at once and in parts, under any fault; services that are less than S3."""

import subprocess
import sys
from collections import Counter
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from refinery.loader.errors import CorruptObject
from refinery.loader.storage import s3_upload
from refinery.loader.storage.copy_object import COPIED_THERE, copy_object
from refinery.loader.storage.fetch import FetchError
from refinery.loader.storage.s3_store import RACERS, S3Store
from refinery.loader.storage.s3_upload import MOST_PARTS, PART, part_size
from refinery.loader.storage.store import StorageConflict, StorageError, size_and_crc32c
from tests.fake_gcs_wire import Answer
from tests.fake_s3 import Call, FakeS3, Fault
from tests.loader.storage.s3.stores import LARGE, OK, PIECE, refuse, tried
from tests.loader.store_calls import QUICK, SHORT_DEADLINE, SMALL, once_at, patience, use, write_x
from tests.sampling import one_commit_in_four, sampled

UPLOADS = (
    ("put", "upload-start", "upload-part", "upload-end"),
    ("503", "reset", "lost", "corrupt request", "part of request", "stall"),
    ("create", "replace"),
)


@pytest.mark.parametrize(
    ("kind", "fault", "method"), sampled("faults of uploads to S3", product(*UPLOADS), 16, lambda cell: cell)
)
def test_uploads(server: FakeS3, store: S3Store, kind: str, fault: str, method: str, tmp_path: Path) -> None:
    """After any single fault of any call the object is complete, and nothing is left of an upload."""
    store.params = patience(fault)
    data = SMALL if kind == "put" else LARGE
    server.on_call = once_at(kind, fault)
    write_x(store, method, data, tmp_path)
    assert server.read("bucket") == {"p/x": data}
    assert (kind, fault) == ("upload-start", "lost") or fault == "stall" or not server.api.uploads
    assert method == "replace" or server.changes == [("create", "bucket", "p/x")]


@pytest.mark.parametrize("code", ["ConditionalRequestConflict", "OperationAborted"])
@pytest.mark.parametrize("kind", ["put", "upload-end"])
def test_another_request_for_the_key_is_under_way(server: FakeS3, store: S3Store, code: str, kind: str) -> None:
    """409 says nothing about the object: the same request again. For ever: an error, never "it exists"."""
    data = SMALL if kind == "put" else LARGE
    server.on_call = once_at(kind, Fault("status", 409, message=code))
    store.create("x", data)
    assert [change for change in server.changes if change[2] == "p/x"] == [("create", "bucket", "p/x")]
    store.params, server.on_call = SHORT_DEADLINE, refuse(code, 409, kind)
    name = f"{kind}-{code}"  # of this test alone: a request of the one before may arrive late, and is not refused then
    with pytest.raises(StorageError, match=f"s3://bucket/p/{name}: cannot be written: .*status 409 {code}"):
        store.create(name, data)
    assert not server.api.uploads


@pytest.mark.parametrize("checksums", ["known", "refused", ""])
@pytest.mark.parametrize("data", [SMALL, LARGE], ids=["small", "large"])
def test_an_object_that_is_there(server: FakeS3, checksums: str, data: bytes) -> None:
    """The same bytes are success and are not sent again; others are a conflict, also of the same size."""
    server.api.checksums = checksums
    store = tried(S3Store("s3://bucket/p", QUICK), server)
    store.create("x", data)
    sent = sum(call.size for call in server.calls)
    store.create("x", data)
    assert sum(call.size for call in server.calls) == sent
    for other in (data[:-1] + b"!", data + b"!", b""):
        with pytest.raises(StorageConflict, match="s3://bucket/p/x exists with other bytes"):
            store.create("x", other)
    assert server.changes == [("create", "bucket", "p/x")]


@pytest.mark.parametrize("data", [SMALL, LARGE], ids=["small", "large"])
def test_another_writer_is_faster(server: FakeS3, store: S3Store, data: bytes) -> None:
    """Another object is created while ours is sent."""

    def interfere(call: Call) -> None:
        if call.kind in ("put", "upload-end"):
            server.put("bucket", call.name, data if call.name == "p/same" else b"theirs")

    server.on_call = interfere
    store.create("same", data)
    with pytest.raises(StorageConflict):
        store.create("other", data)
    assert [change[0] for change in server.changes] == ["create", "create"]
    assert not server.api.uploads


def test_permission_to_create_but_not_to_overwrite(server: FakeS3, store: S3Store) -> None:
    """The same bytes are success, others a conflict, a new name an error, though the first look is refused as well."""
    store.create("x", SMALL)
    looks: list[Call] = []

    def refuse_first(call: Call) -> Fault | None:
        looks.append(call)
        first = call.kind == "head" and [each.kind for each in looks].count("head") % 2 == 1
        return Fault("status", 403, message="AccessDenied") if first or call.kind in ("put", "get") else None

    server.on_call = refuse_first
    store.create("x", SMALL)
    with pytest.raises(StorageConflict):
        store.create("x", b"other")
    with pytest.raises(StorageError, match="status 403 AccessDenied"):
        store.create("new", b"other")


# Uploads in parts


def test_a_completion_that_fails_after_its_status(server: FakeS3, store: S3Store) -> None:
    """200 and then <Error>, or nothing: done again. The object may be there already."""
    end = server.api._upload_end
    bodies = (b"<Error><Code>InternalError</Code></Error>", b"", b"<html/>")
    for number, (body, applied) in enumerate(product(bodies, (False, True))):
        todo = [body]

        def broken(*request: Any) -> Answer:
            answer = end(*request) if applied or not todo else OK  # noqa: B023 - called before the next round
            return replace(OK, body=todo.pop()) if todo else answer  # noqa: B023

        server.api._upload_end = broken  # type: ignore[method-assign]
        store.create(str(number), LARGE)
        assert not todo and server.objects["bucket", f"p/{number}"].data == LARGE
    server.api._upload_end = end  # type: ignore[method-assign]


@pytest.mark.parametrize("kind", ["upload-part", "upload-end"])
def test_lost_uploads_are_begun_again(server: FakeS3, store: S3Store, kind: str) -> None:
    server.on_call = once_at(kind, Fault("status", 404, message="NoSuchUpload"))
    store.create("x", LARGE)
    assert Counter(call.kind for call in server.calls)["upload-start"] == 2
    server.calls.clear()
    server.on_call = refuse("NoSuchUpload", 404, kind)
    with pytest.raises(StorageError, match="s3://bucket/p/y: cannot be written: 3 uploads were lost"):
        store.create("y", LARGE)
    assert Counter(call.kind for call in server.calls)["upload-start"] == 3


def test_a_refused_part_leaves_nothing(server: FakeS3, store: S3Store) -> None:
    server.on_call = lambda call: (
        Fault("status", 403, message="AccessDenied")
        if call.kind == "upload-part" and call.query["partNumber"] == "2"
        else None
    )
    with pytest.raises(StorageError, match="status 403 AccessDenied"):
        store.create("x", LARGE)
    assert not server.api.uploads and not server.objects


@pytest.mark.parametrize("size", [1, PART, PART + 1, MOST_PARTS * PART, MOST_PARTS * PART + 1, 5 << 40])
def test_sizes_of_parts(size: int) -> None:
    """As many as allowed, between what is allowed, all of one size but the last."""
    assert -(-size // part_size(size, PART)) <= MOST_PARTS
    assert PART <= part_size(size, PART) <= 5 << 30


@pytest.mark.parametrize("whole", ["known", "refused", ""])
def test_checksums_of_large_objects(server: FakeS3, whole: str) -> None:
    """The service's own if it computes one of all bytes; else ours stays with the object."""
    server.api.whole = whole
    store = tried(S3Store("s3://bucket/p", QUICK), server)
    store.create("x", LARGE)
    info = store.info("x")
    assert info is not None and info[:2] == size_and_crc32c(LARGE) and info.computed == (whole == "known")


@one_commit_in_four
def test_large_uploads_need_little_memory(server: FakeS3, tmp_path: Path) -> None:
    with (tmp_path / "source").open("wb") as out:
        out.truncate(6 * PART)
    server.api.least_part = 5 << 20
    script = (
        "import resource, sys; from pathlib import Path\n"
        "from refinery.loader.storage.open_store import open_store\n"
        "store = open_store('s3://bucket/p'); store.create('first', b'x' * (9 << 20))\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "store.create('x', Path(sys.argv[1])); print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, tmp_path / "source"], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) << 10 < 3 * PART
    assert max(call.size for call in server.calls) <= PART
    assert server.objects["bucket", "p/x"].data == bytes(6 * PART)


# Services that are less


@pytest.mark.parametrize("slow", [0.0, 0.2])
def test_a_service_that_lets_writers_replace_objects(server: FakeS3, slow: float) -> None:
    """Found out before the first object is written: whether it ignores the condition, or looks and then writes."""
    server.api.ignores, server.api.slow_check = set() if slow else {"put"}, slow
    store = S3Store("s3://bucket/p", QUICK)
    for write in (lambda: store.create("x", SMALL), store.check_exclusive):
        with pytest.raises(
            StorageError, match=r"s3://bucket/p: \d writers all created one object; .*ignores .*If-None-Match: \*"
        ):
            write()
    assert not server.objects


def test_a_service_that_refuses_conditions(server: FakeS3) -> None:
    server.on_call = lambda call: (
        Fault("status", 501, message="NotImplemented") if "if-none-match" in call.headers else None
    )
    with pytest.raises(StorageError, match=r"501 NotImplemented.*this store has no exclusive create"):
        S3Store("s3://bucket/p", QUICK).create("x", SMALL)
    assert not server.objects


def test_a_service_is_tried_out_once(server: FakeS3) -> None:
    """Per process and bucket; nothing is left of it, and nothing of a killed process' is listed."""
    for name in ("a", "b"):
        S3Store("s3://bucket/p", QUICK).create(name, SMALL)
    assert Counter(call.kind for call in server.calls)["put"] == 2 + RACERS
    assert set(server.read("bucket")) == {"p/a", "p/b"}
    server.put("bucket", "q/.tmp-0123456789abcdef", b"x")
    store = S3Store("s3://bucket/q", QUICK)
    assert store.list() == [] and store.is_empty()


def test_a_service_without_conditions_for_completions(server: FakeS3, tmp_path: Path) -> None:
    """Large objects are then written at once."""
    server.api.ignores = {"upload-end"}
    store = tried(S3Store("s3://bucket/p", QUICK), server)
    source = tmp_path / "source"
    source.write_bytes(LARGE)
    for data in (source, LARGE):
        store.create("x", data)
    with pytest.raises(StorageConflict):
        store.create("x", LARGE[:-1] + b"!")
    assert {call.kind for call in server.calls} == {"head", "put"} and server.read("bucket") == {"p/x": LARGE}


def test_answers_of_a_proxy(server: FakeS3, store: S3Store) -> None:
    """200 and a page: never success."""
    server.put("bucket", "p/x", SMALL)
    page, store.params = replace(OK, body=b"<html>Please log in</html>"), SHORT_DEADLINE
    act, server.api.act = server.api.act, lambda request: page  # type: ignore[method-assign]
    try:
        for method in ("read", "size", "list", "delete", "create", "replace", "check", "delete_many"):
            with pytest.raises((StorageError, FetchError)):
                use(store, method)
    finally:
        server.api.act = act  # type: ignore[method-assign]
    assert server.read("bucket") == {"p/x": SMALL}


def test_listings(server: FakeS3, store: S3Store) -> None:
    """Names that XML cannot say are asked for in another way; pages that repeat themselves are an error."""
    names = ["a b", "a+b", "a%20b", "a&b<c>", "ü", "🍎", "tab\tx", "line\rend"]
    for name in [*names, "folder/"]:
        server.put("bucket", f"p/{name}", b"")
    assert store.list() == sorted(names)
    server.put("bucket", "p/control\x01", b"")
    assert store.list() == sorted([*names, "control\x01"])
    act = server.api._list
    again = "/bucket?list-type=2"
    server.api._list = lambda request, *rest: act(replace(request, target=again), *rest)  # type: ignore[method-assign]
    with pytest.raises(StorageError, match="s3://bucket/p: cannot be listed: "):
        store.params = SHORT_DEADLINE
        store.list()
    del server.api._list


@pytest.mark.parametrize("bulk", [True, False])
def test_many_objects_are_removed(server: FakeS3, store: S3Store, bulk: bool) -> None:
    server.api.bulk = bulk
    names = [f"{number}/&<\r>" for number in range(5)]
    for name in names:
        server.put("bucket", f"p/{name}", b"")
    assert store.delete_many([*names, "gone"]) == []
    assert server.read("bucket") == {}
    kinds = Counter(call.kind for call in server.calls)
    assert (kinds["delete-many"], kinds["delete"]) == ((1, 0) if bulk else (1, 6))


def test_those_that_may_not_be_removed_are_named(server: FakeS3, store: S3Store) -> None:
    body = b"<DeleteResult><Error><Key>p/b</Key><Code>AccessDenied</Code></Error></DeleteResult>"
    server.api._delete_many = lambda *request: replace(OK, body=body)  # type: ignore[method-assign]
    assert store.delete_many(["a", "b"]) == ["b"]
    del server.api._delete_many


def test_the_service_copies_large_objects(server: FakeS3, store: S3Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """In parts; the copy's checksum is compared. A source of other bytes is refused, as is another object there."""
    monkeypatch.setattr(s3_upload, "COPIED", PIECE)
    monkeypatch.setattr("refinery.loader.storage.copy_object.PART", PIECE)
    store.create("x", LARGE)
    other = S3Store("s3://bucket/q", QUICK)
    for _ in range(2):
        assert copy_object(store, other, "x", *size_and_crc32c(LARGE)) == COPIED_THERE
    assert server.objects["bucket", "q/x"].data == LARGE
    assert Counter(call.kind for call in server.calls)["copy-part"] == 3
    with pytest.raises(CorruptObject, match=r"s3://bucket/p/x: .* found, .* expected"):
        copy_object(store, S3Store("s3://bucket/r", QUICK), "x", len(LARGE), "00000000")
    server.put("bucket", "s/x", LARGE[:-1] + b"!")
    with pytest.raises(StorageConflict):
        copy_object(store, S3Store("s3://bucket/s", QUICK), "x", *size_and_crc32c(LARGE))


@pytest.mark.parametrize("data", [SMALL, LARGE], ids=["small", "large"])
def test_caches_keep_what_never_changes(server: FakeS3, store: S3Store, data: bytes) -> None:
    """And ask again for what names it."""
    for name in ("train/shard.bin", "manifest.json"):
        store.create(name, data)
    store.replace("marker", data)
    kept = {name: stored.headers["cache-control"] for (_, name), stored in server.objects.items()}
    immutable = "max-age=31536000, immutable"
    assert kept == {"p/train/shard.bin": immutable, "p/manifest.json": "no-cache", "p/marker": "no-cache"}
