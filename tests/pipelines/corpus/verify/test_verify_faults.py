"""Every fault alone, in a corpus that is otherwise good, and what its failure says."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from refinery.loader.format.listing import FOLDER as LISTINGS
from refinery.loader.format.manifest import MANIFEST, RUN, IndexedWriter, seal, write_provenance
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.corpus.verify.verify import verify
from tests.corpus_factory import (
    COLUMNS,
    EOS,
    TOKENIZER,
    ByteTokenizer,
    build_corpus,
    edit_manifest,
    encode,
    provenance_row,
    replace_manifest,
)
from tests.plain_manifest import manifest_of
from tests.sampling import sampled

WEB0, WEB1 = (f"train/web/shard-0000{i}-of-00003" for i in range(2))
CODE = "train/code/shard-00000-of-00001"
PART = "work/documents/part-00000.parquet"


def rewrite(root: Path, name: str, documents: list[np.ndarray], texts: list[str] | None = None) -> None:
    """Other tokens in a shard, with an index that fits, and a provenance that fits if `texts` are given."""
    with IndexedWriter(root / f"{name}.bin", "uint16") as writer:
        for tokens in documents:
            writer.add(tokens)
    if texts is not None:
        offsets = np.cumsum([0, *map(len, documents)])
        rows = [provenance_row(t, name, int(o), len(d)) for t, o, d in zip(texts, offsets, documents, strict=False)]
        write_provenance(root / f"{name}.provenance.parquet", rows, COLUMNS)


def patch_tokens(name: str, at: int, value: int) -> Callable[[Path], None]:
    def edit(root: Path) -> None:
        tokens = np.fromfile(root / f"{name}.bin", np.uint16)
        tokens[at] = value
        tokens.tofile(root / f"{name}.bin")
        edit_manifest(root)

    return edit


def edit_provenance(name: str, edit: Callable[[pa.Table], pa.Table]) -> Callable[[Path], None]:
    def change(root: Path) -> None:
        path = root / f"{name}.provenance.parquet"
        pq.write_table(edit(pq.read_table(path)), path)
        edit_manifest(root)

    return change


def set_column(column: str, values: list[Any]) -> Callable[[pa.Table], pa.Table]:
    def edit(table: pa.Table) -> pa.Table:
        i = table.schema.get_field_index(column)
        field = table.schema.field(i)
        return table.set_column(i, field, pa.array(values, field.type))

    return edit


def edited(edit: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    return lambda root: edit_manifest(root, edit)


def swap(a: str, b: str, reseal: bool) -> Callable[[Path], None]:
    def edit(root: Path) -> None:
        first, second = (root / a).read_bytes(), (root / b).read_bytes()
        (root / a).write_bytes(second)
        (root / b).write_bytes(first)
        if reseal:
            edit_manifest(root)

    return edit


def other_run(root: Path) -> None:
    (root / RUN).write_bytes(seal({"schema_version": 1, "fingerprint": "00"}))
    edit_manifest(root)


def foreign_manifest(root: Path) -> None:
    other = build_corpus(root.parent / "other", {("train", "web"): [["elsewhere"]]}, fingerprint="77" * 32)
    for name in (MANIFEST, *open_store(other).list(LISTINGS)):
        (root / name).write_bytes((other / name).read_bytes())


def truncate(path: str, reseal: bool = False) -> Callable[[Path], None]:
    return lambda root: put(path, (root / path).read_bytes()[:-1], reseal)(root)


def put(path: str, data: bytes, reseal: bool = False) -> Callable[[Path], None]:
    def write(root: Path) -> None:
        (root / path).write_bytes(data)
        if reseal:
            edit_manifest(root)

    return write


def remove(path: str) -> Callable[[Path], None]:
    return lambda root: (root / path).unlink()


def empty_folder(root: Path) -> None:
    for path in root.rglob("*"):
        if path.is_file():
            path.unlink()


def folder_for_a_file(root: Path) -> None:
    (root / f"{CODE}.bin").unlink()
    (root / f"{CODE}.bin").mkdir()


def nullable(table: pa.Table) -> pa.Table:
    return table.cast(pa.schema([field.with_nullable(True) for field in table.schema]))


def short_documents(root: Path) -> None:
    rewrite(root, CODE, [np.array([EOS])], [""])
    edit_manifest(root, lambda m: m["shards"][3].update(tokens=1))


def empty_documents(root: Path) -> None:
    rewrite(root, CODE, [np.array([], np.uint16)], [""])
    edit_manifest(root, lambda m: m["shards"][3].update(tokens=0))


def forged_end(root: Path) -> None:
    """An EOS inside a document decodes to nothing: the text gets shorter than provenance says."""
    text = "int main(void) { return 0; }"
    tokens = encode(text)
    tokens[5] = EOS
    rewrite(root, CODE, [tokens])
    edit_manifest(root)


def forged_blocks(root: Path) -> None:
    payload = manifest_of(root)
    payload["shards"][0]["files"]["bin"]["block_crc32c"] = "AAAAAA=="
    replace_manifest(root, payload)


# name -> (what is done to a good corpus, what the failure says)
FAULTS: dict[str, tuple[Callable[[Path], None], str]] = {
    "no manifest": (remove(MANIFEST), "is not a corpus: manifest.json is missing"),
    "empty folder": (empty_folder, "is not a corpus: manifest.json is missing"),
    "manifest of another run": (foreign_manifest, "_run.json: fingerprint '5f.*' found, '77.*' expected"),
    "run of another manifest": (other_run, "_run.json: fingerprint '00' found, '5f.*' expected"),
    "no run": (remove(RUN), "_run.json: missing"),
    "run of another version": (put(RUN, seal({"schema_version": 7})), "_run.json: schema version 7 found"),
    "missing bin": (remove(f"{WEB0}.bin"), f"{WEB0}.bin: missing, 78 bytes expected"),
    "forged block checksums": (forged_blocks, rf"{WEB0}.bin: block_crc32c \S+ found, AAAAAA== expected"),
    "missing idx": (remove(f"{WEB0}.idx"), f"{WEB0}.idx: missing, 102 bytes expected"),
    "missing provenance": (remove(f"{WEB0}.provenance.parquet"), f"{WEB0}.provenance.parquet: missing"),
    "missing tokenizer": (remove(TOKENIZER), f"{TOKENIZER}: missing"),
    "folder for a file": (folder_for_a_file, f"{CODE}.bin: IsADirectoryError"),
    "truncated bin": (truncate(f"{WEB0}.bin"), f"{WEB0}.bin: size 77 found, 78 expected"),
    "truncated idx": (truncate(f"{WEB0}.idx"), f"{WEB0}.idx: 101 bytes found, 102 expected"),
    "truncated provenance": (truncate(f"{WEB0}.provenance.parquet"), f"{WEB0}.provenance.parquet: size"),
    "truncated rejects": (truncate("rejects/part-00000.parquet"), r"rejects/part-00000.parquet: size \d+ found"),
    "emptied bin": (put(f"{WEB0}.bin", b""), f"{WEB0}.bin: size 0 found, 78 expected"),
    "truncated and sealed": (truncate(f"{WEB0}.bin", reseal=True), f"{WEB0}.idx: describes 78 bytes of tokens, but"),
    "id outside": (patch_tokens(WEB1, 2, 258), f"{WEB1}.bin: 1 ids outside the vocabulary of 258; the first: 258 at"),
    "BOS": (patch_tokens(WEB0, 14, 1), f"{WEB0}.bin: 1 documents begin without BOS; the first: document 1 has 1, 256"),
    "EOS": (patch_tokens(WEB0, 13, 1), f"{WEB0}.bin: 1 documents end without EOS; the first: document 0 has 1, 257"),
    "too short": (short_documents, f"{CODE}.bin: 1 documents too short for BOS and EOS; the first: document 0 of 1"),
    "empty document": (empty_documents, f"{CODE}.bin: 1 documents too short for BOS and EOS"),
    "other text": (patch_tokens(WEB0, 1, 0xFF), f"{WEB0}.bin: document 0: decodes to 14 bytes of text, 12 expected"),
    "forged end": (forged_end, f"{CODE}.bin: document 0: decodes to 27 bytes of text, 28 expected from provenance"),
    "swapped idx": (swap(f"{WEB0}.idx", f"{WEB1}.idx", False), f"{WEB0}.idx: crc32c .* found"),
    "swapped idx, sealed": (swap(f"{WEB0}.idx", f"{WEB1}.idx", True), f"{WEB0}.idx: tokens .* found, 39 expected"),
    "swapped bin": (swap(f"{WEB0}.bin", f"{WEB1}.bin", False), f"{WEB1}.bin: size 78 found"),
    "swapped provenance": (
        swap(f"{WEB0}.provenance.parquet", f"{WEB1}.provenance.parquet", True),
        f"{WEB1}.provenance.parquet: token_count of 3 rows disagrees with {WEB1}.idx",
    ),
    "extra row": (edit_provenance(WEB0, lambda t: pa.concat_tables([t, t[:1]])), "4 rows found, 3 expected"),
    "lost row": (edit_provenance(WEB0, lambda t: t[1:]), "2 rows found, 3 expected"),
    "offset": (edit_provenance(WEB0, set_column("token_offset", [0, 13, 36])), "row 1 has 13, 14 expected"),
    "count": (edit_provenance(WEB0, set_column("token_count", [14, 21, 4])), "token_count of 2 rows disagrees"),
    "size": (edit_provenance(WEB0, set_column("text_bytes", [11, 20, 1])), "12 bytes of text, 11 expected"),
    "negative size": (edit_provenance(WEB0, set_column("text_bytes", [-1, 20, 1])), "text_bytes of row 0 is -1"),
    "id twice": (edit_provenance(WEB0, set_column("id", [bytes(16), bytes(16), b"x" * 16])), "ids: 1 documents have"),
    "column lost": (
        edit_provenance(WEB0, lambda t: t.drop_columns("copies")),
        "its columns are not those of the format",
    ),
    "column nullable": (edit_provenance(WEB0, nullable), "its columns are not those of the format"),
    "not Parquet": (put(f"{WEB0}.provenance.parquet", b"PAR1", reseal=True), "no footer of Parquet"),
    "unlisted shard": (put("train/web/shard-00000-of-00009.bin", b""), "of-00009.bin: not in manifest.json"),
    "unlisted idx": (put("validation/web/x.idx", b""), "validation/web/x.idx: not in manifest.json"),
    "shard left out": (edited(lambda m: m["shards"].pop(1)), "totals.documents is 9, 6 expected from the shards"),
    "shard twice": (edited(lambda m: m["shards"].append(m["shards"][3])), "shards out of order, or a file"),
    "another set": (edited(lambda m: m["shards"][0].update(count=4)), f"{WEB0}.bin found, train/web/shard-00000-of-"),
    "absurd count": (edited(lambda m: m["shards"][3].update(count=2**60)), f"count is {2**60}, {2**31 - 1} at most"),
    "index out of set": (edited(lambda m: m["shards"][3].update(index=1)), "index: 1 of 1 given"),
    "other split": (edited(lambda m: m["shards"][3].update(split="test")), "split is 'test', train or validation"),
    "other name": (edited(lambda m: m["shards"][3].update(domain="prose")), f"{CODE}.bin found, train/prose/shard"),
    "dtype": (edited(lambda m: m.update(dtype="int32", dtype_code=4)), "dtype int32 .code 4. found, uint16 .code 8."),
    "unknown dtype": (edited(lambda m: m.update(dtype="float8")), "dtype is 'float8' and dtype_code 8"),
    "vocabulary": (edited(lambda m: m["tokenizer"].update(vocab_size=259)), "a vocabulary of 258 found, 259 expected"),
    "no vocabulary": (edited(lambda m: m["tokenizer"].update(vocab_size=0)), "vocab_size is 0, 1 to"),
    "BOS outside": (edited(lambda m: m["tokenizer"].update(bos_id=258)), "bos_id is 258, less than the vocabulary's"),
    "tokenizer not listed": (edited(lambda m: m["files"].pop(1)), f"{TOKENIZER}: not listed in manifest.json"),
    "run not listed": (edited(lambda m: m["files"].pop(0)), "_run.json: not listed in manifest.json"),
    "documents": (edited(lambda m: m["shards"][0].update(documents=4)), f"{WEB0}.idx: documents 3 found, 4 expected"),
    "tokens": (edited(lambda m: m["shards"][0].update(tokens=1)), f"{WEB0}.idx: tokens 39 found, 1 expected"),
    "total documents": (edited(lambda m: m["totals"].update(documents=10)), "totals.documents is 10, 9 expected"),
    "total tokens": (edited(lambda m: m["totals"].update(tokens=10)), "totals.tokens is 10, "),
    "total bytes": (edited(lambda m: m["totals"].update(bytes=10)), "totals.bytes is 10, "),
    "funnel": (edited(lambda m: m["funnel"][0]["in"].update(documents=1)), "funnel: stage 'read', source 'crawl': 1"),
    "no funnel": (edited(lambda m: m.update(funnel=[])), "funnel: empty"),
    "funnel's end": (edited(lambda m: m["funnel"].pop()), "the last stage, 'encode', kept 8 documents, 9 expected"),
    "part missing": (remove(PART), f"{PART}: missing, listed in work/clean.json"),
    "part damaged": (put(PART, b"documentz"), f"{PART}: 9 bytes, crc32c .* found; 9 bytes"),
    "phase manifest": (truncate("work/clean.json"), "work/clean.json: "),
}


@pytest.mark.parametrize("fault", sampled("faults that verify names", FAULTS, 22))
def test_fault_is_named(tmp_path: Path, fault: str) -> None:
    inject, message = FAULTS[fault]
    corpus = build_corpus(tmp_path / "corpus")
    inject(corpus)
    report = verify(str(corpus), load=lambda path: ByteTokenizer())  # type: ignore[arg-type, return-value]
    assert any(re.search(message, failure) for failure in report.failures), "\n".join(report.failures)
    assert re.fullmatch(r"\d+ failures?", report.summary_lines()[-1])
