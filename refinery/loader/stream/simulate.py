"""The load that a large run puts on its object store, computed with the loader's own arithmetic; nothing is read.

    python -m refinery.loader.stream.simulate --tokens 1e12 --world-size 2048 --sequence-length 4096 --hours 24

For every position in the simulated time it computes the window that the position draws from and the host that reads it,
and for every window the blocks of the files that a host fetches. Only the timing is assumed: all ranks run at the same
speed, and a window is fetched as a whole when its first row is planned.
"""

import argparse
import json
import sys
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import numpy as np

from refinery.loader.format.block_checksums import CHECKSUM_BLOCK
from refinery.loader.order.arrays import I64
from refinery.loader.order.order import OrderParams, lag_correlation, neighbours
from refinery.loader.read.remote.blocks import RemoteParams
from refinery.loader.read.remote.capacity import bytes_in_blocks, fit_cache
from refinery.loader.read.remote.remote_bytes import bytes_of
from refinery.loader.read.samples import Domain
from refinery.loader.stream.lookahead import live_ranges
from refinery.loader.stream.schedule import Schedule, rows_of_rank

LIMITS = {
    "tokens": 2**60,
    "world_size": 2**20,
    "ranks_per_host": 2**20,
    "sequence_length": 2**30,
    "batch_size": 2**20,
    "shard_tokens": 2**60,
    "cache_bytes": 2**60,
}
MOST_SHARDS = 10**6
MOST_ROWS = 2**26  # of a step: 8 bytes of memory each
MOST_POSITIONS = 2**33  # about half an hour of computing
_CHUNK = 1 << 20  # positions at a time
INSTANTS = 50  # at which the live part of the corpus is measured
REGION_QUOTA = 12.7e9  # bytes/s: a project's default read quota for a bucket's region (100 Gbit/s)


