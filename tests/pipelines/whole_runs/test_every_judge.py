"""The demo's recipe with every stage that the lane has: each drops or changes something, and verify accepts the corpus.

Takes twenty seconds: a crawl is made, a tokenizer, a classifier and a language model are trained.
"""

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from refinery.loader.format.manifest import Manifest, read_manifest
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.lanes.web import LANE
from tests.pipelines.inputs import ROOT, make_inputs, run

# Stages that change texts, with what they note where they did. All others must drop something.
CHANGED = {"secrets": "secrets", "substrings": "chars_cut", "lines": "lines_cut", "pii": "pii"}
READING = ("read", "extract", "labels", "encode")  # judge nothing
OWN = "A line that every page of this site has, whatever else is on it."


def pages(good: list[str], german: str) -> dict[str, list[dict[str, str]]]:
    """Source -> what the demo's crawl has nothing of. good: English texts that all stages keep. german:
    one in a language that has no model of perplexity.
    """
    chance = random.Random(1)
    texts = iter(good)

    def page(text: str, path: str, date: str = "2024-01-01") -> dict[str, str]:
        return {"text": text, "url": f"https://extra.example/{path}", "date": date}

    def shuffled(text: str) -> str:
        """The words of every sentence in another order, but for the last."""
        lines = [[sentence.split(" ") for sentence in line.split(". ")] for line in text.split("\n")]
        return "\n".join(
            ". ".join(" ".join([*chance.sample(words[:-1], len(words) - 1), words[-1]]) for words in line)
            for line in lines
        )

    def nearly(text: str) -> str:
        words = text.split(" ")
        return " ".join(["nearby", *words[1:]])

    near, far, item, shared = next(texts), next(texts), next(texts), next(texts)
    first = [
        page(next(texts) + f"\nThe token ghp_{'q7ZbXw91LmPaKs83HdYt' * 2:.36} was on the map.", "secret"),
        page(next(texts), "read-again", "2020-01-01"),
        page(next(texts), "read-again?utm_source=mail", "2024-01-01"),
        page(near, "near"),
        page(nearly(near), "near-here"),
        page(far, "far"),
        page(item, "item"),
        page(german + "\nIm Brief stand idiot, moron, loser, scum, stupid, liar, bastard und damn.", "rude"),
        page(next(texts) + "\nWrite to anna.berg@mail.example.org for a seat in the hall.", "personal"),
        *(page(f"{next(texts)}\n{OWN}", f"line-{i}") for i in range(4)),
        *(page(f"{next(texts)}\n{shared}", f"shared-{i}") for i in range(2)),
        *(page(shuffled(next(texts)), f"shuffled-{i}") for i in range(2)),
        page(next(texts), "refused") | {"url": "https://refused.example/page"},
        page(next(texts), "licensed") | {"license": "CC-BY-NC-4.0"},
    ]
    return {"extra": first, "other": [page(nearly(far), "../other/far")]}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_inputs(tmp_path_factory.mktemp("every"), pages=60)
    good = [json.loads(line)["text"] for line in (folder / "input" / "good.jsonl").read_text().splitlines()]
    english = [text for text in good if text.count(" the ") > 3]
    made = pages(english[40:], next(text for text in good if text.count(" und ") > 3))
    for name, rows in made.items():
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    item = " ".join(made["extra"][6]["text"].split()[20:60])
    (folder / "items.jsonl").write_text(json.dumps({"question": item}) + "\n")
    learned = [part for name in ("good", "bad") for part in ("--input", folder / "input" / f"{name}.jsonl")]
    run("train-perplexity", "--output", folder / "en.ngrams", "--quiet", *learned)
    recipe: dict[str, Any] = yaml.safe_load((folder / "recipe.yaml").read_text())
    more = {"format": "jsonl", "text_field": "text", "url_field": "url", "date_field": "date", "domain": "notes"}
    more["meta_fields"] = ["license"]  # type: ignore[assignment]
    recipe["sources"] += [{"name": name, "paths": [str(folder / f"{name}.jsonl")], **more} for name in made]
    recipe |= {
        "opt_out": {"hosts": ["refused.example"]},
        "page_license": {"deny": ["CC-BY-NC"]},
        "url_dup": {},
        "near_dup_in_source": {"*": {}},
        "line_dup": {"max_documents": 3},
        "substring_dup": {},
        "perplexity": {"models": {"en": str(folder / "en.ngrams")}, "middle": 100.0},
        "decontaminate": {"benchmarks": [{"path": str(folder / "items.jsonl")}]},
        "labels": {"models": [{"name": "kind", "model": str(folder / "quality.bin")}]},
        "keep": {
            "rule": "kind == 'hq' and (most or pii > 0 or secrets > 0 or lines_cut > 0 or chars_cut > 0)",
            "draws": {"most": {"share": 0.8}},
        },
        "failures": {**recipe["failures"], "allow_empty": ["other"]},
    }
    (folder / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    run("refine", folder / "recipe.yaml", "--output", folder / "corpus", "--workers", 0)
    return folder / "corpus"


def manifest_of(corpus: Path) -> Manifest:
    return read_manifest(open_store(str(corpus)))


def test_every_stage_of_the_lane_is_on(corpus: Path) -> None:
    assert [stage.name for stage in manifest_of(corpus).stages] == list(LANE.funnel)


def test_every_stage_drops_or_changes_something(corpus: Path) -> None:
    lost: Counter[str] = Counter()
    for row in manifest_of(corpus).funnel:
        lost[row["stage"]] += sum(count["documents"] for count in row["dropped"].values())
    tables = [pq.read_table(path).to_pylist() for path in corpus.glob("*/*/*.provenance.parquet")]
    noted = Counter(note for table in tables for row in table for note in json.loads(row["meta"]))
    idle = [name for name in LANE.funnel if not (noted[CHANGED[name]] if name in CHANGED else lost[name])]
    assert idle == [name for name in idle if name in READING], (lost, noted)


def test_verify_accepts_it_and_inspect_shows_how_surprising_it_was(corpus: Path) -> None:
    assert run("verify", corpus).returncode == 0
    said = run("inspect", corpus).stdout
    line = next(line for line in said.splitlines() if line.startswith("  ~ en: 5% "))
    scored = [row["scored"]["en"] for row in manifest_of(corpus).funnel if "scored" in row]
    assert line.endswith(f" of {sum(count for bins in scored for _, count in bins):,} documents")


def test_the_ready_recipe_for_crawls_names_what_is_on_here() -> None:
    """What recipes/web.yaml leaves off needs a model, a list, a benchmark, or a second reading of the texts."""
    ready = yaml.safe_load((ROOT / "recipes" / "web.yaml").read_text())
    off = {stage.key for stage in LANE.stages if stage.key and not ready.get(stage.key, stage.on)}
    lists = {"opt_out", "page_license", "decontaminate", "keep"}
    assert off == {*lists, "perplexity", "quality", "labels", "substring_dup", "line_dup"}
