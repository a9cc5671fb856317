"""The stages of phase 3 on a document that deduplication would have kept: whether it may come back, and as what."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from refinery.loader.format.manifest import Column
from refinery.pipelines.corpus.remove.fates import Lost, Reinstated, Unrepresented
from refinery.pipelines.corpus.remove.funnel import Step
from refinery.pipelines.corpus.remove.request import BY_OTHERS, LICENCE, Request
from refinery.pipelines.corpus.remove.rewrite import batch_of
from refinery.pipelines.corpus.remove.rows import Row
from refinery.pipelines.recipe.recipe import Recipe
from refinery.transforms.core.answers import Answer, answer_of
from refinery.transforms.core.document import (
    COPIES,
    Document,
    content_size,
    text_bytes,
)
from refinery.transforms.core.lane import AnyStage
from refinery.transforms.core.lost_rows import is_rejected, reject_row
from refinery.transforms.core.prepared import Prepared, prepare_held, prepare_once
from refinery.transforms.core.rejects import RejectParams
from refinery.transforms.filter.decontaminate import DecontaminateParams, judge_contamination, load_benchmarks
from refinery.transforms.tokenize.encode import EncodedDocument
from refinery.transforms.write.shards import provenance_rows

ASKED = "the request names it, too"


@dataclass(frozen=True)
class Allowed:
    """What may come back. columns: of the corpus' stages. benchmarks: what no text may hold. has_tokens: whether the
    corpus is one of tokens."""

    request: Request
    columns: Sequence[Column]
    benchmarks: DecontaminateParams | None = None
    has_tokens: bool = True

    def against(self, document: Document) -> str:
        """Why a document may not, in the form that deduplication reads; "" where it may."""
        meta, judged = document.meta, self.benchmarks
        columns: dict[str, list[Any]] = {
            "url": [document.url],
            "source": [document.source],
            LICENCE: [meta.get(LICENCE, "")],
        }
        if self.request.match(columns)[0]:
            return ASKED
        if judged is not None and judge_contamination(document, load_benchmarks(judged), judged) is not document:
            return "it holds items of the benchmarks itself"
        return ""

    def against_published(self, document: EncodedDocument, counted: Collection[str]) -> str:
        """The same of a document as it would be published, with all that the stages noted."""
        if self.request.where is None:
            return ""
        lengths = [len(document.tokens)] if self.has_tokens else None
        (row,) = provenance_rows(batch_of([document], 0), lengths, self.columns, counted)
        return ASKED if self.request.match({name: [value] for name, value in row.items()})[0] else ""

    @property
    def by_itself(self) -> bool:
        """Whether a rule asks for what the stages of phase 3 measure of a document alone."""
        rule = self.request.where
        return rule is not None and not set(rule.names) & set(BY_OTHERS)


@dataclass
class Judge:
    """The stages of phase 3 on one document after the other, each with what it prepares. counted: as of `Outcome`.
    digests: of the recipe's files, which are held to them."""

    recipe: Recipe
    allowed: Allowed
    counted: frozenset[str]
    digests: Mapping[str, str] = field(default_factory=dict)
    prepared: dict[str, Prepared] = field(default_factory=dict)

    def refuses(self, document: Document) -> str:
        """Why a duplicate may not come back, whatever it stands for, else "". Cost: of the stages where a rule asks for
        what they measure."""
        if (asked := self.allowed.against(document)) or not self.allowed.by_itself:
            return asked
        fate = self.fate({}, document, 1, (document.source,))
        return fate.why if isinstance(fate, Unrepresented) and fate.why == ASKED else ""

    def fate(
        self, row: Row, document: Document, copies: int, sources: Sequence[str]
    ) -> Unrepresented | Lost | Reinstated:
        """What the stages make of a document that stands for so many. row: of removals/, as it was."""
        if asked := self.allowed.against(document):
            return Unrepresented(row, asked)
        answer = self.publish(row, document, copies, sources)
        if isinstance(answer, Reinstated) and (asked := self.allowed.against_published(answer.document, self.counted)):
            return Unrepresented(row, asked)
        return answer

    def publish(
        self, row: Row, document: Document, copies: int, sources: Sequence[str]
    ) -> Unrepresented | Lost | Reinstated:
        """The same, whoever asks for it."""
        meta = {**document.meta, COPIES: copies, "copy_sources": ",".join(sources)}
        size, steps = text_bytes(document.text), list[Step]()
        doc: Any = replace(document, meta=meta)
        for stage, params in self.recipe.active("shards"):
            if stage.judge is None:
                continue
            if stage.prepare and stage.name not in self.prepared:
                held = stage.held_files(params, self.digests)
                self.prepared[stage.name] = prepare_once(partial(prepare_held, partial(stage.prepare, params), held))
            resource = [self.prepared[stage.name].resource] if stage.prepare else []
            entered = content_size(doc)
            try:
                answer = answer_of(stage.judge(doc, *resource, params=params))
                results = list(answer.result) if stage.splits and not answer.reason else [answer.result]
            except Exception as error:  # noqa: BLE001 - as in a run; a dead letter is none of a takedown's
                return Unrepresented(row, f"the stage {stage.name} failed on it ({type(error).__name__})")
            if answer.reason:
                steps.append(Step(stage.name, entered, dropped=answer.reason))
                return Lost(row, size, tuple(steps), rejected(stage, doc, answer, self.recipe.rejects))
            if stage.splits and [part.id for part in results] != [doc.id]:
                return Unrepresented(row, f"the stage {stage.name} makes several documents of one")
            (doc,) = results
            steps.append(Step(stage.name, entered, content_size(doc)))
        return Reinstated(row, size, tuple(steps), doc, row.get("kept_id", b""))


def rejected(stage: AnyStage, doc: Any, answer: Answer, rejects: RejectParams) -> Row | None:
    """The row of rejects/ of a document that a stage dropped, as a run writes it; None where its sample does not take
    it."""
    if not is_rejected(answer.reason, doc.origin, rejects, answer.is_listed):
        return None
    text = doc.text if isinstance(doc, Document) and stage.excerpts else ""
    return reject_row(stage.name, answer.reason, doc.source, doc.url, doc.origin, text, answer.summary, rejects)
