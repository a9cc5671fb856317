"""Cloud Storage: listings, generations, checksums, faults."""

import gzip
from collections import Counter

import google_crc32c
import pytest

from refinery.loader.storage.fetch import FetchError
from refinery.pipelines.run.fingerprint import describe_inputs
from refinery.transforms.read.find_files import find_file, find_files
from refinery.transforms.read.remote.files import open_remote
from refinery.transforms.read.sources import InputChanged, ReadTask, SourceParams, plan_sources, read_task
from tests.fake_gcs import FakeGcs, Fault

LINES = [b'{"text": "line %d"}\n' % number * (number + 1) for number in range(5)]


@pytest.fixture(autouse=True)
def objects(gcs: FakeGcs) -> None:
    files = {f"d/e/{number}.jsonl": data for number, data in enumerate(LINES)}
    for name, data in {**files, "d/e/": b"", "d/_SUCCESS": b"", "dd/x.jsonl": LINES[0]}.items():
        gcs.put("bucket", name, data)


def plan(*paths: str, requester_pays: str = "") -> list[ReadTask]:
    return plan_sources([SourceParams(name="a", paths=paths, requester_pays=requester_pays)])


def planned(*paths: str) -> list[tuple[str, int]]:
    return [(task.path, task.size) for task in plan(*paths)]


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("gs://bucket/d/e/*.jsonl", range(5)),
        ("gs://bucket/d/**/[12].jsonl", (1, 2)),
        ("gs://bucket/d/e/{1,3}.jsonl", (1, 3)),
        ("gs://bucket/d/", range(5)),
        ("gs://bucket/d/e/3.jsonl", (3,)),
    ],
)
def test_every_page_of_a_listing_is_read(path: str, found: list[int]) -> None:
    assert planned(path) == [(f"gs://bucket/d/e/{number}.jsonl", len(LINES[number])) for number in found]


def test_a_bucket_is_a_folder(gcs: FakeGcs) -> None:
    gcs.put("bucket", "_temporary/1.jsonl", b"x")
    expected = [*(f"gs://bucket/d/e/{number}.jsonl" for number in range(5)), "gs://bucket/dd/x.jsonl"]
    assert [path for path, _ in planned("gs://bucket/")] == expected


def test_only_what_begins_as_the_pattern_is_listed(gcs: FakeGcs) -> None:
    gcs.calls.clear()
    planned("gs://bucket/d/e/[34]*.jsonl", "gs://bucket/d/e/1*.jsonl")
    assert {call.query["prefix"] for call in gcs.calls} == {"d/e/", "d/e/1"}
    assert {call.kind for call in gcs.calls} == {"list"}


def test_names_may_hold_what_globs_are_made_of(gcs: FakeGcs) -> None:
    for name in ("o/{1}.jsonl", "o/1.jsonl", "o/a[1].jsonl"):
        gcs.put("bucket", name, LINES[0])
    for pattern, name in (("{1}", "{1}"), ("{1,2}", "1"), ("a[1]", "a[1]")):
        assert planned(f"gs://bucket/o/{pattern}.jsonl") == [(f"gs://bucket/o/{name}.jsonl", len(LINES[0]))]
    assert find_file("gs://bucket/o/a[1].jsonl").size == len(LINES[0])
    with pytest.raises(FileNotFoundError):
        find_file("gs://bucket/o/[1].jsonl")


def test_what_is_not_there_is_said(gcs: FakeGcs) -> None:
    for path, message in [
        ("gs://bucket/none/*", "no file matches it"),
        ("gs://bucket/none.jsonl", "no file matches it"),
        ("gs://BUCKET/x", "gs://BUCKET/KEY is allowed"),
        ("gs://bucket", "gs://BUCKET/KEY is allowed"),
        ("gs://other/x*", "bucket does not exist.*correct its name"),
        ("gs://other/x", "bucket does not exist.*correct its name"),
        ("ftp://host/x", "gs://, s3://, hf://, https:// or a local path is allowed"),
    ]:
        with pytest.raises(ValueError, match=f"source a: paths: .*{message}"):
            plan(path)
    gcs.on_call = lambda call: Fault("status", 403, message="no list")
    with pytest.raises(ValueError, match=r"cannot be listed: gs://bucket: .*status 403: no list; .*objectViewer"):
        plan("gs://bucket/d/e/*")


@pytest.mark.parametrize("key", ["/x.jsonl", "a//x+y z%20&<ü>.jsonl", "tab\t.jsonl"])
def test_every_key_is_a_path(gcs: FakeGcs, key: str) -> None:
    gcs.put("bucket", f"odd/{key}", LINES[0])
    if not key.isprintable():
        with pytest.raises(ValueError, match="printable names are allowed"):
            plan("gs://bucket/odd/**")
        return
    expected = [(f"gs://bucket/odd/{key}", len(LINES[0]))]
    assert planned(f"gs://bucket/odd/{key}") == planned("gs://bucket/odd/**") == expected
    with open_remote(f"gs://bucket/odd/{key}") as stream:
        assert stream.read() == LINES[0]


def test_a_list_names_objects(gcs: FakeGcs) -> None:
    gcs.put("bucket", "list.gz", gzip.compress(b"d/e/1.jsonl\ngs://bucket/d/e/2.jsonl\n# no\n"))
    files = find_files(SourceParams(name="a", path_lists=("gs://bucket/list.gz",)))
    assert [(file.path, file.size) for file in files] == [
        (f"gs://bucket/d/e/{number}.jsonl", len(LINES[number])) for number in (1, 2)
    ]
    assert all(file.version and file.crc32c for file in files)


