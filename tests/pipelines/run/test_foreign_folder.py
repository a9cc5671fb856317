"""A folder that holds something, and no run, is refused, also where what it holds is hard to see."""

import os
from pathlib import Path
from typing import Any

import pytest

from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import Store
from refinery.pipelines.run.prefix import foreign_file


def found(folder: Path) -> str:
    return foreign_file(open_store(str(folder)))


def test_hidden_files_and_empty_folders_are_nobody_s(tmp_path: Path) -> None:
    (tmp_path / "train").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").touch()
    (tmp_path / ".DS_Store").touch()
    assert found(tmp_path) == found(tmp_path / "absent") == ""
    (tmp_path / "train" / "thesis.txt").touch()
    assert found(tmp_path) == "train/thesis.txt"


def test_work_files_of_an_emptied_prefix_are_a_runs(tmp_path: Path) -> None:
    """A job on other machines may end after its prefix was emptied; the same command goes on there."""
    part = tmp_path / "work" / "rejects" / f"part-{'0' * 32}.parquet"
    part.parent.mkdir(parents=True)
    part.touch()
    assert found(tmp_path) == found(tmp_path / "work") == ""
    (part.parent / "part-1.parquet").touch()
    assert found(tmp_path) == "work/rejects/part-1.parquet"


@pytest.mark.parametrize("target", ["elsewhere", "nowhere"])
def test_a_link_to_a_folder_is_somebody_s(tmp_path: Path, target: str) -> None:
    """A run that took the place would write its shards behind the link."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "train").symlink_to(tmp_path / target)
    assert found(tmp_path / "out") == "train"


def test_a_place_that_cannot_be_opened_is_somebody_s(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert found(tmp_path) == "fifo"


def test_a_folder_that_cannot_be_listed_is_not_taken_for_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "locked").mkdir()
    scan = os.scandir

    def refused(path: str) -> Any:
        if os.fspath(path).endswith("locked"):
            raise PermissionError(13, "Permission denied", path)
        return scan(path)

    monkeypatch.setattr(os, "scandir", refused)
    with pytest.raises(PermissionError):
        found(tmp_path)


def test_a_remote_place_that_is_emptied_while_it_is_looked_at() -> None:
    class Emptied:
        root = "gs://bucket/out"

        def is_empty(self) -> bool:
            return False

        def list(self) -> list[str]:
            return []

    store: Store = Emptied()  # type: ignore[assignment]  # what is asked of one
    assert foreign_file(store) == ""
