"""checkpoint.json of a token export: which corpus is being written, and what was planned for it.

It is replaced at each step, while manifest.json describes only the last finished state, so readers of the manifest
never see a corpus that is half there, and a command that was cut off finds here where it was.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import SCHEMA_VERSION, seal, unseal
from refinery.loader.storage.store import Store

CHECKPOINT = "checkpoint.json"
KIND = "refinery-export-checkpoint"
STATES = ("counting", "writing", "complete")


@dataclass(frozen=True)
class SplitPlan:
    """A split of the corpus that is being written. regions: equal parts of the global order, the unit of the work.
    shards: complete ones before it. leftover: tokens that wait, with the file that holds them ("" for none).
    tokens: new ones by region, once they are counted.
    """

    split: str
    regions: int
    shards: int
    leftover: int
    leftover_file: str
    tokens: tuple[int, ...] = ()


@dataclass(frozen=True)
class Checkpoint:
    """state: of STATES. sequence: number of the corpus, from 0. corpus: name, fingerprint, sha256 of its manifest."""

    state: str
    sequence: int
    corpus: Mapping[str, Any]
    splits: tuple[SplitPlan, ...]


def write_checkpoint(store: Store, checkpoint: Checkpoint) -> None:
    """Replace the checkpoint atomically."""
    store.replace(CHECKPOINT, seal({"schema_version": SCHEMA_VERSION, "kind": KIND, **asdict(checkpoint)}))


def read_checkpoint(store: Store) -> Checkpoint | None:
    """The checkpoint, None if there is none. Raises FormatError for a damaged one."""
    if store.size(CHECKPOINT) is None:
        return None
    payload = unseal(store.read(CHECKPOINT), store.url(CHECKPOINT))
    try:
        splits = tuple(SplitPlan(**{**split, "tokens": tuple(split["tokens"])}) for split in payload["splits"])
        found = Checkpoint(payload["state"], payload["sequence"], payload["corpus"], splits)
    except (KeyError, TypeError) as error:
        raise FormatError(f"{store.url(CHECKPOINT)}: {error} is not as expected") from None
    if payload.get("kind") != KIND or found.state not in STATES:
        raise FormatError(f"{store.url(CHECKPOINT)}: state {found.state!r} found, one of {', '.join(STATES)} expected")
    return found
