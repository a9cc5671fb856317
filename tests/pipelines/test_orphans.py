"""What failed attempts left behind is removed where that is allowed, and does no harm where it is not."""

import pytest

from loader.storage import StorageError, open_store
from pipelines.phases import remove_orphans
from tests.fake_gcs import Fault, fake_gcs

ORPHAN, CLAIMED = (f"rejects/part-{digit * 32}.parquet" for digit in "01")
REPORT = {"parts": {"rejects": [{"path": CLAIMED}]}}


@pytest.mark.parametrize(("status", "removed"), [(None, 1), (403, 0), (401, None)])
def test_orphans_of_a_bucket(monkeypatch: pytest.MonkeyPatch, status: int | None, removed: int | None) -> None:
    with fake_gcs("corpus") as server:
        server.use(monkeypatch)
        for name in (ORPHAN, CLAIMED, "rejects/notes.txt"):
            server.put("corpus", f"work/{name}", b"x")
        server.on_call = lambda call: Fault("status", status) if call.kind == "delete" and status else None
        store = open_store("gs://corpus/work")
        if removed is None:
            with pytest.raises(StorageError, match=f"{ORPHAN}: cannot be deleted"):
                remove_orphans(store, REPORT, ("rejects",))
        else:
            assert remove_orphans(store, REPORT, ("rejects",)) == removed
        assert (ORPHAN in server.read("corpus", "work/")) == (removed != 1)
        assert {CLAIMED, "rejects/notes.txt"} <= set(server.read("corpus", "work/"))
