"""Exports of tokens after a takedown: they say what they still hold, and are rewritten without it."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from refinery.loader.format.manifest import MANIFEST, seal, unseal
from refinery.pipelines.corpus.checks.verify_export import verify_export
from refinery.pipelines.corpus.export.distribution import fetch_shards, shards_of_node
from refinery.pipelines.run.errors import RefineError
from tests.pipelines.corpus.export.exporting import export, files_of, read_pt
from tests.pipelines.corpus.remove.corpora import rows
from tests.sampling import FILE_ON_ONE_COMMIT_IN_FOUR

pytestmark = FILE_ON_ONE_COMMIT_IN_FOUR

SIZE = 97


def manifest_of(output: Path) -> dict[str, Any]:
    return unseal((output / MANIFEST).read_bytes(), "")


def places(output: Path) -> dict[str, list[dict[str, Any]]]:
    """Rows of provenance/ by split."""
    found: dict[str, list[dict[str, Any]]] = {}
    for part in manifest_of(output)["provenance"]:
        found.setdefault(part["split"], []).extend(pq.read_table(output / part["file"]["path"]).to_pylist())
    return found


def row_of_tokens(output: Path, split: str) -> np.ndarray:
    """All tokens of a split, one after the other."""
    manifest = manifest_of(output)
    parts = [part for name in ("shards", "leftover") for part in manifest[name] if part["split"] == split]
    return np.concatenate([read_pt(output / part["file"]["path"]) for part in parts])


def test_an_older_export_is_rewritten(versions: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    export(versions[0], out, "torch", shard_tokens=SIZE)
    before, was = manifest_of(out), {split: row_of_tokens(out, split) for split in ("train", "validation")}
    node = tmp_path / "node"
    fetch_shards(str(out), shards_of_node(str(out), "n", 10_000), str(node), lambda line: None)
    said: list[str] = []
    export(versions[1], out, "torch", append=True, shard_tokens=SIZE, say=said.append)
    gone = {row["id"] for row in rows(versions[0])} - {row["id"] for row in rows(versions[1])}
    assert any(f"WARNING: {out} still holds {len(gone)} documents" in line for line in said), said
    assert verify_export(str(out)).failures == []
    files = files_of(out)

    found = export(versions[1], out, "torch", rewrite=True, shard_tokens=SIZE)
    assert verify_export(str(out)).failures == []
    assert found["removed"]["documents"] == len(gone) and len(found["shards"]) >= len(before["shards"])
    eos = found["tokenizer"]["eos_id"]
    there = {id_ for each in places(out).values() for id_ in (row["id"] for row in each)}
    assert not there & gone and {row["id"] for row in rows(versions[1])} <= there
    for split, tokens in was.items():
        now, held = row_of_tokens(out, split)[: len(tokens)], np.ones(len(tokens), np.bool_)
        for row in places(out)[split]:
            if not row["source"]:
                assert (row["id"], row["url"], row["origin"]) == (bytes(16), "", "")
                held[row["position"] : row["position"] + row["tokens"]] = False
        assert (now[held] == tokens[held]).all() and (now[~held] == eos).all()
        ranges = [
            (part["index"] * SIZE + start, part["index"] * SIZE + stop)
            for part in found["shards"]
            if part["split"] == split
            for start, stop in part.get("removed", ())
        ]
        assert sum(stop - start for start, stop in ranges) <= int((~held).sum())
        assert all(not held[start:stop].any() for start, stop in ranges)
    replaced = {each["path"] for each in found["withdrawn"]}
    assert replaced and not [path for path in replaced if (out / path).exists()]
    same = {path for path in files if path.endswith(".pt")} - replaced
    assert same and all((out / path).read_bytes() == files[path] for path in same)
    assert {each["replaced_by"] for each in found["withdrawn"]} <= files_of(out).keys()

    again = fetch_shards(str(out), shards_of_node(str(out), "n", 10_000), str(node), lambda line: None)
    assert not [path for path in replaced if (node / path).exists()] and all(path.is_file() for path in again)

    said.clear()
    after = files_of(out)
    export(versions[1], out, "torch", rewrite=True, shard_tokens=SIZE, say=said.append)
    assert "0 documents" in said[0] and files_of(out) == after
    export(versions[1], out, "torch", append=True, shard_tokens=SIZE, say=said.append)
    assert not [line for line in said if "WARNING" in line]


def test_what_waited_and_was_rewritten_begins_the_next_shard(versions: list[Path], tmp_path: Path) -> None:
    """A leftover with gaps goes on into a shard, which has them, too; and a second takedown is taken out of both."""
    out = tmp_path / "out"
    export(versions[0], out, "torch", shard_tokens=100_000)
    found = export(versions[1], out, "torch", rewrite=True, shard_tokens=100_000)
    gaps = {part["split"]: part.get("removed") for part in found["leftover"]}
    assert gaps["train"] and not found["shards"]
    found = export(versions[1], out, "torch", append=True, shard_tokens=100_000)
    assert {part["split"]: part.get("removed") for part in found["leftover"]} == gaps
    found = export(versions[2], out, "torch", rewrite=True, shard_tokens=100_000)
    assert len(found["rewrites"]) == 2 and verify_export(str(out)).failures == []
    left = {row["id"] for each in places(out).values() for row in each if row["source"]}
    assert {row["id"] for row in rows(versions[2])} <= left
    assert not left & ({row["id"] for row in rows(versions[0])} - {row["id"] for row in rows(versions[2])})


def test_lies_about_what_is_not_there(versions: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    export(versions[0], out, "torch", shard_tokens=SIZE)
    found = export(versions[1], out, "torch", rewrite=True, shard_tokens=SIZE)
    part = next(part for part in found["shards"] if part.get("removed"))
    part["removed"][0][1] -= 1
    (out / MANIFEST).write_bytes(seal(found))
    assert any("removed:" in failure for failure in verify_export(str(out)).failures)


def test_only_a_finished_export_of_tokens_is_rewritten(versions: list[Path], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="--rewrite: given with --format jsonl"):
        export(versions[1], tmp_path / "out", "jsonl", rewrite=True)
    with pytest.raises(RefineError, match="no finished export to rewrite"):
        export(versions[1], tmp_path / "out", "torch", rewrite=True)
