"""dropped.json: examples of what a run dropped for each reason, without their texts, and what was measured of it.

The model is the schema: what is written is made of it, what is read is checked by it, bounds included. No number in it
depends on clocks, workers or the order of work.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from refinery.loader.errors import FormatError
from refinery.loader.read.corpus import Corpus
from refinery.transforms.core.histogram import lower_edge
from refinery.transforms.core.safe_text import printable
from refinery.transforms.statistics.bins import Bins
from refinery.transforms.statistics.dropped import EXAMPLES, KIND, LIMITS, Dropped, unpack_dropped
from refinery.transforms.statistics.keyed import Keyed, add_numbers

DROPPED = "dropped.json"
MAX_BYTES = 16 << 20  # of the file: 20 documents of a reason take some 6 KB, with long addresses 50 KB
VALUES = 32  # of a category
Phase = Literal["clean", "shards"]
PHASES: tuple[Phase, ...] = (
    "clean",
    "shards",
)  # that record what they dropped; the removals are with phase 3

Count = Annotated[int, Field(ge=0, lt=1 << 63)]
Whole = Annotated[int, Field(ge=-(1 << 53), le=1 << 53)]
Name = Annotated[str, Field(max_length=200)]
Finite = Annotated[float, Field(allow_inf_nan=False)]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Measured(_Model):
    """What decided. value: a number, or a word. limit: the threshold beside it; null where there is none."""

    name: Name
    value: Finite | Whole | Name
    limit: Finite | None


class DroppedDocument(_Model):
    """hash: by which it was chosen. size: bytes of its text, or of its content before there was a text; 0: unknown.
    found: what the stage found, by name."""

    hash: Annotated[str, Field(pattern="^[0-9a-f]{16}$")]
    source: Annotated[str, Field(max_length=1000)]
    url: Annotated[str, Field(max_length=1000)]
    origin: Annotated[str, Field(max_length=4000)]
    size: Count
    found: Annotated[str, Field(max_length=1000)]
    values: Annotated[tuple[Measured, ...], Field(max_length=256)]


class DroppedReason(_Model):
    """The documents of a reason with the smallest hashes, ascending."""

    stage: Name
    reason: Name
    documents: Annotated[tuple[DroppedDocument, ...], Field(max_length=EXAMPLES)]


class DroppedValue(_Model):
    """Dropped documents and their bytes with one value of a category; "" for those without."""

    value: Name
    documents: Count
    bytes: Count


class DroppedCategory(_Model):
    """What a stage dropped, by a word: most documents first. other: the sum of all further values."""

    stage: Name
    name: Name
    values: Annotated[tuple[DroppedValue, ...], Field(max_length=VALUES)]
    other: DroppedValue | None


class DroppedScore(_Model):
    """How a number that a stage measured is distributed over what it dropped. bins: [lower edge, upper edge,
    documents], as those of statistics.json. limits: thresholds that it was held to, ascending."""

    stage: Name
    name: Name
    limits: Annotated[tuple[Finite, ...], Field(max_length=LIMITS)]
    bins: Annotated[tuple[tuple[Finite, Finite, Count], ...], Field(max_length=1100)]


class DroppedFile(_Model):
    """All of dropped.json. phases: those that recorded what they dropped; a phase that was reused from a run of an
    older version is not among them."""

    kind: Literal["refinery-dropped"] = "refinery-dropped"
    schema_version: Literal[1] = 1
    phases: Annotated[tuple[Phase, ...], Field(max_length=2)]
    reasons: Annotated[tuple[DroppedReason, ...], Field(max_length=4000)]
    categories: Annotated[tuple[DroppedCategory, ...], Field(max_length=4000)]
    scores: Annotated[tuple[DroppedScore, ...], Field(max_length=4000)]


def build_dropped(reports: Mapping[str, Mapping[str, Any]]) -> DroppedFile:
    """From the phases' reports, by name. Pure: the same reports give the same file. If there are very many reasons,
    each has fewer examples, which keeps the file below MAX_BYTES."""
    total = Dropped()
    phases = tuple(phase for phase in PHASES if KIND in reports[phase])
    for phase in phases:
        total.merge(unpack_dropped(reports[phase][KIND]))
    for examples in (EXAMPLES, EXAMPLES // 4, 1):
        found = _built(total, phases, examples)
        if len(dump_dropped(found)) <= MAX_BYTES:
            return found
    return _built(total, phases, 0)


def joined_dropped(first: DroppedFile, second: DroppedFile) -> DroppedFile:
    """What two jobs dropped, at different stages. Fewer examples of each reason where the file would be too large."""

    def both(kind: str, *key: str) -> tuple[Any, ...]:
        return tuple(
            sorted((*getattr(first, kind), *getattr(second, kind)), key=lambda each: [getattr(each, n) for n in key])
        )

    joined = DroppedFile(
        phases=tuple(phase for phase in PHASES if phase in (*first.phases, *second.phases)),
        reasons=both("reasons", "stage", "reason"),
        categories=both("categories", "stage", "name"),
        scores=both("scores", "stage", "name"),
    )
    for most in (EXAMPLES, EXAMPLES // 4, 1):
        found = _with_examples(joined, most)
        if len(dump_dropped(found)) <= MAX_BYTES:
            return found
    return _with_examples(joined, 0)


def _with_examples(found: DroppedFile, most: int) -> DroppedFile:
    cut = tuple(reason.model_copy(update={"documents": reason.documents[:most]}) for reason in found.reasons)
    return found.model_copy(update={"reasons": cut})


def _built(total: Dropped, phases: tuple[Phase, ...], examples: int) -> DroppedFile:
    return DroppedFile(
        phases=phases,
        reasons=tuple(
            DroppedReason(
                stage=stage,
                reason=reason,
                documents=tuple(_document(number, row) for number, row in sorted(rows.items())[:examples]),
            )
            for (stage, reason), rows in sorted(total.examples.items())
        ),
        categories=tuple(
            _category(stage, name, keyed)
            for stage, groups in sorted(total.categories.items())
            for name, keyed in sorted(groups.items())
        ),
        scores=tuple(
            _score(stage, name, keyed, total.limits.get(stage, {}).get(name, ()))
            for stage, scores in sorted(total.scores.items())
            for name, keyed in sorted(scores.items())
        ),
    )


def _document(number: int, row: list[Any]) -> DroppedDocument:
    source, url, origin, size, found, values = row
    measured = tuple(Measured(name=name, value=value, limit=limit) for name, value, limit in values)
    return DroppedDocument(
        hash=f"{number:016x}", source=source, url=url, origin=origin, size=size, found=found, values=measured
    )


def _category(stage: str, name: str, keyed: Keyed[list[int]]) -> DroppedCategory:
    order = sorted(keyed.sums.items(), key=lambda entry: (-entry[1][0], -entry[1][1], entry[0]))
    rest = [0, 0, 0]
    for sums in [sums for _, sums in order[VALUES:]] + ([] if keyed.rest is None else [keyed.rest]):
        add_numbers(rest, sums)
    values = [DroppedValue(value=printable(key), documents=sums[0], bytes=sums[1]) for key, sums in order[:VALUES]]
    other = DroppedValue(value="", documents=rest[0], bytes=rest[1]) if rest[0] else None
    return DroppedCategory(stage=stage, name=name, values=tuple(values), other=other)


def _score(stage: str, name: str, keyed: Keyed[Bins], limits: Iterable[float]) -> DroppedScore:
    bins = Bins()
    for each in (*keyed.sums.values(), *([keyed.rest] if keyed.rest else ())):
        bins.merge(each)
    edges = tuple(
        (lower_edge(place) if place else min(0.0, float(bins.least)), lower_edge(place + 1), documents)
        for place, documents in sorted(bins.counts.items())
    )
    return DroppedScore(stage=stage, name=name, limits=tuple(sorted(limits)), bins=edges)


def dump_dropped(found: DroppedFile) -> bytes:
    """Canonical JSON: sorted keys, no spaces, a newline at the end."""
    return orjson.dumps(found.model_dump(mode="json"), option=orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE)


def parse_dropped(data: bytes, what: str = DROPPED) -> DroppedFile:
    """Inverse of `dump_dropped`. Raises FormatError, a line, for anything that no run writes."""
    try:
        return DroppedFile.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "JSON"
        raise FormatError(f"{what}: {where}: {first['msg']}") from None


def read_dropped(corpus: Corpus) -> DroppedFile | None:
    """The file of a corpus; None for one without: of an older version, adopted, or after a takedown.

    Raises FormatError if the file differs from the one that the manifest lists, or from what a run writes.
    """
    if not corpus.lists(DROPPED):
        return None
    return parse_dropped(corpus.read(DROPPED, MAX_BYTES), corpus.store.url(DROPPED))