def test_a_listing_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("refinery.transforms.read.remote.globs.MOST_LISTED", 3)
    with pytest.raises(ValueError, match="more than 3 names are listed; name a folder with fewer"):
        plan("gs://bucket/d/e/**")


def test_inputs_are_known_by_content_and_read_by_generation(gcs: FakeGcs) -> None:
    """However they are named. The same bytes written again are the same input, of another generation."""
    for path in ("gs://bucket/d/e/4.jsonl", "gs://bucket/d/e/[4].jsonl"):
        (task,) = plan(path)
        (entry,) = describe_inputs([task])
        assert entry["digest"] == task.crc32c == f"{google_crc32c.value(LINES[4]):08x}"
        assert task.version == f"generation:{gcs.objects['bucket', 'd/e/4.jsonl'].generation}"
    gcs.put("bucket", "d/e/4.jsonl", LINES[4])
    (again,) = plan("gs://bucket/d/e/4.jsonl")
    assert describe_inputs([again]) == [entry] and again.version != task.version


def test_describing_inputs_asks_nothing_more(gcs: FakeGcs) -> None:
    tasks = plan("gs://bucket/d/e/*")
    gcs.calls.clear()
    assert len({entry["digest"] for entry in describe_inputs(tasks)}) == 5
    assert not gcs.calls


@pytest.mark.parametrize("fault", ["503", "429", "short", "reset", "reset in body", "lost"])
def test_faults_change_nothing(gcs: FakeGcs, fault: str) -> None:
    left = Counter(("list", "stat", "download"))

    def once(call: object) -> Fault | None:
        kind = getattr(call, "kind")  # noqa: B009
        if kind not in left or (fault in ("short", "reset in body") and kind != "download"):
            return None
        del left[kind]
        return Fault.named(fault)

    gcs.on_call = once
    (task,) = plan("gs://bucket/d/e/[4].jsonl")
    assert plan("gs://bucket/d/e/4.jsonl") == [task]
    assert len(list(read_task(task))) == 5
    assert "download" not in left


def test_an_object_that_has_changed_is_refused(gcs: FakeGcs) -> None:
    (task,) = plan("gs://bucket/d/e/4.jsonl")
    gcs.put("bucket", "d/e/4.jsonl", LINES[4])
    with pytest.raises(FetchError, match=r"the object has changed: generation [0-9]+ expected"):
        list(read_task(task))
    del gcs.objects["bucket", "d/e/4.jsonl"]
    with pytest.raises(InputChanged, match="gone since the run was planned"):
        list(read_task(task))


def test_objects_stored_with_a_content_encoding_are_read_as_stored(gcs: FakeGcs) -> None:
    stored = gzip.compress(LINES[3])
    gcs.put("bucket", "d/z.jsonl", stored, contentEncoding="gzip")
    (task,) = plan("gs://bucket/d/z.jsonl")
    assert task.size == len(stored) and len(list(read_task(task))) == 4


def test_folder_markers_are_no_input(gcs: FakeGcs) -> None:
    """Consoles and tools make empty objects "folder/"; an empty object of another name is a file."""
    for name in ("marked/", "marked/sub/", "marked/none.jsonl"):
        gcs.put("bucket", name, b"")
    gcs.put("bucket", "marked/sub/a.jsonl", LINES[2])
    for pattern in ("gs://bucket/marked/", "gs://bucket/marked/**"):
        assert [path for path, _ in planned(pattern)] == [
            "gs://bucket/marked/none.jsonl",
            "gs://bucket/marked/sub/a.jsonl",
        ]


def test_a_bucket_that_its_readers_pay_for(gcs: FakeGcs) -> None:
    """The key of a source names the project: for listings, single objects, lists of addresses, and what is read."""
    gcs.put("paid", "d/a.jsonl", LINES[2])
    gcs.put("paid", "list.paths", b"d/a.jsonl\n")
    gcs.api.paid_by["paid"] = "my-project"
    with pytest.raises(ValueError, match=r"requester pays bucket .*; name the project that pays: `requester_pays`"):
        plan("gs://paid/d/*.jsonl")
    with pytest.raises(ValueError, match="may not use this project"):
        plan("gs://paid/d/*.jsonl", requester_pays="other-project")
    (task,) = plan("gs://paid/d/*.jsonl", requester_pays="my-project")
    assert plan("gs://paid/d/a.jsonl", requester_pays="my-project") == [task]
    lists = SourceParams(name="a", path_lists=("gs://paid/list.paths",), requester_pays="my-project")
    assert plan_sources([lists]) == [task] and task.payer == "my-project"
    assert ReadTask.from_json(task.to_json()) == task and len(list(read_task(task))) == 3
    (free,) = plan("gs://bucket/d/e/4.jsonl")
    assert b"payer" not in free.to_json()


@pytest.mark.parametrize("payer", ["My Project", "a b", "x" * 101, "p&q=1"])
def test_who_pays_is_a_project(payer: str) -> None:
    with pytest.raises(ValueError, match="requester_pays"):
        SourceParams(name="a", paths=("x",), requester_pays=payer)


def test_a_stream_seeks() -> None:
    with open_remote("gs://bucket/d/e/4.jsonl") as stream:
        assert stream.seek(-4, 2) == len(LINES[4]) - 4
        assert stream.read() == LINES[4][-4:]
        stream.seek(3)
        assert stream.read(5) == LINES[4][3:8]
    with pytest.raises(FileNotFoundError):
        open_remote("gs://bucket/none")
