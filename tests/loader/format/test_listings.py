"""Listings: what is written is what an independent reader finds, forged ones are refused, and few are opened."""

import hashlib
import io
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from refinery.loader import TokenStream
from refinery.loader.errors import FormatError
from refinery.loader.format import listing, shard_list
from refinery.loader.format.listing import FOLDER, SCHEMA
from refinery.loader.format.manifest import MANIFEST, load_manifest, read_manifest, seal, unseal
from refinery.loader.format.parquet import batches as parquet_batches
from refinery.loader.format.publish_manifest import make_manifest, whole_payload
from refinery.loader.order.order import OrderParams
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import LocalStore, checksums
from refinery.pipelines.corpus.verify.verify import verify
from refinery.pipelines.run.inspection.inspection import inspect
from tests.corpus_factory import ByteTokenizer, build_corpus
from tests.packed_factory import add_packed_rows
from tests.plain_manifest import manifest_of

WEB, CODE = (f"{FOLDER}/train/{domain}/part-00000-of-00001.parquet" for domain in ("web", "code"))
OTHERS = f"{FOLDER}/files/part-00000-of-00001.parquet"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return add_packed_rows(build_corpus(tmp_path_factory.mktemp("listed")), 24)


@pytest.fixture
def corpus(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "corpus")
    return tmp_path / "corpus"


def test_an_independent_reader_finds_what_was_written(made: Path) -> None:
    payload = whole_payload(open_store(str(made)))
    assert manifest_of(made) == payload
    again = make_manifest(payload)
    assert {MANIFEST: again.sealed, **again.listings} == {
        name: (made / name).read_bytes() for name in (MANIFEST, *again.listings)
    }
    assert sorted(again.listings) == open_store(str(made)).list(FOLDER)


def test_the_manifest_and_rows_are_pinned(made: Path) -> None:
    """Parquet's bytes name pyarrow's version, so what is pinned is the manifest without them, and the rows."""
    head = unseal((made / MANIFEST).read_bytes(), MANIFEST)
    files = [entry for part in (*head["domains"], {"listings": head["files"]}) for entry in part["listings"]]
    for entry in files:
        entry |= {"size": 0, "crc32c": "", "sha256": ""}
    assert [entry["path"] for entry in files] == [
        WEB, CODE, f"{FOLDER}/validation/web/part-00000-of-00001.parquet", OTHERS
    ]  # fmt: skip
    assert json.loads(seal(head))["domains"][1] == {
        "count": 1,
        "documents": 1,
        "domain": "code",
        "listings": [
            {
                "crc32c": "", "documents": 1, "path": CODE, "rows": 4, "sha256": "", "shards": 1, "size": 0,
                "tokens": 30,
            }
        ],
        "shards": 1,
        "split": "train",
        "tokens": 30,
    }  # fmt: skip
    rows = pq.read_table(made / CODE).to_pylist()
    name = "train/code/shard-00000-of-00001"
    data = (made / f"{name}.bin").read_bytes()
    assert rows[0] == {
        "shard": 0,
        "kind": "bin",
        "path": f"{name}.bin",
        "size": 60,
        "crc32c": int(checksums(data).crc32c, 16),
        "sha256": hashlib.sha256(data).digest(),
        "rows": None,
        "documents": 1,
        "tokens": 30,
        "block_crc32c": bytes.fromhex(checksums(data).crc32c),
    }
    assert [row["kind"] for row in rows] == ["bin", "idx", "provenance", "packed"]
    assert pq.read_schema(made / CODE).equals(SCHEMA)


