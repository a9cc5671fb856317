"""Fill-in-the-middle: some documents of a batch are reordered so that a model learns to infill.

Bavarian et al. 2022, "Efficient Training of Language Models to Fill in the Middle" (arXiv 2207.14255): content is cut
at two uniform places into prefix, middle and suffix, and written as one of

    PSM   PRE prefix SUF suffix MID middle
    SPM   PRE SUF suffix MID prefix middle     their variant for joint training: PSM with an empty prefix

This is their context-level form: it works on the part of a document that is in a row, so the row never truncates a
middle.

Rows keep their length. The three sentinels (four with an end-of-text) replace as many tokens at the end of the suffix;
what is left is a contiguous piece of the document. BOS stays in front and EOS at the end, after the middle. So
documents start where they did before, and masks are made afterwards from the same starts. Every choice is a hash of
(seed, epoch, domain, sample, position in the row): the same after a resume, and for any world size, batch size or
worker.
"""

import hashlib
import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import NamedTuple

import google_crc32c
import numpy as np

from refinery.loader.arguments import number, whole
from refinery.loader.errors import CorruptObject
from refinery.loader.format.manifest import MAX_ID, Manifest
from refinery.loader.order.arrays import Array
from refinery.loader.order.order import mix
from refinery.loader.storage.store import Store

Encode = Callable[[str], Sequence[int]]  # text to ids, without BOS and EOS
Decode = Callable[[Sequence[int]], str]

_log = logging.getLogger("refinery.loader")
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio, the step of SplitMix64
_REPLACEMENT = "\ufffd"  # what a decoder emits for invalid bytes


@dataclass(frozen=True, slots=True)
class FillInMiddleParams:
    """rate: share of documents to reorder. spm_rate: share of those written as SPM, the others as PSM.

    prefix_id, suffix_id, middle_id: the sentinels; end_id: optional, placed after the middle, before EOS. All distinct,
    below vocab_size, and tokens that no text encodes to. vocab_size: of the model, None for the tokenizer's. bos_id,
    eos_id: None for those of the corpus (`for_corpus`), or if documents have none. min_tokens: documents with less
    content in the row, sentinels deducted, are not reordered.
    """

    prefix_id: int
    suffix_id: int
    middle_id: int
    vocab_size: int | None = None
    end_id: int | None = None
    bos_id: int | None = None
    eos_id: int | None = None
    rate: float = 0.5
    spm_rate: float = 0.5
    min_tokens: int = 10

    def __post_init__(self) -> None:
        for name in ("rate", "spm_rate"):
            number(name, getattr(self, name), "0 to 1", lambda rate: 0 <= rate <= 1)
        whole("min_tokens", self.min_tokens, 1)
        if self.vocab_size is not None:
            whole("vocab_size", self.vocab_size, 1)
        for name in (field.name for field in fields(self) if field.name.endswith("_id")):
            value = getattr(self, name)
            if value is not None:
                whole(name, value, 0)
                if self.vocab_size is not None and value >= self.vocab_size:
                    raise ValueError(f"{name}: {value} given, 0 to {self.vocab_size - 1} is allowed (vocab_size)")
        special = [self.prefix_id, self.suffix_id, self.middle_id, self.end_id]
        used = [i for i in special if i is not None]
        if len({*used} | {self.bos_id, self.eos_id} - {None}) != len(used) + len({self.bos_id, self.eos_id} - {None}):
            raise ValueError(
                f"prefix_id, suffix_id, middle_id, end_id: {special} given, distinct ids, not BOS or EOS, are allowed"
            )

    @property
    def sentinels(self) -> int:
        """How many tokens of a reordered document are replaced by sentinels."""
        return 3 if self.end_id is None else 4


