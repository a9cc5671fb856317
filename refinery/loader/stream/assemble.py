"""Batches from plans: the part of a stream that runs ahead of its caller (refinery.loader.stream.prefetch)."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from refinery.loader.native import rows as kernel
from refinery.loader.order.arrays import I64, Batch
from refinery.loader.order.buffers import LEAST, Buffers
from refinery.loader.order.context_parallel import ContextSlice
from refinery.loader.order.length_stages import LengthStages
from refinery.loader.order.mixing import RepetitionLimit
from refinery.loader.order.subdivide import cut, cut_documents
from refinery.loader.packing.buckets import BucketDomain
from refinery.loader.read.samples import DocumentStarts
from refinery.loader.read.token_source import Lost, TokenSource
from refinery.loader.read.trained_tokens import TrainedTokens, cut_mask, with_loss
from refinery.loader.stream import masks
from refinery.loader.stream.fill_in_middle import (
    FillInMiddleParams,
    epoch_key,
    fill_in_middle,
    fill_in_middle_of_text,
    sample_keys,
)
from refinery.loader.stream.left_out import LeftOut, hide, left_out_of
from refinery.loader.stream.lookahead import Lookahead
from refinery.loader.stream.schedule import MAX_ROWS, Schedule, StepPlan

Codec = tuple[Callable[[str], Sequence[int]], Callable[[Sequence[int]], str]]

LABELS = ("shifted", "unshifted")

_FIRST_ROWS = 64  # of the first plan that is read over a network; later plans grow eightfold
_MASK_STEPS = 64  # steps whose document starts are looked up together


class Contents(NamedTuple):
    """What is in packed rows. rows: with tokens. documents: or parts of them. places: of these rows."""

    rows: int
    documents: int
    tokens: int
    places: int


class PreparedBatch(NamedTuple):
    """A finished batch, its position, and the nanoseconds that each stage of making it took (Telemetry names them).

    step: number of the step in its plan. batch: None for a plan that has no step of this worker. skip: steps of other
    workers between this one and this worker's next. padding: places of it. left_out: what could not be read. places: of
    all rows, None for those of the longest. contents: where rows are packed.
    """

    batch: Batch | None
    plan: StepPlan
    step: int
    skip: int
    read_ns: int = 0
    assemble_ns: int = 0
    padding: int = 0
    left_out: tuple[LeftOut, ...] = ()
    places: int | None = None
    decode_ns: int = 0
    enrichment_ns: int = 0
    staging_ns: int = 0
    plan_ns: int = 0  # of the first batch of a plan
    contents: Contents | None = None

    def planned(self, before: int, ns: int) -> "PreparedBatch":
        """A plan's first batch, which it took `ns` to make after `before` for the plan itself: what is left of `ns` is
        of the plan, too."""
        spent = self.read_ns + self.decode_ns + self.enrichment_ns + self.assemble_ns + self.staging_ns
        return self._replace(plan_ns=before + max(ns - spent, 0))


@dataclass(frozen=True, slots=True)
class BatchParams:
    """What a batch consists of. pad_id: padding token. masks: of batches without padding; in batches with padding,
    labels are a copy with the ignore index, unless mask_labels is off. lengths: of rows, where they change; None for
    one length. context: the part of every row that is delivered; None for all of it. is_packed: whether rows are of
    whole documents, which are then counted.
    """

    pad_id: int
    masks: masks.MaskParams
    fill_in_middle: FillInMiddleParams | None = None
    codec: Codec | None = None
    labels: str = "shifted"
    lengths: LengthStages | None = None
    mask_labels: bool = True
    context: ContextSlice | None = None
    is_packed: bool = False

    def __post_init__(self) -> None:
        if self.labels not in LABELS:
            raise ValueError(f"labels: {self.labels!r:.80} given, {' or '.join(LABELS)} is allowed")

    @property
    def needs_documents(self) -> bool:
        """Whether any array of a batch depends on document boundaries."""
        asked = self.masks
        if asked.position_ids or asked.doc_ids or asked.cu_seqlens:
            return True
        return asked.ignore_cross_document or asked.ignore_eos or self.fill_in_middle is not None


class Assembler(ABC):
    """Makes a rank's batches from a position on. One worker of several makes every `workers`-th step, after `skip`.

    epochs: number of epochs, None for no end. finish: adds to every batch. Holds no reference to its stream.
    """

    def __init__(
        self,
        schedule: Schedule,
        params: BatchParams,
        *,
        epochs: int | None,
        skip: int,
        workers: int,
        lookahead: Lookahead | None = None,
        finish: Callable[[PreparedBatch], PreparedBatch] | None = None,
    ) -> None:
        self._schedule, self._params = schedule, params
        self._epochs, self._skip, self._workers = epochs, skip, workers
        self._lookahead, self._finish = lookahead, finish
        self._width = schedule.domains[0].length + 1
        self._empty = Buffers().empty if 8 * schedule.batch_size * self._width >= LEAST else np.empty

    @abstractmethod
    def _batches_of(self, plan: StepPlan, steps: range) -> Iterator[PreparedBatch]:
        """The batches of these steps of a plan, in order."""

    def plans(self, epoch: int, position: int) -> Iterator[StepPlan]:
        """All plans from a position on. Raises RepetitionLimit if the mixture's limit is to be an error."""
        rows, mixture = _FIRST_ROWS, self._schedule.mixture
        if self._lookahead is None:
            rows = self._schedule.least  # the first batch waits for them
        while True:
            length = self._schedule.length_of(epoch)
            if length is not None and position >= length:
                if mixture is not None:
                    if mixture.limited_by is not None and mixture.params.on_limit == "error":
                        raise RepetitionLimit(
                            f"domain {mixture.limited_by!r}: its limit of repetition is reached at position "
                            f"{position}, and the weights ask for more of it; to continue from the last state, give "
                            "more `repeats`, other weights from there on, or another on_limit"
                        )
                    return
                epoch, position = epoch + 1, 0
            if self._epochs is not None and epoch >= self._epochs:
                return
            plan = self._schedule.plan(epoch, position, rows)
            yield plan
            rows, position = min(rows * 8, MAX_ROWS), plan.stop

    def batches(self, epoch: int, position: int) -> Iterator[PreparedBatch]:
        """Every batch from a position on, in order."""
        skip, coming = self._skip, self.plans(epoch, position)
        began = time.perf_counter_ns()
        plan, failure = self._next_plan(coming)
        planning = time.perf_counter_ns() - began
        while plan is not None:
            if self._lookahead is not None:
                self._lookahead.finish(plan)
            steps = range(skip, len(plan.mine), self._workers)
            skip = (skip - len(plan.mine)) % self._workers
            batches = self._batches_of(plan, steps)
            if self._params.labels == "unshifted":
                batches = map(partial(_timed, "staging_ns", _unshifted), batches)
            if self._finish is not None:
                batches = map(partial(_timed, "enrichment_ns", self._finish), batches)
            if self._params.context is not None:
                batches = map(partial(_timed, "staging_ns", partial(_cut, self._params.context)), batches)
            # The first batch is made before the next plan: a cold start waits for it.
            began = time.perf_counter_ns()
            first = next(batches, None) or PreparedBatch(None, plan, len(plan.mine) - 1, skip)
            yield first.planned(planning, time.perf_counter_ns() - began)
            began = time.perf_counter_ns()
            following, failure = self._next_plan(coming)
            planning = time.perf_counter_ns() - began
            yield from batches
            plan = following
        if self._lookahead is not None:
            self._lookahead.finish(None)
        if failure is not None:
            raise failure

    def _next_plan(self, coming: Iterator[StepPlan]) -> tuple[StepPlan | None, RepetitionLimit | None]:
        """The next plan, announced before the current one is delivered; a limit is returned, to be raised after it."""
        try:
            plan = next(coming, None)
        except RepetitionLimit as limit:
            return None, limit
        if plan is not None and self._lookahead is not None:
            self._lookahead.announce(plan)
        return plan, None


