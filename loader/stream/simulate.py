"""The load that a large run puts on its object store, computed with the loader's own arithmetic; nothing is read.

    python -m refinery.loader.stream.simulate --tokens 1e12 --world-size 2048 --sequence-length 4096 --hours 24

For every position in the simulated time it computes the window that the position draws from and the host that reads it,
and for every window the blocks of the files that a host fetches. Only the timing is assumed: all ranks run at the same
speed, and a window is fetched as a whole when its first row is planned.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np

from refinery.loader.format.block_checksums import CHECKSUM_BLOCK
from refinery.loader.order.arrays import I64
from refinery.loader.order.order import OrderParams, lag_correlation
from refinery.loader.remote.blocks import RemoteParams
from refinery.loader.stream.samples import Domain
from refinery.loader.stream.schedule import Schedule, rows_of_rank

LIMITS = {
    "tokens": 2**60,
    "world_size": 2**20,
    "ranks_per_host": 2**20,
    "sequence_length": 2**30,
    "batch_size": 2**20,
    "shard_tokens": 2**60,
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

    tokens, shard_tokens: of the corpus and of each shard. token_bytes: 2 or 4. tokens_per_second: of one rank.
    hours: of training, limited to one epoch.
    """

    tokens: int = 10**12
    world_size: int = 2048
    ranks_per_host: int = 8
    sequence_length: int = 4096
    batch_size: int = 8
    token_bytes: int = 2
    shard_tokens: int = 500_000_000
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
                f"hours: {self.hours} given, fewer are allowed: at most {MOST_POSITIONS} samples are simulated"
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
    delivered in the simulated time. The first minute, which fills the caches, counts in means but not in the worst
    minute. Cost: about 0.2 us per position (67 million for a day of 2,048 ranks) and 0.3 ms per window.
    """
    whole, last = divmod(params.tokens, params.shard_tokens)
    sizes = [params.shard_tokens] * whole + [last] * (last > 0)
    domain = Domain("", enumerate(sizes), params.sequence_length)
    shape = {"world_size": params.world_size, "batch_size": params.batch_size}
    schedule = Schedule([domain], None, order=params.order, seed=params.seed, rank=0, **shape)
    order, step = schedule.order(0, 0), schedule.step
    steps = params.steps
    positions = min(steps * step, order.n)
    seconds = steps * params.batch_size * params.sequence_length / params.tokens_per_second
    hosts = -(-params.world_size // params.ranks_per_host)
    host_of_row = np.empty(step, np.int64)
    for rank in range(params.world_size):
        rows = rows_of_rank(rank, params.world_size, params.batch_size, params.order.lanes)
        host_of_row[rows] = rank // params.ranks_per_host
    opened = _opened(order.windows, positions, host_of_row, hosts)
    fetched, requests = _fetches(params, domain, order.pieces, opened[:, 0], opened[:, 1])
    minute = (opened[:, 3] * (seconds / positions) // 60).astype(np.int64)
    by_minute = np.bincount(minute, weights=fetched)[1:]  # the first fills the caches
    by_host_minute = np.bincount(minute * hosts + opened[:, 2], weights=fetched)[hosts:]
    delivered = positions * params.sequence_length * params.token_bytes
    live = _live(order.windows, order.lanes, order.span, positions, opened, fetched, hosts)
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
        "lag_1_correlation": lag_correlation(order) if order.n > 3 else 0.0,
    }


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


def _fetches(params: SimulateParams, domain: Domain, pieces: Any, starts: I64, stops: I64) -> tuple[I64, I64]:
    """(bytes, requests) that a host needs for each of some windows: whole blocks of the shards' files."""
    group = RemoteParams().group
    each, inverse = np.unique(np.stack([starts, stops], axis=1), axis=0, return_inverse=True)
    costs = np.empty((len(each), 2), np.int64)
    for i, (start, stop) in enumerate(each.tolist()):
        blocks: set[tuple[int, int]] = set()
        for begin, end in pieces(start, stop).tolist():
            for shard, first, last in domain.ranges(begin * domain.length, end * domain.length):
                span = range(
                    first * params.token_bytes // CHECKSUM_BLOCK, -(-last * params.token_bytes // CHECKSUM_BLOCK)
                )
                blocks.update((shard, block) for block in span)
        groups = {(shard, block // group) for shard, block in blocks}
        costs[i] = len(blocks) * CHECKSUM_BLOCK, len(groups)
    return costs[inverse.ravel(), 0], costs[inverse.ravel(), 1]


def _live(windows: Any, lanes: int, span: int, positions: int, opened: I64, fetched: I64, hosts: int) -> int:
    """Most bytes that any host holds at once: its open windows, and those to be opened in a quarter of a window."""
    ends = windows(opened[:, 3])[:, 2]
    ahead = span * lanes // 4
    most = 0
    for now in np.linspace(0, positions, INSTANTS, endpoint=False).astype(np.int64).tolist():
        held = (opened[:, 3] <= now + ahead) & (ends >= now)
        by_host = np.bincount(opened[held, 2], weights=fetched[held], minlength=hosts)
        most = max(most, int(by_host.max()))
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
            f"cache           {f['cache_bytes_per_host_max'] / 1e9:10.4g} GB per host at most",
            f"shuffle         {f['lag_1_correlation']:10.2g} lag-1 correlation",
        ]
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m refinery.loader.stream.simulate", description=str(__doc__).splitlines()[0]
    )
    defaults = SimulateParams()
    for name in (*LIMITS, "token_bytes"):
        parser.add_argument(f"--{name.replace('_', '-')}", type=_count, default=getattr(defaults, name), metavar="N")
    for name in ("tokens_per_second", "hours"):
        parser.add_argument(f"--{name.replace('_', '-')}", type=_number, default=getattr(defaults, name), metavar="X")
    parser.add_argument("--seed", type=_whole, default=1, metavar="N")
    parser.add_argument("--block", type=_count, default=None, metavar="K", help="samples read together")
    parser.add_argument("--lanes", type=_count, default=defaults.order.lanes, metavar="C")
    parser.add_argument("--window", type=_count, default=defaults.order.window, metavar="W")
    parser.add_argument("--json", action="store_true", help="figures as JSON")
    given = vars(parser.parse_args(arguments))
    as_json = given.pop("json")
    try:
        order = OrderParams(given.pop("block"), given.pop("lanes"), given.pop("window"))
        params = SimulateParams(**given, order=order)
    except ValueError as error:
        parser.error(str(error))
    figures = simulate(params)
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
