"""Packed rows behind a network: the batches of a local folder, bit for bit, whatever the network does, or an error."""

import random
import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from refinery.loader import DecodedParams, PackedStream
from refinery.loader.errors import CorruptShard, FormatError
from refinery.loader.format.block_checksums import CHECKSUM_BLOCK
from refinery.loader.format.manifest import read_manifest
from refinery.loader.order.order import OrderParams
from refinery.loader.read.remote.blocks import RemoteParams
from refinery.loader.storage.fetch import FetchError, FetchParams
from refinery.loader.storage.open_store import open_store
from tests.corpus_factory import build_corpus, edit_manifest
from tests.fake_gcs import FakeGcs, fake_gcs
from tests.loader.range_server import FAULTS, RangeServer, range_server
from tests.loader.remote_split import FETCH, SHORT_TIMEOUT, wait_for
from tests.packed_factory import add_packed_rows
from tests.sampling import FILE_ON_ONE_COMMIT_IN_FOUR, sampled

pytestmark = FILE_ON_ONE_COMMIT_IN_FOUR

L = 512  # a row group of 1,024 rows has half a million places
WEB = "packed/train/web/rows-00000-of-00002-00000.parquet"
ARRAYS = {"loss_mask": True, "position_ids": True, "doc_ids": True, "cu_seqlens": True}


