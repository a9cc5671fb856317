"""Scopes from end to end: within each source, then across, and against a published corpus."""

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from refinery.loader.read.corpus import Corpus
from tests.pipelines.inputs import corpus_bytes, run
from tests.pipelines.small_runs import JUDGES_OFF
from tests.sampling import FILE_ON_ONE_COMMIT_IN_FOUR

pytestmark = FILE_ON_ONE_COMMIT_IN_FOUR


def write_texts(path: Path, texts: list[str]) -> None:
    path.write_text(
        "".join(json.dumps({"text": t, "url": f"https://x/{path.stem}/{i}"}) + "\n" for i, t in enumerate(texts))
    )


def variant(text: str, rng: random.Random, words: int) -> str:
    """The text with that many words replaced by shorter ones at its end, so that the text itself survives."""
    changed = text.split()
    for i in range(words):
        changed[-1 - i] = f"c{rng.randrange(1000)}"
    return " ".join(changed)


@pytest.fixture(scope="module")
def folder(inputs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two published texts of "old"; copies and variants of them and of each other in "new" and "more"."""
    folder = tmp_path_factory.mktemp("reference_corpora")
    rng = random.Random(2)
    texts = [" ".join(f"word{rng.randrange(5000)}" for _ in range(300)) for _ in range(12)]
    write_texts(folder / "old.jsonl", texts[:4])
    write_texts(
        folder / "new.jsonl", [texts[0], variant(texts[1], rng, 5), texts[4], variant(texts[4], rng, 75), *texts[5:8]]
    )
    write_texts(folder / "more.jsonl", [variant(texts[5], rng, 5), variant(texts[5], rng, 75), *texts[8:]])
    save(folder / "old.yaml", recipe(inputs, folder, "old"))
    save(folder / "new.yaml", recipe(inputs, folder, "new", "more"))
    run("refine", folder / "old.yaml", "--output", folder / "old", "--quiet")
    return folder


def recipe(inputs: Path, folder: Path, *sources: str) -> dict[str, Any]:
    off = JUDGES_OFF
    return {
        "name": "small",
        "sources": [{"name": name, "paths": [str(folder / f"{name}.jsonl")]} for name in sources],
        "tokenizer": {"path": str(inputs / "tokenizer.json")},
        "shards": {"validation": 0},
        **off,
    }


def save(path: Path, recipe: dict[str, Any]) -> None:
    path.write_text(yaml.safe_dump(recipe))


def urls(prefix: Path) -> set[str]:
    return {
        url.removeprefix("https://x/")
        for shard in Corpus(str(prefix)).shards()
        for url in shard.provenance()["url"].to_pylist()
    }


def removals(prefix: Path) -> dict[str, tuple[str, str]]:
    """url -> (reason, scope)."""
    rows = [row for file in sorted((prefix / "removals").iterdir()) for row in pq.read_table(file).to_pylist()]
    return {row["url"].removeprefix("https://x/"): (row["reason"], row["scope"]) for row in rows}


def won(folder, name, *settings):
    """A run that has the older corpus for a reference."""
    words = (f"reference_corpora=[{{prefix: {folder / 'old'}}}]", *settings)
    flags = (word for each in words for word in ("--set", each))
    return run("refine", folder / "new.yaml", "--output", folder / name, *flags)


def test_published_documents_win_and_are_not_written_again(folder):
    assert "reference_corpora" not in won(folder, "new").stderr
    scope = f"reference:{folder / 'old'}"
    assert removals(folder / "new") == {
        "new/0": ("exact-duplicate", scope),
        "new/1": ("near-duplicate", scope),
        "more/0": ("near-duplicate", "corpus"),
    }
    assert urls(folder / "new") == {*(f"new/{i}" for i in range(2, 7)), *(f"more/{i}" for i in range(1, 6))}
    assert run("verify", folder / "new").returncode == 0


def test_they_win_the_other_way_to_components(folder):
    won(folder, "one")
    won(folder, "other", "run.components=contraction")
    assert corpus_bytes(folder / "one") == corpus_bytes(folder / "other")


def test_signatures_are_needed_only_until_phase_2_is_done(folder):
    shutil.copytree(folder / "old", folder / "short")
    settings = ["--set", f"reference_corpora=[{{prefix: {folder / 'short'}}}]", "--quiet"]
    run("refine", folder / "new.yaml", "--output", folder / "first", *settings)
    shutil.rmtree(folder / "short" / "work")
    shards = ["--set", "shards.seed=2", *settings]
    run("refine", folder / "new.yaml", "--output", folder / "second", "--reuse", folder / "first", *shards)
    assert removals(folder / "second") == removals(folder / "first")
    (folder / "first" / "manifest.json").unlink()
    run("refine", folder / "new.yaml", "--output", folder / "first", *settings)
    (folder / "first" / "work" / "clean.json").unlink()  # so nothing can be taken over, and the signatures are missed
    refused = run(
        "refine", folder / "new.yaml", "--output", folder / "third", "--reuse", folder / "first", *shards, check=False
    )
    assert refused.returncode != 0 and not (folder / "third" / "manifest.json").exists()


def test_within_each_source_first(folder):
    near = "near_dup_in_source={'*': {threshold: 0.5, bands: 28, rows: 4}}"
    run("refine", folder / "new.yaml", "--output", folder / "inside", "--set", near, "--quiet")
    assert removals(folder / "inside") == {
        "new/3": ("near-duplicate-in-source", "source"),
        "more/1": ("near-duplicate-in-source", "source"),
        "more/0": ("near-duplicate", "corpus"),
    }
    stages = {row["stage"]: row for row in Corpus(str(folder / "inside")).manifest.funnel}
    assert stages["near-duplicates-in-source"]["dropped"].keys() == {"near-duplicate-in-source"}
    assert run("verify", folder / "inside").returncode == 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["reference_corpora=[{prefix: nowhere}]"], "nowhere/manifest.json: cannot be read"),
        (["reference_corpora=[{prefix: OLD}]", "signature.seed=2"], "give this recipe the same signature section"),
        (["reference_corpora=[{prefix: OLD, work: OLD/train}]"], "are not there; name its work location"),
        (["reference_corpora=[{prefix: OLD}]", "exact_dup=off"], "they need it on"),
        (
            ["near_dup_in_source={nobody: {}}"],
            "near_dup_in_source: 'nobody' given, the name of a source or '*' is allowed",
        ),
        (["near_dup_in_source={new: {bands: 99}}"], "near_dup_in_source.new.bands: 99 bands of 8 rows given"),
    ],
)
def test_what_cannot_work_is_said_before_anything_runs(folder, settings, message):
    sets = [word for setting in settings for word in ("--set", setting.replace("OLD", str(folder / "old")))]
    done = run("refine", folder / "new.yaml", "--output", folder / "refused", *sets, check=False)
    assert done.returncode == 2
    assert message in done.stderr
    assert not (folder / "refused").exists()
