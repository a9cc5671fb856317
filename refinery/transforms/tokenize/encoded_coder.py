"""The coder of EncodedDocument, so no runner falls back to pickle: importing this registers it."""

from dataclasses import fields
from typing import Any

import numpy as np
import orjson
from apache_beam import coders
from apache_beam.coders import coder_impl
from apache_beam.coders.coders import FastCoder

from refinery.transforms.tokenize.encode import EncodedDocument

HEADER = tuple(each.name for each in fields(EncodedDocument) if each.name not in ("tokens", "columns"))


class _EncodedImpl(coder_impl.StreamCoderImpl):
    def encode_to_stream(self, doc: EncodedDocument, stream: Any, nested: bool) -> None:
        header = {name: getattr(doc, name) for name in HEADER}
        header |= {"id": doc.id.hex(), "meta": dict(doc.meta), "dtype": doc.tokens.dtype.str}
        stream.write(orjson.dumps(header, option=orjson.OPT_SORT_KEYS), True)
        stream.write(doc.tokens.tobytes(), True)
        stream.write(doc.columns, True)

    def estimate_size(self, doc: EncodedDocument, nested: bool = False) -> int:
        return int(doc.tokens.nbytes) + len(doc.columns)

    def decode_from_stream(self, stream: Any, nested: bool) -> EncodedDocument:
        header = orjson.loads(stream.read_all(True))
        tokens = np.frombuffer(stream.read_all(True), header.pop("dtype"))
        columns = stream.read_all(True)
        return EncodedDocument(tokens=tokens, columns=columns, **header | {"id": bytes.fromhex(header["id"])})


class EncodedDocumentCoder(FastCoder):
    """Deterministic coder of EncodedDocument: a JSON header, the tokens' bytes, then their columns."""

    def _create_impl(self) -> Any:
        return _EncodedImpl()

    def is_deterministic(self) -> bool:
        return True

    def to_type_hint(self) -> Any:
        return EncodedDocument


coders.registry.register_coder(EncodedDocument, EncodedDocumentCoder)
