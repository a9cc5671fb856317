import subprocess
import sys
from pathlib import Path

import pytest

from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import IndexedWriter
from refinery.loader.read.corpus import Corpus
from refinery.loader.storage.open_store import open_store
from tests.corpus_factory import TEXTS, build_corpus, edit_manifest, encode
from tests.fake_gcs import fake_gcs


def texts(corpus: Corpus, split: str, domain: str | None = None) -> list[list[list[int]]]:
    return [[shard[i].tolist() for i in range(len(shard))] for shard in corpus.shards(split, domain)]


def expected(split: str, domain: str) -> list[list[list[int]]]:
    return [[encode(text).tolist() for text in shard] for shard in TEXTS[split, domain]]


def check(corpus: Corpus) -> None:
    assert texts(corpus, "train", "web") == expected("train", "web")
    assert texts(corpus, "train") == expected("train", "web") + expected("train", "code")
    assert texts(corpus, "validation") == expected("validation", "web")
    shard = next(corpus.shards())
    assert shard.provenance()["token_count"].to_pylist() == [len(shard[i]) for i in range(3)]
    assert not shard[1].flags.writeable
    for i in (3, -4):
        with pytest.raises(IndexError):
            shard[i]


def test_local(tmp_path: Path) -> None:
    check(Corpus(str(build_corpus(tmp_path))))


def test_gcs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build_corpus(tmp_path)
    local = open_store(tmp_path)
    with fake_gcs("bucket") as server:
        server.use(monkeypatch)
        for name in local.list():
            server.put("bucket", f"corpus/{name}", local.read(name))
        corpus = Corpus("gs://bucket/corpus")
        check(corpus)
        name = "corpus/train/web/shard-00000-of-00003.bin"
        server.put("bucket", name, server.objects["bucket", name].data[:-2])
        with pytest.raises(FormatError, match=r"gs://bucket/.*shard-00000-of-00003\.bin: .* bytes found"):
            next(corpus.shards())
        corpus.store.close()


def test_index_that_disagrees_with_the_manifest(tmp_path: Path) -> None:
    build_corpus(tmp_path)
    with IndexedWriter(tmp_path / "train/code/shard-00000-of-00001.bin", "uint16") as writer:
        writer.add(encode("another"))
    edit_manifest(tmp_path)
    with pytest.raises(FormatError, match="idx: 1 documents and 9 tokens found, 1 and 30 expected"):
        list(Corpus(str(tmp_path)).shards("train", "code"))


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (b"", r"idx: size 0 found, 62 expected; crc32c 00000000 found, \w{8} expected"),
        (b"x", r"idx: crc32c \w{8} found, \w{8} expected"),
        (None, r"idx: .* 62 bytes.* expected"),
    ],
)
def test_an_index_that_is_not_the_published_one(tmp_path: Path, damage: bytes | None, said: str) -> None:
    """Its size and checksum are compared, so that another valid index is rejected too."""
    build_corpus(tmp_path)
    path = tmp_path / "train/code/shard-00000-of-00001.idx"
    if damage is None:
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[: -len(damage) or None] + damage if damage else b"")
    with pytest.raises(FormatError, match=said):
        list(Corpus(str(tmp_path)).shards("train", "code"))


def test_reader_needs_neither_beam_nor_torch(tmp_path: Path) -> None:
    build_corpus(tmp_path)
    script = (
        "import sys; from refinery.loader.read.corpus import Corpus;"
        "[s[0] for s in Corpus(sys.argv[1]).shards() if len(s)];"
        "assert not {'apache_beam', 'torch', 'google.cloud.storage', 'orjson'} & set(sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script, tmp_path]).returncode == 0
