"""The encoder of texts with spans: which tokens are trained, as runs of tokens in the provenance.

A token is trained where every character of it is: one that is half header and half answer is never drawn by a model,
since the header is complete before it writes. Such a token is not trained, and the document is counted.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field

from refinery.loader.read.loss_runs import COLUMN, write_runs
from refinery.transforms.core.answers import Answer
from refinery.transforms.core.document import Document, Drop, text_bytes, with_text_id
from refinery.transforms.core.spans.marks import Marks, SpansOfAnotherText, marks_of, without_marks
from refinery.transforms.core.stage import Note, Reason, Stage
from refinery.transforms.tokenize.encode import (
    ENCODE,
    EncodedDocument,
    Encoder,
    TokenizerInfo,
    TokenizerParams,
    check_tokenizer,
    load_encoder,
    tokenizer_files,
)
from refinery.transforms.tokenize.stretches import NotAligned, Stretches, load_stretches
from refinery.transforms.tokenize.token_spans import Spans

Bools = npt.NDArray[np.bool_]


class ChatTokenizerParams(TokenizerParams):
    """Which tokenizer. A chat template writes what stands around a conversation."""

    bos: Annotated[str, Field(min_length=1)] | None = None
    """name of the token that begins every text of a source with `content: spans`; null: none, and for conversations
    always null, since their template writes it"""
    eos: Annotated[str, Field(min_length=1)] | None = None
    """name of the token that ends every such text, trained where the text's last character is; null: none"""


class MarkedParams(ChatTokenizerParams):
    """With what the section `chat` says of long documents."""

    too_long: Literal["drop", "turns", "keep"] = "drop"
    max_tokens: Annotated[int, Field(ge=2)] | None = None


@dataclass(frozen=True, slots=True)
class MarkedEncoder:
    """What `encode_marked` needs. most: tokens of a document, None for no limit."""

    encoder: Encoder
    stretches: Stretches | None
    most: int | None


def complete_params(params: ChatTokenizerParams, sections: Mapping[str, Any]) -> MarkedParams:
    """The parameters with what other sections say of long documents. Raises ValueError for what cannot be packed, and
    for tokens around conversations."""
    packed, chat = sections["packed"], sections["chat"]
    cutting = sections["decontaminate"]
    if cutting is not None and cutting.action == "cut":
        raise ValueError(
            "decontaminate.action: cut given, which would cut conversations inside a turn; drop or note is allowed"
        )
    for name in ("bos", "eos"):
        if getattr(params, name) is not None and any(source.content == "chat" for source in sections["sources"]):
            raise ValueError(
                f"tokenizer.{name}: {getattr(params, name)!r:.40} given, but the template of conversations writes what "
                "stands around them; null is allowed, and other sources go into another recipe"
            )
    most = chat.max_tokens or (packed.length if packed else None)
    if packed and (chat.too_long == "keep" or most > packed.length):
        raise ValueError(
            f"chat.too_long: documents of more than {packed.length} tokens, a row of `packed`, given, which would be "
            "cut inside a turn; `drop` or `turns`, and chat.max_tokens up to the row's, are allowed"
        )
    return MarkedParams(**params.plain(), too_long=chat.too_long, max_tokens=most)


def load_marked_encoder(params: MarkedParams) -> MarkedEncoder:
    """Raises ValueError as `check_tokenizer` and `load_stretches`."""
    most = None if params.too_long == "keep" else params.max_tokens
    stretches = None if params.path.endswith(".model") else load_stretches(params.path)
    return MarkedEncoder(load_encoder(params), stretches, most)


def trained_tokens(spans: Spans, marks: Marks) -> tuple[Bools, int]:
    """Which tokens have characters of one trained span and no others, [tokens]; and how many have some and others.

    A token without characters, such as a space that the tokenizer put in front, belongs to the character behind it.
    """
    starts, ends = spans.starts.astype(np.int64), spans.ends.astype(np.int64)
    if not marks.trained:
        return np.zeros(len(starts), np.bool_), 0
    last = np.maximum(ends, starts + 1)
    firsts = np.array([start for start, _ in marks.trained], np.int64)
    stops = np.array([end for _, end in marks.trained], np.int64)
    span = np.searchsorted(firsts, starts, "right") - 1  # the last one that begins at the token or before
    inside = (span >= 0) & (starts < stops[span])
    whole = inside & (last <= stops[span])
    following = np.minimum(span + 1, len(firsts) - 1)
    reaches = ~inside & (span + 1 < len(firsts)) & (last > firsts[following])
    return whole, int((inside & ~whole).sum() + reaches.sum())


