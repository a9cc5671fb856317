"""Cutting repeated lines in whole runs: what comes out, what the counts say, and what a change of it repeats."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from refinery.loader.read.corpus import Corpus
from refinery.pipelines.corpus.verify.verify import verify
from refinery.pipelines.recipe.recipe import Recipe
from refinery.pipelines.run.fingerprint import phase_fingerprints
from refinery.transforms.dedup.cut_lines import LineParams
from tests.pipelines.whole_runs import cutting_runs
from tests.pipelines.whole_runs.cutting_runs import cutting_recipe, refine
from tests.sampling import FILE_ON_ONE_COMMIT_IN_FOUR

pytestmark = FILE_ON_ONE_COMMIT_IN_FOUR

MENU = "Home | About us | Contact"
PAGES = 30


def pages() -> Iterator[tuple[str, str]]:
    """(what it is, text): pages under one menu, pages that are little else, pages without it."""
    for n in range(PAGES):
        body = f"Page {n} says this.\n\n" + " ".join(f"word{n * i % 97}" for i in range(1, 40))
        yield "page", f"{MENU}\n\n{body}\n\n{MENU.lower()}!\n© 2020"
        yield "stub", f"{MENU}\n\nEmpty page {n}"
        yield "plain", body.replace("says", "tells") + f" plain {n}"


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Recipe:
    return cutting_recipe(tmp_path_factory.mktemp("lines"), list(pages()), line_dup={"min_chars": 40})


contents = partial(cutting_runs.contents, amount="lines_cut", cuts="cut_lines")


def test_a_run_cuts_what_its_documents_share(recipe: Recipe, tmp_path: Path) -> None:
    refine(recipe, tmp_path / "cut")
    expected = [("plain", text, 0) for kind, text in pages() if kind == "plain"]
    expected += [("page", "\n".join(text.split("\n")[2:-3]), 3) for kind, text in pages() if kind == "page"]
    assert contents(recipe, tmp_path / "cut") == sorted(expected)
    (row,) = [row for row in Corpus(str(tmp_path / "cut")).manifest.funnel if row["stage"] == "lines"]
    assert (row["in"]["documents"], row["kept"]["documents"]) == (3 * PAGES, 2 * PAGES)
    assert {reason: count["documents"] for reason, count in row["dropped"].items()} == {"too-little-left": PAGES}
    assert row["kept"]["bytes"] == sum(len(text.encode()) for _, text, _ in expected)
    assert verify(str(tmp_path / "cut")).failures == []

    # Another limit repeats phases 2 and 3, not the reading of the pages.
    other = recipe.replace(line_dup=LineParams(max_documents=3 * PAGES))
    said = refine(other, tmp_path / "uncut", reuse=str(tmp_path / "cut"))
    assert contents(other, tmp_path / "uncut") == sorted((kind, text, 0) for kind, text in pages())
    assert any(line.startswith("clean: ") for line in said)
    assert not any(line.startswith("dedup: ") for line in said)


def test_phase_1_depends_only_on_whether_lines_are_counted(recipe: Recipe) -> None:
    first, *others = (
        phase_fingerprints(recipe.replace(line_dup=params), [])
        for params in (LineParams(), LineParams(max_documents=7), LineParams(min_chars=7), None)
    )
    changed = [[phase for phase in first if first[phase] != other[phase]] for other in others]
    assert changed == [["dedup", "shards"], ["dedup", "shards"], ["clean", "dedup", "shards"]]


def test_lines_are_cut_without_any_other_deduplication(recipe: Recipe, tmp_path: Path) -> None:
    refine(recipe.replace(exact_dup=False), tmp_path / "cut")
    assert {cut for _, _, cut in contents(recipe, tmp_path / "cut")} == {0, 3}
