"""Exports in the test's own process, and readers of the formats in this file's own words."""

import gzip
import io
import json
import pickle
import struct
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import zstandard

from refinery.loader.format.manifest import Manifest, read_manifest
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.corpus.export.export import export_corpus
from refinery.pipelines.corpus.export.options import ExportOptions
from refinery.pipelines.runners.runner import Runner


def export(
    corpus: Path,
    output: Path,
    format_: str,
    *,
    append: bool = False,
    rewrite: bool = False,
    runner: str = "local",
    say: Any = None,
    **options: Any,
) -> Any:
    """The manifest of an export that ran inside this process."""
    with Runner(runner, 0, quiet=True).open() as opened:
        made = ExportOptions(format_, **options)
        return export_corpus(corpus, output, made, opened, append, rewrite, say=say or (lambda line: None))


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# --- the corpus, from its own files -----------------------------------------------------------------------------------


def corpus_shards(corpus: Path) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """("train/web/00000", its documents) with the tokens as .bin has them, and all that provenance says."""
    manifest = read_manifest(open_store(corpus))
    for entry in sorted(manifest.shards, key=lambda shard: (shard.split, shard.domain, shard.index)):
        tokens = np.fromfile(corpus / entry.bin.path, manifest.dtype)
        documents = pq.read_table(corpus / entry.provenance.path).to_pylist()
        for document in documents:
            start = document.pop("token_offset")
            document["input_ids"] = tokens[start : start + document["token_count"]].tolist()
            document["domain"] = entry.domain
        yield f"{entry.split}/{entry.domain}/{entry.index:05d}", documents


def text_of(document: dict[str, Any]) -> str:
    """The text of a document of tests/corpus_factory.py: an id below 256 is a byte."""
    return bytes(id_ for id_ in document["input_ids"] if id_ < 256).decode()


def seed_of(manifest: Manifest) -> int:
    return int(manifest.recipe["shards"]["seed"])


# --- readers ----------------------------------------------------------------------------------------------------------


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    elif path.suffix == ".zst":
        data = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data), read_across_frames=True).read()
    return [json.loads(line) for line in data.split(b"\n")[:-1]]


def read_tar(path: Path) -> list[dict[str, Any]]:
    samples: dict[str, dict[str, Any]] = {}
    with tarfile.open(path) as archive:
        for member in archive.getmembers():
            assert (member.mtime, member.uid, member.uname) == (0, 0, "")
            key, _, kind = member.name.partition(".")
            content = archive.extractfile(member)
            assert content is not None
            samples.setdefault(key, {})[kind] = content.read()
    found = []
    for sample in samples.values():
        document = json.loads(sample.get("json", b"{}"))
        if "txt" in sample:
            document["text"] = sample["txt"].decode()
        if "input_ids.npy" in sample:
            document["input_ids"] = np.load(io.BytesIO(sample["input_ids.npy"])).tolist()
        found.append(document)
    return found


def read_mds(path: Path) -> list[dict[str, Any]]:
    """The layout as the library's documentation gives it, read with struct alone."""
    data = path.read_bytes()
    index = json.loads((path.parent / "index.json").read_bytes())
    (mine,) = [shard for shard in index["shards"] if shard["raw_data"]["basename"] == path.name]
    assert mine["raw_data"]["bytes"] == len(data) and mine["format"] == "mds"
    (count,) = struct.unpack_from("<I", data)
    offsets = struct.unpack_from(f"<{count + 1}I", data, 4)
    assert mine["samples"] == count and offsets[-1] == len(data)
    assert mine["column_names"] == sorted(mine["column_names"])
    found = []
    for start in offsets[:-1]:
        varying = mine["column_sizes"].count(None)
        sizes = list(struct.unpack_from(f"<{varying}I", data, start))
        at = start + 4 * varying
        document = {}
        for name, encoding, size in zip(
            mine["column_names"], mine["column_encodings"], mine["column_sizes"], strict=True
        ):
            length = size if size is not None else sizes.pop(0)
            document[name] = mds_value(encoding, data[at : at + length])
            at += length
        found.append(document)
    return found


def mds_value(encoding: str, data: bytes) -> Any:
    if encoding == "str":
        return data.decode()
    if encoding == "json":
        return json.loads(data)
    if encoding == "int":
        return struct.unpack("<q", data)[0]
    if encoding == "float64":
        value = struct.unpack("<d", data)[0]
        return None if value != value else value
    kind = encoding.removeprefix("ndarray:")
    assert data[0] >> 2 == 1  # dimensions
    width = 1 << (data[0] & 3)
    values = np.frombuffer(data[1 + width :], kind)
    assert int.from_bytes(data[1 : 1 + width], "little") == len(values)
    return values.tolist()


class TensorUnpickler(pickle.Unpickler):
    """What torch.load(weights_only=True) allows, and no more: names of tensors and storages."""

    def find_class(self, module: str, name: str) -> Any:
        return {
            ("torch._utils", "_rebuild_tensor_v2"): lambda *arguments: arguments,
            ("torch", "LongStorage"): "<i8",
            ("torch", "IntStorage"): "<i4",
            ("collections", "OrderedDict"): dict,
        }[module, name]

    def persistent_load(self, pid: Any) -> Any:
        return pid


def read_pt(path: Path) -> np.ndarray:
    """The tensor of a file of PyTorch."""
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        (root,) = {name.split("/")[0] for name in archive.namelist()}
        assert archive.read(f"{root}/byteorder") == b"little" and archive.read(f"{root}/version") == b"3\n"
        unpickler = TensorUnpickler(io.BytesIO(archive.read(f"{root}/data.pkl")))
        (kind, dtype, key, place, count), offset, shape, strides, grad, hooks = unpickler.load()
        assert (kind, place, offset, strides, grad, hooks) == ("storage", "cpu", 0, (1,), False, {})
        values = np.frombuffer(archive.read(f"{root}/data/{key}"), dtype)
    assert shape == (count,) == (len(values),)
    return values
