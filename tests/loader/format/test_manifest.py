import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refinery.loader.errors import FormatError
from refinery.loader.format.block_checksums import block_checksums
from refinery.loader.format.manifest import (
    MANIFEST,
    Column,
    check_domain,
    check_funnel,
    parse_manifest,
    provenance_schema,
    read_manifest,
    seal,
    shard_name,
    unseal,
    write_provenance,
)
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import checksums
from tests.corpus_factory import BOS, COLUMNS, FINGERPRINT, STAGES, build_corpus, counts, provenance_row
from tests.plain_manifest import manifest_of

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=10,
)


@settings(deadline=None)
@given(st.dictionaries(TEXT.filter(lambda key: key != "sha256"), JSON, max_size=4))
def test_sealed_payload_comes_back(payload: dict[str, Any]) -> None:
    data = seal(payload)
    assert unseal(data, "x") == payload
    assert seal(dict(reversed(payload.items()))) == data
    found = json.dumps(json.loads(data), sort_keys=True, indent=1, ensure_ascii=False)
    assert f"{found}\n".encode() == data  # the format's definition of canonical


def test_golden_seal() -> None:
    assert seal({"b": [1, 0.5, None, True], "a": "ä"}).decode() == (
        '{\n "a": "ä",\n "b": [\n  1,\n  0.5,\n  null,\n  true\n ],\n'
        ' "sha256": "ad368bb41a5f4717bd2457bbb020783acd52c9ed37220939784cedd5bdecd502"\n}\n'
    )


def test_every_flipped_bit_breaks_the_seal() -> None:
    data = seal({"a": "Bär", "n": {"x": 1.5, "y": [True, None]}})
    for at in range(len(data)):
        for bit in range(8):
            damaged = bytearray(data)
            damaged[at] ^= 1 << bit
            with pytest.raises(FormatError, match="some file: "):
                unseal(bytes(damaged), "some file")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[]\n",
        b"null",
        b'"sha256"',
        b'{"sha256": 1}',
        b'{"sha256": null}\n',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"a": ' + b"9" * 10_000 + b"}",
        b'{"a": NaN, "sha256": ""}',
        b'{"a": 1e999, "sha256": ""}',
        b'{"a": "\\ud800", "sha256": ""}',
        b'{"sha256": {"sha256": ""}}',
        seal({}) + b"\n",
        seal({}).replace(b"\n", b""),
        b"\xef\xbb\xbf" + seal({}),
        seal({}).decode().encode("utf-16"),
        json.dumps(json.loads(seal({"a": 1}))).encode(),
        seal({"a": 1}).replace(b' "a": 1,\n', b' "a": 1,\n "a": 1,\n'),
    ],
    ids=lambda data: repr(data[:20]),
)
def test_unseal_refuses(data: bytes) -> None:
    with pytest.raises(FormatError, match="x: "):
        unseal(data, "x")


