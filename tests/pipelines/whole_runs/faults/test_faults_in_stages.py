"""A stage that fails on some of its documents: on 0.5 % they are dead letters; on 2 % the run fails clearly.

What must come out is computed another way. Documents that die before deduplication are as if they had never been: the
same run on a file in which their lines are blank. Those that die after it are taken out of the shards of an unbroken
run, row by row, in this file's own code.
"""

import hashlib
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml

from refinery.pipelines.training.train_quality import TrainQualityParams, train_quality
from refinery.pipelines.training.train_tokenizer import TrainTokenizerParams, train_tokenizer
from tests.fork_server import ForkServer
from tests.pipelines.small_runs import check_corpus, command, digests, folder_files, is_accepted
from tests.plain_manifest import read_plain
from tests.sampling import sampled

DOCUMENTS, COPIES = 400, 20
BEFORE, AFTER = (
    ("extract", "secrets", "url", "language", "heuristics"),
    ("lines", "quality", "toxicity", "pii", "encode"),
)
SHARES = {"0.5 %": 2, "2 %": 8}  # of four hundred
FOOTER = "Please read the terms and conditions that apply to this site before you use it."
NOUNS = ("river", "town", "market", "garden", "harvest", "letter", "teacher", "bridge", "forest", "window", "island")
VERBS = ("crossed", "watched", "painted", "carried", "followed", "remembered", "opened", "described", "visited")
ADJECTIVES = ("old", "quiet", "narrow", "famous", "broken", "green", "distant", "early", "heavy", "simple", "bright")


def page(number: int) -> str:
    """English that every stage keeps, and no two pages alike."""
    rng = random.Random(number)

    def phrase() -> str:
        return f"the {rng.choice(ADJECTIVES)} {rng.choice(NOUNS)}"

    sentences = [
        f"{phrase()} and {phrase()} {rng.choice(VERBS)} {phrase()} that was with {phrase()} {number}-{i}.".capitalize()
        for i in range(8)
    ]
    return "\n".join([*sentences, FOOTER])


