"""A corpus changed as somebody would who hides something: rows and tokens edited, every checksum made anew."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from refinery.loader.format.manifest import IndexedReader, IndexedWriter, dtype_for
from refinery.loader.format.provenance import PARQUET
from tests.corpus_factory import edit_manifest

Rows = list[dict[str, Any]]


def copy_of(corpus: Path, root: Path) -> Path:
    shutil.copytree(corpus, root, ignore=shutil.ignore_patterns("work"))
    return root


def provenance_files(root: Path) -> list[Path]:
    """Of shards with two documents or more."""
    paths = sorted(root.glob("train/*/*.provenance.parquet"))
    return [path for path in paths if pq.read_metadata(path).num_rows > 1]


def edit_rows(path: Path, edit: Callable[[Rows], Rows]) -> None:
    """Write a Parquet file again with other rows, of the same schema."""
    table = pq.read_table(path)
    pq.write_table(pa.Table.from_pylist(edit(table.to_pylist()), schema=table.schema), path, **PARQUET)


def edit_documents(path: Path, edit: Callable[[list[Any], Rows], tuple[list[Any], Rows]]) -> None:
    """Write a shard again with other documents and rows; offsets and counts follow. path: of its provenance."""
    name = str(path).removesuffix(".provenance.parquet")
    manifest = json.loads((path.parents[2] / "manifest.json").read_bytes())
    dtype = dtype_for(manifest["tokenizer"]["vocab_size"])
    reader = IndexedReader(Path(name + ".bin"))
    documents = [np.array(reader[i]) for i in range(len(reader))]
    rows = pq.read_table(path).to_pylist()
    documents, rows = edit(documents, rows)
    for suffix in (".bin", ".idx"):
        Path(name + suffix).unlink()
    with IndexedWriter(Path(name + ".bin"), dtype) as writer:
        offset = 0
        for tokens, row in zip(documents, rows, strict=True):
            writer.add(np.asarray(tokens, dtype))
            row.update(token_offset=offset, token_count=len(tokens))
            offset += len(tokens)
    edit_rows(path, lambda _: rows)


def seal_again(root: Path) -> None:
    """All sizes, checksums and counts in the manifest as the files have them now."""

    def edit(payload: dict[str, Any]) -> None:
        for shard in payload["shards"]:
            rows = pq.read_table(root / shard["files"]["provenance"]["path"], columns=["token_count"])
            shard["documents"] = rows.num_rows
            shard["tokens"] = sum(rows["token_count"].to_pylist())

    edit_manifest(root, edit)


# --- what is forged ---------------------------------------------------------------------------------------------------


def swap_texts(root: Path) -> None:
    """Two documents change places, their rows do not."""
    edit_documents(provenance_files(root)[0], lambda docs, rows: ([docs[1], docs[0], *docs[2:]], rows))


def change_a_token(root: Path) -> None:
    def edit(docs: list[Any], rows: Rows) -> tuple[list[Any], Rows]:
        docs[0][3] = (int(docs[0][3]) + 1) % 200 + 5
        return docs, rows

    edit_documents(provenance_files(root)[0], edit)


def change_a_score(root: Path) -> None:
    def edit(rows: Rows) -> Rows:
        rows[0]["language_score"] = rows[0]["language_score"] / 2
        return rows

    edit_rows(provenance_files(root)[0], edit)


def change_a_reason(root: Path) -> None:
    def edit(rows: Rows) -> Rows:
        place = next(i for i, row in enumerate(rows) if row["stage"] == "heuristics")
        rows[place]["reason"] = "gopher-too-many-words"
        return rows

    edit_rows(next((root / "rejects").iterdir()), edit)


def drop_a_reject(root: Path) -> None:
    edit_rows(next((root / "rejects").iterdir()), lambda rows: rows[1:])


def invent_a_document(root: Path) -> None:
    def edit(docs: list[Any], rows: Rows) -> tuple[list[Any], Rows]:
        new = {**rows[0], "id": bytes(16), "origin": f"{rows[0]['origin']}7", "url": "https://evil.example/"}
        return [*docs, docs[0]], [*rows, new]

    edit_documents(provenance_files(root)[0], edit)


def drop_a_document(root: Path) -> None:
    edit_documents(provenance_files(root)[0], lambda docs, rows: (docs[1:], rows[1:]))


def pretend_a_removal(root: Path) -> None:
    """A document goes, and a row says that it was nearly the same as another one."""
    path = provenance_files(root)[0]
    gone, kept = pq.read_table(path).to_pylist()[:2]
    edit_documents(path, lambda docs, rows: (docs[1:], rows[1:]))
    forged = {name: gone[name] for name in ("id", "url", "source", "origin")}
    forged |= {"kept_id": kept["id"], "similarity": 0.9, "reason": "near-duplicate", "scope": "corpus"}
    edit_rows(next((root / "removals").iterdir()), lambda rows: [*rows, forged])


def pretend_a_lost_removal(root: Path) -> None:
    """A document goes, in favour of one that nobody can find."""
    path = provenance_files(root)[0]
    gone = pq.read_table(path).to_pylist()[0]
    edit_documents(path, lambda docs, rows: (docs[1:], rows[1:]))
    forged = {name: gone[name] for name in ("id", "url", "source", "origin")}
    forged |= {"kept_id": b"\7" * 16, "similarity": 0.9, "reason": "near-duplicate", "scope": "corpus"}
    edit_rows(next((root / "removals").iterdir()), lambda rows: [*rows, forged])


def favour_the_copy(root: Path) -> None:
    """A removed copy takes the place of the one that was kept."""
    removed_path = next((root / "removals").iterdir())
    removed = next(row for row in pq.read_table(removed_path).to_pylist() if row["reason"] == "exact-duplicate")
    for path in provenance_files(root):
        rows = pq.read_table(path).to_pylist()
        for row in rows:
            if row["id"] == removed["id"]:
                kept = {name: row[name] for name in ("url", "source", "origin")}
                row.update({name: removed[name] for name in ("url", "source", "origin")})
                edit_rows(path, lambda _, rows=rows: rows)  # type: ignore[misc]

                def swap(all_rows: Rows, kept: dict[str, Any] = kept) -> Rows:
                    return [{**each, **kept} if each == removed else each for each in all_rows]

                edit_rows(removed_path, swap)
                return
    raise AssertionError("no copy of a document of train/")


FORGERIES: dict[str, tuple[Callable[[Path], None], str]] = {
    "two texts change places": (swap_texts, "other tokens"),
    "a token": (change_a_token, "other tokens"),
    "a score": (change_a_score, "another value"),
    "a reason": (change_a_reason, "another decision"),
    "a reject is not listed": (drop_a_reject, "missing"),
    "a document is invented": (invent_a_document, "not of any record"),
    "a document is dropped silently": (drop_a_document, "missing"),
    "a removal is forged": (pretend_a_removal, "removal does not hold"),
    "a removal in favour of nothing": (pretend_a_lost_removal, "removal does not hold"),
    "a copy of lower rank is kept": (favour_the_copy, "removal does not hold"),
}
