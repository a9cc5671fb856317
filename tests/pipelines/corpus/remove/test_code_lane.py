"""Takedowns of a corpus of source code, with packed rows: by licence, and training that goes on."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from refinery.loader import TokenStream
from refinery.loader.stream.packed.packed_stream import PackedStream
from refinery.loader.stream.state import StateError
from refinery.pipelines.corpus.verify.verify import verify
from tests.pipelines.code_runs import LENGTH, make_code_inputs, records, write_records
from tests.pipelines.corpus.remove.corpora import remove, rows
from tests.pipelines.inputs import run
from tests.sampling import FILE_ON_ONE_COMMIT_IN_FOUR
from tests.shared import shared

pytestmark = FILE_ON_ONE_COMMIT_IN_FOUR

ASKED, OTHER = "Apache-2.0", "MIT"
COLUMNS = ("url", "license", "source", "origin")


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of files under two licences, without what a takedown could not bring back; and without one of them."""

    def fill(folder: Path) -> None:
        inputs = make_code_inputs(folder / "in")
        found = records()
        licences = {"lib/near.c": ASKED, "lib/login.c": ASKED, "lib/helper.c": f"{OTHER} OR {ASKED}"}
        for name in range(2):
            mine = [row | {"repo_license": licences.get(row["path"], row.get("repo_license"))} for row in found]
            write_records(inputs / f"{name}.jsonl", mine[name::2])
        run("refine", inputs / "recipe.yaml", "--output", folder / "old", "--workers", 0, "--set", "chunk_dup=null")
        remove(folder / "old", folder / "new", "--licence", ASKED)

    return shared(tmp_path_factory, "code-takedown", fill)


def test_by_licence(code: Path) -> None:
    """Files whose expression names it go; copies of theirs under another licence come back, from the work files."""
    before, after = (rows(code / name, COLUMNS) for name in ("old", "new"))
    gone = [row for row in before if row not in after]
    assert {row["license"] for row in gone} == {ASKED, f"{OTHER} OR {ASKED}"}
    assert not [row for row in after if ASKED in row["license"]] and len(after) > len(before) / 2
    back = [row for row in after if row not in before]
    assert [(row["url"].rpartition("/")[2], row["license"]) for row in back] == [("body.c", OTHER)]
    assert verify(str(code / "new"), against=str(code / "old")).failures == []
    again = run("remove", code / "new", "--licence", ASKED.lower(), "--dry-run", "--workers", 0)
    assert again.stdout.startswith("0 documents with 0 tokens would go")


def test_packed_rows_are_others_and_say_so(code: Path) -> None:
    """A state of packed rows does not load into a later version, and leaves the stream as it was; one of TokenStream
    does. What the new rows hold are the documents that stay and those that came back."""
    options: Any = {"sequence_length": LENGTH, "batch_size": 2, "seed": 5, "epochs": 1, "prefetch": 0}
    with PackedStream(str(code / "old"), **options) as old, PackedStream(str(code / "new"), **options) as new:
        next(old)
        state = new.state_dict()
        with pytest.raises(
            StateError, match=r"3 documents were taken since.* or start without a state.*TokenStream can continue"
        ):
            new.load_state_dict(old.state_dict())
        assert new.state_dict() == state
        delivered = sum(int(batch["input_ids"].size) for batch in new)
        assert delivered and new.packing["rows"] == sum(
            file.rows or 0 for s in new.manifest.shards if s.split == "train" for file in s.packed
        )
    with TokenStream(str(code / "old"), **options) as old, TokenStream(str(code / "new"), **options) as new:
        next(old)
        new.load_state_dict(old.state_dict())
        assert new.not_delivered is not None and new.not_delivered.documents == 3
        assert sum(1 for _ in new) == sum(1 for _ in old)
    names = {row["id"].hex() for row in rows(code / "new", ("id",))}
    packed = {
        id_.hex()
        for path in sorted((code / "new").rglob("packed/**/*.parquet"))
        for ids in pq.read_table(path, columns=["document_ids"])["document_ids"].to_pylist()
        for id_ in ids
    }
    assert packed == names
