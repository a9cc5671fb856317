"""Batches of packed rows: a sample is a row, so only reading and masks differ from batches of one long sequence."""

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from refinery.loader.stream import masks
from refinery.loader.stream.assemble import Assembler, BatchParams, Contents, PreparedBatch
from refinery.loader.stream.left_out import left_out_of
from refinery.loader.stream.packed.packed_source import PackedSource
from refinery.loader.stream.schedule import Schedule, StepPlan


class PackedAssembler(Assembler):
    """Makes a rank's batches of packed rows. Labels at a document's end, and where a row has no loss, are IGNORE."""

    def __init__(self, schedule: Schedule, rows: PackedSource, params: BatchParams, **how: Any) -> None:
        super().__init__(schedule, params, **how)
        self._packed = rows
        self._masks = replace(params.masks, ignore_labels=params.mask_labels, ignore_cross_document=True)

    def _batches_of(self, plan: StepPlan, steps: range) -> Iterator[PreparedBatch]:
        length, shape = self._width - 1, (plan.mine.shape[1], self._width)
        domains, samples = plan.rows(plan.domains, 0), plan.rows(plan.samples)
        files, places = np.full(samples.shape, -1), np.zeros(samples.shape, np.int64)
        for d, domain in enumerate(self._schedule.domains):
            mine = (domains == d) & (samples >= 0)
            begins = domain.inputs_of(samples[mine])[0]  # places; a row is in one file
            which = np.searchsorted(domain.starts, begins, "right") - 1
            files[mine] = domain.numbers[which]
            places[mine] = (begins - domain.starts[which]) // length
        for i in steps:
            started = time.perf_counter_ns()
            tokens = self._empty(shape, np.int64)
            tokens[files[i] < 0] = self._params.pad_id
            read = files[i].tolist(), places[i].tolist()
            decoded = self._packed.decode_ns
            starts, counts, valid, loss = self._packed.read(*read, tokens)
            arrived, decoded = time.perf_counter_ns(), self._packed.decode_ns - decoded
            columns, lost = self._packed.read_columns(*read), self._packed.lost(*read)
            for each in lost:
                tokens[each.row] = self._params.pad_id
            enriched = time.perf_counter_ns()
            batch = masks.fill_read(tokens, starts, counts, valid, self._masks, self._empty)
            batch.update(columns)
            if loss is not None:
                if self._params.mask_labels:
                    batch["labels"][~loss] = masks.IGNORE
                if "loss_mask" in batch:
                    batch["loss_mask"] &= loss
            filled = int((valid > 0).sum())
            contents = Contents(filled, int(counts.sum()), int(valid.sum()), filled * length)
            between, padding = self._workers - 1, len(valid) * length - int(valid.sum())
            left, spent = left_out_of(lost, plan, i, 0, length), time.perf_counter_ns() - enriched
            took = arrived - started - decoded, spent, padding, left, None, decoded, enriched - arrived
            yield PreparedBatch(batch, plan, i, between, *took, contents=contents)
