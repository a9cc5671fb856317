"""A tokenizer from its file: a Hugging Face tokenizer.json, a SentencePiece .model or a tiktoken rank file."""

import re
from functools import lru_cache

from refinery.transforms.core.hub_file import HUB, parse_hub
from refinery.transforms.core.last_call import LastCall
from refinery.transforms.core.resources import read_resource
from refinery.transforms.tokenize.sentencepiece_model import SentencePieceTokenizer
from refinery.transforms.tokenize.tiktoken_file import tokenizer_json
from refinery.transforms.tokenize.tokenizer import Tokenizer
from refinery.transforms.tokenize.tokenizer_json import load_spec, load_tokenizer_json, no_collection

# A launch loads the same bytes twice: to check them, and from the corpus for its report.
_last_json = LastCall(load_tokenizer_json)

LIKE_AN_ID = re.compile(r"[\w-][\w.-]*/[\w.-]+")


def file_name(path: str) -> str:
    """The name whose ending says what the file is."""
    return parse_hub(path)[2] if path.startswith(HUB) else path


@lru_cache(maxsize=8)
def load_tokenizer(path: str) -> Tokenizer:
    """The tokenizer in a Hugging Face tokenizer.json, a SentencePiece .model or a .tiktoken file:
    local, gs://, s3:// or hf://.

    Cost: 0.1 s to 4 s (docs/encoding.md), once per process and path. Raises ValueError, one line that names the path,
    for a missing, foreign or damaged file.
    """
    try:
        data = read_resource(path)
    except OSError as error:
        hint = f"; a Hugging Face id is written hf://{path}@COMMIT" if LIKE_AN_ID.fullmatch(path) else ""
        said = error.strerror or str(error).removeprefix(f"{path}: ")
        raise ValueError(f"path: {path!r} given, which cannot be read ({said}{hint})") from None
    return load_tokenizer_bytes(data, path)


def load_tokenizer_bytes(data: bytes, path: str) -> Tokenizer:
    """The tokenizer in the bytes of a file of that name. Raises ValueError, one line that names it."""
    name = file_name(path)
    try:
        if name.endswith(".json"):
            return _last_json(data)
        if name.endswith(".tiktoken"):
            with no_collection():
                return load_spec(tokenizer_json(data, path))
        if name.endswith(".model"):
            return SentencePieceTokenizer(data)
    except ValueError as error:
        raise ValueError(f"path: {path!r} given, which is not a usable tokenizer ({error})") from None
    raise ValueError(f"path: {path!r} given, a tokenizer.json, a SentencePiece .model or a .tiktoken file is allowed")
