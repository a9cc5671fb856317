"""The declaration of a pass that cuts parts out of documents: all that the three phases must know of it, in one file.

    LINES = CuttingPass(
        name="lines",                                   # the stage of phase 3 that cuts
        ...
        judge=cut_lines,
        hashed=Hashed(name="lines", columns=(HashedColumn("lines", pa.list_(pa.uint64()), line_column),)),
        find="refinery.transforms.dedup.line_duplicates:count_lines",
        cuts=LINE_CUTS,
    )

Phase 1 writes the `hashed` columns into signatures/. Phase 2 looks for what is to be cut among the documents that are
kept (`find`), and writes it into a column of verdicts/. Phase 3 notes it in the document (`cuts`), and the stage cuts.

This module needs no Beam: `find` is imported where a graph is built.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from refinery.transforms.core.document import Document
from refinery.transforms.core.stage import P, Stage
from refinery.transforms.dedup.reference_corpora import Parts
from refinery.transforms.dedup.signatures import Key, SignatureParams

PLACE = re.compile(r"[\w.]+:\w+")
OWN_TAG = 128  # kind of record batches from which on those of passes from elsewhere are


@dataclass(frozen=True)
class HashedColumn:
    """A column of signatures/. make: called as make(documents, signature) for the documents of a row group; returns one
    value for each, of `type`. It runs in workers, so it is a function of a module."""

    name: str
    type: pa.DataType
    make: Callable[[Sequence[Document], SignatureParams], pa.Array]

    def column(self, docs: Sequence[Document], signature: SignatureParams) -> pa.Array:
        """The values of these documents. Raises ValueError for another number of them, nulls, or another type."""
        made = self.make(docs, signature)
        if made.type != self.type or len(made) != len(docs) or made.null_count:
            raise ValueError(
                f"column {self.name}: {len(made)} values of {made.type} with {made.null_count} nulls made, "
                f"{len(docs)} of {self.type} are needed"
            )
        return made


@dataclass(frozen=True, kw_only=True)
class Hashed:
    """What phase 1 hashes for a stage of phase 2.

    name: fingerprints say `hash_NAME` where it is made. scheme: of the hashes, raised whenever they change; "" for the
    first one. keyed_scheme: the same under a secret, where this changes them. told_off: whether fingerprints also say
    that it is not made, as those of the first runs do.
    """

    name: str
    columns: tuple[HashedColumn, ...]
    scheme: str = ""
    keyed_scheme: str = ""
    told_off: bool = False

    def made(self, docs: Sequence[Document], signature: SignatureParams) -> dict[str, pa.Array]:
        """Its columns for these documents, by name."""
        return {column.name: column.column(docs, signature) for column in self.columns}

    def told(self, keyed: bool) -> str | bool:
        """What fingerprints say of it. keyed: whether there is a secret."""
        return (keyed and self.keyed_scheme) or self.scheme or True


@dataclass(frozen=True, kw_only=True)
class Cuts:
    """What phase 2 found to be cut, on its way to the document.

    tag, dtype: kind (OWN_TAG to 255 for passes from elsewhere) and rows of its record batches. A row is `locator`
    (uint64) and the numbers (uint32) that say what of the document is cut: that of a line, or begin and end of a span.
    column: of verdicts/, list<uint32>, the numbers of all rows of a document, ascending. note: present on a kept
    document with rows until they are cut. The numbers of a row are joined by "-", rows by ",", as in "3,4,17" and
    "120-980,1400-2200".
    """

    column: str
    note: str
    dtype: np.dtype[Any]
    tag: int = OWN_TAG

    def __post_init__(self) -> None:
        fields = [(name, self.dtype[name].str) for name in self.dtype.names or ()]
        if fields[:1] != [("locator", "<u8")] or not fields[1:] or {kind for _, kind in fields[1:]} != {"<u4"}:
            raise ValueError(f"cuts {self.column}: {self.dtype} given, locator (<u8) and numbers (<u4) are needed")
        if not 0 < self.tag < 256:
            raise ValueError(f"cuts {self.column}: tag {self.tag} given, 1 to 255 is allowed")

    @property
    def numbers(self) -> tuple[str, ...]:
        """Names of the numbers of a row."""
        return (self.dtype.names or ())[1:]

    def noted(self, values: Sequence[int]) -> str:
        """The note of a document whose rows have these numbers, one row behind the other."""
        width = len(self.numbers)
        rows = (values[at : at + width] for at in range(0, len(values), width))
        return ",".join("-".join(map(str, row)) for row in rows)

    def read(self, meta: Mapping[str, Any]) -> list[tuple[int, ...]]:
        """The rows that a document's meta notes; none where it has no note."""
        note = str(meta.get(self.note, ""))
        return [tuple(map(int, row.split("-"))) for row in note.split(",")] if note else []


