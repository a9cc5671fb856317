"""Lengths that change: every token once over the schedule, in rows as docs/loader.md describes them, resumed anywhere.

Token ids are positions in the corpus, so what a row has to be follows from its first token alone.
"""

from bisect import bisect_left, bisect_right
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refinery.loader import LengthStage, PackedStream, TokenStream
from refinery.loader.stream.state import StateError
from tests.loader.numbered import build_numbered
from tests.sampling import examples

DOCUMENTS = [7, 30, 5, 1, 1, 61, 2, 40, 9, 16, 16, 3]  # 191 tokens
TOTAL = sum(DOCUMENTS)
L = 16
STAGES = [LengthStage(4, 50), LengthStage(8, 64), LengthStage(16, 100), LengthStage(2, 60), LengthStage(16)]
ALL: dict[str, Any] = dict.fromkeys(("loss_mask", "position_ids", "doc_ids", "cu_seqlens"), True)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_numbered(tmp_path_factory.mktemp("lengths"), {"web": [DOCUMENTS[:5], DOCUMENTS[5:]]})


def stream(corpus: Path, stages: Any = STAGES, **options: Any) -> TokenStream:
    return TokenStream(corpus, stages, **{"batch_size": 2, "epochs": 2, "prefetch": 0} | options)


def length_at(stages: list[LengthStage], tokens: int) -> int:
    """By the definition: stages last for their tokens."""
    for stage in stages:
        if stage.tokens is None or tokens < stage.tokens:
            return stage.length
        tokens -= stage.tokens
    raise AssertionError


def check_batch(batch: dict[str, Any], lengths: list[int], ignore_cross: bool) -> list[int]:
    """Every array of a batch, by its rows' first tokens; returns the input tokens."""
    starts = [0, *accumulate(lengths)]
    total = starts.pop()
    rows, size = batch["input_ids"].shape
    runs = [0]
    found = []
    for b in range(rows):
        counted = int((batch["doc_ids"][b] >= 0).sum())
        first = int(batch["input_ids"][b, 0])
        tokens = list(range(first, first + counted))
        found += tokens
        assert batch["input_ids"][b, :counted].tolist() == tokens and (batch["doc_ids"][b, counted:] == -1).all()
        for i, token in enumerate(tokens):
            begin = starts[bisect_right(starts, token) - 1]
            assert batch["position_ids"][b, i] == token - max(begin, first)
            inside = bisect_right(starts, token) - bisect_right(starts, first)
            assert batch["doc_ids"][b, i] == inside
            excluded = token + 1 == total or (ignore_cross and token + 1 in starts)
            assert batch["labels"][b, i] == (-100 if excluded else token + 1)
            assert batch["loss_mask"][b, i] == (not excluded)
        assert (batch["labels"][b, counted:] == -100).all() and not batch["loss_mask"][b, counted:].any()
        inner = starts[bisect_right(starts, first) : bisect_left(starts, first + counted)] if counted else []
        runs += [b * size + start - first for start in inner]
        runs += [b * size + counted] * (0 < counted < size) + [(b + 1) * size]
    assert batch["cu_seqlens"].tolist() == runs and batch["max_seqlen"] == max(np.diff(runs))
    return found