def lines(without: set[str] | None = None) -> str:
    """A line for each document, the last ones copies of the first; blank, and as long, for those `without`."""
    written = []
    for number in range(DOCUMENTS):
        url = f"https://pages.example/{number}"
        copied = number if number < DOCUMENTS - COPIES else number - (DOCUMENTS - COPIES)
        line = json.dumps({"text": page(copied), "url": url})
        written.append(" " * len(line) if without and url in without else line)
    return "".join(f"{line}\n" for line in written)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four hundred documents, and a recipe with every stage on."""
    folder = tmp_path_factory.mktemp("pages")
    (folder / "pages.jsonl").write_text(lines())
    texts = [page(number) for number in range(60)]
    train_tokenizer(texts, str(folder / "tokenizer.json"), TrainTokenizerParams(vocab_size=400, held_out=0))
    quick = TrainQualityParams(dim=4, buckets=1000, epochs=3, held_out=0.2)
    train_quality(
        texts, [f"buy cheap pills now {n} click here" * 5 for n in range(60)], str(folder / "model.bin"), quick
    )
    recipe = {
        "name": "pages",
        "sources": [{"name": "pages", "paths": [str(folder / "pages.jsonl")]}],
        "tokenizer": {"path": str(folder / "tokenizer.json")},
        "quality": {"model": str(folder / "model.bin"), "threshold": 0.01},
        "heuristics": {"repetition": False},  # these pages have few words
        "near_dup": False,
        "line_dup": {"min_chars": 40},
        "failures": {"max_ratio": 0.01, "grace": 0},
        "shards": {"validation": 0.1},
    }
    (folder / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    return folder


@pytest.fixture(scope="module")
def unbroken(pages: Path, forks: ForkServer) -> Path:
    """A run to which nothing happens: every document passes every stage, copies apart."""
    prefix = pages / "unbroken"
    assert (done := forks.run(*command(pages, prefix))).code == 0, done.err
    check_corpus(folder_files(prefix))
    funnel = stages(prefix)
    assert [name for name in funnel if name in (*BEFORE, *AFTER)] == [*BEFORE, *AFTER]
    for name, row in funnel.items():
        copies = {"exact-duplicate": COPIES} if name == "exact-duplicates" else {}
        assert (row["dropped"], row["dead"]) == (copies, {}), name
    cut = next(row for row in json.loads((prefix / "manifest.json").read_text())["funnel"] if row["stage"] == "lines")
    assert cut["in"]["bytes"] - cut["kept"]["bytes"] > (DOCUMENTS - COPIES) * len(FOOTER) * 0.9
    return prefix


def stages(prefix: Path) -> dict[str, dict[str, Any]]:
    """Stage -> documents in, kept, dropped by reason and dead by error."""
    rows = json.loads((prefix / "manifest.json").read_text())["funnel"]
    return {
        row["stage"]: {"in": row["in"]["documents"], "kept": row["kept"]["documents"]}
        | {outcome: {reason: n["documents"] for reason, n in row[outcome].items()} for outcome in ("dropped", "dead")}
        for row in rows
    }


def shard_names(prefix: Path) -> list[str]:
    """Shards without their endings."""
    return sorted(p.relative_to(prefix).as_posix().removesuffix(".bin") for p in prefix.rglob("*.bin"))


def chosen(count: int, prefix: Path, stage: str) -> set[str]:
    """Addresses of the documents on which `stage` is to fail: spread over all that reach it."""
    if stage in BEFORE:
        return {f"https://pages.example/{number}" for number in range(7, DOCUMENTS, DOCUMENTS // count)}
    reached = sorted(url for name in shard_names(prefix) for url in provenance(prefix, name)["url"].to_pylist())
    return set(reached[7 :: len(reached) // count][:count])


def provenance(prefix: Path, shard: str) -> Any:
    return pq.read_table(prefix / f"{shard}.provenance.parquet")


@pytest.fixture(scope="module")
def blanked(pages: Path, unbroken: Path, forks: ForkServer) -> Callable[[int], dict[str, str]]:
    """count -> what is published of the same file with the lines of `chosen` documents blank."""
    made: dict[int, dict[str, str]] = {}

    def make(count: int) -> dict[str, str]:
        if count not in made:
            prefix = pages / f"blanked-{count}"
            (pages / "pages.jsonl").write_text(lines(without=chosen(count, unbroken, "extract")))
            done = forks.run(*command(pages, prefix))
            (pages / "pages.jsonl").write_text(lines())
            assert done.code == 0, done.err
            made[count] = {name: d for name, d in digests(folder_files(prefix)).items() if is_data(name)}
        return made[count]

    return make


def is_data(name: str) -> bool:
    """Of a published file: whether it holds documents. The others tell of the run."""
    return name.split("/")[0] in ("train", "validation", "removals")


def check_taken_out(prefix: Path, unbroken: Path, dead: set[str]) -> None:
    """The shards are those of `unbroken` without the rows of `dead`."""
    assert shard_names(prefix) == shard_names(unbroken)
    for name in shard_names(unbroken):
        before, after = provenance(unbroken, name).to_pylist(), provenance(prefix, name).to_pylist()
        old = np.fromfile(unbroken / f"{name}.bin", np.uint16)
        kept, tokens, offset = [], [], 0
        for row in before:
            if row["url"] not in dead:
                tokens.append(old[row["token_offset"] : row["token_offset"] + row["token_count"]])
                kept.append({**row, "token_offset": offset})
                offset += row["token_count"]
        assert after == kept
        assert (prefix / f"{name}.bin").read_bytes() == np.concatenate(tokens).tobytes()


def check_dead_letters(prefix: Path, stage: str, dead: set[str], pages: Path) -> None:
    """One letter for each, with the place in the input and the hash of what the stage was given."""
    letters = [row for p in sorted((prefix / "dead_letters").iterdir()) for row in pq.read_table(p).to_pylist()]
    places, offset = {}, 0
    for line in lines().splitlines(keepends=True):
        record = json.loads(line)
        places[f"{pages / 'pages.jsonl'}@{offset}"] = record["url"], record["text"]
        offset += len(line)
    assert {places[row["origin"]][0] for row in letters} == dead
    assert len(letters) == len(dead)
    for row in letters:
        assert (row["stage"], row["error"], row["source"]) == (stage, "Poison", "pages")
        if stage in BEFORE:
            text = places[row["origin"]][1].encode()
            assert (row["size"], row["sha256"]) == (len(text), hashlib.sha256(text).hexdigest())


CELLS = sampled("stages that raise", [(stage, share) for stage in (*BEFORE, *AFTER) for share in SHARES], 2)


@pytest.mark.parametrize(("stage", "share"), CELLS, ids=[f"{stage} on {share}" for stage, share in CELLS])
def test_a_stage_raises(
    stage: str,
    share: str,
    pages: Path,
    unbroken: Path,
    forks: ForkServer,
    blanked: Callable[[int], dict[str, str]],
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    dead = chosen(SHARES[share], unbroken, stage)
    prefix = tmp_path / "out"
    # What comes before the stage is as in the unbroken run, so phases after the first need not be run again for it.
    reuse = ["--reuse", unbroken] if stage in AFTER else []
    arguments = command(pages, prefix, *reuse)
    faults = [("raise_in_stage", {"stage": stage, "urls": sorted(dead)})]
    done = forks.run(*arguments, faults=faults)
    entered = DOCUMENTS - COPIES if stage in AFTER else DOCUMENTS
    if share == "2 %":
        assert done.code == 1, done.err
        assert (
            f"{stage}: {len(dead)} of {entered} documents are dead letters (Poison {len(dead)}); allowed are"
            in done.err
        )
        assert "1.00% (failures.max_ratio)" in done.err
        assert "Traceback" not in done.err
        assert not is_accepted(prefix)
        done = forks.run(*arguments, "--set", "failures.max_ratio=0.03")  # the stage need not run again, nor fail
    assert done.code == 0, done.err
    files = folder_files(prefix)
    check_corpus(files)
    funnel = stages(prefix)
    alive = entered - len(dead)
    assert funnel[stage] == {"in": entered, "kept": alive, "dropped": {}, "dead": {"Poison": len(dead)}}
    assert {name for name, row in funnel.items() if row["dead"]} == {stage}
    assert sum(row["documents"] for row in read_plain(files.__getitem__)["shards"]) == funnel["encode"]["kept"]
    check_dead_letters(prefix, stage, dead, pages)
    if stage in BEFORE:
        found = {name: digest for name, digest in digests(files).items() if is_data(name)}
        assert found == blanked(SHARES[share])
    else:
        check_taken_out(prefix, unbroken, dead)
    shutil.rmtree(prefix)
    record_property("fault cell", f"{stage} on {share}")
