"""A run by slices: the same bytes whatever their number, each slice once, and no slice's files taken for another's."""

import json
from pathlib import Path

import pytest

from refinery.loader.format.manifest import seal, unseal
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.recipe.load_recipe import load_recipe
from refinery.pipelines.recipe.recipe import Recipe
from refinery.pipelines.run import fingerprint, refine
from refinery.pipelines.run.clean_phase import CleanPhase
from refinery.pipelines.run.errors import RefineError
from refinery.pipelines.run.refine import Refinement
from refinery.pipelines.run.slices import known_steps
from refinery.pipelines.run.slices.errors import SliceError
from refinery.pipelines.run.slices.step_files import StepFiles
from refinery.pipelines.runners.runner import Runner
from refinery.transforms.core.exchange.tally import ExchangeError
from refinery.transforms.read.sources import InputChanged
from tests.pipelines.inputs import corpus_bytes
from tests.pipelines.run.slices.slice_runs import Slices
from tests.pipelines.small_runs import make_small_inputs
from tests.sampling import one_commit_in_four, sampled

SPREAD = "run.spread_documents=1"  # all slices share deduplication


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_small_inputs(tmp_path_factory.mktemp("slices"))


@pytest.fixture(scope="module")
def published(inputs: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What one command publishes."""
    prefix = tmp_path_factory.mktemp("plain") / "corpus"
    Refinement(recipe_of(inputs), str(prefix), Runner(workers=0, quiet=True), say=lambda _: None).run()
    return corpus_bytes(prefix)


def recipe_of(inputs: Path, *settings: str) -> Recipe:
    return load_recipe(str(inputs / "recipe.yaml"), ["near_dup={}", *settings], [])


def left_over(prefix: Path) -> list[str]:
    """What slices leave for each other, and files that nobody claims."""
    names = [path.relative_to(prefix / "work").as_posix() for path in (prefix / "work").rglob("*") if path.is_file()]
    return [name for name in names if name.startswith(("exchange/", "at_work/"))]


SETTINGS = {
    "one": (1, ()),
    "one, all steps": (1, (SPREAD,)),
    "three": (3, ()),
    "three, all steps": (3, (SPREAD,)),
    "two, in rounds": (2, (SPREAD, "run.components=contraction")),
    "eleven": (11, ()),
}


@pytest.mark.parametrize("name", ["three", *sampled("numbers of slices", [n for n in SETTINGS if n != "three"], 1)])
def test_same_bytes(inputs: Path, published: dict[str, str], tmp_path: Path, name: str) -> None:
    of, settings = SETTINGS[name]
    slices = Slices(recipe_of(inputs, *settings), tmp_path / "out", of)
    assert slices.cut() == slices.cut()
    slices.do_all(slices.tasks())
    assert corpus_bytes(slices.finish()) == published
    assert left_over(tmp_path / "out") == []


def test_same_bytes_with_targets(inputs: Path, tmp_path: Path) -> None:
    """Where a source has a target, every slice needs to know where it is cut."""
    data = (inputs / "recipe.yaml").read_text().replace("name: s\n", "name: s\n  target: 150\n", 1)
    assert "target: 150" in data
    (tmp_path / "recipe.yaml").write_text(data)
    recipe = load_recipe(str(tmp_path / "recipe.yaml"), ["shards.target_bytes=400"], [])
    Refinement(recipe, str(tmp_path / "plain"), Runner(workers=0, quiet=True), say=lambda _: None).run()
    slices = Slices(recipe, tmp_path / "out", 3)
    slices.cut()
    assert slices.steps()[-1] == "shards-2"
    slices.do_all(slices.tasks())
    assert corpus_bytes(slices.finish()) == corpus_bytes(tmp_path / "plain")


def test_a_plain_command_does_what_is_missing(inputs: Path, published: dict[str, str], tmp_path: Path) -> None:
    slices = Slices(recipe_of(inputs, SPREAD), tmp_path / "out", 3)
    slices.cut()
    slices.do_all([("clean", 0), ("clean", 2), ("clean", 1), ("clean-end", 0)])
    slices.do_all([*(("dedup-0", k) for k in range(3)), ("dedup-1", 1)])
    assert corpus_bytes(slices.finish()) == published
    assert left_over(tmp_path / "out") == []


@one_commit_in_four
def test_more_steps_than_were_known(
    inputs: Path, published: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where documents are shorter than estimated, deduplication has more steps; its last task does them."""
    with monkeypatch.context() as patched:
        patched.setattr(known_steps, "dedup_steps", lambda recipe, documents: [False, False, True])
        slices = Slices(recipe_of(inputs, SPREAD), tmp_path / "out", 2)
        slices.cut()
    assert slices.steps()[1:5] == ["clean-end", "dedup-0", "dedup-1", "dedup"]
    slices.do_all(slices.tasks())
    slices.publish()
    assert corpus_bytes(tmp_path / "out") == published


def test_slices_that_are_done_are_success_and_those_that_are_missing_are_named(
    inputs: Path, published: dict[str, str], tmp_path: Path
) -> None:
    slices = Slices(recipe_of(inputs), tmp_path / "out", 3)
    with pytest.raises(RefineError, match=r"--slices 3 --until cut"):
        slices.do("clean", 0)
    slices.cut()
    with pytest.raises(RefineError, match=r"was cut into 3 slices, 4 given"):
        slices.do("clean", 0, of=4)
    with pytest.raises(ValueError, match=r"--slice: 3/3 given, 0/3 to 2/3"):
        slices.do("clean", 3)
    with pytest.raises(ValueError, match=r"one of clean, dedup, shards-0, shards-1 is allowed"):
        slices.do("klean", 0)
    assert slices.do("clean", 0) == "clean, slice 0 of 3: done"
    # There are two files, so one slice has none.
    with pytest.raises(RefineError, match=r"clean: 1 of 3 slices are not done: 1\. They come first"):
        slices.do("dedup", 0)
    slices.do("clean", 1)
    with pytest.raises(RefineError, match="clean is not complete; it comes first"):
        slices.do("shards-0", 0)
    assert slices.do("dedup", 0) == "dedup: done"
    assert slices.do("dedup", 2) == "dedup, slice 2 of 3: nothing is left to do"
    slices.do("shards-0", 1)
    assert slices.do("shards-0", 1) == "shards-0, slice 1 of 3: nothing is left to do"
    with pytest.raises(SliceError, match=r"shards-0: 2 of 3 slices are not done: 0, 2"):
        slices.do("shards-1", 0)
    slices.do_all([("shards-0", 0), ("shards-0", 2)])
    slices.do("shards-1", 0)
    for number in (1, 2):
        with pytest.raises(SliceError, match=rf"shards-1: {3 - number} of 3 slices are not done: {number}"):
            slices.publish()
        slices.do("shards-1", number)
    assert slices.do("shards-9", 0) == "shards ends with step 3; there is no shards-9 to do"
    slices.publish()
    assert corpus_bytes(slices.finish()) == published
    assert slices.do("clean", 0).endswith("is complete already; nothing to do")


def test_another_recipe_is_refused(inputs: Path, tmp_path: Path) -> None:
    slices = Slices(recipe_of(inputs), tmp_path / "out", 2)
    slices.cut()
    other = Slices(recipe_of(inputs, "near_dup.threshold=0.9"), tmp_path / "out", 2)
    with pytest.raises(RefineError, match=r"belongs to another run.*threshold"):
        other.do("clean", 0)


def test_why_a_slice_failed_is_there_to_be_read(inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slices = Slices(recipe_of(inputs), tmp_path / "out", 2)
    slices.cut()

    def fail(self: CleanPhase, number: int) -> None:
        raise OSError(f"slice {number}:\nno room")

    monkeypatch.setattr(CleanPhase, "run_slice", fail)
    with pytest.raises(OSError, match="no room"):
        slices.do("clean", 1)
    (path,) = (tmp_path / "out" / "work" / "at_work").glob("failed-clean-00001-*.json")
    said = json.loads(path.read_bytes())
    assert (said["step"], said["slice"], said["reason"]) == ("clean", 1, "slice 1: no room")
    monkeypatch.undo()
    with pytest.raises(RefineError, match="belongs to another run"):  # before it is at work
        Slices(recipe_of(inputs, "near_dup.threshold=0.9"), tmp_path / "out", 2).do("clean", 0)
    assert len(list((tmp_path / "out" / "work" / "at_work").glob("failed-clean-00000-*.json"))) == 1
    slices.do_all(slices.tasks())
    slices.publish()
    assert left_over(tmp_path / "out") == []


class TestInputs:
    """The inputs are those of the cut, whatever becomes of their folder."""

    @pytest.fixture
    def own(self, inputs: Path, tmp_path: Path) -> Path:
        for path in inputs.iterdir():
            text = path.read_bytes().replace(str(inputs).encode(), str(tmp_path).encode())
            (tmp_path / path.name).write_bytes(text)
        return tmp_path

    def test_added_and_touched(self, own: Path, published: dict[str, str]) -> None:
        (own / "recipe.yaml").write_text((own / "recipe.yaml").read_text().replace("[ab]", "[abc]"))
        slices = Slices(recipe_of(own), own / "out", 2)
        slices.cut()
        (own / "c.jsonl").write_text('{"text": "came later"}\n')
        (own / "b.jsonl").touch()
        slices.do_all(slices.tasks())
        found = corpus_bytes(slices.finish())
        shards = [name for name in found if name.endswith((".bin", ".idx"))]
        assert shards and all(found[name] == published[name] for name in shards)

    def test_only_the_cut_describes_them(self, own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A task of an array that looked at every input would read terabytes of 90,000 files."""
        slices = Slices(recipe_of(own), own / "out", 2)
        slices.cut()
        for name in ("input_digest", "describe_inputs"):
            monkeypatch.delattr(fingerprint, name)
        monkeypatch.setattr(refine, "plan_sources", None)
        slices.do_all(slices.tasks())
        slices.publish()

    @pytest.mark.parametrize("change", ["gone", "other bytes", "longer"])
    def test_changed(self, own: Path, change: str) -> None:
        slices = Slices(recipe_of(own), own / "out", 2)
        slices.cut()
        path = own / "b.jsonl"
        if change == "gone":
            path.unlink()
        else:
            path.write_bytes(path.read_bytes().replace(b"tail7", b"tail8") + (b"\n" if change == "longer" else b""))
        with pytest.raises(Exception, match=r"b\.jsonl: .*(gone|other bytes|bytes found)") as caught:
            slices.do_all([("clean", 0), ("clean", 1)])
        assert InputChanged.__name__ in f"{caught.value!r} {caught.value}" or isinstance(caught.value, InputChanged)


def test_a_cut_that_lost_a_file_publishes_nothing(inputs: Path, tmp_path: Path) -> None:
    """Resealed without a wave, or a wave before the cut whose report is gone."""
    slices = Slices(recipe_of(inputs, "run.wave_files=1"), tmp_path / "out", 2)
    slices.cut()
    path = tmp_path / "out" / "work" / "clean" / "cut.json"
    cut = unseal(path.read_bytes(), "cut")
    path.write_bytes(seal({**cut, "waves": cut["waves"][1:]}))
    with pytest.raises(SliceError, match=r"jsonl: no wave of the cut has read all of it, so nothing was published"):
        slices.finish()


class TestFaults:
    """Slices that die, come twice, or whose files are damaged."""

    @pytest.fixture
    def begun(self, inputs: Path, tmp_path: Path) -> Slices:
        """All of phases 1 and 2, and step 0 of phase 3."""
        slices = Slices(recipe_of(inputs), tmp_path / "out", 3)
        slices.cut()
        slices.do_all(task for task in slices.tasks() if task[0] in ("clean", "dedup"))
        return slices

    def test_of_two_tasks_of_a_slice_the_first_counts(
        self, begun: Slices, published: dict[str, str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Both see that it is missing; what the second one sent is removed."""
        begun.do("shards-0", 1)
        monkeypatch.setattr(StepFiles, "is_done", lambda self, number: False)
        begun.do("shards-0", 1)
        assert any("another command was faster" in line for line in begun.said)
        monkeypatch.undo()
        folder = Path(begun.prefix) / "work" / "exchange" / "shards-0"
        assert len(list(folder.glob("slice-00001-*.sections"))) == 1
        begun.do_all([("shards-0", 0), ("shards-0", 2)])
        assert corpus_bytes(begun.finish()) == published

    def test_a_slice_that_dies_before_its_record_is_done_again(
        self, begun: Slices, published: dict[str, str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def die(self: StepFiles, *_: object) -> bool:
            raise KeyboardInterrupt

        monkeypatch.setattr(StepFiles, "commit", die)
        with pytest.raises(KeyboardInterrupt):
            begun.do("shards-0", 0)
        monkeypatch.undo()
        begun.do_all(task for task in begun.tasks() if task[0].startswith("shards"))
        assert corpus_bytes(begun.finish()) == published
        assert left_over(Path(begun.prefix)) == []

    @pytest.mark.parametrize("damage", ["gone", "cut short", "overwritten"])
    def test_damaged_sections_are_noticed(self, begun: Slices, damage: str) -> None:
        begun.do_all(("shards-0", number) for number in range(3))
        folder = Path(begun.prefix) / "work" / "exchange" / "shards-0"
        path = max(folder.glob("*.sections"), key=lambda each: each.stat().st_size)
        data = path.read_bytes()
        if damage == "gone":
            path.unlink()
        else:
            path.write_bytes(data[: len(data) // 2] if damage == "cut short" else bytes(len(data)))
        with pytest.raises(Exception, match=r"\.sections|section|partition file") as caught:
            for number in range(3):
                begun.do("shards-1", number)
        known = ExchangeError | OSError | SliceError
        assert isinstance(caught.value, known) or "ExchangeError" in str(caught.value)

    def test_a_record_that_lost_a_group_stops_the_run(self, begun: Slices) -> None:
        """A slice that says that it received less than was sent to it."""
        begun.do_all([*(("shards-0", k) for k in range(3)), *(("shards-1", k) for k in range(3))])
        store = open_store(f"{begun.prefix}/work")
        names = [name for name in store.list("exchange/shards-1") if name.endswith(".json")]
        name = next(name for name in names if unseal(store.read(name), name)["received"])
        record = unseal(store.read(name), name)
        next(iter(record["received"].values()))["elements"] -= 1
        (Path(begun.prefix) / "work" / name).write_bytes(seal(record))
        for _ in range(2):
            with pytest.raises(ExchangeError, match="arrived; nothing was published"):
                begun.finish()
            assert store.size("exchange/shards-1/sealed.json") is None


def test_a_run_that_began_without_slices_goes_on_with_them(
    inputs: Path, published: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What its waves have read is not read again."""
    recipe = recipe_of(inputs, "run.wave_files=1")
    begun = Refinement(recipe, str(tmp_path / "out"), Runner(workers=0, quiet=True), say=lambda _: None)
    build = CleanPhase._build

    def once(self: CleanPhase, *arguments: object) -> None:
        monkeypatch.setattr(CleanPhase, "_build", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        build(self, *arguments)  # type: ignore[arg-type]  # as it was called

    monkeypatch.setattr(CleanPhase, "_build", once)
    with pytest.raises(KeyboardInterrupt):
        begun.run()
    monkeypatch.undo()
    slices = Slices(recipe, tmp_path / "out", 2)
    assert [wave.number for wave in slices.cut().waves] == [1]
    slices.do_all(slices.tasks())
    assert corpus_bytes(slices.finish()) == published
