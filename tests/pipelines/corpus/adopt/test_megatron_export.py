"""`refinery export --to megatron`: the shards' own .bin and .idx, bit for bit, from packed rows and from documents."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from refinery.loader import Corpus
from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import MANIFEST, Manifest, read_manifest
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.cli.command_line import execute
from refinery.pipelines.corpus.adopt.megatron_export import export_megatron
from refinery.pipelines.corpus.adopt.verify_adopted import verify_adopted
from tests.corpus_factory import BOS, EOS, TEXTS, build_corpus, edit_manifest, tokenizer_json
from tests.fake_gcs import fake_gcs
from tests.packed_factory import add_packed_rows, rewrite_packed
from tests.pipelines.corpus.export.exporting import export

L = 24  # most documents of the factory fit, one is cut to 44 pieces
WEB1 = "packed/train/web/rows-00001-of-00004-00000.parquet"
MANY = {**TEXTS, ("train", "web"): [*TEXTS["train", "web"], ["b" * 300, "c" * 23, "d" * 22, "", "e" * 47]]}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return add_packed_rows(build_corpus(tmp_path_factory.mktemp("packed") / "corpus", MANY), L)


@pytest.fixture
def own(tmp_path: Path) -> Path:
    return add_packed_rows(build_corpus(tmp_path / "corpus", MANY), L)


def quiet(line: str) -> None:
    pass


def exported(corpus: Any, output: Any) -> Manifest:
    return export_megatron(str(corpus), str(output), quiet)


def check_the_same(corpus: Path, output: Path) -> None:
    """Every .bin and .idx, to the byte, and the documents that they hold."""
    manifest = read_manifest(open_store(corpus))
    filled = [shard for shard in manifest.shards if shard.tokens]  # Megatron can read no others
    assert len(filled) == len(read_manifest(open_store(output)).shards) < len(manifest.shards)
    for shard in filled:
        for file in (shard.bin, shard.idx):
            assert (output / file.path).read_bytes() == (corpus / file.path).read_bytes(), file.path
        columns = ["id", "source", "token_offset", "token_count"]
        name = f"provenance/{shard.bin.path.removesuffix('.bin')}.parquet"
        expected = pq.read_table(corpus / shard.provenance.path, columns=columns)
        assert pq.read_table(output / name).to_pylist() == expected.to_pylist()
    assert verify_adopted(str(output)).failures == []


def test_packed_rows(corpus: Path, tmp_path: Path) -> None:
    """Documents that were cut are put together again. Without the .bin there, as of rows that travelled alone."""
    alone = tmp_path / "alone"
    for path in corpus.rglob("*"):
        if path.is_file() and not path.name.endswith((".bin", ".idx", ".provenance.parquet")):
            (alone / path.relative_to(corpus)).parent.mkdir(parents=True, exist_ok=True)
            (alone / path.relative_to(corpus)).write_bytes(path.read_bytes())
    exported(alone, tmp_path / "out")
    check_the_same(corpus, tmp_path / "out")


def test_documents(corpus: Path, tmp_path: Path) -> None:
    """Of an export with input_ids; its manifest has the tokens' digest."""
    export(corpus, tmp_path / "documents", "parquet", fields=("id", "source", "input_ids"))
    exported(tmp_path / "documents", tmp_path / "out")
    check_the_same(corpus, tmp_path / "out")


def test_documents_without_names(corpus: Path, tmp_path: Path) -> None:
    export(corpus, tmp_path / "documents", "huggingface", fields=("input_ids",))
    exported(tmp_path / "documents", tmp_path / "out")
    assert verify_adopted(str(tmp_path / "out")).failures == []
    export(corpus, tmp_path / "texts", "parquet", fields=("id", "text"))
    with pytest.raises(ValueError, match="with the field input_ids is allowed"):
        exported(tmp_path / "texts", tmp_path / "other")


