"""The recipes of published funnels, whole, on the small crawl."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.pipelines.inputs import ROOT, run
from tests.sampling import sampled

# Models are not shipped: lid.176, which knows German as `de`, and the small crawl's own classifier take their places.
GERMAN = ("language.model=''", "language.languages={de: 0.5}", "heuristics.gopher.stop_words={de: [der, und, die, in]}")
NAMES = ("fineweb", "fineweb2", "dclm", "dolma3")
RULES = {  # sets of rules that the funnel has; what else judges is another stage
    "fineweb": {"gopher", "repetition", "c4", "fineweb"},
    "fineweb2": {"gopher", "repetition", "fineweb"},
    "dclm": {"gopher", "repetition"},
    "dolma3": {"basic", "gopher", "repetition"},
}
STAGES = {
    "fineweb": {"near-duplicates-in-source", "pii"},
    "fineweb2": {"exact-duplicates", "near-duplicates", "pii"},
    "dclm": {"exact-duplicates", "near-duplicates", "quality"},
    "dolma3": {"exact-duplicates", "near-duplicates", "substrings", "quality"},
}


def settings(inputs: Path, name: str) -> list[object]:
    """The recipe's own, but for the files that every user has to name."""
    given = [f"tokenizer.path={inputs / 'tokenizer.json'}", "rejects.rate=0.0"]
    given += [f"quality.model={inputs / 'quality.bin'}"] if "quality" in STAGES[name] else []
    given += GERMAN if name == "fineweb2" else ()
    files = ("--input", inputs / "input" / "crawl*.warc.gz")
    return [ROOT / "recipes" / f"{name}.yaml", *files, *(part for each in given for part in ("--set", each))]


@pytest.mark.parametrize("name", sampled("published funnels", NAMES, 1))
def test_a_published_funnel_makes_a_corpus(name: str, inputs: Path, tmp_path: Path) -> None:
    run("refine", *settings(inputs, name), "--workers", 0, "--output", tmp_path / "corpus")
    manifest: dict[str, Any] = json.loads((tmp_path / "corpus" / "manifest.json").read_bytes())
    funnel = {row["stage"]: row for row in manifest["funnel"]}
    assert set(funnel) == {"read", "extract", "url", "language", "heuristics", *STAGES[name], "encode"}
    assert manifest["totals"]["documents"] == funnel["encode"]["kept"]["documents"] > 10
    sets = {reason.partition("-")[0] for reason in funnel["heuristics"]["dropped"]}
    assert sets <= RULES[name] and (sets or name == "fineweb2")
    assert "language-not-allowed" in funnel["language"]["dropped"]
    assert sum(sum(each["documents"] for each in row["dropped"].values()) for row in funnel.values()) > 60
