"""What must be published of a record: its row in provenance, rejects/ or dead_letters/, from judging it again."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from refinery.loader.format.manifest import Column
from refinery.pipelines.corpus.audit.recorded import AuditedRun
from refinery.pipelines.corpus.audit.sample import DEAD, KEPT, REJECTED, Row
from refinery.pipelines.corpus.replay.try_document import Step, Trial
from refinery.transforms.core.answers import Damaged, Skipped
from refinery.transforms.core.document import COPIES, Document, RawDocument, content_bytes, content_size
from refinery.transforms.core.lost_rows import dead_row, is_rejected, reject_row
from refinery.transforms.core.safe_text import printable
from refinery.transforms.dedup.cutting_pass import CuttingPass
from refinery.transforms.read.sources import READ
from refinery.transforms.tokenize.encode import EncodedDocument
from refinery.transforms.write.document_batch import batch_table
from refinery.transforms.write.shards import provenance_rows

COPY_SOURCES = "copy_sources"
# Fields of a row that other documents decide, and the number of tokens, which are compared themselves.
OTHERS = ("copies", "sources", "token_offset", "token_count")


@dataclass(frozen=True)
class Expected:
    """kind: KEPT, REJECTED or DEAD. row: the fields that are compared. listed: whether a row must be there; of dropped
    documents rejects/ has a sample. tokens: of a kept one, or its text in UTF-8. text: that was encoded or written.
    size: in bytes, of what was given to the stage that dropped it or failed."""

    kind: str
    row: Mapping[str, Any]
    listed: bool = True
    tokens: npt.NDArray[Any] | None = None
    text: str = ""
    size: int = 0

    @property
    def why(self) -> str:
        """The reason or the error of what is not kept."""
        return str(self.row["reason" if self.kind == REJECTED else "error"])

    @property
    def words(self) -> str:
        """The decision in words."""
        if self.kind == KEPT:
            return "in the corpus"
        return f"{'dropped' if self.kind == REJECTED else 'failed'} at {self.row['stage']}: {self.why}"


class Judge:
    """Judges records of a run again. Models and lists are loaded once."""

    def __init__(self, run: AuditedRun) -> None:
        self.run = run
        self.trial = Trial(run.recipe, measure=False)
        self.rejects = run.recipe.rejects
        active = [stage for _, stage, _ in self.trial.stages]
        # Later stages are given texts of which phase 2 has cut what other documents have, too.
        self.cuts = [stage.name for stage in active if isinstance(stage, CuttingPass)]
        lane = run.recipe.LANE
        self.late = {stage.name: stage for phase, stage, _ in self.trial.stages if phase == "shards"}
        early = {note.name for stage in lane.clean for note in stage.notes if note.column}
        early |= {note.name for note in lane.fields}
        self.fixed = ("id", "url", "source", "origin", *sorted(early))  # fields of a row that no cut changes

    def may_be_cut(self, origin: str, row: Row | None) -> bool:
        """Whether what other documents have, too, and was cut, explains why the fate of a document differs from that
        of its whole text: it is in the corpus, or in rejects/ by a stage of phase 3, or dropped for a reason of one
        of these for which the sample of rejects does not take it."""
        if not self.cuts:
            return False
        if row is not None:
            return row["kind"] == KEPT or (row["kind"] == REJECTED and row["stage"] in self.late)
        reasons = [reason.name for stage in self.late.values() for reason in stage.reasons]
        return not all(is_rejected(reason, origin, self.rejects) for reason in reasons)

    def clean(self, record: RawDocument | Skipped | Damaged, source: str) -> Document | Expected:
        """Phase 1: the document that deduplication was given, or what must be published of the record."""
        if isinstance(record, Skipped):
            return self._dropped(READ.name, record.reason, source, record.url, record.origin, "", "")
        if isinstance(record, Damaged):
            size = record.size or len(record.data)
            return _dead(READ.name, record.error, source, record.origin, record.data, size)
        end: Document | Expected = self._end(record, list(self.trial.steps(record, ("clean",))), source)
        return end

    def finish(self, doc: Document, row: Mapping[str, Any] | None) -> Expected:
        """Phase 3 of a document that deduplication kept. row: its published provenance, of which only that is taken
        which other documents decide."""
        copies = int(row["copies"]) if row else 1
        sources = ",".join(row["sources"]) if row else doc.source
        doc = replace(doc, meta={**doc.meta, COPIES: copies, COPY_SOURCES: sources})
        steps = list(self.trial.steps(doc, ("shards",)))
        end = self._end(doc, steps, doc.source)
        if isinstance(end, Expected):
            return end
        texts = [step.before for step in steps if isinstance(step.before, Document)]
        encoded: Any = end
        return Expected(
            KEPT,
            provenance_row(encoded, self.run.manifest.columns, self.run.recipe.counted(), self.run.manifest.has_tokens),
            tokens=encoded.tokens,
            text=texts[-1].text if texts else "",
        )

    def _end(self, doc: Any, steps: Sequence[Step], source: str) -> Any:
        """What the last of the steps left, or what must be published where it lost the document."""
        if not steps:
            return doc
        last = steps[-1]
        if last.after is not None:
            return last.after
        before, decision = last.before, last.decision
        why = decision.reason.partition(":")[0]
        if decision.outcome == "dead":
            data = content_bytes(before)
            return _dead(decision.stage, why, source, before.origin, data, len(data))
        text = before.text if isinstance(before, Document) and last.stage.excerpts else ""
        listing = decision.found, decision.is_listed
        dropped = self._dropped(decision.stage, why, source, before.url, before.origin, text, *listing)
        return replace(dropped, size=content_size(before))

    def _dropped(
        self,
        stage: str,
        reason: str,
        source: str,
        url: str,
        origin: str,
        text: str,
        found: str = "",
        is_listed: bool = False,
    ) -> Expected:
        """As `PerDocument` writes rejects."""
        row = reject_row(stage, reason, source, url, origin, text, found, self.rejects)
        return Expected(REJECTED, row, is_rejected(reason, origin, self.rejects, is_listed))


def _dead(stage: str, error: str, source: str, origin: str, data: bytes, size: int) -> Expected:
    return Expected(DEAD, dead_row(stage, error, source, origin, data, size), size=size)


def provenance_row(
    doc: EncodedDocument, columns: Sequence[Column], counted: Container[str], has_tokens: bool = True
) -> Row:
    """The row that a shard's provenance has of a document, by the code that writes it; ids in hexadecimal. counted: as
    of `provenance_rows`. has_tokens: whether the corpus is one of tokens."""
    lengths = [len(doc.tokens)] if has_tokens else None
    (row,) = provenance_rows(batch_table([(0, doc)]), lengths, columns, counted)
    return {**row, "id": row["id"].hex(), "origin": printable(row["origin"])}


def different_fields(expected: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
    """Names of the fields that are not as expected; numbers as the 32-bit floats that Parquet holds."""
    return [name for name in expected if name not in OTHERS and not same(expected[name], found.get(name))]


def same(one: Any, other: Any) -> bool:
    """Whether two values of a row are equal; a float as it is stored, NaN as null."""
    if isinstance(one, float) or isinstance(other, float):
        numbers = [np.float32("nan" if value is None else value) for value in (one, other)]
        return bool(numbers[0] == numbers[1] or all(np.isnan(numbers)))
    return bool(one == other)
