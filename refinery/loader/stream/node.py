"""Batches for a node that trains alone, on a few shards of its own: volunteers' machines that come and go.

A node's shards follow from its name and those of the shards, by hash: nobody hands them out, and no node knows another.
It trains on its primary shard first and moves on to the next of its list when that is exhausted, or when the losses say
that it is memorised. A shard that was left early goes on where it was left. Shards are read as any corpus is: over
https by range requests, verified, through a bounded cache.
"""

import hashlib
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

from refinery.loader.arguments import of_kind, whole
from refinery.loader.format.manifest import ShardEntry
from refinery.loader.order.arrays import TokenBatch
from refinery.loader.read.corpus import Corpus
from refinery.loader.read.remote.blocks import RemoteParams
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.remote_store import RemoteStore
from refinery.loader.stream.assignment import SHARDS, PlateauParams, RotateOnPlateau, walk
from refinery.loader.stream.state import StateError, check_identity, same
from refinery.loader.stream.stream import TokenStream

PLATEAU = PlateauParams(window=20)
# The default of versions before `max_loss`. Their states go on by it, and each visit of a shard begins at its start.
OLD_PLATEAU = MappingProxyType({"window": 20, "max_improvement": 0.05, "max_variance": 0.02, "least_steps": 0})


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
    workers. Of a shard every token is delivered once before one comes again, also where it is left early; then all of
    them in another order.

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
        self._given = plateau
        self._rule = None if plateau is None else asdict(plateau)  # as it is in states
        self._corpus = corpus.sha256
        self._options = {"split": split, "remote": remote, **options}
        self._rotation = RotateOnPlateau(names, plateau or PLATEAU)
        self._stream: TokenStream | None = self._open(names[0], 0)
        self._visit = 0  # rotations before the visit that `_stream` is of
        self._began = 0  # rotations before the visit in which that shard was begun
        self._left: dict[str, dict[str, Any]] = {}  # shards that were left early: `began`, and their stream's state

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
        """Record the loss of the last batch; True if the next batch is of the next shard, because this one is
        memorised. Raises ValueError for a loss that is not finite.
        """
        if self.plateau is None or not self._rotation.record(loss):
            return False
        following, stream, left = copy(self._rotation), self._current(), self._left
        following.advance()
        if stream is not None and stream.steps_left and not self._is_old:
            left = left | {self.shard: {"began": self._began, "stream": stream.state_dict()}}
        self._leave(following, None, following.rotations, left)
        return True

    def state_dict(self) -> dict[str, Any]:
        """JSON-able: which shard, where in it, and the losses since; a kilobyte, and 500 bytes for each shard that was
        left early. Goes into the checkpoint."""
        state = {
            "node": self.node,
            "corpus": self._corpus,
            "plateau": self._rule,
            "rotation": self._rotation.state_dict(),
            "stream": None if (stream := self._current()) is None else stream.state_dict(),
        }
        if self._is_old:
            return state
        began = self._rotation.rotations if stream is None else self._began
        return state | {"began": began, "left": dict(self._left)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on exactly where `state` was taken. Raises StateError for a state of another node, corpus or plateau, or
        with other options of the stream, which then is unchanged.

        A state of a version before `max_loss`, made by the rule given here or by the default of then (OLD_PLATEAU),
        goes on by its own rule, and so do the states that follow. Each visit of a shard then begins at its first batch.
        """
        if not isinstance(state, Mapping):
            raise StateError(f"state: {state!r:.80} given, a mapping from state_dict is allowed")
        rule, plateau = self._rule_of(state.get("plateau"))
        check_identity(state, {"node": self.node, "corpus": self._corpus, "plateau": rule}, self._store.root)
        rotation = RotateOnPlateau(self._rotation.shards, plateau or PLATEAU)
        try:
            rotation.load_state_dict(state["rotation"])
            inner = state["stream"]
            began = whole("began", state.get("began", rotation.rotations), 0, rotation.rotations)
            left = self._left_in(state.get("left", {}), rotation)
        except (KeyError, TypeError, ValueError) as error:
            raise StateError(f"state: {error}") from None
        for shard, place in left.items():  # a state that does not fit is refused now, not when its shard comes
            self._open(shard, place["began"], place["stream"]).close()
        stream = None if inner is None else self._open(rotation.shard, began, inner)
        self._rule, self.plateau = rule, plateau
        self._leave(rotation, stream, began, left)

    def _rule_of(self, made: Any) -> tuple[dict[str, Any] | None, PlateauParams | None]:
        """The rule of a state's, as it is in states and as parameters: its own if it is of a version before `max_loss`
        and stands for the one given here, otherwise the one given here."""
        given = None if self._given is None else asdict(self._given)
        if given is not None and isinstance(made, Mapping) and "max_loss" not in made:
            here = {name: value for name, value in given.items() if name != "max_loss"}
            if same(made, here) or (self._given == PLATEAU and same(made, dict(OLD_PLATEAU))):
                return dict(made), PlateauParams(**made, max_loss=None)
        return given, self._given

    @staticmethod
    def _left_in(left: Any, rotation: RotateOnPlateau) -> dict[str, dict[str, Any]]:
        """Shards that a state says were left early. Raises ValueError, TypeError or KeyError."""
        if not isinstance(left, Mapping) or not set(left) <= set(rotation.shards):
            raise ValueError(f"left: {left!r:.80} given, a mapping of this node's shards is allowed")
        places = {shard: (place["began"], dict(place["stream"])) for shard, place in left.items()}
        return {
            shard: {"began": whole("left", began, 0, rotation.rotations), "stream": stream}
            for shard, (began, stream) in places.items()
        }

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

    @property
    def _is_old(self) -> bool:
        """Whether this goes on from a state of a version before `max_loss`."""
        return self._rule is not None and "max_loss" not in self._rule

    def _enter(self) -> TokenStream:
        """The stream of this visit: from where its shard was left early, or from the shard's beginning."""
        rotation, left = self._rotation, dict(self._left)
        place = left.pop(rotation.shard, {"began": rotation.rotations, "stream": None})
        stream = self._open(rotation.shard, place["began"], place["stream"])
        self._leave(rotation, stream, place["began"], left)
        return stream

    def _leave(
        self, rotation: RotateOnPlateau, stream: TokenStream | None, began: int, left: dict[str, dict[str, Any]]
    ) -> None:
        """Go on with these; close what was open. Interrupted, the old or the new ones are there as a whole."""
        old = self._stream
        self._rotation, self._stream, self._visit, self._began, self._left = (
            rotation, stream, rotation.rotations, began, left,
        )  # fmt: skip
        if old is not None:
            old.close()

    def _open(self, shard: str, began: int, state: Mapping[str, Any] | None = None) -> TokenStream:
        """A shard in the order of the visit in which it was begun, from its beginning or from a state."""
        visit = hashlib.sha256(f"{self.seed} {began}".encode()).digest()
        seed = int.from_bytes(visit[:8], "little")
        stream = TokenStream(self._store, seed=seed, epochs=1, shards=[shard], **self._options)
        try:
            if state is not None:
                stream.load_state_dict(state)
        except BaseException:
            stream.close()
            raise
        return stream

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "NodeStream: cannot be pickled or copied; create one from the same arguments and load its state"
        )

    def __enter__(self) -> "NodeStream":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
