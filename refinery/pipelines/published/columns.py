"""Which columns of documents are asked for, which are read for that, and which rows a rule takes."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from refinery.transforms.core.wording import nearest
from refinery.transforms.filter.rules.expression import Rule, column_types, compile_rule

TEXT = "text"
PLACES = ("split", "domain", "shard", "document")  # columns that say where a row is; `shard` is its files' path
SPANS = ("token_offset", "token_count")  # where a document's tokens are: for its text
TEXT_BYTES = "text_bytes"  # the same in a corpus of texts


class Columns:
    """The columns `asked` for (None: all of `schema`) of documents that meet the rule `where`.

    names: of the batches, in the order asked for. read: of the provenance, what has to be read. Raises ExpressionError
    for a rule that cannot be, ValueError for a column that there is not. what: whose they are, for messages.
    """

    def __init__(self, schema: pa.Schema, asked: Sequence[str] | None, where: str, what: str) -> None:
        known = (*schema.names, TEXT, *PLACES)
        self.names = list(schema.names if asked is None else asked)
        for name in self.names:
            if name not in known:
                raise ValueError(f"columns: {name[:60]!r} given of {what}, {nearest(name, known)}")
        if len(set(self.names)) < len(self.names):
            raise ValueError(f"columns: {', '.join(self.names)} given, each is allowed once")
        self.has_text = TEXT in self.names
        self.rule: Rule | None = compile_rule(where, column_types(schema)) if where else None
        sizes = SPANS if SPANS[0] in schema.names else (TEXT_BYTES,)
        needed = {*self.names, *(self.rule.names if self.rule else ()), *(sizes if self.has_text else ())}
        self.read = [name for name in schema.names if name in needed] or [sizes[-1]]
        self.of_provenance = bool(self.rule) or any(name in schema.names for name in {*self.names} - {*SPANS})

    def rows(self, batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
        """The rows of a batch that the rule takes, ascending."""
        if self.rule is None:
            return np.arange(batch.num_rows)
        mask = self.rule.mask(pa.Table.from_batches([batch]))
        return np.flatnonzero(mask.to_numpy(zero_copy_only=False)).astype(np.int64)


def with_places(
    batch: pa.RecordBatch, split: str, domain: str, shard: str, documents: npt.NDArray[np.int64]
) -> pa.RecordBatch:
    """Rows of a shard with the columns of PLACES."""
    for name, value in zip(PLACES, (split, domain, shard), strict=False):
        batch = batch.append_column(name, pa.repeat(pa.scalar(value), batch.num_rows))
    return batch.append_column(PLACES[-1], pa.array(documents, pa.int64()))