def for_corpus(params: FillInMiddleParams, manifest: Manifest, store: Store) -> FillInMiddleParams:
    """`params` with BOS, EOS and vocabulary of a corpus where they are None.

    Raises ValueError for what contradicts the corpus: another BOS or EOS, a vocabulary smaller than the tokenizer's, a
    sentinel that text encodes to. Cost: reads a tokenizer.json if a sentinel is one of the tokenizer's ids; of a
    tokenizer in another format it is only known, and logged, that nobody can tell.
    """
    tokenizer = manifest.tokenizer
    for name in ("bos_id", "eos_id"):
        given, here = getattr(params, name), getattr(tokenizer, name)
        if given not in (None, here):
            raise ValueError(f"fill_in_middle: {name} {given} given, {here} is that of the corpus; leave it out")
    size = params.vocab_size or tokenizer.vocab_size
    if size < tokenizer.vocab_size:
        raise ValueError(f"fill_in_middle: vocab_size {size} given, {tokenizer.vocab_size}, the tokenizer's, or more")
    sentinels = [
        name for name in ("prefix_id", "suffix_id", "middle_id", "end_id") if getattr(params, name) is not None
    ]
    outside = [name for name in sentinels if getattr(params, name) >= size]
    if outside:
        raise ValueError(
            f"fill_in_middle: {outside[0]} {getattr(params, outside[0])} given, the tokenizer has {size} ids; for a "
            "model with more, give its vocab_size"
        )
    used = [name for name in sentinels if getattr(params, name) < tokenizer.vocab_size]
    ordinary = _ordinary_ids(manifest, store) if used else set()
    if ordinary is None:
        _log.warning("%s: not a tokenizer.json, so text may contain %s", tokenizer.path, ", ".join(used))
    for name in used:
        if getattr(params, name) in (ordinary or ()):
            raise ValueError(
                f"fill_in_middle: {name} {getattr(params, name)} given, which text encodes to; a special or unused id "
                f"of the tokenizer, or {tokenizer.vocab_size} and more with the model's vocab_size, is allowed"
            )
    return replace(params, vocab_size=size, bos_id=tokenizer.bos_id, eos_id=tokenizer.eos_id)


def _ordinary_ids(manifest: Manifest, store: Store) -> set[int] | None:
    """Ids of a corpus' tokenizer.json that text encodes to; None for a tokenizer in another format."""
    entry = next((file for file in manifest.files if file.path == manifest.tokenizer.path), None)
    if entry is None:
        return None
    data = store.read(entry.path, 0, entry.size + 1)
    if len(data) != entry.size or f"{google_crc32c.value(data):08x}" != entry.crc32c:
        raise CorruptObject(f"{store.url(entry.path)}: not the file that the manifest describes")
    try:
        spec = json.loads(data)
        vocabulary = spec["model"]["vocab"]
        ids = set(vocabulary.values()) if isinstance(vocabulary, dict) else set(range(len(vocabulary)))
        added = {int(token["id"]): bool(token["special"]) for token in spec.get("added_tokens") or []}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return (ids - added.keys()) | {number for number, special in added.items() if not special}


class CodecError(ValueError):
    """What the caller's `encode` and `decode` raised, or ids that they gave that are none."""


class Reordered(NamedTuple):
    """What was done to a batch.

    documents: seen. psm, spm: reordered in each form. tokens_cut: removed to make room. token_level: reordered ones
    that could not be cut between characters and were cut between tokens instead.
    """

    documents: int
    psm: int
    spm: int
    tokens_cut: int
    token_level: int


@lru_cache(maxsize=64)
def epoch_key(seed: int, epoch: int, domain: str = "") -> int:
    """64 bits of BLAKE2b over seed, epoch and domain."""
    data = f"{seed} {epoch} {domain}".encode()
    return int.from_bytes(hashlib.blake2b(data, digest_size=8, person=b"refinery-fim").digest(), "little")


def sample_keys(epoch_keys: int | Array, samples: Array) -> Array:
    """Key of each sample, uint64 [B], from its number in its domain and `epoch_key` (a scalar or [B])."""
    keys = np.asarray(epoch_keys, np.uint64)
    return mix(keys + np.asarray(samples).astype(np.uint64) * _GOLDEN)