def _contents(valid_rows: I64, lengths: I64, ends: Sequence[int]) -> list[Contents]:
    """Of the packed rows of each step: tokens of each row, of which one more than the step's length is a label. ends:
    where the pieces of each step begin, and the end."""
    rows = np.count_nonzero(valid_rows, axis=1)
    tokens = np.minimum(valid_rows, lengths[:, None]).sum(axis=1)
    found = np.stack([rows, np.diff(ends), tokens, rows * lengths], axis=1)
    return [Contents(*each) for each in found.tolist()]


def _timed(stage: str, change: Callable[[PreparedBatch], PreparedBatch], prepared: PreparedBatch) -> PreparedBatch:
    """`change` of a batch, whose time is added to that of a stage."""
    started = time.perf_counter_ns()
    found = change(prepared)
    return found._replace(**{stage: getattr(found, stage) + time.perf_counter_ns() - started})


def _cut(context: ContextSlice, prepared: PreparedBatch) -> PreparedBatch:
    """The batch with a rank's part of the rows."""
    return prepared if prepared.batch is None else prepared._replace(batch=context.cut(prepared.batch))


def _unshifted(prepared: PreparedBatch) -> PreparedBatch:
    """The batch with labels (and loss_mask) for models that shift them: an input's own token where it is predicted.

    Contiguous arrays with memory of their own, int64 [B, S] each.
    """
    batch = prepared.batch
    if batch is None:
        return prepared
    moved = {"input_ids": np.array(batch["input_ids"])}
    for name, first in (("labels", masks.IGNORE), ("loss_mask", False)):
        if name in batch:
            moved[name] = np.empty(batch[name].shape, batch[name].dtype)
            moved[name][:, 0], moved[name][:, 1:] = first, batch[name][:, :-1]
    return prepared._replace(batch=batch | moved)


