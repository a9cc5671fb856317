"""Other lanes, cuts, references, hardly any input: by slices, too, they give the bytes of one command."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from refinery.loader.storage.open_store import open_store
from refinery.pipelines.recipe.load_recipe import load_recipe
from refinery.pipelines.recipe.recipe import Recipe
from refinery.pipelines.run import sliced_run
from refinery.pipelines.run.errors import RefineError
from refinery.pipelines.run.phases import remove_work
from refinery.pipelines.run.refine import Refinement
from refinery.pipelines.run.slices.cut import Step
from refinery.pipelines.runners.runner import Runner
from tests.pipelines.code_runs import make_code_inputs
from tests.pipelines.inputs import corpus_bytes
from tests.pipelines.run.slices.slice_runs import Slices
from tests.pipelines.small_runs import make_small_inputs, text_of
from tests.sampling import sampled

SHARED = " ".join(f"shared{number}" for number in range(70))


def plain(recipe: Recipe, prefix: Path) -> Path:
    """What one command makes."""
    Refinement(recipe, str(prefix), Runner(workers=0, quiet=True), say=lambda _: None).run()
    return prefix


def small(folder: Path, *settings: str, texts: list[str] | None = None) -> Recipe:
    """The small recipe, over these texts instead of its own."""
    inputs = make_small_inputs(folder / "in")
    if texts is not None:
        (inputs / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
        (inputs / "b.jsonl").unlink()
    return load_recipe(str(inputs / "recipe.yaml"), ["near_dup={}", *settings], [])


def code(folder: Path) -> Recipe:
    return load_recipe(str(make_code_inputs(folder / "in") / "recipe.yaml"), [], [])


def cuts(folder: Path) -> Recipe:
    """Lines and passages that several documents have are cut out: texts are read again between two exchanges."""
    texts = [f"{text_of(number)}\n{SHARED if number % 3 else ''}\nA line of all" for number in range(9)]
    return small(folder, "substring_dup={}", "line_dup={max_documents: 2, min_chars: 1}", texts=texts)


def references(folder: Path) -> Recipe:
    """Some of the documents are in a corpus that was published before."""
    old = small(folder / "old", texts=[text_of(number) for number in range(4)])
    prefix = plain(old, folder / "old" / "corpus")
    return small(folder, f"reference_corpora=[{{prefix: {prefix}}}]")


def one(folder: Path) -> Recipe:
    return small(folder, texts=[text_of(0)])


def none(folder: Path) -> Recipe:
    return small(folder, "failures.allow_empty=true", texts=[])


RECIPES: dict[str, Callable[[Path], Recipe]] = {each.__name__: each for each in (code, cuts, references, one, none)}
DOCUMENTS = {"one": 1, "none": 0}


@pytest.mark.parametrize("name", sampled("what else is sliced", RECIPES, 1))
def test_same_bytes(name: str, tmp_path: Path) -> None:
    recipe = RECIPES[name](tmp_path)
    expected = plain(recipe, tmp_path / "plain")
    slices = Slices(recipe, tmp_path / "out", 2)
    slices.cut()
    slices.do_all(slices.tasks())
    slices.publish()
    assert corpus_bytes(tmp_path / "out") == corpus_bytes(expected)
    manifest = json.loads((expected / "manifest.json").read_bytes())
    dropped = {reason for row in manifest["funnel"] for reason in row["dropped"]}
    assert manifest["totals"]["documents"] == DOCUMENTS.get(name, manifest["totals"]["documents"])
    assert name not in ("references", "cuts") or dropped, "nothing was compared"


def test_what_later_commands_find(tmp_path: Path) -> None:
    """Parts of a slice that was late go. A complete run is complete, also where its work files were discarded."""
    recipe = one(tmp_path)
    slices, work = Slices(recipe, tmp_path / "out", 2), tmp_path / "out" / "work"
    slices.cut()
    slices.do_all(slices.tasks())
    slices.publish()
    published, parts = corpus_bytes(tmp_path / "out"), [*work.rglob("part-*")]
    assert len(parts) > 2
    for path in parts:  # of a slice that was at work while another command ended its phase
        path.with_name(re.sub("[0-9a-f]{32}", "ab" * 16, path.name)).write_bytes(path.read_bytes())
    slices.publish()
    assert sorted(work.rglob("part-*")) == sorted(parts)
    remove_work(open_store(str(work)))
    assert slices.do("clean", 0).endswith("is complete already; nothing to do")
    assert slices.do("shards-1", 1).endswith("is complete already; nothing to do")
    slices.publish()
    assert [path for path in work.rglob("*") if path.is_file()] == []
    other = Slices(recipe.replace(name="other", near_dup=None), tmp_path / "out", 2)
    for late in (lambda: other.do("clean", 0), other.publish):
        with pytest.raises(RefineError, match=r"belongs to another run"):
            late()
    assert corpus_bytes(tmp_path / "out") == published


def test_of_two_commands_that_cut_the_first_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both saw that there was no cut."""
    recipe = small(tmp_path)
    slices, other = Slices(recipe, tmp_path / "out", 2), Slices(recipe, tmp_path / "out", 3)
    known_steps = sliced_run.known_steps

    def meanwhile(*arguments: object) -> list[Step]:
        monkeypatch.setattr(sliced_run, "known_steps", known_steps)
        other.cut()
        return known_steps(*arguments)  # type: ignore[arg-type]  # as it was called

    monkeypatch.setattr(sliced_run, "known_steps", meanwhile)
    with pytest.raises(RefineError, match="was cut into 3 slices, 2 given"):
        slices.cut()
    other.do_all(other.tasks())
    assert corpus_bytes(other.finish()) == corpus_bytes(plain(recipe, tmp_path / "plain"))
