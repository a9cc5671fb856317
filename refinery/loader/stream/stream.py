"""A corpus as batches for training: every token once per epoch, in an order that only the seed decides, resumable.

    stream = TokenStream("gs://bucket/corpus", sequence_length=4096, batch_size=8, seed=1)
    for batch in stream:
        loss = step(batch["input_ids"], batch["labels"])      # int64 [8, 4096] each
        state = stream.state_dict()                           # JSON-able, at most 1 KiB

The order is computed, not stored (refinery.loader.order.order, refinery.loader.order.mixing): the state is a
position, and a stream resumed with another number of ranks, workers or rows delivers exactly the tokens that come next.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from refinery.loader.arguments import MOST, whole
from refinery.loader.format.manifest import SPLITS
from refinery.loader.order.batch_stages import BatchStage, batch_stages
from refinery.loader.order.length_stages import LengthStage, length_stages
from refinery.loader.order.mix_params import MixParams, MixStage
from refinery.loader.order.order import ORDER_VERSION, OrderParams
from refinery.loader.order.subset import check_subset
from refinery.loader.packing.best_fit_domain import PieceStarts
from refinery.loader.packing.buckets import LengthBuckets
from refinery.loader.packing.packing import BEST_FIT, CONCATENATE, BestFitParams, Packing, packing_params
from refinery.loader.read.damage import Damage, SkippingSource
from refinery.loader.read.remote.blocks import RemoteParams
from refinery.loader.read.samples import DocumentStarts, Domain
from refinery.loader.read.trained_tokens import TrainedTokens, refused
from refinery.loader.read.versions.past_source import PastSource
from refinery.loader.read.versions.versions import Version, Versions
from refinery.loader.storage.fetch import Stop
from refinery.loader.storage.open_store import open_with
from refinery.loader.storage.store import Store
from refinery.loader.stream.assemble import Assembler, BatchParams, PreparedBatch, TokenAssembler
from refinery.loader.stream.fill_in_middle import for_corpus
from refinery.loader.stream.lookahead import Lookahead, live_ranges
from refinery.loader.stream.loops import Arranger
from refinery.loader.stream.options import (
    BatchOptions,
    FlatOptions,
    ReadOptions,
    RowOptions,
    check_keywords,
    grouped,
    shows_options,
)
from refinery.loader.stream.prefetch import Prefetcher
from refinery.loader.stream.resumed import ResumedBatches
from refinery.loader.stream.state import (
    RECEIPT_VERSION,
    STATE_VERSION,
    checksum,
    code_version,
)
from refinery.loader.view.open_readable import open_readable
from refinery.loader.view.opened_view import OpenedView
from refinery.loader.view.past_view import PastView, ViewVersions


class TokenStream(ResumedBatches):
    """Batches of one rank: an iterator over dicts of numpy arrays of one shape, B = batch_size rows of
    S = sequence_length tokens.

    input_ids     int64 [B, S]
    labels        int64 [B, S]; -100, the ignore index, in padding, at the domain's last token, and where
                  ignore_cross_document or ignore_eos apply. In batches without any of these it shares memory with
                  input_ids, shifted by one, and both are read-only: write to a copy
    loss_mask, position_ids, doc_ids, cu_seqlens (with max_seqlen): on request, see refinery.loader.stream.masks
    domain_ids    int32 [B], on request: each row's place in `domain_names`; sample_ids int64 [B]: what `locate` takes

    With labels="unshifted", for models that shift them, as those of transformers do: a label is the input of its own
    place; -100 where that token is not to be predicted, and at each row's first. loss_mask is then of these labels.

    loop: what a `for` loop delivers. "continue": what is left of all epochs, from where the last loop ended; "epoch":
    the same, but to the end of the epoch; "restart", for evaluation: every loop starts again, with the same batches.

    sequence_length: with LengthStages rows are shorter at first: B x n rows of S / n tokens, S being the longest, and
    all that is counted in rows or steps is as with S (refinery.loader.order.length_stages).

    batch_size: rows of one rank; with BatchStages it changes (refinery.loader.order.batch_stages).

    prefix: local folder, gs://bucket/prefix, s3://bucket/prefix or https:// URL, or a store, which stays open. epochs:
    number of epochs, None for no end, with loop="restart" for one. split: train or
    validation.

    Without `weights` all domains are one sequence in manifest order, and an epoch is all of it. Its last step is filled
    with empty rows (loss_mask all false, labels all -100), so all ranks make the same number of steps.

    With `weights` (by domain, or MixStages, or MixParams) the domains are mixed as described in
    refinery.loader.order.mixing, each with its own epochs; `epochs` then limits how often each domain is delivered,
    and the stream ends before the first sample beyond that limit.

    rank, world_size: which rows of each step are delivered. worker, workers: deliver only every `workers`-th of this
    rank's steps, from number `worker` on, for processes that share a rank; a state is that after the last step
    delivered.

    packing: "best_fit", or BestFitParams: rows of whole documents, padded, instead of ranges of one sequence; documents
    longer than a row are cut to pieces of it, and no label crosses a document's end (refinery.loader.packing). A corpus
    with loss masks, as that of conversations, needs a word here: "best_fit", which refuses documents that are longer
    than a row unless `cut` is set, or "concatenate", which cuts them wherever a row ends.

    cu_seqlens_size: entries of cu_seqlens in every batch, filled up with runs of length 0 (MaskParams). cp_rank,
    cp_size: of a context-parallel group, whose ranks give the same rank and world_size and get a part of every row each
    (refinery.loader.order.context_parallel); cp_layout: "zigzag" or "contiguous".
    on_damage: "error", or "skip": where a shard's bytes are not those of the manifest, a row has a filler and no label,
    and `not_delivered`, states and telemetry say what is missing (refinery.loader.read.damage).

    order: shape of the shuffle. shuffle=False: the order of the corpus instead, shard by shard, the same in each epoch;
    with `weights` that of each domain. fill_in_middle: reorder documents, cut between characters if `codec`, the
    tokenizer's (encode, decode), is given. prefetch: finished batches that a thread keeps ahead; 0 for no thread. A
    caller that calls back to back makes its batches itself in any case. remote: how to read remote corpora. shards:
    .bin paths; stream only these (refinery.loader.stream.assignment), as if there were no others. subset: only so many
    rows of the split, or, below 1.0, this share of each domain's (refinery.loader.order.subset).

    batch, rows, reading: the keyword-only options in groups (refinery.loader.stream.options), instead of one by one.

    `telemetry` has the times of each step; `tokens_per_shard`, `mix` and `receipt` describe what was delivered.

    Raises ValueError for invalid arguments and for a split without tokens, FormatError for a missing or invalid corpus,
    UsageError at an epoch's end if the counters disagree, RepetitionLimit if the mixture is set to, and what reading
    raises; the next `next` then tries the same batch again (except after UsageError, which is permanent). Threads that
    share a stream take turns: each gets other batches. A forked child continues from the position of its copy. Use it
    as a context manager, or `close` it.
    """

    @shows_options
    def __init__(
        self,
        prefix: str | Path | Store,
        sequence_length: int | Sequence[LengthStage] = 4096,
        batch_size: int | Sequence[BatchStage] = 8,
        seed: int = 1,
        epochs: int | None = None,
        rank: int = 0,
        world_size: int = 1,
        split: str = "train",
        weights: Mapping[str, float] | Sequence[MixStage] | MixParams | None = None,
        *,
        worker: int = 0,
        workers: int = 1,
        batch: BatchOptions | None = None,
        rows: RowOptions | None = None,
        reading: ReadOptions | None = None,
        **options: Unpack[FlatOptions],
    ) -> None:
        check_keywords(options)
        flat = {"batch": batch, "rows": rows, "reading": reading, **options}
        batch, rows, reading = grouped(flat)
        lengths, best_fit = length_stages(sequence_length), packing_params(rows.packing)
        if lengths is not None:
            sequence_length = lengths.longest
            if batch.fill_in_middle is not None:
                raise ValueError("fill_in_middle: given with lengths that change, None is allowed")
            if isinstance(best_fit, LengthBuckets):
                raise ValueError("packing: LengthBuckets given with lengths that change, BestFitParams is allowed")
        self._stages = batch_stages(batch_size)
        limits = {"sequence_length": 1, "world_size": 1, "workers": 1}
        given = (sequence_length, world_size, workers)
        sequence_length, world_size, workers = (
            whole(name, value, least, MOST) for (name, least), value in zip(limits.items(), given, strict=True)
        )
        rank, worker = whole("rank", rank, 0, world_size - 1), whole("worker", worker, 0, workers - 1)
        seed = whole("seed", seed, -(2**63), 2**64 - 1)
        epochs = None if epochs is None else whole("epochs", epochs, 1)
        if split not in SPLITS:
            raise ValueError(f"split: {split!r} given, {' or '.join(SPLITS)} is allowed")
        self._damage = Damage() if reading.on_damage == "skip" else None
        for length in (sequence_length,) if lengths is None else lengths.lengths:
            batch.context.spans(length)  # refuses what it cannot divide
        remote, shards = reading.remote, rows.shards
        self._own_store = not isinstance(prefix, Store)
        self._store = prefix if isinstance(prefix, Store) else open_with(prefix, remote.fetch if remote else None)
        self._opened = open_readable(self._store, remote)
        self.manifest, self.corpus = self._opened.manifest, self._opened.sha256
        self.sequence_length, self.seed, self.split = sequence_length, seed, split
        self.batch_size = max(stage.batch_size for stage in self._stages)
        self.rank, self.world_size, self.labels = rank, world_size, batch.labels
        self.subset = check_subset(rows.subset)
        self._packing = None
        if self._opened.is_masked and lengths is not None and isinstance(best_fit, BestFitParams) and not best_fit.cut:
            raise ValueError(
                "sequence_length: stages given with a corpus of loss masks, whose conversations the parts of a row "
                "would cut inside a turn; one length, or packing=BestFitParams(cut=True), is allowed"
            )
        if best_fit is not None:
            step = world_size * self.batch_size
            self._packing = Packing(best_fit, self._opened, sequence_length, self.subset, step)
            for width in self._packing.widths if self._packing.buckets else ():
                batch.context.spans(width)
        self._cuts = rows.packing == CONCATENATE
        self._shards, self.order_params = self._choose(self._opened.choose(split, shards), rows.order)
        self._part = None if shards is None else hashlib.sha256("\n".join(sorted(shards)).encode()).hexdigest()[:16]
        of_view = isinstance(self._opened, OpenedView)
        self._versions: Versions | ViewVersions = (
            ViewVersions(self._opened, remote) if of_view else Versions(self._store, self.manifest, self.corpus)  # type: ignore[arg-type]
        )
        self._past: Version | PastView | None = None
        self._published, self._carried = self.corpus, None
        self._remote = remote
        self._arrange = Arranger(
            self._opened, sequence_length, seed, self.order_params, (rank, world_size, self._stages), weights, epochs,
            rows.loop, batch.ids, self.subset, self._packing and self._packing.of(split, remote), shuffle=rows.shuffle,
        )  # fmt: skip
        schedule, looped, self._ids = self._arrange(self._shards, self._filled)
        super().__init__(schedule, worker, loop=looped, workers=workers)
        eos = self.manifest.tokenizer.eos_id
        infill = batch.fill_in_middle
        if self._opened.is_masked:
            refused(fill_in_middle=infill)
        if infill is not None:
            infill = for_corpus(infill, self.manifest, self._opened.tokenizer_store)
        self._batch_params = BatchParams(
            pad_id=eos or 0,
            masks=batch.masks(eos, whole_documents=self._packing is not None, of_data=self._opened.is_masked),
            fill_in_middle=infill,
            codec=batch.codec,
            labels=batch.labels,
            mask_labels=batch.mask_labels,
            lengths=lengths,
            context=batch.context if batch.cp_size > 1 else None,
            is_packed=self._packing is not None,
        )
        self._prefetch = reading.prefetch
        self._source = self._open_source(remote)
        self._stop, self._documents = self._new_documents()
        self._trained = self._new_trained()

    def _choose(self, shards: Sequence[Any], order: OrderParams | None) -> tuple[Sequence[Any], OrderParams]:
        """What is read of the chosen shards, with `domain`, `tokens` and `bin` each, and the shape of the shuffle."""
        if self._opened.is_masked and self._packing is None and not self._cuts:
            raise ValueError(
                "packing: none given of a corpus with loss masks, whose conversations rows would cut anywhere; "
                f"{BEST_FIT!r} keeps them whole, {CONCATENATE!r} cuts them"
            )
        chosen = order or OrderParams()
        default = 0 if self._opened.is_remote or self._packing else 1
        return shards, replace(chosen, block=default if chosen.block is None else chosen.block)

    def _filled(self, domains: Sequence[Domain]) -> list[int]:
        """Places of each domain that are tokens, not padding."""
        return [domain.tokens for domain in domains]

    def _open_source(self, remote: RemoteParams | None) -> Any:
        """Where batches come from; `close` ends it."""
        mixture = self._schedule.mixture
        drawn = None if mixture is None or self._opened.is_view else mixture.params.drawn
        if self._opened.is_remote:
            remote = self._opened.fit(remote, self._shards, lambda: live_ranges(self._schedule), drawn)
        found = self._opened.source(self._shards, remote, self._counters, drawn, self._damage is not None)
        return found if self._damage is None else self._skipping(found, self._damage)

    def _skipping(self, source: Any, damage: Damage) -> Any:
        """The source, with what is damaged filled; inside one of an earlier version, for blocks are those of now."""
        inner = source.inner if isinstance(source, PastSource) else source
        special = self.manifest.tokenizer
        filled = SkippingSource(inner, np.dtype(self.manifest.dtype).itemsize, special.eos_id or 0, damage)
        if inner is source:
            return filled
        source.inner = filled
        return source

    def _assembler(self, **how: Any) -> Assembler:
        ahead = Lookahead(self._source, self._schedule) if self._opened.is_remote else None
        batches = self._schedule, self._source, self._documents, self._batch_params
        return TokenAssembler(*batches, self._trained, **how, lookahead=ahead)

    def _start(self) -> Prefetcher[PreparedBatch]:
        limit = self._loop.limit(self._epoch, self._position)
        how = {"epochs": limit, "skip": self._skip, "workers": self._workers, "finish": self._ids.finish}
        if self._past is not None:
            how["finish"] = self._past.hidden(self._schedule.domains, self._batch_params.labels, self._ids.finish)
        assembler = self._assembler(**how)
        return Prefetcher(assembler.batches(self._epoch, self._position), self._prefetch)

    def _forget_parent(self) -> None:
        self._own_store = False
        self._stop, self._documents = self._new_documents()
        self._trained = self._new_trained()

    def _new_trained(self) -> TrainedTokens | None:
        """Masks that come with the data; None where all tokens are trained."""
        if not self._opened.is_masked:
            return None
        return TrainedTokens(self._opened.runs_loader(self._shards, self._stop))

    def _new_documents(self) -> tuple[Stop, DocumentStarts]:
        """Document starts, and the Stop that cancels the reading of indexes. Neither refers to the stream."""
        stop, past, damage = Stop(), self._past, self._damage
        load = self._opened.index_loader(self._shards, stop)
        if past is not None:
            load = partial(past.index, stop=stop)
        if damage is not None and not self._packing:
            load = damage.load_index(load, self._shards, self.manifest.dtype)
        documents = (PieceStarts if self._packing else DocumentStarts)(load)
        if damage is not None and not self._packing and self._batch_params.needs_documents:
            damage.touch = documents.load
        return stop, documents

    def state_dict(self) -> dict[str, Any]:
        """The position after the last batch delivered: JSON-able, small.

        300 to 360 bytes, with weights 20 more per domain for up to 24 domains (refinery.loader.stream.usage); up to 1
        KiB more where something is damaged, 400 bytes for each stream that is continued. The same on all ranks, except
        for what is damaged. Batches that were prefetched but not delivered do not count.
        """
        self._after_fork()
        with self._lock:
            self._count()
            (epoch, position), usage = self._loop.at(self._epoch, self._position), self._usage.state()
            damaged = self._left_out.state()
        state = self._identity() | {
            "mix": None if self._schedule.mixture is None else self._schedule.mixture.history(position),
            "epoch": epoch,
            "position": position,
            "usage": usage,
        }
        state |= {"damaged": damaged} if damaged is not None else {}
        state |= {"carried": self._carried} if self._carried is not None else {}
        return state | {"check": checksum(state)}

    def _identity(self) -> dict[str, Any]:
        order = asdict(self.order_params) | {"block": self.order_params.block or None}
        return {
            "version": STATE_VERSION,
            "corpus": self.corpus,
            "split": self.split,
            "sequence_length": self.sequence_length,
            "seed": self.seed,
            "shards": self._part,
            "subset": self.subset,
            "order": {"version": ORDER_VERSION, **(order if self._arrange.shuffle else {"shuffle": False})}
            | (self._packing.identity if self._packing else {}),
        }

    def receipt(self) -> dict[str, Any]:
        """A record, to store with a checkpoint, of what the model was trained on: JSON-able, 150 bytes per shard."""
        masks = asdict(self._batch_params.masks)
        infill, missing = self._batch_params.fill_in_middle, self.not_delivered
        return {
            "schema_version": RECEIPT_VERSION,
            "state": self.state_dict(),
            "name": self.manifest.name,
            "fingerprint": self.manifest.fingerprint,
            "world_size": self.world_size,
            "batch_size": self.batch_size if len(self._stages) == 1 else [asdict(each) for each in self._stages],
            "mix": self.mix,
            "masks": {name: masks[name] for name in ("ignore_cross_document", "ignore_eos")},
            "fill_in_middle": None if infill is None else asdict(infill),
            "shards": [
                {"path": self._opened.path(number, entry), "tokens": entry.tokens, "sha256": entry.bin.sha256}
                for number, entry in enumerate(self._shards)
            ],
            "code": code_version(),
        } | ({"damaged": [list(place) for place in missing.damaged]} if missing and missing.damaged else {})

    def close(self) -> None:
        """Stop the threads and close files. `state_dict` still works."""
        self._after_fork()
        self._closed = True
        self._stop.set()  # first: cancels a thread that waits for the network
        self._source.close()
        self._halt()
        self._opened.close()
        if self._own_store:
            self._store.close()
