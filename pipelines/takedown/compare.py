"""Duplicates among duplicates: exact, then near within each source, then near across them, as in phase 2.

Those of one removed survivor are compared with each other, whatever bands they share, and with the documents of the
corpus that share one. With `verify: exact` the similarity of two texts of the group decides, too.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from refinery.pipelines.recipe.recipe import Recipe
from refinery.pipelines.takedown.kept_work import Member
from refinery.pipelines.takedown.rows import Key, Row, key_of
from refinery.transforms.core.document import Document
from refinery.transforms.dedup.near_duplicates import ANY_SOURCE, NearParams, band_hashes
from refinery.transforms.dedup.signatures import SignatureParams, shingle_hashes


@dataclass
class Rival:
    """A candidate. instead: what stands for it from now on, another rival or a document of the corpus; None where
    nothing does. reason, similarity: of that."""

    row: Row
    member: Member
    instead: "Rival | Member | None" = None
    reason: str = ""
    similarity: float = 0.0

    @property
    def key(self) -> Key:
        return key_of(self.row)

    @property
    def kept_id(self) -> bytes:
        """The id of what stands for it."""
        other = self.instead
        return other.member.id if isinstance(other, Rival) else cast(Member, other).id

    @property
    def root(self) -> "Rival":
        """The last rival of the chain of those that stand for each other."""
        here = self
        while isinstance(here.instead, Rival):
            here = here.instead
        return here


def compare(rivals: Sequence[Rival], others: Sequence[Member], recipe: Recipe) -> None:
    """Set what stands for each of `rivals`. others: of `KeptWork.neighbours`, which are kept. Cost: every rival with
    every one before it that shares a band or a survivor with it, and that stands for itself."""
    ordered = sorted(rivals, key=lambda rival: rival.member.order)
    if recipe.exact_dup:
        first: dict[bytes, Rival] = {}
        for rival in ordered:
            best = first.setdefault(rival.member.id, rival)
            if best is not rival:
                rival.instead, rival.reason, rival.similarity = best, "exact-duplicate", 1.0
    own = recipe.near_dup_in_source
    for source in sorted({rival.member.source for rival in rivals}):
        params = own.get(source, own.get(ANY_SOURCE))
        if params is not None:
            mine = [other for other in others if other.source == source]
            _near([r for r in ordered if r.member.source == source], mine, params, recipe, "near-duplicate-in-source")
    if recipe.near_dup is not None:
        _near(ordered, others, recipe.near_dup, recipe, "near-duplicate")


def _near(rivals: Iterable[Rival], others: Sequence[Member], params: NearParams, recipe: Recipe, reason: str) -> None:
    params = params.settled(recipe.signature)
    permutations = params.compared(recipe.signature.permutations)
    shape = params.layout(permutations)
    minimum = params.minimum(permutations) if params.verify == "signature" else params.candidate_minimum(permutations)
    alive = [rival for rival in rivals if rival.instead is None]
    buckets: dict[tuple[int, int], list[int]] = {}
    groups: dict[bytes, list[int]] = {}
    leaders: list[Rival | Member] = []
    signatures: list[NDArray[np.uint32]] = []

    def lead(one: Rival | Member) -> None:
        member = one.member if isinstance(one, Rival) else one
        for band in _bands(member, permutations, shape):
            buckets.setdefault(band, []).append(len(leaders))
        if isinstance(one, Rival):
            groups.setdefault(one.row["kept_id"], []).append(len(leaders))
        leaders.append(one)
        signatures.append(member.signature[:permutations])

    for other in sorted(others, key=lambda member: member.order):
        lead(other)
    for rival in alive:
        bands = _bands(rival.member, permutations, shape)
        seen = {place for band in bands for place in buckets.get(band, ())} | {*groups.get(rival.row["kept_id"], ())}
        mine = rival.member.signature[:permutations]
        for place in sorted(seen):
            equal = int(np.count_nonzero(signatures[place] == mine))
            if equal >= minimum:
                similarity = _similarity(rival, leaders[place], params, recipe.signature, equal / permutations)
                if params.verify == "signature" or similarity >= params.threshold:
                    rival.instead, rival.reason, rival.similarity = leaders[place], reason, similarity
                    break
        else:
            lead(rival)


def _bands(member: Member, permutations: int, shape: tuple[int, int]) -> list[tuple[int, int]]:
    hashes = band_hashes(member.signature[None, :permutations], *shape)[0].tolist()
    return list(enumerate(hashes))


def _similarity(
    rival: Rival, leader: Rival | Member, params: NearParams, signature: SignatureParams, estimate: float
) -> float:
    """Of two documents: the estimate, or with `verify: exact` what their texts give, where both are known."""
    texts = [
        one.document for one in (rival.member, leader.member if isinstance(leader, Rival) else leader) if one.document
    ]
    if params.verify == "signature" or len(texts) < 2:
        return estimate
    one, other = (_shingles(document, signature) for document in texts)
    union = len(np.union1d(one, other))
    return len(np.intersect1d(one, other)) / union if union else 1.0


def _shingles(document: Document, signature: SignatureParams) -> NDArray[np.uint32]:
    return np.unique(shingle_hashes(document.text, signature))
