"""The lookup index of a finished run: what trace opens with it, and what verify says of one that is wrong."""

import re
from collections.abc import Callable
from pathlib import Path
from shutil import copytree
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from refinery.loader.errors import FormatError
from refinery.loader.storage.store import LocalStore
from refinery.pipelines.corpus.trace.answers import Dead, Kept, Missing, Query, Rejected, Removed
from refinery.pipelines.corpus.trace.trace_documents import trace
from refinery.pipelines.corpus.verify.verify import verify
from refinery.pipelines.run.api import refine
from refinery.transforms.write.lookup import entries
from refinery.transforms.write.lookup.entries import SCHEMA, key_hash, write_entries
from refinery.transforms.write.lookup.tasks import files_for
from tests.corpus_factory import edit_manifest
from tests.sampling import one_commit_in_four

KINDS = {"train/s": Kept, "removals": Removed, "rejects": Rejected, "dead_letters": Dead}
NOWHERE = "https://nowhere.example/"


@pytest.fixture(scope="module")
def corpus(small: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Several shards and several files of the index, so a job wrote it; without work/."""
    prefix = tmp_path_factory.mktemp("indexed") / "corpus"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(entries, "ROWS_PER_FILE", 8)
        settings = ["rejects.rate=1.0", "shards.target_bytes=400"]
        refine(small / "recipe.yaml", prefix, settings=settings, workers=0, discard_work=True)
    return prefix


def rows_of(corpus: Path, place: str) -> list[dict[str, Any]]:
    paths = sorted((corpus / place).glob("*.provenance.parquet" if "/" in place else "*.parquet"))
    return [row for path in paths for row in pq.read_table(path).to_pylist()]


def index_of(corpus: Path) -> list[Path]:
    return sorted((corpus / "lookup").iterdir())


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    names: list[str] = []
    real: Callable[..., Any] = LocalStore.open

    def spy(store: LocalStore, name: str) -> Any:
        names.append(name)
        return real(store, name)

    monkeypatch.setattr(LocalStore, "open", spy)
    return names


@one_commit_in_four
def test_every_row_is_found_in_the_files_that_the_index_names(corpus: Path, opened: list[str]) -> None:
    assert len(index_of(corpus)) > 3 and len(list((corpus / "train/s").glob("*.bin"))) > 2
    for place, kind in KINDS.items():
        rows = rows_of(corpus, place)
        assert rows
        for row in rows:
            for field in ("url", "origin"):
                if not row.get(field):
                    continue
                opened.clear()
                found = [answer for _, answer in trace(str(corpus), [Query(field, row[field])]).answers]
                assert kind in map(type, found)
                assert sum(name.startswith("lookup/") for name in opened) == 1
                beside = {name for name in opened if name.partition("/")[0] in ("train", "removals", "rejects")}
                assert len(beside) <= 2  # of a removed document also the shard of the one kept instead


def test_packed_rows_are_no_documents_of_their_own(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index has as many files as without them."""
    monkeypatch.setattr(entries, "ROWS_PER_FILE", 4)
    settings = ["tokenizer.bos=^", "packed.length=32"]
    refine(small / "recipe.yaml", tmp_path, settings=settings, workers=0, discard_work=True)
    assert list((tmp_path / "packed").rglob("*.parquet"))
    counts = [len(rows_of(tmp_path, place)) for place in ("train/s", "removals", "rejects", "dead_letters")]
    counts[0] += len(rows_of(tmp_path, "validation/s"))
    assert len(index_of(tmp_path)) == files_for(*counts) > 3


def test_answers_are_those_without_an_index_and_nothing_is_opened_for_an_unknown_address(
    corpus: Path, tmp_path: Path, opened: list[str]
) -> None:
    told: list[str] = []
    queries = [
        *(Query("url", row["url"]) for place in KINDS for row in rows_of(corpus, place) if row.get("url")),
        *(Query("origin", row["origin"]) for place in KINDS for row in rows_of(corpus, place)),
        Query("url", NOWHERE),
    ]
    with_index = trace(str(corpus), queries, say=told.append)
    assert told == []
    opened.clear()
    assert isinstance(trace(str(corpus), [Query("url", NOWHERE)]).answers[0][1], Missing)
    assert {name.partition("/")[0] for name in opened if name.endswith(".parquet")} == {"lookup", "manifests"}
    older = copytree(corpus, tmp_path / "older")
    for path in index_of(older):
        path.unlink()
    edit_manifest(older, without_index)
    assert verify(str(older)).failures == []
    without = trace(str(older), queries, say=told.append)
    assert without.answers == with_index.answers
    assert told == ["this corpus has no lookup index: addresses and origins are searched in every file"]


def without_index(payload: dict[str, Any]) -> None:
    payload["files"] = [file for file in payload["files"] if not file["path"].startswith("lookup/")]


def change(index: int, edit: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> Callable[[Path], None]:
    """Write a file of the index anew with other rows."""

    def write(corpus: Path) -> None:
        path = index_of(corpus)[index]
        rows = edit(pq.read_table(path).to_pylist())
        path.unlink()
        pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), path)
        edit_manifest(corpus)

    return write


