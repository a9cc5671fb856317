"""`refinery show`: documents of a corpus as texts, with where they come from."""

import json
from collections.abc import Iterator
from typing import Any

from refinery.pipelines.corpus.replay.decision_text import decision_lines
from refinery.pipelines.corpus.show.texts import Text, Texts
from refinery.pipelines.corpus.trace.answers import Answer, Doc, End, Kept, Query, Removed, TakenDown, Trace
from refinery.pipelines.corpus.trace.trace_text import answer_lines, query_line
from refinery.transforms.core.safe_text import safe, safe_lines

MOST = 10  # documents of one query that are shown
RULE = "─" * 72


def show_lines(found: Trace, texts: Texts, tokens: bool) -> Iterator[str]:
    """What became of each, then its text between rules; of a removed one the text that was kept instead. tokens: ids
    and pieces, a line each, instead of the text."""
    for query, answers in grouped(found):
        yield query_line(query)
        for answer in answers[:MOST]:
            yield from (f"  {line}" for line in answer_lines(query, answer))
            text = text_of(answer, texts, query)
            if text is None:
                continue
            if text.problem:
                yield f"  no text: {safe(text.problem)}"
            if text.text or text.ids:
                yield f"  {safe(text.what)}"
                yield RULE
                yield from token_lines(text, texts) if tokens and text.ids else safe_lines(text.text)
                yield RULE
            if text.differs:
                yield f"  not as in the run: {safe(text.differs)}"
            lost = [each for each in text.decisions if each.outcome in ("dropped", "dead")]
            yield from (f"  {line}" for line in decision_lines(lost, every=False))
        if len(answers) > MOST:
            yield f"  and {len(answers) - MOST:,} more; name one with --id"


def token_lines(text: Text, texts: Texts) -> Iterator[str]:
    """Place, id and piece of every token, BOS and EOS too."""
    special = texts.corpus.manifest.tokenizer
    names = {special.bos_id: "(BOS)", special.eos_id: "(EOS)"}
    for place, id_ in enumerate(text.ids):
        piece = names[id_] if id_ in names else quoted(texts.corpus.tokenizer.decode([id_]))
        yield f"{place:>8}{id_:>9}  {piece}"


def quoted(piece: str) -> str:
    """A piece in quotes, so spaces are seen."""
    return f"'{safe(piece)}'"


def show_json(found: Trace, texts: Texts) -> Iterator[str]:
    """An object a document: query, where it comes from, text, and tokens of a kept one."""
    for query, answers in grouped(found):
        for answer in answers:
            text = text_of(answer, texts, query)
            doc = shown_doc(answer, query)
            fields: dict[str, Any] = {"query": {query.field: query.value}, "kept": is_kept(answer)}
            fields |= {"id": doc.id, "url": doc.url, "source": doc.source, "origin": doc.origin}
            fields |= {"text": text.text, "what": text.what, "problem": text.problem} if text else {"text": ""}
            fields |= {"tokens": list(text.ids)} if text and text.ids else {}
            yield json.dumps(fields)


def raw_texts(found: Trace, texts: Texts) -> Iterator[str]:
    """The texts alone, letter by letter."""
    for query, answers in grouped(found):
        for answer in answers:
            text = text_of(answer, texts, query)
            if text is not None and text.text:
                yield text.text


def grouped(found: Trace) -> Iterator[tuple[Query, list[Answer]]]:
    """Each query with its answers."""
    by_query: dict[Query, list[Answer]] = {}
    for query, answer in found.answers:
        by_query.setdefault(query, []).append(answer)
    yield from by_query.items()


def end_of(answer: Answer) -> Answer | End:
    """The answer whose text is shown: of a removed document that of the one at the end of its chain."""
    return answer.end if isinstance(answer, Removed) else answer


def is_kept(answer: Answer) -> bool:
    """Whether the text is one of the corpus."""
    return isinstance(end_of(answer), Kept)


def shown_doc(answer: Answer, query: Query) -> Doc:
    """The document whose text is shown; of one that is listed nowhere its origin, if that was asked for."""
    doc = getattr(end_of(answer), "doc", None) or Doc()
    return doc if doc.origin or query.field != "origin" else Doc(doc.id, doc.url, doc.source, query.value)


def text_of(answer: Answer, texts: Texts, query: Query) -> Text | None:
    """The text of an answer's document; None where nobody knows where it is, and of one that was taken down."""
    end = end_of(answer)
    if isinstance(end, Kept):
        return texts.kept(end)
    if isinstance(end, TakenDown):
        return None
    doc = shown_doc(answer, query)
    return texts.lost(doc) if doc.origin else None
