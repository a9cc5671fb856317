"""verify notices a takedown that left something, lists what did not go, or hides what did."""

import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import read_manifest, seal, unseal
from refinery.loader.format.parquet import batches as parquet_batches
from refinery.loader.format.removals import REMOVALS_SCHEMA, write_removals
from refinery.loader.format.takedown import REMOVED_SCHEMA, write_rows
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import checksums
from refinery.pipelines.corpus.checks.file_checks import collect
from refinery.pipelines.corpus.checks.takedowns import check_left
from refinery.pipelines.corpus.verify.verify import verify
from tests.corpus_factory import replace_manifest
from tests.pipelines.corpus.remove.conftest import Place
from tests.pipelines.corpus.remove.corpora import remove, rows, write_list
from tests.plain_manifest import manifest_of
from tests.sampling import FILE_ON_ONE_COMMIT_IN_FOUR
from tests.shared import shared

pytestmark = FILE_ON_ONE_COMMIT_IN_FOUR

PROOF, REMOVED = "takedowns/00001/removal.json", "takedowns/00001/removed.parquet"


@pytest.fixture(scope="module")
def made(taken: Place, tmp_path_factory: pytest.TempPathFactory) -> Path:
    def fill(folder: Path) -> None:
        remove(taken.prefix, folder / "new", "--urls", write_list(folder / "urls", ["https://a.example/1"]))

    return shared(tmp_path_factory, "made", fill) / "new"


def copy(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "lie")
    return tmp_path / "lie"


def edit(prefix: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """The manifest, sealed anew, with the checksums of the takedown's files as they are now."""
    payload = manifest_of(prefix)
    for file in payload["files"]:
        if file["path"].startswith("takedowns/"):
            file |= checksums(prefix / file["path"])._asdict()
    change(payload)
    replace_manifest(prefix, payload)


def edit_proof(prefix: Path, change: Callable[[dict[str, Any]], None]) -> None:
    path = prefix / PROOF
    payload = unseal(path.read_bytes(), PROOF)
    change(payload)
    path.write_bytes(seal(payload))
    edit(prefix, lambda manifest: None)


def edit_listing(prefix: Path, change: Callable[[list[dict[str, Any]]], None]) -> None:
    listed = pq.read_table(prefix / REMOVED).to_pylist()
    change(listed)
    (prefix / REMOVED).unlink()
    write_rows(prefix / REMOVED, pa.Table.from_pylist(listed, schema=REMOVED_SCHEMA))
    edit(prefix, lambda manifest: None)


def left(proof: dict[str, Any]) -> None:
    proof["left"]["in_removals"] = 1


def fewer(proof: dict[str, Any]) -> None:
    proof["removed"]["documents"] -= 1


def other_sums(proof: dict[str, Any]) -> None:
    proof["totals"]["tokens"] += 1


@pytest.mark.parametrize(
    ("change", "said"),
    [(left, "requested rows are still there"), (fewer, "removed and reinstated"), (other_sums, "do not make the")],
)
def test_a_proof_that_does_not_add_up(change: Any, said: str, made: Path, tmp_path: Path) -> None:
    prefix = copy(made, tmp_path)
    edit_proof(prefix, change)
    assert any(said in failure for failure in verify(str(prefix), decode=False).failures)


def test_a_document_that_is_listed_and_still_there(made: Path, tmp_path: Path) -> None:
    prefix = copy(made, tmp_path)
    there = rows(prefix, ("id", "source", "origin"))[0]
    edit_listing(prefix, lambda listed: listed[0].update(there))
    failures = verify(str(prefix), decode=False).failures
    assert any("rows of what a takedown lists as removed" in failure for failure in failures), failures


def test_a_removal_in_favour_of_what_went(made: Path, tmp_path: Path) -> None:
    """Every row of removals/ leads to a document that is there: not to one that a takedown took out."""
    prefix = copy(made, tmp_path)
    gone = next(row["id"] for row in pq.read_table(prefix / REMOVED).to_pylist() if row["split"])
    (path,) = sorted((prefix / "removals").glob("*"))
    removed = pq.read_table(path).to_pylist()
    next(row for row in removed if row["reason"] == "near-duplicate")["kept_id"] = gone
    path.unlink()
    write_removals(path, [pa.Table.from_pylist(removed, schema=REMOVALS_SCHEMA)])

    def describe(payload: dict[str, Any]) -> None:
        for file in payload["files"]:
            if file["path"].startswith("removals/"):
                file |= checksums(path)._asdict()

    edit(prefix, describe)
    failures = verify(str(prefix), decode=False).failures
    assert any("1 kept documents were taken out" in failure for failure in failures), failures


def test_a_listing_with_other_counts(made: Path, taken: Place, tmp_path: Path) -> None:
    prefix = copy(made, tmp_path)

    def shift(listed: list[dict[str, Any]]) -> None:
        next(row for row in listed if row["split"])["token_count"] += 1

    edit_listing(prefix, shift)
    failures = verify(str(prefix), decode=False, against=str(taken.prefix)).failures
    assert any("tokens listed" in failure for failure in failures)
    assert any("were there" in failure for failure in failures)


def test_another_row_than_the_listed_one(made: Path, taken: Place, tmp_path: Path) -> None:
    """The counts hold, and the two versions do not."""
    prefix = copy(made, tmp_path)

    def swap(listed: list[dict[str, Any]]) -> None:
        row = next(row for row in listed if row["split"])
        row["row"] += 1 if not row["row"] else -1

    edit_listing(prefix, swap)
    failures = verify(str(prefix), decode=False, against=str(taken.prefix)).failures
    assert failures and all("not" in failure or "other" in failure for failure in failures), failures


def test_against_another_corpus(made: Path, taken: Place, tmp_path: Path) -> None:
    (failure,) = verify(str(made), decode=False, against=str(made)).failures
    assert "the version before has" in failure
    (failure,) = verify(str(taken.prefix), decode=False, against=str(made)).failures
    assert "no takedown made this corpus" in failure
    (failure,) = verify(str(made), decode=False, against=str(tmp_path / "no")).failures
    assert "manifest.json is missing" in failure


def test_rows_and_listings_are_looked_at_before_they_are_read(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their checksums say that they are what a manifest lists, not that a page of them fits into memory."""
    store = open_store(str(made))
    manifest = read_manifest(store)
    last = manifest.takedowns[-1]
    checks: list[tuple[str, Callable[[], Iterable[str]]]] = [
        (last.removed, lambda: verify(str(made), decode=False).failures),
        (last.removed, lambda: check_left(store, manifest)),
        ("provenance", lambda: check_left(store, manifest)),
    ]
    assert [failure for _, check in checks for failure in check()] == []
    allowed = parquet_batches.check_pages

    for which, check in checks:

        def pages(stream: Any, path: str, *more: Any, which: str = which) -> Any:
            if which in path:
                raise FormatError(f"{path}: has a page of 999 GB")
            return allowed(stream, path, *more)

        monkeypatch.setattr(parquet_batches, "check_pages", pages)
        assert any("has a page of 999 GB" in failure for failure in collect(which, check()))


def test_the_proof_has_no_text_and_no_place_of_this_machine(made: Path, taken: Place) -> None:
    proof = (made / PROOF).read_text()
    assert str(taken.prefix) not in proof and str(made) not in proof and "https://" not in proof
    assert json.loads(proof)["request"]["lists"]["urls"]["lines"] == 1