def fill_in_middle(
    tokens: Array, starts: Array, counts: Array, valid: Array, keys: Array, params: FillInMiddleParams
) -> Reordered:
    """Reorder documents inside `tokens`, between tokens.

    tokens: any integer dtype, [B, S + 1], contiguous; changed in place, before labels are taken from it. starts,
    counts, valid: as in `masks.fill`. keys: uint64 [B], from `sample_keys`.

    All S + 1 tokens of a row are reordered together, so labels remain the tokens after the inputs. Raises ValueError
    for tokens that are not contiguous. Cost: about 2 us per reordered document and a copy of the batch.
    """
    chosen = _choose(tokens, starts, counts, valid, keys, params)
    low, high = (_below(draw, chosen.room + 1) for draw in chosen.cuts)
    low, high = np.minimum(low, high), np.maximum(low, high)
    _write(tokens.reshape(-1), chosen, low, high, params)
    return chosen.result(len(low) * params.sentinels)


def fill_in_middle_of_text(
    tokens: Array,
    starts: Array,
    counts: Array,
    valid: Array,
    keys: Array,
    params: FillInMiddleParams,
    encode: Encode,
    decode: Decode,
) -> Reordered:
    """Reorder documents inside `tokens`, cut between characters: the form that models use at inference time.

    Content is decoded, cut, and its three parts are encoded separately. If they need more tokens than there is room
    for, the end of the suffix is cut, then the beginning of the prefix, never the middle. A document is cut between
    tokens instead if its content is not valid text (a row may begin inside a character), needs fewer tokens than
    before, or has a middle that does not fit.

    Otherwise as `fill_in_middle`. Raises ValueError for an id outside the vocabulary. Cost: that of the
    tokenizer, for every reordered document.
    """
    chosen = _choose(tokens, starts, counts, valid, keys, params)
    flat = tokens.reshape(-1)
    low, high = (_below(draw, chosen.room + 1) for draw in chosen.cuts)
    low, high = np.minimum(low, high), np.maximum(low, high)
    tokens_cut = token_level = 0
    for i, (first, room) in enumerate(zip(chosen.first.tolist(), chosen.room.tolist(), strict=True)):
        content = flat[first : first + room + params.sentinels].tolist()
        try:
            parts = _cut_text(content, room, chosen.cuts[:, i], encode, decode)
        except ValueError as error:
            raise CodecError(f"codec: {error}") from error
        if parts is None:
            token_level += 1
            tokens_cut += params.sentinels
            continue
        prefix, middle, suffix, surplus = parts
        tokens_cut += surplus
        ids = np.array([*prefix, *middle, *suffix], np.int64)
        most = (params.vocab_size or MAX_ID + 1) - 1
        if len(ids) and not 0 <= int(ids.min()) <= int(ids.max()) <= most:
            raise CodecError(f"encode: ids {ids.min()} to {ids.max()} given, 0 to {most} is allowed")
        flat[first : first + room] = ids  # now the content consists of these parts, and can be cut between tokens
        low[i], high[i] = len(prefix), len(prefix) + len(middle)
    _write(flat, chosen, low, high, params)
    return chosen.result(tokens_cut, token_level)


class _Chosen(NamedTuple):
    """The documents to reorder. first: flat position of their content. room: tokens of content that remain."""

    documents: int
    first: Array
    room: Array
    spm: Array
    cuts: Array

    def result(self, tokens_cut: int, token_level: int = 0) -> Reordered:
        spm = int(self.spm.sum())
        return Reordered(self.documents, len(self.spm) - spm, spm, tokens_cut, token_level)


