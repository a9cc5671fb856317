"""A tokenizer as a corpus publishes it: a folder that transformers and Megatron's HuggingFaceTokenizer load."""

import json
from collections.abc import Mapping
from typing import Any

from refinery.transforms.tokenize.load_tokenizer import file_name
from refinery.transforms.tokenize.merge_table import added_ids
from refinery.transforms.tokenize.tiktoken_file import tokenizer_json
from refinery.transforms.tokenize.tokenizer_json import build

FILE, CONFIG, MODEL = "tokenizer.json", "tokenizer_config.json", "tokenizer.model"
NO_LIMIT = 10**30  # as transformers writes it where a model has no longest text


def published_files(path: str, data: bytes, bos_id: int | None, eos_id: int | None) -> dict[str, bytes]:
    """Name -> bytes, the tokenizer itself first. path, data: the file that the recipe names. bos_id, eos_id: what
    documents get.

    A tokenizer.json stays as it is, a tiktoken file becomes one; beside it stands what names the tokens at the ends of
    documents, under the names that transformers reads. A SentencePiece model is alone: transformers would convert it,
    by rules of its own, to other ids in rare cases; Megatron and SentencePiece read it as it is.
    """
    name = file_name(path)
    if name.endswith(".model"):
        return {MODEL: data}
    if name.endswith(".tiktoken"):
        data = json.dumps(tokenizer_json(data, path), ensure_ascii=False).encode()
    return {FILE: data, CONFIG: json.dumps(config(json.loads(data), bos_id, eos_id), indent=1).encode()}


def config(spec: Mapping[str, Any], bos_id: int | None, eos_id: int | None) -> dict[str, Any]:
    """tokenizer_config.json. eos_token is what Megatron takes for the end of a document (eod)."""
    names = {id_: name for name, id_ in ids_of(spec).items()}
    found = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": names.get(-1 if bos_id is None else bos_id),
        "eos_token": names.get(-1 if eos_id is None else eos_id),
        "clean_up_tokenization_spaces": False,
        "model_max_length": NO_LIMIT,
    }
    return {key: value for key, value in found.items() if value is not None}


def ids_of(spec: Mapping[str, Any]) -> Mapping[str, int]:
    """Token -> id of a parsed tokenizer.json, as the library numbers them."""
    vocab = spec["model"].get("vocab")
    if isinstance(vocab, dict) and (added := added_ids(spec.get("added_tokens") or [], vocab)) is not None:
        return {**vocab, **added}
    return build(spec).get_vocab(with_added_tokens=True)
