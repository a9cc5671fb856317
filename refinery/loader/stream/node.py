"""Batches for a node that trains alone, on a few shards of its own: volunteers' machines that come and go.

A node's shards follow from its name and those of the shards, by hash: nobody hands them out, and no node knows another.
It trains on its primary shard first and moves on to the next of its list when that is exhausted, or when the loss has
stopped improving. Shards are read as any corpus is: over https by range requests, verified, through a bounded cache.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn

from refinery.loader.arguments import of_kind, whole
from refinery.loader.format.manifest import ShardEntry
from refinery.loader.order.arrays import TokenBatch
from refinery.loader.read.corpus import Corpus
from refinery.loader.read.remote.blocks import RemoteParams
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.remote_store import RemoteStore
from refinery.loader.stream.assignment import SHARDS, PlateauParams, RotateOnPlateau, walk
from refinery.loader.stream.state import StateError, check_identity
from refinery.loader.stream.stream import TokenStream

PLATEAU = PlateauParams(window=20, max_improvement=0.05, max_variance=0.02)


def node_shards(names: Iterable[str], node: str, count: int = SHARDS) -> list[str]:
    """The shards of a node, its primary first: the `count` that come first in the order that its name gives them.

    Fewer where there are fewer. A shard that is added later takes the place of at most one of them. Raises ValueError
    for an empty name of a node or a count below 1. Cost: one SHA-256 per shard.
    """
    if not isinstance(node, str) or not node:
        raise ValueError(f"node: {node!r:.80} given, any text but an empty one is allowed")
    return walk(sorted(names), node)[: whole("count", count, 1)]


class NodeStream:
    """Batches of one node, endless or for `rounds` rounds of its shards:

        stream = NodeStream("https://host/corpus", node="anna", sequence_length=512, batch_size=8)
        for batch in stream:
            stream.observe(train(batch))

    node: its name, the same after every restart. count: how many shards it has. plateau: when a shard is left before
    its end; None for never. rounds: after so many rounds of its shards the stream ends. remote: how shards are read,
    such as the cache's folder and bound. Other options are those of TokenStream except epochs, shards, rank and
    workers. Of a shard every token is delivered once, in another order in every round.

    Raises ValueError for invalid arguments and a split without tokens, and what TokenStream raises. Use it as a context
    manager, or `close` it.
    """

    def __init__(
        self,
        prefix: str | Path,
        node: str,
        *,
        count: int = SHARDS,
        plateau: PlateauParams | None = PLATEAU,
        rounds: int | None = None,
        split: str = "train",
        seed: int = 1,
        remote: RemoteParams | None = None,
        **options: Any,
    ) -> None:
        rounds = None if rounds is None else whole("rounds", rounds, 1)
        of_kind("plateau", plateau, PlateauParams)
        for name in ("epochs", "shards", "rank", "world_size", "worker", "workers", "weights"):
            if name in options:
                raise ValueError(f"{name}: given, a node has its own shards and streams each of them once a round")
        self._store = open_store(prefix)
        if isinstance(self._store, RemoteStore) and remote is not None:
            self._store.params = remote.fetch
        corpus = Corpus(self._store)
        entries = [entry for entry in corpus.manifest.shards if entry.split == split and entry.tokens]
        if not entries:
            raise ValueError(f"split: {split!r} given, which has no tokens")
        names = node_shards((entry.bin.path for entry in entries), node, count)
        known = {entry.bin.path: entry for entry in entries}
        self.shards: tuple[ShardEntry, ...] = tuple(known[name] for name in names)
        self.node, self.seed, self.rounds, self.plateau = node, seed, rounds, plateau
        self._corpus = corpus.sha256
        self._options = {"split": split, "remote": remote, **options}
        self._rotation = RotateOnPlateau(names, plateau or PLATEAU)
        self._stream: TokenStream | None = self._open(self._rotation)
        self._visit = 0  # rotations before the visit that `_stream` is of

    @property
    def shard(self) -> str:
        """The .bin of the shard that is trained on now."""
        return self._rotation.shard

    @property
    def rotations(self) -> int:
        """Shards that were left so far."""
        return self._rotation.rotations

    def __iter__(self) -> "NodeStream":
        return self

    def __next__(self) -> TokenBatch:
        while not self._is_over():
            try:
                return next(self._current() or self._enter())
            except StopIteration:
                self._rotation.advance()  # and nothing else here that an interrupt could come after
        raise StopIteration

    def observe(self, loss: float) -> bool:
        """Record the loss of the last batch; True if the next batch is of the next shard, because it has stopped
        improving. Raises ValueError for a loss that is not finite.
        """
        if self.plateau is None or not self._rotation.observe(loss):
            return False
        self._leave(self._rotation)
        return True

    def state_dict(self) -> dict[str, Any]:
        """JSON-able: which shard, where in it, and the losses since; a kilobyte. Goes into the checkpoint."""
        return {
            "node": self.node,
            "corpus": self._corpus,
            "plateau": None if self.plateau is None else asdict(self.plateau),
            "rotation": self._rotation.state_dict(),
            "stream": None if (stream := self._current()) is None else stream.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on exactly where `state` was taken. Raises StateError for a state of another node, corpus or plateau, or
        with other options of the stream, which then is unchanged.
        """
        if not isinstance(state, Mapping):
            raise StateError(f"state: {state!r:.80} given, a mapping from state_dict is allowed")
        own = {name: here for name, here in self.state_dict().items() if name not in ("rotation", "stream")}
        check_identity(state, own, self._store.root)
        rotation = RotateOnPlateau(self._rotation.shards, self._rotation.params)
        try:
            rotation.load_state_dict(state["rotation"])
            inner = state["stream"]
        except (KeyError, TypeError, ValueError) as error:
            raise StateError(f"state: {error}") from None
        stream = None
        if inner is not None:
            stream = self._open(rotation)
            try:
                stream.load_state_dict(inner)
            except BaseException:
                stream.close()
                raise
        self._leave(rotation, stream)

    def close(self) -> None:
        """Stop the threads and close files. `state_dict` still works."""
        if self._stream is not None:
            self._stream.close()
        self._store.close()

    def _is_over(self) -> bool:
        return self.rounds is not None and self._rotation.rotations >= self.rounds * len(self.shards)

    def _current(self) -> TokenStream | None:
        """The stream of this visit, if it was opened."""
        return self._stream if self._visit == self._rotation.rotations else None

    def _enter(self) -> TokenStream:
        """The stream of this visit, from its beginning."""
        stream = self._open(self._rotation)
        self._leave(self._rotation, stream)
        return stream

    def _leave(self, rotation: RotateOnPlateau, stream: TokenStream | None = None) -> None:
        """Go on with `rotation` and `stream`; close what was open. Interrupted, one of both is there as a whole."""
        left = self._stream
        self._rotation, self._stream, self._visit = rotation, stream, rotation.rotations
        if left is not None:
            left.close()

    def _open(self, rotation: RotateOnPlateau) -> TokenStream:
        """The current shard from its beginning, in the order of this visit."""
        visit = hashlib.sha256(f"{self.seed} {rotation.rotations}".encode()).digest()
        seed = int.from_bytes(visit[:8], "little")
        return TokenStream(self._store, seed=seed, epochs=1, shards=[rotation.shard], **self._options)

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "NodeStream: cannot be pickled or copied; create one from the same arguments and load its state"
        )

    def __enter__(self) -> "NodeStream":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
