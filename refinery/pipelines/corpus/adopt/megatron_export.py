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

from refinery.loader.errors import FormatError, NoTokens
from refinery.loader.format.indexed import IndexedWriter, dtype_for
from refinery.loader.format.manifest import MANIFEST, Manifest, shard_name
from refinery.loader.format.parquet.guarded import GuardedFile, guarded_parquet
from refinery.loader.format.provenance import PARQUET
from refinery.loader.read.corpus import Corpus
from refinery.loader.storage.full_disk import scratch_folder
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import Store, checksums
from refinery.pipelines.corpus.adopt.adopt import Known, adopt_pairs
from refinery.pipelines.corpus.adopt.find_pairs import Pair, place_of
from refinery.pipelines.corpus.adopt.rejoin_rows import PROVENANCE, write_shard
from refinery.pipelines.corpus.checks.file_checks import check_file
from refinery.pipelines.corpus.checks.verify_export import file_entry
from refinery.pipelines.corpus.export.export_manifest import holds_export, manifest_name, read_export
from refinery.transforms.core.resources import read_resource
from refinery.transforms.tokenize.load_tokenizer import load_tokenizer_bytes

BATCH_ROWS = 1024
ORIGIN = "provenance"  # folder of the rows that say where documents come from

Place = tuple[str, str, int, int]  # split, domain, index, count
Made = Iterator[tuple[Place, Callable[[Path], dict[str, Path]]]]


def export_megatron(
    prefix: str,
    output: str,
    say: Callable[[str], None] = print,
    tokenizer: str = "",
    absent: tuple[bool, bool] = (False, False),
) -> Manifest:
    """Write the shards of a corpus' packed rows, or of an export of documents, to `output`, and return the manifest.

    tokenizer: of Parquet files of another tool, which have no manifest: a shard for each, its documents in their order.
    absent: whether these have no BOS, no EOS. Raises ValueError for anything else, FormatError for Parquet that is
    damaged, documents that are not all there, and tokens that are not those of the manifest. Called again after a
    crash, it writes the same bytes. Memory: a row group, 300 bytes for each document of a shard; disk: three times the
    largest shard.
    """
    root, target = place_of(prefix), place_of(output)
    if target.startswith(f"{root}/") or target == root:
        raise ValueError(f"--output: {output} given, which is inside of what is exported; name another place")
    store, out = open_store(root), open_store(target)
    if out.size(MANIFEST) is not None:
        raise ValueError(f"--output: {output} given, which holds {MANIFEST} already")
    has_manifest = store.size(manifest_name(store)) is not None
    if has_manifest == bool(tokenizer):
        needs = "it has its own tokenizer" if has_manifest else "--tokenizer FILE is needed for other Parquet files"
        raise ValueError(f"{prefix}: {MANIFEST} is {'there' if has_manifest else 'missing'}: {needs}")
    if tokenizer:
        known, made = _foreign(store, tokenizer, absent, target.rpartition("/")[2])
    else:
        of_documents = holds_export(store)
        known, made = _documents(store, read_export(store)[0]) if of_documents else _packed_rows(Corpus(store))
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


def _packed_rows(corpus: Corpus) -> tuple[Known, Made]:
    store, manifest = corpus.store, corpus.manifest
    if not manifest.has_tokens:
        raise NoTokens(store.root)
    if manifest.written.is_masked:
        raise ValueError(
            f"{store.root}: a corpus with loss masks, for which Megatron's files have no place; PackedStream reads its "
            "packed rows as they are"
        )
    if manifest.packed is None:
        raise ValueError(f"{store.root}: no packed rows there; its shards are .bin and .idx already")
    try:
        seed = int(manifest.recipe["shards"]["seed"])
    except (KeyError, TypeError, ValueError):
        raise FormatError(f"{store.root}: recipe.shards.seed expected, which decides the order of documents") from None
    own = manifest.tokenizer
    data = corpus.read(own.path)

    def made() -> Made:
        for shard in manifest.shards:
            place = shard.split, shard.domain, shard.index, shard.count
            yield place, partial(write_shard, store, manifest, shard, seed)

    return Known(own.path, data, own.bos_id, own.eos_id, manifest.name), made()


def _documents(store: Store, payload: Mapping[str, Any]) -> tuple[Known, Made]:
    fields, options, own = payload["fields"], payload["options"], payload["tokenizer"]
    if options.get("format") not in ("parquet", "huggingface") or "input_ids" not in fields:
        raise ValueError(f"{store.root}: an export to Parquet with the field input_ids is allowed")
    for file in payload["files"]:
        for failure in check_file(store, file_entry(file, MANIFEST)):
            raise FormatError(failure)
    dtype, vocab_size = np.dtype(payload["dtype"]), int(own["vocab_size"])

    def made() -> Made:
        for shard in payload["shards"]:
            place = shard["split"], shard["domain"], shard["index"], shard["count"]
            yield place, partial(_write_documents, store, shard, dtype, vocab_size)

    name = str(payload["corpus"]["name"])
    return Known(own["path"], store.read(own["path"]), own["bos_id"], own["eos_id"], name), made()


