"""Cutting repeated substrings in whole runs: what comes out, what the counts say, and what a change of it repeats."""

import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from refinery.loader.read.corpus import Corpus
from refinery.pipelines.corpus.verify.verify import verify
from refinery.pipelines.recipe.recipe import Recipe
from refinery.pipelines.run.fingerprint import phase_fingerprints
from refinery.transforms.dedup.cut_substrings import SubstringParams
from tests.pipelines.whole_runs import cutting_runs
from tests.pipelines.whole_runs.cutting_runs import cutting_recipe, refine
from tests.sampling import FILE_ON_ONE_COMMIT_IN_FOUR

pytestmark = FILE_ON_ONE_COMMIT_IN_FOUR

GROUPS = 12


def words(name: str, count: int) -> str:
    rng = random.Random(name)
    return " ".join(f"{rng.choice('bdfgklmnprst')}{rng.choice('aeiou')}{rng.randrange(99)}" for _ in range(count))


def pages() -> Iterator[tuple[str, str]]:
    """(what it is, text): in each group a long page with a passage, one that quotes it, one that is little else, one
    that quotes too little of it.
    """
    for n in range(GROUPS):
        passage = words(f"passage {n}", 60)
        yield "first", f"{words(f'a{n}', 150)}.\n\n{passage}.\n\n{words(f'b{n}', 100)}."
        yield "quote", f"{words(f'c{n}', 80)}.\n\n{passage.upper()}!\n\n{words(f'd{n}', 40)}."
        yield "stub", f"{words(f'e{n}', 5)}.\n\n{passage}."
        yield "short", f"{words(f'f{n}', 60)}.\n\n{' '.join(passage.split()[:49])}."


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Recipe:
    """Repeated lines are cut, too; there are none."""
    folder = tmp_path_factory.mktemp("substrings")
    return cutting_recipe(folder, list(pages()), substring_dup={"min_chars": 100}, line_dup={})


contents = partial(cutting_runs.contents, amount="chars_cut", cuts="cut_substrings")


def dropped(prefix: Path) -> dict[str, int]:
    manifest = Corpus(str(prefix)).manifest
    (row,) = [row for row in manifest.funnel if row["stage"] == "substrings"]
    counts = {reason: count["documents"] for reason, count in row["dropped"].items()}
    assert row["in"]["documents"] == row["kept"]["documents"] + sum(counts.values()) == 4 * GROUPS
    assert verify(str(prefix)).failures == []
    return counts


def test_a_run_cuts_what_its_documents_repeat(recipe: Recipe, tmp_path: Path) -> None:
    refine(recipe, tmp_path / "cut")
    texts = sorted(pages())
    expected = [(kind, text, 0) for kind, text in texts if kind in ("first", "short")]
    for _, text in (page for page in texts if page[0] == "quote"):
        before, passage, after = text.split("\n\n")
        expected.append(("quote", f"{before}\n\n{after}", len(passage) - 1))
    assert contents(recipe, tmp_path / "cut") == sorted(expected)
    assert dropped(tmp_path / "cut") == {"too-little-left": GROUPS}

    # Another action repeats phases 2 and 3, not the reading of the pages.
    other = recipe.replace(substring_dup=SubstringParams(action="drop"))
    said = refine(other, tmp_path / "drop", reuse=str(tmp_path / "cut"))
    assert contents(other, tmp_path / "drop") == sorted((kind, text, 0) for kind, text in texts if kind != "stub")
    assert dropped(tmp_path / "drop") == {"mostly-repeated": GROUPS}
    assert any(line.startswith("clean: ") for line in said)
    assert not any(line.startswith("dedup: ") for line in said)


def test_phase_1_depends_only_on_whether_substrings_are_looked_for(recipe: Recipe) -> None:
    first, *others = (
        phase_fingerprints(recipe.replace(substring_dup=params), [])
        for params in (SubstringParams(), SubstringParams(min_words=60), SubstringParams(action="drop"), None)
    )
    changed = [[phase for phase in first if first[phase] != other[phase]] for other in others]
    assert changed == [["dedup", "shards"], ["dedup", "shards"], ["clean", "dedup", "shards"]]


def test_substrings_are_cut_without_any_other_deduplication(recipe: Recipe, tmp_path: Path) -> None:
    refine(recipe.replace(exact_dup=False, line_dup=None), tmp_path / "cut")
    assert len([chars for _, _, chars in contents(recipe, tmp_path / "cut") if chars]) == GROUPS
