"""Corpora whose every checksum holds, sealed anew after a lie: verify names each by what the published data say."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from refinery.loader.format.manifest import MANIFEST, RUN, provenance_schema, seal, unseal
from refinery.pipelines.corpus.verify.row_check import RowCheck
from refinery.pipelines.corpus.verify.verify import verify
from refinery.pipelines.lanes.web import LANE
from refinery.pipelines.published.placement import Plan, read_plan
from refinery.transforms.write.shards import provenance_columns
from refinery.transforms.write.shuffle import order_key, split_of
from tests.corpus_factory import (
    BOS,
    COLUMNS,
    DEAD,
    EOS,
    RECIPE,
    REJECTS,
    STAGES,
    TOKENIZER,
    ByteTokenizer,
    build_corpus,
    dead_row,
    edit_manifest,
    encode,
    fitting_ids,
    provenance_row,
    reject_row,
    write_records,
)
from tests.pipelines.corpus.verify.test_verify_faults import (
    edit_provenance,
    edited,
    patch_tokens,
    put,
    rewrite,
    set_column,
)
from tests.sampling import sampled

WEB0, WEB1 = (f"train/web/shard-0000{i}-of-00003" for i in range(2))
CODE = "train/code/shard-00000-of-00001"


def edit_run(edit: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    def change(root: Path) -> None:
        payload = unseal((root / RUN).read_bytes(), RUN)
        edit(payload)
        (root / RUN).write_bytes(seal(payload))
        edit_manifest(root)

    return change


def records(path: str, rows: list[dict[str, Any]]) -> Callable[[Path], None]:
    def change(root: Path) -> None:
        write_records(root, path, rows)
        edit_manifest(root)

    return change


def swapped_ids(table: pa.Table) -> pa.Table:
    ids = table["id"].to_pylist()
    return set_column("id", [ids[1], ids[0], ids[2]])(table)


def foreign_id(split: str, index: int) -> Callable[[pa.Table], pa.Table]:
    def edit(table: pa.Table) -> pa.Table:
        return set_column("id", [*table["id"].to_pylist()[:2], next(fitting_ids(split, index, 3, "other"))])(table)

    return edit


def eos_in_a_text(root: Path) -> None:
    """Tokenizers skip special ids when they decode: without looking at every token only a sampled document tells."""
    tokens = encode("int main(void) { return 0; }")
    rewrite(root, CODE, [np.insert(tokens, 5, EOS)])
    edit_manifest(root, one_token_more)


def one_token_more(m: dict[str, Any]) -> None:
    m["shards"][3]["tokens"] += 1
    m["totals"]["tokens"] += 1


def reversed_stages(m: dict[str, Any]) -> None:
    for row in m["funnel"]:
        row["stage"] = {"language": "pii", "encode": "quality"}.get(row["stage"], row["stage"])


def without_encode(m: dict[str, Any]) -> None:
    for row in m["funnel"]:
        row["stage"] = {"language": "quality", "encode": "pii"}.get(row["stage"], row["stage"])


def without_source(m: dict[str, Any]) -> None:
    m["funnel"] = [row for row in m["funnel"] if row["source"] != "code"]


def oversized_index(root: Path) -> None:
    with (root / f"{WEB0}.idx").open("r+b") as stream:
        stream.truncate(1 << 40)  # sparse; reading it whole would be fatal


def fifo(path: str) -> Callable[[Path], None]:
    def change(root: Path) -> None:
        (root / path).unlink()
        os.mkfifo(root / path)

    return change


def device(root: Path) -> None:
    (root / TOKENIZER).unlink()
    (root / TOKENIZER).symlink_to("/dev/zero")


def link_out(path: str) -> Callable[[Path], None]:
    def change(root: Path) -> None:
        target = root.parent / "elsewhere"
        (root / path).rename(target)
        (root / path).symlink_to(target)

    return change


def hidden_folder(root: Path) -> None:
    (root / "train/hidden").symlink_to(root / "work")


def recipe_with(**sections: Any) -> Callable[[Path], None]:
    return edited(lambda m: m["recipe"].update(sections))


LIES: dict[str, tuple[Callable[[Path], None], str]] = {
    "order": (edit_provenance(WEB0, swapped_ids), f"{WEB0}.*: 1 rows out of the recipe's order; the first: row 1"),
    "shard": (edit_provenance(WEB0, foreign_id("train", 1)), f"{WEB0}.*: 1 rows of another shard; the first: row 2"),
    "split": (edit_provenance(WEB0, foreign_id("validation", 0)), f"{WEB0}.*: 1 rows of the other split"),
    "seed": (recipe_with(shards={**RECIPE["shards"], "seed": 2}), "rows of another shard"),
    "validation": (recipe_with(shards={**RECIPE["shards"], "validation": 1.0}), f"{WEB0}.*: 3 rows of the other split"),
    "domain": (edit_provenance(CODE, set_column("source", ["crawl"])), f"{CODE}.*: 1 rows whose source is of another"),
    "no plan": (recipe_with(shards={}), "recipe: shards.seed, shards.validation and sources with names expected"),
    "no sources": (edited(lambda m: m["recipe"].pop("sources")), "recipe: shards.seed, shards.validation and sources"),
    "target": (
        recipe_with(sources=[{**source, "target": 100} for source in RECIPE["sources"]]),
        "source crawl: 1077 tokens found, at most its target of 100 expected",
    ),
    "recipe": (recipe_with(pii=None), "_run.json: its recipe is not that of manifest.json; they differ in: pii"),
    "recipe's types": (
        recipe_with(shards={**RECIPE["shards"], "seed": 1.0}),
        "its recipe is not that of manifest.json; they differ in: types",
    ),
    "run's recipe": (edit_run(lambda r: r.pop("recipe")), "_run.json: its recipe is not that of manifest.json"),
    "run's phases": (edit_run(lambda r: r["phases"].update(shards="77")), "_run.json: phases.shards is '77'"),
    "run without phases": (edit_run(lambda r: r.update(phases=[])), "_run.json: phases.shards is None"),
    "name": (edited(lambda m: m.update(name="huge")), "_run.json: name 'tiny' found, 'huge' expected"),
    "source": (
        edit_provenance(WEB0, set_column("source", ["crawl", "x", "y"])),
        "2 rows whose source is not in the rec",
    ),
    "no copy's source": (edit_provenance(WEB0, set_column("sources", [["crawl"], [], []])), "2 rows without sources"),
    "copy's source": (
        edit_provenance(WEB0, set_column("sources", [["crawl"], ["crawl", "x"], ["crawl"]])),
        "1 rows with sources that are not in the recipe; the first: row 1",
    ),
    "copies": (edit_provenance(WEB0, set_column("copies", [1, 1, 0])), "1 rows whose copies is 0"),
    "meta": (edit_provenance(WEB0, set_column("meta", ["{}", "[]", "{"])), "2 rows whose meta is not a JSON object"),
    "score": (edit_provenance(WEB0, set_column("language_score", [None, 1.0, np.inf])), "1 rows whose language_score"),
    "quality": (edit_provenance(WEB0, set_column("quality", [None, np.nan, 0.0])), "1 rows whose quality is neither"),
    "dead lost": (
        records(DEAD, [dead_row("read", "B")]),
        "dead_letters/: 0 rows of stage 'read', .*, the funnel has 1",
    ),
    "dead twice": (
        records(DEAD, [dead_row("read", "BadRecord")] * 2),
        "dead_letters/: 2 rows .*'BadRecord' found, the",
    ),
    "dead left out": (edited(lambda m: m["files"].pop(3)), "dead_letters/: 0 rows .*, the funnel has 1 dead"),
    "dead elsewhere": (records(DEAD, [dead_row("url", "BadRecord")]), "dead_letters/: 1 rows of stage 'url'"),
    "dead columns": (records(DEAD, [{"stage": "read"}]), f"{DEAD}: columns .'stage'. found"),
    "rejects": (records(REJECTS, [reject_row("language", "not-allowed")] * 3), "rejects/: 3 rows .* the funnel has 2"),
    "reject's reason": (
        records(REJECTS, [reject_row("language", "x")]),
        "rejects/: 1 rows .*'x' found, the funnel has 0",
    ),
    "reject's source": (records(REJECTS, [reject_row("language", "not-allowed", "code")]), "rejects/: 1 rows .*'code'"),
    "rejects not Parquet": (
        put(REJECTS, b"PAR1", reseal=True),
        f"{REJECTS}: not a readable Parquet file: no footer of Parquet",
    ),
    "unlisted text": (put("train/web/notes.txt", b""), "train/web/notes.txt: not in manifest.json"),
    "unlisted tokenizer": (put("tokenizer/other.json", b""), "tokenizer/other.json: not in manifest.json"),
    "unlisted rejects": (edited(lambda m: m["files"].pop(2)), f"{REJECTS}: not in manifest.json"),
    "EOS inside": (eos_in_a_text, f"{CODE}.bin: 1 BOS or EOS ids inside documents; the first: {EOS} in document 0"),
    "BOS inside": (patch_tokens(WEB0, 20, BOS), f"1 BOS or EOS ids inside documents; the first: {BOS} in document 1"),
    "first stage": (
        edited(lambda m: [row.update(stage="url") for row in m["funnel"] if row["stage"] == "read"]),
        r"funnel: \['url', 'language', 'encode'\] found, those of .* in this order, 'read' first, expected",
    ),
    "unknown stage": (edited(lambda m: m["funnel"][2].update(stage="magic")), r"funnel: \['read', 'magic', "),
    "order of stages": (edited(reversed_stages), r"funnel: \['read', 'pii', 'quality'\] found, those of .* expected"),
    "last stage": (edited(without_encode), "funnel: 'pii' is the last stage, 'encode' expected"),
    "no stages": (edited(lambda m: m.update(stages=[])), r"funnel: .* found, those of \[\] in this order"),
    "a column less": (
        edited(lambda m: m["columns"].pop()),
        "provenance.parquet: its columns are not those of the form",
    ),
    "another column": (edited(lambda m: m["columns"][0].update(name="topic")), "its columns are not those of the form"),
    "source not read": (edited(without_source), "funnel: source 'code' of the recipe was never read"),
    "source of no recipe": (
        edited(lambda m: [row.update(source="x") for row in m["funnel"] if row["source"] == "code"]),
        "funnel: source 'x' is not in the recipe",
    ),
    "bytes": (
        edited(lambda m: m["funnel"][-1].update(kept={"documents": 1, "bytes": 1})),
        r"the last stage, 'encode', kept \d+ bytes, \d+ expected from totals",
    ),
    "FIFO bin": (fifo(f"{WEB0}.bin"), f"{WEB0}.bin: OSError: .*not a regular file"),
    "FIFO idx": (fifo(f"{WEB0}.idx"), f"{WEB0}.idx: OSError: .*not a regular file"),
    "FIFO provenance": (fifo(f"{WEB0}.provenance.parquet"), f"{WEB0}.provenance.parquet: OSError: .*not a regular"),
    "FIFO tokenizer": (fifo(TOKENIZER), f"{TOKENIZER}: OSError: .*not a regular file"),
    "FIFO run": (fifo(RUN), "_run.json: OSError: .*not a regular file"),
    "FIFO manifest": (fifo(MANIFEST), "OSError: .*not a regular file"),
    "FIFO phase": (fifo("work/clean.json"), "work/clean.json: .*not a regular file"),
    "FIFO part": (fifo("work/documents/part-00000.parquet"), "work/documents/part.*not a regular file"),
    "unlisted FIFO": (lambda root: os.mkfifo(root / "rejects/x"), "rejects/x: not in manifest.json"),
    "device": (device, "not a regular file"),
    "link out": (link_out(f"{WEB0}.bin"), f"{WEB0}.bin: leads to .*/elsewhere, outside of the corpus"),
    "folder out": (link_out("validation"), "validation: leads to .*/elsewhere, outside of the corpus"),
    "manifest out": (link_out(MANIFEST), "manifest.json: leads to .*/elsewhere, outside"),
    "hidden folder": (hidden_folder, "train/hidden: a link to the folder .*/work, a folder expected"),
    "huge index": (oversized_index, f"{WEB0}.idx: size {1 << 40} found, 102 expected for 3 documents; not read"),
    "huge index, sealed": (
        edited(lambda m: m["shards"][0].update(documents=2)),
        f"{WEB0}.idx: size 102 found, 82 expected for 2 documents; not read",
    ),
}


@pytest.mark.parametrize("lie", sampled("lies that verify names", LIES, 20))
def test_lie_is_named(tmp_path: Path, lie: str) -> None:
    tell, message = LIES[lie]
    corpus = build_corpus(tmp_path / "corpus")
    tell(corpus)
    report = verify(str(corpus), load=lambda path: ByteTokenizer())  # type: ignore[arg-type, return-value]
    assert any(re.search(message, failure) for failure in report.failures), "\n".join(report.failures)


def test_a_link_inside_and_foreign_files_are_fine(tmp_path: Path) -> None:
    corpus = build_corpus(tmp_path / "corpus")
    (corpus / f"{WEB0}.bin").rename(corpus / "moved")
    (corpus / f"{WEB0}.bin").symlink_to(corpus / "moved")
    (corpus / "notes").mkdir()
    (corpus / "notes/README").write_bytes(b"")
    (tmp_path / "link").symlink_to(corpus)
    load: Any = lambda path: ByteTokenizer()  # noqa: E731
    assert verify(str(corpus), load=load).failures == verify(str(tmp_path / "link"), load=load).failures == []


def test_constants_are_those_of_the_funnel() -> None:
    assert [(LANE.phase_of(stage), stage.name) for stage in LANE.stages] == list(STAGES)
    assert provenance_columns(note for note in LANE.notes if note.column) == COLUMNS


def rows_of(ids: list[bytes], origins: list[str]) -> pa.RecordBatch:
    rows = [provenance_row("x", "", 0, 1, id_) | {"origin": o} for id_, o in zip(ids, origins, strict=True)]
    return pa.RecordBatch.from_pylist(rows, schema=provenance_schema(COLUMNS))


def faults(batches: list[pa.RecordBatch], index: int, count: int, split: str = "train", seed: int = 7) -> list[str]:
    class Shard:
        domain = "web"

    shard: Any = Shard()
    shard.split, shard.index, shard.count = split, index, count
    check = RowCheck(shard, Plan(seed, 0.3, {"crawl": "web"}), (), {})
    for batch in batches:
        check.watch(batch)
    return list(check.faults.sentences())


def test_place_is_that_of_the_shuffle() -> None:
    places: dict[tuple[str, int], list[bytes]] = {}
    for id_ in (i.to_bytes(16, "little") for i in range(300)):
        places.setdefault((split_of(id_, 0.3), order_key(7, id_) * 5 >> 64), []).append(id_)
    assert len(places) == 10
    for (split, index), ids in places.items():
        ids.sort(key=lambda id_: order_key(7, id_))
        halves = [rows_of(part, ["o"] * len(part)) for part in (ids[: len(ids) // 2], ids[len(ids) // 2 :])]
        assert faults(halves, index, 5, split) == []
        assert faults(halves[::-1], index, 5, split)[0].startswith("1 rows out of the recipe's order; the first: row ")


def test_ties_are_in_order_of_origin() -> None:
    id_ = next(i.to_bytes(16, "little") for i in range(99) if split_of(i.to_bytes(16, "little"), 0.3) == "train")
    assert faults([rows_of([id_, id_], ["a", "b"]), rows_of([id_], ["é"])], 0, 1) == []
    assert len(faults([rows_of([id_, id_], ["b", "a"])], 0, 1)) == 1
    assert len(faults([rows_of([id_], ["b"]), rows_of([id_], ["a"])], 0, 1)) == 1


@pytest.mark.parametrize(
    "recipe",
    [
        {},
        {"shards": 1, "sources": []},
        {"shards": {"seed": True, "validation": 0.1}, "sources": []},
        {"shards": {"seed": 1, "validation": "0.1"}, "sources": []},
        {"shards": {"seed": 1, "validation": 0.1}, "sources": [{"name": []}]},
        {"shards": {"seed": 1, "validation": 0.1}, "sources": [{"name": "a", "domain": 7}]},
        {"shards": {"seed": 1, "validation": 0.1}, "sources": ["a"]},
    ],
    ids=str,
)
def test_recipes_without_a_plan(recipe: dict[str, Any]) -> None:
    assert read_plan(recipe) is None
    assert read_plan(RECIPE) == Plan(1, 0.25, {"crawl": "web", "code": "code"})
