"""`refinery export --rewrite`: an export of tokens without what takedowns took out of a corpus that is in it.

Only the shards that hold such documents are replaced, under new names. They keep their length: the places of what went
hold EOS, and the manifest says where these are, so no loss is computed there. The old files are listed as
withdrawn, and removed.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from refinery.loader.errors import CorruptShard
from refinery.loader.format.block_checksums import block_checksums
from refinery.loader.format.parquet.batches import stored_table
from refinery.loader.format.provenance import PARQUET
from refinery.loader.format.takedown import ADDED_SCHEMA, REMOVED_SCHEMA, REPLACED
from refinery.loader.read.versions.listings import listed_rows, took_copies
from refinery.loader.storage.full_disk import scratch_folder
from refinery.loader.storage.store import Store, checksums
from refinery.pipelines.corpus.export.place import SourceCorpus
from refinery.pipelines.corpus.export.regions import PROVENANCE
from refinery.pipelines.corpus.export.text_job import describe
from refinery.pipelines.corpus.export.torch_file import write_torch_file
from refinery.transforms.core.document import hash64
from refinery.transforms.core.wording import many

REWRITTEN = re.compile(r"-r\d{5}$")  # at the end of a name without its suffix
NOBODY = bytes(16)  # id of a place in provenance/ that no document has any more
COLUMNS = ["id", "source", "origin", "position", "tokens", "text_bytes"]

Ranges = list[list[int]]


@dataclass(frozen=True)
class TakenOut:
    """Documents that takedowns took out of a corpus. ids: of all; records: hashes of id, source and origin; texts: ids
    of which every copy went."""

    ids: frozenset[bytes]
    records: frozenset[int]
    texts: frozenset[bytes]

    def has(self, id_: bytes, source: str, origin: str) -> bool:
        return id_ in self.texts or hash64(id_, source, origin) in self.records


def taken_out(corpus: SourceCorpus) -> TakenOut:
    """By all takedowns of a corpus, except near copies of better documents, which no request named. Memory: about 300
    bytes for each."""
    store, gone = corpus.store, dict[int, bytes]()
    texts = set[bytes]()
    for takedown in corpus.manifest.takedowns:
        by_id = took_copies(store, takedown)
        for row in listed_rows(store, takedown.removed, REMOVED_SCHEMA, ("id", "source", "origin", "split", "why")):
            if row["split"] and row["why"] != REPLACED:
                gone[hash64(row["id"], row["source"], row["origin"])] = row["id"]
                if by_id:
                    texts.add(row["id"])
        for row in (
            listed_rows(store, takedown.added, ADDED_SCHEMA, ("id", "source", "origin")) if takedown.added else ()
        ):
            gone.pop(hash64(row["id"], row["source"], row["origin"]), None)
            texts.discard(row["id"])
    return TakenOut(frozenset(gone.values()), frozenset(gone), frozenset(texts))


@dataclass
class StillHeld:
    """Documents in an export that were taken out of a corpus. rows: by path of a file of provenance/. places: by split,
    the first token, the one after the last, and the source of each, in order."""

    rows: dict[str, list[int]] = field(default_factory=dict)
    places: dict[str, list[tuple[int, int, str]]] = field(default_factory=dict)
    sources: dict[str, dict[str, int]] = field(default_factory=dict)

    @property
    def documents(self) -> int:
        return sum(map(len, self.rows.values()))

    @property
    def tokens(self) -> int:
        return sum(counts["tokens"] for counts in self.sources.values())


def still_held(store: Store, manifest: Mapping[str, Any], gone: TakenOut) -> StillHeld:
    """What an export's provenance says that it holds of what went. Cost and memory: of a read of each file of it."""
    found, wanted = StillHeld(), pa.array(sorted(gone.ids), pa.binary(16))
    for part in manifest["provenance"] if gone.ids else ():
        path = part["file"]["path"]
        table = stored_table(store, path, COLUMNS)
        hits = np.flatnonzero(pa.compute.is_in(table["id"], value_set=wanted).to_numpy())
        for at, row in zip(hits.tolist(), table.take(pa.array(hits)).to_pylist(), strict=True):
            if not gone.has(row["id"], row["source"], row["origin"]):
                continue
            found.rows.setdefault(path, []).append(at)
            place = row["position"], row["position"] + row["tokens"], row["source"]
            found.places.setdefault(part["split"], []).append(place)
            entry = found.sources.setdefault(row["source"], {"documents": 0, "tokens": 0, "bytes": 0})
            for name, value in (("documents", 1), ("tokens", row["tokens"]), ("bytes", row["text_bytes"])):
                entry[name] += value
    for places in found.places.values():
        places.sort()
    return found


def warning(output: str, prefix: str, held: StillHeld) -> str:
    """What to do where an export holds documents that were taken out."""
    return (
        f"WARNING: {output} still holds {many(held.documents, 'document')} ({many(held.tokens, 'token')}) that were "
        f"taken out of the corpus; `refinery export {prefix} --format torch --rewrite --output {output}` replaces the "
        "shards that hold them"
    )


