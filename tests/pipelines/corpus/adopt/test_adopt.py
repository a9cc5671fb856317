"""`refinery adopt`: files of Megatron's own tools become a corpus that the loader streams; wrong files never do."""

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.loader import Corpus, RemoteParams, TokenStream
from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import MANIFEST, read_manifest
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.cli.command_line import execute
from refinery.pipelines.corpus.adopt import adopt as module
from refinery.pipelines.corpus.adopt.adopt import AdoptOptions, _chunks, adopt
from refinery.pipelines.corpus.adopt.megatron_index import read_megatron_index
from refinery.pipelines.corpus.adopt.verify_adopted import verify_adopted
from refinery.pipelines.corpus.checks.kinds import ADOPTED, CORPUS, kind_of
from tests.corpus_factory import BOS, EOS, VOCABULARY, build_corpus, replace_manifest, tokenizer_json
from tests.fake_gcs import fake_gcs
from tests.loader.range_server import range_server
from tests.loader.remote_split import FETCH
from tests.pipelines.corpus.adopt.megatron_files import write_pair
from tests.plain_manifest import manifest_of

DOCUMENTS = [[[BOS, 5, 6, EOS]], [[BOS, EOS]], [[BOS, *range(200), EOS]]]
HELD_OUT = [[[BOS, 7, EOS]]]


@pytest.fixture
def tokenizer(tmp_path: Path) -> Path:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(tokenizer_json())
    return path


def options(tokenizer: Path, *train: Any, **more: Any) -> AdoptOptions:
    output = more.pop("output", tokenizer.parent / "data")
    return AdoptOptions([str(word) for word in train], str(tokenizer), str(output), **more)


def adopted(tokenizer: Path, *train: Any, **more: Any) -> list[str]:
    """What the command says."""
    said: list[str] = []
    adopt(options(tokenizer, *train, **more), said.append)
    return said


def tokens_of(prefix: Any, split: str = "train") -> list[int]:
    shards = Corpus(str(prefix)).shards(split)
    return [int(token) for shard in shards for i in range(len(shard)) for token in shard[i]]


def flat(documents: list[list[list[int]]]) -> list[int]:
    return [token for document in documents for sequence in document for token in sequence]


@pytest.mark.parametrize("dtype", ["uint16", "int32", "int64"])
def test_a_corpus(tmp_path: Path, tokenizer: Path, dtype: str) -> None:
    """Streamed as any other; nothing is copied; verify is content."""
    web = write_pair(tmp_path / "data/web_text_document", DOCUMENTS, dtype)
    write_pair(tmp_path / "data/held", HELD_OUT, dtype)
    before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "data").iterdir()}
    adopted(tokenizer, f"web={web}", validation=(f"web={tmp_path / 'data/held.bin'}",))
    assert {path.name for path in (tmp_path / "data").iterdir()} == {*before, MANIFEST, "manifests", "tokenizer"}
    assert (tokens_of(tmp_path / "data"), tokens_of(tmp_path / "data", "validation")) == (
        flat(DOCUMENTS),
        flat(HELD_OUT),
    )
    manifest = read_manifest(open_store(tmp_path / "data"))
    assert (manifest.dtype, manifest.totals["documents"], manifest.tokenizer.bos_id) == (dtype, 4, BOS)
    found = []
    with TokenStream(str(tmp_path / "data"), sequence_length=8, batch_size=1, epochs=1, prefetch=0) as stream:
        for batch in stream:
            found += batch["input_ids"][batch["input_ids"] != EOS].tolist()
    assert sorted(found) == sorted(token for token in flat(DOCUMENTS) if token != EOS)
    assert kind_of(str(tmp_path / "data")) == ADOPTED
    report = verify_adopted(str(tmp_path / "data"))
    assert (report.failures, report.documents, report.tokens) == ([], 4, manifest.totals["tokens"])


