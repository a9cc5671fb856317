"""Sealed manifests with wrong values: either a FormatError that names file and key, or a stream that works.

A seal does not protect against a faulty or malicious writer.
"""

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refinery.loader import TokenStream
from refinery.loader.errors import FormatError
from refinery.loader.format.indexed import IDX_HEADER, IDX_MAGIC
from refinery.loader.format.listing import FOLDER as LISTINGS
from refinery.loader.format.manifest import MANIFEST, seal, unseal
from refinery.loader.order.order import OrderParams
from refinery.loader.read.corpus import Corpus
from tests.corpus_factory import build_corpus, edit_manifest
from tests.plain_manifest import manifest_of
from tests.sampling import examples

TEXTS = {
    ("train", "web"): [["one fine day", "zwei", "x" * 40], ["", "z" * 300], []],
    ("train", "code"): [["int main(void) { return 0; }"]],
    ("validation", "web"): [["held out", "kept aside"]],
}
HUGE = 10**400
EXAMPLES = examples(150)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its manifest is one of version 1, which readers go on taking."""
    root = build_corpus(tmp_path_factory.mktemp("corpus"), TEXTS)
    (root / "sound.json").write_bytes(seal(manifest_of(root) | {"schema_version": 1}))
    shutil.rmtree(root / LISTINGS)
    return root


def payload_of(root: Path) -> dict[str, Any]:
    return unseal((root / "sound.json").read_bytes(), MANIFEST)


def use(root: Path) -> None:
    """Everything a reader does: an epoch of batches that need the indexes, and every document."""
    shape: dict[str, Any] = {"sequence_length": 32, "batch_size": 4, "order": OrderParams(2, 4, 2), "prefetch": 0}
    train = [entry for entry in Corpus(str(root)).manifest.shards if entry.split == "train"]
    for weights in (None, {entry.domain: 1.0 for entry in train if entry.tokens}):
        if not any(entry.tokens for entry in train):
            with pytest.raises(ValueError, match="split: one without tokens given"):
                TokenStream(str(root), **shape)
            break
        with TokenStream(str(root), epochs=1, weights=weights, **shape, doc_ids=True) as stream:
            for _ in stream:
                pass
            json.dumps(stream.receipt())
    for split in ("train", "validation"):
        for shard in Corpus(str(root)).shards(split):
            for i in range(len(shard)):
                shard[i]


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Paths to everything inside a JSON value."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in inside:
        yield (*path, key)
        yield from places(inner, (*path, key))


def change(payload: Any, path: tuple[str | int, ...], edit: Callable[[Any, str | int], None]) -> None:
    for key in path[:-1]:
        payload = payload[key]
    edit(payload, path[-1])


def put(value: Any) -> Callable[[Any, str | int], None]:
    return lambda inside, key: inside.__setitem__(key, value)


def remove(inside: Any, key: str | int) -> None:
    del inside[key]


def shown(value: Any) -> str:
    return repr(value)[:40]


BIN = ("shards", 0, "files", "bin")
TABLE: list[tuple[tuple[str | int, ...], Any, str]] = [
    ((*BIN, "crc32c"), "", "'', 8 of 0-9 a-f expected"),
    ((*BIN, "crc32c"), "0123456", "8 of 0-9 a-f"),
    ((*BIN, "crc32c"), "0123456G", "8 of 0-9 a-f"),
    ((*BIN, "crc32c"), "0123ABCD", "8 of 0-9 a-f"),
    ((*BIN, "crc32c"), "0x23abcd", "8 of 0-9 a-f"),
    ((*BIN, "crc32c"), "0123abcd\n", "8 of 0-9 a-f"),
    ((*BIN, "crc32c"), "٠١٢٣٤٥٦٧", "8 of 0-9 a-f"),
    ((*BIN, "crc32c"), 12345678, "a string"),
    (("shards", 0, "files", "idx", "crc32c"), "+123abcd", "8 of 0-9 a-f"),
    (("shards", 0, "files", "provenance", "sha256"), "00", "64 of 0-9 a-f"),
    (("files", 0, "crc32c"), "none", "8 of 0-9 a-f"),
    ((*BIN, "block_crc32c"), "AAAA", "8 of base64 expected for"),
    ((*BIN, "block_crc32c"), "AAAAAAA", "8 of base64"),
    ((*BIN, "block_crc32c"), "AAAAAAAAAAA=", "8 of base64"),
    ((*BIN, "block_crc32c"), "AAAA*A==", "8 of base64"),
    ((*BIN, "block_crc32c"), "AAAAAAÄ=", "8 of base64"),
    (
        (*BIN, "block_crc32c"),
        "A" * 8,
        "of block_crc32c found, 4 expected",
    ),  # six bytes, rejected when used
    ((*BIN, "block_crc32c"), "AAAAAA==", "block_crc32c combine to"),
    ((*BIN, "block_crc32c"), None, "a string"),
    ((*BIN, "size"), -1, "0 or more"),
    ((*BIN, "size"), 2**63, "at most"),
    ((*BIN, "size"), HUGE, "at most"),
    ((*BIN, "size"), 3.0, "an integer"),
    ((*BIN, "rows"), -1, "0 or more"),
    ((*BIN, "path"), "a" * 256, "too long"),
    ((*BIN, "path"), "a/" * 600 + "b", "too long"),
    ((*BIN, "path"), "", "relative path"),
    ((*BIN, "path"), "a\0b", "relative path"),
    (("shards", 0, "tokens"), -1, "0 or more"),
    (("shards", 0, "tokens"), 2**62, "tokens in total"),
    (("shards", 0, "tokens"), 2**61, "expected for 2305843009213693952 tokens"),
    (("shards", 0, "documents"), True, "an integer"),
    (("shards", 0, "split"), "test", "train or validation"),
    (("shards", 0, "domain"), "../web", "up to 64 of a-z"),
    (("shards", 0, "domain"), "", "up to 64 of a-z"),
    (("shards", 0, "index"), "0", "an integer"),
    (("dtype",), "float64", "uint16 and 8 or int32 and 4"),
    (("dtype",), "int32", "uint16 and 8 or int32 and 4"),
    (("dtype_code",), 5, "uint16 and 8 or int32 and 4"),
    (("dtype_code",), 9, "uint16 and 8 or int32 and 4"),
    (("dtype_code",), HUGE, "at most"),
    (("tokenizer", "eos_id"), -1, "0 or more"),
    (("tokenizer", "eos_id"), 2**31, "2147483647 at most"),
    (("tokenizer", "bos_id"), 2**64, "2147483647 at most"),
    (("tokenizer", "vocab_size"), -5, "0 or more"),
    (("totals", "tokens"), "many", "an integer"),
]


@pytest.mark.parametrize("path, value, expected", TABLE, ids=shown)
def test_a_wrong_value_is_named(corpus: Path, path: tuple[str | int, ...], value: Any, expected: str) -> None:
    payload = payload_of(corpus)
    change(payload, path, put(value))
    (corpus / MANIFEST).write_bytes(seal(payload))
    with pytest.raises(FormatError) as caught:
        use(corpus)
    message = str(caught.value)
    assert str(corpus) in message and str(path[-1]) in message and expected in message
    assert len(message) < 600


def idx(lengths: Any, pointers: Any = None, documents: Any = None, n: int | None = None, **header: Any) -> bytes:
    """An index, valid except for the values given."""
    n = len(lengths) if n is None else n
    ends = [2 * sum(lengths[:i]) for i in range(len(lengths))]
    fields = {"magic": IDX_MAGIC, "version": 1, "code": 8, "n": n, "entries": (n + 1) % 2**64} | header
    return b"".join(
        [
            IDX_HEADER.pack(*fields.values()),
            np.array(lengths, "<i4").tobytes(),
            np.array(ends if pointers is None else pointers, "<i8").tobytes(),
            np.array(range(len(lengths) + 1) if documents is None else documents, "<i8").tobytes(),
        ]
    )


TOP = 2**31 - 1
IDX = {
    "negative length": (idx([31, -1]), "sequence 1 has length -1"),
    "negative lengths that cancel out": (idx([40, -10]), "sequence 1 has length -10"),
    "lengths of 2^31": (idx([TOP] * 64), "64 documents and 137438953408 tokens found"),
    "pointers beyond": (idx([10, 20], [0, 2**62]), "pointer of sequence 1 is 4611686018427387904, 20 expected"),
    "pointers before": (idx([10, 20], [0, -20]), "pointer of sequence 1 is -20, 20 expected"),
    "documents that overlap": (idx([10, 20], [0, 0]), "pointer of sequence 1 is 0, 20 expected"),
    "documents beyond": (idx([30], None, [0, 2**63 - 1]), "document index entry 1 is 9223372036854775807, 1 expected"),
    "2^64 sequences": (idx([30], n=2**64 - 1), "0 entries in the document index found, 18446744073709551616 expected"),
    "2^60 sequences": (idx([30], n=2**60), f"{IDX_HEADER.size + 20 * 2**60 + 8} expected for {2**60} sequences"),
    "another dtype": (idx([30], code=7), "dtype code 7 found"),
    "another number of tokens": (idx([29]), "1 documents and 29 tokens found, 1 and 30 expected"),
    "nothing": (b"", "0 bytes found, at least 34 expected"),
}


@pytest.mark.parametrize("name", IDX)
def test_a_wrong_index_that_is_sealed(tmp_path: Path, name: str) -> None:
    """Its checksum is the manifest's, so only its contents are wrong."""
    build_corpus(tmp_path, TEXTS)
    path = "train/code/shard-00000-of-00001.idx"
    (tmp_path / path).write_bytes(IDX[name][0])
    edit_manifest(tmp_path)
    with pytest.raises(FormatError) as caught:
        use(tmp_path)
    assert str(tmp_path / path) in str(caught.value) and IDX[name][1] in str(caught.value)