@settings(max_examples=examples(25), deadline=None)
@given(
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=12),
    stages=st.lists(st.tuples(st.sampled_from([1, 2, 4, 8, 16]), st.integers(1, 90)), max_size=4),
    world=st.integers(1, 3),
    batch_size=st.integers(1, 3),
    ignore=st.booleans(),
)
def test_every_token_once_an_epoch_in_rows_of_the_stages(
    tmp_path_factory: pytest.TempPathFactory,
    lengths: list[int], stages: list[tuple[int, int]], world: int, batch_size: int, ignore: bool,
) -> None:  # fmt: skip
    corpus = build_numbered(tmp_path_factory.mktemp("any"), {"web": [lengths]})
    chosen = [*(LengthStage(*stage) for stage in stages), LengthStage(L)]
    total = sum(lengths)
    samples = -(-total // L)
    step = world * batch_size
    found: list[int] = []
    for rank in range(world):
        options: dict[str, Any] = {"rank": rank, "world_size": world, "batch_size": batch_size} | ALL
        with stream(corpus, chosen, ignore_cross_document=ignore, **options) as batches:
            per_epoch = -(-samples // step)
            assert batches.steps_per_epoch == per_epoch and batches.steps == 2 * per_epoch
            for i, batch in enumerate(batches):
                before = (i // per_epoch * samples + i % per_epoch * step) * L  # places, of all ranks
                size = length_at(chosen, before)
                assert batch["input_ids"].shape == (batch_size * L // size, size)
                found += check_batch(batch, lengths, ignore)
    assert sorted(found) == sorted(2 * list(range(total)))


def test_rows_are_those_of_the_longest_length_cut(corpus: Path) -> None:
    """One order for all stages; also without masks, where batches are copied by another way."""
    with stream(corpus) as cut, stream(corpus, L) as whole, stream(corpus, **ALL) as masked:
        for short, long, full in zip(cut, whole, masked, strict=True):
            for name in ("input_ids", "labels"):
                assert short[name].tobytes() == np.ascontiguousarray(long[name]).tobytes() == full[name].tobytes()
        assert cut.state_dict() == whole.state_dict()


@pytest.mark.parametrize("weights", [None, {"web": 1}])
def test_resume_at_every_step_with_other_ranks(corpus: Path, weights: Any) -> None:
    with stream(corpus, batch_size=4, weights=weights) as one:
        states, batches = [one.state_dict()], []
        for batch in one:
            batches.append(np.ascontiguousarray(batch["input_ids"]))
            states.append(one.state_dict())
    for k, state in enumerate(states[:-1]):
        rows = []
        for rank in range(4):
            with stream(corpus, batch_size=1, rank=rank, world_size=4, weights=weights) as part:
                part.load_state_dict(state)
                rows += next(part)["input_ids"].tolist()
        assert sorted(rows) == sorted(batches[k].tolist())


def test_later_stages_may_change_the_longest_length_may_not(corpus: Path) -> None:
    with stream(corpus) as batches:
        next(batches)
        state = batches.state_dict()
    with stream(corpus, [LengthStage(4, 32), LengthStage(16)]) as batches:
        batches.load_state_dict(state)
        assert next(batches)["input_ids"].shape == (2, 16)
    with stream(corpus, 8) as batches, pytest.raises(StateError, match="sequence_length 16 given"):
        batches.load_state_dict(state)


def test_ids_of_rows_and_unshifted_labels(corpus: Path) -> None:
    options: dict[str, Any] = {"domain_ids": True, "sample_ids": True, "labels": "unshifted"}
    with stream(corpus, **options) as batches:
        batch = next(batches)
        assert batch["input_ids"].shape == (8, 4) and batch["domain_ids"].tolist() == [0] * 8
        for row, labels, sample in zip(batch["input_ids"], batch["labels"], batch["sample_ids"].tolist(), strict=True):
            assert sample == row[0] // L
            assert labels.tolist() == [-100, *(token if token < TOTAL else -100 for token in row[1:].tolist())]


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        ([], "a list of LengthStage"),
        ([512], "a list of LengthStage"),
        ([LengthStage(512)] * 2, "tokens of every stage but the last"),
        ([LengthStage(512, 10)], "tokens of every stage but the last"),
        ([LengthStage(500, 10), LengthStage(2048)], "500 given, what divides 2048 is allowed: 64, 128, 256, 512"),
    ],
)  # fmt: skip
def test_wrong_stages(corpus: Path, stages: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"sequence_length: .*{message}"):
        stream(corpus, stages)


@pytest.mark.parametrize("given", [{"length": 0}, {"length": 4.5}, {"length": 4, "tokens": 0}, {"length": True}])
def test_wrong_stage(given: Any) -> None:
    with pytest.raises(ValueError, match=r"^(length|tokens): .* given"):
        LengthStage(**given)


@settings(max_examples=examples(25), deadline=None)
@given(
    lengths=st.lists(st.integers(1, 9) | st.integers(1, 160), min_size=1, max_size=30),
    stages=st.lists(st.tuples(st.sampled_from([1, 2, 4, 8, 16]), st.integers(1, 200)), max_size=4),
    skipped=st.integers(0, 9),
)
def test_rows_of_whole_documents_are_cut_as_well(
    tmp_path_factory: pytest.TempPathFactory, lengths: list[int], stages: list[tuple[int, int]], skipped: int
) -> None:
    """Best fit packs rows of the longest length; shorter rows are parts of these, with the labels that these have."""
    corpus = build_numbered(tmp_path_factory.mktemp("packed"), {"web": [lengths]})
    chosen = [*(LengthStage(*stage) for stage in stages), LengthStage(L)]
    found: list[int] = []
    options: dict[str, Any] = {"packing": "best_fit", **ALL}
    with stream(corpus, chosen, **options) as cut, stream(corpus, L, **options) as whole:
        samples = cut._schedule.domains[0].samples
        for i, (short, full) in enumerate(zip(cut, whole, strict=True)):
            per_epoch = cut.steps_per_epoch or 0
            size = length_at(chosen, (i // per_epoch * samples + i % per_epoch * 2) * L)
            assert short["input_ids"].shape == (2 * L // size, size)
            for name in ("input_ids", "labels", "loss_mask"):
                assert short[name].ravel().tolist() == full[name].ravel().tolist()
            ids, positions = full["doc_ids"].reshape(-1, size), full["position_ids"].reshape(-1, size)
            assert (short["doc_ids"] == np.where(ids < 0, -1, ids - ids[:, :1])).all()
            real = ids >= 0
            begins = np.arange(size) - positions  # where in the short row its document began, or before the row
            assert (short["position_ids"] == np.minimum(np.arange(size) - begins, np.arange(size)))[real].all()
            found += short["input_ids"][short["doc_ids"] >= 0].tolist()
        state = cut.state_dict()
        assert state == whole.state_dict()
        cut.restart()
        cut.skip(min(skipped, (cut.steps or 1) - 1))
        with stream(corpus, L, **options, batch_size=1) as other:
            other.load_state_dict(cut.state_dict())
            assert next(other)["input_ids"][0].tolist() == next(cut)["input_ids"].ravel()[:L].tolist()
    assert sorted(found) == sorted(2 * list(range(sum(lengths))))


def test_packed_rows_have_one_length(corpus: Path) -> None:
    with pytest.raises(ValueError, match="they are already packed"):
        PackedStream(corpus, sequence_length=STAGES)