class TokenAssembler(Assembler):
    """Batches of samples that are ranges of a domain's tokens."""

    def __init__(
        self,
        schedule: Schedule,
        source: TokenSource,
        documents: DocumentStarts,
        params: BatchParams,
        trained: TrainedTokens | None = None,
        **how: Any,
    ) -> None:
        super().__init__(schedule, params, **how)
        self._trained = trained
        self._source, self._documents = source, documents
        self._padded_masks = replace(params.masks, ignore_labels=params.mask_labels)

    def _batches_of(self, plan: StepPlan, steps: range) -> Iterator[PreparedBatch]:
        pieces, valid_rows = self._pieces_of(plan, steps)
        rows = plan.mine.shape[1]
        widths = self._widths(plan)
        ends: list[int] = np.searchsorted(pieces[:, 0], np.arange(len(plan.mine) + 1) * rows).tolist()
        is_full: list[bool] = (valid_rows == widths[:, None]).all(axis=1).tolist()
        documents: list[tuple[I64, I64]] = []
        between = self._workers - 1
        read = self._source.read_pieces
        needs_documents = self._params.needs_documents
        asked, empty = self._params.masks, self._empty
        contents = _contents(valid_rows, widths - 1, ends) if self._params.is_packed else None
        plain = not (needs_documents or asked.loss_mask or self._trained or contents)
        # Labels are worth writing with the tokens where they are large, and the source can.
        with_labels = None
        if empty is not np.empty and self._params.fill_in_middle is None:
            with_labels = getattr(self._source, "read_with_labels", None)
        no_documents = np.empty(0, np.int64), np.zeros(rows, np.int64)
        for number, i in enumerate(steps):
            parts, shape = self._parts(plan, i), (rows, int(widths[i]))
            length = shape[1] - 1
            started = time.perf_counter_ns()
            tokens, labels, lost = empty(shape, np.int64), None, None
            its = pieces[ends[i] : ends[i + 1]]
            params = asked if is_full[i] else self._padded_masks
            if with_labels is not None and parts == 1 and params.ignore_labels:
                labels = empty((rows, length), np.int64)
                with_labels(its, i * rows, tokens, labels)
            else:
                lost = read(its, i * rows, tokens)
            arrived = time.perf_counter_ns()
            if is_full[i] and plain and not lost:
                inputs, labels = masks.shared(tokens if parts == 1 else cut(tokens, parts))
                batch: Batch = {"input_ids": inputs, "labels": labels}
                yield PreparedBatch(batch, plan, i, between, arrived - started, time.perf_counter_ns() - arrived)
                continue
            valid = valid_rows[i]
            padding = 0 if is_full[i] else kernel.pad(tokens, valid, self._params.pad_id)
            padded = time.perf_counter_ns()
            if needs_documents and not documents:
                several = steps[number : number + min(_MASK_STEPS, 1 + number)]
                documents = self._document_starts(pieces[ends[several[0]] : ends[several[-1] + 1]], several, rows)
            starts, counts = documents.pop() if needs_documents else no_documents
            mask = None if self._trained is None else self._trained.inside(its, i * rows, rows, shape[1])
            enrichment = time.perf_counter_ns() - padded
            batch = self._masked(tokens, labels, starts, counts, valid, params, plan, i, parts, lost or ())
            if mask is not None:
                batch = with_loss(batch, cut_mask(mask, parts), masks.IGNORE if params.ignore_labels else None)
            if lost:
                batch = hide(batch, lost, i * rows, (rows, length))
            left = left_out_of(lost or (), plan, i, i * rows, length)
            spent = time.perf_counter_ns() - arrived - enrichment
            took = arrived - started, spent, padding, left, rows * length, 0, enrichment
            yield PreparedBatch(batch, plan, i, between, *took, contents=contents[i] if contents else None)

    def _widths(self, plan: StepPlan) -> I64:
        """int64 [steps]: tokens that the rows of each step have room for, the last label included."""
        domain, steps = self._schedule.domains[0], len(plan.mine)
        if not isinstance(domain, BucketDomain):
            return np.full(steps, self._width)
        found = domain.widths_of(plan.samples)  # of all ranks, which have rows of one length
        return np.maximum.reduceat(found, np.arange(steps) * plan.step).astype(np.int64) + 1

    def _parts(self, plan: StepPlan, step: int) -> int:
        """Rows that a sample is delivered as in a step."""
        stages = self._params.lengths
        if stages is None:
            return 1
        domain = self._schedule.domains[0]
        epochs = 0 if self._schedule.mixture is not None else domain.before(plan.epoch)
        return stages.parts((epochs + plan.start + step * plan.step) * domain.length)

    def _pieces_of(self, plan: StepPlan, steps: range) -> tuple[I64, I64]:
        """Of the rows of `steps` of a plan, counted over all of its steps: pieces, as Domain.pieces gives them, by row,
        and how many tokens each row has, int64 [steps of the plan, batch_size]."""
        domains, samples = plan.rows(plan.domains, 0), plan.rows(plan.samples)
        asked = np.zeros(samples.shape, np.bool_)
        asked[steps.start : steps.stop : steps.step] = True
        valid = np.zeros(samples.shape, np.int64)
        parts = [np.empty((0, 5), np.int64)]
        for d, domain in enumerate(self._schedule.domains):
            its = np.flatnonzero(asked & (domains == d))
            if not len(its):  # the listing of a domain that is not drawn from is not read
                continue
            some = samples.ravel()[its]
            valid.ravel()[its] = domain.valid(some)
            found = domain.pieces(some)
            found[:, 0] = its[found[:, 0]]
            parts.append(found)
        if len(parts) == 2:
            return parts[1], valid
        pieces = np.concatenate(parts)
        return pieces[np.argsort(pieces[:, 0], kind="stable")], valid

    def _document_starts(self, pieces: I64, steps: range, rows: int) -> list[tuple[I64, I64]]:
        """(starts, counts), as masks.fill takes them, for each of some steps, in reverse order of steps."""
        starts, counts = self._documents.inside(pieces, steps[0] * rows, (steps[-1] + 1 - steps[0]) * rows)
        per_step = counts.reshape(-1, rows)[:: steps.step]  # those between are other workers', without pieces
        ends = np.cumsum(per_step.sum(axis=1)).tolist()
        each = [starts[first:stop] for first, stop in pairwise([0, *ends])]
        return list(zip(each, per_step, strict=True))[::-1]

    def _masked(
        self,
        tokens: I64,
        labels: I64 | None,
        starts: I64,
        counts: I64,
        valid: I64,
        params: masks.MaskParams,
        plan: StepPlan,
        step: int,
        parts: int,
        lost: Sequence[Lost] = (),
    ) -> Batch:
        infill = self._params.fill_in_middle
        if infill is not None:
            rows = plan.mine[step]
            damaged = sorted({each.row - step * len(rows) for each in lost})
            as_read = tokens[damaged]  # such rows stay in their order, so what is lost stays where it is
            keys = [
                epoch_key(self._schedule.seed, epoch, self._schedule.domains[d].name)
                for d, epoch in zip(plan.domains[rows].tolist(), plan.epochs[rows].tolist(), strict=True)
            ]
            drawn = sample_keys(np.array(keys, np.uint64), np.maximum(plan.samples[rows], 0))
            if self._params.codec is None:
                fill_in_middle(tokens, starts, counts, valid, drawn, infill)
            else:
                fill_in_middle_of_text(tokens, starts, counts, valid, drawn, infill, *self._params.codec)
            tokens[damaged] = as_read
        if parts > 1:
            tokens = cut(tokens, parts)
            starts, counts, valid = cut_documents(starts, counts, valid, tokens.shape[1] - 1, parts)
        return masks.fill_read(tokens, starts, counts, valid, params, self._empty, labels)
