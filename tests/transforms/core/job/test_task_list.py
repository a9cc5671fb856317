from pathlib import Path

import apache_beam as beam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refinery.loader.errors import FormatError
from refinery.loader.storage.store import StorageConflict
from refinery.transforms.core.job.read_task_list import ReadTaskList
from refinery.transforms.core.job.task_list import TaskList, read_task_list, write_task_list
from tests.beam import run_and_collect
from tests.sampling import examples


@settings(deadline=None, max_examples=examples(30))
@given(items=st.lists(st.binary(max_size=50).filter(lambda item: b"\n" not in item), max_size=20))
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, items: list[bytes]) -> None:
    folder = str(tmp_path_factory.mktemp("work"))
    written = write_task_list(folder, "clean", items)
    assert read_task_list(written) == items
    assert written.items == len(items)
    assert TaskList(folder, **written.plain()) == written == write_task_list(folder, "clean", items)
    assert len(list(Path(folder).rglob("*.*"))) == 1


def test_another_list_has_another_name(tmp_path: Path) -> None:
    names = {write_task_list(str(tmp_path), folder, items).name for folder in "ab" for items in ([], [b"1"], [b"2"])}
    assert len(names) == 6


def test_line_breaks_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"items: b'a\\nb' given"):
        write_task_list(str(tmp_path), "clean", [b"a\nb"])


@pytest.mark.parametrize("data", [b"1\n", b"1\n2\n3\n", b"9\n2\n", b""])
def test_a_list_that_changed_is_never_read(tmp_path: Path, data: bytes) -> None:
    written = write_task_list(str(tmp_path), "clean", [b"1", b"2"])
    (tmp_path / written.name).write_bytes(data)
    with pytest.raises(FormatError, match=rf"{written.name}: sha256 \w+ found, {written.sha256} expected"):
        read_task_list(written)
    with pytest.raises(StorageConflict):
        write_task_list(str(tmp_path), "clean", [b"1", b"2"])
    with pytest.raises(Exception, match="damaged or replaced"):
        run_and_collect(lambda p: [p | ReadTaskList(written)])


@pytest.mark.parametrize("flags", [(), ("--direct_runner_bundle_repeat=2",)])
def test_items_are_dealt_out_once(tmp_path: Path, flags: tuple[str, ...]) -> None:
    items = [str(n).encode() for n in range(1000)]
    written = write_task_list(str(tmp_path), "clean", items)

    def build(pipeline: beam.Pipeline) -> list[beam.PCollection]:
        read = pipeline | ReadTaskList(written)
        assert read.element_type is bytes
        return [read]

    assert sorted(run_and_collect(build, *flags)[0]) == sorted(items)