@pytest.mark.parametrize("payload", [{"sha256": ""}, {"a": float("nan")}, {"a": float("inf")}, {"a": "\ud800"}])
def test_seal_refuses(payload: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        seal(payload)


def test_names() -> None:
    assert shard_name("train", "web", 0, 16) == "train/web/shard-00000-of-00016"
    assert shard_name("validation", "a.b_c-d", 123_456, 123_457) == "validation/a.b_c-d/shard-123456-of-123457"
    for arguments in (("test", "web", 0, 1), ("train", "web", 1, 1), ("train", "web", -1, 1), ("train", "Web", 0, 1)):
        with pytest.raises(ValueError, match="given"):
            shard_name(*arguments)


@pytest.mark.parametrize("domain", ["", "-a", ".a", "_a", "A", "a/b", "ä", "a\n", "a" * 65, "..", "a b"])
def test_domains_refused(domain: str) -> None:
    with pytest.raises(ValueError, match="domain: "):
        check_domain(domain)


def test_domains() -> None:
    for domain in ("a", "0", "a" * 64, "stack-v2", "c4.en_1"):
        assert check_domain(domain) == domain


def rows(n: int) -> list[dict[str, Any]]:
    return [provenance_row(f"text {i}", "salt", 10 * i, 10) for i in range(n)]


def test_provenance_round_trip_and_same_bytes(tmp_path: Path) -> None:
    given = rows(70_000)  # two row groups
    given[0] |= {"language_score": None, "quality": 0.5, "sources": [], "url": "", "meta": '{"a": "\u2028\\u0000"}'}
    write_provenance(tmp_path / "a", given, COLUMNS)
    write_provenance(tmp_path / "b", iter(given), COLUMNS)
    assert checksums(tmp_path / "a") == checksums(tmp_path / "b")
    table = pq.read_table(tmp_path / "a")
    assert table.schema.equals(provenance_schema(COLUMNS))
    assert table.slice(0, 2).to_pylist() == [given[0], given[1] | {"language_score": pytest.approx(0.9)}]
    assert [pq.ParquetFile(tmp_path / "a").metadata.row_group(i).num_rows for i in range(2)] == [65_536, 4_464]


def test_empty_provenance(tmp_path: Path) -> None:
    write_provenance(tmp_path / "a", [], COLUMNS)
    table = pq.read_table(tmp_path / "a")
    assert table.num_rows == 0
    assert table.schema.equals(provenance_schema(COLUMNS))


@pytest.mark.parametrize(
    "change",
    [{"extra": 1}, {"id": b"short"}, {"url": None}, {"copies": -1}, {"text_bytes": "x"}, {"sources": ["a", None]}],
    ids=str,
)
def test_provenance_refuses(tmp_path: Path, change: dict[str, Any]) -> None:
    with pytest.raises((ValueError, OverflowError, pa.ArrowException)):
        write_provenance(tmp_path / "a", [rows(1)[0] | change], COLUMNS)


def test_columns_are_those_of_the_lane(tmp_path: Path) -> None:
    columns = (Column("topic", "string"), Column("edits", "integer"))
    row = {key: value for key, value in rows(1)[0].items() if key not in {column.name for column in COLUMNS}}
    given = [row | {"topic": "", "edits": None}, row | {"topic": "rivers", "edits": 2**40}]
    write_provenance(tmp_path / "a", given, columns)
    table = pq.read_table(tmp_path / "a")
    assert table.schema.names[4:6] == ["topic", "edits"]
    assert table.to_pylist() == given
    with pytest.raises((ValueError, pa.ArrowException)):
        write_provenance(tmp_path / "b", [row | {"topic": None, "edits": 1}], columns)


def test_provenance_refuses_a_missing_field(tmp_path: Path) -> None:
    row = rows(1)[0]
    del row["quality"]
    with pytest.raises(ValueError, match="provenance: fields"):
        write_provenance(tmp_path / "a", [row], COLUMNS)


def test_manifest_round_trip(tmp_path: Path) -> None:
    manifest = read_manifest(open_store(build_corpus(tmp_path)))
    assert (manifest.fingerprint, manifest.dtype, manifest.dtype_code) == (FINGERPRINT, "uint16", 8)
    assert manifest.tokenizer.bos_id == BOS
    assert (manifest.lane, manifest.columns) == ("web", COLUMNS)
    assert [(stage.phase, stage.name) for stage in manifest.stages] == list(STAGES)
    assert [(s.split, s.domain, s.index, s.documents) for s in manifest.shards] == [
        ("train", "web", 0, 3),
        ("train", "web", 1, 3),
        ("train", "web", 2, 0),
        ("train", "code", 0, 1),
        ("validation", "web", 0, 2),
    ]
    assert manifest.totals["documents"] == 9
    assert all((tmp_path / entry.path).stat().st_size == entry.size for entry in manifest.all_files)
    bins = [shard.bin for shard in manifest.shards]
    assert [entry.block_crc32c for entry in bins] == [block_checksums(tmp_path / entry.path) for entry in bins]


def test_missing_block_checksums(tmp_path: Path) -> None:
    payload = manifest_of(build_corpus(tmp_path)) | {"schema_version": 1}
    del payload["shards"][1]["files"]["bin"]["block_crc32c"]
    name = r"train/web/shard-00001-of-00003\.bin"
    with pytest.raises(FormatError, match=rf"shards\[1\]: files: bin: {name}: block_crc32c is missing"):
        parse_manifest(seal(payload))


def test_no_manifest(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name, said in (
        ("", "it is written last"),
        ("missing", ".* is not there; a location is"),
        ("file", ".* is a file"),
    ):
        root = tmp_path / name
        with pytest.raises(FormatError, match=f"{root} is not a corpus: manifest.json is missing; {said}"):
            read_manifest(open_store(root))
    with pytest.raises(ValueError, match="location: None given, a local folder"):
        open_store(None)  # type: ignore[arg-type]


def set_in(*keys: str | int) -> Callable[[Any], Callable[[dict[str, Any]], None]]:
    def edit(value: Any) -> Callable[[dict[str, Any]], None]:
        def change(payload: Any) -> None:
            for key in keys[:-1]:
                payload = payload[key]
            payload[keys[-1]] = value

        return change

    return edit


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (set_in("schema_version")(3), "schema version 3 found, this reader supports version 1 and 2"),
        (set_in("schema_version")(True), "schema version True found"),
        (set_in("kind")("other"), "kind 'other' found, 'refinery-corpus' expected"),
        (set_in("name")(None), "name is None, a string expected"),
        (set_in("shards")({}), "shards is {}, a list expected"),
        (set_in("shards", 0)([]), r"shards\[0\]: \[\] found, an object expected"),
        (set_in("shards", 1, "tokens")(-1), r"shards\[1\]: tokens is -1, 0 or more expected"),
        (set_in("shards", 1, "tokens")(1.0), r"shards\[1\]: tokens is 1.0, an integer expected"),
        (set_in("shards", 1, "tokens")(True), r"shards\[1\]: tokens is True, an integer expected"),
        (set_in("shards", 0, "files", "bin", "path")("../x"), r"shards\[0\]: files: bin: path: name: '../x' given"),
        (set_in("shards", 0, "files", "bin", "block_crc32c")(7), r"shards\[0\]: files: bin: block_crc32c is 7"),
        (set_in("files", 0, "path")("/etc/passwd"), r"files\[0\]: path: name: '/etc/passwd' given"),
        (set_in("tokenizer", "bos_id")("1"), "tokenizer: bos_id is '1', an integer expected"),
        (lambda payload: payload["tokenizer"].pop("bos_id"), "tokenizer: bos_id is None, an integer expected"),
        (set_in("totals")({}), "totals: documents is None"),
        (set_in("funnel", 0, "kept")({"documents": 1}), r"funnel\[0\]: kept: bytes is None"),
        (set_in("funnel", 0, "dead")({"E": 3}), r"funnel\[0\]: dead: E is 3, an object expected"),
        (set_in("funnel", 0, "created")({"documents": -1, "bytes": 0}), r"funnel\[0\]: created: documents is -1"),
        (set_in("funnel", 0, "created")(None), r"funnel\[0\]: created is None, an object expected"),
        (set_in("funnel", 0, "scored")([]), r"funnel\[0\]: scored is \[\], an object expected"),
        (set_in("funnel", 0, "scored")({"en": {}}), r"funnel\[0\]: scored: en is {}, a list expected"),
        (set_in("funnel", 0, "scored")({"en": [[2.0, 1], [1.0, 1]]}), r"funnel\[0\]: scored: en has \[1.0, 1\], \["),
        (set_in("funnel", 0, "scored")({"en": [[2.0, 0]]}), r"funnel\[0\]: scored: en has \[2.0, 0\], \[lower edge"),
        (set_in("funnel", 0, "scored")({"en": [["2", 1]]}), r"funnel\[0\]: scored: en has \['2', 1\], \[lower edge"),
        (set_in("lane")(7), "lane is 7, a string expected"),
        (set_in("writer")("packed"), "writer is 'packed', this reader supports 'megatron'"),
        (set_in("stages", 1, "version")("1"), r"stages\[1\]: version is '1', an integer expected"),
        (set_in("columns", 0, "type")("list"), r"columns\[0\]: type is 'list', string, float, integer expected"),
        (set_in("columns", 0, "name")("Language"), r"columns\[0\]: name is 'Language', a unique lower-case name"),
        (set_in("columns", 0, "name")("url"), r"columns\[0\]: name is 'url', a unique lower-case name expected"),
        (set_in("columns", 0, "name")("quality"), "columns: 'quality' found twice, once expected"),
    ],
)
def test_wrong_manifest_is_named(tmp_path: Path, change: Callable[[dict[str, Any]], None], message: str) -> None:
    payload = manifest_of(build_corpus(tmp_path)) | {"schema_version": 1}
    change(payload)
    with pytest.raises(FormatError, match=f"{MANIFEST}: {message}"):
        parse_manifest(seal(payload))


