"""A recipe so small that a run takes half a second, and what must hold of its corpus whatever has happened to it."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import yaml

from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import MANIFEST, Manifest, check_funnel, parse_manifest, read_manifest
from refinery.loader.format.shard_list import HeldListings
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.recipe.recipe import find_lane
from refinery.pipelines.reports.run.write import REPORT
from refinery.pipelines.training.train_tokenizer import TrainTokenizerParams, train_tokenizer
from tests.plain_manifest import read_plain

WEB = find_lane("web")
# The sections of the stages for single documents that are on unless a recipe says otherwise, switched off.
JUDGES_OFF = {stage.key: False for stage in (*WEB.clean, *WEB.shards) if stage.key and stage.optional and stage.on}
OFF = {**JUDGES_OFF, "near_dup": False}
WORDS = [f"word{number}" for number in range(60)]


def text_of(number: int) -> str:
    """Texts of 26 words; no two are equal."""
    return " ".join([*WORDS[number % 30 : number % 30 + 25], f"tail{number}"])


def rows(source: str, numbers: range) -> str:
    """JSON lines, one document each."""
    return "".join(
        json.dumps({"text": text_of(number), "url": f"https://{source}.example/{number}"}) + "\n" for number in numbers
    )


def make_small_inputs(folder: Path) -> Path:
    """Two files: copies, a damaged line, an empty text, so that a run writes every kind of file. And recipe.yaml."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "a.jsonl").write_text(rows("a", range(8)) + '{"text": "broken\n')
    (folder / "b.jsonl").write_text(rows("b", range(5, 10)) + '{"text": " "}\n')
    settings = TrainTokenizerParams(vocab_size=300, held_out=0)
    train_tokenizer([text_of(number) for number in range(200)], str(folder / "tokenizer.json"), settings)
    recipe = {
        "name": "small",
        "sources": [{"name": "s", "paths": [str(folder / "[ab].jsonl")]}],
        "tokenizer": {"path": str(folder / "tokenizer.json")},
        "rejects": {"rate": 0.0},  # they are written and gathered as dead letters are
        "shards": {"validation": 0.0},
        **OFF,
    }
    (folder / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    return folder


def command(inputs: Path, output: object, *more: object) -> list[object]:
    """`refine` of recipe.yaml, inside the process."""
    return ["refine", inputs / "recipe.yaml", "--workers", 0, "--output", output, *more]


def digests(files: Mapping[str, bytes], leave_out: tuple[str, ...] = ("work",)) -> dict[str, str]:
    """Name -> sha256 of what is published, but for the report, which holds seconds."""
    return {
        name: hashlib.sha256(data).hexdigest()
        for name, data in sorted(files.items())
        if name.split("/")[0] not in (*leave_out, REPORT)
    }


def folder_files(prefix: Path) -> dict[str, bytes]:
    """Name -> bytes of every file below a folder."""
    return {p.relative_to(prefix).as_posix(): p.read_bytes() for p in sorted(prefix.rglob("*")) if p.is_file()}


def is_accepted(prefix: object) -> bool:
    """Whether the loader takes what is at `prefix` for a corpus."""
    try:
        read_manifest(open_store(str(prefix)))
    except FormatError:
        return False
    return True


def check_corpus(files: Mapping[str, bytes]) -> Manifest:
    """The manifest tells of every published file, truly, and of nothing else; in = kept + dropped + dead everywhere.

    In this test's own words, not in those of verify.
    """
    plain = read_plain(files.__getitem__)
    head = json.loads(files[MANIFEST])
    shards = [file for shard in plain["shards"] for file in (*shard["files"].values(), *shard.get("packed", ()))]
    listings = [listing for part in (head, *head["domains"]) for listing in part.get("listings", head["files"])]
    listed = [*plain["files"], *shards, *listings]
    for file in listed:
        data = files[file["path"]]
        assert (len(data), hashlib.sha256(data).hexdigest()) == (file["size"], file["sha256"]), file["path"]
    published = {name for name in files if name.split("/")[0] != "work"}
    assert published == {file["path"] for file in listed} | {MANIFEST, REPORT}
    assert check_funnel(plain["funnel"]) == []
    for row in plain["funnel"]:
        lost = [entry for outcome in ("dropped", "dead") for entry in row[outcome].values()]
        assert row["in"]["documents"] == row["kept"]["documents"] + sum(entry["documents"] for entry in lost), row
    return parse_manifest(files[MANIFEST], listings=HeldListings(files))


def check_work(files: Mapping[str, bytes]) -> None:
    """Every part is claimed by a phase's report, every claimed part is there, and no temporary file is left."""
    claimed: set[str] = set()
    for phase in ("clean", "dedup", "shards"):
        report = json.loads(files[f"work/{phase}.json"])
        claimed |= {f"work/{part['path']}" for parts in report["parts"].values() for part in parts}
    parts = {name for name in files if name.startswith("work/") and "/part-" in name}
    assert parts == claimed
    assert not [name for name in files if ".tmp-" in name]
