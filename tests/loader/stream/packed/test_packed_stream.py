"""Streams of packed rows: each row once an epoch, the same order for any ranks, exact resume, wrong files refused."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from refinery.loader import PackedStream
from refinery.loader.errors import CorruptShard, FormatError
from refinery.loader.format.manifest import read_manifest
from refinery.loader.format.packed import PLACES, REQUIRED
from refinery.loader.format.parquet import batches as parquet_batches
from refinery.loader.order.order import OrderParams
from refinery.loader.storage.open_store import open_store
from refinery.loader.stream.fill_in_middle import FillInMiddleParams
from refinery.loader.stream.packed import packed_source
from refinery.loader.stream.packed.decoded_cache import DecodedParams
from refinery.loader.stream.packed.packed_source import PackedSource, row_files
from refinery.loader.stream.state import StateError
from tests.corpus_factory import EOS, build_corpus, edit_manifest
from tests.loader.streams import IGNORE, TEXTS, stream
from tests.packed_factory import add_packed_rows, rewrite_packed

L = 24
WEB0 = "packed/train/web/rows-00000-of-00004-00000.parquet"
ORDER = OrderParams(block=3, lanes=4, window=2)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return add_packed_rows(build_corpus(tmp_path_factory.mktemp("packed") / "corpus", TEXTS), L)


@pytest.fixture
def own(corpus: Path, tmp_path: Path) -> Path:
    """A copy to be damaged."""
    return shutil.copytree(corpus, tmp_path / "corpus")


def packed(corpus: Path, **options: Any) -> PackedStream:
    defaults: dict[str, Any] = {"sequence_length": L, "batch_size": 2, "seed": 5, "order": ORDER, "prefetch": 0}
    return PackedStream(str(corpus), **(defaults | options))


def stored(corpus: Path, domain: str = "*") -> list[dict[str, Any]]:
    """All rows of the training split's files."""
    paths = sorted((corpus / "packed/train").glob(f"{domain}/*.parquet"), key=lambda path: path.parts[-2:] < ("web",))
    return [row for path in paths for row in pq.read_table(path).to_pylist()]


def rows(batches: Any) -> list[tuple[list[int], list[int]]]:
    """(inputs, labels) of all rows except empty ones."""
    return [
        (inputs.tolist(), labels.tolist())
        for batch in batches
        for inputs, labels in zip(batch["input_ids"], batch["labels"], strict=True)
        if not (inputs == EOS).all()
    ]


def expected(row: dict[str, Any]) -> tuple[list[int], list[int]]:
    labels = [target if loss else IGNORE for target, loss in zip(row["target_ids"], row["loss_mask"], strict=True)]
    return row["input_ids"], labels


def test_every_row_once(corpus: Path) -> None:
    found = rows(packed(corpus, epochs=1))
    assert len(found) > 20
    assert sorted(found) == sorted(map(expected, stored(corpus)))
    two = rows(packed(corpus, epochs=2))
    assert two[: len(found)] == found
    assert two[len(found) :] != found and sorted(two[len(found) :]) == sorted(found)


def test_arrays(corpus: Path) -> None:
    """Shapes are those of TokenStream; masks say what the file's columns say."""
    known = {tuple(row["input_ids"]): row for row in stored(corpus)}
    options = {"loss_mask": True, "position_ids": True, "doc_ids": True, "cu_seqlens": True}
    for batch in packed(corpus, epochs=1, **options):
        ends = batch["cu_seqlens"].tolist()
        assert (ends[0], ends[-1]) == (0, 2 * L)
        for name, dtype in (("input_ids", np.int64), ("labels", np.int64), ("loss_mask", np.bool_),
                            ("position_ids", np.int32), ("doc_ids", np.int32)):  # fmt: skip
            assert (batch[name].shape, batch[name].dtype) == ((2, L), dtype)
        for i, inputs in enumerate(batch["input_ids"].tolist()):
            row = known.get(tuple(inputs))
            if row is None:
                assert (batch["doc_ids"][i] == -1).all() and not batch["loss_mask"][i].any()
                continue
            assert batch["doc_ids"][i].tolist() == row["doc_ids"]
            assert batch["loss_mask"][i].tolist() == row["loss_mask"]
            docs = np.array(row["doc_ids"])
            for number in range(row["num_docs"]):
                places = batch["position_ids"][i][docs == number]
                assert places.tolist() == list(range(len(places)))
                assert i * L + int(np.argmax(docs == number)) in ends


