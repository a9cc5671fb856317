"""Remote streams, end to end: network faults, processes that share a cache and are killed, dropped streams."""

import contextlib
import gc
import json
import multiprocessing
import signal
import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import google_crc32c
import pytest

from refinery.loader import TokenStream
from refinery.loader.errors import CorruptShard, FormatError
from refinery.loader.format.manifest import MANIFEST
from refinery.loader.order.order import OrderParams
from refinery.loader.read.remote.blocks import RemoteParams
from refinery.loader.storage.fetch import FetchError, FetchParams
from refinery.loader.storage.http_store import HttpStore
from refinery.loader.storage.open_store import open_store
from tests.fake_gcs import FakeGcs, fake_gcs
from tests.loader.numbered import build_numbered
from tests.loader.range_server import FAULTS, RangeServer, range_server
from tests.loader.remote_split import FETCH, HEDGED, SHORT_TIMEOUT, wait_for
from tests.sampling import one_commit_in_four, sampled

LENGTHS = {"web": [[300, 5], [], [700_000], [90, 90]], "code": [[40_000, 1]]}  # the third shard has more than two MiBs


def stream(location: str | HttpStore, folder: Path, fetch: FetchParams = FETCH, **options: Any) -> TokenStream:
    """Long samples, so that many of them cross from block to block."""
    remote = RemoteParams(cache=folder, threads=2, stagger=0, fetch=fetch)
    shape: dict[str, Any] = {"sequence_length": 9000, "batch_size": 4, "order": OrderParams(3, 4, 2)}
    return TokenStream(location, **(shape | {"epochs": 1, "remote": remote, "doc_ids": True} | options))


def inputs(batches: Any) -> list[list[list[int]]]:
    return [batch["input_ids"].tolist() for batch in batches]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_numbered(tmp_path_factory.mktemp("corpus"), LENGTHS, vocab_size=2_000_000)


@pytest.fixture(scope="module")
def sound(corpus: Path) -> list[list[list[int]]]:
    with stream(str(corpus), corpus) as batches:
        return inputs(batches)


def files_of(corpus: Path) -> dict[str, bytes]:
    store = open_store(corpus)
    return {name: store.read(name) for name in store.list()}


@pytest.fixture
def server(corpus: Path) -> Iterator[RangeServer]:
    with range_server() as server:
        server.files = files_of(corpus)
        yield server


@pytest.fixture
def gcs(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGcs]:
    with fake_gcs("bucket") as server:
        server.use(monkeypatch)
        for name, data in files_of(corpus).items():
            server.put("bucket", f"c/{name}", data)
        yield server


def script_of(fault: str) -> deque[str]:
    """In the first response, the manifest, and in every third one after it.

    Wrong bytes only in the manifest and once after it: a block that happens to be wrong twice is an error.
    """
    return deque([fault, "", fault] if fault == "wrong" else [fault, "", "", fault, "", "", fault])


@pytest.mark.parametrize("fault", sampled("faults over HTTP", sorted({*FAULTS} - {"trickle"}), 6))
def test_faults_over_http(server: RangeServer, sound: Any, tmp_path: Path, fault: str) -> None:
    server.script = script_of(fault)
    with stream(server.url, tmp_path, SHORT_TIMEOUT) as batches:
        assert inputs(batches) == sound
    assert not server.script


@pytest.mark.parametrize("fault", ["429", "503", "reset", "short", "wrong", "stall", "200"])
def test_faults_over_gcs(gcs: FakeGcs, sound: Any, tmp_path: Path, fault: str) -> None:
    gcs.script = script_of(fault)
    gcs.stall = 1
    with stream("gs://bucket/c", tmp_path, SHORT_TIMEOUT) as batches:
        assert inputs(batches) == sound


@pytest.mark.parametrize("fault", sampled("faults over HTTP that stay", ["503", "reset", "short", "stall"], 2))
def test_permanent_faults_are_named(server: RangeServer, sound: Any, tmp_path: Path, fault: str) -> None:
    """And when they are over, the stream continues where it was."""
    bins = {name: deque([fault] * 10_000) for name in server.files if name.endswith(".bin")}
    with stream(server.url, tmp_path, replace(FETCH, deadline=0.5, read_timeout=0.1)) as batches:
        server.scripts = bins
        with pytest.raises(FetchError, match=f"{server.url}/train/.*attempt"):
            next(batches)
        server.scripts = {}
        assert inputs(batches) == sound