def test_again(corpus: Path, tmp_path: Path) -> None:
    """After a crash the same command goes on; a finished one is refused; the same bytes in a bucket."""
    exported(corpus, tmp_path / "out")
    files = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    with pytest.raises(ValueError, match=r"holds manifest\.json already"):
        exported(corpus, tmp_path / "out")
    for name in (MANIFEST, "train/web/shard-00003-of-00004.idx"):
        (tmp_path / "out" / name).unlink()
    exported(corpus, tmp_path / "out")
    assert {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()} == files


def test_buckets(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with fake_gcs("in", "out") as server:
        server.use(monkeypatch)
        server.put_folder("in", "c/", corpus)
        exported("gs://in/c", "gs://out/m")
        near = exported(corpus, tmp_path / "m")
        files = server.read("out", "m/")
        assert set(files) == {path.relative_to(tmp_path / "m").as_posix() for path in (tmp_path / "m").rglob("*.*")}
        assert all(files[entry.path] == (tmp_path / "m" / entry.path).read_bytes() for entry in near.all_files)


def without_last_pieces(table: pa.Table) -> pa.Table:
    """The rows that hold a document's last pieces are gone, as from a folder that was copied in part."""
    return table.slice(0, len(table) - 3)


def renamed(table: pa.Table) -> pa.Table:
    """A piece tells of another place in its document."""
    values = [[start + 1 if start else 0 for start in starts] for starts in table["document_starts"].to_pylist()]
    place = table.schema.get_field_index("document_starts")
    return table.set_column(place, table.schema.field(place), pa.array(values, table.schema.field(place).type))


def other_tokens(table: pa.Table) -> pa.Table:
    """Valid rows of other tokens."""
    values = [[65 if token == 97 else token for token in row] for row in table["input_ids"].to_pylist()]
    targets = [[65 if token == 97 else token for token in row] for row in table["target_ids"].to_pylist()]
    for name, rows in (("input_ids", values), ("target_ids", targets)):
        place = table.schema.get_field_index(name)
        table = table.set_column(place, table.schema.field(place), pa.array(rows, table.schema.field(place).type))
    return table


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (without_last_pieces, "have sha256|is incomplete"),
        (renamed, r"a piece from token 25 on found, one from 24 on expected: .* is incomplete"),
        (other_tokens, "the documents cannot be put together again"),
        (lambda table: table.drop_columns(["document_starts"]), "column document_starts is missing"),
    ],
)
def test_what_cannot_be_proved(own: Path, tmp_path: Path, edit: Callable[[pa.Table], pa.Table], message: str) -> None:
    rewrite_packed(own, WEB1, edit)
    with pytest.raises(FormatError, match=message):
        exported(own, tmp_path / "out")
    assert not (tmp_path / "out" / MANIFEST).exists()


def test_damage(own: Path, tmp_path: Path) -> None:
    data = (own / WEB1).read_bytes()
    (own / WEB1).write_bytes(data[:200] + b"x" + data[201:])
    with pytest.raises(FormatError, match=rf"{WEB1}: .*sha256"):
        exported(own, tmp_path / "out")


def test_commands(corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "out")
    assert execute(["export", str(corpus), "--to", "megatron", "--output", out]) == 0
    assert execute(["verify", out]) == 0
    assert "all checks passed" in capsys.readouterr().out
    for more, message in (
        (["--dtype", "int32"], "--dtype: given with --to megatron"),
        (["--single-file"], "--single-file: given with --to megatron"),
    ):
        assert execute(["export", str(corpus), "--to", "megatron", "--output", out + "x", *more]) == 2
        assert message in capsys.readouterr().err
    assert execute(["export", str(corpus), "--to", "megatron", "--output", str(corpus / "x")]) == 2
    assert execute(["export", str(build_corpus(tmp_path / "plain")), "--to", "megatron", "--output", out + "x"]) == 2
    assert "no packed rows there" in capsys.readouterr().err


def test_edited_seed(own: Path, tmp_path: Path) -> None:
    """Another order is not that of the .bin: the digest says so."""
    edit_manifest(own, lambda payload: payload["recipe"]["shards"].update(seed=77))
    with pytest.raises(FormatError, match="the documents cannot be put together again"):
        exported(own, tmp_path / "out")


@pytest.fixture
def tokenizer(tmp_path: Path) -> str:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(tokenizer_json())
    return str(path)


