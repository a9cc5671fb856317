"""More merges for a byte-level BPE that is learned already: its entries keep their ids, and its merges their ranks.

Hugging Face's trainer cannot start from merges. But a text in the old tokens is a text again: each old id becomes one
character, words stay words, and the trainer learns merges of these characters. Spelt back they follow the old ones.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tokenizers import Regex, models, pre_tokenizers, trainers
from tokenizers import Tokenizer as Library

from refinery.transforms.tokenize.byte_level_bpe import byte_alphabet
from refinery.transforms.tokenize.tokenizer_json import build, closed, merge_pairs

FIRST = 0x100  # the character of id 0; below: the one between words
BETWEEN = "\n"
SURROGATES = range(0xD800, 0xE000)
MOST_IDS = 0x110000 - FIRST - len(SURROGATES)
WORDS_AT_ONCE = 10_000


def check_base(spec: Mapping[str, Any], vocab_size: int, special_tokens: Sequence[str]) -> None:
    """Raises ValueError, one line, where a tokenizer.json is not a byte-level BPE, has no room below `vocab_size`,
    or has the special tokens already."""
    model, steps = spec["model"], spec.get("pre_tokenizer") or {}
    steps = steps.get("pretokenizers", [steps])
    options = ("continuing_subword_prefix", "end_of_word_suffix", "byte_fallback")
    if (
        model.get("type", "BPE") != "BPE"
        or not steps
        or steps[-1].get("type") != "ByteLevel"
        or any(model.get(key) for key in options)
        or not all(char in model.get("vocab", {}) for char in byte_alphabet())
    ):
        raise ValueError("base: a tokenizer given that is not a byte-level BPE over all bytes, which is required")
    size = size_of(spec)
    if size + len(special_tokens) >= vocab_size:
        raise ValueError(f"vocab_size: {vocab_size} given, but the base has {size} ids already; more are allowed")
    if vocab_size > MOST_IDS:
        raise ValueError(f"vocab_size: {vocab_size} given, up to {MOST_IDS} are allowed")
    known = {*model["vocab"], *(token["content"] for token in spec.get("added_tokens") or [])}
    if twice := [name for name in special_tokens if name in known]:
        raise ValueError(f"special_tokens: {twice[0]!r} given, which the base has already; others are allowed")


def entries_of(spec: Mapping[str, Any]) -> dict[str, int]:
    """Every entry and its id, added tokens included, as the library numbers them: it does not go by the file's ids."""
    return dict(build(spec).get_vocab(with_added_tokens=True))


def size_of(spec: Mapping[str, Any]) -> int:
    """Highest id + 1, added tokens included."""
    return max(entries_of(spec).values()) + 1


def continue_byte_level(
    spec: Mapping[str, Any], texts: Iterable[str], vocab_size: int, special_tokens: Sequence[str], progress: bool
) -> bytes:
    """A tokenizer.json with the entries of `spec` under their ids, then `special_tokens`, then what is learned from
    `texts`, up to `vocab_size` ids.

    Its merges are those of `spec` and new ones behind them, so a text that no new merge touches keeps its tokens. Fewer
    entries where the texts hold no more pairs. Cost: about 1 MB/s of text.
    """
    entries = entries_of(spec)
    size = max(entries.values()) + 1
    wanted = vocab_size - size - len(special_tokens)
    words = word_counts(spec, texts)
    vocab, merges = dict(spec["model"]["vocab"]), merge_pairs(spec["model"])
    names = {id_: token for token, id_ in vocab.items()}
    known = set(merges)
    taken = {*entries, *special_tokens}
    following = size + len(special_tokens)
    for left, right in learned_pairs(words, wanted, progress):
        pair = "".join(names[id_] for id_ in left), "".join(names[id_] for id_ in right)
        if pair in known or pair[0] not in vocab or pair[1] not in vocab:
            continue  # another way to what is there, or on top of what was left out
        if pair[0] + pair[1] not in vocab:
            if following == vocab_size:
                break
            if pair[0] + pair[1] in taken:
                continue  # text must not reach an added token
            vocab[pair[0] + pair[1]] = following
            following += 1
        known.add(pair)
        merges.append(pair)
    # The library numbers an added token that the model does not know behind the model's entries: so let it know.
    vocab |= entries | {name: size + number for number, name in enumerate(special_tokens)}
    old = [{**token, "id": entries[token["content"]]} for token in spec.get("added_tokens") or []]
    added = [
        {"id": size + number, "content": name, "single_word": False, "lstrip": False, "rstrip": False}
        | {"normalized": False, "special": True}
        for number, name in enumerate(special_tokens)
    ]
    model = {**spec["model"], "vocab": vocab, "merges": [list(pair) for pair in merges]}
    made = {**spec, "added_tokens": [*old, *added], "model": model}
    return json.dumps(made, ensure_ascii=False, indent=1).encode()


def word_counts(spec: Mapping[str, Any], texts: Iterable[str]) -> list[tuple[tuple[int, ...], int]]:
    """(ids of a word in the tokenizer's own tokens, how often it occurs), sorted; words of one token are left out."""
    library = build(closed(spec, []))
    found: Counter[str] = Counter()
    for text in texts:
        if library.normalizer is not None:
            text = library.normalizer.normalize_str(text)
        found.update(word for word, _ in library.pre_tokenizer.pre_tokenize_str(text))
    ids: Counter[tuple[int, ...]] = Counter()
    for word, count in found.items():
        ids[tuple(token.id for token in library.model.tokenize(word))] += count
    return sorted((word, count) for word, count in ids.items() if len(word) > 1)


def learned_pairs(
    words: Sequence[tuple[tuple[int, ...], int]], wanted: int, progress: bool
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Merges learned from words of ids, in order: the ids of the left part and of the right one.

    About `wanted` of them, and as many more as there are other ways to entries that exist.
    """
    characters = {id_ for word, _ in words for id_ in word}
    library = Library(models.BPE())
    library.pre_tokenizer = pre_tokenizers.Split(Regex(BETWEEN), "removed")
    trainer = trainers.BpeTrainer(
        vocab_size=len(characters) + wanted + wanted // 4 + 100,
        min_frequency=2,
        special_tokens=[],
        show_progress=progress and sys.stderr.isatty(),
    )
    library.train_from_iterator(_lines(words), trainer)
    for left, right in merge_pairs(json.loads(library.to_str())["model"]):
        yield tuple(map(_id_of, left)), tuple(map(_id_of, right))


def _lines(words: Iterable[tuple[tuple[int, ...], int]]) -> Iterator[str]:
    for word, count in words:
        spelt = "".join(map(_character, word)) + BETWEEN
        while count:
            now = min(count, WORDS_AT_ONCE)
            yield spelt * now
            count -= now


def _character(id_: int) -> str:
    point = FIRST + id_
    return chr(point if point < SURROGATES.start else point + len(SURROGATES))


def _id_of(character: str) -> int:
    point = ord(character)
    return (point if point < SURROGATES.start else point - len(SURROGATES)) - FIRST
