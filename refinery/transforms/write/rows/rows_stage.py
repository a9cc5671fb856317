"""The last stage of a run whose output has the shape of its input: what `encode` is in a lane of tokens."""

from typing import Literal

import numpy as np

from refinery.transforms.core.document import TEXT_ID, Document, with_text_id
from refinery.transforms.core.names import ROW_CHANGED
from refinery.transforms.core.params import Params
from refinery.transforms.core.stage import Note, Stage
from refinery.transforms.tokenize.encode import EncodedDocument


class RowsParams(Params):
    """How rows of the inputs become rows of the outputs."""

    texts: Literal["changed", "all"] = "changed"
    """`changed` writes the text of rows whose text a stage changed, and leaves all others as they are; `all` writes
    every text, as after extraction"""
    into: str = ""
    """the field that texts are written into, a new one; empty: the one that they were read from"""


def finish_row(doc: Document, params: RowsParams) -> EncodedDocument:
    """The document with its text in UTF-8 where an encoded one has its tokens, if that is to be written. One whose text
    is not that of its id (cut, redacted) gets the note `text_id`. Raises UnicodeEncodeError for lone surrogates."""
    data, meta = doc.text.encode(), with_text_id(doc)
    written = np.frombuffer(data if params.texts == "all" or TEXT_ID in meta or ROW_CHANGED in meta else b"", np.uint8)
    return EncodedDocument(doc.id, written, doc.source, doc.url, doc.origin, len(data), meta, position=doc.position)


ROWS = Stage(
    name="rows",
    version=1,
    summary="Hand the row to the file that it came from, with its text if that changed.",
    params=RowsParams,
    optional=False,
    judge=finish_row,
    notes=(Note(TEXT_ID, str, "the id of the text that was written, in hexadecimal, where it is not the document's"),),
    output=EncodedDocument,
    coder="refinery.transforms.tokenize.encoded_coder",
)
