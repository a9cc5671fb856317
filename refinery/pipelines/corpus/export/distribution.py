"""`refinery shards`: which shards of a corpus or of a token export a node trains on, and these files on its disk.

Needs no Beam: volunteers' nodes install the loader alone.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from refinery.loader.errors import FormatError
from refinery.loader.format.fields import Fields
from refinery.loader.format.manifest import FileEntry
from refinery.loader.read.corpus import Corpus
from refinery.loader.read.remote.fetch_files import fetch_files
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import Store
from refinery.loader.stream.assignment import SHARDS
from refinery.loader.stream.node import node_shards
from refinery.pipelines.corpus.export.export_format import TOKENS
from refinery.pipelines.corpus.export.export_manifest import holds_export, manifest_name, read_export
from refinery.transforms.core.safe_text import safe


@dataclass(frozen=True)
class NodeShard:
    """A shard of a node. rank: 0 is its primary."""

    rank: int
    url: str
    tokens: int
    file: FileEntry


def shards_of_node(location: str, node: str, count: int = SHARDS, split: str = "train") -> list[NodeShard]:
    """The shards of a node, in the order in which it trains on them. location: a corpus or a token export: a folder,
    gs://, s3:// or https://.

    Raises FormatError for anything else, ValueError for a split without shards, and as the store does.
    """
    store = open_store(location)
    found = dict(_token_files(store, split))
    if not found:
        raise ValueError(f"--split: {split!r} given, which has no shards in {location}")
    names = node_shards(found, node, count)
    return [NodeShard(rank, store.url(name), found[name][1], found[name][0]) for rank, name in enumerate(names)]


def _token_files(store: Store, split: str) -> Iterator[tuple[str, tuple[FileEntry, int]]]:
    """(name, (file, tokens)) of the shards of a split."""
    if not holds_export(store):
        for shard in Corpus(store).entries(split):
            if shard.tokens:
                yield shard.bin.path, (shard.bin, shard.tokens)
        return
    top = Fields(read_export(store)[0], store.url(manifest_name(store)))
    if top.inner("options").text("format") != TOKENS:
        raise FormatError(f"{store.root}: an export of documents; nodes train on a corpus or on an export to torch")
    for fields in top.list("shards"):
        if fields.text("split") == split:
            file = fields.inner("file")
            entry = FileEntry(
                file.path("path"), file.count("size"), file.checksum("crc32c", 8), file.checksum("sha256", 64)
            )
            yield entry.path, (entry, fields.count("tokens"))


def withdrawn(store: Store) -> list[str]:
    """Names of the files that a token export had, and has no more: what nodes and caches have of them is to go."""
    if not holds_export(store):
        return []
    top = Fields(read_export(store)[0], store.url(manifest_name(store)))
    return [fields.path("path") for fields in top.list("withdrawn")] if "withdrawn" in top.value else []


def fetch_shards(location: str, shards: list[NodeShard], folder: str, say: Callable[[str], None]) -> list[Path]:
    """These shards' files below a folder, verified; what is there already is not fetched again. Files that a takedown
    withdrew from the export are removed from the folder first."""
    for path in withdrawn(open_store(location)):
        if (Path(folder) / path).is_file():
            (Path(folder) / path).unlink()
            say(f"{Path(folder) / path} was withdrawn from the export, and is removed")
    return fetch_files(open_store(location), [shard.file for shard in shards], Path(folder), say)


def text_lines(shards: list[NodeShard]) -> Iterator[str]:
    """For the terminal."""
    for shard in shards:
        role = "primary" if shard.rank == 0 else f"next {shard.rank}"
        yield f"{role:<8} {safe(shard.url)}  {shard.tokens:,} tokens, {shard.file.size:,} bytes"


def json_lines(shards: list[NodeShard]) -> Iterator[str]:
    """One JSON object per shard."""
    for shard in shards:
        file = {"path": shard.file.path, "size": shard.file.size, "sha256": shard.file.sha256}
        yield json.dumps({"rank": shard.rank, "url": shard.url, "tokens": shard.tokens, **file}, sort_keys=True)
