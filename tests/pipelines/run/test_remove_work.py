"""--discard-work: few requests however many files there are, and nothing half removed that looks finished."""

from collections import Counter
from collections.abc import Iterator

import pytest

from refinery.loader.storage.gcs_delete import BATCH
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import StorageError
from refinery.pipelines.run.phases import CLAIMS, remove_work
from tests.fake_gcs import Call, FakeGcs, Fault, fake_gcs

PARTS = [f"{folder}/part-{i:032x}.parquet" for folder in ("documents", "signatures", "verdicts") for i in range(150)]
CLAIMING = ["clean/wave-00000.json", "clean/wave-00001.json", "dedup/report.json", "shards/report.json"]
MANIFESTS = ["clean.json", "dedup.json", "shards.json"]
OTHERS = ["_run.json", f"clean/list-{'0' * 32}.jsonl"]
FOREIGN = "documents/notes.txt"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGcs]:
    with fake_gcs("corpus") as server:
        server.use(monkeypatch)
        for name in (*PARTS, *CLAIMING, *MANIFESTS, *OTHERS, FOREIGN):
            server.put("corpus", f"work/{name}", b"x")
        yield server


def requests(server: FakeGcs) -> Counter[str]:
    """Kinds of requests, and their number; calls inside batches are none."""
    kinds = Counter(call.kind for call in server.calls)
    inside = sum(call.kind == "delete" for call in server.calls if not call.headers.get("host"))
    return kinds - Counter(delete=inside)


def test_a_hundred_files_go_in_a_request(server: FakeGcs) -> None:
    remove_work(open_store("gs://corpus/work"))
    assert list(server.read("corpus", "work/")) == [FOREIGN]
    made = requests(server)
    assert made["batch"] == 3 + -(-(len(PARTS) + 1) // BATCH)  # reports of three folders, then all else
    assert made["delete"] == len(MANIFESTS) + 1  # and _run.json
    assert made["list"] == 6  # five folders, and all
    assert sum(made.values()) == made["batch"] + made["delete"] + made["list"]


def looks_finished(left: set[str]) -> bool:
    """Whether something that counts is there while a part is gone."""
    claims = left & set(MANIFESTS) or any(map(CLAIMS.fullmatch, left))
    return bool(claims) and not left >= set(PARTS)


@pytest.mark.parametrize("number", [1, 3, 4, 6, 11, 12, 15, 17, 60, 200, 400])
def test_cut_off_anywhere(server: FakeGcs, number: int) -> None:
    """From a call on the service answers nothing but 400; then the same command again."""
    store = open_store("gs://corpus/work")
    server.on_call = lambda call: Fault("status", 400) if call.number >= number else None
    with pytest.raises(StorageError, match="status 400: scripted"):
        remove_work(store)
    left = set(server.read("corpus", "work/"))
    assert "_run.json" in left
    assert not looks_finished(left)
    server.on_call = lambda call: None
    remove_work(store)
    assert list(server.read("corpus", "work/")) == [FOREIGN]


def test_a_busy_service_is_asked_again(server: FakeGcs) -> None:
    """The first answer to a batch, and to many a call inside batches, is 503."""
    seen: set[str] = set()

    def busy(call: Call) -> Fault | None:
        key = call.name or call.kind
        is_first = key not in seen
        seen.add(key)
        chosen = call.kind == "batch" or (call.kind == "delete" and call.name.endswith(("0.parquet", "7.parquet")))
        return Fault("status", 503) if is_first and chosen else None

    server.on_call = busy
    remove_work(open_store("gs://corpus/work"))
    assert list(server.read("corpus", "work/")) == [FOREIGN]


def test_what_may_not_be_deleted_is_said(server: FakeGcs) -> None:
    server.on_call = lambda call: Fault("status", 403) if call.name.endswith(PARTS[200]) else None
    with pytest.raises(StorageError, match=rf"{PARTS[200]}: cannot be deleted: status 403"):
        remove_work(open_store("gs://corpus/work"))
    assert set(server.read("corpus", "work/")) == {FOREIGN, "_run.json", PARTS[200]}