def encode_marked(doc: Document, resource: MarkedEncoder, params: MarkedParams) -> EncodedDocument | Drop | Answer:
    """The document as tokens, with the note of those that are trained.

    Raises SpansOfAnotherText where a stage changed the text without moving the spans, NotAligned where tokens and
    characters cannot be proved to belong together.
    """
    marks = marks_of(doc)
    if marks is None:
        raise SpansOfAnotherText("a document without spans")
    encoder = resource.encoder
    if resource.stretches is not None:
        ids, spans = resource.stretches.encode(doc.text, marks.controls)
    else:
        ids = encoder.tokenizer.encode(doc.text)
        found = encoder.tokenizer.spans(doc.text, ids)
        if found is None or marks.controls:
            raise NotAligned(doc.origin)
        spans = found
    if not len(ids):
        return Drop("no-tokens")
    mask, halves = trained_tokens(spans, marks)
    end_trained = bool(marks.trained) and marks.trained[-1][1] == len(doc.text)
    bos, eos = encoder.bos, encoder.eos
    counted = [f"token-over-a-border/{COLUMN}"] if halves else []
    room = None if resource.most is None else resource.most - len(bos) - len(eos)
    if room is not None and len(ids) > room:
        keep = _last_answer(mask, room + len(eos)) if params.too_long == "turns" else 0
        if not keep:
            return Drop("too-long", {"tokens": len(bos) + len(ids) + len(eos)}, {"tokens": room + len(bos) + len(eos)})
        ids, mask, eos, end_trained = ids[:keep], mask[:keep], (), False
        doc = replace(doc, text=doc.text[: int(spans.ends[keep - 1])])
        counted.append(f"turns-left-out/{COLUMN}")
    tokens = np.concatenate([np.array(bos, np.int64), ids, np.array(eos, np.int64)]).astype(encoder.dtype)
    mask = np.concatenate([np.zeros(len(bos), np.bool_), mask, np.full(len(eos), end_trained)])
    mask[0] = False  # nothing predicts a document's first token
    if not mask.any():
        return Drop("no-token-trained")
    meta = {**without_marks(with_text_id(doc)), COLUMN: write_runs(mask)}
    size = text_bytes(doc.text)
    encoded = EncodedDocument(doc.id, tokens, doc.source, doc.url, doc.origin, size, meta, position=doc.position)
    return Answer(encoded, tuple(counted)) if counted else encoded


def _last_answer(mask: Bools, most: int) -> int:
    """Tokens up to the end of the last trained run that ends within the first `most`; 0 for none."""
    ends = np.flatnonzero(mask[:-1] & ~mask[1:]) + 1
    ends = ends[ends <= most]
    return int(ends[-1]) if len(ends) else 0


def check_marked(params: MarkedParams) -> TokenizerInfo:
    """As `check_tokenizer`."""
    load_marked_encoder(params)
    return check_tokenizer(params)


ENCODE_MARKED: Stage[Any] = Stage(
    name="encode-masked",
    version=1,
    summary="Turn text into token ids, and the characters that are trained into runs of tokens.",
    params=ChatTokenizerParams,
    section=ENCODE.section,
    optional=False,
    judge=encode_marked,
    prepare=load_marked_encoder,
    check=check_marked,
    files=tokenizer_files,
    libraries=ENCODE.libraries,
    uses=("packed", "sources", "chat", "decontaminate"),
    complete=complete_params,
    hint=ENCODE.hint,
    output=ENCODE.output,
    coder=ENCODE.coder,
    notes=(
        *ENCODE.notes,
        Note(COLUMN, str, "the tokens that are trained, counted in the document: START-END each", column=True),
    ),
    reasons=(
        *ENCODE.reasons,
        Reason("too-long", "more tokens than `max_tokens` or a packed row", "`too_long: turns` keeps its first turns"),
        Reason("no-token-trained", "no token consists of trained characters alone"),
    ),
)