def stage(name: str, source: str, entered: int, kept: int, **reasons: int) -> dict[str, Any]:
    dead = {reason: counts(n) for reason, n in reasons.items() if reason[0].isupper()}
    dropped = {reason: counts(n) for reason, n in reasons.items() if reason[0].islower()}
    result = {"stage": name, "source": source, "in": counts(entered), "kept": counts(kept)}
    return result | {"dropped": dropped, "dead": dead}


GOOD = [
    stage("read", "a", 10, 9, Bad=1),
    stage("read", "b", 5, 5),
    stage("language", "a", 9, 4, low=3, other=2),
    stage("language", "b", 5, 0, low=5),
    stage("encode", "a", 4, 4),
]


def test_funnel_that_reconciles() -> None:
    assert check_funnel([]) == []
    assert check_funnel(GOOD) == []
    lanes = [*GOOD[:2], stage("read", "c", 3, 3), *GOOD[2:], stage("encode", "c", 3, 2, short=1)]
    assert check_funnel(lanes) == []  # source c skips "language"


def test_no_more_numbers_than_documents() -> None:
    scored = GOOD[0] | {"scored": {"en": [[1.0, 4], [2.0, 6]], "de": [[1.0, 3]]}}
    assert check_funnel([scored]) == check_funnel(GOOD[:1])
    (problem,) = set(check_funnel([scored | {"scored": {"en": [[1.0, 4], [2.0, 7]]}}])) - set(check_funnel(GOOD[:1]))
    assert problem == "stage 'read', source 'a': 11 numbers of 'en' for 10 documents"


