"""inputs.json: the checksum of each input file as the run read it, which nobody knew before.

Beside `_run.json`, which is written before anything is read and holds what was known then. Without Beam.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import SCHEMA_VERSION, check_version, seal, unseal

INPUTS = "inputs.json"
KIND = "refinery-inputs"
KEY = "inputs"  # of phase 1's report
FIELDS = {"source": str, "path": str, "size": int, "crc32c": str}

# A local file up to this size is hashed whole when a run is planned; a larger one by this many bytes spread over it.
HASHED_BYTES = 64 << 20

_CRC32C = re.compile(r"[0-9a-f]{8}")


def known_crc32c(entry: Mapping[str, Any]) -> str:
    """The CRC-32C of a whole input that its entry in `_run.json` has; "" for digests that are something else: of a
    sample of a large file, an ETag, a hash."""
    path, digest = str(entry["path"]), str(entry["digest"])
    is_whole = path.startswith("gs://") or ("://" not in path and entry["size"] <= HASHED_BYTES)
    return digest if is_whole and _CRC32C.fullmatch(digest) else ""


def dump_inputs(inputs: Iterable[Mapping[str, Any]]) -> bytes:
    """The file's bytes."""
    return seal({"schema_version": SCHEMA_VERSION, "kind": KIND, "inputs": [dict(entry) for entry in inputs]})


def parse_inputs(data: bytes, what: str) -> list[dict[str, Any]]:
    """What `dump_inputs` wrote: {"source", "path", "size", "crc32c"} by source and path; "" where there is no checksum.
    Raises FormatError, naming `what`."""
    payload = unseal(data, what)
    check_version(payload, what)
    inputs = payload.get("inputs")
    if payload.get("kind") != KIND or not isinstance(inputs, list):
        raise FormatError(f"{what}: kind {payload.get('kind')!r:.80} with a list of inputs found, {KIND!r} expected")
    for entry in inputs:
        if not isinstance(entry, dict) or {name: type(value) for name, value in entry.items()} != FIELDS:
            raise FormatError(f"{what}: an input is {entry!r:.200}, the fields {', '.join(FIELDS)} are expected")
        if entry["crc32c"] and not _CRC32C.fullmatch(entry["crc32c"]):
            raise FormatError(f"{what}: crc32c {entry['crc32c']!r:.80} found, 8 hexadecimal digits or none expected")
    return inputs


def compare_inputs(inputs: Iterable[Mapping[str, Any]], recorded: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    """What of inputs.json does not fit the inputs of `_run.json`."""
    read = {(entry["source"], entry["path"], entry["size"]): entry["crc32c"] for entry in inputs}
    planned = {(entry["source"], entry["path"], entry["size"]): known_crc32c(entry) for entry in recorded}
    for source, path, size in sorted(read.keys() ^ planned.keys()):
        where = "not in _run.json" if (source, path, size) in read else "missing"
        yield f"{INPUTS}: {path!r:.300} of source {source!r:.80} with {size} bytes is {where}"
    for key in sorted(read.keys() & planned.keys()):
        if read[key] and planned[key] and read[key] != planned[key]:
            yield f"{INPUTS}: {key[1]!r:.300}: crc32c {read[key]} found, {planned[key]} expected from _run.json"
