"""A corpus made by hand with removals of every kind, and what a run leaves in work/, for tests of what reads them."""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from refinery.loader.format.manifest import RUN, seal, unseal
from refinery.loader.format.removals import FOLDER, REMOVALS_SCHEMA, removals_name, write_removals
from refinery.pipelines.run.phases import finish_phase
from tests.corpus_factory import build_corpus, edit_manifest, file_entry, read_files, write_files

Row = dict[str, Any]
OTHER = "gs://other/corpus"
STAGES = {
    "url-duplicate": "url-duplicates",
    "exact-duplicate": "exact-duplicates",
    "near-duplicate-in-source": "near-duplicates-in-source",
    "near-duplicate": "near-duplicates",
}
ORDER = ("read", "language", *STAGES.values(), "quality", "encode")
WEB0 = "train/web/shard-00000-of-00003"


def made_id(name: str) -> bytes:
    return hashlib.blake2b(name.encode(), digest_size=16).digest()


def removal(name: str, kept_id: bytes, similarity: float = 0.875, **more: Any) -> Row:
    """A near duplicate called `name`, of the crawl."""
    row = {"id": made_id(name), "kept_id": kept_id, "similarity": similarity, "reason": "near-duplicate"}
    return row | {"scope": "corpus", "url": f"https://e.org/{name}", "source": "crawl", "origin": f"in/a@{name}"} | more


def exact(name: str, id_: bytes, **more: Any) -> Row:
    return removal(name, id_, 1.0, id=id_, reason="exact-duplicate", **more)


def capture(name: str, kept_id: bytes, **more: Any) -> Row:
    """An older capture of the address of `kept_id`."""
    return removal(name, kept_id, **{"similarity": 0.0, "reason": "url-duplicate", **more})


def captures(root: Path) -> list[Row]:
    """Captures of other texts, of the same, of a text that is in the corpus and of one that is removed for another; two
    whose ids lead to each other, by other addresses."""
    first, second = kept_ids(root)[:2]
    return [
        capture("m", first),
        capture("n", second, id=second),
        capture("o", first, id=second),
        capture("p", second, id=first),
        capture("q", made_id("d")),
        capture("r", first, id=made_id("c")),
        capture("s", made_id("lost")),
    ]


def kept_ids(root: Path, name: str = WEB0) -> list[bytes]:
    return list(pq.read_table(root / f"{name}.provenance.parquet")["id"].to_pylist())


def every_kind(root: Path) -> list[Row]:
    """b -> kept 1; d -> c -> kept 1; two copies of c; a copy of kept 0; e -> lost; f -> elsewhere; g in its source."""
    first, second = kept_ids(root)[:2]
    return [
        exact("a", first),
        removal("b", second, 0.75),
        removal("c", second),
        exact("c-copy", made_id("c"), source="code"),
        exact("c-copy-2", made_id("c")),
        removal("d", made_id("c")),
        removal("e", made_id("lost")),
        removal("f", made_id("theirs"), scope=f"reference:{OTHER}"),
        exact("h", made_id("theirs"), scope=f"reference:{OTHER}"),
        removal("g", made_id("d"), 0.9, reason="near-duplicate-in-source", scope="source"),
    ]


def sort_rows(rows: Sequence[Row]) -> pa.Table:
    table = pa.Table.from_pylist([{n: row[n] for n in REMOVALS_SCHEMA.names} for row in rows], schema=REMOVALS_SCHEMA)
    return table.sort_by([(name, "ascending") for name in REMOVALS_SCHEMA.names])


_BUILT: dict[tuple[int, int, bool], dict[str, bytes]] = {}  # options of `write_removed` -> the corpus' files


def build_removed(root: Path, files: int = 1, lost: int = 1, urls: bool = False) -> Path:
    """The hand-made corpus, and the removals above in `files` files. lost: documents that quality dropped. urls:
    captures, too. It is made once in a process, and copied: it does not depend on where it is.
    """
    key = files, lost, urls
    if key not in _BUILT:
        with TemporaryDirectory() as folder:
            _BUILT[key] = read_files(write_removed(Path(folder), *key))
    write_files(root, _BUILT[key])
    return root


