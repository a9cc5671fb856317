"""Checks of a token export: every shard has its number of tokens and the next number, and the provenance fits them."""

from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import MANIFEST
from refinery.loader.format.parquet.batches import bounded_table
from refinery.loader.storage.store import Store
from refinery.pipelines.corpus.export.regions import PROVENANCE
from refinery.pipelines.corpus.export.rewrite import merged
from refinery.pipelines.corpus.export.torch_file import read_torch_file

NONE = {"documents": 0, "tokens": 0}
COUNTS = ("documents", "tokens", "bytes")
Positions = npt.NDArray[np.int64]


def check_token_shards(store: Store, manifest: Mapping[str, Any], damaged: set[str]) -> Iterator[str]:
    """Failures of a token export, files in `damaged` left out. Memory: a shard, and 16 bytes a document of a split."""
    size = manifest["options"]["shard_tokens"]
    splits = sorted({part["split"] for name in ("shards", "provenance") for part in manifest[name]})
    sources: dict[str, dict[str, int]] = {}
    for split in splits:
        shards = [shard for shard in manifest["shards"] if shard["split"] == split]
        if [shard["index"] for shard in shards] != list(range(len(shards))):
            yield f"{MANIFEST}: the shards of {split} are not numbered from 0"
        leftover = [part for part in manifest["leftover"] if part["split"] == split]
        if len(leftover) > 1 or any(not 0 < part["tokens"] < size for part in leftover):
            yield f"{MANIFEST}: leftover of {split}: one file of less than {size} tokens expected"
        yield from _check_sources([*shards, *leftover])
        starts, ends, gaps = yield from _check_provenance(store, manifest, split, damaged, sources)
        for number, part in enumerate([*shards, *leftover]):
            expected = size if number < len(shards) else part["tokens"]
            if part["file"]["path"] not in damaged:
                yield from _check_shard(store, manifest, part, expected, number * size, starts, ends)
                yield from _check_removed(part, expected, number * size, *gaps)
    if manifest["sources"] != dict(sorted(sources.items())) and not damaged:
        yield f"{MANIFEST}: sources: {manifest['sources']} found, {sources} expected from provenance/"
    for name in COUNTS:
        expected = sum(counts[name] for counts in manifest["sources"].values())
        if manifest["totals"][name] != expected:
            yield f"{MANIFEST}: totals.{name} is {manifest['totals'][name]}, {expected} expected from its sources"
    documents = sum(corpus["documents"] for corpus in manifest["corpora"]) - manifest.get("removed", NONE)["documents"]
    if manifest["totals"]["documents"] != documents:
        yield f"{MANIFEST}: totals.documents is {manifest['totals']['documents']}, its corpora have {documents}"


