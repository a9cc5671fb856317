"""rejects/ and dead_letters/ of whole runs: gathered by the launcher or by a job of their own, with the same bytes."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from refinery.loader.format.manifest import MANIFEST
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.corpus.verify.verify import verify
from refinery.pipelines.run import publish
from refinery.pipelines.run.api import refine
from refinery.pipelines.run.funnel import CountsDisagree
from refinery.pipelines.run.phases import remove_work
from refinery.transforms.write import records
from tests.pipelines.small_runs import digests, folder_files


def run(small: Path, output: Path) -> dict[str, str]:
    refine(small / "recipe.yaml", output, settings=["rejects.rate=1.0"], workers=0)
    return digests(folder_files(output))


def rows_of(prefix: Path, folder: str) -> list[dict[str, str]]:
    return [row for path in sorted((prefix / folder).iterdir()) for row in pq.read_table(path).to_pylist()]


def test_many_parts_are_gathered_by_a_job(small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_launcher = run(small, tmp_path / "a")
    monkeypatch.setattr(publish, "FEW_PARTS", 0)
    assert run(small, tmp_path / "b") == by_launcher
    assert open_store(str(tmp_path / "b/work")).size("records/report.json") is not None


def test_many_rows_become_files_and_a_killed_run_goes_on(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(small, tmp_path / "a")
    monkeypatch.setattr(records, "MOST_ROWS", 1)
    whole = run(small, tmp_path / "b")
    for folder in records.FOLDERS:
        few, many = (rows_of(tmp_path / name, folder) for name in "ab")
        assert len(few) == len(list((tmp_path / "b" / folder).iterdir())) > 0
        assert sorted(map(str, few)) == sorted(map(str, many))
    assert verify(str(tmp_path / "b")).failures == []
    (tmp_path / "b" / MANIFEST).unlink()  # as a command killed right before its last step leaves it
    assert run(small, tmp_path / "b") == whole
    remove_work(open_store(str(tmp_path / "b/work")))
    assert not [path for path in (tmp_path / "b/work").rglob("*") if path.is_file()]


def test_a_listing_that_is_old_hides_no_shard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a shared disk it may lack what another machine wrote a moment ago: that is asked for by name."""
    store = open_store(tmp_path)
    paths = ["train/s/shard-0.bin", "train/s/shard-1.bin"]
    for path in paths:
        store.create(path, b"")
    monkeypatch.setattr(type(store), "pages", lambda self, folder="": iter([]))
    publish.check_written(store, paths)
    store.delete(paths[1])
    with pytest.raises(CountsDisagree, match=f"{paths[1]} was written by this run and is gone"):
        publish.check_written(store, paths)
