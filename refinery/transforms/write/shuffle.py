"""The order of a corpus: every encoded document gets a position in its domain's order and goes to its shard.

The shuffled order is arithmetic: `order_key(seed, id)` is uniform over 64 bits; shard k of n holds the k-th of n equal
parts of that range, in key order. So the concatenation of a domain's shards is its global order, and no document's
position depends on workers, bundles or the other documents (except through the number of shards). Input order is in
input_order.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from refinery.transforms.core.document import hash64
from refinery.transforms.core.params import Params, Positive


class ShardParams(Params):
    """How the corpus is cut and ordered."""

    LATER: ClassVar[tuple[str, ...]] = ("order",)

    order: Literal["shuffled", "input"] = "shuffled"
    """`shuffled`: by a hash of `seed` and the id; `input`: as in the inputs, source by source as the recipe lists them,
    file by file in order of path, for a `writer` of texts"""
    seed: int = 1
    """of the shuffled order"""
    target_bytes: Positive = 256 << 20
    """UTF-8 text of deduplicated documents that one shard holds, about (256 MiB of text make a .bin of about 120 MB at
    16-bit ids)"""
    validation: Annotated[float, Field(ge=0, lt=1)] = 0.01
    """share of documents that become the validation split, chosen by a hash of the id alone, so a document never
    changes sides when data is added or the seed changes"""


def order_key(seed: int, id_: bytes) -> int:
    """The document's position in the global order, uniform in [0, 2**64)."""
    return hash64("order", seed, id_)


@dataclass(frozen=True)
class ShuffledPlaces:
    """The position and the shard of each document in shuffled order. counts: shards of each "split/domain"."""

    seed: int
    counts: Mapping[str, int]

    def order(self, doc: Any) -> int:
        """The position of an encoded document."""
        return order_key(self.seed, doc.id)

    def index(self, place: str, order: int) -> int:
        """The number of its shard among those of a "split/domain"."""
        return order * self.counts[place] >> 64


def split_of(id_: bytes, validation: float) -> str:
    """ "validation" for the chosen share of ids, else "train". Depends on the id alone."""
    return "validation" if hash64("validation", id_) < validation * 2**64 else "train"


def shard_counts(kept: Mapping[str, Mapping[str, int]], params: ShardParams) -> dict[str, int]:
    """Number of shards for every "split/domain", from the deduplicated bytes of each domain.

    kept: {domain: {"documents": n, "bytes": n}}. A domain without documents gets no shard.
    """
    counts = {}
    for domain, total in sorted(kept.items()):
        if not total["documents"]:
            continue
        counts[f"train/{domain}"] = max(1, -(-round(total["bytes"] * (1 - params.validation)) // params.target_bytes))
        if params.validation:
            counts[f"validation/{domain}"] = max(
                1, -(-round(total["bytes"] * params.validation) // params.target_bytes)
            )
    return counts


def shard_key(split_domain: str, index: int) -> bytes:
    """The shuffle's key of a shard; `parse_shard_key` is its inverse."""
    return f"{split_domain}/{index}".encode()


def parse_shard_key(key: bytes) -> tuple[str, str, int]:
    """(split, domain, index) of a shard key."""
    split, domain, index = key.decode().split("/")
    return split, domain, int(index)
