"""Publishing a corpus' manifest: its listings first, manifest.json last, once readers accept both.

Jobs report shards and files as version 1 listed them in manifest.json: {"split", "domain", "index", "count",
"documents", "tokens", "files": {"bin": FILE, "idx": FILE, "provenance": FILE}, "packed": [FILE]}, FILE being {"path",
"size", "crc32c", "sha256", "block_crc32c", "rows", "documents", "tokens"} with what a file has of them. A shard of
texts has no "tokens"; it has "kinds", those of its "files" in order.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from refinery.loader.format.entries import FileEntry, ShardEntry, file_entry, parse_shard
from refinery.loader.format.fields import Fields
from refinery.loader.format.listed import list_files, shard_table
from refinery.loader.format.manifest import LISTED, MANIFEST, Manifest, load_manifest, parse_manifest
from refinery.loader.format.sealed import seal, unseal
from refinery.loader.format.shard_list import HeldListings
from refinery.loader.format.written import WrittenFiles
from refinery.loader.storage.store import Store


@dataclass(frozen=True)
class MadeManifest:
    """A manifest that is not published yet: as readers will see it, its sealed bytes, and its listings by path."""

    manifest: Manifest
    sealed: bytes
    listings: Mapping[str, bytes]

    def publish(self, store: Store) -> None:
        """Write all of it, manifest.json last. What is there already with the same bytes stays."""
        for path, data in self.listings.items():
            store.create(path, data)
        store.create(MANIFEST, self.sealed)


def make_manifest(payload: Mapping[str, Any], what: str = MANIFEST) -> MadeManifest:
    """The manifest of a corpus. payload: its fields, with `shards` and `files` as jobs report them; many shards as the
    columns of `shard_table`.

    Raises FormatError or ValueError for what readers will not accept.
    """
    sealed, listings = seal_listed(payload)
    manifest = parse_manifest(sealed, what, HeldListings(listings))
    manifest.load()
    return MadeManifest(manifest, sealed, listings)


def seal_listed(payload: Mapping[str, Any]) -> tuple[bytes, Mapping[str, bytes]]:
    """The sealed bytes of manifest.json and its listings, unchecked."""
    shards = payload["shards"]
    listed = list_files(shards if isinstance(shards, pa.Table) else shard_table(shards), payload["files"])
    head = {name: value for name, value in payload.items() if name not in ("shards", "files")}
    return seal({**head, "schema_version": LISTED, **listed.fields}), listed.listings


def whole_payload(store: Store) -> dict[str, Any]:
    """The fields of a published manifest, with `shards` and `files` as jobs report them. Memory: some 5 KB a shard."""
    manifest, data = load_manifest(store)
    payload = unseal(data, store.url(MANIFEST))
    payload.pop("domains", None)
    return payload | {
        "shards": [describe_shard(shard, manifest.written) for shard in manifest.shards],
        "files": [describe_file(file) for file in manifest.files],
    }


def describe_file(file: FileEntry, blocked: bool = False) -> dict[str, Any]:
    """A file as jobs report it. blocked: of a kind that is read block by block."""
    names = ("path", "size", "crc32c", "sha256", "rows", "documents", "tokens")
    found = {name: getattr(file, name) for name in names if getattr(file, name) is not None}
    return {**found, "block_crc32c": file.block_crc32c} if file.block_crc32c or blocked else found


PLACED = ("split", "domain", "index", "count", "documents")


def describe_shard(shard: ShardEntry, written: WrittenFiles) -> dict[str, Any]:
    """A shard as the job that wrote it reports it. written: of its corpus."""
    files = zip(written.kinds, shard.files, strict=True)
    found = {name: getattr(shard, name) for name in PLACED}
    found["files"] = {kind: describe_file(file, blocked=kind == "bin") for kind, file in files}
    found |= {"tokens": shard.tokens} if written.has_tokens else {"kinds": written.kinds}
    return found | {"packed": [describe_file(file, blocked=True) for file in shard.packed]} if shard.packed else found


def reported_shard(shard: Mapping[str, Any], written: WrittenFiles) -> ShardEntry:
    """The inverse of `describe_shard`. Raises FormatError for a field that is missing or wrong."""
    fields = Fields(dict(shard), "shard")
    if written.has_tokens:
        return parse_shard(fields, "")
    files = fields.inner("files")
    found = [file_entry(files.inner(kind)) for kind in written.kinds]
    split, domain = (fields.text(name) for name in PLACED[:2])
    index, count, documents = (fields.count(name) for name in PLACED[2:])
    return ShardEntry(split, domain, index, count, documents, None, tuple(found[: len(written.own)]), found[-1])
