"""What the join found, counted: documents that both have, that changed, that one side alone has, by source and fate."""

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from refinery.pipelines.corpus.compare.joining.documents import ROW, Shared
from refinery.pipelines.corpus.compare.joining.partitions import I64, Rows, joined
from refinery.pipelines.corpus.compare.joining.side import Side

# Documents of both, or of one: the other one's row is zeros then. other: id that the fate names.
PAIR = np.dtype([("a", ROW), ("b", ROW), ("other", "S16")])

SAME, CUT, CHANGED, ONLY = "same", "cut", "changed", "only"
MOVED = "moved"  # beside SAME or CUT


@dataclass(frozen=True)
class Group:
    """Documents of one kind. label: of the only side that has them, "" for pairs. fate: number, of those alone."""

    what: str
    label: str = ""
    fate: int = -1


@dataclass
class Count:
    """Documents, UTF-8 bytes of their texts, and tokens."""

    documents: int = 0
    bytes: int = 0
    tokens: int = 0

    def __iadd__(self, other: "Count") -> "Count":
        self.documents += other.documents
        self.bytes += other.bytes
        self.tokens += other.tokens
        return self


@dataclass
class Overlap:
    """Counts, and the `shown` documents with the least ids of each group. Ids are hashes, which makes this a fair
    sample, and the same one every time.

    places: by side, number of split and domain of each shard. counts: (group, side, source) -> of the documents that
    this side has of it. moves: (which, before, after) -> documents, of "split and domain" and "source".
    """

    shared: Shared
    places: dict[str, I64]
    same_tokenizer: bool
    shown: int
    counts: dict[tuple[Group, str, int], Count] = field(default_factory=lambda: defaultdict(Count))
    moves: dict[tuple[str, int, int], int] = field(default_factory=lambda: defaultdict(int))
    samples: dict[Group, Rows] = field(default_factory=dict)
    other_record: int = 0

    def add_pairs(self, a: Rows, b: Rows) -> None:
        """Documents with one id."""
        cut = a["text_bytes"] != b["text_bytes"]
        if self.same_tokenizer:
            cut |= a["tokens"] != b["tokens"]
        place_a, place_b = self.places["A"][a["shard"]], self.places["B"][b["shard"]]
        moved = place_a != place_b
        self.other_record += int((a["origin"] != b["origin"]).sum())
        for which, before, after in (("place", place_a, place_b), ("source", a["source"], b["source"])):
            there = before != after
            pairs, counts = np.unique(
                np.stack([before[there], after[there]], axis=1).astype(np.int64), axis=0, return_counts=True
            )
            for (one, other), count in zip(pairs.tolist(), counts.tolist(), strict=True):
                self.moves[which, one, other] += count
        self._add(Group(SAME), a[~cut], b[~cut], sample=False)
        self._add(Group(CUT), a[cut], b[cut])
        self._sample(Group(MOVED), _pairs(a[moved], b[moved]))

    def add_changed(self, a: Rows, b: Rows) -> None:
        """Documents of one record with two ids."""
        self._add(Group(CHANGED), a, b)

    def add_lost(self, side: Side, rows: Rows, fates: I64, other: Rows) -> None:
        """Documents of one side alone, with their fates on the other one and the ids that these name."""
        for fate in np.unique(fates).tolist():
            here = fates == fate
            found = np.zeros(int(here.sum()), PAIR)
            found[side.label.lower()], found["other"] = rows[here], other[here]
            group = Group(ONLY, side.label, fate)
            self._count(group, side.label, rows[here])
            self._sample(group, found)

    def _add(self, group: Group, a: Rows, b: Rows, sample: bool = True) -> None:
        self._count(group, "A", a)
        self._count(group, "B", b)
        if sample:
            self._sample(group, _pairs(a, b))

    def _count(self, group: Group, label: str, rows: Rows) -> None:
        for source in np.unique(rows["source"]).tolist():
            here = rows[rows["source"] == source]
            self.counts[group, label, source] += Count(
                len(here), int(here["text_bytes"].sum()), int(here["tokens"].sum())
            )

    def _sample(self, group: Group, found: Rows) -> None:
        if self.shown and len(found):
            kept = np.concatenate([self.samples.get(group, np.empty(0, PAIR)), found])
            which = "b" if group.label == "B" else "a"
            order = np.argsort(joined(kept[which]["id"], kept[which]["origin"]), kind="stable")
            self.samples[group] = kept[order[: self.shown]]

    def groups(self) -> dict[tuple[Group, str], Count]:
        """(group, side) -> the sum over its sources."""
        found: dict[tuple[Group, str], Count] = {}
        for (group, label, _), count in self.counts.items():
            total = found.setdefault((group, label), Count())
            total += count
        return found


def _pairs(a: Rows, b: Rows) -> Rows:
    found = np.zeros(len(a), PAIR)
    found["a"], found["b"] = a, b
    return found
