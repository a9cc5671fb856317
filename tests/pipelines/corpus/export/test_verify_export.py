"""verify finds what is wrong with an export, also where somebody made its checksums fit, and names the file."""

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from refinery.loader.format.block_checksums import block_checksums
from refinery.loader.format.manifest import MANIFEST, RUN, seal, unseal
from refinery.loader.storage.store import checksums
from refinery.pipelines.corpus.checks.kinds import CORPUS, EXPORT, kind_of
from refinery.pipelines.corpus.checks.verify_export import verify_export
from refinery.pipelines.corpus.export.checkpoint import CHECKPOINT
from refinery.pipelines.corpus.export.torch_file import read_torch_file, write_torch_file
from tests.corpus_factory import build_corpus
from tests.pipelines.corpus.export.exporting import export, read_pt
from tests.pipelines.inputs import run

Edit = Callable[[Path, dict[str, Any]], None]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_corpus(tmp_path_factory.mktemp("lies") / "corpus")


@pytest.fixture(scope="module")
def exported(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Exports by format, for tests to copy."""
    folder = tmp_path_factory.mktemp("exported")
    export(corpus, folder / "jsonl", "jsonl", compression="none")
    export(corpus, folder / "torch", "torch", shard_tokens=50)
    return folder


def reseal(out: Path, edit: Edit) -> None:
    """Apply the edit, then give the manifest the sizes and checksums of what is there, and a good seal."""
    payload = unseal((out / MANIFEST).read_bytes(), "")
    edit(out, payload)
    parts = [part for name in ("shards", "leftover", "provenance") for part in payload.get(name, [])]
    for entry in [*payload["files"], *(part["file"] for part in parts)]:
        if (out / entry["path"]).exists():
            entry |= checksums(out / entry["path"])._asdict()
            if "block_crc32c" in entry:
                entry["block_crc32c"] = block_checksums(out / entry["path"])
    (out / MANIFEST).write_bytes(seal(payload))


def shard(payload: dict[str, Any], index: int = 1) -> str:
    return str(payload["shards"][index]["file"]["path"])


def change_line(old: bytes, new: bytes) -> Edit:
    def edit(out: Path, payload: dict[str, Any]) -> None:
        path = out / shard(payload)
        assert old in path.read_bytes()
        path.write_bytes(path.read_bytes().replace(old, new))

    return edit


def drop_line(out: Path, payload: dict[str, Any]) -> None:
    path = out / shard(payload)
    path.write_bytes(path.read_bytes().split(b"\n", 1)[1])


def set_value(*keys: Any, value: Any) -> Edit:
    def edit(out: Path, payload: dict[str, Any]) -> None:
        inner = payload
        for key in keys[:-1]:
            inner = inner[key]
        inner[keys[-1]] = value

    return edit


TEXT_LIES: dict[str, tuple[Edit, str]] = {
    "another text": (change_line(b"one fine day", b"one fine dab"), "encode to tokens with sha256"),
    "another order": (change_line(b'"text":"x"', b'"text":"\xc3"'), "shard-00000-of-00003.jsonl"),
    "a count": (change_line(b'"token_count":14', b'"token_count":15'), "token_count is 15, 14 expected"),
    "a size": (change_line(b'"text_bytes":12', b'"text_bytes":13'), "text_bytes is 13, 12 expected"),
    "a document less": (drop_line, "2 documents found, 3 expected"),
    "a field less": (change_line(b'"origin":"crawl.warc.gz@0",', b""), "document 0 has the fields"),
    "a source": (change_line(b'"source":"crawl","domain"', b'"source":"other","domain"'), "found by source"),
    "totals": (set_value("totals", "tokens", value=5), "totals.tokens is 5, 1107 expected"),
    "sources": (set_value("sources", "code", "documents", value=7), "sources: "),
    "an unlisted file": (lambda out, payload: (out / "train" / "extra").write_bytes(b""), "train/extra: not listed"),
    "a missing file": (lambda out, payload: (out / shard(payload)).unlink(), "missing, "),
    "a version": (set_value("schema_version", value=9), "schema version 9 found"),
    "a hostile path": (set_value("shards", 0, "file", "path", value="../../secret"), "'../../secret' given"),
}


@pytest.mark.parametrize("lie", TEXT_LIES)
def test_lies_about_texts_are_found(exported: Path, tmp_path: Path, lie: str) -> None:
    out = shutil.copytree(exported / "jsonl", tmp_path / "out")
    edit, message = TEXT_LIES[lie]
    reseal(out, edit)
    report = verify_export(str(out))
    assert any(message in failure for failure in report.failures), report.failures
    assert "failure" in report.summary_lines()[-1]


def change_token(position: int, value: int) -> Edit:
    def edit(out: Path, payload: dict[str, Any]) -> None:
        path = out / shard(payload)
        tokens = read_pt(path).copy()
        tokens[position] = value
        write_torch_file(path, tokens)

    return edit


def shorten(out: Path, payload: dict[str, Any]) -> None:
    write_torch_file(out / shard(payload), read_pt(out / shard(payload))[:-1])


def move_document(out: Path, payload: dict[str, Any]) -> None:
    path = out / payload["provenance"][0]["file"]["path"]
    table = pq.read_table(path)
    moved = pa.array([value + 1 for value in table["position"].to_pylist()], pa.int64())
    number = table.schema.get_field_index("position")
    pq.write_table(table.set_column(number, table.schema.field(number), moved), path)


def first_start(out: Path) -> int:
    """A place in the second shard where a document begins, by provenance."""
    rows = [row for path in (out / "provenance/train").iterdir() for row in pq.read_table(path).to_pylist()]
    return next(int(row["position"]) - 50 for row in rows if 50 <= row["position"] < 100)


TOKEN_LIES: dict[str, tuple[Edit, str]] = {
    "an id outside the vocabulary": (change_token(3, 258), "ids from "),
    "a document that begins without BOS": (
        lambda out, payload: change_token(first_start(out), 7)(out, payload),
        "the bos_id 256 expected by provenance/",
    ),
    "a shard too short": (shorten, "49 tokens of int64 from byte 448 found, 50 of int64"),
    "no file of PyTorch": (
        lambda out, payload: (out / shard(payload)).write_bytes(b"PK"),
        "not a file of PyTorch with tokens",
    ),
    "a shard less": (lambda out, payload: payload["shards"].pop(1), "not numbered from 0"),
    "a moved document": (move_document, "document 0 is at 1, 0 expected"),
    "sources of a shard": (set_value("shards", 0, "sources", value={"crawl": 3}), "its sources have 3 tokens, 50"),
    "sources": (set_value("sources", "code", "tokens", value=3), "expected from provenance/"),
    "documents": (set_value("corpora", 0, "documents", value=3), "its corpora have 3"),
    "a leftover of a whole shard": (set_value("leftover", 0, "tokens", value=50), "less than 50 tokens expected"),
}


@pytest.mark.parametrize("lie", TOKEN_LIES)
def test_lies_about_tokens_are_found(exported: Path, tmp_path: Path, lie: str) -> None:
    out = shutil.copytree(exported / "torch", tmp_path / "out")
    assert verify_export(str(out)).failures == []
    edit, message = TOKEN_LIES[lie]
    reseal(out, edit)
    report = verify_export(str(out))
    assert any(message in failure for failure in report.failures), report.failures


RECORDS: dict[str, tuple[str, dict[str, Any], str]] = {
    "junk": (CHECKPOINT, {}, "checkpoint.json: not a sealed JSON object"),
    "an unknown state": (CHECKPOINT, {"state": "begun"}, "state 'begun' found"),
    "a corpus that is being added": (CHECKPOINT, {"state": "writing"}, "the corpus tiny is being added (writing)"),
    "another number": (CHECKPOINT, {"sequence": 3}, "corpus 3, tiny, found; the last one in manifest.json, 0, tiny"),
    "no corpus": (CHECKPOINT, {"corpus": {}}, "checkpoint.json: KeyError"),
    "a corpus' run": (RUN, {"kind": "refinery-run"}, "_run.json: kind 'refinery-run' found"),
    "other options": (RUN, {"options": {}}, "_run.json: options {} found"),
}


@pytest.mark.parametrize("record", RECORDS)
def test_records_of_another_export_are_found(exported: Path, tmp_path: Path, record: str) -> None:
    """What the next --append goes by."""
    out = shutil.copytree(exported / "torch", tmp_path / "out")
    name, changes, message = RECORDS[record]
    payload = unseal((out / name).read_bytes(), "") | changes
    (out / name).write_bytes(seal(payload) if changes else b"junk")
    (failure,) = verify_export(str(out)).failures
    assert message in failure


def test_an_export_of_documents_has_no_checkpoint(exported: Path, tmp_path: Path) -> None:
    out = shutil.copytree(exported / "jsonl", tmp_path / "out")
    (out / CHECKPOINT).write_bytes(b"")
    assert verify_export(str(out)).failures == [f"{CHECKPOINT}: not listed in {MANIFEST}"]


@pytest.mark.parametrize("format_", ["parquet", "webdataset", "mds", "torch"])
def test_a_flipped_bit_anywhere_is_found(corpus: Path, tmp_path: Path, format_: str) -> None:
    """Without another seal: by checksum, whatever the file is."""
    out = tmp_path / "out"
    export(corpus, out, format_)
    for path in sorted(path for path in out.rglob("*") if path.is_file()):
        good = path.read_bytes()
        data = bytearray(good)
        data[len(data) // 2] ^= 4
        path.write_bytes(data)
        failures = verify_export(str(out)).failures
        assert any(path.name in failure for failure in failures), (path, failures)
        path.write_bytes(good)
    assert verify_export(str(out)).failures == []


def test_the_command_knows_an_export_from_a_corpus(corpus: Path, exported: Path, tmp_path: Path) -> None:
    shutil.copytree(exported / "jsonl", tmp_path / "out")
    assert kind_of(str(tmp_path / "out")) == EXPORT and kind_of(str(corpus)) == kind_of(str(tmp_path)) == CORPUS
    good = run("verify", tmp_path / "out")
    assert "encoded 9 documents again\nall checks passed" in good.stdout
    reseal(tmp_path / "out", change_line(b"one fine day", b"one fine dab"))
    bad = run("verify", tmp_path / "out", check=False)
    assert bad.returncode == 1 and bad.stdout.endswith("1 failure\n")


@pytest.mark.parametrize("tokens", [0, 1, 255, 2**16, 70_001])
@pytest.mark.parametrize("dtype", ["int64", "int32"])
def test_a_file_of_pytorch_says_where_its_tokens_are(tmp_path: Path, tokens: int, dtype: str) -> None:
    values = np.arange(tokens, dtype=dtype)
    written = write_torch_file(tmp_path / "a.pt", values)
    write_torch_file(tmp_path / "b.pt", values)
    data = (tmp_path / "a.pt").read_bytes()
    assert data == (tmp_path / "b.pt").read_bytes()
    assert read_torch_file(io.BytesIO(data), "a.pt") == written == (tokens, dtype, written.offset)
    assert written.offset % 64 == 0
    assert np.array_equal(np.frombuffer(data, dtype, tokens, written.offset), values)
    assert np.array_equal(read_pt(tmp_path / "a.pt"), values)


def test_the_bytes_of_a_file_of_pytorch_are_pinned(tmp_path: Path) -> None:
    """Other bytes would be other shards: an export that grows would not be the one that was begun."""
    write_torch_file(tmp_path / "a.pt", np.arange(10, dtype=np.int64))
    assert checksums(tmp_path / "a.pt").sha256 == PINNED


PINNED = "d946bbe64e30087a5d1610fd77afc1ed5d10bfb06c16fde24eebe3f45250ce53"


def test_status_in_json(corpus: Path, exported: Path, tmp_path: Path) -> None:
    told = json.loads(run("status", exported / "torch", "--json").stdout)
    assert (told["state"], told["shards"], told["leftover"]) == ("complete", 21, {"train": 35, "validation": 22})
    assert told["sources"]["code"] == {"documents": 1, "tokens": 30, "bytes": 28}
    for place in (corpus, tmp_path):
        refused = run("status", place, check=False)
        assert refused.returncode == 2 and "run `refinery inspect`" in refused.stderr