def test_created_documents_reconcile() -> None:
    split = stage("split", "a", 9, 14, empty=2) | {"created": counts(7)}
    assert check_funnel([GOOD[0], split]) == []
    split["created"] = counts(6)
    (problem,) = check_funnel([GOOD[0], split])
    assert "9 documents entered and 6 were created, but 14 kept + 2 dropped + 0 dead = 16" in problem


@pytest.mark.parametrize(
    ("at", "replacement", "problem"),
    [
        (
            0,
            stage("read", "a", 11, 9, Bad=1),
            "'read', source 'a': 11 documents entered, but 9 kept + 0 dropped",
        ),
        (2, stage("language", "a", 8, 4, low=2, other=2), "source 'a': 'read' kept 9 documents, 8 entered 'language'"),
        (
            3,
            stage("language", "b", 5, 1, low=4),
            "source 'b': 'language' kept 1 documents, which entered no",
        ),
        (1, GOOD[0], "stage 'read', source 'a': listed twice"),
        (4, stage("encode", "c", 1, 1), "source 'a': 'language' kept 4 documents, which entered no later stage"),
    ],
)
def test_funnel_problems(at: int, replacement: dict[str, Any], problem: str) -> None:
    funnel = copy.deepcopy(GOOD)
    funnel[at] = replacement
    assert any(problem in found for found in check_funnel(funnel)), check_funnel(funnel)


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(0, 5), min_size=3, max_size=3), min_size=1, max_size=4), st.data())
def test_one_lost_document_is_always_found(losses: list[list[int]], data: st.DataObject) -> None:
    """A funnel built by subtraction reconciles; changing any single count is detected."""
    funnel = []
    for i in range(3):
        for source, lost in enumerate(losses):
            entered = 100 - sum(lost[:i])
            funnel.append(stage(f"s{i}", str(source), entered, entered - lost[i], some=lost[i]))
    assert check_funnel(funnel) == []
    entry = data.draw(st.sampled_from(funnel))
    key = data.draw(st.sampled_from(["in", "kept"]))
    entry[key]["documents"] += data.draw(st.sampled_from([-1, 1]))
    assert check_funnel(funnel)
