"""An explicit, fast, deterministic coder for Document and RawDocument, so no runner falls back to pickle.

Layout: one JSON header (everything but the text), varint-prefixed, then the text or content as bytes.
No `from __future__ import annotations` here: Beam reads these hints.
"""

from dataclasses import fields
from typing import Any

import orjson
from apache_beam import coders
from apache_beam.coders import coder_impl
from apache_beam.coders.coders import FastCoder

from refinery.transforms.core.document import NO_META, Document, RawDocument

BESIDE = ("text", "content", "found")  # not in the header: what follows it, and what is not passed on
HEADERS = {cls: tuple(each.name for each in fields(cls) if each.name not in BESIDE) for cls in (Document, RawDocument)}


class _DocumentImpl(coder_impl.StreamCoderImpl):
    def encode_to_stream(self, doc: Any, stream: Any, nested: bool) -> None:
        raw = isinstance(doc, RawDocument)
        content = doc.content if raw else doc.text
        is_str = isinstance(content, str)
        header = {name: getattr(doc, name) for name in HEADERS[RawDocument if raw else Document]}
        header["meta"], header["str"] = dict(doc.meta), is_str
        if not raw:
            header["id"] = doc.id.hex()
        stream.write(orjson.dumps(header, option=orjson.OPT_SORT_KEYS), True)
        stream.write(content.encode("utf-8", "surrogatepass") if is_str else content, True)

    def estimate_size(self, doc: Any, nested: bool = False) -> int:
        """For the runner's sampled size counters; encoding whole documents for these would cost more than it tells."""
        return len(doc.content if isinstance(doc, RawDocument) else doc.text)

    def decode_from_stream(self, stream: Any, nested: bool) -> Any:
        header = orjson.loads(stream.read_all(True))
        data = stream.read_all(True)
        content = data.decode("utf-8", "surrogatepass") if header.pop("str") else data
        header["meta"] = header["meta"] or NO_META
        if "id" in header:
            return Document(text=content, **header | {"id": bytes.fromhex(header["id"])})
        return RawDocument(content=content, **header)


class DocumentCoder(FastCoder):
    """Coder of Document and RawDocument. The other fields must be free of lone surrogates (readers see to that)."""

    def _create_impl(self) -> Any:
        return _DocumentImpl()

    def is_deterministic(self) -> bool:
        return True

    def to_type_hint(self) -> Any:
        return Document

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))


coders.registry.register_coder(Document, DocumentCoder)
coders.registry.register_coder(RawDocument, DocumentCoder)
