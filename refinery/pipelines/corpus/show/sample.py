"""`refinery sample`: documents to read, kept ones or dropped ones, with what their rules measured."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from refinery.loader.format.removals import REASONS
from refinery.pipelines.corpus.replay.decision_text import decision_lines
from refinery.pipelines.corpus.show.draw import draw_kept, draw_rejected, dropped_counts
from refinery.pipelines.corpus.show.show import RULE
from refinery.pipelines.corpus.show.texts import Text, Texts
from refinery.pipelines.corpus.trace.answers import Kept, Query, Rejected, Replayed
from refinery.pipelines.corpus.trace.trace_text import answer_lines
from refinery.pipelines.published.scan import Say
from refinery.transforms.core.names import OVER_TARGET
from refinery.transforms.core.safe_text import safe, safe_lines

if TYPE_CHECKING:
    from refinery.pipelines.corpus.replay.try_document import Decision

EXCERPT = "the beginning, from rejects/"
NOT_READ = Text("", "", problem="--no-replay: its record was not read again")
NO_QUERY = Query("url", "-")  # of lines that nobody asked for by name


@dataclass(frozen=True)
class Sampled:
    """A document to read. decisions: of the stages, where they judged it again."""

    answer: Kept | Rejected
    text: Text
    decisions: "tuple[Decision, ...]" = ()


def sample_kept(texts: Texts, number: int, seed: int, measure: bool) -> Iterator[Sampled]:
    """Documents of the corpus. measure: judged again, for what every rule measured."""
    for kept in draw_kept(texts.corpus, number, seed):
        found = texts.run.replay(kept.doc)[0] if measure else None
        yield Sampled(kept, texts.kept(kept), found.decisions if found else ())


def sample_rejected(
    texts: Texts, stage: str, reason: str, number: int, seed: int, replay: bool, say: Say
) -> Iterator[Sampled]:
    """Documents that a stage dropped, from the sample in rejects/. replay: judged again, for what the rule measured and
    for more of the text than the excerpt."""
    for rejected, excerpt in draw_rejected(texts.corpus, stage, reason, number, seed, say):
        text = (
            texts.lost(rejected.doc) if replay else Text("", "", problem="--no-replay: its record was not read again")
        )
        answer = rejected
        if replay:
            problem = text.problem if not text.decisions else ""
            again = Replayed(rejected.doc, text.decisions, problem, text.differs)
            answer = replace(rejected, replay=again)
        if not text.text and excerpt:
            text = replace(text, text=excerpt, what=EXCERPT, problem="")
        yield Sampled(answer, text, text.decisions)


def nothing_line(texts: Texts, stage: str, reason: str) -> str:
    """Why there is nothing to read."""
    dropped = dropped_counts(texts.corpus.manifest)
    total = sum(n for (s, r), n in dropped.items() if stage in ("", s) and reason in ("", r))
    reasons = {r for s, r in dropped if stage in ("", s) and reason in ("", r)}
    if reasons <= {OVER_TARGET}:
        return f"{total:,} documents were cut at the target of their source, which rejects/ never lists"
    if reasons <= set(REASONS):
        return f"{total:,} duplicates, which removals/ lists; `refinery trace` and `show` say what was kept instead"
    rejects = texts.corpus.manifest.recipe.get("rejects")
    rate = rejects.get("rate") if isinstance(rejects, dict) else None
    return f"{total:,} documents were dropped for this reason, but none is listed in rejects/: rejects.rate is {rate}"


def sample_lines(found: Iterator[Sampled]) -> Iterator[str]:
    """Each document: what became of it, what was measured, its text between rules."""
    for number, each in enumerate(found, 1):
        yield f"── {number} {'─' * 66}"
        yield from answer_lines(NO_QUERY, each.answer)
        if isinstance(each.answer, Kept):
            measured = (decision for decision in each.decisions if decision.readings or decision.notes)
            yield from (f"  {line}" for line in decision_lines(measured))
        if each.text.text:
            yield f"  {safe(each.text.what)}"
            yield RULE
            yield from safe_lines(each.text.text)
        elif each.text.decisions and each.text.problem:  # else the lines above say it
            yield f"  no text: {safe(each.text.problem)}"
        yield ""


def sample_json(found: Iterator[Sampled]) -> Iterator[str]:
    """An object a document."""
    for each in found:
        answer, doc = each.answer, each.answer.doc
        fields: dict[str, Any] = {"answer": "kept" if isinstance(answer, Kept) else "rejected"}
        fields |= {"id": doc.id, "url": doc.url, "source": doc.source, "origin": doc.origin}
        if isinstance(answer, Kept):
            fields |= {"shard": answer.shard, "document": answer.document, "columns": dict(answer.columns)}
        else:
            fields |= {"stage": answer.stage, "reason": answer.reason, "found": answer.found}
        fields["measured"] = [
            {
                "stage": decision.stage,
                "reason": reading.rule.reason,
                "rule": reading.rule.key,
                "value": reading.value,
                "threshold": reading.rule.threshold,
                "drops": reading.drops,
            }
            for decision in each.decisions
            for reading in decision.readings
            if reading.value is not None
        ]
        fields["noted"] = {k: v for decision in each.decisions for k, v in (decision.notes or {}).items()}
        fields["limits"] = {k: v for decision in each.decisions for k, v in (decision.limits or {}).items()}
        yield json.dumps({**fields, "text": each.text.text, "problem": each.text.problem}, default=str)
