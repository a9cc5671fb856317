"""One corpus with duplicates of every kind, for all tests of takedowns."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.pipelines.corpus.remove.corpora import (
    FIRST,
    SECOND,
    make_inputs,
    make_tokenizer,
    remove,
    write_list,
    write_recipe,
)
from tests.pipelines.inputs import run
from tests.shared import shared


@dataclass(frozen=True)
class Place:
    """prefix: the corpus. again: makes the corpus of the same recipe without some pages."""

    prefix: Path
    again: Callable[..., Path]


@pytest.fixture(scope="session")
def taken(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """The corpus of all pages."""

    def fill(folder: Path) -> None:
        make_tokenizer(folder / "tokenizer.json")
        make_inputs(folder / "pages")
        recipe = write_recipe(folder, folder / "pages", folder / "tokenizer.json")
        run("refine", recipe, "--output", folder / "corpus", "--workers", 0)

    folder = shared(tmp_path_factory, "taken", fill)

    def again(output: Path, without: Any) -> Path:
        """Reads the same paths: the pages are put in their place, but for these."""
        hidden = []
        for path in (folder / "pages").rglob("*.jsonl"):
            if any(f'"{url}"' in path.read_text() for url in without):
                hidden.append((path, path.read_bytes()))
                path.unlink()
        try:
            run("refine", folder / "recipe.yaml", "--output", output, "--workers", 0)
        finally:
            for path, data in hidden:
                path.write_bytes(data)
        return output

    return Place(folder / "corpus", again)


@pytest.fixture(scope="session")
def versions(taken: Place, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The corpus, and two takedowns after it; documents come back in the first."""

    def fill(folder: Path) -> None:
        remove(taken.prefix, folder / "two", "--urls", write_list(folder / "1.txt", FIRST))
        remove(folder / "two", folder / "three", "--urls", write_list(folder / "2.txt", SECOND))

    folder = shared(tmp_path_factory, "versions", fill)
    return [taken.prefix, folder / "two", folder / "three"]
