"""Samples of a domain: fixed ranges of its shards' tokens, with the shards concatenated in manifest order.

Sample i of a domain with T tokens and sequence length S has the tokens [iS, iS + S) as inputs and the token after each
input as its label, so S + 1 tokens are read and neighbouring samples share one. There are ceil(T / S) samples, and
every token is an input exactly once. The last sample may be shorter; the last token of the domain has no label.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import numpy as np

from refinery.loader.arguments import texts
from refinery.loader.format.manifest import Index, ShardEntry
from refinery.loader.format.shard_list import as_shards
from refinery.loader.native import documents
from refinery.loader.order.arrays import I64, distinct
from refinery.loader.order.corpus_order import CorpusOrder
from refinery.loader.order.order import Order, OrderParams, block_for
from refinery.loader.order.subset import rows_of_domains

Arrays = tuple[I64, I64, I64]
MAX_DOCUMENTS = 1 << 26  # whose offsets are kept in memory: 512 MiB


class Domain:
    """Maps samples of a domain to shards and tokens. Needs only the manifest.

    shards: (number in the source, tokens) of each shard. labels: of each shard, which of the stream's domain names it
    has, by default the first. Memory: 24 bytes per shard.

    is_concatenated: tokens of the domain are those of its shards, all of them, one shard after another. periods: epochs
    until what a sample is comes again. first: samples of the first epoch, which may be another number.
    """

    is_concatenated = True
    periods = 1

    def __init__(
        self, name: str, shards: Iterable[tuple[int, int]], sequence_length: int, labels: Sequence[int] | None = None
    ) -> None:
        pairs = list(shards)
        arrays = (
            np.array([number for number, _ in pairs], np.int64),
            np.array([tokens for _, tokens in pairs], np.int64),
            np.zeros(len(pairs), np.int64) if labels is None else np.array(labels, np.int64),
        )
        self._begin(name, sequence_length, len(pairs), sum(tokens for _, tokens in pairs), lambda: arrays)

    @classmethod
    def listed(cls, name: str, sequence_length: int, shards: int, tokens: int, load: Callable[[], Arrays]) -> "Domain":
        """A domain of so many shards and tokens; which shard has which is looked up when it is first asked for.

        load: their numbers, tokens and labels, int64 [shards] each.
        """
        domain = cls.__new__(cls)
        domain._begin(name, sequence_length, shards, tokens, load)
        return domain

    def _begin(self, name: str, length: int, shards: int, tokens: int, load: Callable[[], Arrays]) -> None:
        self.name, self.length, self.shards, self.tokens = name, length, shards, tokens
        self.samples = self.first = -(-tokens // length)
        self._load = load
        self._arrays: tuple[I64, I64, I64] | None = None

    def _read(self) -> tuple[I64, I64, I64]:
        if self._arrays is None:
            numbers, tokens, labels = self._load()
            self._arrays = numbers, np.cumsum(np.append(0, tokens), dtype=np.int64), labels
        return self._arrays

    @property
    def numbers(self) -> I64:
        """The source's number of each shard."""
        return self._read()[0]

    @property
    def starts(self) -> I64:
        """The first token of each shard, and the end."""
        return self._read()[1]

    @property
    def labels(self) -> I64:
        """Which of the stream's domain names each shard has."""
        return self._read()[2]

    @property
    def block(self) -> int:
        """Samples that are read together where OrderParams leave it open: the default K of the order."""
        return block_for(self.samples, self.length)

    def order_of(self, epoch: int, seed: int, params: OrderParams, shuffle: bool = True) -> Order:
        """The order of an epoch."""
        n, block = self.samples_in(epoch), params.block or self.block
        if not shuffle:
            return CorpusOrder(n, block * params.window)
        shape = {"block": block, "lanes": params.lanes, "window": params.window}
        return Order(n, seed=seed, epoch=epoch, domain=self.name, **shape)

    @property
    def sequence(self) -> "Domain":
        """The domain whose tokens `inputs_of` counts."""
        return self

    def samples_in(self, epoch: int) -> int:
        """Samples of an epoch."""
        return self.samples if epoch else self.first

    def before(self, epoch: int) -> int:
        """Samples of all epochs before this one."""
        return self.first + (epoch - 1) * self.samples if epoch else 0

    def at(self, counts: I64) -> tuple[I64, I64]:
        """(epochs, places) behind so many samples: the number of the epoch, and samples of it."""
        if not self.samples:
            return np.zeros_like(counts), np.zeros_like(counts)
        epochs = np.where(counts < self.first, 0, 1 + (counts - self.first) // self.samples)
        return epochs, counts - np.where(epochs > 0, self.first + (epochs - 1) * self.samples, 0)

    def has(self, sample: int) -> bool:
        """Whether this is a sample of any epoch."""
        return 0 <= sample < self.samples * self.periods

    def tokens_in(self, epoch: int) -> I64:
        """int64 [shards of this domain]: tokens of each that are inputs of an epoch."""
        return np.diff(self.starts)

    def inputs_of(self, samples: I64) -> tuple[I64, I64]:
        """(starts, ends) of the tokens of `sequence` that are inputs of these samples, one or more of each, in any
        order."""
        starts = samples * self.length
        return starts, np.minimum(starts + self.length, self.tokens)

    def first_of(self, epoch: int) -> int:
        """The first sample of an epoch, which has as many from there on as any other."""
        return epoch % self.periods * self.samples

    def valid(self, samples: I64) -> I64:
        """int64 [n]: tokens that each sample reads, S + 1 except at the end; 0 for a sample of -1, an empty row."""
        found: I64 = np.clip(self.tokens - samples * self.length, 0, self.length + 1)
        found[samples < 0] = 0
        return found

    def first_shards(self, samples: I64) -> I64:
        """int64 [n]: which shard of this domain, counted from 0, has each sample's first token; any for empty rows."""
        index = np.searchsorted(self.starts, np.maximum(samples * self.length, 0), "right") - 1
        return np.minimum(index, len(self.numbers) - 1)  # an empty row of a domain without tokens

    def pieces(self, samples: I64) -> I64:
        """int64 [pieces, 5]: row, shard, first token in it, tokens, and offset in the row, of each piece of a sample in
        one shard, in order. Each has a token or more; empty rows have none.

        Cost: a binary search over the shards per sample, and a loop over those that cross into another shard.
        """
        first, valid, index = samples * self.length, self.valid(samples), self.first_shards(samples)
        whole = (self.starts[index + 1] - first >= valid) & (valid > 0)
        columns = np.arange(len(samples)), self.numbers[index], first - self.starts[index], valid, np.zeros_like(valid)
        found = np.stack(columns, axis=1)
        if whole.all():
            return found
        parts: list[tuple[int, int, int, int, int]] = []
        for row in np.flatnonzero(~whole & (valid > 0)).tolist():
            place = 0
            for number, begin, stop in self.sample_ranges(int(samples[row]), int(samples[row]) + 1):
                parts.append((row, number, begin, stop - begin, place))
                place += stop - begin
        found = np.concatenate([found[whole], np.array(parts, np.int64).reshape(-1, 5)])
        return found[np.argsort(found[:, 0], kind="stable")]

    def cut(self, begins: I64, ends: I64) -> I64:
        """`pieces` of the tokens [begins, ends) of each row. Cost: as `ranges_of`."""
        found, counts = self.ranges_of(begins, ends)
        rows, sizes = np.repeat(np.arange(len(counts)), counts), found[:, 2] - found[:, 1]
        return np.stack([rows, found[:, 0], found[:, 1], sizes, places_in_rows(sizes, counts)], axis=1)

    def ranges(self, first: int, stop: int) -> list[tuple[int, int, int]]:
        """(shard, start, stop) of tokens [first, stop) of the domain, clipped to its end; without empty shards."""
        ranges = []
        stop = min(stop, self.tokens)
        index = int(np.searchsorted(self.starts, first, "right")) - 1
        while first < stop:
            base, end = int(self.starts[index]), min(int(self.starts[index + 1]), stop)
            if first < end:
                ranges.append((int(self.numbers[index]), first - base, end - base))
                first = end
            index += 1
        return ranges

    def ranges_of(self, first: I64, stop: I64) -> tuple[I64, I64]:
        """`ranges` of many spans of tokens, one after another, int64 [ranges, 3], and how many each span has.

        Cost: vectorised; a loop over the spans that cross into another shard.
        """
        stop = np.minimum(stop, self.tokens)
        index = np.searchsorted(self.starts, first, "right") - 1
        index = np.minimum(index, len(self.numbers) - 1)  # a span behind the end has no range
        base = self.starts[index]
        found = np.stack([self.numbers[index], first - base, stop - base], axis=1)
        counts = (first < stop).astype(np.int64)
        crossing = np.flatnonzero((stop > self.starts[index + 1]) & (first < stop))
        if not len(crossing):
            return found[counts > 0], counts
        parts, done = [], 0
        for i in crossing.tolist():
            several = np.array(self.ranges(int(first[i]), int(stop[i])), np.int64)
            parts += [found[done:i][counts[done:i] > 0], several]
            counts[i], done = len(several), i + 1
        return np.concatenate([*parts, found[done:][counts[done:] > 0]]), counts

    def sample_ranges(self, first: int, stop: int) -> list[tuple[int, int, int]]:
        """(shard, start, stop) of all tokens that samples [first, stop) read, including the last label."""
        return self.ranges(first * self.length, stop * self.length + 1)

    def inputs_per_shard(self, samples: I64) -> I64:
        """int64 [shards of this domain]: how many tokens of each are inputs of these samples (-1 counts as none).

        Cost: vectorised; a loop over the samples that cross into another shard.
        """
        samples = samples[samples >= 0]
        first = samples * self.length
        stop = np.minimum(first + self.length, self.tokens)
        index = np.searchsorted(self.starts, first, "right") - 1
        counts = np.zeros(len(self.numbers), np.int64)
        inside = np.minimum(stop, self.starts[index + 1]) - first
        np.add.at(counts, index, inside)
        for i in np.flatnonzero(inside < stop - first).tolist():
            position, at = int(first[i] + inside[i]), int(index[i]) + 1
            while position < stop[i]:
                end = min(int(stop[i]), int(self.starts[at + 1]))
                counts[at] += end - position
                position, at = end, at + 1
        return counts


class DocumentStarts:
    """Where documents start inside samples, from the shards' indexes, which are loaded when first needed.

    load: returns the index of a shard, by its number in the source. Memory: 8 bytes per document of the most recently
    used shards, up to 512 MiB.
    """

    def __init__(self, load: Callable[[int], Index]) -> None:
        self._load = load
        self._offsets: OrderedDict[int, I64] = OrderedDict()
        self._documents = 0

    def inside(self, pieces: I64, row: int, rows: int) -> tuple[I64, I64]:
        """(starts, counts), as masks.fill takes them: per row, ascending, offsets 0 to S of document starts.

        pieces: of rows `row` to `row + rows - 1`, by row, as Domain.pieces gives them. Cost: 0.4 us for a binary
        search per piece, and 50 us per call.
        """
        its, shards, begins, sizes, places = pieces.T
        parts: list[tuple[I64, I64, I64]] = []
        for shard in distinct(shards).tolist():
            mine = np.flatnonzero(shards == shard)
            first = begins[mine]
            found, counted = documents.find(self._of(shard), first, first + sizes[mine], places[mine] - first)
            parts.append((mine, np.frombuffer(found, np.int64), np.frombuffer(counted, np.int64)))
        starts, counts = interleave(parts, len(its))
        return starts, np.bincount(its - row, weights=counts, minlength=rows).astype(np.int64)

    def between(self, domain: Domain, first: int, stop: int) -> I64:
        """Where documents start among tokens [first, stop) of a domain, ascending; one without tokens starts where the
        next one does. Cost: as `inside`."""
        return first + self.inside(domain.cut(np.array([first]), np.array([stop])), 0, 1)[0]

    def load(self, shard: int) -> None:
        """Load the index of a shard if it is not in memory."""
        self._of(shard)

    def _of(self, shard: int) -> I64:
        offsets = self._offsets.get(shard)
        if offsets is None:
            offsets = self._offsets[shard] = self._load(shard).offsets.astype(np.int64, copy=False)
            self._documents += len(offsets)
            while self._documents > MAX_DOCUMENTS and len(self._offsets) > 1:
                self._documents -= len(self._offsets.popitem(last=False)[1])
        else:
            self._offsets.move_to_end(shard)
        return offsets


def places_in_rows(sizes: I64, counts: I64) -> I64:
    """Where in its row each piece begins. sizes: of all pieces, row by row; counts: pieces of each row."""
    before = np.cumsum(sizes) - sizes
    firsts = np.append(before, 0)[np.cumsum(counts) - counts]
    found: I64 = before - np.repeat(firsts, counts)
    return found


def interleave(parts: Sequence[tuple[I64, I64, I64]], size: int) -> tuple[I64, I64]:
    """Merge parts into (starts, counts) of rows 0 to size - 1. parts: (rows, starts, counts), disjoint in rows."""
    if len(parts) == 1 and len(parts[0][0]) == size:
        return parts[0][1:]
    counts = np.zeros(size, np.int64)
    for places, _, some in parts:
        counts[places] = some
    ends = np.cumsum(counts)
    starts = np.empty(int(counts.sum()), np.int64)
    for places, values, some in parts:
        first = np.cumsum(some) - some
        starts[np.arange(len(values)) + np.repeat((ends - counts)[places] - first, some)] = values
    return starts, counts


def choose_shards(entries: Sequence[ShardEntry], split: str, names: Sequence[str] | None) -> Sequence[ShardEntry]:
    """The shards of a split in manifest order, only those whose .bin is in `names`; ValueError for an unknown name."""
    found = as_shards(entries).of(split)
    if names is None:
        return found
    wanted, paths = set(texts("shards", names, ".bin paths")), found.paths()
    if unknown := wanted.difference(paths):
        example = f", such as {paths[0]!r}" if len(paths) else ""
        raise ValueError(
            f"shards: {min(unknown)!r} given, paths of the .bin files of the {split} split as the manifest has them"
            f"{example}, are allowed"
        )
    if not wanted:
        raise ValueError("shards: an empty list given, at least one .bin path, or None for all shards, is allowed")
    return [found[i] for i, path in enumerate(paths) if path in wanted]


def domains_of(
    shards: Sequence[ShardEntry], sequence_length: int, mixed: bool, subset: int | float | None = None
) -> list[Domain]:
    """The domains of a split in manifest order; if not mixed, a single one with an empty name that has all shards.

    subset: of the rows of each domain only the first so many (refinery.loader.order.subset). Reads no listing: the
    shards of a domain are looked up when a sample of it is.
    """
    every = as_shards(shards)
    names = domain_names(every)
    totals, counts = dict.fromkeys(names, 0), dict.fromkeys(names, 0)
    for run in every.runs:
        totals[run.domain] += run.tokens
        counts[run.domain] += run.shards
    if subset is not None:
        rows = rows_of_domains(subset, [-(-total // sequence_length) for total in totals.values()])
        limits = {name: count * sequence_length for name, count in zip(totals, rows, strict=True)}
        totals = {name: min(total, limits[name]) for name, total in totals.items()}

    def load(wanted: Sequence[str]) -> Arrays:
        labels = np.repeat([names[run.domain] for run in every.runs], np.diff(every.ends)).astype(np.int64)
        tokens = every.counts("tokens", wanted)
        for name in wanted:
            mine = labels == names[name]
            before = np.cumsum(tokens[mine]) - tokens[mine]
            tokens[mine] = np.clip(totals[name] - before, 0, tokens[mine])
        its = np.flatnonzero(np.isin(labels, [names[name] for name in wanted]))
        return its, tokens[its], labels[its]

    if not mixed or not totals:
        whole = sum(totals.values())
        return [Domain.listed("", sequence_length, len(every), whole, partial(load, list(names)))]
    return [
        Domain.listed(name, sequence_length, counts[name], total, partial(load, [name]))
        for name, total in totals.items()
    ]


def domain_names(shards: Sequence[ShardEntry]) -> dict[str, int]:
    """The names of the shards' domains in manifest order, and their places in it, which are Domain's labels."""
    return {name: place for place, name in enumerate(as_shards(shards).domains())}