def replace_place(rows: list[dict[str, Any]], number: int) -> list[dict[str, Any]]:
    """The first entry of a shard names another one."""
    at = next(i for i, row in enumerate(rows) if row["place"] == "train/s" and row["file"] != number)
    return [{**row, "file": number} if i == at else row for i, row in enumerate(rows)]


def lose_file(corpus: Path) -> None:
    path = index_of(corpus)[-1]
    path.unlink()
    gone = f"lookup/{path.name}"
    edit_manifest(
        corpus, lambda payload: payload["files"].remove(next(f for f in payload["files"] if f["path"] == gone))
    )


def foreign_file(corpus: Path) -> None:
    write_entries(corpus / "lookup/part-00000-of-00001.parquet", [SCHEMA.empty_table()])


def other_columns(corpus: Path) -> None:
    pq.write_table(pa.table({"hash": [1]}), index_of(corpus)[0])
    edit_manifest(corpus)


FIRST = r"lookup/part-00000-of-\d{5}.parquet: "


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (change(0, lambda rows: rows[1:]), r"lookup/: \d+ entries of [a-z_/]+ found, \d+ expected from its files"),
        (
            change(0, lambda rows: replace_place(rows, 0)),
            r"lookup/: the \d+ entries of train/s are not those of the rows",
        ),
        (change(0, lambda rows: rows[::-1]), FIRST + r"\d+ entries out of order, or repeated; the first: row 1"),
        (change(0, lambda rows: [rows[0], *rows]), FIRST + "1 entries out of order, or repeated; the first: row 1"),
        (
            change(0, lambda rows: [*rows, {**rows[-1], "hash": 2**64 - 1}]),
            FIRST + "1 entries that belong to the range of another file",
        ),
        (change(0, lambda rows: replace_place(rows, 10**6)), FIRST + "1 entries that name no file of the corpus"),
        (change(0, lambda rows: [{**row, "place": "train/\x1b"} for row in rows]), FIRST + r"\d+ entries that name no"),
        (lose_file, r"lookup/: \[.*\] found, files 0 to \d+ of \d+ expected"),
        (foreign_file, "lookup/part-00000-of-00001.parquet: not in manifest.json"),
        (other_columns, FIRST + r"its columns are not those of the format: \['hash: int64'\] found"),
    ],
)
def test_verify_finds_what_is_wrong(corpus: Path, tmp_path: Path, damage: Callable[[Path], None], said: str) -> None:
    copy = copytree(corpus, tmp_path / "copy")
    damage(copy)
    failures = verify(str(copy)).failures
    assert any(re.match(said, failure) for failure in failures), failures


def test_hashes_that_collide_cost_a_look_and_no_wrong_answer(corpus: Path, tmp_path: Path, opened: list[str]) -> None:
    assert verify(str(corpus)).failures == []
    copy = copytree(corpus, tmp_path / "copy")
    hash_, shard = key_hash("url", NOWHERE), int(next((copy / "train/s").glob("*.bin")).name[6:11])
    collide = change(
        (hash_ >> 32) * len(index_of(copy)) >> 32,
        lambda rows: sorted([*rows, {"hash": hash_, "place": "train/s", "file": shard}], key=lambda row: row["hash"]),
    )
    collide(copy)
    opened.clear()
    assert isinstance(trace(str(copy), [Query("url", NOWHERE)]).answers[0][1], Missing)
    assert sum(name.endswith(".provenance.parquet") for name in opened) == 1


def test_an_index_that_is_empty_or_damaged(corpus: Path, tmp_path: Path) -> None:
    copy = copytree(corpus, tmp_path / "copy")
    for path in index_of(copy):
        path.unlink()
        write_entries(path, [SCHEMA.empty_table()])
    assert isinstance(trace(str(copy), [Query("url", rows_of(copy, "train/s")[0]["url"])]).answers[0][1], Missing)
    for path in index_of(copy):
        path.write_bytes(b"PAR1" * 9)
    with pytest.raises(FormatError, match=r"lookup/part-0000\d-of-0000\d.parquet: not a readable Parquet file"):
        trace(str(copy), [Query("url", NOWHERE)])
