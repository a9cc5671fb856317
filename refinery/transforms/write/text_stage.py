"""The last stage of a lane whose shards hold texts: what `encode` is in a lane of tokens."""

import numpy as np

from refinery.transforms.core.document import TEXT_ID, Document, with_text_id
from refinery.transforms.core.params import Params
from refinery.transforms.core.stage import Note, Stage
from refinery.transforms.tokenize.encode import EncodedDocument


class TextParams(Params):
    """Nothing to choose."""


def finish_text(doc: Document, params: TextParams) -> EncodedDocument:
    """The document with its text in UTF-8 where an encoded one has its tokens, uint8. Raises UnicodeEncodeError for
    lone surrogates. One whose text is not that of its id (cut, redacted, a part of another) gets the note `text_id`."""
    data = np.frombuffer(doc.text.encode(), np.uint8)
    meta, position = with_text_id(doc), doc.position
    return EncodedDocument(doc.id, data, doc.source, doc.url, doc.origin, len(data), meta, position=position)


TEXT = Stage(
    name="text",
    version=1,
    summary="Hand the text to the writer, in UTF-8.",
    params=TextParams,
    optional=False,
    judge=finish_text,
    notes=(Note(TEXT_ID, str, "the id of the text that was written, in hexadecimal, where it is not the document's"),),
    output=EncodedDocument,
    coder="refinery.transforms.tokenize.encoded_coder",
)