def test_int64_byte_for_byte(tmp_path: Path, tokenizer: Path) -> None:
    """An index and tokens of code 5 as Megatron's writer lays them out, spelled out by hand; delivered exactly."""
    index = (
        "4d4d494449445800 00" "0100000000000000" "05" "0200000000000000" "0300000000000000"  # head: 2 sequences
        "03000000 02000000" "0000000000000000 1800000000000000"  # lengths; pointers: 3 tokens are 24 bytes
        "0000000000000000 0100000000000000 0200000000000000"
    )  # fmt: skip
    tokens = "0001000000000000 4100000000000000 01010000000000000001000000000000 0101000000000000"
    (tmp_path / "data").mkdir()
    (tmp_path / "data/web.idx").write_bytes(bytes.fromhex(index))
    (tmp_path / "data/web.bin").write_bytes(bytes.fromhex(tokens))
    adopted(tokenizer, tmp_path / "data/web")
    assert tokens_of(tmp_path / "data") == [BOS, 65, EOS, BOS, EOS]
    assert verify_adopted(str(tmp_path / "data")).failures == []
    store = open_store(tmp_path / "data")
    with range_server() as server:
        server.files = {name: store.read(name) for name in store.list()}
        remote = RemoteParams(cache=tmp_path / "cache", fetch=FETCH)
        for place, how in ((str(tmp_path / "data"), None), (server.url, remote)):
            options = {"sequence_length": 2, "batch_size": 2, "epochs": 1, "remote": how}
            with TokenStream(place, **options, doc_ids=True) as stream:
                found = [row for batch in stream for row in batch["input_ids"].tolist()]
            assert sorted(found) == sorted([[BOS, 65], [EOS, BOS], [EOS, EOS], [EOS, EOS]])


@pytest.mark.parametrize("id_", [-1, 258, 2**16 + 65, 2**32 + 65, 2**63 - 1, -(2**63)])
def test_int64_ids_that_no_token_has(tmp_path: Path, tokenizer: Path, id_: int) -> None:
    """Also those that would be tokens if they were cut to fewer bits. Nothing is written."""
    pair = write_pair(tmp_path / "data/web", [[[BOS, 65, EOS]], [[BOS, id_, EOS]]], "int64")
    with pytest.raises(FormatError, match=rf"web.bin: id {id_} found at token 4, in document 1; 0 to 257"):
        adopted(tokenizer, pair)
    assert not (tmp_path / "data" / MANIFEST).exists()


def test_chunks_are_whole_tokens() -> None:
    """A remote stream may return less than it was asked for."""
    data = bytes(range(48))
    pieces = list(_chunks(Short(data, 13)))
    assert b"".join(pieces) == data and all(len(piece) % 8 == 0 for piece in pieces[:-1])


class Short(io.BytesIO):
    """Returns `most` bytes at a time."""

    def __init__(self, data: bytes, most: int) -> None:
        super().__init__(data)
        self.most = most

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(self.most)


def test_a_folder(tmp_path: Path, tokenizer: Path) -> None:
    """All pairs below it, shards of one domain, in the order of their names."""
    write_pair(tmp_path / "data/b", [[[BOS, 1, EOS]]])
    write_pair(tmp_path / "data/sub/a", [[[BOS, 2, EOS]]])
    adopted(tokenizer, tmp_path / "data")
    shards = read_manifest(open_store(tmp_path / "data")).shards
    assert [(s.domain, s.index, s.count, s.bin.path) for s in shards] == [
        ("corpus", 0, 2, "b.bin"),
        ("corpus", 1, 2, "sub/a.bin"),
    ]


def test_sequences_are_joined(tmp_path: Path, tokenizer: Path) -> None:
    """A document of several sequences is one document: another .idx beside the same .bin."""
    documents = [[[BOS, 5], [6, EOS]], [], [[BOS, EOS]], [[BOS], [7], [8, EOS]]]
    pair = write_pair(tmp_path / "data/split", documents)
    old = pair.with_suffix(".idx").read_bytes()
    said = adopted(tokenizer, pair)
    assert "documents of 6 sequences" in "".join(said)
    (shard,) = Corpus(str(tmp_path / "data")).shards()
    assert [shard[i].tolist() for i in range(len(shard))] == [flat([sequences]) for sequences in documents]
    assert (shard.entry.bin.path, shard.entry.idx.path) == ("split.bin", "train/corpus/shard-00000-of-00001.idx")
    assert pair.with_suffix(".idx").read_bytes() == old
    assert verify_adopted(str(tmp_path / "data")).failures == []


