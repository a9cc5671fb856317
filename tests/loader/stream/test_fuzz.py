"""A corpus damaged in many ways, streamed completely from each kind of store: a FormatError, never a wrong token.

The streams request doc_ids, so that they read the indexes too, and all of the split, so that every byte is checked. The
error may be one of FormatError's subclasses CorruptShard and CorruptObject.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from refinery.loader import TokenStream
from refinery.loader.errors import CorruptObject, CorruptShard, FormatError
from refinery.loader.format.indexed import IDX_HEADER
from refinery.loader.format.listing import FOLDER as LISTINGS
from refinery.loader.format.manifest import MANIFEST
from refinery.loader.order.order import OrderParams
from refinery.loader.read.remote.blocks import RemoteParams
from refinery.loader.storage.fetch import FetchParams
from refinery.loader.storage.open_store import open_store
from tests.corpus_factory import build_corpus
from tests.fake_gcs import fake_gcs
from tests.loader.range_server import range_server
from tests.sampling import scaled, seed, spread

TEXTS = {
    ("train", "web"): [["one fine day", "zwei", "x" * 40], ["another day!", "drei", "y" * 40], [], ["", "z" * 300]],
    ("train", "code"): [["int main(void) { return 0; }"]],
}
SHARD = "train/web/shard-0000{}-of-00004.{}"
UNREAD = SHARD.format(2, "idx")  # of a shard without documents
# Damage here is permanent, so retries can be fast.
SOURCE = RemoteParams(
    cache_bytes=0,
    threads=2,
    stagger=0,
    fetch=FetchParams(deadline=60, first_delay=0.001, max_delay=0.002, hedge_after=0),
)
Rows = list[tuple[Any, ...]]


@dataclass
class Place:
    """A location of a corpus. write: stores bytes under a name; None removes it. cost: times slower than local."""

    location: str
    files: dict[str, bytes]
    write: Callable[[str, bytes | None], None]
    cost: int

    def rows(self, source: RemoteParams = SOURCE, **options: Any) -> Rows:
        """All of an epoch."""
        shape: dict[str, Any] = {"sequence_length": 32, "batch_size": 4, "order": OrderParams(2, 4, 2), "prefetch": 0}
        with TokenStream(self.location, epochs=1, remote=source, **shape, doc_ids=True, **options) as stream:
            return [
                row for batch in stream for row in zip(*(batch[name].tolist() for name in sorted(batch)), strict=True)
            ]

    def rejected(self, damage: dict[str, bytes | None]) -> bool:
        """Whether a stream of the damaged corpus raises FormatError or a subclass. The damage is undone."""
        for name, data in damage.items():
            self.write(name, data)
        try:
            self.rows()
        except FormatError as error:
            assert type(error) in (FormatError, CorruptShard, CorruptObject)
            assert self.location in str(error)
            return True
        finally:
            for name in damage:
                self.write(name, self.files[name])
        return False


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_corpus(tmp_path_factory.mktemp("corpus"), TEXTS)


@pytest.fixture(scope="module", params=["local", "http", "gcs"])
def place(request: pytest.FixtureRequest, corpus: Path) -> Iterator[Place]:
    store = open_store(corpus)
    data = (name for name in store.list("train") if name.endswith((".bin", ".idx")))
    names = [MANIFEST, *store.list(f"{LISTINGS}/train"), *data]
    files = {name: store.read(name) for name in names}
    if request.param == "local":

        def write(name: str, data: bytes | None) -> None:
            (corpus / name).unlink(missing_ok=True)
            if data is not None:
                (corpus / name).write_bytes(data)

        yield Place(str(corpus), files, write, 1)
    elif request.param == "http":
        with range_server() as server:
            server.files = dict(files)
            served: dict[str, Any] = server.files
            yield Place(server.url, files, lambda n, d: served.pop(n) if d is None else served.update({n: d}), 10)
    else:
        with fake_gcs("bucket") as gcs, pytest.MonkeyPatch.context() as patch:
            gcs.use(patch)

            def put(name: str, data: bytes | None) -> None:
                if data is None:
                    del gcs.objects["bucket", f"c/{name}"]
                else:
                    gcs.put("bucket", f"c/{name}", data)

            for name, data in files.items():
                put(name, data)
            yield Place("gs://bucket/c", files, put, 25)


def flip(data: bytes, byte: int, bits: int) -> bytes:
    return data[:byte] + bytes([data[byte] ^ bits]) + data[byte + 1 :]


@pytest.fixture(scope="module")
def undamaged(corpus: Path) -> Rows:
    """The rows of the undamaged corpus."""
    return Place(str(corpus), {}, lambda name, data: None, 1).rows()


def test_undamaged(place: Place, undamaged: Rows) -> None:
    assert len(undamaged) > 10
    assert place.rows() == undamaged


def test_every_byte_of_an_index_header(place: Place) -> None:
    name = SHARD.format(0, "idx")
    for byte in range(0, IDX_HEADER.size, 1 if place.cost <= 10 else 3):
        for bits in (255, 1 << byte % 8) if place.cost == 1 else (1 << byte % 8,):
            assert place.rejected({name: flip(place.files[name], byte, bits)}), (byte, bits)


def test_random_bits(place: Place) -> None:
    """Single bits of all files; fewer of them in remote stores."""
    rng = random.Random(f"{seed()} {place.cost}")
    sizes = {name: len(data) for name, data in place.files.items() if data and name != UNREAD}
    for _ in range(scaled(1000, 100) // place.cost):
        name = rng.choices(list(sizes), list(sizes.values()))[0] if rng.random() < 0.3 else rng.choice(list(sizes))
        byte, bit = rng.randrange(sizes[name]), 1 << rng.randrange(8)
        assert place.rejected({name: flip(place.files[name], byte, bit)}), (name, byte, bit)


@pytest.mark.parametrize("suffix", ["bin", "idx"])
def test_other_lengths(place: Place, suffix: str) -> None:
    name = SHARD.format(0, suffix)
    data = place.files[name]
    some = [0, 1, 2, 8, IDX_HEADER.size, len(data) // 2, len(data) - 8, len(data) - 2, len(data) - 1]
    many = sorted({*some, *spread(f"lengths of an .{suffix}", range(len(data)), 40)})
    for length in many if place.cost == 1 else some[:: 1 if place.cost <= 10 else 2]:
        assert place.rejected({name: data[:length]}), length
    for more in (1, 2, 8, 4096) if place.cost <= 10 else (2,):
        assert place.rejected({name: data + bytes(more)}), more
        assert place.rejected({name: data + data[:more]}), more


def test_other_manifests(place: Place) -> None:
    data = place.files[MANIFEST]
    for other in (b"", b"{}", data[:-1], data + b"\n", data[: len(data) // 2], b"\xff\xfe" + data, b"[" * 100_000):
        assert place.rejected({MANIFEST: other})


@pytest.mark.parametrize("name", [SHARD.format(0, "bin"), SHARD.format(0, "idx"), UNREAD, MANIFEST])
def test_missing(place: Place, name: str) -> None:
    # Local files are all checked when opening; remote files only when they are read.
    assert place.rejected({name: None}) or (name == UNREAD and place.cost > 1)


@pytest.mark.parametrize(
    "one, other", [("0.bin", "1.bin"), ("0.idx", "1.idx"), ("0.bin", "0.idx"), ("2.bin", "3.bin"), ("0.idx", "3.idx")]
)
def test_swapped(place: Place, one: str, other: str) -> None:
    """Shards 0 and 1 have documents of the same lengths; their indexes are the same bytes, and may be swapped."""
    names = [SHARD.format(*which.split(".")) for which in (one, other)]
    same = place.files[names[0]] == place.files[names[1]]
    assert same == (one == "0.idx" and other == "1.idx")
    assert place.rejected({names[0]: place.files[names[1]], names[1]: place.files[names[0]]}) != same


def test_damage_with_a_warm_cache(place: Place, undamaged: Rows, tmp_path: Path) -> None:
    """Blocks that were verified before are served from the cache; blocks that are read again are rejected."""
    if place.cost == 1:
        pytest.skip("nothing is cached of a local corpus")
    name = SHARD.format(0, "bin")
    warm = RemoteParams(cache=tmp_path / "warm", threads=2, stagger=0, fetch=SOURCE.fetch)
    assert place.rows(warm) == undamaged
    place.write(name, flip(place.files[name], 9, 1))
    try:
        assert place.rows(warm) == undamaged
        with pytest.raises(CorruptShard, match=r"shard-00000-of-00004\.bin"):
            place.rows(RemoteParams(cache=tmp_path / "cold", threads=2, stagger=0, fetch=SOURCE.fetch))
    finally:
        place.write(name, place.files[name])


def test_another_corpus_under_the_same_prefix(place: Place, undamaged: Rows, tmp_path: Path) -> None:
    """Republished with the same names and sizes: its own tokens, none of the old ones from the cache."""
    texts = {key: [[text.swapcase() for text in shard] for shard in shards] for key, shards in TEXTS.items()}
    other = open_store(build_corpus(tmp_path / "other", texts))
    new = {name: other.read(name) for name in place.files}
    sizes = [{name: len(data) for name, data in files.items() if LISTINGS not in name} for files in (new, place.files)]
    assert sizes[0] == sizes[1]
    params = RemoteParams(cache=tmp_path / "cache", threads=2, stagger=0, fetch=SOURCE.fetch)
    assert place.rows(params) == undamaged
    try:
        for name, data in new.items():
            place.write(name, data)
        expected = Place(other.root, {}, place.write, 1).rows()
        assert place.rows(params) == expected != undamaged
        place.write(MANIFEST, place.files[MANIFEST])  # the old one again, with the new files
        with pytest.raises(FormatError):
            place.rows()
    finally:
        for name, data in place.files.items():
            place.write(name, data)
    assert place.rows(params) == undamaged