def _check_sources(parts: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for part in parts:
        gone = sum(stop - start for start, stop in part.get("removed", ()))
        if (found := sum(part["sources"].values()) + gone) != part["tokens"]:
            yield f"{part['file']['path']}: its sources have {found} tokens, {part['tokens']} expected"


def _check_provenance(
    store: Store, manifest: Mapping[str, Any], split: str, damaged: set[str], sources: dict[str, dict[str, int]]
) -> Generator[str, None, tuple[Positions, Positions, tuple[Positions, Positions]]]:
    """Failures; the value is the position of the first and of the last token of each document of the split, and where
    the places begin and end (the token behind the last) that no document has any more."""
    none = np.empty(0, np.int64)
    gaps: list[tuple[Positions, Positions]] = []
    starts: list[Positions] = []
    ends: list[Positions] = []
    position = 0
    parts = [part for part in manifest["provenance"] if part["split"] == split]
    order = sorted(parts, key=lambda part: (part["sequence"], part["region"]))
    if order != parts or len({(part["sequence"], part["region"]) for part in parts}) != len(parts):
        yield f"{MANIFEST}: the provenance of {split} is out of order"
    for part in parts:
        path = part["file"]["path"]
        if path in damaged:
            return none, none, (none, none)
        with store.open(path) as stream:
            table = bounded_table(stream, store.url(path))
        if not table.schema.equals(PROVENANCE) or table.num_rows != part["rows"]:
            raise FormatError(f"{path}: its columns or its number of rows are not as expected")
        counts, found = table["tokens"].to_numpy(), table["position"].to_numpy()
        expected = position + np.cumsum(counts) - counts
        if not np.array_equal(found, expected):
            row = int(np.argmax(found != expected))
            yield f"{path}: document {row} is at {found[row]}, {expected[row]} expected"
        position += int(counts.sum())
        nobody = np.array([source == "" for source in table["source"].to_pylist()], np.bool_)
        starts.append(found[(counts > 0) & ~nobody])
        ends.append((found + counts - 1)[(counts > 0) & ~nobody])
        gone = (counts > 0) & nobody
        gaps.append((found[gone], (found + counts)[gone]))
        for source, tokens, size in zip(
            table["source"].to_pylist(), counts.tolist(), table["text_bytes"].to_pylist(), strict=True
        ):
            if not source:
                continue
            entry = sources.setdefault(source, dict.fromkeys(COUNTS, 0))
            for name, value in zip(COUNTS, (1, tokens, size), strict=True):
                entry[name] += value
    held = sum(part["tokens"] for name in ("shards", "leftover") for part in manifest[name] if part["split"] == split)
    if held != position:
        yield f"{MANIFEST}: {held} tokens in the shards of {split} and its leftover, {position} in provenance/"
    first, behind = (np.concatenate([none, *(pair[at] for pair in gaps)]) for at in (0, 1))
    return np.concatenate([none, *starts]), np.concatenate([none, *ends]), (first, behind)


def _check_removed(
    part: Mapping[str, Any], tokens: int, position: int, first: Positions, behind: Positions
) -> Iterator[str]:
    """Failures of what is said to be removed from a shard, from where no document has places. position: of its first
    token; first, behind: of all these places."""
    low, high = np.searchsorted(behind, position, "right"), np.searchsorted(first, position + tokens)
    places = np.stack([first[low:high], behind[low:high]], axis=1) - position
    expected = merged(np.clip(places, 0, tokens).tolist())
    if (found := part.get("removed", [])) != expected:
        yield f"{part['file']['path']}: removed: {str(found)[:200]} found, {str(expected)[:200]} expected"


def _check_shard(
    store: Store,
    manifest: Mapping[str, Any],
    part: Mapping[str, Any],
    expected: int,
    position: int,
    starts: Positions,
    ends: Positions,
) -> Iterator[str]:
    """Failures of a shard whose first token is at `position`: its format, its ids, BOS and EOS where they belong."""
    path, tokenizer = part["file"]["path"], manifest["tokenizer"]
    with store.open(path) as stream:
        found = read_torch_file(stream, path)
        stream.seek(found.offset)
        data = stream.read(found.tokens * np.dtype(found.dtype).itemsize)
    if (found.tokens, found.dtype, found.offset) != (expected, manifest["options"]["dtype"], part["data_offset"]):
        yield (
            f"{path}: {found.tokens} tokens of {found.dtype} from byte {found.offset} found, {expected} of "
            f"{manifest['options']['dtype']} from byte {part['data_offset']} expected"
        )
        return
    tokens = np.frombuffer(data, found.dtype)
    if len(tokens) and not 0 <= int(tokens.min()) <= int(tokens.max()) < tokenizer["vocab_size"]:
        yield f"{path}: ids from {tokens.min()} to {tokens.max()} found, less than {tokenizer['vocab_size']} expected"
    fill = next((id_ for name in ("eos_id", "bos_id") if (id_ := tokenizer[name]) is not None), 0)
    for start, stop in part.get("removed", ()):
        if (tokens[start:stop] != fill).any():
            yield f"{path}: tokens from {start} to {stop} are not {fill}, though the documents there were removed"
    for name, wanted, places in (("bos_id", tokenizer["bos_id"], starts), ("eos_id", tokenizer["eos_id"], ends)):
        low, high = np.searchsorted(places, (position, position + len(tokens)))
        at = places[low:high] - position
        if wanted is not None and (wrong := np.flatnonzero(tokens[at] != wanted)).size:
            yield f"{path}: {tokens[at[wrong[0]]]} at token {at[wrong[0]]}, the {name} {wanted} expected by provenance/"
