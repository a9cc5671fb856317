"""Hugging Face tokenizer.json: closed to special tokens in text, run on the fastest engine that gives equal ids."""

import gc
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
from tokenizers import Encoding, normalizers
from tokenizers import Tokenizer as Library

from refinery.transforms.native import pieces
from refinery.transforms.tokenize.byte_level_bpe import BATTERY, ByteLevelTokenizer, normalizer_steps, recognise
from refinery.transforms.tokenize.character_bpe import REPLACE, character_engine
from refinery.transforms.tokenize.merge_table import MergeTable, added_ids, merge_table, reduced
from refinery.transforms.tokenize.sentencepiece_engine import SPACE, SPACES
from refinery.transforms.tokenize.shadowed import BYTE_NAMES, learned
from refinery.transforms.tokenize.token_spans import Spans, Spelling, offset_spans, spelt_spans
from refinery.transforms.tokenize.tokenizer import BOS_NAMES, EOS_NAMES, Ids, Tokenizer, check_ids, first_known

NEVER = -1e6  # score of a unigram piece that must not win: any other path through a text is better


class HuggingFaceTokenizer:
    """Any tokenizer.json on Hugging Face's library: the reference engine.

    BPE over characters may be encoded by the project's kernel instead: see `run_on`.

    The copy that encodes has no post-processor, truncation, padding or dropout, and no added tokens but those that are
    whitespace alone; entries of the vocabulary that only an added token could reach are taken out. A text that still
    gives one of them is refused with a ValueError.

    Cost: 4 MB/s of prose; memory about 100 bytes per token while a text is encoded.
    """

    engine = "hugging-face"
    _fast: pieces.Encoder | None = None
    _mark: str | None = None

    def __init__(self, spec: Mapping[str, Any]) -> None:
        self._library = build(spec)
        self._names: dict[str, int] = self._library.get_vocab(with_added_tokens=True)
        if not self._names:
            raise ValueError("not a tokenizer.json: the vocabulary is empty")
        self.vocab_size = max(self._names.values()) + 1
        added = spec.get("added_tokens") or []
        kept = text_tokens(spec)
        self._added = {token["content"]: self._names[token["content"]] for token in added}
        self._closed = build(closed(spec, kept))
        # Adding fewer tokens gives them other ids in the copy: map them back.
        self._map = np.arange(max(self._closed.get_vocab().values(), default=0) + 1, dtype=np.uint32)
        for token in kept:
            self._map[self._closed.token_to_id(token["content"])] = self._names[token["content"]]
        self._refused = np.zeros(self.vocab_size, dtype=bool)
        own = learned(spec)
        never = self._added.keys() - {token["content"] for token in kept} - {unknown_token(spec["model"])} - own
        self._refused[[self._names[name] for name in never]] = True
        special = {token["content"] for token in added if token.get("special")} - own
        self._silent = np.zeros(self.vocab_size, dtype=bool)
        self._silent[[self._names[name] for name in special]] = True
        self.lossless = is_lossless(spec)

    def encode(self, text: str) -> Ids:
        """See `Tokenizer.encode`."""
        if self._fast is not None and not (self._mark and self._mark in text):
            return np.frombuffer(self._fast.encode(text), np.uint32)
        text.encode()  # a lone surrogate is a UnicodeEncodeError here, whatever the library makes of it
        ids: Ids = self._map[_encoding(self._closed, text).ids]
        if self._refused[ids].any():
            raise ValueError("the text encodes to a special token")
        return ids

    @cached_property
    def _spelling(self) -> Spelling:
        """The bytes of each id of BPE over characters, with spaces for U+2581; made when they are first asked for."""
        table = [b""] * self.vocab_size
        for name, id_ in self._names.items():
            table[id_] = name.replace(SPACE, " ").encode("utf-8", "surrogatepass")
        for byte, name in enumerate(BYTE_NAMES):
            table[self._names[name]] = bytes([byte])
        return Spelling(table)

    def spans(self, text: str, ids: Ids) -> Spans | None:
        """See `Tokenizer.spans`. The library, which encodes the text once more, where the kernel does not run."""
        found = spelt_spans(text, ids, self._spelling) if self._fast is not None else None
        if found is not None:
            return found
        encoding = _encoding(self._closed, text)
        return offset_spans(text, ids, self._map[encoding.ids], encoding.offsets)

    def run_on(self, fast: pieces.Encoder, mark: str | None) -> None:
        """Encode by the kernel from now on, if it gives the library's ids for the battery.

        mark: the shortest run of U+2581 that is an added token. The kernel takes that character for a space, so a text
        with such a run stays with the library.
        """
        texts = [text for text in (*BATTERY, *SPACES, "a\n\n\n\tb\n") if not (mark and mark in text)]
        if all(np.frombuffer(fast.encode(text), np.uint32).tolist() == self.encode(text).tolist() for text in texts):
            self._fast, self._mark = fast, mark

    def encode_batch(self, texts: Iterable[str]) -> list[Ids]:
        """`encode` of each text; not the library's batch, whose threads do not survive a fork."""
        return [self.encode(text) for text in texts]

    def decode(self, ids: Sequence[int] | npt.NDArray[Any]) -> str:
        """See `Tokenizer.decode`."""
        known = check_ids(ids, self.vocab_size)
        return str(self._library.decode(known[~self._silent[known]].tolist(), skip_special_tokens=False))

    def token_id(self, name: str) -> int | None:
        """Id of a token of the vocabulary or of an added one."""
        return self._names.get(name)

    def bos_id(self) -> int | None:
        """The first well-known BOS name among the added tokens."""
        return first_known(self._added, BOS_NAMES)

    def eos_id(self) -> int | None:
        """The first well-known EOS name among the added tokens."""
        return first_known(self._added, EOS_NAMES)