def _foreign(store: Store, tokenizer: str, absent: tuple[bool, bool], name: str) -> tuple[Known, Made]:
    """Files of documents that another tool wrote: nothing of them is known but what is in them."""
    data = read_resource(tokenizer)
    found = load_tokenizer_bytes(data, tokenizer)
    paths = [path for path in store.list() if path.endswith(".parquet")]
    if not paths:
        raise ValueError(f"{store.root}: no .parquet files there")

    def write(path: str, folder: Path) -> dict[str, Path]:
        with store.open(path) as stream, guarded_parquet(stream, store.url(path)) as file:
            return _convert(file, store.url(path), dtype_for(found.vocab_size), found.vocab_size, folder)

    def made() -> Made:
        for index, path in enumerate(paths):
            yield ("train", "corpus", index, len(paths)), partial(write, path)

    return Known(tokenizer, data, found.bos_id(), found.eos_id(), name, absent), made()


def _write_documents(
    store: Store, shard: Mapping[str, Any], dtype: np.dtype[Any], vocab_size: int, folder: Path
) -> dict[str, Path]:
    """A file of exported documents as bin, idx and provenance in `folder`."""
    entry = file_entry(shard["file"], MANIFEST)
    for failure in check_file(store, entry):
        raise FormatError(failure)
    url, expected = store.url(entry.path), shard["tokens_sha256"]
    with store.open(entry.path) as stream, guarded_parquet(stream, url) as file:
        paths = _convert(file, url, dtype, vocab_size, folder)
    if (found := checksums(paths["bin"]).sha256) != expected:
        raise FormatError(f"{url}: its tokens have sha256 {found}, {expected} expected from {MANIFEST}")
    return paths


def _convert(file: GuardedFile, url: str, dtype: np.dtype[Any], vocab_size: int, folder: Path) -> dict[str, Path]:
    """bin, idx and provenance of a file's documents. Raises FormatError for columns and ids that cannot be."""
    paths = {"bin": folder / "shard.bin", "idx": folder / "shard.idx", "origin": folder / "shard.parquet"}
    schema = file.schema_arrow
    kind = schema.field("input_ids").type if "input_ids" in schema.names else None
    if kind is None or not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        raise FormatError(f"{url}: column input_ids: {kind or 'nothing'} found, a list for each document expected")
    if "doc_ids" in schema.names:
        raise FormatError(
            f"{url}: packed rows without a manifest, so it is unknown whether documents that were cut are complete"
        )
    names = [name for name in ("id", "source") if name in schema.names and pa.types.is_string(schema.field(name).type)]
    offset = row = 0
    with (
        IndexedWriter(paths["bin"], dtype) as out,
        pq.ParquetWriter(paths["origin"], PROVENANCE, **PARQUET) as origin,
    ):
        for batch in file.iter_batches(BATCH_ROWS, columns=[*names, "input_ids"], use_threads=False):
            column = batch.column("input_ids")
            values = column.flatten()
            if column.null_count or values.null_count or not pa.types.is_integer(values.type):
                raise FormatError(f"{url}: input_ids of rows {row} to {row + len(batch) - 1}: nulls, or no integers")
            tokens = values.to_numpy(zero_copy_only=False)
            if len(tokens) and not 0 <= int(tokens.min()) <= int(tokens.max()) < vocab_size:
                where, ids = f"{row} to {row + len(batch) - 1}", f"{tokens.min()} to {tokens.max()}"
                raise FormatError(f"{url}: input_ids of rows {where}: {ids} found, 0 to {vocab_size - 1} expected")
            lengths = column.value_lengths().to_numpy(zero_copy_only=False)
            places = np.cumsum([0, *lengths.tolist()])
            for start, stop in zip(places[:-1].tolist(), places[1:].tolist(), strict=True):
                out.add(tokens[start:stop].astype(dtype))
            known = {name: batch.column(name).to_pylist() for name in names}
            table = {
                "id": [_id(id_) for id_ in known.get("id", [""] * len(batch))],
                "source": [source or "" for source in known.get("source", [""] * len(batch))],
                "token_offset": (offset + places[:-1]).astype(np.int64),
                "token_count": np.asarray(lengths, np.int64),
            }
            origin.write_table(pa.table(table, schema=PROVENANCE))
            offset, row = offset + int(places[-1]), row + len(batch)
    return paths


def _id(text: str | None) -> bytes:
    """Zeros for what is not an id of a document."""
    try:
        found = bytes.fromhex(text or "")
    except ValueError:
        return bytes(16)
    return found if len(found) == 16 else bytes(16)
