"""Fill-in-the-middle: an independent inverse, rates, and that everything else is unchanged."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.loader.stream.fill_in_middle import (
    Decode,
    Encode,
    FillInMiddleParams,
    Reordered,
    epoch_key,
    fill_in_middle,
    fill_in_middle_of_text,
    sample_keys,
)

BOS, EOS, PRE, SUF, MID, END = range(900, 906)
PARAMS = FillInMiddleParams(PRE, SUF, MID, 1000, bos_id=BOS, eos_id=EOS)
SENTINELS = {PRE, SUF, MID, END}
Parts = tuple[list[int], list[int], list[int]]


def parts_of(document: list[int]) -> tuple[Parts, bool] | None:
    """prefix, middle (in SPM after its prefix), suffix, and whether it is SPM or a PSM without prefix."""
    body = [token for token in document if token not in (BOS, EOS, END)]
    if not SENTINELS & set(body):
        return None
    assert body[0] == PRE and sorted(SENTINELS & set(body)) == [PRE, SUF, MID] and len(set(body[1:])) == len(body) - 1
    suf, mid = body.index(SUF), body.index(MID)
    return (body[1:suf], body[mid + 1 :], body[suf + 1 : mid]), suf == 1


def restore(document: list[int]) -> list[int] | None:
    """The content; None if it was not reordered. One rule for both forms: between PRE and SUF, then after MID,
    then between SUF and MID."""
    found = parts_of(document)
    return None if found is None else found[0][0] + found[0][1] + found[0][2]


def documents_of(row: Sequence[int], starts: Sequence[int], real: int) -> list[list[int]]:
    borders = sorted({0, real, *(s for s in starts if s < real)})
    return [list(row[a:b]) for a, b in pairwise(borders)]


@st.composite
def batches(draw: st.DrawFn) -> tuple[np.ndarray, list[list[int]], list[int]]:
    """Rows in which every content token is unique, with or without BOS, EOS, cut-off documents and padding."""
    count, width = draw(st.integers(1, 3)), draw(st.integers(2, 80))
    tokens = np.tile(np.arange(width), (count, 1)) + 100 * np.arange(count)[:, None]
    starts, valid = [], []
    for row in range(count):
        starts.append(sorted(draw(st.lists(st.integers(0, width - 1), max_size=6))))
        valid.append(draw(st.one_of(st.just(width), st.integers(0, width))))
        for start in starts[-1]:
            if draw(st.booleans()):
                tokens[row, start] = BOS
            if start and tokens[row, start - 1] != BOS and draw(st.booleans()):
                tokens[row, start - 1] = EOS
    return tokens, starts, valid


def reorder(
    tokens: np.ndarray, starts: list[list[int]], valid: list[int], params: FillInMiddleParams, seed: int = 1
) -> tuple[np.ndarray, Reordered]:
    out = tokens.copy()
    flat = np.array([s for row in starts for s in row], np.int64)
    keys = sample_keys(epoch_key(seed, 0), np.arange(len(tokens)))
    done = fill_in_middle(out, flat, np.array([len(row) for row in starts]), np.array(valid), keys, params)
    return out, done


@given(batches(), st.sampled_from([0.0, 0.5, 1.0]), st.booleans(), st.integers(0, 5), st.integers(1, 20))
def test_every_document_is_itself_or_can_be_restored(
    batch: tuple[np.ndarray, list[list[int]], list[int]], spm: float, end: bool, seed: int, least: int
) -> None:
    tokens, starts, valid = batch
    args: dict[str, Any] = {"rate": 0.7, "spm_rate": spm, "min_tokens": least, "end_id": END if end else None}
    params = FillInMiddleParams(PRE, SUF, MID, 1000, bos_id=BOS, eos_id=EOS, **args)
    out, done = reorder(tokens, starts, valid, params, seed)
    changed = seen = 0
    for row in range(len(tokens)):
        assert out[row, valid[row] :].tolist() == tokens[row, valid[row] :].tolist()  # padding
        before = documents_of(tokens[row].tolist(), starts[row], valid[row])
        after = documents_of(out[row].tolist(), starts[row], valid[row])
        for old, new in zip(before, after, strict=True):
            assert len(old) == len(new)
            seen += 1
            content = restore(new)
            if content is None:
                assert new == old
                continue
            changed += 1
            body = old[old[0] == BOS :]
            body = body[: len(body) - (body[-1] == EOS)]
            assert content == body[: len(body) - params.sentinels] and len(content) >= least
            assert (new[0] == BOS) == (old[0] == BOS) and (new[-1] == EOS) == (old[-1] == EOS)
            assert (END in new) == end and (not end or new[len(new) - 1 - (old[-1] == EOS)] == END)
    assert done.documents == seen and done.psm + done.spm == changed
    assert done.tokens_cut == changed * params.sentinels and done.token_level == 0
    assert (spm < 1 or done.psm == 0) and (spm > 0 or done.spm == 0)


def many(rows: int, **changes: Any) -> tuple[np.ndarray, list[list[int]], Reordered]:
    """Rows of four documents with 60 content tokens each."""
    tokens = np.tile(np.arange(240), (rows, 1))
    starts = [[0, 60, 120, 180]] * rows
    out, done = reorder(tokens, starts, [240] * rows, FillInMiddleParams(PRE, SUF, MID, 1000, **changes))
    return out, [document for row in out.tolist() for document in documents_of(row, starts[0], 240)], done


@pytest.mark.parametrize(("rate", "spm"), [(0.0, 0.5), (0.1, 0.5), (0.5, 0.2), (0.9, 0.5), (1.0, 1.0)])
def test_rates_are_kept(rate: float, spm: float) -> None:
    _, documents, done = many(1000, rate=rate, spm_rate=spm)
    n = len(documents)
    assert abs((done.psm + done.spm) / n - rate) <= 5 * (rate * (1 - rate) / n) ** 0.5
    assert abs(done.spm - spm * (done.psm + done.spm)) <= 5 * (spm * (1 - spm) * n) ** 0.5


def test_cuts_are_uniform() -> None:
    """Lengths of prefix, middle and suffix have the mean of two uniform cuts: a third each. Every length occurs."""
    _, documents, _ = many(2000, rate=1.0, spm_rate=0.0)
    lengths = np.array([[len(part) for part in found[0]] for d in documents if (found := parts_of(d))])
    assert len(lengths) == 8000 and (lengths.sum(axis=1) == 57).all()
    assert np.abs(lengths.mean(axis=0) - 57 / 3).max() < 5 * 14 / 8000**0.5
    assert {*lengths[:, 0]} == {*lengths[:, 1]} == set(range(58)) == {*lengths[:, 2]}


def test_a_sample_is_reordered_alike_wherever_it_stands() -> None:
    """Not by its row in the batch: other world sizes and batch sizes deal samples to other rows."""
    tokens = np.tile(np.arange(50), (6, 1))
    args = np.array([0, 20]), np.array([2]), np.array([50])
    keys = sample_keys(epoch_key(3, 2, "web"), np.arange(6))
    whole = tokens.copy()
    fill_in_middle(whole, np.tile(args[0], 6), np.full(6, 2), np.full(6, 50), keys, PARAMS)
    for i in (5, 0, 3):
        alone = tokens[:1].copy()
        fill_in_middle(alone, *args, keys[i : i + 1], PARAMS)
        assert alone[0].tolist() == whole[i].tolist()


def test_keys_differ_by_seed_epoch_domain_and_sample() -> None:
    keys = {epoch_key(s, e, d) for s in range(5) for e in range(5) for d in ("", "web", "code")}
    assert len(keys) == 75
    some = sample_keys(np.array([epoch_key(1, 0), epoch_key(1, 1), epoch_key(1, 0)], np.uint64), np.array([0, 0, 1]))
    assert some.dtype == np.uint64 and len(set(some.tolist())) == 3


def test_choices_are_pinned() -> None:
    """A resumed run must make the choices of the run before, also under a later version of this file."""
    params = FillInMiddleParams(PRE, SUF, MID, 1000, rate=0.8, min_tokens=8)
    out, done = reorder(np.arange(60).reshape(2, 30), [[0, 14], [12]], [30, 30], params, seed=8)
    assert done == Reordered(documents=4, psm=1, spm=1, tokens_cut=6, token_level=0)
    assert out.tolist() == [
        [PRE, SUF, 8, 9, 10, MID, *range(8), *range(14, 30)],
        [PRE, *range(30, 35), SUF, MID, *range(35, 39), *range(42, 60)],
    ]


# --- between characters --------------------------------------------------------------------------------------------

WORDS = ["the ", "cat ", "sat ", "on ", "a ", "mat ", "und ", "Bären ", "the cat ", "aa", "aaaa"]
TEXT_PARAMS = FillInMiddleParams(PRE, SUF, MID, 1000, rate=1.0, min_tokens=5)


def encode(text: str) -> list[int]:
    """Longest word first, else bytes: its tokens depend on where a text begins, as those of real tokenizers do."""
    ids, at = [], 0
    while at < len(text):
        fits = [i for i, word in enumerate(WORDS) if text.startswith(word, at)]
        if fits:
            best = max(fits, key=lambda i: len(WORDS[i]))
            ids.append(256 + best)
            at += len(WORDS[best])
        else:
            ids += text[at].encode()
            at += 1
    return ids


def to_bytes(ids: Sequence[int]) -> bytes:
    return b"".join(WORDS[i - 256].encode() if i >= 256 else bytes([i]) for i in ids)


def decode(ids: Sequence[int]) -> str:
    return to_bytes(ids).decode("utf-8", "replace")


def reorder_text(
    ids: list[int], seed: int, encode: Encode = encode, decode: Decode = decode
) -> tuple[list[int], Reordered]:
    out = np.array([ids], np.int32)
    keys = sample_keys(epoch_key(seed, 0), np.array([0]))
    none, counts, valid = np.empty(0, np.int64), np.array([0]), np.array([len(ids)])
    done = fill_in_middle_of_text(out, none, counts, valid, keys, TEXT_PARAMS, encode, decode)
    return out[0].tolist(), done


def split(document: list[int]) -> tuple[bytes, bytes, bytes]:
    """Texts of PRE..SUF, MID..end, SUF..MID."""
    suf, mid = document.index(SUF), document.index(MID)
    assert document[0] == PRE and suf < mid
    return to_bytes(document[1:suf]), to_bytes(document[mid + 1 :]), to_bytes(document[suf + 1 : mid])


@given(st.text(st.sampled_from("aab thecastonmudäü"), min_size=20, max_size=80), st.integers(0, 1000))
def test_text_is_cut_between_characters_and_can_be_restored(text: str, seed: int) -> None:
    ids = encode(text)
    if len(ids) < 8:
        return
    out, done = reorder_text(ids, seed)
    assert len(out) == len(ids) and done.psm + done.spm == 1
    prefix, middle, suffix = split(out)
    restored = prefix + middle + suffix
    assert restored in text.encode()  # contiguous: only its ends may be cut
    assert not suffix or text.encode().startswith(restored)  # the prefix is cut only after the whole suffix
    assert done.tokens_cut >= 3
    if suffix and not done.token_level:
        assert (prefix.decode() + middle.decode()).encode() == prefix + middle  # whole characters


def test_cuts_fall_inside_tokens() -> None:
    ids = [258] * 40  # "sat "
    texts = [split(reorder_text(ids, seed)[0]) for seed in range(60)]
    inside = [prefix for prefix, _, _ in texts if len(prefix) % 4]
    assert len(inside) > 10


@pytest.mark.parametrize(
    ("ids", "why"),
    [
        ([0xC3] * 30, "not text"),
        ([265, 265] * 15, "the same text needs fewer tokens"),  # "aa" "aa" is "aaaa"
    ],
)
def test_what_cannot_be_cut_between_characters_is_cut_between_tokens(ids: list[int], why: str) -> None:
    out, done = reorder_text(ids, 0)
    assert done.token_level == 1 and len(out) == len(ids), why
    assert sorted(out) == sorted([*ids[:-3], PRE, SUF, MID])


def test_a_middle_is_never_cut() -> None:
    """A tokenizer that doubles everything leaves no room: suffix and prefix go first, then it is cut between tokens."""
    seen = set()
    for seed in range(40):
        out, done = reorder_text(
            [97] * 40, seed, encode=lambda text: [98] * 2 * len(text), decode=lambda ids: "b" * len(ids)
        )
        assert len(out) == 40
        mid = out.index(MID)
        assert done.token_level or (len(out) - mid - 1) % 2 == 0 or done.spm  # whole characters
        seen.add(done.token_level)
    assert seen == {0, 1}


def test_ids_outside_the_vocabulary() -> None:
    with pytest.raises(ValueError, match="encode: ids 1000 to 1000 given"):
        reorder_text([97] * 40, 0, encode=lambda text: [1000] * len(text))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rate": 1.1}, "rate: 1.1 given, 0 to 1"),
        ({"spm_rate": -0.1}, "spm_rate: -0.1 given"),
        ({"min_tokens": 0}, "min_tokens: 0 given"),
        ({"middle_id": 1000}, "middle_id: 1000 given, 0 to 999"),
        ({"eos_id": -1}, "eos_id: -1 given"),
        ({"suffix_id": PRE}, "given, distinct ids"),
        ({"end_id": MID}, "given, distinct ids"),
        ({"eos_id": PRE}, "given, distinct ids"),
    ],
)
def test_parameters_that_cannot_be(changes: dict[str, Any], message: str) -> None:
    given_: dict[str, Any] = {"prefix_id": PRE, "suffix_id": SUF, "middle_id": MID, "vocab_size": 1000}
    with pytest.raises(ValueError, match=message):
        FillInMiddleParams(**(given_ | changes))


def test_one_token_may_be_bos_and_eos() -> None:
    assert FillInMiddleParams(PRE, SUF, MID, 1000, bos_id=BOS, eos_id=BOS).sentinels == 3


def test_tokens_that_are_a_view_are_refused() -> None:
    tokens = np.zeros((2, 20), np.int64)[:, ::2]
    with pytest.raises(ValueError, match="not contiguous"):
        fill_in_middle(tokens, np.empty(0, int), np.zeros(2, int), np.full(2, 10), np.zeros(2, np.uint64), PARAMS)
