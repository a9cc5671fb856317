"""Exchange and Deal in real pipelines: on disk and as the runner's own, what they deliver and what they refuse."""

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest

import refinery.transforms.core.exchange.exchange as exchange_module
from refinery.loader.format.manifest import unseal
from refinery.pipelines.runners.runner import Runner
from refinery.transforms.core.exchange.exchange import Deal, Exchange
from refinery.transforms.core.exchange.on_disk import DiskExchanges, exchange_on_disk, finish_graph
from refinery.transforms.core.job.read_task_list import ReadTaskList
from refinery.transforms.core.job.task_list import write_task_list
from refinery.transforms.core.job.write_report import WriteReport

PAIRS = [(number % 7, b"%d" % number) for number in range(200)]


def write_group(key: int, values: Iterable[bytes], folder: str) -> None:
    Path(folder, f"{key}").write_bytes(b" ".join(sorted(values)))


def graph(pipeline: beam.Pipeline, folder: Path, guarded: bool = True) -> None:
    """Two sides into one exchange, every group a file, and a report."""
    left = pipeline | "left" >> beam.Create(PAIRS[:90]).with_output_types(tuple[int, bytes])
    right = pipeline | "right" >> beam.Create(PAIRS[90:]).with_output_types(tuple[int, bytes])
    groups = (left, right) | Exchange("by key", guarded=guarded)
    groups | beam.MapTuple(partial(write_group, folder=str(folder)))
    pipeline | WriteReport(str(folder), "report.json", {})


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix != ".json"}


RIGHT = {f"{key}": b" ".join(sorted(value for k, value in PAIRS if k == key)) for key in range(7)}


@pytest.mark.parametrize("runner", ["local", "FnApiRunner", "DirectRunner"])
def test_every_runner_delivers_the_same(runner: str, tmp_path: Path) -> None:
    with Runner(runner, workers=0, quiet=True).open() as opened:
        opened.run("test", lambda pipeline: graph(pipeline, tmp_path))
    assert files(tmp_path) == RIGHT
    report = unseal((tmp_path / "report.json").read_bytes(), "report")
    name, *_ = [name for name in report["exchanges"] if name.endswith("by-key")]
    assert report["exchanges"][name]["elements"] == len(PAIRS)
    assert report["exchanges"][name]["bytes"] == sum(len(value) for _, value in PAIRS)


class _LossyGroupByKey(beam.PTransform):
    """Loses a value of a key now and then, as Beam 2.77 can."""

    def expand(self, pairs: beam.PCollection) -> Any:
        return pairs | "lose" >> beam.Filter(lambda pair: pair[1] not in (b"17", b"150")) | "rest" >> _group()


_group = beam.GroupByKey


@pytest.mark.parametrize("guarded", [True, False])
def test_what_a_runner_loses_fails_the_job(guarded: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A guarded group is never complete, so nothing of it gets its name; in any case there is no report."""
    monkeypatch.setattr(exchange_module.beam, "GroupByKey", _LossyGroupByKey)
    with Runner("FnApiRunner", workers=0, quiet=True).open() as opened, pytest.raises(RuntimeError, match="by-key"):
        opened.run("test", lambda pipeline: graph(pipeline, tmp_path, guarded))
    assert not (tmp_path / "report.json").exists()
    written = files(tmp_path)
    assert not guarded or written == {name: RIGHT[name] for name in written}


@pytest.mark.parametrize("runner", ["local", "FnApiRunner"])
def test_a_list_that_nobody_dealt_fails_the_job(runner: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A runner that loses the first element of all: nobody reads the list or sends, and the sums of nothing hold."""
    tasks = write_task_list(str(tmp_path), "clean", [b"1", b"2", b"3"])

    def build(pipeline: beam.Pipeline) -> None:
        pipeline | ReadTaskList(tasks) | beam.Filter(lambda line: False)
        pipeline | WriteReport(str(tmp_path), "report.json", {})

    monkeypatch.setattr("refinery.transforms.core.job.read_task_list._Items.process", lambda self, element: iter(()))
    with (
        Runner(runner, workers=0, quiet=True).open() as opened,
        pytest.raises(RuntimeError, match="deal: 3 elements were to be sent, 0 arrived"),
    ):
        opened.run("test", build)
    assert not (tmp_path / "report.json").exists()


def test_dealt_elements_come_in_order_to_one_worker(tmp_path: Path) -> None:
    lines = [b"%d" % number for number in range(300)]

    def note(line: bytes) -> None:
        with (tmp_path / "seen").open("ab") as file:
            file.write(line + b"\n")

    def build(pipeline: beam.Pipeline) -> None:
        dealt = pipeline | beam.Create([0]) | beam.FlatMap(lambda _: lines).with_output_types(bytes) | Deal("deal")
        dealt | beam.Map(note)

    with Runner("local", workers=0, quiet=True).open() as opened:
        opened.run("test", build)
    assert (tmp_path / "seen").read_bytes().splitlines() == lines


def test_a_lazy_group_is_never_copied(tmp_path: Path) -> None:
    """Where a runner would have to encode it, the job fails instead of holding it whole."""

    def build(pipeline: beam.Pipeline) -> None:
        exchange_on_disk(pipeline, DiskExchanges(str(tmp_path)))
        groups = pipeline | beam.Create(PAIRS).with_output_types(tuple[int, bytes]) | Exchange("by key")
        pipeline | "one" >> beam.Create([0]) | beam.Map(lambda _, groups: None, beam.pvalue.AsIter(groups))
        finish_graph(pipeline)

    with Runner("local", workers=0, quiet=True).open() as opened, pytest.raises(RuntimeError, match="copied whole"):
        opened.run("test", build)


def test_temporary_files_are_where_they_were_asked_for_and_gone_at_the_end(tmp_path: Path) -> None:
    corpus, scratch = tmp_path / "corpus", tmp_path / "scratch"
    corpus.mkdir()

    def look(pipeline: beam.Pipeline) -> None:
        graph(pipeline, corpus)
        count = beam.Map(lambda _: (tmp_path / "seen").write_text(" ".join(path.name for path in scratch.iterdir())))
        pipeline | beam.Create([0]) | "look" >> count

    with Runner("local", workers=0, quiet=True, scratch=str(scratch)).open() as opened:
        opened.run("test", look)
    assert (tmp_path / "seen").read_text().startswith("refinery-run-")
    assert list(scratch.iterdir()) == []