def test_copies(tmp_path: Path, tokenizer: Path) -> None:
    """Files elsewhere are refused, or copied when that is asked for."""
    pair = write_pair(tmp_path / "old/web", DOCUMENTS)
    with pytest.raises(ValueError, match=r"web\.bin is not below --output .*, or pass --copy"):
        adopted(tokenizer, pair)
    assert not (tmp_path / "data").exists()
    adopted(tokenizer, pair, copy=True, name="old-tokens")
    assert tokens_of(tmp_path / "data") == flat(DOCUMENTS)
    manifest = read_manifest(open_store(tmp_path / "data"))
    assert (manifest.name, manifest.shards[0].bin.path) == ("old-tokens", "train/corpus/shard-00000-of-00001.bin")
    assert verify_adopted(str(tmp_path / "data")).failures == []


def test_buckets(tmp_path: Path, tokenizer: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In place in gs://, from there to a folder, and from a folder to there."""
    pair = write_pair(tmp_path / "old/web", DOCUMENTS)
    with fake_gcs("tokens", "corpus") as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        server.put_folder("tokens", "megatron/", tmp_path / "old")
        adopted(tokenizer, "gs://tokens/megatron/web", output="gs://tokens/megatron")
        assert verify_adopted("gs://tokens/megatron").failures == []
        assert tokens_of("gs://tokens/megatron") == flat(DOCUMENTS)
        adopted(tokenizer, "gs://tokens/megatron", output=tmp_path / "near", copy=True)
        adopted(tokenizer, pair, output="gs://corpus/far", copy=True)
        for place in (tmp_path / "near", "gs://corpus/far"):
            assert tokens_of(place) == flat(DOCUMENTS)


def no_bos(documents: list[list[list[int]]]) -> list[list[list[int]]]:
    return [[sequence[1:] if i == 0 else sequence for i, sequence in enumerate(d)] for d in documents]


def test_declared_absent(tmp_path: Path, tokenizer: Path) -> None:
    """As Megatron's preprocess_data with --append-eod: no BOS."""
    pair = write_pair(tmp_path / "data/web", no_bos(DOCUMENTS))
    with pytest.raises(FormatError, match=r"0 of 3 documents begin with BOS 256; .* document 0 of .*Give --no-bos"):
        adopted(tokenizer, pair)
    adopted(tokenizer, pair, bos=None)
    assert read_manifest(open_store(tmp_path / "data")).tokenizer.bos_id is None
    assert verify_adopted(str(tmp_path / "data")).failures == []


def test_elsewhere(tmp_path: Path, tokenizer: Path) -> None:
    """EOS inside documents is told, not refused."""
    pair = write_pair(tmp_path / "data/web", [[[BOS, 1, EOS, BOS, 2, EOS]]])
    said = adopted(tokenizer, pair)
    assert [line for line in said if "times elsewhere" in line] == [
        "bos: 1 times elsewhere in documents, too",
        "eos: 1 times elsewhere in documents, too",
    ]


WRONG: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no BOS in one": (
        lambda d: write_pair(d / "web", [*DOCUMENTS, [[1, EOS]]]),
        "3 of 4 documents begin with BOS 256; the first that does not: document 3",
    ),
    "no EOS in one": (
        lambda d: write_pair(d / "web", [[[BOS, 1]], *DOCUMENTS]),
        "3 of 4 documents end with EOS 257; the first that does not: document 0",
    ),
    "an id too large": (
        lambda d: write_pair(d / "web", [*DOCUMENTS, [[BOS, VOCABULARY, EOS]]]),
        "web.bin: id 258 found at token 209, in document 3; 0 to 257, the vocabulary",
    ),
    "a negative id": (lambda d: write_pair(d / "web", [[[BOS, -1, EOS]]], "int32"), "id -1 found at token 1"),
    "a type": (lambda d: write_pair(d / "web", DOCUMENTS, "float32"), r"dtype code 7 \(float32\) found"),
    "a version": (lambda d: write_pair(d / "web", DOCUMENTS, version=2), "version 2 found, 1 expected"),
    "no tokens": (lambda d: write_pair(d / "web", []), "there are no tokens"),
    "two types": (
        lambda d: (write_pair(d / "web", DOCUMENTS), write_pair(d / "x", DOCUMENTS, "int32")),
        r"int32 in .*x\.idx and uint16 in .*web\.idx found",
    ),
}


