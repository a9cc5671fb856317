"""Validation of a stream's state, which is plain JSON, and the versions of the code that wrote it."""

import json
import zlib
from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import Any

from refinery import DISTRIBUTION
from refinery.loader.order.order import ORDER_VERSION
from refinery.loader.read.samples import Domain
from refinery.loader.source_digest import loader_build

STATE_VERSION = 1
RECEIPT_VERSION = 2  # those of version 1 have no `schema_version`; keys are added, none changes its meaning


class StateError(ValueError):
    """A state does not belong to this stream: other corpus, seed, sequence length, order or past mixture.

    The message names what differs.
    """


def same(given: Any, here: Any) -> bool:
    """Whether they are equal; what cannot say so, as an array of several numbers, is not."""
    try:
        return bool(given == here)
    except (TypeError, ValueError, RecursionError):
        return False


CONTINUE = (
    "open the earlier stream as it was, `old.load_state_dict(state)`, then `stream.continue_from(old)`: it delivers "
    "what is left of the epoch, then whole epochs"
)


def check_identity(state: Mapping[str, Any], identity: Mapping[str, Any], corpus: str = "") -> None:
    """Raise StateError unless `state` is a mapping that contains all items of `identity`. corpus: what this stream
    reads, in words."""
    if not isinstance(state, Mapping):
        raise StateError(f"state: {state!r:.80} given, a mapping from state_dict is allowed")
    for name, here in identity.items():
        given = state.get(name)
        if same(given, here):
            continue
        if name == "corpus" and corpus:
            raise StateError(
                f"state: corpus with another manifest given, this stream has {corpus}. Open it with the corpus of the "
                f"state, or a version of that after a takedown; or, to finish the epoch here, {CONTINUE}"
            )
        if name == "shards":
            both = ["all shards" if which is None else "chosen shards" for which in (given, here)]
            raise StateError(f"state: of {both[0]}, this stream reads {both[1]}, which are others")
        raise StateError(f"state: {name} {given!r:.200} given, this stream has {here!r}")


def with_block(state: Mapping[str, Any], block: int | None, domains: Sequence[Domain]) -> Mapping[str, Any]:
    """The state with the stream's own `block` of its order, if both mean the same: None is the `block` of each domain.

    So a state of a small corpus, with blocks of one sample, goes on from a remote copy and from a local one. Raises
    StateError, which says how to go on, if they are two orders.
    """
    order = state.get("order") if isinstance(state, Mapping) else None
    given = order.get("block", 0) if isinstance(order, Mapping) else 0
    if not isinstance(order, Mapping) or not (given is None or (type(given) is int and given > 0)) or given == block:
        return state
    usual = [domain.block for domain in domains if domain.samples]
    if any((given or each) != (block or each) for each in usual):
        raise StateError(
            f"state: of an order with blocks of {given or 'many'} samples, this stream has {block or 'many'}; open it "
            f"with OrderParams(block={given or 0}) to go on in the order of the state"
        )
    return {**state, "order": {**order, "block": block}}


def count_in(state: Mapping[str, Any], name: str) -> int:
    """A number from 0 to 2^62. Raises StateError."""
    value = state.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**62:
        raise StateError(f"state: {name} {value!r:.80} given, a number of 0 or more is allowed")
    return value


def place_in(state: Mapping[str, Any], schedule: Any, loop: Any) -> tuple[int, int]:
    """Epoch and position of the state. Raises StateError where this schedule and loop have no such place, or the
    mixture up to there was another one."""
    epoch, position = count_in(state, "epoch"), count_in(state, "position")
    most = 0 if schedule.mixture is not None else 2**62 // (schedule.length or 1)
    if epoch > most:
        raise StateError(f"state: epoch {epoch} given, 0 to {most} is allowed")
    length = schedule.length_of(epoch)
    if length is not None and position > length:
        raise StateError(f"state: position {position} given, 0 to {length} is allowed; this stream ends there")
    if loop.is_beyond(epoch, position):
        raise StateError(
            f"state: epoch {epoch}, position {position} given, but this stream ends after {loop.epochs} epochs; open "
            "it with more epochs to continue"
        )
    mix = None if schedule.mixture is None else schedule.mixture.history(position)
    if not same(state.get("mix"), mix):
        raise StateError(_other_weights(state.get("mix"), schedule, position))
    return epoch, position


def _other_weights(given: Any, schedule: Any, position: int) -> str:
    """That a state was made by other weights, and the line with which the stream can go on."""
    if schedule.mixture is None:
        return f"state: made with weights, this stream has none. To go on in plain epochs, {CONTINUE}"
    stages = [f"MixStage({dict(stage.weights)}, tokens={stage.tokens})" for stage in schedule.mixture.params.stages]
    if given is None:
        return f"state: made without weights, this stream has {', '.join(stages)}. To go on by weights, {CONTINUE}"
    tokens = position * schedule.domains[0].length
    return (
        f"state: made by other weights up to position {position} than {', '.join(stages)}. To change weights there, "
        f"give those of the state first, as old: `weights=[MixStage(old, tokens={tokens}), {', '.join(stages)}]`, with "
        f"the other options of MixParams unchanged; or {CONTINUE}"
    )


def digests_in(state: Mapping[str, Any], domains: int) -> list[int] | None:
    """Digests of refinery.loader.stream.usage, one per domain; None if the state has none. Raises StateError."""
    usage = state.get("usage")
    if usage is None:
        return None
    try:
        digests = [int(value, 16) for value in usage]
    except (TypeError, ValueError):
        digests = []
    if len(digests) != domains:
        raise StateError(f"state: usage {usage!r:.80} given, a hexadecimal number for each domain is allowed")
    return digests


def checksum(state: Mapping[str, Any]) -> str:
    """Of everything in a state but its own entry, `check`: crc32 of its JSON, 8 hexadecimal digits."""
    rest = {name: value for name, value in state.items() if name != "check"}
    return f"{zlib.crc32(json.dumps(rest, sort_keys=True, default=str).encode()):08x}"


def check_unchanged(state: Mapping[str, Any]) -> None:
    """Raise StateError for a state that was changed since it was saved. Those of older versions, without `check`, pass.

    Without this a position that was moved by hand is noticed only at the epoch's end, by what was counted.
    """
    try:
        is_whole = "check" not in state or same(state["check"], checksum(state))
    except (TypeError, ValueError, RecursionError):  # of keys or values that no state has
        is_whole = False
    if not is_whole:
        raise StateError(
            "state: changed since it was saved, so its position and what was counted disagree; load it as it was "
            "saved, and use skip(batches) to pass over batches"
        )


def code_version() -> dict[str, Any]:
    """Versions of the package (None if it is not installed), of the order's arithmetic and of states; `build`, a digest
    of the loader's sources, which is another one after every change of them."""
    try:
        version: str | None = metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        version = None
    return {"refinery": version, "build": loader_build(), "order": ORDER_VERSION, "state": STATE_VERSION}
