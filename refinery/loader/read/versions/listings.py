"""What the proofs and listings of takedowns say, which anybody may have written."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import Manifest, unseal
from refinery.loader.format.parquet.batches import bounded_parquet
from refinery.loader.format.takedown import Takedown
from refinery.loader.storage.store import Store

ID = re.compile("[0-9a-f]{32}")


def took_copies(store: Store, takedown: Takedown) -> bool:
    """Whether every document of the texts that went from the shards went, too (--copies remove): then their ids stand
    for all copies. Otherwise another record of the same text may stay, or come back."""
    options = _proof(store, takedown).get("options")
    return isinstance(options, dict) and options.get("copies") == "remove"


def dropped_later(store: Store, manifest: Manifest) -> set[bytes]:
    """Ids of documents that went, in whose place another record of the same text came, which a later stage dropped: as
    in a run, duplicates of it name an id that is nowhere."""
    found = set[bytes]()
    for takedown in manifest.takedowns:
        duplicates = _proof(store, takedown).get("duplicates")
        ids = duplicates.get("dropped_later") if isinstance(duplicates, dict) else None
        found |= {bytes.fromhex(id_) for id_ in ids or () if isinstance(id_, str) and ID.fullmatch(id_)}
    return found


def _proof(store: Store, takedown: Takedown) -> dict[str, Any]:
    """A proof, {} where it is not what it has to be, of which `check_proof` speaks."""
    try:
        proof = unseal(store.read(takedown.proof), takedown.proof)
    except (FormatError, OSError):
        return {}
    return proof if isinstance(proof, dict) else {}


def listed_rows(store: Store, path: str, schema: Any, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    """These columns of a listing, which anybody may have written. Raises FormatError for another schema, and as
    `bounded_parquet`, and is bounded as that."""
    with store.open(path) as stream, bounded_parquet(stream, path, columns) as (found, batches):
        if not found.equals(schema):
            raise FormatError(f"{path}: columns {found.names} found, {schema.names} expected")
        for batch in batches:
            yield from batch.to_pylist()