def write_removed(root: Path, files: int, lost: int, urls: bool) -> Path:
    build_corpus(root)
    recipe = {
        "exact_dup": True,
        "near_dup": {"threshold": 0.75},
        "near_dup_in_source": {"*": {"threshold": 0.85}},
        "reference_corpora": [{"prefix": OTHER}],
        "rejects": {"rate": 0.5},
    }
    rows = [*every_kind(root), *(captures(root) if urls else ())]
    run = unseal((root / RUN).read_bytes(), RUN)
    run["recipe"] |= recipe
    run["inputs"] = [{"source": "crawl", "path": "in/a", "size": 1, "digest": "0"}]
    (root / RUN).write_bytes(seal(run))
    edit_manifest(root, lambda m: (m["recipe"].update(recipe), m.update(funnel=make_funnel(m["funnel"], rows, lost))))
    put_removals(root, split_rows(sort_rows(rows), files))
    return root


def split_rows(table: pa.Table, files: int) -> list[pa.Table]:
    """The sorted rows of each file, by the definition of the format."""
    places = [int.from_bytes(i[:4], "big") * files >> 32 for i in table["id"].to_pylist()]
    return [table.filter(pa.array([place == k for place in places])) for k in range(files)]


def put_removals(root: Path, tables: Sequence[pa.Table]) -> None:
    """Write these tables as the corpus' removals files, whatever they hold, and list them in the manifest."""
    for path in (root / FOLDER).glob("*"):
        path.unlink()
    (root / FOLDER).mkdir(exist_ok=True)
    entries = []
    for index, table in enumerate(tables):
        name = removals_name(index, len(tables))
        write_removals(root / name, [table])
        entries.append({**file_entry(root, name), "rows": table.num_rows})

    def edit(m: dict[str, Any]) -> None:
        m["files"] = [f for f in m["files"] if not f["path"].startswith(f"{FOLDER}/")] + entries

    edit_manifest(root, edit)


def make_funnel(old: Sequence[Mapping[str, Any]], rows: Sequence[Row], lost: int) -> list[Row]:
    """The hand-made funnel with the stages of deduplication, and quality, which drops `lost` documents of the crawl."""
    outcomes = {(row["stage"], row["source"]): row for row in old}
    drops = Counter((STAGES[row["reason"]], row["source"], row["reason"]) for row in rows)
    if lost:
        drops["quality", "crawl", "quality-score"] = lost
    made: list[Row] = []
    for source in ("crawl", "code"):
        entered = outcomes["encode", source]["in"]
        for stage in reversed(ORDER):
            before = outcomes.get((stage, source), {"dropped": {}, "dead": {}})
            here = {r: {"documents": n, "bytes": 0} for (t, s, r), n in drops.items() if (t, s) == (stage, source)}
            dropped = {**before["dropped"], **here}
            gone = sum(c["documents"] for c in (*dropped.values(), *before["dead"].values()))
            row = {"stage": stage, "source": source, "kept": entered, "dropped": dropped, "dead": before["dead"]}
            entered = {**entered, "documents": entered["documents"] + gone}
            made.append({**row, "in": entered})
    return sorted(made, key=lambda row: ORDER.index(row["stage"]))


def add_work(root: Path, documents: Sequence[Row], removed: Sequence[bool]) -> None:
    """work/ as phases leave it: these cleaned documents (id, url, source, origin) in one part, and their verdicts."""
    run = unseal((root / RUN).read_bytes(), RUN)
    for name in ("clean.json", "dedup.json"):
        (root / "work" / name).unlink(missing_ok=True)
    parts = {}
    for folder, table in (
        ("documents", pa.Table.from_pylist([{**row, "text": "secret text"} for row in documents])),
        ("verdicts", pa.table({"removed": list(removed)})),
    ):
        (root / "work" / folder).mkdir(parents=True, exist_ok=True)
        pq.write_table(table, root / "work" / folder / "part-0.parquet")
        entry = file_entry(root, f"work/{folder}/part-0.parquet")
        parts[folder] = [{**entry, "path": f"{folder}/part-0.parquet", "rows": len(documents)}]
    for phase, folder in (("clean", "documents"), ("dedup", "verdicts")):
        finish_phase(str(root / "work"), phase, run["phases"][phase], {"parts": {folder: parts[folder]}})


def document(row: Row) -> Row:
    return {name: row[name] for name in ("id", "url", "source", "origin")}
