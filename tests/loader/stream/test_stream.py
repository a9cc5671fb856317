"""The stream against a list of all tokens: every token once per epoch for any number of ranks, exact resume, state."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from refinery.loader.errors import FormatError
from refinery.loader.order.mix_params import MixParams, MixStage
from refinery.loader.read.local.local_source import LocalSource
from refinery.loader.source_digest import loader_build
from refinery.loader.stream.fill_in_middle import FillInMiddleParams
from refinery.loader.stream.prefetch import Prefetcher
from refinery.loader.stream.schedule import rows_of_rank
from refinery.loader.stream.state import StateError
from tests.corpus_factory import EOS, build_corpus, edit_manifest
from tests.loader.streams import IGNORE, TEXTS, S, expected_rows, rows, stream, tokens_of
from tests.sampling import sampled


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_corpus(tmp_path_factory.mktemp("corpus"), TEXTS)


# --- one rank ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prefetch", [0, 1, 3])
@pytest.mark.parametrize("batch_size", [1, 2, 7, 500])
def test_epochs_are_every_token_once_in_order(corpus: Path, batch_size: int, prefetch: int) -> None:
    tokens = tokens_of(corpus)
    assert len(tokens) % S > 1  # so that the tail is tested
    with stream(corpus, epochs=3, batch_size=batch_size, prefetch=prefetch) as batches:
        found = rows(batches)
        assert found == [row for epoch in range(3) for row in expected_rows(tokens, 5, epoch)]
        with pytest.raises(StopIteration):
            next(batches)
    steps = -(-len(found) // 3 // batch_size)
    with stream(corpus, epochs=2, batch_size=batch_size) as batches:
        shapes = [(b["input_ids"].shape, b["labels"].shape, b["input_ids"].dtype, b["labels"].dtype) for b in batches]
    assert shapes == [((batch_size, S), (batch_size, S), np.int64, np.int64)] * (2 * steps)


def test_the_last_token_of_a_full_last_sample_has_no_label(tmp_path: Path) -> None:
    corpus = build_corpus(tmp_path, {("train", "web"): [["x" * (2 * S - 2)]]})
    with stream(corpus, epochs=1, batch_size=1, loss_mask=True) as batches:
        found = list(batches)
    assert sorted(int(batch["loss_mask"].sum()) for batch in found) == [S - 1, S]
    assert [batch["labels"][0, -1] for batch in found].count(IGNORE) == 1


@pytest.mark.parametrize("text, inputs", [("", 2), ("abc", 5)])
def test_a_corpus_shorter_than_a_sample(tmp_path: Path, text: str, inputs: int) -> None:
    with stream(build_corpus(tmp_path, {("train", "web"): [[text]]}), epochs=2, loss_mask=True) as batches:
        assert [int(batch["loss_mask"].sum()) for batch in batches] == [inputs - 1] * 2


def test_all_masks(corpus: Path) -> None:
    asked = {"loss_mask": True, "position_ids": True, "doc_ids": True, "cu_seqlens": True}
    tokens = tokens_of(corpus)
    with stream(corpus, epochs=1, ignore_cross_document=True, ignore_eos=True, batch_size=3, **asked) as masked:
        batches = list(masked)
    plain = rows(stream(corpus, epochs=1))
    found = [row for batch in batches for row in batch["input_ids"].tolist()][: len(plain)]
    assert found == [inputs for inputs, _ in plain]
    counted = sum(int(batch["loss_mask"].sum()) for batch in batches)
    # All tokens count in the loss except BOS (a document's first) and EOS.
    assert counted == sum(token < 256 for token in tokens)
    for batch in batches:
        assert ((batch["labels"] == IGNORE) == ~batch["loss_mask"]).all()
        begins = batch["position_ids"] == 0
        assert (begins[batch["input_ids"] == 256]).all()
        assert batch["cu_seqlens"][-1] == 3 * S
        assert (np.diff(batch["cu_seqlens"]) <= batch["max_seqlen"]).all()
        assert batch["doc_ids"].dtype == batch["position_ids"].dtype == np.int32


def test_fill_in_middle_is_keyed_by_sample(corpus: Path) -> None:
    infill = FillInMiddleParams(prefix_id=258, suffix_id=259, middle_id=260, vocab_size=261, rate=1.0, min_tokens=3)
    whole = rows(stream(corpus, epochs=2, fill_in_middle=infill))
    assert any(258 in inputs and 260 in inputs for inputs, _ in whole)
    # Without being told: every BOS and EOS of the corpus is where it was, and the receipt has what was taken from it.
    plain = rows(stream(corpus, epochs=2))
    for special in (256, EOS):
        places = [[i for i, token in enumerate(inputs) if token == special] for inputs, _ in whole]
        assert places == [[i for i, token in enumerate(inputs) if token == special] for inputs, _ in plain]
    taken = stream(corpus, fill_in_middle=infill).receipt()["fill_in_middle"]
    assert (taken["bos_id"], taken["eos_id"], taken["vocab_size"]) == (256, EOS, 261)
    one = stream(corpus, epochs=2, fill_in_middle=infill)
    for _ in range(7):
        next(one)
    again = stream(corpus, epochs=2, fill_in_middle=infill, batch_size=5)
    again.load_state_dict(one.state_dict())
    assert rows(again) == whole[14:]


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"eos_id": 256}, r"fill_in_middle: eos_id 256 given, 257 is that of the corpus; leave it out"),
        ({"bos_id": 5}, r"fill_in_middle: bos_id 5 given, 256 is that of the corpus"),
        ({"vocab_size": None}, r"prefix_id 258 given, the tokenizer has 258 ids; for a model with more, give its"),
        ({"prefix_id": 65}, r"prefix_id 65 given, which text encodes to; a special or unused id of the tokenizer, or"),
        ({"middle_id": EOS}, r"distinct ids, not BOS or EOS, are allowed"),
    ],
)
def test_fill_in_middle_contradicts_the_corpus(corpus: Path, changes: dict[str, Any], message: str) -> None:
    given = {"prefix_id": 258, "suffix_id": 259, "middle_id": 260, "vocab_size": 261}
    with pytest.raises(ValueError, match=message):
        stream(corpus, fill_in_middle=FillInMiddleParams(**(given | changes)))


def test_a_vocabulary_that_is_too_small(corpus: Path) -> None:
    with pytest.raises(ValueError, match=r"vocab_size 100 given, 258, the tokenizer's, or more"):
        stream(corpus, fill_in_middle=FillInMiddleParams(1, 2, 3, 100))


def test_validation_split(corpus: Path) -> None:
    with stream(corpus, split="validation", epochs=1, loss_mask=True) as batches:
        assert sum(int(batch["loss_mask"].sum()) for batch in batches) == len("held outkept aside") + 4 - 1


# --- ranks and workers ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lanes", [1, 4, 8])
@pytest.mark.parametrize("world_size", [1, 2, 3, 8, 16, 64])
def test_ranks_share_the_rows_of_a_step(world_size: int, lanes: int) -> None:
    taken = [rows_of_rank(rank, world_size, 3, lanes) for rank in range(world_size)]
    assert sorted(np.concatenate(taken).tolist()) == list(range(3 * world_size))
    for rank, mine in enumerate(taken):
        touched = {j % lanes for j in mine.tolist()}
        if lanes % world_size == 0:
            assert {lane % world_size for lane in touched} == {rank}
        if world_size % lanes == 0 and world_size > lanes:
            assert touched == {rank * lanes // world_size}


WORLDS = product([(1, 4), (2, 1), (3, 2), (8, 1), (64, 1), (8, 5)], [False, True])


@pytest.mark.parametrize(("world", "mixed"), sampled("worlds of ranks", WORLDS, 6, lambda cell: cell))
def test_union_of_ranks_is_the_global_order(corpus: Path, world: tuple[int, int], mixed: bool) -> None:
    world_size, batch_size = world
    """Step by step the same rows, whatever the number of ranks; all ranks make the same number of steps."""
    options: dict[str, Any] = {"weights": {"web": 2, "code": 1}, "epochs": 1} if mixed else {"epochs": 2}
    reference = rows(stream(corpus, batch_size=1, **options))
    ranks = [
        stream(corpus, rank=rank, world_size=world_size, batch_size=batch_size, **options) for rank in range(world_size)
    ]
    epochs = [reference] if mixed else [reference[: len(reference) // 2], reference[len(reference) // 2 :]]
    size = world_size * batch_size
    for epoch in epochs:
        for start in range(0, len(epoch), size):
            found = rows([next(rank) for rank in ranks])
            assert sorted(found) == sorted(epoch[start : start + size])
    for rank in ranks:
        assert rank.state_dict() == ranks[0].state_dict()
        with pytest.raises(StopIteration):
            next(rank)


@pytest.mark.parametrize("workers", [1, 2, 3, 4, 50])
def test_workers_take_turns(corpus: Path, workers: int) -> None:
    reference = rows(stream(corpus, epochs=3))
    each = [stream(corpus, epochs=3, worker=worker, workers=workers) for worker in range(workers)]
    found: list[Any] = []
    state: dict[str, Any] = {}
    for i in range(1000):
        try:
            found += rows([next(each[i % workers])])
        except StopIteration:
            break
        state = each[i % workers].state_dict()
        if i in (2, 30):
            resumed = stream(corpus, epochs=3)
            resumed.load_state_dict(state)
            assert found + rows(resumed) == reference
    assert found == reference
    assert state["epoch"] == 3


# --- receipt, telemetry, errors
# -----------------------------------------------------------------------------------------------------


def test_receipt(corpus: Path) -> None:
    batches = stream(corpus, ignore_eos=True)
    next(batches)
    receipt = json.loads(json.dumps(batches.receipt()))
    assert receipt["state"] == batches.state_dict()
    assert [shard["tokens"] for shard in receipt["shards"]] == [
        entry.tokens for entry in batches.manifest.shards if entry.split == "train"
    ]
    assert receipt["masks"] == {"ignore_cross_document": False, "ignore_eos": True}
    assert receipt["code"]["order"] == 1
    # Version 2 is version 1, and these.
    assert receipt["schema_version"] == 2 and receipt["code"]["build"] == loader_build()
    assert set(receipt) - {"schema_version"} == {
        "state", "name", "fingerprint", "world_size", "batch_size", "mix", "masks", "fill_in_middle", "shards", "code",
    }  # fmt: skip
    assert set(receipt["code"]) - {"build"} == {"refinery", "order", "state"}


def test_telemetry_counts_steps(corpus: Path) -> None:
    batches = stream(corpus, epochs=1)
    steps = len(list(batches))
    found = batches.telemetry.snapshot()
    assert (found["steps"], found["tokens"]) == (steps, steps * 2 * S)
    assert found["stages"]["read"]["total_s"] > 0


def test_errors_of_the_source_reach_the_caller(tmp_path: Path) -> None:
    corpus = build_corpus(tmp_path, TEXTS)
    batches = stream(corpus, prefetch=1)
    path = corpus / batches.manifest.shards[0].bin.path
    path.write_bytes(path.read_bytes()[:-2])
    with pytest.raises(FormatError):
        list(batches)


@pytest.mark.parametrize("prefetch", [0, 1])
def test_a_failed_batch_can_be_retried(corpus: Path, monkeypatch: pytest.MonkeyPatch, prefetch: int) -> None:
    batches = stream(corpus, prefetch=prefetch, epochs=2)
    found = rows([next(batches) for _ in range(3)])
    right = LocalSource.read_pieces

    def failing(*_: Any) -> None:
        raise OSError("disk")

    monkeypatch.setattr(LocalSource, "read_pieces", failing)
    with pytest.raises(OSError, match="disk"):
        while True:  # prefetched batches come first
            found += rows([next(batches)])
    monkeypatch.setattr(LocalSource, "read_pieces", right)
    assert found + rows(batches) == rows(stream(corpus, epochs=2))


def test_a_closed_stream_has_not_ended(corpus: Path) -> None:
    with stream(corpus, prefetch=1) as batches:
        next(batches)
    assert batches.state_dict()["position"] == 2
    with pytest.raises(RuntimeError, match="closed"):
        next(batches)


def test_an_index_of_another_shard_is_refused(tmp_path: Path) -> None:
    corpus = build_corpus(tmp_path, {("train", "web"): [["abcdef"], ["abc", "def"]]})
    names = [entry.idx.path for entry in stream(corpus).manifest.shards]
    (corpus / names[0]).write_bytes((corpus / names[1]).read_bytes())
    edit_manifest(corpus)
    with pytest.raises(FormatError, match="2 documents and 10 tokens found, 1 and 8 expected from the manifest"):
        next(stream(corpus, doc_ids=True, batch_size=4))


def test_a_missing_manifest(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"is not a corpus: manifest\.json is missing"):
        stream(tmp_path)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"sequence_length": 0}, "sequence_length: 0 given, 1 to 2147483647 is allowed"),
        ({"batch_size": 0}, "batch_size: 0 given"),
        ({"epochs": 0}, "epochs: 0 given"),
        ({"prefetch": -1}, "prefetch: -1 given"),
        ({"rank": 2, "world_size": 2}, "rank: 2 given, 0 to 1 is allowed"),
        ({"worker": 1}, "worker: 1 given, 0 to 0 is allowed"),
        ({"split": "test"}, "split: 'test' given, train or validation is allowed"),
        ({"weights": {"wiki": 1}}, "domain 'wiki' given"),
        ({"weights": MixParams([MixStage({"web": 1})]), "epochs": 1}, "epochs: 1 given with MixParams"),
    ],
)
def test_wrong_arguments_are_named(corpus: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        stream(corpus, **options)


def test_a_split_without_tokens_is_refused(tmp_path: Path) -> None:
    corpus = build_corpus(tmp_path, {("train", "web"): [["x"]]})
    with pytest.raises(ValueError, match="split: one without tokens given"):
        stream(corpus, split="validation")


def test_importing_the_format_stays_light() -> None:
    script = (
        "import sys, refinery.loader.format.manifest, refinery.loader as loader\n"
        "print('refinery.loader.stream.stream' in sys.modules); loader.TokenStream; print(1)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=os.environ)
    assert done.stdout.split() == ["False", "1"]


def test_dropping_a_stream_ends_its_thread(corpus: Path) -> None:
    batches: Iterator[Any] = stream(corpus, prefetch=1)
    next(batches)
    prefetcher = batches._batches  # type: ignore[attr-defined]
    assert isinstance(prefetcher, Prefetcher)
    thread = prefetcher._thread
    assert thread is not None and thread.is_alive()
    del batches, prefetcher
    thread.join(10)
    assert not thread.is_alive()


def test_some_shards_alone(corpus: Path) -> None:
    whole = stream(corpus, epochs=1)
    paths = [entry.bin.path for entry in whole.manifest.shards if entry.split == "train"]
    assert len(paths) > 1
    chosen = paths[1::2]
    with stream(corpus, epochs=1, shards=chosen) as some:
        delivered = rows(some)
        assert set(some.tokens_per_shard) <= set(chosen)
        state = some.state_dict()
    tokens = [token for path in chosen for token in np.fromfile(corpus / path, some.manifest.dtype).tolist()]
    assert delivered == expected_rows(tokens, 5, 0)
    with pytest.raises(StateError, match="shards"):
        whole.load_state_dict(state)
    with pytest.raises(
        ValueError, match=r"shards: 'nowhere.bin' given, .* such as 'train/web/shard-00000-of-00004.bin'"
    ):
        stream(corpus, shards=["nowhere.bin"])
    with pytest.raises(ValueError, match="shards: an empty list given"):
        stream(corpus, shards=[])
    whole.close()