@pytest.mark.parametrize(
    "suffix, fault, fetch",
    [(".bin", "stall", FETCH), (".bin", "stall", HEDGED), (".idx", "stall", FETCH), (".idx", "503", FETCH)],
    ids=["tokens", "tokens, hedged", "indexes", "indexes, between attempts"],
)
@pytest.mark.parametrize("own", [True, False], ids=["own store", "given store"])
def test_closing_does_not_wait_for_a_server_that_stalls(
    server: RangeServer, tmp_path: Path, suffix: str, fault: str, fetch: FetchParams, own: bool
) -> None:
    server.stall = 600
    server.scripts = {name: deque([fault] * 1000) for name in server.files if name.endswith(suffix)}
    slow = replace(fetch, read_timeout=300, deadline=900, first_delay=600, max_delay=600)
    store = HttpStore(server.url, slow)
    batches = stream(server.url if own else store, tmp_path, slow)
    failed: list[BaseException] = []

    def take() -> None:
        try:
            next(batches)
        except Exception as error:  # noqa: BLE001 - checked below
            failed.append(error)

    thread = threading.Thread(target=take)
    thread.start()
    wait_for(lambda: any(name.endswith(suffix) for name, _, _ in server.requests))
    batches.close()  # joins its threads; the test's time limit is shorter than the stall
    thread.join()
    assert len(failed) == 1 and isinstance(failed[0], (FetchError, RuntimeError))
    assert store.read(MANIFEST) == server.files[MANIFEST]  # a store that was passed in stays open
    store.close()