def test_columns_that_a_corpus_does_not_have(corpus: Path) -> None:
    """They are -1 everywhere, of the contract's types; a name alone, or an unknown one, is an error."""
    batches = list(packed(corpus, epochs=1, columns=("char_end", "chunk_kind")))
    assert rows(batches) == rows(packed(corpus, epochs=1))
    for batch in batches:
        for name, dtype in (("char_end", np.int32), ("chunk_kind", np.int8)):
            assert batch[name].shape == (2, L) and batch[name].dtype == dtype and (batch[name] == -1).all()
        assert "chunk_id" not in batch
    for wrong in ("chunk_id", ("chunk_id", "input_ids")):
        with pytest.raises(ValueError, match=r"^columns: '\w+' given, a list of chunk_kind, nesting_depth, chunk_id"):
            packed(corpus, columns=wrong)


@pytest.mark.parametrize(("world", "batch"), [(1, 6), (2, 3), (3, 2), (6, 1)])
def test_ranks(corpus: Path, world: int, batch: int) -> None:
    """A step has the same rows, however many ranks share it."""
    one = packed(corpus, batch_size=6)
    ranks = [packed(corpus, batch_size=batch, rank=rank, world_size=world) for rank in range(world)]
    for _ in range(9):
        step = sorted(rows([next(one)]))
        assert sorted(rows(next(rank) for rank in ranks)) == step


def test_resume(corpus: Path) -> None:
    """At every step, also with other ranks, in the epoch and behind it."""
    whole = packed(corpus, epochs=2)
    steps = list(packed(corpus, epochs=2))
    for done in range(len(steps)):
        again = packed(corpus, epochs=2)
        again.load_state_dict(whole.state_dict())
        left = [batch["input_ids"].tolist() for batch in again]
        assert left == [batch["input_ids"].tolist() for batch in steps[done:]]
        next(whole)
    state = packed(corpus).state_dict()
    ranks = [packed(corpus, batch_size=1, rank=rank, world_size=2, prefetch=1) for rank in range(2)]
    for rank in ranks:
        rank.load_state_dict(state)
    assert sorted(rows(next(rank) for rank in ranks)) == sorted(rows([next(packed(corpus))]))


def test_mixture(corpus: Path) -> None:
    weighted = packed(corpus, weights={"web": 1, "code": 3}, epochs=1)
    code, web = (set(map(str, map(expected, stored(corpus, name)))) for name in ("code", "web"))
    found = rows(weighted)
    kinds = ["code" if str(row) in code else "web" if str(row) in web else "" for row in found]
    assert "" not in kinds and kinds.count("code") == len(code)
    assert abs(weighted.mix["code"]["share"] - 0.75) < 0.15


def test_states_do_not_mix(corpus: Path) -> None:
    """The positions of packed rows and of tokens are different things."""
    tokens = stream(corpus, sequence_length=L)
    with pytest.raises(StateError, match="order"):
        tokens.load_state_dict(packed(corpus).state_dict())
    with pytest.raises(StateError, match="order"):
        packed(corpus).load_state_dict(tokens.state_dict())


def test_defaults(corpus: Path) -> None:
    """Blocks of the order are row groups; files and places are counted."""
    made = PackedStream(str(corpus), L, batch_size=2, epochs=1)
    assert made.order_params == OrderParams(block=1024, lanes=8, window=4)
    assert len(rows(made)) == len(stored(corpus))
    files = made.receipt()["shards"]
    assert sum(file["tokens"] for file in files) == L * len(stored(corpus))
    assert {file["path"].split("/")[0] for file in files} == {"packed"}


@pytest.mark.parametrize("prefetch", [0, 2])
def test_packing(corpus: Path, prefetch: int) -> None:
    """How full rows are, counted as batches are delivered, not as they are made."""
    made = packed(corpus, epochs=1, prefetch=prefetch)
    assert made.packing == {"rows": 0, "utilisation": 0.0, "documents_per_row": 0.0, "document_tokens": 0.0}
    next(made)
    assert made.packing["rows"] == 2
    made.load_state_dict(made.state_dict())  # starts anew after the batch delivered
    list(made)
    known = stored(corpus)
    rows, tokens = len(known), sum(row["valid_token_count"] for row in known)
    documents = sum(row["num_docs"] for row in known)
    assert made.packing == {
        "rows": rows,
        "utilisation": tokens / (rows * L),
        "documents_per_row": documents / rows,
        "document_tokens": tokens / documents,
    }