def test_small_listings_are_decoded_once_but_read_each_time(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard_list, "_recent", {})
    monkeypatch.setattr(shard_list, "RECENT", 2)
    first, _ = load_manifest(open_store(corpus))
    known = list(first.shards)
    assert len(shard_list._recent) == 2 < len(first.shards.runs)  # the last ones
    with monkeypatch.context() as patch:
        patch.setattr(shard_list, "read_listing", None)
        again, _ = load_manifest(open_store(corpus))
        assert list(again.shards.of("validation")) == known[-1:]
        assert again.shards.runs[-1]._found is first.shards.runs[-1]._found
    data = bytearray((corpus / CODE).read_bytes())
    data[len(data) // 2] ^= 1
    (corpus / CODE).write_bytes(data)
    with pytest.raises(FormatError, match=f"{CODE}.*found"):
        list(load_manifest(open_store(corpus))[0].shards)


def test_listings_end_at_their_limits(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    payload = whole_payload(open_store(str(made)))
    whole = make_manifest(payload).manifest
    for name, least, expected in (("SHARDS_EACH", 2, 2), ("ROWS_EACH", 5, 3), ("BLOCKS_EACH", 1, 3)):
        with monkeypatch.context() as patch:
            patch.setattr(listing, name, least)
            cut = make_manifest(payload)
            parts = [path for path in cut.listings if path.startswith(f"{FOLDER}/train/web/")]
            assert parts == [f"{FOLDER}/train/web/part-{i:05d}-of-{expected:05d}.parquet" for i in range(expected)]
            assert cut.manifest.shards == whole.shards and list(cut.manifest.files) == list(whole.files)
            assert cut.manifest.shards[-1] == whole.shards[len(whole.shards) - 1]


def change(name: str, row: int, value: Any) -> Callable[[pa.Table], pa.Table]:
    def edit(table: pa.Table) -> pa.Table:
        rows = table.to_pylist()
        rows[row][name] = value
        return pa.Table.from_pylist(rows, schema=SCHEMA)

    return edit


def order(*rows: int) -> Callable[[pa.Table], pa.Table]:
    return lambda table: table.take(list(rows))


# Rows of WEB: 0 bin, 1 idx, 2 provenance, 3 packed of shard 0; 4 to 7 of shard 1; 8 to 10 of shard 2, which is empty.
FORGED: dict[str, tuple[str, Callable[[pa.Table], pa.Table], str]] = {
    "parent": (WEB, change("path", 1, "a/../b"), "row 1: path is 'a/../b', a relative path"),
    "absolute": (WEB, change("path", 1, "/etc/passwd"), "row 1: path is '/etc/passwd'"),
    "hidden": (WEB, change("path", 1, "a/.tmp-x"), "row 1: path is 'a/.tmp-x'"),
    "nul": (WEB, change("path", 1, "a\0b"), "row 1: path is"),
    "no path": (OTHERS, change("path", 0, ""), "row 0: path is ''"),
    "long part": (WEB, change("path", 1, "ä" * 128), "row 1: path is"),
    "long path": (WEB, change("path", 1, "a/" * 520 + "b"), "row 1: path is"),
    "size": (WEB, change("size", 1, -1), "row 1: size is -1, 0 or more"),
    "huge size": (WEB, change("size", 1, 2**63 - 1), "row 1: size is 9223372036854775807"),
    "rows": (WEB, change("rows", 3, -5), "row 3: rows is -5"),
    "kind": (WEB, change("kind", 1, "exe"), "row 1: kind is 'exe'"),
    "packed without rows": (WEB, change("rows", 3, None), "row 3: kind is 'packed', rows, documents and tokens"),
    "no blocks": (WEB, change("block_crc32c", 0, None), "row 0: block_crc32c is None"),
    "too few blocks": (WEB, change("block_crc32c", 0, b"abc"), "row 0: block_crc32c is b'abc'"),
    "a row less": (WEB, order(*range(10)), "10 rows found, 11 expected"),
    "a row more": (WEB, order(*range(11), 10), "more rows found, 11 expected"),
    "shard twice": (WEB, order(0, 1, 2, 3, 0, 1, 2, 3, 8, 9, 10), "shards out of order"),
    "shards out of order": (WEB, order(4, 5, 6, 7, 0, 1, 2, 3, 8, 9, 10), "shards out of order"),
    "file of another shard": (WEB, order(0, 1, 6, 3, 4, 5, 2, 7, 8, 9, 10), "a file of another shard"),
    "no idx": (WEB, order(0, 2, 2, 3, 4, 5, 6, 7, 8, 9, 10), "a shard without idx or provenance"),
    "two idx": (WEB, order(0, 1, 2, 1, 4, 5, 6, 7, 8, 9, 10), "a file twice"),
    "no bin first": (WEB, order(1, 0, 2, 3, 4, 5, 6, 7, 8, 9, 10), "3 shards found, 3 expected"),
    "tokens": (WEB, change("tokens", 0, 7), "tokens found, 1"),
    "no documents": (WEB, change("documents", 0, None), "None documents found"),
    "a shard's file elsewhere": (OTHERS, change("shard", 0, 3), "a file of a shard found, files of no shard"),
    "other columns": (WEB, lambda table: table.drop_columns(["rows"]), "columns"),
    "other types": (WEB, lambda table: table.set_column(3, "size", table["size"].cast(pa.int32())), "columns"),
}


def forge(root: Path, path: str, data: bytes, rows: int | None = None) -> None:
    """A listing with another content, whose checksums the manifest has, and the number of rows if it is given."""
    (root / path).write_bytes(data)
    payload = unseal((root / MANIFEST).read_bytes(), MANIFEST)
    for part in (*payload["domains"], {"listings": payload["files"]}):
        for entry in part["listings"]:
            if entry["path"] == path:
                entry |= checksums(data)._asdict() | ({} if rows is None else {"rows": rows})
    (root / MANIFEST).write_bytes(seal(payload))


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_listing_is_named(corpus: Path, name: str) -> None:
    path, edit, expected = FORGED[name]
    out = io.BytesIO()
    pq.write_table(edit(pq.read_table(corpus / path)), out, write_page_checksum=True)
    forge(corpus, path, out.getvalue())
    with pytest.raises(FormatError) as caught:
        read_manifest(open_store(str(corpus))).load()
    assert f"{corpus / path}: " in str(caught.value) and expected in str(caught.value)
    assert len(str(caught.value)) < 500
    (failure,) = verify(str(corpus), load=lambda path: ByteTokenizer()).failures
    assert expected in failure


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1" * 40, b"\0" * 4000])
def test_a_listing_that_is_no_parquet(corpus: Path, data: bytes) -> None:
    forge(corpus, WEB, data)
    with pytest.raises(FormatError, match=WEB):
        len(read_manifest(open_store(str(corpus))).shards[0].bin.path)


def test_a_page_that_inflates_is_not_read(corpus: Path) -> None:
    rows = pq.read_table(corpus / OTHERS).to_pylist()
    rows[0]["path"] = "a" * (65 << 20)
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), out, compression="zstd", use_dictionary=False)
    forge(corpus, OTHERS, out.getvalue())
    with pytest.raises(FormatError, match="has a page of"):
        list(read_manifest(open_store(str(corpus))).files)


