"""The stage of chunks: where a file may be cut under the budget, noted beside it, or documents of its chunks."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field

from refinery.transforms.code.chunks import CountTokens, chunk_source
from refinery.transforms.code.languages import LIBRARIES, language_of
from refinery.transforms.core.document import Document, Scalar, part_id
from refinery.transforms.core.params import Params
from refinery.transforms.core.stage import Note, Stage
from refinery.transforms.tokenize.chunk_notes import CHUNKS, CHUNKS_OF, text_hash, write_chunks
from refinery.transforms.tokenize.load_tokenizer import load_tokenizer

BUDGET, LEAST = 4096, 64  # tokens of a chunk: where nothing else is said, and at least


class ChunkParams(Params):
    """How large chunks are, and what becomes of them."""

    tokenizer: str = ""
    """tokenizer whose tokens are counted; empty: that of the recipe's section `tokenizer`"""
    budget: Annotated[int, Field(ge=LEAST)] | None = None
    """maximum tokens of a chunk, encoded by itself without BOS and EOS; null: what fits into a row of `packed`
    beside BOS and EOS, or 4,096 without packed rows"""
    emit: Literal["file", "chunks"] = "file"
    """`file` keeps the whole file and records the borders, `chunks` makes each chunk a document"""


def complete_params(params: ChunkParams, sections: Mapping[str, Any]) -> ChunkParams:
    """The parameters with the tokenizer of the recipe, and a budget that fits its packed rows, where they name none."""
    packed = sections["packed"]
    row = max(packed.length - 2, LEAST) if packed else BUDGET
    return params.replace(
        tokenizer=params.tokenizer or sections["tokenizer"].path, budget=row if params.budget is None else params.budget
    )


def load_counter(params: ChunkParams) -> CountTokens:
    """Counts tokens of texts. Raises ValueError without a tokenizer, and as `load_tokenizer` does."""
    if not params.tokenizer:
        raise ValueError("tokenizer: empty, but the path of a tokenizer is needed")
    tokenizer = load_tokenizer(params.tokenizer)
    return lambda texts: [len(ids) for ids in tokenizer.encode_batch(texts)]


def split_document(doc: Document, count: CountTokens, params: ChunkParams) -> Iterator[Document]:
    """The file with its notes, or a document per chunk, with an id of its own (`part_id`) and its place in the file.

    The language is that of the note `path`, else of the url. Raises ValueError for lone surrogates.
    """
    path = str(doc.meta.get("path") or doc.url)
    found = chunk_source(doc.text, language_of(path, doc.text), count, params.budget or BUDGET)
    meta: dict[str, Scalar] = dict(doc.meta) | {"chunk_borders": found.borders}
    if params.emit == "file":
        yield replace(doc, meta=meta | {CHUNKS: write_chunks(found.chunks), CHUNKS_OF: text_hash(doc.text)})
        return
    for number, chunk in enumerate(found.chunks):
        text = doc.text[chunk.start : chunk.end]
        notes: dict[str, Scalar] = {
            "chunk_kind": chunk.kind,
            "chunk_depth": chunk.depth,
            "chunk_number": number,
            "chunk_start": chunk.start,
        }
        yield replace(doc, text=text, id=part_id(doc, text, number), meta=meta | notes)


def tokenizer_files(params: ChunkParams) -> tuple[str, ...]:
    """The tokenizer: its content decides the result."""
    return (params.tokenizer,) if params.tokenizer else ()


CHUNK = Stage(
    name="chunk",
    version=3,
    summary="Cut source files at function and class borders into chunks of a number of tokens.",
    params=ChunkParams,
    judge=split_document,
    prepare=load_counter,
    files=tokenizer_files,
    uses=("tokenizer", "packed"),
    complete=complete_params,
    libraries=("sentencepiece", "tokenizers", *LIBRARIES),
    hint="refinery train-tokenizer learns one",
    splits=True,
    notes=(
        Note(CHUNKS, str, "where the file may be cut: END:KIND:DEPTH each, * behind whole constructs"),
        Note(CHUNKS_OF, str, "hash of the text that `chunks` are of: the encoder believes them of no other"),
        Note(
            "chunk_borders", str, "`syntax`, or `braces` where the file has no grammar or does not parse", column=True
        ),
        Note("chunk_kind", str, "what most of the chunk is", column=True, category=True),
        Note("chunk_depth", int, "namespaces, classes and functions around the chunk", column=True),
        Note("chunk_number", int, "the chunk's place in its file, from 0", column=True),
        Note("chunk_start", int, "character of its file that the chunk begins with"),
    ),
)
