"""`refinery export --to megatron`: packed rows, or exported documents with tokens, as .bin and .idx again.

What comes out is a corpus of its own: every byte of it is read back and checked as that of any adopted one. The tokens
are those of the shards that the Parquet was made of, proved by the SHA-256 that its manifest keeps of each.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from refinery.loader.errors import FormatError
from refinery.loader.format.indexed import IndexedWriter
from refinery.loader.format.manifest import MANIFEST, Manifest, parse_manifest, shard_name, unseal
from refinery.loader.format.provenance import PARQUET
from refinery.loader.storage.full_disk import scratch_folder
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import Store, checksums
from refinery.pipelines.adopt.adopt import Known, adopt_pairs
from refinery.pipelines.adopt.find_pairs import Pair, place_of
from refinery.pipelines.adopt.rejoin_rows import PROVENANCE, write_shard
from refinery.pipelines.checks.file_checks import check_file
from refinery.pipelines.checks.verify_export import file_entry
from refinery.pipelines.export.options import KIND

BATCH_ROWS = 1024
ORIGIN = "provenance"  # folder of the rows that say where documents come from

Place = tuple[str, str, int, int]  # split, domain, index, count
Made = Iterator[tuple[Place, Callable[[Path], dict[str, Path]]]]


def export_megatron(prefix: str, output: str, say: Callable[[str], None] = print) -> Manifest:
    """Write the shards of a corpus' packed rows, or of an export of documents, to `output`, and return the manifest.

    Raises ValueError for anything else, FormatError for Parquet that is damaged, documents that are not all there, and
    tokens that are not those of the manifest. Called again after a crash, it writes the same bytes. Memory: a row
    group, 300 bytes for each document of a shard; disk: three times the largest shard.
    """
    root, target = place_of(prefix), place_of(output)
    if target.startswith(f"{root}/") or target == root:
        raise ValueError(f"--output: {output} given, which is inside of what is exported; name a place of its own")
    store, out = open_store(root), open_store(target)
    if out.size(MANIFEST) is not None:
        raise ValueError(f"--output: {output} given, which holds {MANIFEST} already")
    try:
        data = store.read(MANIFEST)
    except (FileNotFoundError, NotADirectoryError):
        raise FormatError(f"{prefix}: {MANIFEST} is missing: no finished corpus or export") from None
    payload = unseal(data, store.url(MANIFEST))
    if payload.get("kind") == KIND:
        known, made = _documents(store, payload)
    else:
        manifest = parse_manifest(data, store.url(MANIFEST))
        known, made = _packed_rows(store, manifest)
    pairs: list[Pair] = []
    extra: list[dict[str, Any]] = []
    for place, write in made:
        name = shard_name(*place)
        say(out.url(name))
        with scratch_folder(name) as scratch:
            paths = write(scratch)
            out.create(f"{name}.bin", paths["bin"])
            out.create(f"{name}.idx", paths["idx"])
            path = f"{ORIGIN}/{name}.parquet"
            extra.append({"path": path, **checksums(paths["origin"])._asdict()})
            out.create(path, paths["origin"])
        pairs.append(Pair(place[0], place[1], out, name))
    return adopt_pairs(out, pairs, [pair.name for pair in pairs], known, say, extra)


def _packed_rows(store: Store, manifest: Manifest) -> tuple[Known, Made]:
    if manifest.packed is None:
        raise ValueError(f"{store.root}: no packed rows there; its shards are .bin and .idx already")
    try:
        seed = int(manifest.recipe["shards"]["seed"])
    except (KeyError, TypeError, ValueError):
        raise FormatError(f"{store.root}: recipe.shards.seed expected, which decides the order of documents") from None
    own = manifest.tokenizer
    files = {entry.path: entry for entry in manifest.files}
    if own.path not in files:
        raise FormatError(f"{store.root}: {own.path} is not listed in {MANIFEST}")
    for failure in check_file(store, files[own.path]):
        raise FormatError(failure)

    def made() -> Made:
        for shard in manifest.shards:
            place = shard.split, shard.domain, shard.index, shard.count
            yield place, partial(write_shard, store, manifest, shard, seed)

    return Known(own.path, store.read(own.path), own.bos_id, own.eos_id, manifest.name), made()


def _documents(store: Store, payload: Mapping[str, Any]) -> tuple[Known, Made]:
    fields, options, own = payload["fields"], payload["options"], payload["tokenizer"]
    if options.get("format") not in ("parquet", "huggingface") or "input_ids" not in fields:
        raise ValueError(f"{store.root}: an export to Parquet with the field input_ids is allowed")
    for file in payload["files"]:
        for failure in check_file(store, file_entry(file, MANIFEST)):
            raise FormatError(failure)
    dtype = np.dtype(payload["dtype"])

    def made() -> Made:
        for shard in payload["shards"]:
            place = shard["split"], shard["domain"], shard["index"], shard["count"]
            yield place, partial(_write_documents, store, shard, dtype)

    name = str(payload["corpus"]["name"])
    return Known(own["path"], store.read(own["path"]), own["bos_id"], own["eos_id"], name), made()


def _write_documents(store: Store, shard: Mapping[str, Any], dtype: np.dtype[Any], folder: Path) -> dict[str, Path]:
    """A file of exported documents as bin, idx and provenance in `folder`."""
    entry = file_entry(shard["file"], MANIFEST)
    for failure in check_file(store, entry):
        raise FormatError(failure)
    paths = {"bin": folder / "shard.bin", "idx": folder / "shard.idx", "origin": folder / "shard.parquet"}
    offset = 0
    with (
        store.open(entry.path) as stream,
        pq.ParquetFile(stream, page_checksum_verification=True) as file,
        IndexedWriter(paths["bin"], dtype) as out,
        pq.ParquetWriter(paths["origin"], PROVENANCE, **PARQUET) as origin,
    ):
        names = [name for name in ("id", "source", "input_ids") if name in file.schema_arrow.names]
        for batch in file.iter_batches(BATCH_ROWS, columns=names, use_threads=False):
            column = batch.column("input_ids")
            lengths = column.value_lengths().to_numpy(zero_copy_only=False)
            places = np.cumsum([0, *lengths.tolist()])
            values = column.flatten().to_numpy(zero_copy_only=False)
            for start, stop in zip(places[:-1].tolist(), places[1:].tolist(), strict=True):
                out.add(values[start:stop].astype(dtype))
            count = len(batch)
            known = {name: batch.column(name).to_pylist() for name in names if name != "input_ids"}
            rows = {
                "id": [bytes.fromhex(id_) for id_ in known["id"]] if "id" in known else [bytes(16)] * count,
                "source": known.get("source", [""] * count),
                "token_offset": (offset + places[:-1]).astype(np.int64),
                "token_count": np.asarray(lengths, np.int64),
            }
            origin.write_table(pa.table(rows, schema=PROVENANCE))
            offset += int(places[-1])
    found = checksums(paths["bin"]).sha256
    if found != shard["tokens_sha256"]:
        expected = shard["tokens_sha256"]
        raise FormatError(
            f"{store.url(entry.path)}: its tokens have sha256 {found}, {expected} expected from {MANIFEST}"
        )
    return paths
