"""Which tasks of phase 1 are still to be read, by the reports of the waves that are done."""

from dataclasses import replace
from pathlib import Path

import pytest

from refinery.pipelines.run.waves import unread_tasks
from refinery.transforms.read.sources import ReadTask, write_tasks

FILE = ReadTask("gs://raw/a.parquet", "parquet", "a", 0, 400)


def cut(task: ReadTask, parts: int) -> list[ReadTask]:
    return [replace(task, part=part, parts=parts) for part in range(parts)]


@pytest.mark.parametrize(("earlier", "done"), [(4, ()), (4, (0, 3)), (2, (1,)), (7, (0, 2)), (1, (0,))])
def test_a_file_is_read_on_as_it_was_cut(tmp_path: Path, earlier: int, done: tuple[int, ...]) -> None:
    """An earlier version cut it into `earlier` parts, of which `done` are read: every part is read once."""
    whole = replace(FILE, path="gs://raw/b.parquet", file_index=1, size=40)
    finished = [cut(FILE, earlier)[part] for part in done]
    reports = [{"tasks": write_tasks(str(tmp_path), finished).plain()}] if done else []
    left = unread_tasks(str(tmp_path), [*cut(FILE, 4), whole], reports)
    assert left[-1] == whole
    assert left[:-1] == [task for task in cut(FILE, earlier if done else 4) if task.part not in done]
