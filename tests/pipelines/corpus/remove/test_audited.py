"""Audits after takedowns: what was taken out is accounted for, and what is believed of the listings is said."""

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from refinery.loader.format.manifest import seal, unseal
from refinery.loader.format.takedown import REMOVED_SCHEMA, write_rows
from refinery.pipelines.corpus.audit.audit import audit
from refinery.pipelines.corpus.audit.recorded import Asked
from refinery.pipelines.corpus.audit.sample import Sample
from refinery.pipelines.corpus.audit.verdict import Verdict
from tests.corpus_factory import edit_manifest
from tests.pipelines.corpus.remove.corpora import remove, rows, write_list
from tests.pipelines.corpus.remove.families import Corpus, Record, sentence
from tests.sampling import FILE_ON_ONE_COMMIT_IN_FOUR
from tests.shared import shared

pytestmark = FILE_ON_ONE_COMMIT_IN_FOUR


def text(name: str, *numbers: int) -> str:
    return " ".join(sentence(name, number) for number in numbers)


BENCHMARK = text("item", 0, 1)
RECORDS = [
    Record("web", "https://web.example/1", text("one", *range(8))),
    Record("books", "https://books.example/1", text("one", *range(9))),  # comes back, and is an item's: it is dropped
    Record("letters", "https://letters.example/1", text("one", *range(8), 11)),
    Record("web", "https://web.example/2", text("two", *range(8))),
    Record("books", "https://books.example/2", text("two", *range(8))),
    Record("web", "https://web.example/3", f"{text('three', *range(6))} {BENCHMARK}"),  # dropped, and in rejects/
    Record("books", "https://books.example/4", f"{text('four', *range(6))} {BENCHMARK}"),
    *(Record(source, f"https://{source}.example/5", text(f"{source}5", *range(8))) for source in ("books", "letters")),
    Record("letters", "https://letters.example/6", text("six", *range(8))),
]


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A corpus, and three takedowns: by source, by host and by address."""

    def fill(folder: Path) -> None:
        corpus = Corpus(folder / "in", RECORDS, [BENCHMARK, text("one", 7, 8)])
        corpus.refine(folder / "0")
        work = ("--work", folder / "0" / "work")
        remove(folder / "0", folder / "1", "--source", "web", *work)
        remove(folder / "1", folder / "2", "--hosts", write_list(folder / "h", ["books.example"]), *work)
        remove(folder / "2", folder / "3", "--urls", write_list(folder / "u", ["https://letters.example/5"]), *work)

    folder = shared(tmp_path_factory, "audited", fill)
    return [folder / str(number) for number in range(4)]


def audited(prefix: Path) -> Verdict:
    return audit(Asked(str(prefix)), Sample(1.0), 0, None, lambda line: None)


def test_honest_versions_pass(versions: list[Path]) -> None:
    for number, prefix in enumerate(versions):
        verdict = audited(prefix)
        lines = list(verdict.lines())
        assert verdict.is_sound, lines
        taken = {what: count for what, count in verdict.outcome.agreed.items() if what.startswith("taken out")}
        assert len(verdict.believed) == number and bool(taken) == bool(number)
        documents = sum(row["in"]["documents"] for row in manifest(prefix)["funnel"] if row["stage"] == "read")
        assert verdict.units + verdict.outcome.undecided.total() == documents == len(RECORDS)
    assert taken["taken out by takedown 1: it was asked for"] == 2
    assert any("takedown 1, by --source web: that 2 documents" in line for line in lines)
    assert any("--urls (a list known by its SHA-256 alone)" in line for line in lines)


def manifest(prefix: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((prefix / "manifest.json").read_bytes())
    return found


def drop_from_the_listing(listed: list[dict[str, Any]]) -> None:
    listed.remove(next(row for row in listed if row["split"]))


def other_tokens(listed: list[dict[str, Any]]) -> None:
    next(row for row in listed if row["split"])["token_count"] += 1


def other_record(listed: list[dict[str, Any]]) -> None:
    next(row for row in listed if row["split"])["origin"] += "7"


def list_what_is_there(listed: list[dict[str, Any]]) -> None:
    listed[0] |= {"id": THERE["id"], "source": THERE["source"], "origin": THERE["origin"], "url": THERE["url"]}


THERE: dict[str, Any] = {}


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (drop_from_the_listing, "missing"),
        (other_tokens, "another value"),
        (other_record, "not of any record"),
        (list_what_is_there, "not of any record"),
    ],
)
def test_listings_that_lie(change: Any, what: str, versions: list[Path], tmp_path: Path) -> None:
    prefix = shutil.copytree(versions[1], tmp_path / "forged")
    THERE.update(rows(prefix, ("id", "url", "source", "origin"))[0])
    path = prefix / "takedowns/00001/removed.parquet"
    listed = pq.read_table(path).to_pylist()
    change(listed)
    path.unlink()
    write_rows(path, pa.Table.from_pylist(listed, schema=REMOVED_SCHEMA))
    edit_manifest(prefix, lambda payload: None)
    verdict = audited(prefix)
    assert not verdict.is_sound and what in {finding.what for finding in verdict.outcome.findings}


def test_more_rejects_are_missing_than_a_takedown_took(versions: list[Path], tmp_path: Path) -> None:
    prefix = shutil.copytree(versions[2], tmp_path / "forged")
    assert audited(prefix).outcome.undecided.total() == 3, "the source or the host of the dropped ones was asked for"
    path = prefix / "takedowns/00002/removal.json"
    proof = unseal(path.read_bytes(), "proof")
    proof["rejects_removed"] = 0
    path.write_bytes(seal(proof))
    edit_manifest(prefix, lambda payload: None)
    assert [finding.what for finding in audited(prefix).outcome.findings] == ["missing"] * 2
