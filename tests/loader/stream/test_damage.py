"""on_damage="skip": a damaged block, index or shard costs exactly its tokens, and what is missing is recorded.

The expected batches are those of the sound corpus, whose tokens are their positions (tests.loader.numbered), with a
filler and no label where a token is damaged.
"""

import json
import logging
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from refinery.loader import (
    CorruptShard,
    FillInMiddleParams,
    FormatError,
    LengthStage,
    OrderParams,
    RemoteParams,
    StateError,
    TokenStream,
)
from refinery.loader.format.block_checksums import CHECKSUM_BLOCK
from refinery.loader.order.arrays import I64
from refinery.loader.read.damage import Damage, SkippingSource
from refinery.loader.read.versions.past import GONE, Runs
from refinery.loader.read.versions.past_source import PastSource
from refinery.loader.storage.open_store import open_store
from refinery.loader.stream.left_out import MOST_PLACES, LeftOut, LeftOuts
from tests.loader.numbered import Lengths, build_numbered
from tests.loader.range_server import range_server
from tests.loader.remote_split import FETCH
from tests.loader.view.test_view_stream import fill
from tests.loader.view.test_view_stream import stream as view_stream
from tests.shared import shared

VOCABULARY = 1 << 20
EOS = VOCABULARY - 1
BLOCK = CHECKSUM_BLOCK // 4  # tokens
LAYOUT: Lengths = {"a": [[300_000, 5, 9_000] + [700] * 300, [4000, 50] * 30], "b": [[50_000, 1] * 2, [7] * 400]}
SIZES = [sum(shard) for shards in LAYOUT.values() for shard in shards]
FIRST = np.cumsum([0, *SIZES]).tolist()
NAMES = [f"train/{d}/shard-{i:05d}-of-00002" for d in "ab" for i in range(2)]
IGNORE = -100
Batches = list[dict[str, Any]]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_numbered(tmp_path_factory.mktemp("sound"), LAYOUT, VOCABULARY)


@pytest.fixture
def corpus(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "corpus"))


def flip(path: Path, place: int) -> None:
    """One bit."""
    with path.open("r+b") as file:
        file.seek(place)
        byte = file.read(1)[0]
        file.seek(place)
        file.write(bytes([byte ^ 16]))


def stream(corpus: Path | str, **options: Any) -> TokenStream:
    shape: dict[str, Any] = {"sequence_length": 2048, "batch_size": 16, "order": OrderParams(1, 4, 2), "prefetch": 0}
    return TokenStream(corpus, **(shape | {"epochs": 1, "on_damage": "skip"} | options))


def expected(batches: Iterable[dict[str, Any]], damaged: I64, unshifted: bool = False) -> Iterator[dict[str, Any]]:
    """The batches of the sound corpus without these tokens."""
    for batch in batches:
        changed = {name: np.array(value) for name, value in batch.items()}
        labels = changed["labels"]
        gone = np.isin(labels, damaged)
        labels[gone] = IGNORE
        if "loss_mask" in changed:
            changed["loss_mask"][gone] = False
        inputs = np.isin(changed["input_ids"], damaged)
        if "doc_ids" in changed:
            inputs &= changed["doc_ids"] >= 0
        changed["input_ids"][inputs] = EOS
        yield changed


def check(found: Iterable[dict[str, Any]], wanted: Iterable[dict[str, Any]]) -> None:
    for one, other in zip(found, wanted, strict=True):
        assert one.keys() == other.keys()
        for name in one:
            assert np.array_equal(one[name], other[name]), name


def of_block(shard: int, block: int) -> I64:
    stop = min((block + 1) * BLOCK, SIZES[shard])
    return np.arange(FIRST[shard] + block * BLOCK, FIRST[shard] + stop)


def places(one: TokenStream) -> I64:
    """Tokens that the stream says it has not delivered."""
    assert one.not_delivered is not None and one.not_delivered.is_complete
    shard = {f"{name}.bin": first for name, first in zip(NAMES, FIRST, strict=False)}
    found = [shard[path] + np.arange(start, stop) for path, _, start, stop in one.not_delivered.damaged]
    return np.sort(np.concatenate(found))


@contextmanager
def locally(corpus: Path, _: Path) -> Iterator[tuple[Path | str, dict[str, Any]]]:
    yield corpus, {}


@contextmanager
def remotely(corpus: Path, cache: Path) -> Iterator[tuple[Path | str, dict[str, Any]]]:
    store = open_store(corpus)
    with range_server() as server:
        server.files = {name: store.read(name) for name in store.list()}
        yield server.url, {"remote": RemoteParams(cache=cache, threads=2, stagger=0, fetch=FETCH)}


