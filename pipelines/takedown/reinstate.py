"""Duplicates whose survivor went: which of them take its place.

They are compared as deduplication compares, best rank first, with each other and with what the corpus keeps; what is
in the corpus stays there. One that is no duplicate of any goes through the stages of phase 3, as if it had never been
removed. Its id, tokens and place are those that a run without the removed documents would have given it.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

from refinery.loader.format.manifest import Column
from refinery.loader.format.removals import CORPUS, SOURCE
from refinery.loader.format.takedown import ADDED_SCHEMA, REMOVED_SCHEMA
from refinery.loader.storage.store import Store
from refinery.pipelines.checks.takedowns import listed_rows
from refinery.pipelines.export.place import SourceCorpus
from refinery.pipelines.recipe.recipe import Recipe
from refinery.pipelines.runners.runner import Runner
from refinery.pipelines.takedown.compare import Rival, compare
from refinery.pipelines.takedown.decide import Decision
from refinery.pipelines.takedown.funnel import Step
from refinery.pipelines.takedown.kept_work import KeptWork, Member, NotKept, read_kept_work
from refinery.pipelines.takedown.request import LICENCE, Request
from refinery.pipelines.takedown.rewrite import batch_of
from refinery.pipelines.takedown.rows import Key, Row, key_of
from refinery.transforms.core.document import COPIES, Document, Drop, Finding, Scored, text_bytes
from refinery.transforms.core.per_document import content_size
from refinery.transforms.core.prepared import Prepared, prepare_held, prepare_once
from refinery.transforms.filter.decontaminate import DecontaminateParams, judge_contamination, load_benchmarks
from refinery.transforms.tokenize.encode import EncodedDocument
from refinery.transforms.write.shards import provenance_rows

ASKED = "the request names it, too"


@dataclass(frozen=True)
class Unrepresented:
    """It does not come back. why: a sentence."""

    row: Row
    why: str


@dataclass(frozen=True)
class Moved:
    """It is a duplicate of another document. row: as removals/ has it from now on; was: its reason before. size: of its
    text in bytes. behind: id of the document that was in the corpus before and stands for it in the end, or b""."""

    row: Row
    was: str
    size: int
    behind: bytes


@dataclass(frozen=True)
class Lost:
    """It is no duplicate any more, and a later stage dropped it. steps: what the stages of phase 3 made of it."""

    row: Row
    size: int
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Reinstated:
    """It is in the corpus again. instead_of: id of the document that had stood for it."""

    row: Row
    size: int
    steps: tuple[Step, ...]
    document: EncodedDocument
    instead_of: bytes


@dataclass(frozen=True)
class Allowed:
    """What may come back. columns: of the corpus' stages. benchmarks: what no text may hold."""

    request: Request
    columns: Sequence[Column]
    benchmarks: DecontaminateParams | None = None

    def against(self, document: Document) -> str:
        """Why a document may not, as deduplication had it, "" where it may."""
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
        (row,) = provenance_rows(batch_of([document], 0), [len(document.tokens)], self.columns, counted)
        return ASKED if self.request.match({name: [value] for name, value in row.items()})[0] else ""


Fate = Unrepresented | Moved | Lost | Reinstated


@dataclass(frozen=True)
class Outcome:
    """What becomes of all candidates. counted: columns of the recipe that are 0 where a document has no such note."""

    fates: list[Fate] = field(default_factory=list)
    counted: frozenset[str] = frozenset()


def reinstate(
    corpus: SourceCorpus, decision: Decision, allowed: Allowed, work: str, recipe_file: str, runner: Runner
) -> Outcome:
    """What becomes of every candidate. Cost: one pass over the ids, and one over the signatures, of all documents in
    the work location; and of the stages of phase 3 for those that are no duplicates. Memory: texts of the candidates.
    """
    if not decision.candidates:
        return Outcome()
    try:
        kept = read_kept_work(corpus, work, recipe_file, runner.use_code)
        _check_cuts(kept.recipe)
    except NotKept as error:
        return Outcome([Unrepresented(row, str(error)) for row in decision.candidates])
    counted = kept.recipe.counted()
    return Outcome(list(_fates(corpus, kept, decision, allowed, counted)), counted)


def _check_cuts(recipe: Recipe) -> None:
    """What is cut out of a document depends on all others; of removed ones phase 2 has not noted it."""
    for section, on in (
        ("line_dup", recipe.line_dup),
        ("substring_dup", recipe.substring_dup),
        ("chunk_dup", recipe.chunk_copies()),
    ):
        if on is not None:
            raise NotKept(f"the recipe has {section} on, and what would be cut out of it is not known")


