"""The checks of the rows of a provenance file: content, and order and position by the recipe."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from refinery.loader.format.manifest import ShardEntry
from refinery.loader.format.provenance import TOKENS
from refinery.pipelines.corpus.checks.addresses import Addresses, row_addresses
from refinery.pipelines.corpus.checks.texts import is_text_id, text_id
from refinery.pipelines.published.placement import Plan
from refinery.transforms.core.document import FIELDS, TEXT_ID
from refinery.transforms.write.lookup.entries import Hashes, hash_rows

Present = Callable[[pa.RecordBatch, int], None]  # gets rows, and the number of the first


class Faults:
    """Faults of many documents, reported in one sentence per kind."""

    def __init__(self) -> None:
        self._found: dict[str, list[Any]] = {}  # kind -> [count, the first of them]

    def add(self, kind: str, count: int, first: str) -> None:
        self._found.setdefault(kind, [0, first])[0] += count

    def sentences(self) -> Iterator[str]:
        for kind, (count, first) in self._found.items():
            yield f"{count} {kind}; the first: {first}"


class RowCheck:
    """Checks every row of a provenance file as its batches are streamed: content, and order and position by the recipe.

    Cost: about 3 microseconds a row, most of it the two hashes of the id.
    """

    def __init__(
        self,
        shard: ShardEntry,
        plan: Plan | None,
        scores: Sequence[str],
        changed: dict[int, bytes],
        hashed: bool = False,
        present: Present | None = None,
        has_fields: bool = False,
    ) -> None:
        self.shard = shard
        self.hashed = hashed
        self.hashes: list[Hashes] = []
        self.present = present
        self.has_fields = has_fields
        self.scores = scores
        self.changed = changed
        self.plan = plan
        self.rows = 0  # rows seen
        self.first: Any = None  # sort key of the first row
        self.last: Any = None  # and of the row before the batch
        self.tokens: Counter[str] = Counter()  # by source
        self.others = 0  # documents that these stand for
        self.addresses: list[Addresses] = []
        self.faults = Faults()

    def watch(self, batch: pa.RecordBatch) -> None:
        if not len(batch):
            return
        self._content(batch)
        self._count(batch)
        if self.hashed:
            self.hashes.append(hash_rows(batch))
        if self.present:
            self.present(batch, self.rows)
        if self.plan:
            self._sources(batch, self.plan)
            self._place(batch, self.plan)
            if self.plan.one_address:
                self.addresses.append(row_addresses(batch))
        self.rows += len(batch)

    def _count(self, batch: pa.RecordBatch) -> None:
        if TOKENS[1] not in batch.schema.names:
            return
        table = pa.table({name: batch.column(name) for name in ("source", "token_count")})
        for row in table.group_by("source", use_threads=False).aggregate([("token_count", "sum")]).to_pylist():
            self.tokens[row["source"]] += row["token_count_sum"]

    def _add(self, kind: str, wrong: npt.NDArray[np.bool_]) -> None:
        if wrong.any():
            self.faults.add(kind, int(wrong.sum()), f"row {self.rows + int(np.argmax(wrong))}")

    def _content(self, batch: pa.RecordBatch) -> None:
        copies = batch.column("copies").to_numpy()
        if self.plan is None or not self.plan.labelled:
            self._add("rows whose copies is 0, 1 or more expected", copies == 0)
            self.others += int(copies.sum()) - len(copies)
        self._add("rows without sources", _numpy(pc.equal(pc.list_value_length(batch.column("sources")), 0)))
        for name in self.scores:
            finite = pc.fill_null(pc.is_finite(batch.column(name)), True)
            self._add(f"rows whose {name} is neither finite nor null", ~_numpy(finite))
        if self.has_fields:
            kept = [fields == "" or isinstance(_parsed(fields), dict) for fields in batch.column(FIELDS).to_pylist()]
            self._add("rows whose fields is neither empty nor a JSON object", ~np.array(kept))
        metas = [_parsed(meta) for meta in batch.column("meta").to_pylist()]
        self._add("rows whose meta is not a JSON object", np.array([not isinstance(meta, dict) for meta in metas]))
        noted = [meta.get(TEXT_ID) if isinstance(meta, dict) else None for meta in metas]
        self._add("rows whose text_id is not an id", np.array([not is_text_id(value) for value in noted]))
        self.changed |= {self.rows + row: found for row, meta in enumerate(metas) if (found := text_id(meta))}

    def _sources(self, batch: pa.RecordBatch, plan: Plan) -> None:
        known = pa.array(list(plan.domains), pa.string())
        here = pa.array([name for name, domain in plan.domains.items() if domain == self.shard.domain], pa.string())
        source, sources = batch.column("source"), batch.column("sources")
        is_known = _numpy(pc.is_in(source, value_set=known))
        self._add("rows whose source is not in the recipe", ~is_known)
        self._add("rows whose source is of another domain", is_known & ~_numpy(pc.is_in(source, value_set=here)))
        strange = np.zeros(len(batch), bool)
        strange[_numpy(pc.list_parent_indices(sources))[~_numpy(pc.is_in(sources.flatten(), value_set=known))]] = True
        self._add("rows with sources that are not in the recipe", strange)

    def _place(self, batch: pa.RecordBatch, plan: Plan) -> None:
        ids = batch.column("id").to_pylist()
        self._add("rows of the other split", np.array([plan.split(id_) != self.shard.split for id_ in ids]))
        keys = self._input_places(batch, ids, plan) if plan.by_input else self._shuffled(batch, ids, plan)
        if keys:
            wrong = [after < before for before, after in zip([self.last or keys[0], *keys], keys, strict=False)]
            self._add("rows out of the recipe's order", np.array(wrong))
            self.first, self.last = self.first or keys[0], keys[-1]

    def _input_places(self, batch: pa.RecordBatch, ids: Sequence[bytes], plan: Plan) -> list[Any]:
        """What rows are sorted by in input order: their place in the inputs, then the id. None if one has no place."""
        try:
            places = map(plan.place, *(batch.column(name).to_pylist() for name in ("source", "origin")))
            return [(*place, id_.hex()) for place, id_ in zip(places, ids, strict=True)]
        except ValueError as error:
            self.faults.add("batches of rows without a place in the inputs", 1, f"from row {self.rows} on: {error}")
            return []

    def _shuffled(self, batch: pa.RecordBatch, ids: Sequence[bytes], plan: Plan) -> list[Any]:
        """The arithmetic of transforms.write.shuffle and the sort of transforms.write.shards, which load Beam."""
        index, count = self.shard.index, self.shard.count
        orders = [plan.order(id_) for id_ in ids]
        if index < count:
            self._add("rows of another shard", np.array([order * count >> 64 != index for order in orders]))
        names = (batch.column(name).to_pylist() for name in ("source", "origin"))
        return [
            (order, id_, source.encode(), origin.encode())
            for order, id_, source, origin in zip(orders, ids, *names, strict=True)
        ]


def _numpy(array: Any) -> npt.NDArray[Any]:
    return np.asarray(array.to_numpy(zero_copy_only=False))


def _parsed(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