def texts() -> dict[tuple[str, str], list[list[str]]]:
    """Letters that do not compress: the first file has two row groups and more than two MiBs."""
    letters = random.Random(3)

    def text(size: int) -> str:
        return letters.randbytes(size // 2).hex()

    web = [[text(size) for size in (1_300_000, 3, 400, 90, 500)], [text(9_000), text(70)]]
    return {("train", "web"): web, ("train", "code"): [[text(30_000)]], ("validation", "web"): [[text(600)]]}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return add_packed_rows(build_corpus(tmp_path_factory.mktemp("packed") / "corpus", texts()), L)


def packed(location: str, folder: Path, fetch: FetchParams = FETCH, **options: Any) -> PackedStream:
    remote = RemoteParams(cache=folder, threads=2, stagger=0, fetch=fetch)
    shape: dict[str, Any] = {"sequence_length": L, "batch_size": 40, "epochs": 1, "order": OrderParams(None, 2, 2)}
    return PackedStream(location, **(shape | {"remote": remote} | options))


def plain(batches: Any) -> list[dict[str, Any]]:
    return [{name: np.asarray(value).tolist() for name, value in batch.items()} for batch in batches]


def digests(batches: Any) -> list[int]:
    return [hash(batch["input_ids"].tobytes() + batch["labels"].tobytes()) for batch in batches]


@pytest.fixture(scope="module")
def sound(corpus: Path) -> list[int]:
    with packed(str(corpus), corpus) as batches:
        return digests(batches)


@pytest.fixture
def server(corpus: Path) -> Iterator[RangeServer]:
    store = open_store(corpus)
    with range_server() as server:
        server.files = {name: store.read(name) for name in store.list()}
        yield server


@pytest.fixture
def gcs(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGcs]:
    with fake_gcs("bucket") as server:
        server.use(monkeypatch)
        server.put_folder("bucket", "c/", corpus)
        yield server


def requested(server: RangeServer) -> int:
    return sum(stop - start for name, start, stop in server.requests if name.startswith("packed/"))


def test_the_same_batches(server: RangeServer, corpus: Path, tmp_path: Path) -> None:
    """Also with all arrays; each byte is fetched once, and not at all by the next process of the host."""
    assert len(server.files[WEB]) > 2 << 20
    every: list[dict[str, Any]] = [{}, ARRAYS]
    for options in every:
        with packed(str(corpus), tmp_path, **options) as local, packed(server.url, tmp_path, **options) as remote:
            assert plain(remote) == plain(local)
    train = [name for name in server.files if name.startswith("packed/train/")]
    assert requested(server) == sum(len(server.files[name]) for name in train)


def test_buckets(gcs: FakeGcs, sound: Any, tmp_path: Path) -> None:
    gcs.script = deque(["503", "", "reset", "", "", "short", "", "wrong"])
    with packed("gs://bucket/c", tmp_path) as batches:
        assert digests(batches) == sound


def test_resume(server: RangeServer, sound: Any, tmp_path: Path) -> None:
    """At several steps, with other ranks, and between a folder and the network."""
    with packed(server.url, tmp_path) as batches:
        for done in range(0, len(sound), 17):
            with packed(server.url, tmp_path) as again:
                again.load_state_dict(batches.state_dict())
                assert digests(again) == sound[done:]
            for _ in range(17):
                next(batches, None)
    with packed(server.url, tmp_path) as one, packed(server.url, tmp_path) as whole:
        next(one)
        ranks = [packed(server.url, tmp_path, batch_size=20, rank=rank, world_size=2) for rank in range(2)]
        for rank in ranks:
            rank.load_state_dict(one.state_dict())
        next(whole)
        rows = [row.tobytes() for rank in ranks for row in next(rank)["input_ids"]]
        assert sorted(rows) == sorted(row.tobytes() for row in next(whole)["input_ids"])
        for rank in ranks:
            rank.close()


@pytest.mark.parametrize("fault", sampled("faults of packed rows", sorted({*FAULTS} - {"trickle"}), 7))
def test_faults(server: RangeServer, sound: Any, tmp_path: Path, fault: str) -> None:
    server.script = deque([fault, "", fault] if fault == "wrong" else [fault, "", "", fault, "", "", fault])
    with packed(server.url, tmp_path, SHORT_TIMEOUT) as batches:
        assert digests(batches) == sound
    assert len(server.script) < 4  # how many requests there are depends on what reading ahead has joined


@pytest.mark.parametrize("fault", ["503", "reset", "stall"])
def test_permanent_faults_are_named(server: RangeServer, sound: Any, tmp_path: Path, fault: str) -> None:
    """And when they are over, the stream continues where it was."""
    with packed(server.url, tmp_path, replace(FETCH, deadline=0.3, read_timeout=0.1)) as batches:
        server.scripts = {WEB: deque([fault] * 10_000)}
        with pytest.raises(FetchError, match=f"{server.url}/{WEB}.*attempt"):
            for _ in range(len(sound)):
                next(batches)
        server.scripts = {}
        rest = digests(batches)
        assert rest == sound[len(sound) - len(rest) :]


def test_wrong_objects(server: RangeServer, tmp_path: Path) -> None:
    """Missing, cut, damaged at the end (before the first batch) and in the middle (before any row of it)."""
    good = server.files[WEB]
    for data, message in (
        (None, "missing"),
        (good[:-1], f"{len(good) - 1} bytes found"),
        (good[:-9] + b"x" + good[-8:], r"block \d: crc32c"),
    ):
        server.files = {name: content for name, content in server.files.items() if name != WEB}
        if data is not None:
            server.files[WEB] = data
        with pytest.raises(FormatError, match=message):
            packed(server.url, tmp_path / "a")
    server.files[WEB] = good[:1000] + bytes([good[1000] ^ 1]) + good[1001:]
    with packed(server.url, tmp_path / "b") as batches, pytest.raises(CorruptShard, match="block 0: crc32c"):
        list(batches)


def test_a_damaged_cache(server: RangeServer, sound: Any, tmp_path: Path) -> None:
    """Noticed, and fetched again."""
    with packed(server.url, tmp_path) as batches:
        assert digests(batches) == sound
    for path in (tmp_path / "blocks").rglob("*"):
        if path.is_file():
            data = bytearray(path.read_bytes())
            data[len(data) // 3] ^= 1
            path.write_bytes(data)
    with packed(server.url, tmp_path) as batches:
        assert digests(batches) == sound
        assert batches._counters.repairs > 0


def test_decoded_on_disk(server: RangeServer, sound: Any, tmp_path: Path) -> None:
    """What is decoded there is not fetched again, nor announced: footers alone."""
    decoded = DecodedParams(tmp_path / "decoded", memory_bytes=0)
    with packed(server.url, tmp_path / "one", decoded=decoded) as batches:
        assert digests(batches) == sound
    before = requested(server)
    with packed(server.url, tmp_path / "two", decoded=decoded) as batches:
        assert digests(batches) == sound
    assert requested(server) - before < len(server.files[WEB])


@pytest.mark.parametrize("when", ["footers", "rows"])
def test_closing_does_not_wait_for_a_server_that_stalls(server: RangeServer, tmp_path: Path, when: str) -> None:
    """`close` from another thread; an interrupted constructor ends its reads itself."""
    server.stall = 600
    slow = replace(FETCH, read_timeout=300, deadline=900, first_delay=600, max_delay=600)
    if when == "footers":
        server.scripts = {
            WEB: deque(["stall"] * 1000),
            "packed/train/code/rows-00000-of-00001-00000.parquet": deque(["404"]),
        }
        with pytest.raises((FormatError, FetchError)):
            packed(server.url, tmp_path, slow)  # the other file's error ends the read that stalls
        return
    batches = packed(server.url, tmp_path, slow)
    server.scripts = {WEB: deque(["stall"] * 1000)}
    failed: list[BaseException] = []

    def take() -> None:
        try:
            for _ in batches:
                pass
        except Exception as error:  # noqa: BLE001 - checked below
            failed.append(error)

    asked = len(server.requests)
    thread = threading.Thread(target=take)
    thread.start()
    wait_for(lambda: any(name == WEB for name, _, _ in server.requests[asked:]))
    batches.close()
    thread.join()
    assert len(failed) == 1 and isinstance(failed[0], (FetchError, RuntimeError))


def test_checksums_of_blocks_are_needed(corpus: Path, tmp_path: Path) -> None:
    """A manifest without them is no corpus."""
    own = add_packed_rows(build_corpus(tmp_path / "corpus"), 24)

    def without(payload: dict[str, Any]) -> None:
        for entry in payload["shards"]:
            for file in entry.get("packed", ()):
                del file["block_crc32c"]

    edit_manifest(own, without)
    with pytest.raises(FormatError, match="block_crc32c is None, the CRC-32C of each MiB expected"):
        read_manifest(open_store(own)).load()


def test_a_cache_that_is_too_small(
    server: RangeServer, corpus: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Memory takes its place, or the stream is refused before anything is fetched again and again."""
    with packed(str(corpus), tmp_path) as local:
        expected = digests(local)
    small = RemoteParams(cache=tmp_path, cache_bytes=CHECKSUM_BLOCK, threads=2, stagger=0, fetch=FETCH)
    with packed(server.url, tmp_path, remote=small) as batches:
        assert digests(batches) == expected
    assert "are read from at a time: they are kept in memory" in caplog.text
    with pytest.raises(ValueError, match="blocks would be fetched again and again"):
        packed(server.url, tmp_path, remote=replace(small, memory_bytes=CHECKSUM_BLOCK))