def _fates(
    corpus: SourceCorpus, kept: KeptWork, decision: Decision, allowed: Allowed, counted: frozenset[str]
) -> Iterator[Fate]:
    known = kept.candidates(map(key_of, decision.candidates))
    targets = kept.recipe.targets()
    judge = Judge(kept.recipe, allowed, counted, kept.digests)
    rivals: list[Rival] = []
    for row in decision.candidates:
        member = known.get(key_of(row))
        if member is None or member.document is None:
            yield Unrepresented(row, "its text is not among the parts of the run")
        elif row["source"] in targets:
            yield Unrepresented(row, "its source has a target, which is met without it or not at all")
        elif asked := allowed.against(member.document) or judge.asked(Rival(row, member)):
            yield Unrepresented(row, asked)
        else:
            rivals.append(Rival(row, member))
    if not rivals:
        return
    gone, back = earlier(corpus.store, corpus, decision)
    near = [kept.recipe.near_dup, *kept.recipe.near_dup_in_source.values()]
    layouts = [params for params in near if params is not None]
    others = kept.neighbours([rival.member for rival in rivals], layouts, gone, back) if layouts else []
    compare(rivals, others, kept.recipe)
    behind: dict[Key, list[Rival]] = {}
    for rival in rivals:
        if rival.instead is not None:
            behind.setdefault(rival.root.key, []).append(rival)
    for rival in rivals:
        if rival.instead is None:
            yield judge.fate(rival, behind.get(rival.key, []))
        else:
            yield _moved(rival)


def earlier(store: Store, corpus: SourceCorpus, decision: Decision) -> tuple[set[bytes], set[bytes]]:
    """(ids that are in the corpus no more, ids that came back), now and in the takedowns before."""
    gone, back = set(decision.gone_ids), set[bytes]()
    for takedown in corpus.manifest.takedowns:
        went = {
            row["id"] for row in listed_rows(store, takedown.removed, REMOVED_SCHEMA, ("id", "split")) if row["split"]
        }
        added = listed_rows(store, takedown.added, ADDED_SCHEMA, ("id",)) if takedown.added else ()
        came = {row["id"] for row in added}
        gone, back = (gone | went) - came, (back - went) | came
    return gone | decision.gone_ids, back - decision.gone_ids


def _moved(rival: Rival) -> Moved:
    """The row of removals/ of a rival that is a duplicate of another document."""
    scope = SOURCE if rival.reason == "near-duplicate-in-source" else CORPUS
    facts = {"kept_id": rival.kept_id, "similarity": rival.similarity, "reason": rival.reason, "scope": scope}
    size = text_bytes(cast(Document, rival.member.document).text)
    last = rival.root.instead
    return Moved({**rival.row, **facts}, rival.row["reason"], size, b"" if last is None else cast(Member, last).id)


@dataclass
class Judge:
    """The stages of phase 3 on one document after the other, each with what it prepares. counted: as of `Outcome`.
    digests: of the recipe's files, which are held to them."""

    recipe: Recipe
    allowed: Allowed
    counted: frozenset[str]
    digests: Mapping[str, str] = field(default_factory=dict)
    prepared: dict[str, Prepared] = field(default_factory=dict)

    def asked(self, rival: Rival) -> str:
        """Why a candidate may not come back that a rule asks for by what the stages of phase 3 measure, else ""."""
        fate = self.fate(rival, []) if self.allowed.request.where else None
        return fate.why if isinstance(fate, Unrepresented) and fate.why == ASKED else ""

    def fate(self, rival: Rival, behind: Iterable[Rival]) -> Fate:
        """What the stages make of a document that stands for those behind it."""
        document = cast(Document, rival.member.document)
        behind = list(behind)
        sources = sorted({document.source, *(other.row["source"] for other in behind)})
        meta = {**document.meta, COPIES: 1 + len(behind), "copy_sources": ",".join(sources)}
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
                answer: Any = stage.judge(doc, *resource, params=params)
                if stage.splits and not isinstance(answer, Drop):
                    answer = list(answer)
            except Exception as error:  # noqa: BLE001 - as in a run; a dead letter is none of a takedown's
                return Unrepresented(rival.row, f"the stage {stage.name} failed on it ({type(error).__name__})")
            if isinstance(answer, list):
                if [part.id for part in answer] != [doc.id]:
                    return Unrepresented(rival.row, f"the stage {stage.name} makes several documents of one")
                (answer,) = answer
            inner = answer.answer if isinstance(answer, Finding | Scored) else answer
            if isinstance(inner, Drop):
                steps.append(Step(stage.name, entered, dropped=inner.reason))
                return Lost(rival.row, size, tuple(steps))
            steps.append(Step(stage.name, entered, content_size(inner)))
            doc = inner
        if asked := self.allowed.against_published(doc, self.counted):
            return Unrepresented(rival.row, asked)
        return Reinstated(rival.row, size, tuple(steps), doc, rival.row["kept_id"])


__all__ = ["Fate", "Lost", "Moved", "Outcome", "Reinstated", "Unrepresented", "reinstate"]