def test_rows_that_repeat_a_long_value_are_not_held(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dictionary of one value stands for as many as there are rows."""
    rows = pq.read_table(corpus / OTHERS).to_pylist()
    out = io.BytesIO()
    pq.write_table(
        pa.Table.from_pylist(rows + [rows[0] | {"path": "a/b" * 300}] * 9000, SCHEMA), out, compression="zstd"
    )
    forge(corpus, OTHERS, out.getvalue(), len(rows) + 9000)
    assert len(list(read_manifest(open_store(str(corpus))).files)) > 9000  # such are taken where they fit
    monkeypatch.setattr(parquet_batches, "MAX_BATCH", 1 << 20)
    with pytest.raises(FormatError, match=f"{OTHERS}: its rows take more than .* bytes of memory"):
        list(read_manifest(open_store(str(corpus))).files)


def test_sums_of_the_manifest_that_disagree(corpus: Path) -> None:
    good = unseal((corpus / MANIFEST).read_bytes(), MANIFEST)
    edits: list[tuple[Callable[[Any], Any], str]] = [
        (lambda p: p["domains"][0].update(tokens=5), r"domains\[0\]: listings have 1\d+ tokens, 5 expected"),
        (lambda p: p["domains"][0].update(shards=5), r"domains\[0\]: listings have 3 shards, 5 expected"),
        (lambda p: p["domains"].append(p["domains"][0]), r"domains\[3\]: train/web found twice"),
        (lambda p: p["domains"][0].update(domain="../x"), r"domains\[0\]: domain is '../x'"),
        (lambda p: p["domains"][0]["listings"][0].update(path="x.parquet"), "a file of manifests/ expected"),
        (lambda p: p["domains"][0]["listings"][0].update(rows=2**40), "rows is 1099511627776"),
        (lambda p: p.update(files={}), "files is {}, a list expected"),
        (lambda p: p.update(domains=[[]]), r"domains\[0\]: \[\] found, an object expected"),
    ]
    for edit, expected in edits:
        payload = json.loads(json.dumps(good))
        edit(payload)
        (corpus / MANIFEST).write_bytes(seal(payload))
        with pytest.raises(FormatError, match=expected):
            read_manifest(open_store(str(corpus)))


def test_verify_names_a_listing_that_is_gone_or_too_many(corpus: Path) -> None:
    (corpus / CODE).rename(corpus / f"{FOLDER}/train/code/other.parquet")
    (failure,) = verify(str(corpus), load=lambda path: ByteTokenizer()).failures
    assert failure.startswith(f"{CODE}: missing")
    seen = inspect(str(corpus))
    assert seen.state == "damaged" and any(f"{corpus / CODE}: missing" in problem for problem in seen.problems)
    shutil.copy(corpus / f"{FOLDER}/train/code/other.parquet", corpus / CODE)
    (failure,) = verify(str(corpus), load=lambda path: ByteTokenizer()).failures
    assert failure == f"{FOLDER}/train/code/other.parquet: not in {MANIFEST}"


def batches(root: Path, **options: Any) -> list[Any]:
    shape: dict[str, Any] = {"sequence_length": 32, "batch_size": 4, "order": OrderParams(2, 4, 2), "epochs": 1}
    with TokenStream(str(root), **shape, **options) as stream:
        return [batch["input_ids"].tolist() for batch in stream]


def test_a_stream_reads_the_listings_of_what_it_draws_from(corpus: Path) -> None:
    expected = batches(corpus, weights={"web": 1.0})
    (corpus / CODE).unlink()
    (corpus / OTHERS).unlink()
    for path in (corpus / "train" / "code").iterdir():
        path.unlink()
    assert batches(corpus, weights={"web": 1.0, "code": 0.0}) == expected == batches(corpus, weights={"web": 1.0})
    for options in ({}, {"weights": {"web": 1.0, "code": 1.0}}):
        with pytest.raises(FormatError, match=f"{CODE}: missing"):
            batches(corpus, **options)


def test_version_1_is_read_as_before(corpus: Path) -> None:
    store = open_store(str(corpus))
    manifest, expected = read_manifest(store), batches(corpus)
    manifest.load()
    (corpus / MANIFEST).write_bytes(seal(manifest_of(corpus) | {"schema_version": 1}))
    shutil.rmtree(corpus / FOLDER)
    old, data = load_manifest(store)
    assert (old.shards, list(old.files), old.totals) == (manifest.shards, list(manifest.files), manifest.totals)
    assert old.listings == () and batches(corpus) == expected
    assert verify(str(corpus), load=lambda path: ByteTokenizer()).failures == []
    make_manifest(whole_payload(store)).publish(open_store(str(corpus / "again")))
    assert manifest_of(corpus / "again") == manifest_of(corpus) | {"schema_version": 2} and data


class Dying(LocalStore):
    """A store whose process is killed before the manifest is there."""

    def create(self, name: str, source: bytes | Path) -> None:
        if name == MANIFEST:
            raise KeyboardInterrupt
        super().create(name, source)


def files_of(root: Path) -> Iterator[tuple[str, bytes]]:
    return ((path.relative_to(root).as_posix(), path.read_bytes()) for path in sorted(root.rglob("*.*")))


def test_killed_before_the_manifest(made: Path, tmp_path: Path) -> None:
    whole = make_manifest(whole_payload(open_store(str(made))))
    with pytest.raises(KeyboardInterrupt):
        whole.publish(Dying(str(tmp_path)))
    with pytest.raises(FormatError, match=r"manifest\.json is missing"):
        read_manifest(open_store(str(tmp_path)))
    whole.publish(open_store(str(tmp_path)))
    assert dict(files_of(tmp_path)) == {MANIFEST: whole.sealed, **whole.listings}
