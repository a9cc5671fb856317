"""statistics.json: what a run measured of its documents, published beside the manifest. docs/statistics.md explains it.

The model is the schema: what is written is made of it, what is read is checked by it, bounds included. So a reader
may show all of it whatever the corpus' size, and a file that somebody edited gives one clear error. No number in it
depends on clocks, workers or the order of work.
"""

from typing import Annotated, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from refinery.loader.errors import FormatError
from refinery.loader.read.corpus import Corpus

STATISTICS = "statistics.json"
MAX_BYTES = 4 << 20  # of the file: a run writes less than 1 MB

Count = Annotated[int, Field(ge=0)]
Name = Annotated[str, Field(max_length=200)]
Text = Annotated[str, Field(max_length=1000)]
Finite = Annotated[float, Field(allow_inf_nan=False)]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Total(_Model):
    """Documents, UTF-8 bytes of their texts, and tokens with BOS and EOS; null where they are not encoded yet."""

    documents: Count
    bytes: Count
    tokens: Count | None


class Value(Total):
    """One value of a category, a source or a language say; "" for documents that have none."""

    value: Name


class Category(_Model):
    """Documents by what a word says of them: "source", or a note of a stage, "language" say.

    values: most documents first. other: the sum of all further values, null if there are none. distinct: how many
    values there are, at least (exact unless `other` has values that were not counted one by one).
    """

    name: Name
    meaning: Text
    values: Annotated[tuple[Value, ...], Field(max_length=64)]
    other: Total | None
    distinct: Count


class Distribution(_Model):
    """How a number is distributed over documents. bins: [lower edge, upper edge, documents], ascending, without empty
    ones; a document is in a bin from its lower edge up to, and without, the upper edge. Numbers of 2^48 and more are in
    the last bin. quantiles: of 5, 25, 50, 75 and 95 %, each at most 1/16 too small; empty without documents.
    """

    documents: Count
    least: Finite | None
    most: Finite | None
    quantiles: Annotated[tuple[Finite, ...], Field(max_length=5)]
    bins: Annotated[tuple[tuple[Finite, Finite, Count], ...], Field(max_length=1100)]


class BySource(_Model):
    """A distribution of one source; source "" is the sum of the sources that are not counted one by one."""

    source: Name
    distribution: Distribution


class Series(_Model):
    """A number of each document: its bytes, or a note of a stage. Documents without the note are left out.

    name: "text-bytes", "text-characters", "text-lines", "token-count", "bytes-per-token", or the note's, which has no
    hyphen. unit: "bytes", "characters", "lines", "tokens", "bytes per token"; "" of a note. sources: of the largest
    sources; none where there is only one.
    """

    name: Name
    meaning: Text
    unit: Name
    all: Distribution
    sources: Annotated[tuple[BySource, ...], Field(max_length=32)]


class Host(_Model):
    """A host with its documents and bytes, each at most the point's error too large."""

    host: Name
    documents: Count
    bytes: Count


class Hosts(_Model):
    """Hosts of the documents' addresses. without_host: documents and bytes without an address.

    distinct: an estimate, which with 95 % lies from distinct_low to distinct_high; equal where it is exact. top: the
    hosts with most documents; where `exact` is false, candidates are the hosts of `sampled` documents, chosen by hash,
    and each count is too large by at most documents_error or bytes_error, with the probability `confidence`.
    """

    without_host: Total
    distinct: Count
    distinct_low: Count
    distinct_high: Count
    exact: bool
    documents_error: Count
    bytes_error: Count
    confidence: Finite
    sampled: Count
    top: Annotated[tuple[Host, ...], Field(max_length=100)]


class Artefact(_Model):
    """A sign of badly cleaned text. documents: that have it, with their bytes, of all documents of the point. sources:
    of the sources as `categories` lists them, those that have any."""

    name: Name
    meaning: Text
    documents: Count
    bytes: Count
    sources: Annotated[tuple[Value, ...], Field(max_length=64)]


class Point(_Model):
    """Documents as they pass one place of the funnel.

    name: "extracted" (behind the first stage that makes documents), "cleaned" (what phase 1 hands on), "deduplicated"
    (what phase 2 kept), "final" (texts as they go to the encoder; sources with a target are cut behind it) and
    "published" (what is in the shards). after: the stage of the funnel behind which it was measured. collected: false
    where a phase was reused from a run that did not measure; the rest is null or empty then.
    """

    name: Name
    meaning: Text
    phase: Literal["clean", "shards"]
    after: Name
    collected: bool
    total: Total | None
    categories: Annotated[tuple[Category, ...], Field(max_length=32)]
    series: Annotated[tuple[Series, ...], Field(max_length=256)]
    hosts: Hosts | None
    artefacts: Annotated[tuple[Artefact, ...], Field(max_length=64)]


class Cluster(_Model):
    """Documents that near-duplicate detection joined in a scope, before it chose which of them stay.

    components: groups of documents that are linked, the largest of `largest` documents.
    """

    scope: Name
    documents: Count
    components: Count
    largest: Count


class ShardTest(_Model):
    """Whether the shards of each split and domain, and the splits of each domain, hold the values of a category in the
    same shares: Pearson's chi-squared test of independence, summed over these.

    category: a name of `categories`, or "length" (of texts, in bins). p_value: how often chance alone gives a statistic
    as large: from 0.01 on, nothing speaks against shards that are alike. documents: that were tested. Values that would
    be expected fewer than 5 times in a shard are taken together. degrees_of_freedom 0: nothing to compare.
    """

    category: Name
    documents: Count
    statistic: Finite
    degrees_of_freedom: Count
    p_value: Finite


class Shards(_Model):
    """Are the shards alike? shards: of the corpus; tested: of these, at most 1,000, chosen by hash, that have
    documents. tokens, documents: how these are distributed over the tested shards of the split "train"."""

    shards: Count
    tested: Count
    tests: Annotated[tuple[ShardTest, ...], Field(max_length=32)]
    documents: Distribution
    tokens: Distribution


class Statistics(_Model):
    """All of statistics.json. shards: null where they were not collected."""

    kind: Literal["refinery-statistics"] = "refinery-statistics"
    schema_version: Literal[1] = 1
    points: Annotated[tuple[Point, ...], Field(max_length=16)]
    clusters: Annotated[tuple[Cluster, ...], Field(max_length=16)]
    shards: Shards | None

    def point(self, name: str) -> Point | None:
        """The point of that name if it was collected."""
        return next((point for point in self.points if point.name == name and point.collected), None)


def dump_statistics(statistics: Statistics) -> bytes:
    """Canonical JSON: sorted keys, no spaces, a newline at the end."""
    return orjson.dumps(statistics.model_dump(mode="json"), option=orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE)


def parse_statistics(data: bytes, what: str = STATISTICS) -> Statistics:
    """Inverse of `dump_statistics`. Raises FormatError, a line, for anything that no run writes."""
    try:
        return Statistics.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "JSON"
        raise FormatError(f"{what}: {where}: {first['msg']}") from None


def read_statistics(corpus: Corpus) -> Statistics | None:
    """The statistics of a corpus; None for one without, of an older version or adopted.

    Raises FormatError for a file that is not the one the manifest lists, or that no run writes.
    """
    if not corpus.lists(STATISTICS):
        return None
    return parse_statistics(corpus.read(STATISTICS, MAX_BYTES), corpus.store.url(STATISTICS))