@pytest.mark.parametrize("prefetch", [0, 1])
@pytest.mark.parametrize("suffix", [MANIFEST, ".idx"])
def test_an_interrupt_does_not_wait_for_a_server_that_stalls(
    server: RangeServer, tmp_path: Path, suffix: str, prefetch: int
) -> None:
    """While opening the stream and in `next`; closing it afterwards does not wait either."""
    server.stall = 600
    server.scripts = {name: deque(["stall"] * 1000) for name in server.files if name.endswith(suffix)}
    main = threading.get_ident()

    def interrupt() -> None:
        wait_for(lambda: any(name.endswith(suffix) for name, _, _ in server.requests))
        signal.pthread_kill(main, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with (
        pytest.raises(KeyboardInterrupt),
        stream(server.url, tmp_path, replace(FETCH, read_timeout=300, deadline=900), prefetch=prefetch) as batches,
    ):
        next(batches)
    thread.join()


def test_an_index_wrong_once_is_read_again(server: RangeServer, sound: Any, tmp_path: Path) -> None:
    """So is the manifest, whose only checksum is its seal. Wrong twice, both raise an error with the values found."""
    name = "train/web/shard-00000-of-00004.idx"
    server.scripts = {each: deque(["wrong"]) for each in (name, MANIFEST)}
    with stream(server.url, tmp_path) as batches:
        assert inputs(batches) == sound
    assert not any(server.scripts.values())
    server.scripts = {name: deque(["wrong"] * 2)}
    with (
        stream(server.url, tmp_path) as batches,
        pytest.raises(CorruptShard, match=f"{server.url}/{name}: .*crc32c [0-9a-f]{{8}} found, .*[0-9a-f]{{8}} expect"),
    ):
        inputs(batches)


def test_a_manifest_wrong_twice(server: RangeServer, tmp_path: Path) -> None:
    sums = []
    for change in (("numbered", "nUmbered"), ("fingerprint", "fingerprinT")):
        sums.append(server.files[MANIFEST].replace(change[0].encode(), change[1].encode(), 1))
    damaged = deque(sums)
    whole = dict(server.files)

    class Files(dict[str, bytes]):
        def get(self, name: str, default: Any = None) -> Any:
            return damaged.popleft() if name == MANIFEST and damaged else whole.get(name, default)

    server.files = Files()
    values = [f"{len(data)} bytes with crc32c {google_crc32c.value(data):08x}" for data in sums]
    message = (
        rf"{server.url}/{MANIFEST}: the contents have sha256 [0-9a-f]{{64}}, '[0-9a-f]{{64}}' expected; the file "
        rf"was damaged or edited \(read twice: {values[0]}, then {values[1]}\)"
    )
    with pytest.raises(FormatError, match=message):
        stream(server.url, tmp_path)
    assert not damaged
    with stream(server.url, tmp_path) as batches:
        next(batches)


@pytest.mark.parametrize("prefetch", [0, 2])
def test_dropped_streams_leave_no_threads(server: RangeServer, tmp_path: Path, prefetch: int) -> None:
    for _ in range(3):
        next(stream(server.url, tmp_path, prefetch=prefetch, epochs=None))

    def gone() -> bool:
        gc.collect()
        return not [t for t in threading.enumerate() if t.name.startswith(("refinery", "prefetch"))]

    wait_for(gone)


def _rank(url: str, cache: Path, answer: Path) -> None:
    with stream(url, cache) as batches:
        first = inputs([next(batches)])
        answer.with_suffix(".started").touch()
        answer.write_text(json.dumps(first + inputs(batches)))


@one_commit_in_four
def test_processes_share_a_cache_and_some_are_killed(server: RangeServer, sound: Any, tmp_path: Path) -> None:
    """Each writes its result to its own file, which a killed process cannot damage for others."""
    context = multiprocessing.get_context("spawn")
    for round_ in range(2):
        answers = [tmp_path / f"{round_}-{number}.json" for number in range(4)]
        ranks = [context.Process(target=_rank, args=(server.url, tmp_path / "cache", answer)) for answer in answers]
        for rank in ranks:
            rank.start()
        for rank, answer in zip(ranks[:2], answers, strict=False):
            if round_:
                wait_for(answer.with_suffix(".started").exists)
            else:
                wait_for(lambda: len(server.requests) > 3)
            rank.kill()
        for rank in ranks:
            rank.join(120)
            assert rank.exitcode in ((-9, 0) if rank in ranks[:2] else (0,))
        assert all(json.loads(answer.read_text()) == sound for answer in answers[2:])
    with stream(server.url, tmp_path / "cache") as batches:
        assert inputs(batches) == sound


def test_two_corpora_in_one_cache(server: RangeServer, sound: Any, tmp_path: Path) -> None:
    """The same names and sizes with other bytes, read alternately."""
    lengths = {domain: [list(reversed(shard)) for shard in shards] for domain, shards in LENGTHS.items()}
    other = build_numbered(tmp_path / "other", lengths, vocab_size=2_000_001, name="other")
    edited = files_of(other)
    with range_server() as second:
        second.files = edited
        with stream(server.url, tmp_path / "cache") as one, stream(second.url, tmp_path / "cache") as two:
            assert one.corpus != two.corpus
            found = [(a["input_ids"].tolist(), b["input_ids"].tolist()) for a, b in zip(one, two, strict=True)]
    with stream(str(other), tmp_path) as batches:
        assert found == list(zip(sound, inputs(batches), strict=True))


def test_a_corpus_replaced_during_reading(server: RangeServer, sound: Any, tmp_path: Path) -> None:
    """An error or the old tokens, never a mixture with the new corpus."""
    with stream(server.url, tmp_path, prefetch=0) as batches:
        found = inputs([next(batches)])
        new = {
            name: bytes(len(data)) if name.endswith(".bin") else data
            for name, data in server.files.items()
            if name != MANIFEST
        }
        server.files.update(new)
        with contextlib.suppress(FormatError, FetchError):
            found += inputs(batches)
        assert found == sound[: len(found)]


def test_fetch_params_apply_to_indexes_and_the_manifest(server: RangeServer, tmp_path: Path) -> None:
    server.script = deque(["503"] * 10_000)
    started = time.monotonic()
    with pytest.raises(FetchError, match=MANIFEST):
        stream(server.url, tmp_path, replace(FETCH, deadline=0.2))
    assert time.monotonic() - started < 60  # the default is twice that
