"""The combinators that own routing, counters, dead letters and rejects. No stage does any of this itself.

`PerDocument` is for stages (one document in, at most one out), `PerFile` for readers (one file in, many records out).
What they count is in counters.py, what they report beside documents goes through side_outputs.py.

No `from __future__ import annotations` here: Beam reads these hints.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any, Protocol

import apache_beam as beam

import refinery.transforms.core.coders  # noqa: F401 - registers the coder of Document, so no runner pickles one
from refinery.transforms.core import live
from refinery.transforms.core.answers import Answer, Damaged, Skipped, answer_of, check_returned
from refinery.transforms.core.counters import Counters, count_metric, work_done
from refinery.transforms.core.document import (
    Document,
    Drop,
    FailClosed,
    RawDocument,
    content_bytes,
    content_size,
)
from refinery.transforms.core.exchange.records import MAIN, SIDE_OUTPUT, side_output_record
from refinery.transforms.core.exchange.side_outputs import (
    add_side_output,
    in_finish_bundle,
    in_global_window,
    with_side_output,
)
from refinery.transforms.core.exchange.withheld import TAG as WITHHELD
from refinery.transforms.core.exchange.withheld import add_withheld
from refinery.transforms.core.input_sums.file_read import KIND as READS
from refinery.transforms.core.input_sums.file_read import FileRead
from refinery.transforms.core.live import LIVE, working_on
from refinery.transforms.core.lost_rows import dead_row, is_rejected, reject_row
from refinery.transforms.core.prepared import HeldFiles, prepare_held, prepare_once
from refinery.transforms.core.rejects import DEFAULT_REJECTS, RejectParams
from refinery.transforms.core.safe_text import printable

# Documents that a stage judges together. One at a time, between stages that fill the processor's caches with their own
# code and tables, they cost half as much again.
BATCH_DOCUMENTS = 128
BATCH_BYTES = 1 << 20


class Recorder(Protocol):
    """Records more of what a stage drops than its count, a record a bundle."""

    resource: Any

    def start(self) -> None:
        """Begin a bundle."""

    def add(self, stage: str, source: str, url: str, origin: str, size: int, answer: Answer, doc: Any = None) -> None:
        """A dropped document; doc: None for a record that no document was made of."""

    def record(self) -> bytes | None:
        """The side-output record of the bundle; None for none."""


class _Routing(beam.DoFn):
    """What both combinators share: counters per bundle, dead letters and sampled rejects as side-output records."""

    def __init__(self, stage: str, rejects: RejectParams, recorder: Recorder | None = None) -> None:
        self.stage = stage
        self.rejects = rejects
        self.recorder = recorder

    def start_bundle(self) -> None:
        self.counters = Counters(self.stage)
        if self.recorder is not None:
            self.recorder.start()

    def finish_bundle(self) -> Iterator[Any]:
        recorded = self.recorder.record() if self.recorder is not None else None
        if recorded is not None:
            yield in_global_window(recorded)
        outcomes: Counter[str] = Counter()
        for (_, outcome, _), (documents, _) in self.counters.counts.items():
            outcomes[outcome] += documents
        for outcome, documents in outcomes.items():
            count_metric(self.stage, outcome, documents)
        for record in self.counters.records():
            yield in_global_window(record)

    def drop(
        self, source: str, answer: Answer, size: int, url: str, origin: str, text: str, doc: Any = None
    ) -> list[Any]:
        """The reject of a dropped document, if it is sampled or a finding has it listed."""
        reason = answer.reason
        self.counters.add(source, "dropped", reason, size)
        LIVE[self.stage, "dropped"] += 1
        if self.recorder is not None:
            self.recorder.add(self.stage, source, url, origin, size, answer, doc)
        if not is_rejected(reason, origin, self.rejects, answer.is_listed):
            return []
        return self._row(
            "reject", reject_row(self.stage, reason, source, url, origin, text, answer.summary, self.rejects)
        )

    def die(self, source: str, error: str, size: int, origin: str, data: bytes) -> list[Any]:
        self.counters.add(source, "dead", error, size)
        LIVE[self.stage, "dead"] += 1
        return self._row("dead", dead_row(self.stage, error, source, origin, data, size))

    @staticmethod
    def _row(kind: str, row: Mapping[str, Any]) -> list[Any]:
        return [beam.pvalue.TaggedOutput(SIDE_OUTPUT, side_output_record(kind, **row))]


class UndeclaredReason(ValueError):
    """A stage dropped a document for a reason that its declaration does not name."""


class NothingSplit(ValueError):
    """A splitting stage returned neither documents nor a reason."""


class NoDocument(TypeError):
    """A stage returned neither a document of the type that it declares nor a Drop: a forgotten `return doc`."""


class _JudgeDocument(_Routing):
    def __init__(
        self,
        stage: str,
        judge: Callable[..., Any],
        prepare: Callable[[], Any] | None,
        rejects: RejectParams,
        output_type: type,
        splits: bool = False,
        reasons: frozenset[str] | None = None,
        excerpts: bool = True,
        files: HeldFiles = (),
        recorder: Recorder | None = None,
        own: str = "",
        withholds: frozenset[str] = frozenset(),
    ):
        super().__init__(stage, rejects, recorder)
        self.withholds = withholds
        self.judge = judge
        self.own = own
        self.prepare = prepare
        self.output_type = output_type
        self.splits = splits
        self.reasons = reasons
        self.excerpts = excerpts
        self.files = files

    def setup(self) -> None:
        prepare = partial(prepare_held, self.prepare, self.files) if self.files else self.prepare
        self.prepared = prepare_once(prepare) if prepare else None
        self.resource = self.prepared.resource if self.prepared else None
        if self.recorder is not None:
            self.recorder.resource = self.resource

    def start_bundle(self) -> None:
        super().start_bundle()
        self.held: list[tuple[Any, int]] = []  # documents that wait, with their sizes
        self.held_size = 0

    def process(self, doc: Any) -> list[Any]:
        size = content_size(doc)
        self.held.append((doc, size))
        self.held_size += size
        full = len(self.held) >= BATCH_DOCUMENTS or self.held_size >= BATCH_BYTES
        return self._judge_held() if full else []

    def finish_bundle(self) -> Iterator[Any]:
        yield from map(in_finish_bundle, self._judge_held())
        yield from super().finish_bundle()

    def _judge_held(self) -> list[Any]:
        """What is made of the documents that wait: those that are kept, and rows of the others."""
        held, self.held, self.held_size = self.held, [], 0
        made: list[Any] = []
        start = time.perf_counter()
        hand = live.hand
        for path, docs in _by_file(held):
            with working_on(path):
                for doc, size in docs:
                    if hand is not None:
                        hand.take(self.stage, doc.origin)
                    made += self._judged(doc, size)
        if hand is not None:
            hand.clear()
        self.counters.seconds += time.perf_counter() - start
        return made

    def _judged(self, doc: Any, size: int) -> Sequence[Any]:
        counters = self.counters
        notes = dict(doc.meta) if self.own else None
        try:
            answer = answer_of(self.judge(doc) if self.prepare is None else self.judge(doc, self.resource))
            results = self._kept(answer)
            if notes is not None:
                for made in results or (doc,):
                    check_returned(self.own, doc, notes, made)
        except FailClosed:
            raise
        except MemoryError as error:  # says something about the machine, not about the document
            raise out_of_memory(self.stage, doc.origin) from error
        except Exception as error:  # noqa: BLE001 - the one place where a document's failure becomes a dead letter
            data = content_bytes(doc)
            counters.add(doc.source, "in", "", len(data))
            return self.die(doc.source, type(error).__name__, len(data), doc.origin, data)
        counters.add(doc.source, "in", "", size)
        if answer.found:
            counters.add_found(doc.source, answer.found, size)
        if answer.series:
            counters.add_score(doc.source, answer.series, answer.value, size)
        if not results:
            text = doc.text if isinstance(doc, Document) and self.excerpts else ""
            withheld = [beam.pvalue.TaggedOutput(WITHHELD, doc)] if answer.reason in self.withholds else []
            return self.drop(doc.source, answer, size, doc.url, doc.origin, text, doc) + withheld
        kept = size if len(results) == 1 and results[0] is doc else sum(map(content_size, results))
        counters.add(doc.source, "kept", "", kept, len(results))
        if len(results) > 1:
            counters.add(doc.source, "created", "", 0, len(results) - 1)
            LIVE[self.stage, "created"] += len(results) - 1
        LIVE[self.stage, "kept"] += len(results)
        return results

    def _kept(self, answer: Answer) -> tuple[Any, ...]:
        """The documents of an answer, none of a Drop. Raises for what the stage has not declared."""
        if isinstance(answer.result, Drop):
            if self.reasons is not None and answer.reason not in self.reasons:
                raise UndeclaredReason(f"{self.stage}: reason {answer.reason!r} is not declared by the stage")
            return ()
        results = tuple(answer.result) if self.splits else (answer.result,)
        if not results:
            raise NothingSplit(f"{self.stage}: no document was made of one, and it was not dropped for a reason")
        for each in results:
            if not isinstance(each, self.output_type):
                raise NoDocument(f"{self.stage}: {type(each).__name__} returned, {self.output_type.__name__} declared")
        return results


def _by_file(held: Sequence[tuple[Any, int]]) -> Iterator[tuple[str, Iterable[tuple[Any, int]]]]:
    """Documents by the input file of their origin. They come one file after the other."""
    if held and _file_of(held[0]) == _file_of(held[-1]):
        yield _file_of(held[0]), held
    else:
        yield from groupby(held, _file_of)


def _file_of(held: tuple[Any, int]) -> str:
    file: str = held[0].origin.rpartition("@")[0]
    return file


class _ReadFile(_Routing):
    def __init__(
        self, stage: str, read: Callable[[Any], Iterator[Any]], rejects: RejectParams, recorder: Recorder | None = None
    ):
        super().__init__(stage, rejects, recorder)
        self.read = read

    def process(self, task: Any) -> Iterator[Any]:
        records = self.read(task)
        source = task.source
        while True:
            start = time.perf_counter()
            try:
                record = next(records, None)
            except OSError:
                # The storage failed, not the data: the bundle is to be retried, or the job to fail, rather than the
                # rest of a good file to be written off.
                raise
            except MemoryError as error:
                raise out_of_memory(self.stage, task.path) from error
            except Exception as error:  # noqa: BLE001 - a reader that gives up costs the rest of its file, not the job
                record = Damaged(type(error).__name__, f"{task.path}@?")
            self.counters.seconds += time.perf_counter() - start
            if record is None:
                work_done("files", 1)
                return
            if isinstance(record, RawDocument):
                size = content_size(record)
                self.counters.add(source, "in", "", size)
                self.counters.add(source, "kept", "", size)
                if record.found:
                    self.counters.add_found(source, record.found, size)
                LIVE[self.stage, "kept"] += 1
                yield record
            elif isinstance(record, Skipped):
                self.counters.add(source, "in", "", record.size)
                answer = Answer(Drop(record.reason))
                yield from self.drop(source, answer, record.size, record.url, record.origin, "")
            elif isinstance(record, FileRead):
                yield beam.pvalue.TaggedOutput(SIDE_OUTPUT, side_output_record(READS, **record.plain()))
            else:
                size = record.size or len(record.data)
                self.counters.add(source, "in", "", size)
                yield from self.die(source, record.error, size, record.origin, record.data)


def out_of_memory(stage: str, place: str) -> MemoryError:
    """The error that ends the bundle. What the memory did not suffice for must not decide what is a dead letter."""
    return MemoryError(
        f"{stage}: out of memory at {printable(place)}; give the workers more, run fewer of them (--workers), or lower "
        "limits.max_decompressed_bytes"
    )


@dataclass
class PerDocument(beam.PTransform):
    """Apply `judge(document) -> Document | Drop | Answer` to each document and account for every one.

    stage: name in counters, metrics and the funnel table. judge: a pure, picklable function. prepare: builds, once per
    process, what `judge` then takes as second argument (a model, a compiled pattern). output_type: what it returns, so
    Beam takes that type's own coder and never pickle. splits: judge returns an iterable of documents instead of
    one; those beyond the first are counted as created. reasons: those that a Drop may give (None: any). excerpts:
    whether rejects/ may quote what it drops. files: what has to be as it was when the run was planned. recorder: of
    what it drops. withholds: reasons for which copies of what it drops are to be dropped, too. own: "module:NAME" of a
    stage from elsewhere, whose answers are checked (`check_returned`). An exception makes a dead letter; FailClosed
    alone ends the run.
    """

    stage: str
    judge: Callable[..., Any]
    prepare: Callable[[], Any] | None = None
    rejects: RejectParams = DEFAULT_REJECTS
    output_type: type = Document
    splits: bool = False
    reasons: frozenset[str] | None = None
    excerpts: bool = True
    files: HeldFiles = ()
    recorder: Recorder | None = None
    own: str = ""
    withholds: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        super().__init__(self.stage)

    def expand(self, docs: beam.PCollection) -> beam.PCollection:
        made = self.judge, self.prepare, self.rejects, self.output_type, self.splits, self.reasons, self.excerpts
        dofn = _JudgeDocument(self.stage, *made, self.files, self.recorder, self.own, self.withholds)
        more = (WITHHELD,) if self.withholds else ()
        outputs = with_side_output(docs, "judge", beam.ParDo(dofn), more=more)
        add_side_output(docs.pipeline, outputs[SIDE_OUTPUT])
        if self.withholds:
            outputs[WITHHELD].element_type = Document
            add_withheld(docs.pipeline, outputs[WITHHELD])
        outputs[MAIN].element_type = self.output_type
        return outputs[MAIN]


@dataclass
class PerFile(beam.PTransform):
    """Read each file with `read(task) -> iterator of RawDocument | Skipped | Damaged | FileRead`; task has `.path` and
    `.source`.

    An exception out of the reader costs the rest of that file: one dead letter. Only OSError fails the bundle.
    """

    stage: str
    read: Callable[[Any], Iterator[Any]]
    rejects: RejectParams = DEFAULT_REJECTS
    recorder: Recorder | None = None

    def __post_init__(self) -> None:
        super().__init__(self.stage)

    def expand(self, files: beam.PCollection) -> beam.PCollection:
        dofn = _ReadFile(self.stage, self.read, self.rejects, self.recorder)
        outputs = with_side_output(files, "records", beam.ParDo(dofn))
        add_side_output(files.pipeline, outputs[SIDE_OUTPUT])
        outputs[MAIN].element_type = RawDocument
        return outputs[MAIN]