@dataclass(frozen=True)
class SimulateParams:
    """A run.

    tokens, shard_tokens: of the corpus and of each shard. token_bytes: 2 or 4. cache_bytes: of each host.
    tokens_per_second: of one rank. hours: of training, limited to one epoch.
    """

    tokens: int = 10**12
    world_size: int = 2048
    ranks_per_host: int = 8
    sequence_length: int = 4096
    batch_size: int = 8
    token_bytes: int = 2
    shard_tokens: int = 500_000_000
    cache_bytes: int = RemoteParams.cache_bytes
    tokens_per_second: float = 1550.0
    hours: float = 24.0
    seed: int = 1
    order: OrderParams = field(default_factory=OrderParams)

    def __post_init__(self) -> None:
        for name, most in LIMITS.items():
            if not 1 <= getattr(self, name) <= most:
                raise ValueError(f"{name}: {getattr(self, name)} given, 1 to {most} is allowed")
        for name in ("tokens_per_second", "hours"):
            if not 0 < getattr(self, name) < float("inf"):
                raise ValueError(f"{name}: {getattr(self, name)} given, a finite number above 0 is allowed")
        if self.cache_bytes < CHECKSUM_BLOCK:
            raise ValueError(f"cache_bytes: {self.cache_bytes} given, {CHECKSUM_BLOCK} or more is allowed")
        if self.token_bytes not in (2, 4):
            raise ValueError(f"token_bytes: {self.token_bytes} given, 2 or 4 is allowed")
        if not -(2**63) <= self.seed < 2**64:
            raise ValueError(f"seed: {self.seed} given, {-(2**63)} to {2**64 - 1} is allowed")
        if self.tokens > self.shard_tokens * MOST_SHARDS:
            least = -(-self.tokens // MOST_SHARDS)
            raise ValueError(f"shard_tokens: {self.shard_tokens} given, {least} or more is allowed for so many tokens")
        if self.world_size * self.batch_size > MOST_ROWS:
            most = MOST_ROWS // self.world_size
            raise ValueError(f"batch_size: {self.batch_size} given, 1 to {most} is allowed for {self.world_size} ranks")
        if self.steps * self.world_size * self.batch_size > MOST_POSITIONS + MOST_ROWS:
            raise ValueError(
                f"hours: {self.hours} given, fewer are allowed; at most {MOST_POSITIONS} samples are simulated"
            )

    @property
    def steps(self) -> int:
        """Steps in the simulated time, at most one epoch."""
        epoch = -(-self.tokens // (self.sequence_length * self.world_size * self.batch_size))
        made = self.hours * 3600 * self.tokens_per_second / (self.batch_size * self.sequence_length)
        return max(1, epoch if made > epoch else round(made))


def simulate(params: SimulateParams) -> dict[str, Any]:
    """Figures of the run, by name; names include the unit.

    read_amplification: bytes fetched per byte of the windows they are fetched for, even if only a part of these is
    delivered in the simulated time. A block that a host still has in its cache is not fetched again. The first minute,
    which fills the caches, counts in means but not in the worst minute. Where the cache is too small for one rank,
    each keeps its blocks in memory, as streams do (`cache_in_memory`: each rank is then a host of its own); raises
    ValueError where streams refuse, since memory is too small as well. Cost: about 0.2 us per position (67 million for
    a day of 2,048 ranks) and a millisecond per window and host.
    """
    whole, last = divmod(params.tokens, params.shard_tokens)
    sizes = [params.shard_tokens] * whole + [last] * (last > 0)
    domain = Domain("", enumerate(sizes), params.sequence_length)
    shape: dict[str, Any] = {"world_size": params.world_size, "batch_size": params.batch_size}
    schedule = Schedule([domain], None, order=params.order, seed=params.seed, rank=0, **shape)
    order, step, cached = schedule.order(0, 0), schedule.step, params
    params = _as_kept(params, domain, schedule)
    steps = params.steps
    positions = min(steps * step, order.n)
    seconds = steps * params.batch_size * params.sequence_length / params.tokens_per_second
    hosts = -(-params.world_size // params.ranks_per_host)
    host_of_row = np.empty(step, np.int64)
    for rank in range(params.world_size):
        rows = rows_of_rank(rank, params.world_size, params.batch_size, params.order.lanes)
        host_of_row[rows] = rank // params.ranks_per_host
    opened = _opened(order.windows, positions, host_of_row, hosts)
    opened = opened[np.argsort(opened[:, 3], kind="stable")]
    fetched, requests, held, own = _fetches(params, domain, order.pieces, opened)
    minute = (opened[:, 3] * (seconds / positions) // 60).astype(np.int64)
    by_minute = np.bincount(minute, weights=fetched)[1:]  # the first fills the caches
    by_host_minute = np.bincount(minute * hosts + opened[:, 2], weights=fetched)[hosts:]
    delivered = positions * params.sequence_length * params.token_bytes
    live = _live(order.windows, order.lanes, order.span, positions, opened, held, own)
    distinct = np.unique(opened[:, :2], axis=0)
    used = int((distinct[:, 1] - distinct[:, 0]).sum()) * params.sequence_length * params.token_bytes
    return {
        "hours": seconds / 3600,
        "steps": steps,
        "samples_delivered": positions,
        "samples_in_epoch": order.n,
        "tokens_per_second": positions * params.sequence_length / seconds,
        "hosts": hosts,
        "block_samples": order.block,
        "lanes": order.lanes,
        "window_blocks": params.order.window,
        "hosts_per_window_mean": len(opened) / len(distinct),
        "bytes_per_second_delivered": delivered / seconds,
        "bytes_per_second_fetched": float(fetched.sum()) / seconds,
        "bytes_per_second_fetched_per_rank": float(fetched.sum()) / seconds / params.world_size,
        "bytes_per_second_fetched_worst_minute": float(by_minute.max(initial=0)) / 60,
        "bytes_per_second_fetched_worst_minute_of_a_host": float(by_host_minute.max(initial=0)) / 60,
        "reads_per_second": float(requests.sum()) / seconds,
        "reads_per_second_per_rank": float(requests.sum()) / seconds / params.world_size,
        "bytes_per_read_mean": float(fetched.sum() / requests.sum()),
        "read_amplification": float(fetched.sum()) / used,
        "share_of_region_quota": float(fetched.sum()) / seconds / REGION_QUOTA,
        "cache_bytes_per_host_max": live,
        "cache_in_memory": params is not cached,
        "lag_1_correlation": lag_correlation(order) if order.n > 3 else 0.0,
        "neighbours_within_1024": neighbours(order),
        "neighbours_within_1024_by_chance": min(1.0, 2048 / order.n),
    }


def _as_kept(params: SimulateParams, domain: Domain, schedule: Schedule) -> SimulateParams:
    """`params`, with memory of each rank's own in place of a cache that a stream would not use."""
    sizes = np.diff(domain.starts) * params.token_bytes
    chosen = fit_cache(
        RemoteParams(cache_bytes=params.cache_bytes),
        bytes_in_blocks(sizes.tolist()),
        lambda: bytes_of(live_ranges(schedule) * [1, params.token_bytes, params.token_bytes]),
        params.cache_bytes,
    )
    return params if chosen.cache_bytes else replace(params, ranks_per_host=1, cache_bytes=chosen.memory_bytes)


def _opened(windows: Any, positions: int, host_of_row: I64, hosts: int) -> I64:
    """int64 [n, 4]: start, stop, host and first position, for every window and each host that draws from it."""
    found = np.empty((0, 4), np.int64)
    for begin in range(0, positions, _CHUNK):
        p = np.arange(begin, min(begin + _CHUNK, positions))
        start, stop, _ = windows(p).T
        host = host_of_row[p % len(host_of_row)]
        _, first = np.unique(start * hosts + host, return_index=True)
        new = np.stack([start, stop, host, p], axis=1)[first]
        both = np.concatenate([found, new])  # earlier positions first
        _, first = np.unique(both[:, 0] * hosts + both[:, 2], return_index=True)
        found = both[first]
    return found


def _fetches(params: SimulateParams, domain: Domain, pieces: Any, opened: I64) -> tuple[I64, I64, I64, I64]:
    """Bytes and requests of each of `opened`, in order of time, bytes of its blocks, and distinct bytes of each host.

    A host keeps blocks of a MiB, in which other windows have samples too, until its cache is full: those that it used
    longest ago leave it first.
    """
    group = RemoteParams().group
    each, which = np.unique(opened[:, :2], axis=0, return_inverse=True)
    blocks = [_blocks(params, domain, pieces(start, stop).tolist()) for start, stop in each.tolist()]
    which = which.ravel()
    found = np.zeros((3, len(opened)), np.int64)
    found[2] = np.array([_sizes(params, domain, some).sum() for some in blocks], np.int64)[which]
    distinct = np.zeros(int(opened[:, 2].max(initial=0)) + 1, np.int64)
    for host in np.unique(opened[:, 2]).tolist():
        mine = np.flatnonzero(opened[:, 2] == host)
        parts = [blocks[i] for i in which[mine].tolist()]
        known, first = np.unique(np.concatenate(parts), return_index=True)
        distinct[host] = _sizes(params, domain, known).sum()
        if distinct[host] <= params.cache_bytes:
            new = np.zeros(sum(map(len, parts)), np.bool_)
            new[first] = True
            keep = np.split(new, np.cumsum([len(part) for part in parts[:-1]]))
            missing = [part[kept] for part, kept in zip(parts, keep, strict=True)]
        else:
            missing = _least_recent(parts, params.cache_bytes // CHECKSUM_BLOCK)
        for i, some in zip(mine.tolist(), missing, strict=True):
            found[:2, i] = _sizes(params, domain, some).sum(), len(np.unique(some // group))
    return found[0], found[1], found[2], distinct


def _blocks(params: SimulateParams, domain: Domain, pieces: Sequence[Sequence[int]]) -> I64:
    """The blocks of a window, ascending: shard x 2^32 + number of the block in its file."""
    blocks: set[int] = set()
    for begin, end in pieces:
        for shard, first, last in domain.ranges(begin * domain.length, end * domain.length):
            stop = -(-last * params.token_bytes // CHECKSUM_BLOCK)
            blocks.update(range((shard << 32) + first * params.token_bytes // CHECKSUM_BLOCK, (shard << 32) + stop))
    return np.array(sorted(blocks), np.int64)


def _sizes(params: SimulateParams, domain: Domain, blocks: I64) -> I64:
    """Bytes of each block: less than a MiB at the end of a file."""
    ends = np.diff(domain.starts)[blocks >> 32] * params.token_bytes
    sizes: I64 = np.minimum(ends - (blocks & 0xFFFFFFFF) * CHECKSUM_BLOCK, CHECKSUM_BLOCK)
    return sizes


def _least_recent(parts: Sequence[I64], most: int) -> list[I64]:
    """Of each part what a cache of `most` blocks does not have when the part is used."""
    cache: OrderedDict[int, None] = OrderedDict()
    missing = []
    for part in parts:
        missing.append(np.array([block for block in part.tolist() if block not in cache], np.int64))
        for block in part.tolist():
            cache[block] = None
            cache.move_to_end(block)
        while len(cache) > most:
            cache.popitem(last=False)
    return missing


def _live(windows: Any, lanes: int, span: int, positions: int, opened: I64, held: I64, own: I64) -> int:
    """Most bytes that any host holds at once: its open windows, and those to be opened in a quarter of a window.

    held: bytes of each window's blocks. own: distinct bytes of each host, which it cannot hold more of.
    """
    ends = windows(opened[:, 3])[:, 2]
    ahead = span * lanes // 4
    most = 0
    for now in np.linspace(0, positions, INSTANTS, endpoint=False).astype(np.int64).tolist():
        here = (opened[:, 3] <= now + ahead) & (ends >= now)
        by_host = np.bincount(opened[here, 2], weights=held[here], minlength=len(own))
        most = max(most, int(np.minimum(by_host, own).max()))
    return most


def format_report(params: SimulateParams, figures: dict[str, Any]) -> str:
    """The figures as readable lines."""
    f = figures
    return "\n".join(
        [
            f"{params.tokens:.4g} tokens in samples of {params.sequence_length}; "
            f"blocks of {f['block_samples']} samples, {f['lanes']} lanes, windows of {f['window_blocks']} blocks",
            f"{params.world_size} ranks on {f['hosts']} hosts, {params.tokens_per_second:.6g} tokens/s each: "
            f"{f['tokens_per_second']:.4g} tokens/s for {f['hours']:.4g} h, {f['steps']} steps",
            f"delivered       {f['bytes_per_second_delivered'] / 1e6:10.4g} MB/s",
            f"fetched         {f['bytes_per_second_fetched'] / 1e6:10.4g} MB/s in total, "
            f"{f['bytes_per_second_fetched_per_rank'] / 1e3:.4g} kB/s per rank: "
            f"{f['share_of_region_quota']:.3%} of {REGION_QUOTA / 1e9:.4g} GB/s",
            f"worst minute    {f['bytes_per_second_fetched_worst_minute'] / 1e6:10.4g} MB/s in total, "
            f"{f['bytes_per_second_fetched_worst_minute_of_a_host'] / 1e6:.4g} MB/s for a host",
            f"reads           {f['reads_per_second']:10.4g} /s in total, "
            f"{f['reads_per_second_per_rank']:.3g} /s per rank, {f['bytes_per_read_mean'] / 1e6:.3g} MB each",
            f"amplification   {f['read_amplification']:10.4g} bytes fetched per byte delivered; "
            f"{f['hosts_per_window_mean']:.4g} hosts read a window",
            f"cache           {f['cache_bytes_per_host_max'] / 1e9:10.4g} GB "
            + ("in the memory of each rank: cache_bytes is too small" if f["cache_in_memory"] else "per host at most"),
            f"shuffle         {f['lag_1_correlation']:10.2g} lag-1 correlation; "
            f"{f['neighbours_within_1024']:.2%} of neighbours within 1,024 positions "
            f"({f['neighbours_within_1024_by_chance']:.2%} by chance)",
        ]
    )


HELP = {
    "tokens": "of the corpus",
    "world_size": "ranks that train",
    "ranks_per_host": "ranks that share a host's cache",
    "sequence_length": "tokens of a row",
    "batch_size": "rows of one rank in a step",
    "shard_tokens": "tokens of each shard",
    "cache_bytes": "of each host",
    "token_bytes": "bytes of a token: 2 for vocabularies up to 65,500, else 4",
    "tokens_per_second": "of one rank",
    "hours": "of training, one epoch at most",
    "seed": "of the order",
}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m refinery.loader.stream.simulate", description=str(__doc__).splitlines()[0]
    )
    defaults = SimulateParams()
    kinds = {**dict.fromkeys((*LIMITS, "token_bytes"), (_count, "N")), "tokens_per_second": (_number, "X")}
    kinds |= {"hours": (_number, "X"), "seed": (_whole, "N")}
    for name, (kind, unit) in kinds.items():
        own = getattr(defaults, name)
        said = f"{HELP[name]} ({own:,})"
        parser.add_argument(f"--{name.replace('_', '-')}", type=kind, default=own, metavar=unit, help=said)
    said = "samples read together (as many as a million tokens have)"
    parser.add_argument("--block", type=_count, default=None, metavar="K", help=said)
    lanes, window = defaults.order.lanes, defaults.order.window
    said = f"parts of the order, each shuffled by itself ({lanes})"
    parser.add_argument("--lanes", type=_count, default=lanes, metavar="C", help=said)
    said = f"blocks of a lane that are shuffled together ({window})"
    parser.add_argument("--window", type=_count, default=window, metavar="W", help=said)
    parser.add_argument("--json", action="store_true", help="figures as JSON")
    given = vars(parser.parse_args(arguments))
    as_json = given.pop("json")
    try:
        order = OrderParams(given.pop("block"), given.pop("lanes"), given.pop("window"))
        params = SimulateParams(**given, order=order)
        figures = simulate(params)
    except ValueError as error:
        parser.error(str(error))
    sys.stdout.write((json.dumps(figures, indent=1) if as_json else format_report(params, figures)) + "\n")
    return 0


def _whole(text: str, allowed: str = "a whole number") -> int:
    """A whole number; 1e12 is accepted."""
    try:
        value = Decimal(text)
        if value.is_finite() and value.adjusted() < 30 and value == int(value):
            return int(value)
    except ArithmeticError:
        pass
    raise argparse.ArgumentTypeError(f"{text!r} given, {allowed} is allowed")


def _count(text: str) -> int:
    value = _whole(text, "a whole number of 1 or more")
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} given, a whole number of 1 or more is allowed")
    return value


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} given, a finite number above 0 is allowed")
    return value


if __name__ == "__main__":
    sys.exit(main())
