"""The segments of a view: those of whole domains, and whether given ones fit its corpora and its counts."""

from collections.abc import Iterator, Sequence

import numpy as np

from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import SPLITS, Manifest
from refinery.loader.format.selection import SEGMENT, Table
from refinery.loader.format.shard_list import as_shards
from refinery.loader.format.view import View, ViewDomain
from refinery.loader.order.arrays import I64


def whole_segments(view: View, manifests: Sequence[Manifest]) -> Table:
    """SEGMENT [n]: of a view without a selection, whose documents are all delivered equally often."""
    first, documents, tokens = _counts(view, manifests)
    found = [
        (s, d, turn, corpus, shard, 0, documents[first[corpus] + shard], tokens[first[corpus] + shard])
        for s, split in enumerate(SPLITS)
        for d, domain in enumerate(view.domains)
        for turn in range(1, domain.splits[split].turns + 1 if split in domain.splits else 1)
        for corpus, shard in shards_of(domain, split, manifests)
    ]
    return np.array(found, SEGMENT)


def shards_of(domain: ViewDomain, split: str, manifests: Sequence[Manifest]) -> Iterator[tuple[int, int]]:
    """(corpus, shard) of the shards with tokens that a domain may draw from, in the order of segments."""
    for corpus, manifest in enumerate(manifests):
        names = {name for number, name in domain.parts if number == corpus}
        shards = as_shards(manifest.shards)
        for run, first in zip(shards.runs, shards.ends.tolist(), strict=False):
            if run.split == split and run.domain in names:
                yield from ((corpus, first + shard) for shard in np.flatnonzero(run.counts("tokens")).tolist())


def _counts(view: View, manifests: Sequence[Manifest]) -> tuple[I64, I64, I64]:
    """The place of each corpus' first shard among all, and the documents and tokens of all: 0 where no domain of the
    view draws from a shard's domain, whose listings are not read."""
    corpora = [as_shards(manifest.shards) for manifest in manifests]
    drawn = [{name for each in view.domains for c, name in each.parts if c == corpus} for corpus in range(len(corpora))]
    first: I64 = np.cumsum([0, *(len(shards) for shards in corpora)])
    none = np.empty(0, np.int64)
    documents, tokens = (
        np.concatenate([none, *(shards.counts(name, names) for shards, names in zip(corpora, drawn, strict=True))])
        for name in ("documents", "tokens")
    )
    return first, documents, tokens


def check_segments(view: View, manifests: Sequence[Manifest], segments: Table, what: str) -> None:
    """Raise FormatError, naming `what`, unless every segment is of a shard of its domain and fits into it, and each
    domain's turns have the documents and tokens of its `times`. Cost: vectorised; a loop over shards and domains."""
    split, domain, turn = (segments[name].astype(np.int64) for name in ("split", "domain", "turn"))
    corpus, shard = (segments[name].astype(np.int64) for name in ("corpus", "shard"))
    if (corpus >= len(manifests)).any() or (domain >= len(view.domains)).any() or (split >= len(SPLITS)).any():
        raise FormatError(f"{what}: segments of a split, domain or corpus that the view does not have")
    first, documents, tokens = _counts(view, manifests)
    number = first[corpus] + shard
    if (number >= first[corpus + 1]).any():
        raise FormatError(f"{what}: segments of a shard that its corpus does not have")
    allowed = np.zeros((len(SPLITS), len(view.domains), len(tokens)), np.bool_)
    for s, name in enumerate(SPLITS):
        for d, each in enumerate(view.domains):
            allowed[s, d, [first[c] + i for c, i in shards_of(each, name, manifests)]] = True
    if not allowed[split, domain, number].all():
        raise FormatError(f"{what}: a segment of a shard from a split or domain that its own does not draw from")
    for key, most in (("documents", documents), ("tokens", tokens)):
        count, whole = segments[key].astype(np.int64), segments["runs"] == 0
        if (count > most[number]).any() or (count != most[number])[whole].any():
            raise FormatError(
                f"{what}: a segment with more {key} than its shard, or a whole one with a different number"
            )
    for s, name in enumerate(SPLITS):
        for d, each in enumerate(view.domains):
            mine = (split == s) & (domain == d)
            _check_turns(each, name, turn[mine], segments[mine], f"{what}: domain {each.name!r}, {name}")


def _check_turns(domain: ViewDomain, split: str, turn: Table, segments: Table, where: str) -> None:
    """Turn k has what is delivered k times or more."""
    times = domain.splits[split].times if split in domain.splits else ()
    turns = times[-1][0] if times else 0
    if turn.max(initial=0) != turns:
        raise FormatError(f"{where}: {int(turn.max(initial=0))} turns found, {turns} expected from the manifest")
    for i, key in ((1, "documents"), (2, "tokens")):
        found = np.bincount(turn, weights=segments[key].astype(np.float64), minlength=turns + 1)[1:]
        expected = np.zeros(turns + 1)
        for row in times:
            expected[: row[0]] += row[i]
        if (found != expected[:turns]).any():
            k = int(np.argmax(found != expected[:turns]))
            raise FormatError(f"{where}: {found[k]:.0f} {key} in turn {k + 1} found, {expected[k]:.0f} expected")