def load_tokenizer_json(data: bytes) -> Tokenizer:
    """The tokenizer in the bytes of a tokenizer.json, on the fast engine if equality is certain (see byte_level_bpe).

    Raises ValueError for bytes that are none.
    """
    with no_collection():
        return load_spec(parse(data))


@contextmanager
def no_collection() -> Iterator[None]:
    """No search for reference cycles: a file makes a million small objects, none of them garbage, and looking through
    them again and again takes as long as all the rest."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def parse(data: bytes) -> dict[str, Any]:
    """The JSON of a tokenizer.json. Raises ValueError for bytes that are none."""
    try:
        try:
            spec = orjson.loads(data)
        except orjson.JSONDecodeError:
            spec = json.loads(data)  # other encodings
    except (ValueError, RecursionError) as error:
        raise ValueError(f"no JSON: {type(error).__name__}") from None
    if isinstance(spec, dict) and "config" in spec and isinstance(spec.get("vocab"), list):
        raise ValueError("a tekken.json of mistral-common, which cannot be read; give the tokenizer.json of that model")
    if not isinstance(spec, dict) or not isinstance(spec.get("model"), dict):
        if isinstance(spec, dict) and spec and all(isinstance(id_, int) for id_ in spec.values()):
            raise ValueError("this is only a vocabulary, as in vocab.json; name the tokenizer.json beside it")
        raise ValueError("not a tokenizer.json: it has no model")
    return spec


def load_spec(spec: Mapping[str, Any]) -> Tokenizer:
    """The tokenizer of a parsed file.

    Both engines encode the battery. The reference gets no more of the vocabulary for that than the battery's letters
    can lead to: it takes seconds to read the whole of it.

    Raises ValueError for a file that the library refuses. Cost: 0.2 to 1.3 s on the fast engine, else 1 to 3 s.
    """
    learned(spec)  # raises for a file in which text cannot be told from a special token
    table = merge_table(spec["model"])
    if table is not None:
        try:
            part = reduced(spec, table)
            build(part)  # the library looks at all the rest of the file
            fast = load_fast(spec, table)
            if fast is not None:
                reference = build(closed(part, []))
                if all(fast.encode(text).tolist() == _encoding(reference, text).ids for text in BATTERY):
                    fast.lossless = fast.lossless and gives_back(fast, spec)
                    return fast
        except ValueError:
            pass  # the library says below what it does not like
    tokenizer = HuggingFaceTokenizer(spec)
    tokenizer.lossless = tokenizer.lossless and gives_back(tokenizer, spec)
    if table is not None:
        text = text_tokens(spec)
        marks = {token["content"] for token in text if not token["content"].strip(SPACE)}
        characters = character_engine(spec, table, [token for token in text if token["content"] not in marks])
        if characters is not None:
            tokenizer.run_on(characters, min(marks, default=None, key=len))
    return tokenizer


def gives_back(tokenizer: Tokenizer, spec: Mapping[str, Any]) -> bool:
    """Whether the texts of the battery, and those around added tokens that are text, survive: what cannot be encoded
    does not."""
    tokens = [token["content"] for token in text_tokens(spec)]
    try:
        return all(
            tokenizer.decode(tokenizer.encode(text)) == text
            for text in (*BATTERY, *(f"a{token}b {token} c{token}{token}" for token in tokens))
        )
    except ValueError:
        return False


def load_fast(spec: Mapping[str, Any], table: MergeTable) -> ByteLevelTokenizer | None:
    """The fast engine for `spec`, or None where it must not run; not yet compared with the reference."""
    pattern = recognise(spec)
    added = spec.get("added_tokens") or []
    if pattern is None or any(is_text(token) for token in added):
        return None
    model = spec["model"]
    ids = added_ids(added, model["vocab"])
    if ids is None:
        library = build(spec).get_vocab(with_added_tokens=True)
        ids = {token["content"]: library[token["content"]] for token in added}
    own = learned(spec)
    inside = [id_ for name, id_ in ids.items() if name in model["vocab"] and name not in own]
    if np.isin(table.rows[:, 2], inside).any():
        return None  # an added token that ordinary text reaches by merges
    normalize = normalizers.NFC().normalize_str if normalizer_steps(spec.get("normalizer")) else None
    special = frozenset(ids[token["content"]] for token in added if token.get("special"))
    whole = bool(model.get("ignore_merges"))
    fast = ByteLevelTokenizer(pattern, model["vocab"], table.rows, ids, special, whole, normalize, own)
    fast.lossless = fast.lossless and len(set(model["vocab"].values())) == len(model["vocab"])
    return fast


def build(spec: Mapping[str, Any]) -> Library:
    """The library's tokenizer for a parsed file. Raises ValueError where the library refuses or panics."""
    try:
        return Library.from_str(json.dumps(spec))
    except BaseException as error:  # noqa: BLE001 - a panic of the library is not an Exception
        raise as_value_error(error) from None


