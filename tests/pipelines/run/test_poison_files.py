"""The search for what kills worker processes, without any: what is noted, what is poison, and when it ends."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from refinery.loader.storage.open_store import open_store
from refinery.pipelines.run.errors import RefineError
from refinery.pipelines.run.poison_files import PoisonSearch
from refinery.pipelines.runners.local_runner import Death, WorkerDied
from refinery.transforms.read.sources import ReadTask, read_task, read_tasks, write_tasks

A, B = "/in/a.jsonl", "/in/b.jsonl"
TASKS = [ReadTask(A, "jsonl", "s", 0, 10), ReadTask(B, "jsonl", "s", 1, 10)]


class Recording:
    """A runner that notes whether records are to be named."""

    def __init__(self) -> None:
        self.named: list[bool] = []

    @contextlib.contextmanager
    def naming_records(self, wanted: bool = True) -> Iterator[None]:
        self.named.append(wanted)
        yield


def search(folder: Path, allowed: int, said: list[str] | None = None) -> Any:
    runner: Any = Recording()
    return PoisonSearch(open_store(str(folder)), runner, allowed, (said if said is not None else []).append)


def dying(files: Sequence[str], origin: str = "") -> Any:
    def run() -> None:
        raise WorkerDied(Death("it died", "again", tuple(files), ("extract", origin) if origin else None))

    return run


def test_nothing_has_died(tmp_path: Path) -> None:
    found = search(tmp_path, 0)
    assert found.settle(TASKS) == ([], TASKS)
    assert found.attempt(lambda: 7, False) == 7
    assert found.runner.named == [False]  # a run that nothing happens to pays nothing


def test_files_on_which_a_process_died_come_first(tmp_path: Path) -> None:
    found = search(tmp_path, 0)
    with pytest.raises(WorkerDied, match=r"^it died; again; with --set failures\.poison_files=1 it finds the record"):
        found.attempt(dying([B]), False)
    again = search(tmp_path, 0)
    assert again.settle(TASKS) == ([TASKS[1]], [TASKS[0]])
    with pytest.raises(WorkerDied):
        again.attempt(dying([B], f"{B}@5"), True)
    assert again.runner.named == [True]
    with pytest.raises(RefineError, match=rf"died twice while they read {B}\. .*--set failures\.poison_files=1 counts"):
        search(tmp_path, 0).settle(TASKS)
    assert search(tmp_path, 1).settle(TASKS) == ([TASKS[1]], [TASKS[0]])  # once with this record in hand


def test_a_record_on_which_two_died(tmp_path: Path) -> None:
    said: list[str] = []
    found = search(tmp_path, 1, said)
    for _ in range(2):
        assert found.attempt(dying([B], f"{B}@5"), False) is None
    suspect, others = found.settle(TASKS)
    assert [(task.path, task.poison_records, task.poison) for task in suspect] == [(B, (f"{B}@5",), False)]
    assert others == [TASKS[0]]
    assert said[-1] == f"clean: left out because worker processes died on them: {B}@5 (stage extract)"
    found.settle(TASKS)
    assert len(said) == 3  # said once
    listed = read_tasks(write_tasks(str(tmp_path), suspect))
    assert listed == suspect


def test_a_file_on_which_two_died_without_a_record(tmp_path: Path) -> None:
    found = search(tmp_path, 1)
    for _ in range(2):
        assert found.attempt(dying([B]), False) is None
    (task,), _ = found.settle(TASKS)
    assert (task.path, task.poison, task.poison_records) == (B, True, ())
    assert [record.error for record in read_task(task)] == ["PoisonFile"]


def test_the_limit_counts_records_and_files_of_the_whole_run(tmp_path: Path) -> None:
    found = search(tmp_path, 3)
    for place in (dying([A], f"{A}@0"), dying([B], f"{B}@5"), dying([B], f"{B}@9"), dying([A])):
        for _ in range(2):
            found.attempt(place, False)
    for tasks in (TASKS, TASKS[:1]):
        with pytest.raises(RefineError, match=r"--set failures\.poison_files=4 counts each"):
            found.settle(tasks)
    assert len(search(tmp_path, 4).settle(TASKS)[0]) == 2
    assert search(tmp_path, 0).settle([])[1] == []  # what is read already may have been left out by another command


def test_processes_that_die_of_something_else_end_the_run(tmp_path: Path) -> None:
    found = search(tmp_path, 1)
    for number in range(4):
        assert found.attempt(dying([B], f"{B}@{number}"), False) is None
    with pytest.raises(WorkerDied):
        found.attempt(dying([B], f"{B}@99"), False)
    with pytest.raises(WorkerDied):
        search(tmp_path, 1).attempt(dying([]), False)  # in no file


def test_documents_of_an_earlier_run_keep_their_origins(tmp_path: Path) -> None:
    found = search(tmp_path, 1)
    for _ in range(2):
        found.attempt(dying(["/run/part-1.parquet"], f"{A}@5"), False)
    tasks = [ReadTask("/run/part-1.parquet", "documents", "s", 0, 10), TASKS[1]]
    suspect, others = found.settle(tasks)
    assert [task.poison_records for task in suspect] == [(f"{A}@5",)]
    assert others == [TASKS[1]]


def test_notes_of_earlier_versions_name_no_record(tmp_path: Path) -> None:
    from refinery.loader.format.manifest import seal

    for number in range(2):
        note = {"schema_version": 1, "kind": "refinery-worker-death", "files": [B]}
        open_store(str(tmp_path)).create(f"clean/death-{number:032x}.json", seal(note))
    assert [task.poison for task in search(tmp_path, 1).settle(TASKS)[0]] == [False]  # the record is looked for first
