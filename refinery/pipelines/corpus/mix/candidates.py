"""The documents that a domain of a view may take: one read of the provenance's columns, kept as numbers in a folder."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import Manifest, ShardEntry
from refinery.loader.order.order import mix, round_keys
from refinery.loader.read.corpus import Corpus
from refinery.pipelines.corpus.mix.recipe import MixDomainParams, UpsampleParams
from refinery.transforms.core.address.host import host_of
from refinery.transforms.core.data_text.plain_yaml import RecipeError
from refinery.transforms.core.document import hash64
from refinery.transforms.filter.rules.expression import ExpressionError, Rule, column_types, compile_rule

Corpora = Sequence[Corpus]
Table = npt.NDArray[Any]

# A candidate: its number in the shard, its first token, its tokens, hash of the id, hash of the host (0 without a cap),
# the value of the column that it is upsampled by (NaN without), and its bin.
CANDIDATE = np.dtype(
    [
        ("document", "<i8"),
        ("start", "<i8"),
        ("tokens", "<i8"),
        ("hash", "<u8"),
        ("host", "<u8"),
        ("value", "<f8"),
        ("bin", "<u2"),
    ]
)


@dataclass(frozen=True)
class Part:
    """The candidates of a shard, in a file. corpus, shard: places in the view's corpora and in its manifest."""

    corpus: int
    shard: int
    entry: ShardEntry
    path: Path

    def read(self) -> Table:
        found: Table = np.fromfile(self.path, CANDIDATE)
        return found


class Chooser:
    """What a domain needs to know of a document. Raises RecipeError for columns that its corpora do not have."""

    def __init__(self, domain: MixDomainParams, seed: int, split: str) -> None:
        self._domain, self._is_planned = domain, split == "train"
        self._keys = round_keys("view", seed, domain.name)
        self._rules: dict[pa.Schema, Rule | None] = {}

    @property
    def upsample(self) -> UpsampleParams | None:
        return self._domain.upsample if self._is_planned else None

    @property
    def is_capped(self) -> bool:
        return self._is_planned and self._domain.per_host is not None

    def columns(self, manifest: Manifest, name: str) -> list[str]:
        """The columns that are read. name: the corpus', for messages."""
        rule = self._rule(manifest, name)
        found = {"id", *(rule.names if rule else ())}
        if self.is_capped:
            found.add("url")
        schema = manifest.row_schema
        if self.upsample is not None:
            column = self.upsample.column
            known = [each.name for each in schema if pa.types.is_floating(each.type) or pa.types.is_integer(each.type)]
            if column not in known:
                raise RecipeError(
                    f"domains: {self._domain.name}: upsample: column {column!r:.80} given, of corpus {name!r} "
                    f"{', '.join(known)} are allowed"
                )
            found.add(column)
        return [each for each in schema.names if each in found]

    def _rule(self, manifest: Manifest, name: str) -> Rule | None:
        if not self._domain.where:
            return None
        schema = manifest.row_schema
        if schema not in self._rules:
            try:
                self._rules[schema] = compile_rule(self._domain.where, column_types(schema))
            except ExpressionError as error:
                raise RecipeError(f"domains: {self._domain.name}: where: of corpus {name!r}: {error}") from None
        return self._rules[schema]

    def choose(self, table: pa.Table, manifest: Manifest, name: str) -> Table:
        """CANDIDATE [n] of those rows of a table that the rule takes; `document` counts from the table's first row."""
        rule = self._rule(manifest, name)
        rows = (
            np.arange(len(table)) if rule is None else np.flatnonzero(rule.mask(table).to_numpy(zero_copy_only=False))
        )
        table = table.take(pa.array(rows)) if len(rows) < len(table) else table
        found = np.zeros(len(rows), CANDIDATE)
        found["document"] = rows
        words = np.frombuffer(b"".join(table["id"].to_pylist()), "<u8").reshape(-1, 2)
        found["hash"] = hash_ids(words, self._keys)
        if self.is_capped:
            found["host"] = [_hash_of_host(host_of(url)) for url in table["url"].to_pylist()]
        if self.upsample is not None:
            values = table[self.upsample.column].to_numpy(zero_copy_only=False).astype(np.float64)
            found["value"] = values
            ends = [each.below for each in self.upsample.bins if each.below is not None]
            if pa.types.is_float32(table.schema.field(self.upsample.column).type):
                ends = np.array(ends, np.float32).astype(np.float64).tolist()  # as rules compare
            bins = np.searchsorted(np.array(ends, np.float64), values, "right")
            found["bin"] = np.where(np.isnan(values), len(self.upsample.bins), bins)
        return found


def hash_ids(words: npt.NDArray[np.uint64], keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """uint64 [n], uniform, of ids as two little-endian words each: SplitMix64's finalizer over both."""
    found = mix(words[:, 0] + keys[0])
    found ^= words[:, 1]
    found += keys[1]
    return mix(found)


@lru_cache(maxsize=1 << 16)
def _hash_of_host(host: str) -> int:
    """Documents without a host are one host."""
    return hash64("host", host)


def scan_shard(
    corpora: Corpora, names: Sequence[str], place: tuple[int, int], chooser: Chooser, path: Path,
    done: Callable[[int], None] = lambda documents: None,
) -> None:  # fmt: skip
    """Read a shard, given by corpus and place in its manifest, and write its candidates to `path`.

    Documents without tokens are none. Memory: 65,536 rows, and 50 bytes per candidate. Raises FormatError for damaged
    files, RecipeError for a corpus that has no provenance. done: told the documents read.
    """
    corpus, shard = place
    opened = corpora[corpus]
    manifest = opened.manifest
    entry = manifest.shards[shard]
    if entry.provenance_file is None:
        raise RecipeError(
            f"corpus {names[corpus]!r}: an adopted corpus, whose documents have no columns; take its domains "
            "whole, without where, per_host, upsample, tokens or a fraction of times"
        )
    columns = chooser.columns(manifest, names[corpus])
    index = opened.index_of(entry)
    found, first = [np.empty(0, CANDIDATE)], 0
    with opened.parquet(entry.provenance.path, opened.manifest.provenance_schema) as file:
        for batch in file.iter_batches(batch_size=65_536, columns=columns):
            some = chooser.choose(pa.Table.from_batches([batch]), manifest, names[corpus])
            some["document"] += first
            first += len(batch)
            found.append(some)
            done(len(batch))
    if first != entry.documents:
        where = opened.store.url(entry.provenance.path)
        raise FormatError(f"{where}: {first} rows found, {entry.documents} expected from the manifest")
    chosen = np.concatenate(found)
    chosen["start"] = index.offsets[chosen["document"]]
    chosen["tokens"] = index.lengths[chosen["document"]]
    chosen[chosen["tokens"] > 0].tofile(path)