def test_parquet_of_other_tools(tmp_path: Path, tokenizer: str) -> None:
    """A shard for each file, with the tokens of its rows; ids and sources where they are there."""
    (tmp_path / "in").mkdir()
    documents = [[[BOS, 1, 2, EOS], [BOS, EOS]], [[BOS, 7, EOS]]]
    id_ = "ab" * 16
    pq.write_table(
        pa.table({"input_ids": documents[0], "id": [id_, "x"], "source": ["a", None]}), tmp_path / "in/1.parquet"
    )
    pq.write_table(pa.table({"input_ids": documents[1], "id": [5]}), tmp_path / "in/2.parquet")
    export_megatron(str(tmp_path / "in"), str(tmp_path / "out"), quiet, tokenizer)
    found = [[shard[i].tolist() for i in range(len(shard))] for shard in Corpus(str(tmp_path / "out")).shards()]
    assert found == documents
    origin = pq.read_table(tmp_path / "out/provenance/train/corpus/shard-00000-of-00002.parquet").to_pylist()
    assert [(row["id"].hex(), row["source"], row["token_count"]) for row in origin] == [
        (id_, "a", 4),
        ("00" * 16, "", 2),
    ]
    assert verify_adopted(str(tmp_path / "out")).failures == []


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"text": ["a"]}, "column input_ids: nothing found"),
        ({"input_ids": [5]}, "column input_ids: int64 found"),
        ({"input_ids": [["a"]]}, "nulls, or no integers"),
        ({"input_ids": [[BOS, None]]}, "nulls, or no integers"),
        ({"input_ids": [None, [BOS]]}, "nulls, or no integers"),
        ({"input_ids": [[BOS, 70_000, EOS]]}, "256 to 70000 found, 0 to 257 expected"),
        ({"input_ids": [[BOS, -1, EOS]]}, "-1 to 257 found, 0 to 257 expected"),
        ({"input_ids": [[BOS, 1, EOS]], "doc_ids": [[0, 0, 0]]}, "packed rows without a manifest"),
        ({"input_ids": [[1, EOS]]}, "0 of 1 documents begin with BOS"),
    ],
)
def test_wrong_parquet(tmp_path: Path, tokenizer: str, columns: dict[str, Any], message: str) -> None:
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table(columns), tmp_path / "in/1.parquet")
    with pytest.raises(FormatError, match=message):
        export_megatron(str(tmp_path / "in"), str(tmp_path / "out"), quiet, tokenizer)
    assert not (tmp_path / "out" / MANIFEST).exists()


def test_tokenizers(corpus: Path, tmp_path: Path, tokenizer: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Needed where there is no manifest, and there alone."""
    (tmp_path / "in").mkdir()
    with pytest.raises(ValueError, match=r"manifest\.json is missing: --tokenizer FILE is needed"):
        exported(tmp_path / "in", tmp_path / "out")
    with pytest.raises(ValueError, match=r"manifest\.json is there: it has its own tokenizer"):
        export_megatron(str(corpus), str(tmp_path / "out"), quiet, tokenizer)
    with pytest.raises(ValueError, match=r"no \.parquet files there"):
        export_megatron(str(tmp_path / "in"), str(tmp_path / "out"), quiet, tokenizer)
    (tmp_path / "in/1.parquet").write_bytes(b"PAR1 no PAR1")
    with pytest.raises(FormatError, match="not a readable Parquet file"):
        export_megatron(str(tmp_path / "in"), str(tmp_path / "out"), quiet, tokenizer)
    pq.write_table(pa.table({"input_ids": [[1, EOS]]}), tmp_path / "in/1.parquet")
    words = ["export", str(tmp_path / "in"), "--output", str(tmp_path / "out")]
    assert execute([*words, "--to", "megatron", "--tokenizer", tokenizer, "--no-bos"]) == 0
    assert execute([*words, "--to", "jsonl", "--tokenizer", tokenizer]) == 2
    assert execute([*words, "--to", "megatron", "--no-eos"]) == 2
    assert "given without --tokenizer" in capsys.readouterr().err
