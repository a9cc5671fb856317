"""S3: listings, signatures, versions, faults."""

import gzip

import pytest

from refinery.loader.storage.fetch import FetchError
from refinery.transforms.read.remote.files import open_remote
from refinery.transforms.read.sources import InputChanged, SourceParams, plan_sources, read_task
from tests.fake_s3 import KEY, SECRET, FakeS3, etag

LINES = [b'{"text": "line %d"}\n' % number * (number + 1) for number in range(5)]


@pytest.fixture(autouse=True)
def objects(bucket: FakeS3) -> None:
    files = {f"d/e/{number}.jsonl": data for number, data in enumerate(LINES)}
    for name, data in {**files, "d/e/": b"", "d/_SUCCESS": b"", "dd/x.jsonl": LINES[0]}.items():
        bucket.put("bucket", name, data)


def plan(*paths: str) -> list[tuple[str, int]]:
    return [(task.path, task.size) for task in plan_sources([SourceParams(name="a", paths=paths)])]


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("s3://bucket/d/e/*.jsonl", range(5)),
        ("s3://bucket/d/**/[12].jsonl", (1, 2)),
        ("s3://bucket/d/", range(5)),
        ("s3://bucket/d/e/3.jsonl", (3,)),
    ],
)
def test_every_page_of_a_listing_is_read(path: str, found: list[int]) -> None:
    assert plan(path) == [(f"s3://bucket/d/e/{number}.jsonl", len(LINES[number])) for number in found]


def test_what_is_not_there_is_said(bucket: FakeS3) -> None:
    for path, message in [
        ("s3://bucket/none/*", "no file matches it"),
        ("s3://bucket/none.jsonl", "no file matches it"),
        ("s3://BUCKET/x", "s3://BUCKET/KEY is allowed"),
    ]:
        with pytest.raises(ValueError, match=message):
            plan(path)
    bucket.api.signed = True
    with pytest.raises(ValueError, match="there are no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"):
        plan("s3://bucket/d/e/*")


@pytest.mark.parametrize("key", ["../x.jsonl", "/x.jsonl", "a/./x.jsonl", "a//x+y z%20&<ü>.jsonl", "tab\t.jsonl"])
def test_every_key_is_a_path(bucket: FakeS3, key: str) -> None:
    """Byte for byte, and readable; not those that cannot be printed. Globs leave out what begins with "." """
    bucket.put("bucket", f"odd/{key}", LINES[0])
    if not key.isprintable():
        with pytest.raises(ValueError, match="printable names are allowed") as caught:
            plan("s3://bucket/odd/**")
        assert str(caught.value).isprintable()
        return
    assert plan(f"s3://bucket/odd/{key}") == [(f"s3://bucket/odd/{key}", len(LINES[0]))]
    if "./" not in key:
        assert plan("s3://bucket/odd/**") == [(f"s3://bucket/odd/{key}", len(LINES[0]))]
    with open_remote(f"s3://bucket/odd/{key}") as stream:
        assert stream.read() == LINES[0]


def test_a_listing_without_end_is_refused(bucket: FakeS3, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("refinery.transforms.read.remote.globs.MOST_LISTED", 3)
    with pytest.raises(ValueError, match="more than 3 names are listed; name a folder with fewer"):
        plan("s3://bucket/d/e/**")


def test_requests_are_signed_with_what_the_environment_holds(bucket: FakeS3, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket.api.signed = True
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    tasks = plan_sources([SourceParams(name="a", paths=("s3://bucket/d/e/*",))])
    assert len([record for task in tasks for record in read_task(task)]) == 15
    assert not bucket.unsigned
    assert not any(SECRET in text or KEY in text for task in tasks for text in [task.to_json().decode()])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    with pytest.raises(OSError, match=r"SignatureDoesNotMatch.*were rejected") as caught:
        list(read_task(tasks[0]))
    assert "wrong" not in str(caught.value)


@pytest.mark.parametrize("fault", ["503", "short", "whole", "reset in body"])
def test_faults_change_nothing(bucket: FakeS3, fault: str) -> None:
    (task,) = plan_sources([SourceParams(name="a", paths=("s3://bucket/d/e/4.jsonl",))])
    bucket.script.append(fault)
    assert len(list(read_task(task))) == 5


def test_an_object_that_has_changed_is_refused(bucket: FakeS3) -> None:
    (task,) = plan_sources([SourceParams(name="a", paths=("s3://bucket/d/e/4.jsonl",))])
    assert task.version == f"etag:{etag(LINES[4])}"
    bucket.put("bucket", "d/e/4.jsonl", LINES[4].replace(b"4", b"5"))
    with pytest.raises(FetchError, match="the object has changed: ETag"):
        list(read_task(task))
    del bucket.objects["bucket", "d/e/4.jsonl"]
    with pytest.raises(InputChanged, match="gone since the run was planned"):
        list(read_task(task))


def test_a_stream_seeks() -> None:
    with open_remote("s3://bucket/d/e/4.jsonl") as stream:
        assert stream.seek(-4, 2) == len(LINES[4]) - 4
        assert stream.read() == LINES[4][-4:]
        stream.seek(3)
        assert stream.read(5) == LINES[4][3:8]
        with pytest.raises(ValueError, match="position -1 given, 0 or more is allowed"):
            stream.seek(-len(LINES[4]) - 1, 2)


def test_objects_stored_with_a_content_encoding_are_read_as_stored(bucket: FakeS3) -> None:
    stored = gzip.compress(LINES[3])
    bucket.put("bucket", "d/z.jsonl", stored, content_encoding="gzip")
    (task,) = plan_sources([SourceParams(name="a", paths=("s3://bucket/d/z.jsonl",))])
    assert task.size == len(stored) and len(list(read_task(task))) == 4


def test_folder_markers_are_no_input(bucket: FakeS3) -> None:
    for name in ("marked/", "marked/sub/", "marked/none.jsonl"):
        bucket.put("bucket", name, b"")
    assert plan("s3://bucket/marked/**") == plan("s3://bucket/marked/") == [("s3://bucket/marked/none.jsonl", 0)]


def test_a_bucket_that_its_readers_pay_for(bucket: FakeS3) -> None:
    """Every request says so: listings, single objects, what is read; those of other sources do not."""
    for pattern in ("s3://bucket/d/e/[4].jsonl", "s3://bucket/d/e/4.jsonl"):
        (task,) = plan_sources([SourceParams(name="a", paths=(pattern,), requester_pays="requester")])
        bucket.calls.clear()
        plan_sources([SourceParams(name="a", paths=(pattern,), requester_pays="requester")])
        assert len(list(read_task(task))) == 5
        assert {call.headers.get("x-amz-request-payer") for call in bucket.calls} == {"requester"}
    bucket.calls.clear()
    plan("s3://bucket/d/e/4.jsonl")
    assert {call.headers.get("x-amz-request-payer") for call in bucket.calls} == {None}