def rewritten(store: Store, manifest: Mapping[str, Any], held: StillHeld, corpus: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest of an export without what it still holds; publishes the files that are others in it. corpus: the
    version that they were taken out of. Cost: a read and a write of each such file. Memory: one of them.

    Raises CorruptShard for a file that is not the one that the manifest lists.
    """
    number, size = len(manifest.get("rewrites", [])) + 1, manifest["options"]["shard_tokens"]
    fill = next((id_ for name in ("eos_id", "bos_id") if (id_ := manifest["tokenizer"][name]) is not None), 0)
    withdrawn: list[dict[str, Any]] = []

    def replace(part: Mapping[str, Any], first: int) -> Mapping[str, Any]:
        places = list(_inside(held.places.get(part["split"], ()), first, first + part["tokens"]))
        if not places:
            return part
        tokens = _read(store, part, manifest["options"]["dtype"]).copy()
        sources = Counter(part["sources"])
        for start, stop, source in places:
            tokens[start:stop] = fill
            sources[source] -= stop - start
        name = new_name(part["file"]["path"], number)
        with scratch_folder(name) as scratch:
            path = scratch / "shard.pt"
            offset = write_torch_file(path, tokens).offset
            store.create(name, path)
            file = describe(path, name) | {"block_crc32c": block_checksums(path)}
        withdrawn.append(_withdrawn(part, name))
        removed = merged([*part.get("removed", []), *([start, stop] for start, stop, _ in places)])
        left = {source: count for source, count in sorted(sources.items()) if count}
        return {**part, "data_offset": offset, "sources": left, "removed": removed, "file": file}

    shards = [replace(part, part["index"] * size) for part in manifest["shards"]]
    counts = Counter(part["split"] for part in manifest["shards"])
    leftover = [replace(part, counts[part["split"]] * size) for part in manifest["leftover"]]
    provenance = []
    for part in manifest["provenance"]:
        rows = held.rows.get(part["file"]["path"])
        if rows:
            name = new_name(part["file"]["path"], number)
            withdrawn.append(_withdrawn(part, name))
            part = {**part, "file": _without_rows(store, part, rows, name)}
        provenance.append(part)
    sources = {name: dict(count) for name, count in manifest["sources"].items()}
    for source, count in held.sources.items():
        for unit, value in count.items():
            sources[source][unit] -= value
    sources = {name: count for name, count in sources.items() if count["documents"]}
    before = manifest.get("removed", {"documents": 0, "tokens": 0})
    return {
        **manifest,
        "shards": shards,
        "leftover": leftover,
        "provenance": provenance,
        "sources": sources,
        "totals": {
            "shards": len(shards),
            **{name: sum(entry[name] for entry in sources.values()) for name in ("documents", "tokens", "bytes")},
        },
        "removed": {"documents": before["documents"] + held.documents, "tokens": before["tokens"] + held.tokens},
        "rewrites": [*manifest.get("rewrites", []), {**corpus, "documents": held.documents, "tokens": held.tokens}],
        "withdrawn": [*manifest.get("withdrawn", []), *withdrawn],
    }


def new_name(path: str, number: int) -> str:
    """The name of what replaces a file in the rewriting of that number.

    >>> new_name("train/shard-00000003-r00001.pt", 2)
    'train/shard-00000003-r00002.pt'
    """
    old = PurePosixPath(path)
    return str(old.with_name(f"{REWRITTEN.sub('', old.stem)}-r{number:05d}{old.suffix}"))


def merged(ranges: Iterable[Sequence[int]]) -> Ranges:
    """Ranges in order, those that touch as one.

    >>> merged([[5, 7], [0, 2], [2, 3]])
    [[0, 3], [5, 7]]
    """
    found: Ranges = []
    for start, stop in sorted((each[0], each[1]) for each in ranges):
        if found and start <= found[-1][1]:
            found[-1][1] = max(found[-1][1], stop)
        else:
            found.append([start, stop])
    return found


def _inside(places: Sequence[tuple[int, int, str]], first: int, end: int) -> Iterator[tuple[int, int, str]]:
    """What of these places is in [first, end), counted from `first`."""
    for start, stop, source in places:
        low, high = max(start, first), min(stop, end)
        if low < high:
            yield low - first, high - first, source


def _read(store: Store, part: Mapping[str, Any], dtype: str) -> npt.NDArray[Any]:
    data = store.read(part["file"]["path"])
    if checksums(data).sha256 != part["file"]["sha256"]:
        raise CorruptShard(f"{store.url(part['file']['path'])}: damaged: its sha256 is not that of the manifest")
    return np.frombuffer(data, np.dtype(dtype), part["tokens"], part["data_offset"])


def _without_rows(store: Store, part: Mapping[str, Any], rows: Sequence[int], name: str) -> dict[str, Any]:
    """Publish a file of provenance/ in which nobody has these places any more."""
    listed = stored_table(store, part["file"]["path"]).to_pylist()
    empty = {"id": NOBODY, "source": "", "domain": "", "url": "", "origin": "", "text_bytes": 0}
    for row in rows:
        listed[row] |= empty
    with scratch_folder(name) as scratch:
        path = scratch / "provenance.parquet"
        table = pa.Table.from_pylist(listed, schema=PROVENANCE)
        pq.write_table(table, path, **PARQUET, use_dictionary=["source", "domain"])
        store.create(name, path)
        return describe(path, name)


def _withdrawn(part: Mapping[str, Any], replaced_by: str) -> dict[str, Any]:
    file = {name: part["file"][name] for name in ("path", "size", "sha256")}
    return {**file, "replaced_by": replaced_by}
