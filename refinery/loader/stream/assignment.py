"""For clusters without a coordinator: which shards a node trains on, and when it moves to the next one.

Volunteer machines join and leave at any time and may not communicate. Each computes the same assignment from names.
"""

import hashlib
import statistics
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from refinery.loader.arguments import number, whole

SHARDS = 10  # of a node that trains alone: its primary and the next nine


def _score(node: str, shard: str) -> bytes:
    """SHA-256 of both names, the first one length-prefixed, so ("a", "bc") and ("ab", "c") differ."""
    data = node.encode()
    return hashlib.sha256(len(data).to_bytes(4, "little") + data + shard.encode()).digest()


def ranked_nodes(shard: str, nodes: Iterable[str]) -> list[str]:
    """Nodes in order of priority for a shard, the owner first: rendezvous hashing (Thaler and Ravishankar 1996).

    Scores are SHA-256. When the owner leaves, the next node in the list takes the shard over, and no other shard moves.
    """
    return sorted(set(nodes), key=lambda node: (_score(node, shard), node), reverse=True)


def assign(shards: Sequence[str], nodes: Iterable[str], copies: int = 1) -> dict[str, list[str]]:
    """Shards of every node, in the order given; each shard goes to `copies` nodes.

    Independent of the order of `nodes`. A node that joins n others takes over about 1/(n + 1) of the shards, from all
    of them, and no other shard moves. Shares are random: with m shards per node they differ by about 1/sqrt(m). Raises
    ValueError for no nodes, copies out of 1 to the number of nodes, or a shard named twice. Cost: one SHA-256 per node
    and shard.
    """
    members = sorted(set(nodes))
    if not members:
        raise ValueError("nodes: none given, at least one is needed")
    if not 1 <= copies <= len(members):
        raise ValueError(f"copies: {copies} given, 1 to {len(members)} (the number of nodes) is allowed")
    if len(set(shards)) != len(shards):
        raise ValueError("shards: one is named twice")
    owned: dict[str, list[str]] = {node: [] for node in members}
    for shard in shards:
        for node in ranked_nodes(shard, members)[:copies]:
            owned[node].append(shard)
    return owned


def walk(shards: Sequence[str], node: str) -> list[str]:
    """All shards in the order for a node that does not know the others: a permutation that depends on its name.

    Nodes start at different shards and rarely train on the same one. For single nodes that rotate.
    """
    return sorted(shards, key=lambda shard: (_score(node, shard), shard))


@dataclass(frozen=True, slots=True)
class PlateauParams:
    """When to leave a shard before its end: its data is memorised. All conditions that are not None must hold.

    window: steps that are looked at.
    max_improvement: the mean loss of the window's second half is lower than that of the first by less than this. In
        units of the loss; a rising loss is not an improvement. Off by default: a healthy loss falls by less than the
        noise of its batches in most windows.
    max_variance: largest variance of the window's losses at which the shard is left.
    least_steps: minimum number of steps on a shard.
    max_loss: the mean loss of the window, in nats a token, is below this. Text that is new to a model stays far above
        0.05, so a lower mean says that the model has seen the data.

    Raises ValueError for numbers out of range, and where all three conditions are None.
    """

    window: int = 200
    max_improvement: float | None = None
    max_variance: float | None = 0.02
    least_steps: int = 0
    max_loss: float | None = 0.05

    def __post_init__(self) -> None:
        whole("window", self.window, 2)
        for name in ("max_improvement", "max_variance", "least_steps", "max_loss"):
            value = getattr(self, name)
            if value is not None:
                number(name, value, "0 or more", lambda least: least >= 0)
        if self.max_improvement is self.max_variance is self.max_loss is None:
            raise ValueError(
                "max_improvement, max_variance, max_loss: None given for all, which leaves every shard after a window; "
                "a number for at least one is allowed"
            )


class RotateOnPlateau:
    """Moves to the next of a list of shards, cyclically, when the losses say that the current one is memorised.

        rotation = RotateOnPlateau(walk(shards, node_id))
        for step in ...:
            if rotation.observe(loss):
                stream = open_stream(rotation.shard)

    Deterministic in the losses; `state_dict` is JSON-able and goes into the checkpoint (window losses included).
    """

    def __init__(self, shards: Sequence[str], params: PlateauParams = PlateauParams()) -> None:
        if not shards:
            raise ValueError("shards: none given, at least one is needed")
        self.shards = tuple(shards)
        self.params = params
        self._steps = 0
        self._rotations = 0
        self._losses: deque[float] = deque(maxlen=params.window)

    @property
    def shard(self) -> str:
        """The shard to train on now."""
        return self.shards[self._index]

    @property
    def _index(self) -> int:
        return self._rotations % len(self.shards)

    @property
    def rotations(self) -> int:
        """Number of moves so far. From len(shards) on, shards repeat."""
        return self._rotations

    def observe(self, loss: float) -> bool:
        """Record a step's loss; True if this was the shard's last step.

        Raises ValueError for a loss that is not finite. Cost: the mean of a window.
        """
        if not self.record(loss):
            return False
        self.advance()
        return True

    def record(self, loss: float) -> bool:
        """`observe` for callers that call `advance` themselves."""
        if loss != loss or loss in (float("inf"), float("-inf")):
            raise ValueError(f"loss: {loss} given, a finite number is allowed")
        self._losses.append(float(loss))
        self._steps += 1
        return self._is_due()

    def advance(self) -> None:
        """Move to the next shard at once: the current one is exhausted."""
        self._steps = 0
        self._losses = deque(maxlen=self.params.window)
        self._rotations += 1  # last, and at once: an interrupt before it leaves the shard as it is

    def _is_due(self) -> bool:
        params = self.params
        if len(self._losses) < params.window or self._steps < params.least_steps:
            return False
        losses = list(self._losses)
        if params.max_loss is not None and statistics.fmean(losses) >= params.max_loss:
            return False
        half = len(losses) // 2
        improvement = statistics.fmean(losses[:half]) - statistics.fmean(losses[half:])
        if params.max_improvement is not None and improvement >= params.max_improvement:
            return False
        return params.max_variance is None or statistics.pvariance(losses) <= params.max_variance

    def state_dict(self) -> dict[str, Any]:
        """JSON-able state: index, steps on the shard, rotations, and the losses of the window."""
        return {
            "shards": hashlib.sha256("\n".join(self.shards).encode()).hexdigest(),
            "index": self._index,
            "steps": self._steps,
            "rotations": self._rotations,
            "losses": list(self._losses),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state`. Raises ValueError if it is of another list of shards, does not fit the window or is no
        such state; nothing has changed then."""
        if not isinstance(state, Mapping) or state.get("shards") != self.state_dict()["shards"]:
            raise ValueError("shards: the state is of another list of shards, or of another order")
        losses = state.get("losses")
        if not isinstance(losses, (list, tuple)):
            raise ValueError(f"losses: {losses!r:.80} given, a list of numbers is allowed")
        if len(losses) > self.params.window:
            raise ValueError(f"window: {self.params.window} given, the state holds {len(losses)} losses")
        held = [number("losses", loss, "finite numbers", lambda _: True) for loss in losses]
        steps, rotations = (whole(name, state.get(name), 0) for name in ("steps", "rotations"))
        index = rotations % len(self.shards)
        whole("index", state.get("index"), index, index)
        self._steps, self._rotations, self._losses = steps, rotations, deque(held, maxlen=self.params.window)
