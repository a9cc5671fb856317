"""Packed rows as batches for training: TokenStream's interface and order, a row of the corpus in each row of a batch.

stream = PackedStream("out/corpus", sequence_length=4096, batch_size=8, seed=1)
for batch in stream:
    loss = step(batch["input_ids"], batch["labels"], batch["position_ids"])
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from refinery.loader.arguments import of_kind, texts, whole
from refinery.loader.format.block_checksums import CHECKSUM_BLOCK
from refinery.loader.format.packed import STRUCTURE
from refinery.loader.format.takedown import totals_of
from refinery.loader.order.order import OrderParams
from refinery.loader.read.remote.blocks import RemoteParams
from refinery.loader.read.remote.capacity import bytes_in_blocks, fit_cache
from refinery.loader.read.samples import Domain
from refinery.loader.storage.remote_store import RemoteStore
from refinery.loader.stream.assemble import Contents
from refinery.loader.stream.delivered import describe_contents
from refinery.loader.stream.lookahead import Lookahead, live_ranges
from refinery.loader.stream.options import grouped
from refinery.loader.stream.origins import EMPTY, Origin
from refinery.loader.stream.packed.decoded_cache import DecodedParams
from refinery.loader.stream.packed.packed_batches import PackedAssembler
from refinery.loader.stream.packed.packed_origins import packed_origins
from refinery.loader.stream.packed.packed_source import PACKED_ORDER, PackedSource, row_files
from refinery.loader.stream.state import StateError
from refinery.loader.stream.stream import TokenStream

_log = logging.getLogger("refinery.loader")


class PackedStream(TokenStream):
    """A TokenStream of packed rows: each once an epoch, in an order that only the seed decides, resumable anywhere.

    columns: names of structure columns (loader/format/packed.py, STRUCTURE) that every batch has under their names,
    [batch_size, sequence_length] of the contract's types; -1 where a token or a whole file has none.

    Arguments, batches, states and receipts are those of TokenStream, but: sequence_length must be the corpus' own
    length of rows; labels at documents' ends and in padding are -100, and positions and doc_ids restart with every
    document; what TokenStream counts in tokens is places, padding included; blocks of the order are row groups, 8
    lanes of windows of 4 (`order` changes it); `tokens_per_shard` and `receipt` name the Parquet files; decoded:
    where decoded row groups are kept on disk, None for memory alone (refinery.loader.stream.packed.decoded_cache).
    check_first: decode and check every row of the split now, not when its row group is first read. packing_every: call
    `report` with `packing` of so many batches after each so many, 0 for never; None logs a line.

    Raises the same errors as TokenStream, ValueError for a corpus without packed rows, another length and
    fill_in_middle (rows are packed as they are) and an unknown column; FormatError, before the first batch, for a
    file with missing or wrong columns, and for a wrong row before any row of its row group is delivered.
    """

    def __init__(
        self,
        *args: Any,
        columns: Sequence[str] = (),
        decoded: DecodedParams | None = None,
        check_first: bool = False,
        packing_every: int = 0,
        report: Callable[[dict[str, float]], None] | None = None,
        **options: Any,
    ) -> None:
        self._columns = texts("columns", columns, ", ".join(STRUCTURE))
        if unknown := [name for name in self._columns if name not in STRUCTURE]:
            raise ValueError(f"columns: {unknown[0]!r:.80} given, a list of {', '.join(STRUCTURE)} is allowed")
        batch, rows, _ = grouped(options)
        for name, value in (("fill_in_middle", batch.fill_in_middle), ("packing", rows.packing)):
            if value is not None:
                raise ValueError(f"{name}: given, rows are packed already, so None is allowed")
        if isinstance(options.get("sequence_length", args[1] if len(args) > 1 else None), list | tuple):
            raise ValueError("sequence_length: stages given, the rows' own length is allowed; they are already packed")
        self._decoded = of_kind("decoded", decoded, DecodedParams)
        self._every = whole("packing_every", packing_every, 0)
        self._report = report or (lambda packing: _log.info("packing: %s", packing))
        super().__init__(*args, **options)
        if check_first:
            try:
                self._source.check_all()
            except BaseException:
                self.close()
                raise

    _packed_files = staticmethod(row_files)

    def _choose(self, shards: Sequence[Any], order: OrderParams | None) -> tuple[Sequence[Any], OrderParams]:
        layout = self.manifest.packed
        if self._opened.is_view:
            raise ValueError(
                f"prefix: {self._store.root} given, a view, whose documents are not packed together; TokenStream reads "
                "it, and PackedStream its corpora"
            )
        if layout is None:
            raise ValueError(
                f"prefix: {self._store.root} given, a corpus with packed rows is allowed; `packed: {{length: 4096}}` in"
                " its recipe makes them, and TokenStream reads it without"
            )
        if self.sequence_length != layout.length:
            raise ValueError(f"sequence_length: {self.sequence_length} given, {layout.length}, the rows', is allowed")
        self._layout = layout
        self._reported = np.zeros(4, np.int64)  # as Contents
        self._unreported = 0  # batches
        chosen = order or PACKED_ORDER
        return row_files(shards, layout), replace(chosen, block=chosen.block or layout.group_rows)

    def locate(self, sample_id: int) -> list[Origin]:
        """The documents of a row, as TokenStream.locate; `shard` is the file of packed rows."""
        domain, sample = self._ids.sample(whole("sample_id", sample_id, EMPTY))
        ((number, start, _),) = domain.ranges(sample * domain.length, (sample + 1) * domain.length)
        row = start // domain.length
        return list(packed_origins(self._store, self.manifest.shards, self._shards[number], row))

    def _turn_to(self, version: str) -> None:
        if version != self.corpus:
            steps = [takedown.previous for takedown in self.manifest.takedowns]
            told = totals_of(self.manifest.takedowns[steps.index(version) :])
            raise StateError(
                f"state: of an earlier version of this corpus ({version[:12]}), from which {told['documents']:,} "
                "documents were taken since. Rows are filled by the lengths of all documents of a shard, so its rows "
                "have changed, and a position among the old rows has no meaning here. Deliver what is left of the "
                "epoch from the old version while it exists, or start without a state (and with another seed for "
                "another order). TokenStream can continue with its own states"
            )
        super()._turn_to(version)

    def _filled(self, domains: Sequence[Domain]) -> list[int]:
        found, places = ({domain.name: 0 for domain in domains} for _ in range(2))
        for file in self._shards:
            found[file.domain] += file.bin.tokens or 0
            places[file.domain] += file.tokens
        # A subset is as full as its domain: nothing says how full single rows are.
        return [round(found[d.name] * d.tokens / places[d.name]) if d.tokens else 0 for d in domains]

    def _open_source(self, remote: RemoteParams | None) -> PackedSource:
        self._batch_params = replace(self._batch_params, pad_id=self._layout.pad_id or 0, is_packed=True)
        if isinstance(self._store, RemoteStore):
            corpus = bytes_in_blocks(file.bin.size for file in self._shards)
            remote = fit_cache(remote or RemoteParams(), corpus, self._live_bytes)
        return PackedSource(
            self._store,
            self._shards,
            self._layout,
            columns=self._columns,
            corpus=self.corpus,
            params=remote,
            counters=self._counters,
            decoded=self._decoded,
            damage=self._damage,
        )

    def _live_bytes(self) -> int:
        """About what is read from at a time: the row groups of open windows, each a share of its file and a MiB that it
        has together with its neighbour."""
        number, start, stop = live_ranges(self._schedule).T
        places = self._layout.group_rows * self._layout.length
        spans = np.stack([number, start // places, -(-stop // places)], axis=1)
        groups = {(n, group) for n, first, end in np.unique(spans, axis=0).tolist() for group in range(first, end)}
        files = [self._shards[n] for n, _ in groups]
        return sum(min(file.bin.size, file.bin.size * places // max(file.tokens, 1) + CHECKSUM_BLOCK) for file in files)

    def _assembler(self, **how: Any) -> PackedAssembler:
        ahead = Lookahead(self._source, self._schedule) if self._source.is_remote else None
        return PackedAssembler(self._schedule, self._source, self._batch_params, **how, lookahead=ahead)

    def _note_delivery(self, contents: Contents | None) -> None:
        super()._note_delivery(contents)
        self._unreported += 1
        if self._unreported == self._every:
            self._report(describe_contents(self._delivered - self._reported))
            self._reported, self._unreported = self._delivered, 0

    def _identity(self) -> dict[str, Any]:
        found = super()._identity()
        return found | {"order": found["order"] | {"packed": True}}
