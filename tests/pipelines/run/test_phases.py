"""Phases are taken over in one step; what failed attempts left behind is removed where that is allowed."""

from pathlib import Path
from typing import Any

import pytest

from refinery.loader.errors import FormatError
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import StorageError
from refinery.pipelines.run.phases import Phase, finish_phase, merge_reports, read_phase, remove_orphans, reuse_phase
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


COUNTER = {"stage": "read", "source": "s", "outcome": "kept", "reason": "", "documents": 1, "bytes": 1}
COUNTS = {"counters": [COUNTER], "seconds": {}, "parts": {}}


@pytest.mark.parametrize(
    "change",
    [
        {"counters": True},
        {"counters": [{**COUNTER, "documents": "/etc/passwd"}]},
        {"counters": [{**COUNTER, "source": []}]},
        {"counters": [{"stage": "read"}]},
        {"seconds": []},
        {"parts": {"documents": 7}},
        {"parts": {"documents": [{}, {}]}},
    ],
)
def test_a_report_of_another_shape(change: dict[str, Any]) -> None:
    """It is sealed, and anyone can seal: the commands that read it say so, without a traceback."""
    assert merge_reports([COUNTS, COUNTS])["counters"] == [{**COUNTER, "documents": 2, "bytes": 2}]
    with pytest.raises(FormatError, match="work/: reports of its jobs are not as a run writes them"):
        merge_reports([COUNTS, COUNTS | change])


def test_a_phase_is_taken_over_in_one_step(tmp_path: Path) -> None:
    first, second = str(tmp_path / "first"), str(tmp_path / "second")
    phase = finish_phase(first, "clean", "f", {"parts": {}})
    reuse_phase(second, phase)
    assert read_phase(second, "clean", "f") == Phase("clean", "f", first, phase.report)
    assert read_phase(second, "clean", "other") is None


@pytest.mark.parametrize("root", ["itself", "a chain", "https://192.0.2.1/work", "http://192.0.2.1/work"])
def test_a_forged_reuse_leads_nowhere(tmp_path: Path, root: str) -> None:
    work, other = str(tmp_path / "work"), str(tmp_path / "other")
    reuse_phase(other, Phase("clean", "f", work, {}))
    ends = {"itself": work, "a chain": other}
    reuse_phase(work, Phase("clean", "f", ends.get(root, root), {}))
    with pytest.raises(FormatError, match="no run writes that here"):
        read_phase(work, "clean", "f")