@dataclass(frozen=True, kw_only=True)
class ComparingStage(Stage[P]):
    """A stage that phase 2 decides for all documents together, by columns that phase 1 hashes."""

    hashed: Hashed


@dataclass(frozen=True)
class Compared:
    """What is compared in phase 2. sources: names of all, sorted. parts: numbering of the signatures/ parts.
    partitions: as in `Deduplicate`. key: of hashes; workers call it."""

    sources: tuple[str, ...]
    parts: Parts
    partitions: int
    key: Key


@dataclass(frozen=True, kw_only=True)
class CuttingPass(ComparingStage[P]):
    """A stage of phase 3 that cuts what phase 2 found in a document and others.

    judge: removes `cuts.note` from the meta of what it keeps. hashed: its columns in signatures/. find: "module:NAME"
    of a function, called as find(cutting_pass, params, compared) where a graph is built. It returns a PTransform:
    (headers of parts, removals and copies by part, ...) -> by part, batches of `cuts`, for documents that are kept
    alone. keeps: notes of further cuts whose numbers stay true in the text that it leaves.
    """

    find: str
    cuts: Cuts
    keeps: tuple[str, ...] = ()

    by_place: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.judge is None or self.params is None:
            raise ValueError(f"stage {self.name}: no judge or params given, a pass that cuts needs both")
        if not PLACE.fullmatch(self.find):
            raise ValueError(f"stage {self.name}: find {self.find!r} given, module:NAME is allowed")
        if (self.cuts.note, str) not in [(note.name, note.type) for note in self.notes]:
            raise ValueError(f"stage {self.name}: no note {self.cuts.note!r} given, the text that says what is cut")

    def transform(self, params: Any, compared: Compared) -> Any:
        """The PTransform that finds what is cut. Imports Beam. Raises ValueError where `find` names no function."""
        module, _, name = self.find.partition(":")
        try:
            make = getattr(import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise ValueError(f"find {self.find!r} given: {error}") from error
        return make(self, params, compared)


def check_together(stages: Sequence[ComparingStage[Any]]) -> None:
    """Whether these stages can be on together, given in the order of the lane. Raises ValueError "SECTION: …" unless
    names of columns and kinds of batches tell them apart, and cuts leave the places of later ones as they were."""
    for one, other in combinations(stages, 2):
        both = {column.name for column in one.hashed.columns} & {column.name for column in other.hashed.columns}
        if both:
            raise ValueError(f"{other.key}: given with {one.key}, which has a column {min(both)!r}, too")
        if not isinstance(one, CuttingPass) or not isinstance(other, CuttingPass):
            continue
        if other.cuts.note not in one.keeps:
            raise ValueError(
                f"{other.key}: given with {one.key}, which changes the text before it cuts; one of both is allowed"
            )
        if one.cuts.tag == other.cuts.tag or one.cuts.column == other.cuts.column:
            raise ValueError(f"{other.key}: given with {one.key}, whose cuts have the same tag or column")