def closed(spec: Mapping[str, Any], kept: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """`spec` for encoding text: only the added tokens `kept`, and no way to the others through the model."""
    model = dict(spec["model"])
    shut = {token["content"] for token in spec.get("added_tokens") or []} - {unknown_token(model)}
    shut -= {token["content"] for token in kept} | learned(spec)
    if isinstance(model.get("vocab"), dict):
        inside = shut & model["vocab"].keys()
        if inside:
            pairs = merge_pairs(model)
            reached = {left + right for left, right in pairs} | {part for pair in pairs for part in pair}
            inside -= reached
        model["vocab"] = {token: id_ for token, id_ in model["vocab"].items() if token not in inside}
    elif isinstance(model.get("vocab"), list):
        model["vocab"] = [[piece, NEVER if piece in shut else score] for piece, score in model["vocab"]]
    if model.get("dropout"):
        model["dropout"] = None  # random segmentation has no place in a reproducible corpus
    return {
        **spec,
        "added_tokens": list(kept),
        "post_processor": None,
        "truncation": None,
        "padding": None,
        "model": model,
    }


def merge_pairs(model: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The merges of a BPE model in rank order; files write them as "left right" or as pairs. [] for other models."""
    merges = model.get("merges") or []
    pairs = (merge.split(" ", 1) if isinstance(merge, str) else merge for merge in merges)
    return [(left, right) for left, right in pairs]


def unknown_token(model: Mapping[str, Any]) -> str | None:
    """The token for what the model cannot write: text may give it."""
    if model.get("unk_id") is not None:
        return str(model["vocab"][model["unk_id"]][0])
    return model.get("unk_token")


def text_tokens(spec: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The added tokens that stand for ordinary text. U+2581 is whitespace in a file that writes spaces so."""
    marked = REPLACE in normalizer_steps(spec.get("normalizer") or None)
    added = spec.get("added_tokens") or []
    return [
        token
        for token in added
        if is_text({**token, "content": token["content"].replace(SPACE, " ")} if marked else token)
    ]


def is_text(token: Mapping[str, Any]) -> bool:
    """Whether an added token stands for ordinary text: not special, and whitespace alone."""
    return not token.get("special") and bool(token["content"]) and not token["content"].strip()


def is_lossless(spec: Mapping[str, Any]) -> bool:
    """Whether decoding gives back every text: byte-level BPE over all bytes that nothing normalises or cuts away."""
    plain = {**spec, "normalizer": normalizer_steps(spec.get("normalizer") or None) or None}
    steps = spec.get("pre_tokenizer") or {}
    steps = steps.get("pretokenizers", [steps])
    splits = [step for step in steps if step.get("type") != "ByteLevel"]
    keeps = all(step.get("type") in ("Split", "Digits") and step.get("behavior") != "Removed" for step in splits)
    levels = [step for step in steps if step.get("type") == "ByteLevel"]
    byte_level = len(levels) == 1 and not levels[0].get("add_prefix_space", True)
    decoder = (spec.get("decoder") or {}).get("type") == "ByteLevel"
    gpt2 = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}
    return bool(
        keeps
        and byte_level
        and decoder
        and not plain["normalizer"]
        and len(set(plain["model"]["vocab"].values())) == len(plain["model"]["vocab"])  # else one id stands for two
        and recognise({**plain, "normalizer": None, "pre_tokenizer": gpt2})
    )


def as_value_error(error: BaseException) -> BaseException:
    """The library's own failures as ValueError: it raises bare Exception, and its panics derive from BaseException."""
    if type(error) is Exception or type(error).__name__ == "PanicException":
        return ValueError(" ".join(f"{error}".split())[:200])
    return error


def _encoding(library: Library, text: str) -> Encoding:
    try:
        return library.encode(text, add_special_tokens=False)
    except BaseException as error:  # noqa: BLE001 - a panic of the library is not an Exception
        raise as_value_error(error) from None