def _choose(
    tokens: Array, starts: Array, counts: Array, valid: Array, keys: Array, params: FillInMiddleParams
) -> _Chosen:
    if not tokens.flags.c_contiguous:
        raise ValueError("tokens: an array that is not contiguous given, one that can be changed in place is allowed")
    rows, width = tokens.shape
    flat = tokens.reshape(-1)
    base = np.arange(rows) * width
    real = valid.astype(np.int64)
    inside = (starts > 0) & (starts < real.repeat(counts))
    ends = np.sort(np.concatenate([base, (starts + base.repeat(counts))[inside], base + real, [rows * width]]))
    first, stop = ends[:-1], ends[1:]
    row = np.minimum(first // width, rows - 1)
    documents = (stop > first) & (first - base[row] < real[row])  # the others are empty or padding
    first, stop, row = first[documents], stop[documents], row[documents]

    at = first - base[row]
    if params.bos_id is not None:
        first = first + (flat[first] == params.bos_id)
    if params.eos_id is not None:
        stop = stop - ((flat[stop - 1] == params.eos_id) & (stop > first))
    draws = mix(keys.astype(np.uint64)[row] + at.astype(np.uint64) * _GOLDEN)
    choice, form, low, high = mix(draws + (np.arange(1, 5, dtype=np.uint64) * _GOLDEN)[:, None])
    room = stop - first - params.sentinels
    wanted = (_unit(choice) < params.rate) & (room >= params.min_tokens)
    return _Chosen(
        len(first),
        first[wanted],
        room[wanted],
        (_unit(form) < params.spm_rate)[wanted],
        np.stack([low, high])[:, wanted],
    )


def _unit(hashed: Array) -> Array:
    """[0, 1) from the upper 53 bits."""
    return (hashed >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _below(hashed: Array, n: Array) -> Array:
    """Uniform in [0, n), int64, for n up to 2^31; the bias is below n / 2^32."""
    return ((hashed >> np.uint64(32)) * n.astype(np.uint64) >> np.uint64(32)).astype(np.int64)


def _write(flat: Array, chosen: _Chosen, low: Array, high: Array, params: FillInMiddleParams) -> None:
    """Write content [0, room) of each document, cut at low and high, in its new order with its sentinels."""
    old = flat.copy()  # slices between two arrays: four times as fast as one gather over all tokens
    documents = zip(chosen.first.tolist(), low.tolist(), high.tolist(), chosen.room.tolist(), strict=True)
    for spm, (first, a, b, room) in zip(chosen.spm.tolist(), documents, strict=True):
        suffix_at = first + 1 if spm else first + 1 + a  # of SUF; PRE is at `first`
        middle_at = suffix_at + 1 + room - b  # of MID
        flat[first], flat[suffix_at], flat[middle_at] = params.prefix_id, params.suffix_id, params.middle_id
        flat[suffix_at + 1 : middle_at] = old[first + b : first + room]
        if spm:
            flat[middle_at + 1 : middle_at + 1 + b] = old[first : first + b]
        else:
            flat[first + 1 : suffix_at] = old[first : first + a]
            flat[middle_at + 1 : middle_at + 1 + b - a] = old[first + a : first + b]
        if params.end_id is not None:
            flat[first + room + 3] = params.end_id


def _cut_text(
    ids: list[int], room: int, draws: Array, encode: Encode, decode: Decode
) -> tuple[list[int], list[int], list[int], int] | None:
    """Ids of prefix, middle and suffix, `room` in total, and how many were cut off. None if it is not possible."""
    text = decode(ids)
    if _REPLACEMENT in text:
        return None
    low, high = sorted(_below(draws, np.array([len(text) + 1])).tolist())
    prefix, middle, suffix = (list(encode(part)) for part in (text[:low], text[low:high], text[high:]))
    surplus = len(prefix) + len(middle) + len(suffix) - room
    if surplus < 0 or len(middle) > room:
        return None
    cut = min(surplus, len(suffix))
    return prefix[surplus - cut :], middle, suffix[: len(suffix) - cut], surplus