VALUES = st.one_of(
    st.sampled_from(
        [None, True, False, "", [], {}, 0, -1, 1, 2**31, 2**32, 2**53, 2**62 - 1, 2**62, 2**63, 2**64, -(2**63), HUGE]
    ),
    st.sampled_from([0.5, -0.0, 1e308, "0" * 8, "f" * 64, "x" * 5000, "a/b", "../a", "\0", "\n", "ä", "web", "code"]),
    st.integers(),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
    st.lists(st.integers() | st.text("ab"), max_size=2),
    st.dictionaries(st.text("ab", max_size=2), st.integers() | st.none(), max_size=2),
)


def outcome(root: Path, payload: Mapping[str, Any]) -> str:
    """ "used", or the message of the FormatError. Anything else is raised."""
    (root / MANIFEST).write_bytes(seal(payload))
    try:
        use(root)
    except FormatError as error:
        assert str(root) in str(error)
        assert len(str(error)) < 1000
        return str(error)
    return "used"


@settings(deadline=None, max_examples=EXAMPLES)
@given(data=st.data())
def test_any_field_with_any_value(corpus: Path, data: st.DataObject) -> None:
    """One or two fields, anywhere: changed, removed, or added."""
    payload = payload_of(corpus)
    for _ in range(data.draw(st.integers(1, 2))):
        everywhere = sorted(places(payload), key=repr)
        path = data.draw(st.sampled_from(everywhere))
        edit = data.draw(st.one_of(st.just(remove), VALUES.map(put)))
        change(payload, path, edit)
    outcome(corpus, payload)


def test_every_field_once(corpus: Path) -> None:
    """Each field of a shard, of the tokenizer and of the top level: missing, and with every wrong type."""
    sound = payload_of(corpus)
    assert outcome(corpus, sound) == "used"
    fields = [
        path for path in places(sound) if path[0] in ("dtype", "dtype_code", "tokenizer") or path[:2] == BIN[:2] != path
    ]
    assert len(fields) > 20
    for path in fields:
        values: list[Any] = [None, [], -1, 0.5, "\0"]
        for edit in (remove, *map(put, values)):
            payload = payload_of(corpus)
            change(payload, path, edit)
            found = outcome(corpus, payload)
            assert str(path[-1]) in found or path[-1] in ("bos_id", "eos_id"), (path, found)
