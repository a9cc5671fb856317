"""Text to token ids: every document becomes BOS, its tokens, EOS, in the integer type of the shards.

No `from __future__ import annotations` here: Beam reads these hints.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import Field

from refinery.loader.format.indexed import dtype_for
from refinery.transforms.core.answers import Answer
from refinery.transforms.core.document import TEXT_ID, Document, Drop, Scalar, text_bytes, with_text_id
from refinery.transforms.core.params import Params
from refinery.transforms.core.stage import Note, Reason, Stage
from refinery.transforms.tokenize.chunk_notes import CHUNKS
from refinery.transforms.tokenize.load_tokenizer import load_tokenizer
from refinery.transforms.tokenize.token_columns import Lost, token_columns
from refinery.transforms.tokenize.tokenizer import Tokenizer

AUTO = "auto"


class TokenizerParams(Params):
    """Which tokenizer, and what stands around each document."""

    path: Annotated[str, Field(min_length=1)]
    """a Hugging Face tokenizer.json, a SentencePiece .model or a .tiktoken file, local, `gs://` or `s3://`, or
    `hf://ORG/NAME@COMMIT` for the tokenizer.json of a model there; need not exist yet for `train-tokenizer`"""
    bos: Annotated[str, Field(min_length=1)] | None = None
    """name of the token that begins every document; `auto` is the model's own (SentencePiece's bos_id; in a
    tokenizer.json the first well-known name among its added tokens); null is none"""
    eos: Annotated[str, Field(min_length=1)] | None = AUTO
    """name of the token that ends every document; `auto` likewise"""


class TokenizerInfo(NamedTuple):
    """What the launcher and the manifest need to know of a tokenizer; None where documents get no such token."""

    vocab_size: int
    bos_id: int | None
    eos_id: int | None
    engine: str
    lossless: bool


@dataclass(frozen=True, slots=True)
class EncodedDocument:
    """A document as tokens: uint16 (vocabulary up to 65,500 ids) or int32, shape (tokens,), with BOS and EOS.

    text_bytes: UTF-8 bytes of the text that was encoded. columns: of the tokens, as `token_columns` makes them.
    position: of `Document`.
    """

    id: bytes
    tokens: npt.NDArray[Any]
    source: str
    url: str
    origin: str
    text_bytes: int
    meta: Mapping[str, Scalar]
    columns: bytes = b""
    position: int = 0


@dataclass(frozen=True, slots=True)
class Encoder:
    """A loaded tokenizer with the ids and the dtype that every document needs."""

    tokenizer: Tokenizer
    bos: tuple[int, ...]
    eos: tuple[int, ...]
    dtype: np.dtype[Any]


def check_tokenizer(params: TokenizerParams) -> TokenizerInfo:
    """Facts about the tokenizer, for the launcher to call before anything runs.

    Raises ValueError, one line, for a missing, foreign or damaged file and for a BOS or EOS that it does not have.
    """
    tokenizer = load_tokenizer(params.path)
    bos = _boundary(tokenizer, "bos", params.bos, tokenizer.bos_id())
    eos = _boundary(tokenizer, "eos", params.eos, tokenizer.eos_id())
    return TokenizerInfo(tokenizer.vocab_size, bos, eos, tokenizer.engine, tokenizer.lossless)


def _boundary(tokenizer: Tokenizer, key: str, name: str | None, own: int | None) -> int | None:
    if name is None:
        return None
    found = own if name == AUTO else tokenizer.token_id(name)
    if found is None:
        what = (
            "auto given, but the tokenizer names none"
            if name == AUTO
            else f"{name!r} given, which is not a token of it"
        )
        raise ValueError(f"{key}: {what}; a token's name or null is allowed")
    return found


def load_encoder(params: TokenizerParams) -> Encoder:
    """Everything `encode_document` needs, once per worker. Raises ValueError as `check_tokenizer` does."""
    info = check_tokenizer(params)
    bos = () if info.bos_id is None else (info.bos_id,)
    eos = () if info.eos_id is None else (info.eos_id,)
    return Encoder(load_tokenizer(params.path), bos, eos, dtype_for(info.vocab_size))


def encode_document(doc: Document, encoder: Encoder, params: TokenizerParams) -> EncodedDocument | Drop | Answer:
    """The document as tokens; "no-tokens" for a text that encodes to nothing. Raises ValueError for lone surrogates.

    A document with the note `chunks` also gets its columns, or a finding that says why it has none; one whose text is
    not that of its id (cut, redacted, a part of another) the note `text_id`.
    """
    ids = encoder.tokenizer.encode(doc.text)
    if not len(ids):
        return Drop("no-tokens")
    start = len(encoder.bos)
    tokens = np.empty(start + len(ids) + len(encoder.eos), dtype=encoder.dtype)
    tokens[:start] = encoder.bos
    tokens[start : start + len(ids)] = ids
    tokens[start + len(ids) :] = encoder.eos
    size, meta = text_bytes(doc.text), with_text_id(doc)
    encoded = EncodedDocument(doc.id, tokens, doc.source, doc.url, doc.origin, size, meta, position=doc.position)
    if CHUNKS not in doc.meta:
        return encoded
    try:
        around = len(encoder.bos), len(encoder.eos)
        return replace(encoded, columns=token_columns(doc.text, ids, doc.meta, encoder.tokenizer, around))
    except Lost as lost:
        return Answer(encoded, (str(lost),))


def tokenizer_files(params: TokenizerParams) -> tuple[str, ...]:
    """The tokenizer: its content decides the result."""
    return (params.path,)


ENCODE = Stage(
    name="encode",
    version=3,
    summary="Turn text into token ids: BOS, the text's tokens, EOS, in the integer type of the shards.",
    params=TokenizerParams,
    section="tokenizer",
    optional=False,
    judge=encode_document,
    prepare=load_encoder,
    check=check_tokenizer,
    files=tokenizer_files,
    libraries=("sentencepiece", "tokenizers"),
    notes=(Note(TEXT_ID, str, "the id of the text that was encoded, in hexadecimal, where it is not the document's"),),
    hint="refinery train-tokenizer learns one",
    output=EncodedDocument,
    coder="refinery.transforms.tokenize.encoded_coder",
    reasons=(
        Reason(
            "no-tokens",
            "the tokenizer gives no token for the text",
            "nothing if rare; otherwise the tokenizer's normalizer removes too much",
        ),
    ),
)
