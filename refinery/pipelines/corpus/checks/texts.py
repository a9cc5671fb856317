"""Whether the tokens of a document are a text's, and that text the document's: its id is a hash of it.

Stages after deduplication cut and redact texts but keep the id; the stage `encode` then records the id of what it
encoded as `text_id` in the provenance's `meta`.
"""

import threading
from typing import Any

import numpy as np
import numpy.typing as npt

from refinery.loader.format.manifest import Manifest
from refinery.transforms.core.document import ID_BYTES, TEXT_ID, TEXT_ID_ALWAYS, TEXT_ID_SINCE, document_id
from refinery.transforms.tokenize.stretches import Stretches
from refinery.transforms.tokenize.tokenizer import Tokenizer


def notes_text_ids(manifest: Manifest) -> bool:
    """Whether the run noted the ids of texts that were changed. In older corpora of tokens a text may not be its
    id's."""
    name, version = TEXT_ID_SINCE
    return any(
        stage.name == TEXT_ID_ALWAYS or (stage.name == name and stage.version >= version) for stage in manifest.stages
    )


def is_text_id(value: Any) -> bool:
    """Whether `text_id` of a row's `meta` is what the stage writes, or is not there."""
    return value is None or (
        isinstance(value, str) and len(value) == 2 * ID_BYTES and all(digit in "0123456789abcdef" for digit in value)
    )


def text_id(meta: Any) -> bytes:
    """The id of the text that a row's `meta` notes, b"" where there is none."""
    value = meta.get(TEXT_ID) if isinstance(meta, dict) else None
    return bytes.fromhex(value) if value is not None and is_text_id(value) else b""


def check_marked_text(
    stretches: Stretches, lock: threading.Lock, ids: npt.NDArray[Any], text_bytes: int, expected: bytes = b""
) -> str:
    """As `check_text`, of a document with control tokens in it, whose names are part of its text. Of a tokenizer that
    loses something only that its text encodes to the same ids, or to ids of the same text."""
    with lock:
        text, controls = stretches.decode(ids)
        again, _ = stretches.encode(text, controls)
        if not stretches.first.lossless:
            same = np.array_equal(again, ids) or stretches.decode(again)[0] == text
            return "" if same or "\u2047" in text else "its decoded text encodes to tokens of another text"
        return _fault_of_lossless(text, again, ids, text_bytes, expected)


def check_text(
    tokenizer: Tokenizer, lock: threading.Lock, ids: npt.NDArray[Any], text_bytes: int, expected: bytes = b""
) -> str:
    """What is wrong with a document's ids (without BOS and EOS), "" if nothing.

    A lossless tokenizer must decode to a text of exactly `text_bytes` bytes of UTF-8, which must encode to the same
    ids. Others normalise: the text must not be empty, and must encode to the same ids or at least to ids that decode to
    the same text (unless it has unknown characters, which decode to U+2047). expected: the id that the text of a
    lossless tokenizer must have, b"" where that is not known.
    """
    with lock:
        text = tokenizer.decode(ids)
        again = tokenizer.encode(text)
        if tokenizer.lossless:
            return _fault_of_lossless(text, again, ids, text_bytes, expected)
        if not text and text_bytes and len(ids) > 1:
            return f"decodes to an empty text, {text_bytes} bytes expected from provenance"
        if "\u2047" in text or np.array_equal(again, ids) or tokenizer.decode(again) == text:
            return ""
        return "its decoded text encodes to tokens of another text"


def _fault_of_lossless(
    text: str, again: npt.NDArray[Any], ids: npt.NDArray[Any], text_bytes: int, expected: bytes
) -> str:
    """What is wrong with the text that ids of a lossless tokenizer decode to. again: the ids that it encodes to."""
    size = len(text.encode("utf-8", "surrogatepass"))
    if size != text_bytes:
        return f"decodes to {size} bytes of text, {text_bytes} expected from provenance"
    if not np.array_equal(again, ids):
        return "its decoded text encodes to other tokens"
    if expected and (found := document_id(text)) != expected:
        return f"its text has the id {found.hex()}, {expected.hex()} expected from provenance"
    return ""
