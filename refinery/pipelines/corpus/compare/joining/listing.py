"""Documents of the listings with their addresses: the sample of each group, and the file of all of them."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from refinery.loader.format.provenance import PARQUET, ROW_GROUP
from refinery.pipelines.corpus.compare.joining.documents import ROW
from refinery.pipelines.corpus.compare.joining.fates import Fate
from refinery.pipelines.corpus.compare.joining.names import Names
from refinery.pipelines.corpus.compare.joining.overlap import Group
from refinery.pipelines.corpus.compare.joining.partitions import HELD_BYTES, Rows, key_bytes
from refinery.pipelines.corpus.compare.joining.side import Side
from refinery.pipelines.corpus.compare.joining.tables import read_rows

SHOWN = ("url", "source", "origin")


@dataclass(frozen=True)
class Listed:
    """A document of one side. shard and row: where its provenance is; its tokens are the shard's document of that
    number."""

    id: str
    url: str
    source: str
    origin: str
    split: str
    domain: str
    shard: str
    document: int
    text_bytes: int
    tokens: int


@dataclass(frozen=True)
class Entry:
    """A document of a group in A and in B, None for the side that lacks it. other: the id that its fate names (the
    document kept instead), "" for none."""

    a: Listed | None
    b: Listed | None
    other: str


def list_samples(samples: Mapping[Group, Rows], sides: Mapping[str, Side]) -> dict[Group, tuple[Entry, ...]]:
    """The sampled documents of each group with what provenance says of them. Cost: the row groups that hold one."""
    wanted: dict[tuple[str, int], set[int]] = defaultdict(set)
    for found in samples.values():
        for label, rows in _halves(found):
            for shard, row in zip(rows["shard"].tolist(), rows["row"].tolist(), strict=True):
                wanted[label, shard].add(row)
    known = {
        (label, shard): read_rows(
            (sides[label].store, sides[label].manifest.shards[shard].provenance.path), sorted(rows), SHOWN
        )
        for (label, shard), rows in sorted(wanted.items())
    }
    return {
        group: tuple(
            Entry(
                _listed(found[n : n + 1]["a"], "A", sides, known),
                _listed(found[n : n + 1]["b"], "B", sides, known),
                other,
            )
            for n, other in enumerate(hex_ids(found["other"]))
        )
        for group, found in samples.items()
    }


def _halves(found: Rows) -> Iterator[tuple[str, Rows]]:
    """(side, its rows that are there)."""
    for label, name in (("A", "a"), ("B", "b")):
        yield label, found[name][found[name]["id"] != b""]


def _listed(row: Rows, label: str, sides: Mapping[str, Side], known: Mapping[tuple[str, int], Any]) -> Listed | None:
    (id_,) = hex_ids(row["id"])
    if not id_:
        return None
    number = int(row["shard"][0])
    shard = sides[label].manifest.shards[number]
    facts = known[label, number][int(row["row"][0])]
    return Listed(
        id=id_,
        url=str(facts.get("url") or ""),
        source=str(facts.get("source") or ""),
        origin=str(facts.get("origin") or ""),
        split=shard.split,
        domain=shard.domain,
        shard=shard.name,
        document=int(row["row"][0]),
        text_bytes=int(row["text_bytes"][0]),
        tokens=int(row["tokens"][0]),
    )


def hex_ids(ids: Rows) -> list[str]:
    """Ids in hexadecimal, "" for none."""
    return ["" if not any(each) else bytes(each).hex() for each in key_bytes(ids)]


FILE_SCHEMA = pa.schema(
    [
        pa.field("side", pa.string(), nullable=False),  # that has the document: A or B
        pa.field("fate", pa.string(), nullable=False),  # what became of it on the other side
        *(pa.field(name, pa.string(), nullable=False) for name in ("stage", "reason", "scope")),
        pa.field("id", pa.binary(16), nullable=False),
        pa.field("other_id", pa.binary(16), nullable=True),  # kept instead, or of the same page on the other side
        *(pa.field(name, pa.string(), nullable=False) for name in ("url", "source", "origin", "split", "domain")),
        pa.field("text_bytes", pa.int64(), nullable=False),
        pa.field("tokens", pa.int64(), nullable=False),
    ]
)

COPIED = ("id", "row", "text_bytes", "tokens")
WAITING = np.dtype([*((name, ROW[name]) for name in COPIED), ("other", "S16"), ("fate", "<u4")])


class DocumentFile:
    """Every document that the corpora do not share, as a Parquet file. Rows wait on disk by shard, so each shard's
    provenance is read once; they come in the order of A's shards, then B's."""

    def __init__(self, folder: Path, sides: Mapping[str, Side]) -> None:
        folder.mkdir()
        self.folder, self.sides = folder, sides
        self._waiting: dict[tuple[str, int], list[Rows]] = defaultdict(list)
        self._held = 0
        self.rows = 0

    def add(self, label: str, rows: Rows, fate: Any, other: Rows) -> None:
        """Documents of a side. fate: a number or [n] of them."""
        kept = np.zeros(len(rows), WAITING)
        for name in COPIED:
            kept[name] = rows[name]
        kept["other"], kept["fate"] = other, fate
        for shard in np.unique(rows["shard"]).tolist():
            self._waiting[label, shard].append(kept[rows["shard"] == shard])
        self.rows += len(rows)
        self._held += kept.nbytes
        if self._held > HELD_BYTES:
            self._write()

    def _write(self) -> None:
        for (label, shard), blocks in sorted(self._waiting.items()):
            with (self.folder / f"{label}-{shard}").open("ab") as stream:
                stream.writelines(block.tobytes() for block in blocks)
        self._waiting, self._held = defaultdict(list), 0

    def write(self, path: Path, fates: Names[Fate]) -> None:
        """The file, sorted by side, shard and document: the same rows make the same bytes."""
        self._write()
        with pq.ParquetWriter(path, FILE_SCHEMA, **PARQUET) as writer:
            for label, side in self.sides.items():
                for number in range(len(side.manifest.shards)):
                    waiting = self.folder / f"{label}-{number}"
                    if waiting.exists():
                        rows = np.fromfile(waiting, WAITING)
                        order = np.argsort(rows["row"], kind="stable")
                        writer.write_table(self._table(label, side, number, rows[order], fates), ROW_GROUP)

    def _table(self, label: str, side: Side, number: int, rows: Rows, fates: Names[Fate]) -> pa.Table:
        shard = side.manifest.shards[number]
        facts = read_rows((side.store, shard.provenance.path), rows["row"].tolist(), SHOWN)
        listed = [fates[fate] for fate in rows["fate"].tolist()]
        texts = {name: [str(facts[row].get(name) or "") for row in rows["row"].tolist()] for name in SHOWN}
        columns: dict[str, Sequence[Any]] = {
            "side": [label] * len(rows),
            "fate": [fate.kind.word for fate in listed],
            **{name: [getattr(fate, name) for fate in listed] for name in ("stage", "reason", "scope")},
            "id": _bytes(rows["id"]),
            "other_id": [each if any(each) else None for each in _bytes(rows["other"])],
            **texts,
            "split": [shard.split] * len(rows),
            "domain": [shard.domain] * len(rows),
            "text_bytes": rows["text_bytes"].tolist(),
            "tokens": rows["tokens"].tolist(),
        }
        arrays = [pa.array(columns[field.name], field.type) for field in FILE_SCHEMA]
        return pa.table(arrays, schema=FILE_SCHEMA)


def _bytes(ids: Rows) -> list[bytes]:
    return [bytes(each) for each in key_bytes(ids)]