def change(suffix: str, edit: Callable[[bytes], bytes]) -> Callable[[Path], Any]:
    def apply(folder: Path) -> None:
        path = write_pair(folder / "web", DOCUMENTS).with_suffix(suffix)
        path.write_bytes(edit(path.read_bytes()))

    return apply


WRONG |= {
    "a short .bin": (change(".bin", lambda b: b[:-2]), r"web\.bin: 414 bytes found, 416 expected from its \.idx"),
    "a long .bin": (change(".bin", lambda b: b + b"x"), "417 bytes found, 416 expected"),
    "half an .idx": (change(".idx", lambda b: b[:50]), "50 bytes found, 102 expected"),
    "an empty .idx": (change(".idx", lambda b: b""), "0 bytes found, at least 34 expected"),
    "no .idx": (change(".idx", lambda b: b"x" * 40), "starts with b'xxxx"),
    "the older format": (change(".idx", lambda b: b"TNTIDX\0\0" + b), "an older format"),
    "modes": (change(".idx", lambda b: b + b"\0\0\0"), "modes of sequences"),
    "a length below 0": (
        change(".idx", lambda b: b[:34] + b"\xff\xff\xff\xff" + b[38:]), "sequence 0 has length -1"
    ),
    "a pointer": (change(".idx", lambda b: b[:54] + b"\x01" + b[55:]), r"pointer of sequence 1 is \d+"),
    "boundaries back": (
        change(".idx", lambda b: b[:-16] + b"\x00" * 8 + b[-8:]), "document index entry 2 is 0, after 1"
    ),
    "boundaries short": (
        change(".idx", lambda b: b[:-8] + b"\x02" + b"\x00" * 7), "document index of 0 to 2 found, 0 to 3"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_files(tmp_path: Path, tokenizer: Path, name: str) -> None:
    """A clear error, and no manifest, nor anything else."""
    make, message = WRONG[name]
    make(tmp_path / "data")
    before = sorted((tmp_path / "data").rglob("*"))
    with pytest.raises(FormatError, match=message):
        adopted(tokenizer, tmp_path / "data")
    assert sorted((tmp_path / "data").rglob("*")) == before


@pytest.mark.parametrize(
    ("words", "more", "message"),
    [
        (["data/none"], {}, "no .bin and .idx there"),
        (["data/web.bin", "data/web.idx"], {}, "given twice"),
        (["https://host/web"], {}, "a web server given"),
        (["data/web"], {"bos": "<nothing>"}, "which is not a token"),
        (["data/alone.bin"], {}, r"alone\.idx: missing"),
        (["data/other.bin"], {}, "there is no such file"),
        (["data/web"], {"bos": None}, "--no-bos: given, but all 3 documents begin with BOS 256"),
        (["data/web"], {"output": "https://host/x"}, "a local folder, gs"),
    ],
)
def test_arguments(
    tmp_path: Path, tokenizer: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], more: Any, message: str
) -> None:
    write_pair(tmp_path / "data/web", DOCUMENTS)
    (tmp_path / "data/alone.bin").touch()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=message):
        adopted(tokenizer, *words, **more)