DAMAGE: dict[str, tuple[Callable[[Path], Any], I64, dict[str, Any]]] = {
    "a bit": (lambda root: flip(root / f"{NAMES[0]}.bin", CHECKSUM_BLOCK + 99), of_block(0, 1), {}),
    "a bit of a last block": (lambda root: flip(root / f"{NAMES[2]}.bin", 0), of_block(2, 0), {"loss_mask": True}),
    "a cut file": (lambda root: (root / f"{NAMES[1]}.bin").write_bytes(b"x" * 99), of_block(1, 0), {}),
    "a missing file": (lambda root: (root / f"{NAMES[3]}.bin").unlink(), of_block(3, 0), {"doc_ids": True}),
}


@pytest.mark.parametrize("where", [locally, remotely])
@pytest.mark.parametrize("name", DAMAGE)
def test_damage(
    sound: Path, corpus: Path, tmp_path: Path, name: str, where: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Every other token is at its place; what is missing is counted, named and logged. The default is an error."""
    break_it, damaged, options = DAMAGE[name]
    break_it(corpus)
    with where(corpus, tmp_path / "cache") as (place, remote):
        one = stream(place, **remote, **options)
        with one, caplog.at_level(logging.WARNING, "refinery.loader"):
            check(one, expected(stream(sound, on_damage="error", **options), damaged))
            assert one.telemetry.snapshot()["counters"]["damaged_tokens"] == len(damaged)
            assert np.array_equal(places(one), damaged)
            assert one.not_delivered is not None and one.not_delivered.damaged_tokens == len(damaged)
            assert one.state_dict()["damaged"]["tokens"] == len(damaged)
            assert sum(stop - start for *_, start, stop in one.receipt()["damaged"]) == len(damaged)
        assert len([r for r in caplog.records if "are left out" in r.getMessage()]) == 1
        with pytest.raises(FormatError), stream(place, **remote, **options, on_damage="error") as strict:
            list(strict)


@pytest.mark.parametrize("where", [locally, remotely])
def test_a_damaged_index(sound: Path, corpus: Path, tmp_path: Path, where: Any) -> None:
    """Without it nobody knows where documents are, so no token of the shard is delivered. Without masks it is not
    read."""
    flip(corpus / f"{NAMES[1]}.idx", 60)
    with where(corpus, tmp_path / "cache") as (place, remote), stream(place, **remote, position_ids=True) as one:
        damaged = of_block(1, 0)
        for found, wanted in zip(one, expected(stream(sound), damaged), strict=True):
            assert all(np.array_equal(found[name], wanted[name]) for name in wanted)
        assert np.array_equal(places(one), damaged)
    with where(corpus, tmp_path / "cache") as (place, remote), stream(place, **remote) as one:
        check(one, stream(sound))
        assert one.not_delivered is None


def test_sound_corpora_are_streamed_as_before(sound: Path) -> None:
    one = stream(sound, doc_ids=True)
    check(one, stream(sound, doc_ids=True, on_damage="error"))
    assert one.not_delivered is None and one.state_dict().keys() == stream(sound, on_damage="error").state_dict().keys()
    with pytest.raises(ValueError, match="on_damage: 'ignore' given, 'error' or 'skip' is allowed"):
        stream(sound, on_damage="ignore")


@pytest.mark.parametrize(
    "options",
    [
        {"labels": "unshifted", "loss_mask": True},
        {"packing": "best_fit", "doc_ids": True, "loss_mask": True},
        {"sequence_length": [LengthStage(512, 200_000), LengthStage(2048)], "loss_mask": True},
        {"weights": {"a": 1, "b": 3}},
        {"prefetch": 2, "epochs": 2, "cu_seqlens": True, "ignore_eos": True},
    ],
)
def test_options(sound: Path, corpus: Path, options: dict[str, Any]) -> None:
    flip(corpus / f"{NAMES[0]}.bin", CHECKSUM_BLOCK + 99)
    damaged = of_block(0, 1)
    one, whole = stream(corpus, **options), list(stream(sound, **options))
    check(one, expected(whole, damaged))
    inputs = sum(int((np.isin(b["input_ids"], damaged) & (b.get("doc_ids", 0) >= 0)).sum()) for b in whole)
    assert one.not_delivered is not None and one.not_delivered.damaged_tokens == inputs > 0


def test_documents_with_damage_are_not_reordered(sound: Path, corpus: Path) -> None:
    infill = FillInMiddleParams(1 << 20, (1 << 20) + 1, (1 << 20) + 2, vocab_size=(1 << 20) + 3, rate=1.0)
    flip(corpus / f"{NAMES[0]}.bin", 5)
    damaged = of_block(0, 0)
    plain, reordered = stream(sound), stream(sound, fill_in_middle=infill)
    for found, before, after in zip(stream(corpus, fill_in_middle=infill), plain, reordered, strict=True):
        (wanted,) = expected([before], damaged)
        for i in range(16):
            has_damage = np.isin(before["input_ids"][i], damaged).any() or np.isin(before["labels"][i], damaged).any()
            assert np.array_equal(found["labels"][i], (wanted if has_damage else after)["labels"][i])


@pytest.mark.parametrize("workers", [1, 2])
def test_ranks_leave_out_tokens_of_their_own_rows(sound: Path, corpus: Path, workers: int) -> None:
    """The same steps as of the sound corpus; together they left out the damaged tokens, each once."""
    flip(corpus / f"{NAMES[0]}.bin", CHECKSUM_BLOCK + 99)
    damaged, missing = of_block(0, 1), []
    for rank in range(3):
        how = {"rank": rank, "world_size": 3, "batch_size": 4, "workers": workers}
        for worker in range(workers):
            one = stream(corpus, worker=worker, **how)
            check(one, expected(stream(sound, worker=worker, **how), damaged))
            missing.append(places(one))
    assert np.array_equal(np.sort(np.concatenate(missing)), damaged)


def test_resume(sound: Path, corpus: Path, tmp_path: Path) -> None:
    """From any step, by any number of ranks: the same batches, and a record that goes on."""
    flip(corpus / f"{NAMES[0]}.bin", CHECKSUM_BLOCK + 99)
    damaged = of_block(0, 1)
    whole = list(stream(corpus))
    one, states = stream(corpus), []
    for batch in one:
        states.append(json.loads(json.dumps(one.state_dict())))
        assert (batch["input_ids"] == whole[len(states) - 1]["input_ids"]).all()
    some = next(i for i, state in enumerate(states) if "damaged" in state)
    assert 0 < states[some]["damaged"]["tokens"] < len(damaged)
    for step in (some, some + 1, len(states) - 2):
        other = stream(corpus)
        other.load_state_dict(states[step])
        check(other, whole[step + 1 :])
        assert other.state_dict() == states[-1]
        assert other.not_delivered is not None and other.not_delivered.damaged_tokens == len(damaged)
    strict = stream(sound, on_damage="error")  # repaired: the rest is delivered, and the record stays
    strict.load_state_dict(states[some])
    check(strict, list(stream(sound))[some + 1 :])
    assert strict.state_dict()["damaged"] == states[some]["damaged"]
    strict.restart()
    assert "damaged" not in strict.state_dict() and strict.not_delivered is None


def test_what_is_not_delivered_has_addresses(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def known(store: Any, entry: Any, rows: range) -> list[dict[str, str]]:
        return [{"id": f"{entry.index}-{row}"} for row in rows]

    monkeypatch.setattr("refinery.loader.stream.damaged_rows.provenance", known)
    flip(corpus / f"{NAMES[0]}.bin", CHECKSUM_BLOCK + 99)
    flip(corpus / f"{NAMES[3]}.idx", 60)
    (corpus / f"{NAMES[3]}.bin").unlink()
    one = stream(corpus)
    list(one)
    assert one.not_delivered is not None
    rows = list(one.not_delivered.rows())
    assert {(row["kind"], row["epoch"], row["split"]) for row in rows} == {("damaged", 0, "train")}
    first = [row for row in rows if row["domain"] == "a"]
    assert [row["id"] for row in first] == [f"0-{row['row']}" for row in first]
    assert [row["row"] for row in first] == list(range(first[0]["row"], first[-1]["row"] + 1)) and len(first) > 300
    assert first[0]["token_offset"] == BLOCK and sum(row["token_count"] for row in first) == SIZES[0] - BLOCK
    (unknown,) = [row for row in rows if row["domain"] == "b"]
    assert (unknown["row"], unknown["id"], unknown["token_offset"], unknown["token_count"]) == (-1, "", 0, SIZES[3])


def test_a_view(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Its corpora's files, joined."""
    shutil.copytree(shared(tmp_path_factory, "views", fill), tmp_path, dirs_exist_ok=True)
    options: dict[str, Any] = {"epochs": 1, "doc_ids": True}
    whole = list(view_stream(tmp_path / "chosen", **options))
    shard = tmp_path / "b" / "train" / "web" / "shard-00000-of-00001.bin"
    flip(shard, 3)
    with pytest.raises(CorruptShard):
        list(view_stream(tmp_path / "chosen", **options))
    one = view_stream(tmp_path / "chosen", on_damage="skip", **options)
    fill_id = one.manifest.tokenizer.eos_id
    changed = 0
    for found, wanted in zip(one, whole, strict=True):
        same = found["input_ids"] == wanted["input_ids"]
        assert (found["input_ids"][~same] == fill_id).all()
        assert np.isin(found["labels"][found["labels"] != wanted["labels"]], [IGNORE]).all()
        changed += int((~same).sum())
    assert one.not_delivered is not None and one.not_delivered.damaged_tokens >= changed > 0
    assert {path for path, *_ in one.not_delivered.damaged} == {"b/train/web/shard-00000-of-00001.bin"}


class Broken:
    """A source of one shard of tokens 0, 1, … with damaged blocks of 262,144 tokens."""

    def __init__(self, blocks: set[int]) -> None:
        self.blocks, self.reads = blocks, 0

    def read_into(self, shard: int, start: int, out: Any) -> None:
        self.reads += 1
        if self.blocks & set(range(start // BLOCK, -(-(start + len(out)) // BLOCK))):
            raise CorruptShard("damaged")
        out[...] = np.arange(start, start + len(out))

    def read_pieces(self, pieces: I64, row: int, out: I64) -> None:
        for its, shard, start, count, place in pieces.tolist():
            self.read_into(shard, start, out[its - row, place : place + count])

    def will_need(self, ranges: Any) -> None:
        return

    def done_with(self, ranges: Any) -> None:
        return

    def close(self) -> None:
        return


def test_damage_behind_a_takedown() -> None:
    """Blocks are those of the files as they are now; what was taken out is not damaged."""
    broken, damage = Broken({1}), Damage()
    runs = Runs(np.array([0, 100, 150]), np.array([BLOCK - 100, GONE, BLOCK]), np.array([100, 50, 200]))

    class Past:
        pass

    past = Past()
    past.runs = [runs]  # type: ignore[attr-defined]
    source = PastSource(SkippingSource(broken, 4, EOS, damage), past, EOS)  # type: ignore[arg-type]
    out = np.zeros((1, 300), np.int64)
    lost = source.read_pieces(np.array([[0, 0, 20, 300, 0]]), 0, out)
    assert out[0].tolist() == [*range(BLOCK - 80, BLOCK), *[EOS] * 220]
    assert lost is not None and [tuple(each) for each in lost] == [(0, 0, BLOCK, 170, 130)]
    reads = broken.reads
    source.read_pieces(np.array([[0, 0, 150, 10, 0]]), 0, out)
    assert broken.reads == reads  # what is known to be damaged is not read again


def test_an_error_that_is_not_of_a_block_is_raised() -> None:
    class Failing(Broken):
        def read_pieces(self, pieces: I64, row: int, out: I64) -> None:
            raise FormatError("another")

    with pytest.raises(FormatError, match="another"):
        SkippingSource(Failing(set()), 4, EOS, Damage()).read_pieces(np.array([[0, 0, 0, 9, 0]]), 0, np.zeros((1, 9)))  # type: ignore[arg-type]


def test_records() -> None:
    found = LeftOuts()
    found.add([LeftOut(0, 1, 10, 20, (0, 5)), LeftOut(0, 1, 0, 10, (0, 4)), LeftOut(1, 1, 20, 30, (0, 5))])
    found.add([LeftOut(0, 1, 10, 20, (0, 5))])  # the same batch, made again
    assert found.tokens == 30 and [place[:4] for place in found.places] == [(0, 1, 0, 20), (1, 1, 20, 30)]
    many = LeftOuts(LeftOut(0, 0, 3 * i, 3 * i + 1) for i in range(MOST_PLACES + 1))
    assert many.state() == {"tokens": MOST_PLACES + 1, "places": None} and many.is_complete


@pytest.mark.parametrize(
    "damaged",
    [7, {}, {"tokens": -1, "places": []}, {"tokens": 5, "places": [[0, 0, 0, 9]]}, {"tokens": 5, "places": [[0, 0]]},
     {"tokens": True, "places": None}, {"tokens": 5, "places": [[0, 0, 0, "5"]]}],
)  # fmt: skip
def test_wrong_records_of_states(sound: Path, damaged: Any) -> None:
    one = stream(sound)
    state = {name: value for name, value in one.state_dict().items() if name != "check"}
    with pytest.raises(StateError, match="damaged"):
        one.load_state_dict(state | {"damaged": damaged})
    one.load_state_dict(state | {"damaged": {"tokens": 70, "places": None}})
    assert one.not_delivered is not None and not one.not_delivered.is_complete
    assert one.state_dict()["damaged"] == {"tokens": 70, "places": None}