def test_little_memory(corpus: Path, tmp_path: Path) -> None:
    """Groups that do not fit are decoded again, with the same result."""
    manifest = read_manifest(open_store(str(corpus)))
    assert manifest.packed is not None
    files = row_files([s for s in manifest.shards if s.split == "train"], manifest.packed)
    found = []
    for memory in (1, 1 << 20):
        decoded = DecodedParams(tmp_path / "decoded", most_bytes=0, memory_bytes=memory)
        source = PackedSource(open_store(str(corpus)), files, manifest.packed, decoded=decoded)
        out = np.empty((3, L + 1), np.int64)
        for row in (0, 1, 0):
            source.read([0, 1, 0], [row, 0, row], out)
            found.append(out.tolist())
        source.close()
        with pytest.raises(RuntimeError, match="closed"):
            source.read([0], [0], out[:1])
    assert found[:3] == found[3:]


def no_loss_in_front(table: pa.Table) -> pa.Table:
    masks = [[False, False, *mask[2:]] for mask in table["loss_mask"].to_pylist()]
    place = table.schema.get_field_index("loss_mask")
    return table.set_column(place, table.schema.field(place), pa.array(masks, table.schema.field(place).type))


def test_less_loss(own: Path) -> None:
    """Where a row's own mask leaves more out, so do labels and mask of the batch."""
    rewrite_packed(own, WEB0, no_loss_in_front)
    files = {tuple(row["input_ids"]): row for row in stored(own)}
    for batch in packed(own, epochs=1, loss_mask=True):
        for inputs, labels, loss in zip(batch["input_ids"], batch["labels"], batch["loss_mask"], strict=True):
            if row := files.get(tuple(inputs.tolist())):
                assert (loss.tolist(), labels.tolist()) == (row["loss_mask"], expected(row)[1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sequence_length": 16}, "sequence_length: 16 given, 24, the rows', is allowed"),
        ({"fill_in_middle": FillInMiddleParams(1, 2, 3, 300)}, "fill_in_middle: given, rows are packed already"),
        ({"ignore_eos": True, "split": "test"}, "split: 'test' given"),
    ],
)
def test_arguments(corpus: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        packed(corpus, **options)


def test_no_rows(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="given, a corpus with packed rows is allowed"):
        packed(build_corpus(tmp_path / "corpus"))


def column(name: str, edit: Callable[[list[Any]], Any]) -> Callable[[pa.Table], pa.Table]:
    """Changes a column's values in place, or replaces them."""

    def change(table: pa.Table) -> pa.Table:
        values = table[name].to_pylist()
        values = edit(values) or values
        return table.set_column(table.schema.get_field_index(name), name, pa.array(values))

    return change


def first(value: Any) -> Callable[[list[Any]], list[Any]]:
    return lambda values: [value, *values[1:]]


def of_type(name: str, kind: pa.DataType) -> Callable[[pa.Table], pa.Table]:
    def change(table: pa.Table) -> pa.Table:
        place = table.schema.get_field_index(name)
        return table.set_column(place, name, pa.array(table[name].to_pylist(), kind))

    return change


AT_ONCE: list[Any] = [
    *((lambda table, name=name: table.drop_columns([name]), f"column {name}: 0 found, one expected")
      for name in REQUIRED),
    (lambda table: table.slice(1), r"\d+ rows found, \d+ expected"),
    (column("input_ids", lambda rows: [["a"]] * len(rows)), "column input_ids: string found, integers expected"),
    (column("target_ids", lambda rows: [1.5] * len(rows)), "column target_ids: double found, a list expected"),
    (column("num_docs", lambda rows: [[1]] * len(rows)), "column num_docs: list.* found, integers expected"),
    (lambda table: table.append_column("doc_ids", table["doc_ids"]), "column doc_ids: 2 found, one expected"),
    *((column(name, first([name == "loss_mask" or 1])), f"{name}: .* values in row group 0 found, .*: 24 in each row")
      for name in PLACES),
    (column("input_ids", lambda rows: [row[:-1] for row in rows]), "column input_ids: .* 24 in each row"),
    (column("valid_token_count", first(L + 1)), "column valid_token_count: .* to 25 found, 1 to 24 expected"),
    (column("valid_token_count", first(0)), "column valid_token_count: 0 to .* found, 1 to 24 expected"),
    (column("slack_tokens", first(-1)), "column slack_tokens: -1 to .* found, 0 to 24 expected"),
]  # fmt: skip


@pytest.mark.parametrize(("edit", "message"), AT_ONCE)
def test_wrong_columns(own: Path, edit: Callable[[pa.Table], pa.Table], message: str) -> None:
    """Refused when the stream is made: missing, of another kind or length, counts that no row can have."""
    rewrite_packed(own, WEB0, edit)
    with pytest.raises(FormatError, match=message):
        packed(own)


WHEN_DECODED: list[Any] = [
    (column("input_ids", lambda rows: [rows[0][:-1], [*rows[1], 0], *rows[2:]]), "row 0 has 23 values, 24 expected"),
    (column("doc_ids", lambda rows: rows[0].__setitem__(3, -1)), "row 0, place 2: doc_ids: they go back"),
    (column("doc_ids", lambda rows: [[v * 2 if v > 0 else v for v in row] for row in rows]), "they leave one out"),
    (column("num_docs", first(9)), "row 0: 9 found, num_docs"),
    (column("slack_tokens", first(7)), "slack_tokens: 24 less valid_token_count expected"),
    (column("input_ids", lambda rows: rows[0].__setitem__(0, 5)), "BOS"),
    (column("input_ids", lambda rows: rows[0].__setitem__(1, 300)), "input_ids: 0 to 257 expected"),
    (column("target_ids", lambda rows: rows[0].__setitem__(0, 3)), "target_ids: the next of input_ids"),
    (column("loss_mask", lambda rows: rows[0].__setitem__(23, True)), "loss_mask: false expected"),
    (column("num_docs", first(None)), "column num_docs: 1 nulls found, none expected"),
    (of_type("doc_ids", pa.list_(pa.float64())), "double found, integers expected"),
]


@pytest.mark.parametrize(("edit", "message"), WHEN_DECODED)
@pytest.mark.parametrize("check_first", [False, True])
def test_wrong_rows(own: Path, edit: Callable[[pa.Table], pa.Table], message: str, check_first: bool) -> None:
    """Nothing is delivered of a row group that has a wrong row; with check_first, the stream is not even made."""
    rewrite_packed(own, WEB0, edit)
    if check_first:
        with pytest.raises(FormatError, match=message):
            packed(own, check_first=True)
        return
    with pytest.raises(FormatError, match=message):
        list(packed(own, epochs=1))


def test_check_first(corpus: Path, tmp_path: Path) -> None:
    """The same batches; what was decoded is kept."""
    decoded = DecodedParams(tmp_path)
    assert rows(packed(corpus, epochs=1, check_first=True, decoded=decoded)) == rows(packed(corpus, epochs=1))
    assert list(tmp_path.rglob("*.rows"))


def test_reports(corpus: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Utilisation, documents a row and tokens a document, of every 3 batches; by default never."""
    reports: list[dict[str, float]] = []
    made = packed(corpus, epochs=1, packing_every=3, report=reports.append)
    sums = []
    for number, _ in enumerate(made, 1):
        if number % 3 == 0:
            sums.append(made.packing)
    assert len(reports) == len(sums) > 2
    for name in ("rows", "utilisation", "documents_per_row", "document_tokens"):
        assert all(report[name] > 0 for report in reports)
    assert sum(report["rows"] for report in reports) == sums[-1]["rows"]
    tokens = sum(report["rows"] * L * report["utilisation"] for report in reports)
    assert tokens == pytest.approx(sums[-1]["rows"] * L * sums[-1]["utilisation"])
    with caplog.at_level("INFO", "refinery.loader"):
        list(packed(corpus, epochs=1))
        assert "packing" not in caplog.text
        list(packed(corpus, epochs=1, packing_every=2))
    assert "packing: {'rows': 4, 'utilisation'" in caplog.text
    with pytest.raises(ValueError, match="packing_every: -1 given"):
        packed(corpus, packing_every=-1)


def test_damage(own: Path) -> None:
    """Noticed before it is parsed: at the end of the file when the stream is made, elsewhere when it is read."""
    good = (own / WEB0).read_bytes()
    for place in (100, len(good) // 2, len(good) - 9, len(good) - 1):
        (own / WEB0).write_bytes(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
        with pytest.raises(CorruptShard, match="crc32c"):
            list(packed(own, epochs=1))
    (own / WEB0).write_bytes(good[:-1])
    with pytest.raises(FormatError, match=r"found, \d+ expected"):
        packed(own)
    edit_manifest(own)  # checksums of a file that is not Parquet
    with pytest.raises(FormatError, match="not a readable Parquet file"):
        packed(own)


def test_a_row_group_is_looked_at_before_it_is_decoded(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its checksums are right: whoever forges a page or a footer can list it, too."""
    assert rows(packed(own, epochs=1))
    monkeypatch.setattr(parquet_batches, "MAX_PAGE", 40)
    with pytest.raises(FormatError, match=rf"{WEB0[:20]}.*: row group 0 has a page of [\d,]+ bytes, 40 or less"):
        rows(packed(own, epochs=1))
    monkeypatch.undo()
    monkeypatch.setattr(packed_source, "FOOTER_EACH", 100)
    with pytest.raises(FormatError, match=r"packed/train/.*: a footer of [\d,]+ bytes, [\d,]+ or less expected"):
        packed(own)
