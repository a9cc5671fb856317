"""State files of a run by slices, damaged or forged: one line names the file, and nothing of it is believed."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import seal
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.run.at_work import others_at_work, read_leases
from refinery.pipelines.run.cluster.progress import read_failures
from refinery.pipelines.run.slices.cut import Cut, Step, Wave, publish_cut, read_cut
from refinery.pipelines.run.slices.errors import SliceError
from refinery.pipelines.run.slices.failures import noting_failure
from refinery.pipelines.run.slices.step_files import StepFiles
from refinery.transforms.core.exchange.section_file import Sent
from refinery.transforms.core.exchange.tally import Tally

ESCAPE = "\x1b[31m\nx"
EXCHANGE = "001-to-shards"
LIST = {"name": "clean/list-00000000000000000000000000000000.jsonl", "items": 1, "sha256": "0"}


def reseal(path: Path, change: Callable[[Any], object]) -> None:
    payload = json.loads(path.read_bytes())
    del payload["sha256"]
    change(payload)
    path.write_bytes(seal(payload))


@pytest.mark.parametrize(
    "change",
    [
        lambda p: p.update(slices="abc"),
        lambda p: p.update(slices=10**12),
        lambda p: p.update(kind="refinery-run"),
        lambda p: p.update(steps=[]),
        lambda p: p["steps"][0].update(name=ESCAPE),
        lambda p: p["steps"][0].update(name="../../x"),
        lambda p: p["steps"][0].update(tasks=10**11),
        lambda p: p["waves"][0].update(number=None),
        lambda p: p["waves"][1].update(number=0),
        lambda p: p["waves"][0].update(slice=2),
        lambda p: p["waves"][0].update(slice=[0]),
        lambda p: p["waves"][0].update(bytes="x"),
        lambda p: p["waves"][0].update(tasks=None),
        lambda p: p["waves"][0]["tasks"].update(location="/etc"),
        lambda p: p["waves"][0]["tasks"].update(sha256=5),
    ],
)
def test_cut(change: Callable[[Any], object], tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    cut = Cut("f", 2, (Step("clean", 2), Step("dedup", 1)), (Wave(0, 0, 5, 1, LIST), Wave(1, 1, 5, 1, LIST)))
    publish_cut(store, cut)
    assert read_cut(store) == cut
    reseal(tmp_path / "clean/cut.json", change)
    with pytest.raises(FormatError, match=r"cut\.json: ") as caught:
        read_cut(store)
    assert str(caught.value).isprintable()


@pytest.fixture
def step(tmp_path: Path) -> StepFiles:
    """A step that two slices have done."""
    step = StepFiles(open_store(str(tmp_path)), "shards", 0, "f", 2)
    for number in range(2):
        name = step.sections_name((number,), f"0000000{number}")
        step.store.create(name, b"sections")
        assert step.commit((number,), name, {EXCHANGE: Sent(1, 0, Tally(1, 2, 3))}, {}, [False, False])
    return step


RECORDS: dict[str, Callable[[Any], object]] = {
    "file outside": lambda p: p.update(file="../../x"),
    "file of another step": lambda p: p.update(file="exchange/dedup-0/slice-00000-00000000.sections"),
    "file of others": lambda p: p.update(file="clean/cut.json"),
    "folder outside": lambda p: p.update(sent={"/x": p["sent"].pop(EXCHANGE)}),
    "folder above": lambda p: p.update(sent={"../x": p["sent"].pop(EXCHANGE)}),
    "table": lambda p: p["sent"][EXCHANGE].update(table=-1),
    "to itself": lambda p: p["sent"][EXCHANGE].update(step=0),
    "count": lambda p: p["sent"][EXCHANGE].update(elements="a"),
    "huge count": lambda p: p["sent"][EXCHANGE].update(elements=10**40),
    "steps": lambda p: p.update(steps="ab"),
    "no steps": lambda p: p.update(steps=[]),
    "received": lambda p: p.update(received="x"),
}


@pytest.mark.parametrize("name", RECORDS)
def test_record(name: str, step: StepFiles, tmp_path: Path) -> None:
    reseal(tmp_path / step.record_name((0,)), RECORDS[name])
    with pytest.raises(FormatError, match="shards-0: records of slices are not as a run writes them"):
        step.seal()
    assert not (tmp_path / step.folder / "sealed.json").exists()


def test_sections_that_are_gone_are_not_sealed(step: StepFiles, tmp_path: Path) -> None:
    """The line says how the slice is done again."""
    (tmp_path / step.sections_name((1,), "00000001")).unlink()
    with pytest.raises(SliceError, match=r"slice-00001-00000001\.sections is gone; remove \S+/slice-00001\.json"):
        step.seal()
    assert not (tmp_path / step.folder / "sealed.json").exists()
    (tmp_path / step.record_name((1,))).unlink()
    assert step.missing() == [1]


def test_what_is_sealed_is_checked_again(step: StepFiles, tmp_path: Path) -> None:
    assert step.seal() == step.seal()
    reseal(tmp_path / step.folder / "sealed.json", lambda p: p["files"].append(p["files"][0]))
    with pytest.raises(FormatError, match="a file twice"):
        step.seal()


def test_the_record_of_another_slice(step: StepFiles, tmp_path: Path) -> None:
    """It would count that slice twice, and this one never."""
    shutil.copy(tmp_path / step.record_name((1,)), tmp_path / step.record_name((0,)))
    with pytest.raises(SliceError, match=r"slice-00000\.json is of another slice"):
        step.seal()


FIELDS = {"step": "clean", "slice": 0, "host": "h"}
LEASE = FIELDS | {"id": "a", "machine": "m", "process": 1, "born": "5", "started": 5.0, "renewed": 5.0}


@pytest.mark.parametrize(
    "wrong", [{"started": 1e300}, {"renewed": "5"}, {"process": 10**30}, {"id": {}}, {"step": ["a"]}, {"host": [1]}]
)
def test_lease(wrong: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / f"at_work/{'a' * 16}-00000000.json"
    path.parent.mkdir()
    path.write_bytes(seal(LEASE | {"host": ESCAPE}))
    (lease,) = others_at_work(open_store(str(tmp_path)))
    assert lease.words().isprintable()
    path.write_bytes(seal(LEASE | wrong))
    assert read_leases(open_store(str(tmp_path))) == {}


@pytest.mark.parametrize("ended", [1e300, -1e15, 10**400, []])
def test_failure(ended: object, tmp_path: Path) -> None:
    path = tmp_path / f"at_work/failed-clean-00000-{'a' * 16}.json"
    path.parent.mkdir()
    for when, found in ((5.0, 1), (ended, 0)):
        path.write_bytes(seal(FIELDS | {"reason": "r", "ended": when}))
        assert len(read_failures(open_store(str(tmp_path)))) == found


@pytest.mark.parametrize("step", ["../x", ESCAPE, "a" * 3000])
def test_a_step_that_no_run_has_leaves_no_reason(step: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no such step"), noting_failure(open_store(str(tmp_path)), step, 0):
        raise ValueError("no such step")
    assert list(tmp_path.iterdir()) == []