def test_other_commands(tmp_path: Path, tokenizer: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What needs provenance refuses in a line; what does not, works."""
    prefix = str(tmp_path / "data")
    write_pair(tmp_path / "data/web", DOCUMENTS)
    assert execute(["adopt", prefix, "--tokenizer", str(tokenizer), "--output", prefix]) == 0
    assert execute(["adopt", prefix, "--tokenizer", str(tokenizer), "--output", prefix]) == 2
    assert "holds manifest.json" in capsys.readouterr().err
    assert execute(["verify", prefix]) == 0
    assert "all checks passed" in capsys.readouterr().out
    assert execute(["inspect", prefix]) == 0
    assert "where documents come from is not known" in capsys.readouterr().out
    assert execute(["inspect", prefix, "--json"]) == 0
    assert execute(["trace", prefix, "--url", "https://example.org"]) == 2
    assert "was adopted from files without provenance" in capsys.readouterr().err
    for format_ in ("jsonl", "torch"):
        assert execute(["export", prefix, "--format", format_, "--output", prefix + "-x", "--workers", "0"]) == 2
        assert "an adopted corpus: where its documents come from" in capsys.readouterr().err
    assert not (tmp_path / "data-x").exists()
    assert execute(["blend", prefix]) == 0
    assert capsys.readouterr().out.split()[1].endswith("data/web")
    assert execute(["shards", prefix, "--node", "a"]) == 0
    with pytest.raises(FormatError, match="no provenance"):
        next(Corpus(prefix).shards()).provenance()


def test_verify_finds(tmp_path: Path, tokenizer: Path) -> None:
    pair = write_pair(tmp_path / "data/web", DOCUMENTS)
    adopted(tokenizer, pair)
    good = pair.with_suffix(".bin").read_bytes()
    pair.with_suffix(".bin").write_bytes(b"\x01" + good[1:])
    assert any("sha256" in line for line in verify_adopted(str(tmp_path / "data")).failures)
    pair.with_suffix(".bin").write_bytes(good)
    payload = manifest_of(tmp_path / "data")
    payload["totals"]["tokens"] += 1
    replace_manifest(tmp_path / "data", payload)
    assert verify_adopted(str(tmp_path / "data")).failures == [
        "manifest.json: totals.tokens is 209, 208 expected from the shards"
    ]
    (tmp_path / "data" / MANIFEST).write_bytes(b"{}")
    assert kind_of(str(tmp_path / "data")) == CORPUS
    assert kind_of(str(build_corpus(tmp_path / "own"))) == CORPUS


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(module, "CHUNK", 6)
    monkeypatch.setattr(module, "PROGRESS", 100)
    yield


@pytest.mark.usefixtures("small_chunks")
def test_chunks(tmp_path: Path, tokenizer: Path) -> None:
    """Documents of any length over chunks of any length; progress is said."""
    documents = [[[BOS, *range(n), EOS]] for n in (0, 1, 2, 3, 4, 0, 50, 1)]
    said = adopted(tokenizer, write_pair(tmp_path / "data/web", documents))
    assert sum("GB" in line for line in said) == 1
    assert tokens_of(tmp_path / "data") == flat(documents)


@given(st.binary(max_size=120), st.integers(0, 140))
def test_any_bytes(junk: bytes, cut: int) -> None:
    """An index of any bytes is read or refused."""
    head = b"MMIDIDX\x00\x00\x01" + bytes(7) + b"\x08\x03"
    for data in (junk, (head + junk)[:cut], head + bytes(7) + b"\x04" + bytes(7) + junk):
        try:
            found = read_megatron_index(data, "x.idx")
        except FormatError:
            continue
        assert np.all(found.index.lengths >= 0)


def test_files_without_tokens_are_left_out(tmp_path: Path, tokenizer: Path) -> None:
    """Megatron cannot map an empty .bin: blend must never name one."""
    for name, documents in {"a": DOCUMENTS, "b": [], "c": DOCUMENTS}.items():
        write_pair(tmp_path / f"data/{name}", documents, "uint16")
    said = adopted(tokenizer, *(tmp_path / "data" / name for name in "abc"))
    assert any("data/b.bin: has no tokens, left out" in line for line in said)
    assert [shard.bin.path for shard in read_manifest(open_store(tmp_path / "data")).shards] == ["a.bin", "c.bin"]
    assert tokens_of(tmp_path / "data") == 2 * flat(DOCUMENTS)
