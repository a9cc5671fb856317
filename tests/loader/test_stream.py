"""The stream against a list of all tokens: every token once per epoch for any number of ranks, exact resume, state."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loader import TokenStream
from loader.fill_in_middle import FillInMiddleParams
from loader.format import MANIFEST, FormatError
from loader.mixing import MixParams, MixStage, RepetitionLimit
from loader.order import Order, OrderParams
from loader.prefetch import Prefetcher
from loader.schedule import rows_of
from loader.source import LocalSource
from loader.stream import StateError
from loader.usage import UsageError, digest, digest_of_all
from tests.corpus_factory import EOS, build_corpus, edit_manifest

S = 16
TEXTS = {
    ("train", "web"): [[f"page {i} " * (i % 5 + 1) for i in range(8)], ["a" * 100, ""], [], ["x" * 53]],
    ("train", "code"): [[f"def f{i}(): return {i}" for i in range(9)]],
    ("validation", "web"): [["held out", "kept aside"]],
}
ORDER = OrderParams(block=3, lanes=4, window=2)
IGNORE = -100


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_corpus(tmp_path_factory.mktemp("corpus"), TEXTS)


def tokens_of(corpus: Path, domain: str = "*") -> list[int]:
    """All tokens of a domain, or of all in manifest order, end to end."""
    payload = json.loads((corpus / MANIFEST).read_bytes())
    paths = [
        shard["files"]["bin"]["path"]
        for shard in payload["shards"]
        if shard["split"] == "train" and domain in ("*", shard["domain"])
    ]
    found: list[int] = np.concatenate([np.fromfile(corpus / path, "<u2") for path in paths]).tolist()
    return found


def expected_rows(tokens: list[int], seed: int, epoch: int, order: OrderParams = ORDER, domain: str = "") -> list[Any]:
    """(inputs, labels) of an epoch in order, cut by hand."""
    n = -(-len(tokens) // S)
    shape = Order(
        n, seed=seed, epoch=epoch, block=order.block or 1, lanes=order.lanes, window=order.window, domain=domain
    )
    rows = []
    for i in shape[np.arange(n)].tolist():
        read = tokens[i * S : i * S + S + 1]
        inputs, labels = read[:S], read[1:]
        rows.append((inputs + [EOS] * (S - len(inputs)), labels + [IGNORE] * (S - len(labels))))
    return rows


def stream(corpus: Path, **options: Any) -> TokenStream:
    defaults: dict[str, Any] = {"sequence_length": S, "batch_size": 2, "seed": 5, "order": ORDER, "prefetch": 0}
    return TokenStream(str(corpus), **(defaults | options))


def rows(batches: Any) -> list[Any]:
    """(inputs, labels) of all rows, empty ones left out."""
    found = []
    for batch in batches:
        for inputs, labels in zip(batch["input_ids"].tolist(), batch["labels"].tolist(), strict=True):
            if inputs != [EOS] * S or labels != [IGNORE] * S:
                found.append((inputs, labels))
    return found


# --- one rank ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prefetch", [0, 1, 3])
@pytest.mark.parametrize("batch_size", [1, 2, 7, 500])
def test_epochs_are_every_token_once_in_order(corpus: Path, batch_size: int, prefetch: int) -> None:
    tokens = tokens_of(corpus)
    assert len(tokens) % S > 1  # the tail is a case of its own
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
    learned = sum(int(batch["loss_mask"].sum()) for batch in batches)
    # All tokens are learned but BOS (a document's first) and EOS.
    assert learned == sum(token < 256 for token in tokens)
    for batch in batches:
        assert ((batch["labels"] == IGNORE) == ~batch["loss_mask"]).all()
        begins = batch["position_ids"] == 0
        assert (begins[batch["input_ids"] == 256]).all()
        assert batch["cu_seqlens"][-1] == 3 * S
        assert (np.diff(batch["cu_seqlens"]) <= batch["max_seqlen"]).all()
        assert batch["doc_ids"].dtype == batch["position_ids"].dtype == np.int32


def test_fill_in_middle_is_keyed_by_sample(corpus: Path) -> None:
    infill = FillInMiddleParams(
        prefix_id=1, suffix_id=2, middle_id=3, vocab_size=258, bos_id=256, eos_id=EOS, rate=1.0, min_tokens=3
    )
    whole = rows(stream(corpus, epochs=2, fill_in_middle=infill))
    assert any(1 in inputs and 3 in inputs for inputs, _ in whole)
    one = stream(corpus, epochs=2, fill_in_middle=infill)
    for _ in range(7):
        next(one)
    again = stream(corpus, epochs=2, fill_in_middle=infill, batch_size=5)
    again.load_state_dict(one.state_dict())
    assert rows(again) == whole[14:]


def test_validation_split(corpus: Path) -> None:
    with stream(corpus, split="validation", epochs=1, loss_mask=True) as batches:
        assert sum(int(batch["loss_mask"].sum()) for batch in batches) == len("held outkept aside") + 4 - 1


# --- ranks and workers ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lanes", [1, 4, 8])
@pytest.mark.parametrize("world_size", [1, 2, 3, 8, 16, 64])
def test_ranks_share_the_rows_of_a_step(world_size: int, lanes: int) -> None:
    taken = [rows_of(rank, world_size, 3, lanes) for rank in range(world_size)]
    assert sorted(np.concatenate(taken).tolist()) == list(range(3 * world_size))
    for rank, mine in enumerate(taken):
        touched = {j % lanes for j in mine.tolist()}
        if lanes % world_size == 0:
            assert {lane % world_size for lane in touched} == {rank}
        if world_size % lanes == 0 and world_size > lanes:
            assert touched == {rank * lanes // world_size}


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("world_size, batch_size", [(1, 4), (2, 1), (3, 2), (8, 1), (64, 1), (8, 5)])
def test_union_of_ranks_is_the_global_order(corpus: Path, world_size: int, batch_size: int, mixed: bool) -> None:
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


# --- resume --------------------------------------------------------------------------------------------------------


MIXED = {"weights": MixParams([MixStage({"web": 1, "code": 3}, 30 * S), MixStage({"web": 1})], repeats=2, block=8)}


@pytest.mark.parametrize("options", [{"epochs": 2}, MIXED], ids=["epochs", "mixed"])
def test_resume_at_every_position_with_other_shapes(corpus: Path, options: dict[str, Any]) -> None:
    reference = rows(stream(corpus, batch_size=1, **options))
    one = stream(corpus, batch_size=1, **options)
    for position in range(len(reference) + 1):
        state = json.loads(json.dumps(one.state_dict()))
        assert len(json.dumps(state)) < 700
        world_size, batch_size = [(1, 1), (1, 3), (2, 2), (3, 1), (8, 1)][position % 5]
        ranks = [
            stream(corpus, rank=rank, world_size=world_size, batch_size=batch_size, **options)
            for rank in range(world_size)
        ]
        found = []
        for rank in ranks:
            rank.load_state_dict(state)
            found += rows(rank)
        assert sorted(found) == sorted(reference[position:])
        if world_size == 1:
            assert found == reference[position:]
        if position < len(reference):
            next(one)


def test_state_advances_with_delivery_alone(corpus: Path) -> None:
    with stream(corpus, prefetch=3) as ahead:
        next(ahead)
        next(ahead)
        state = ahead.state_dict()
        assert state["position"] == 4
        following = rows([next(ahead)])
    with stream(corpus) as other:
        other.load_state_dict(state)
        assert rows([next(other)]) == following


def test_loading_replaces_what_was_made_ahead(corpus: Path) -> None:
    with stream(corpus, prefetch=2) as batches:
        begin = batches.state_dict()
        first = rows([next(batches), next(batches)])
        batches.load_state_dict(begin)
        assert rows([next(batches), next(batches)]) == first


def test_a_state_can_be_continued_for_more_epochs(corpus: Path) -> None:
    short, long = stream(corpus, epochs=1), stream(corpus, epochs=2)
    first = rows(short)
    long.load_state_dict(short.state_dict())
    assert first + rows(long) == rows(stream(corpus, epochs=2))


def test_leaving_a_loop_and_starting_another_goes_on(corpus: Path) -> None:
    batches = stream(corpus, epochs=1)
    found = []
    for batch in batches:
        found += rows([batch])
        if len(found) == 6:
            break
    assert found + rows(batches) == rows(stream(corpus, epochs=1))


@pytest.mark.parametrize(
    "change, message",
    [
        ({"seed": 6}, "seed 5 given, this stream has 6"),
        ({"sequence_length": 8}, "sequence_length 16 given, this stream has 8"),
        ({"split": "validation"}, "split 'train' given, this stream has 'validation'"),
        ({"order": OrderParams(3, 4, 3)}, r"order \{.*'window': 2\} given, this stream has \{.*'window': 3\}"),
        ({"weights": {"web": 1}}, "made with the mixture None"),
    ],
)
def test_states_of_other_streams_are_refused(corpus: Path, change: dict[str, Any], message: str) -> None:
    state = stream(corpus).state_dict()
    with pytest.raises(StateError, match=message):
        stream(corpus, **change).load_state_dict(state)


def test_a_state_of_another_corpus_is_refused(corpus: Path, tmp_path: Path) -> None:
    other = build_corpus(tmp_path, {("train", "web"): [["other"]]})
    with pytest.raises(StateError, match=r"state: corpus '[0-9a-f]{64}' given, this stream has '[0-9a-f]{64}'"):
        stream(other).load_state_dict(stream(corpus).state_dict())


@pytest.mark.parametrize(
    "change, message",
    [
        ({"version": 2}, "version 2 given"),
        ({"position": -1}, "position -1 given"),
        ({"position": 10**9}, r"position 1000000000 given, 0 to \d+ is allowed: this stream ends there"),
        ({"epoch": True}, "epoch True given"),
        ({"epoch": None}, "epoch None given"),
        ({"usage": ["xyz"]}, r"usage \['xyz'\] given, a hexadecimal number for each domain"),
        ({"usage": ["1", "2"]}, "usage"),
        ({"usage": 7}, "usage"),
    ],
)
def test_broken_states_are_refused(corpus: Path, change: dict[str, Any], message: str) -> None:
    batches = stream(corpus)
    first = rows([next(batches)])
    with pytest.raises(StateError, match=message):
        batches.load_state_dict(batches.state_dict() | change)
    with pytest.raises(StateError, match="version None given"):
        batches.load_state_dict({})
    with pytest.raises(StateError, match=r"state: \[7\] given"):
        batches.load_state_dict([7])  # type: ignore[arg-type]
    assert first + rows([next(batches)]) == rows(stream(corpus, epochs=1))[:4]  # as before


def test_state_size_and_that_it_is_plain(corpus: Path) -> None:
    batches = stream(corpus, weights={"web": 1, "code": 1})
    next(batches)
    state = batches.state_dict()
    assert json.loads(json.dumps(state)) == state
    assert len(json.dumps(state)) <= 1024
    assert len(json.dumps(state | {"usage": ["f" * 16] * 24, "position": 2**61, "seed": 2**63})) <= 1024


# --- mixing --------------------------------------------------------------------------------------------------------


def test_mixed_domains_have_strict_epochs_of_their_own(corpus: Path) -> None:
    batches = stream(corpus, weights={"web": 1, "code": 3}, batch_size=1, loss_mask=True)
    web, code = tokens_of(corpus, "web"), tokens_of(corpus, "code")
    found = rows(next(batches) for _ in range(300))
    for name, tokens in (("web", web), ("code", code)):
        cycle = [row for epoch in range(20) for row in expected_rows(tokens, 5, epoch, domain=name)]
        mine = [row for row in found if row in cycle]
        assert mine == cycle[: len(mine)] and len(mine) > 60
    shares = {name: row["share"] for name, row in batches.mix.items()}
    assert shares == pytest.approx({"web": 0.25, "code": 0.75}, abs=0.05)
    assert stream(corpus).mix == {}


def test_epochs_limit_repetition_in_a_mixture(corpus: Path) -> None:
    batches = stream(corpus, weights={"web": 1, "code": 9}, epochs=2)
    for _ in batches:
        pass
    assert batches.mix["code"]["epochs"] == 2.0 and batches.mix["web"]["epochs"] < 2


def test_a_limit_can_be_an_error(corpus: Path) -> None:
    params = MixParams([MixStage({"web": 1, "code": 9})], repeats={"code": 1}, on_limit="error")
    batches = stream(corpus, weights=params, batch_size=1)
    found = 0
    with pytest.raises(RepetitionLimit, match="domain 'code': delivered as often as allowed at position"):
        for _ in batches:
            found += 1
    assert found >= -(-len(tokens_of(corpus, "code")) // S)


def test_stages_ahead_may_change_but_not_the_past(corpus: Path) -> None:
    first, second = MixStage({"web": 1, "code": 1}, 20 * S), MixStage({"web": 1})
    state_at = {}
    batches = stream(corpus, weights=[first, second], batch_size=1)
    for i in range(1, 31):
        next(batches)
        state_at[i] = batches.state_dict()
    other = stream(corpus, weights=[first, MixStage({"code": 1})])
    other.load_state_dict(state_at[20])
    with pytest.raises(StateError, match=r"made with the mixture '[0-9a-f]{16}' up to position 21"):
        other.load_state_dict(state_at[21])


# --- usage ---------------------------------------------------------------------------------------------------------


def test_digest_in_closed_form() -> None:
    for n in (1, 2, 3, 1000, 2**20 + 1):
        assert digest(np.random.default_rng(n).permutation(n)) == digest_of_all(n)
    assert digest(np.array([0, 1, 1, 3])) != digest_of_all(4)


def test_tokens_per_shard_agree_with_the_manifest(corpus: Path) -> None:
    batches = stream(corpus, batch_size=1)
    steps = -(-len(tokens_of(corpus)) // S)
    for _ in range(steps - 1):
        next(batches)
    manifest = {entry.bin.path: entry.tokens for entry in batches.manifest.shards if entry.split == "train"}
    missing = {name: manifest[name] - count for name, count in batches.tokens_per_shard.items()}
    assert 0 < sum(missing.values()) <= S and min(missing.values()) >= 0
    next(batches)
    assert set(batches.tokens_per_shard.values()) == {0}  # of the next epoch


@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.parametrize("world_size", [1, 3])
@pytest.mark.parametrize("options", [{"epochs": 2}, {"weights": {"web": 1}, "epochs": 2}], ids=["epochs", "mixed"])
def test_an_order_that_repeats_a_sample_raises(
    corpus: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], world_size: int, resume: bool
) -> None:
    batches = stream(corpus, world_size=world_size, batch_size=1, **options)
    next(batches)
    if resume:
        state = batches.state_dict()
        batches = stream(corpus, world_size=world_size, batch_size=1, **options)
        batches.load_state_dict(state)
    right = Order.__getitem__

    def wrong(self: Order, positions: Any) -> Any:
        samples = right(self, positions)
        samples[np.asarray(positions) == 20] = right(self, [3])[0]
        return samples

    monkeypatch.setattr(Order, "__getitem__", wrong)
    batches._schedule.order.cache_clear()
    batches.load_state_dict(batches.state_dict())  # plan again
    with pytest.raises(UsageError, match=r"epoch 0: .*(delivered|expected|twice)"):
        list(batches)


# --- around it -----------------------------------------------------------------------------------------------------


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
def test_an_error_can_be_tried_again(corpus: Path, monkeypatch: pytest.MonkeyPatch, prefetch: int) -> None:
    batches = stream(corpus, prefetch=prefetch, epochs=2)
    found = rows([next(batches) for _ in range(3)])
    right = LocalSource.read_into

    def failing(*_: Any) -> None:
        raise OSError("disk")

    monkeypatch.setattr(LocalSource, "read_into", failing)
    with pytest.raises(OSError, match="disk"):
        while True:  # what was made ahead comes first
            found += rows([next(batches)])
    monkeypatch.setattr(LocalSource, "read_into", right)
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


def test_without_a_manifest_it_is_no_corpus(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"is not a corpus: manifest\.json is missing"):
        stream(tmp_path)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"sequence_length": 0}, "sequence_length: 0 given, 1 or more is allowed"),
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
    script = "import sys, loader.format, loader; print('loader.stream' in sys.modules); loader.TokenStream; print(1)"
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
    with pytest.raises(ValueError, match=r"shards: 'nowhere.bin' given"):
        stream(corpus, shards=["nowhere.bin"])
    whole.close()
