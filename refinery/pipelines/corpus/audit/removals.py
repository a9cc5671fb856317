"""Whether a removal holds: the document kept instead is there, comes first in rank, and is similar enough.

The similarity is computed again as the run computed it, by signatures or exactly, from the texts of both records.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from refinery.loader.format.removals import REFERENCE, URL_DUPLICATE
from refinery.pipelines.corpus.audit.outcome import Later
from refinery.pipelines.corpus.audit.recorded import AuditedRun
from refinery.pipelines.corpus.audit.sample import Row
from refinery.pipelines.published.find_rows import Wanted, find_kept, find_removed
from refinery.pipelines.recipe.recipe import Recipe
from refinery.transforms.core.address.normalise import address_hash
from refinery.transforms.core.document import Document
from refinery.transforms.core.safe_text import printable
from refinery.transforms.dedup.near_duplicates import ANY_SOURCE, NearParams
from refinery.transforms.dedup.records.rank import rank_key
from refinery.transforms.dedup.signatures import compute_signatures, run_key, shingle_set, word_key

EXACT, IN_SOURCE, NEAR = "exact-duplicate", "near-duplicate-in-source", "near-duplicate"
AT_ONCE = 10_000  # ids that are looked up together

U32 = npt.NDArray[np.uint32]


@dataclass
class Spill:
    """Arrays of numbers in a file, by place and length."""

    path: Path

    def add(self, values: U32) -> tuple[str, int, int]:
        """Where they are now."""
        with self.path.open("ab") as stream:
            start = stream.tell()
            stream.write(values.tobytes())
        return str(self.path), start, len(values)


def read_spilled(place: tuple[str, int, int]) -> U32:
    """What `Spill.add` wrote."""
    path, start, length = place
    return np.fromfile(path, np.uint32, length, offset=start)


def near_params(row: Mapping[str, Any], recipe: Recipe) -> NearParams | None:
    """The parameters by which a near duplicate was removed; None where the recipe has none, or it is no such row."""
    found: NearParams | None = None
    if row["reason"] == NEAR:
        found = recipe.near_dup
    elif row["reason"] == IN_SOURCE:
        found = recipe.near_dup_in_source.get(row["source"], recipe.near_dup_in_source.get(ANY_SOURCE))
    return found and found.settled(recipe.signature)


def features_of(text: str, row: Mapping[str, Any], run: AuditedRun) -> U32:
    """What decides how similar a text is to another one, for a removal: its signature, or its set of shingles."""
    recipe = run.recipe
    params = near_params(row, recipe)
    if params is None:
        return np.empty(0, np.uint32)
    if params.verify == "exact":
        key = word_key(recipe.signature) or run_key(run.run["phases"]["clean"])
        return shingle_set(text, recipe.signature, key)
    values: U32 = compute_signatures([text], recipe.signature)[0][: params.compared(recipe.signature.permutations)]
    return values


def similarity_of(one: U32, other: U32, params: NearParams) -> float:
    """As deduplication computes it."""
    if params.verify == "exact":
        shared = len(np.intersect1d(one, other, assume_unique=True))
        both = len(one) + len(other) - shared
        return shared / both if both else 1.0
    return float((one == other).sum()) / len(one) if len(one) else 0.0


def is_enough(similarity: float, length: int, params: NearParams) -> bool:
    """Whether it reaches the threshold. length: of the signatures."""
    if params.verify == "exact":
        return similarity >= params.threshold - 1e-9
    return round(similarity * length) >= params.minimum(length)


@dataclass(frozen=True)
class Survivor:
    """The document kept instead, as it is published. is_kept: in the corpus, not removed itself."""

    source: str
    origin: str
    is_kept: bool


def survivors(run: AuditedRun, rows: Iterable[Row], later: Iterable[Later]) -> Iterator[tuple[Row, Survivor | None]]:
    """Each removal with the document kept instead; None where nothing that is published says which record it was, nor
    `later`, what sampled documents a later stage loses.

    Cost: for each id a row group of one shard of every domain, and of one file of removals where it is not kept.
    """
    by_id: dict[str, Survivor] = {}
    by_address: dict[tuple[str, bytes], Survivor] = {}
    for each in later:
        survivor = Survivor(each.source, each.origin, False)
        by_id.setdefault(each.id, survivor)
        by_address.setdefault((each.id, each.address), survivor)
    batch: list[Row] = []
    for row in rows:
        batch.append(row)
        if len(batch) >= AT_ONCE:
            yield from _survivors(run, batch, by_id, by_address)
            batch = []
    yield from _survivors(run, batch, by_id, by_address)


def _survivors(
    run: AuditedRun,
    rows: list[Row],
    lost: Mapping[str, Survivor],
    lost_at: Mapping[tuple[str, bytes], Survivor],
) -> Iterator[tuple[Row, Survivor | None]]:
    """An id is that of a text, and copies of one text may have won at several addresses before exact duplicates were
    compared: the document kept for an address is the one that has it, be it removed itself by now."""
    ids = frozenset(bytes.fromhex(row["kept_id"]) for row in rows if not row["scope"].startswith(REFERENCE))
    found: dict[str, Survivor] = {}
    at: dict[tuple[str, bytes], Survivor] = {}  # by address too
    for _, _, row in find_kept(run.corpus, Wanted(id=ids)):
        survivor = Survivor(row["source"], row["origin"], True)
        found[row["id"].hex()] = at[row["id"].hex(), address_hash(row["url"])] = survivor
    rest = {id_ for id_ in ids if id_.hex() not in found}
    rest |= {
        bytes.fromhex(row["kept_id"])
        for row in rows
        if row["reason"] == URL_DUPLICATE and (row["kept_id"], address_hash(row["url"])) not in at
    }
    for row in find_removed(run.corpus, Wanted(id=frozenset(rest))):
        survivor = Survivor(row["source"], row["origin"], False)
        if row["reason"] != URL_DUPLICATE:
            at.setdefault((row["id"].hex(), address_hash(row["url"])), survivor)
        if row["reason"] not in (URL_DUPLICATE, EXACT):  # those speak of other documents of this id
            found.setdefault(row["id"].hex(), survivor)
    for row in rows:
        stands = found.get(row["kept_id"]) or lost.get(row["kept_id"])
        if row["reason"] == URL_DUPLICATE:
            others = stands if run.recipe.exact_dup else None  # else several documents with one text may be kept
            place = row["kept_id"], address_hash(row["url"])
            stands = at.get(place) or lost_at.get(place) or others
        yield row, None if row["scope"].startswith(REFERENCE) else stands


def problem_of(row: Row, survivor: Document, run: AuditedRun) -> str:
    """Why a removal does not hold; "" where it does. survivor: the document kept instead, from its record."""
    recipe, reason = run.recipe, row["reason"]
    if survivor.id.hex() != row["kept_id"]:
        return f"the record of the document kept gives the document {survivor.id.hex()}"
    if (survivor.source, printable(survivor.origin)) == (row["source"], row["origin"]):
        return "the document kept is the removed one itself"
    if reason == URL_DUPLICATE:
        same = address_hash(survivor.url) == address_hash(row["url"])
        return "" if same and row["similarity"] == 0 else f"the document kept has the address {survivor.url!r:.100}"
    rank = rank_key(survivor, recipe.source_facts()[survivor.source].priority, recipe.rank)
    if (rank, row["kept_id"]) > (bytes.fromhex(row["rank"]), row["id"]):
        return "the document kept has a lower rank than the removed one"
    if reason == EXACT:
        equal = row["id"] == row["kept_id"] and row["similarity"] == 1
        return "" if equal else "not a copy: ids or similarity differ"
    params = near_params(row, recipe)
    if params is None:
        return f"the recipe has no such stage: {reason!r:.60}"
    own = read_spilled(row["features"])
    similarity = similarity_of(own, features_of(survivor.text, row, run), params)
    if not is_enough(similarity, len(own), params):
        return f"similarity {similarity:.4f}, below {params.threshold}"
    if np.float32(similarity) != np.float32(row["similarity"]):
        return f"similarity {similarity:.6f}, {row['similarity']:.6f} published"
    return ""
