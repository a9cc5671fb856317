"""Where a document of a corpus has to be: its split and its shard, from the recipe in the manifest and the id alone; in
input order its split, and its place among the others."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from refinery.transforms.core.document import hash64

Place = tuple[int, str, int]  # number of the source in the recipe, path of the file, offset in it


@dataclass(frozen=True)
class Plan:
    """What determines the position of a document, from the recipe. domains: source -> domain. one_address: whether no
    two have one address; `read_plan` leaves that to whoever asks, since stages are not known here. by_input: whether
    documents are in the order of the inputs. No id says in which shard its document is then. labelled: whether copies
    are among the documents, with labels. keeps_fields: whether a source keeps the fields
    of its records.
    """

    seed: int
    validation: float
    domains: Mapping[str, str]
    one_address: bool = False
    by_input: bool = False
    labelled: bool = False
    keeps_fields: bool = False

    def split(self, id_: bytes) -> str:
        """The split that a hash of the document's id alone chooses."""
        return "validation" if hash64("validation", id_) < self.validation * 2**64 else "train"

    def order(self, id_: bytes) -> int:
        """The document's position in shuffled order, uniform in [0, 2**64); shard k of n has the k-th n-th of it."""
        return hash64("order", self.seed, id_)

    def place(self, source: str, origin: str) -> Place:
        """The document's place in the inputs. Raises ValueError for a source or an origin that no run writes."""
        path, _, offset = origin.rpartition("@")
        return list(self.domains).index(source), path, int(offset)


def read_plan(recipe: Mapping[str, Any]) -> Plan | None:
    """What determines the position of a document, from a recipe as plain data; None if something is missing."""
    try:
        seed, validation = recipe["shards"]["seed"], recipe["shards"]["validation"]
        domains = {source["name"]: source.get("domain") or source["name"] for source in recipe["sources"]}
        keeps = any(source.get("fields") for source in recipe["sources"])
    except (KeyError, TypeError, AttributeError):
        return None
    as_input = recipe.get("layout", "shards") != "shards"  # a shard for each file, and no other split
    by_input = as_input or recipe["shards"].get("order", "shuffled") != "shuffled"
    texts = all(isinstance(text, str) for pair in domains.items() for text in pair)
    good = type(seed) is int and type(validation) in (int, float) and math.isfinite(validation)
    return (
        Plan(
            seed,
            0.0 if as_input else float(validation),
            domains,
            by_input=by_input,
            keeps_fields=keeps,
            labelled=bool(recipe.get("annotate")),
        )
        if texts and good
        else None
    )
