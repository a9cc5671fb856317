"""Labels with places in the text, in rows and beside them: what a step would change, without the change."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import refinery
from refinery.pipelines.corpus.verify.verify import verify
from refinery.transforms.extract.clean_text import clean_text
from refinery.transforms.write.rows.spans import read_spans
from refinery.transforms.write.rows.text_places import gaps
from tests.pipelines.run.steps.test_steps import text

QUICKLY: Mapping[str, Any] = {"workers": 0, "quiet": True}
COOKIES = "Accept all cookies of this site."
# As crawls have them: line ends of Windows, a composed letter, soft hyphens.
ROWS = [
    *({"id": f"r{n}", "text": f"{text(n, 20)}\r\n{COOKIES}\r\n\r\ncafe\u0301 {text(n + 50, 60)}"} for n in range(8)),
    {"id": "again", "text": f"so\u00adft\r\n{text(50, 60)} {text(99, 30)}"},
    {"id": "none", "text": None},
]


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


@pytest.fixture
def given(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    return tmp_path / "in" / "a.jsonl"


def test_without_its_spans_a_text_is_what_the_step_writes(given: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"lines": True, "substrings": True, **QUICKLY}
    refinery.dedup(str(given), tmp_path / "cut", **options)
    refinery.dedup(str(given), tmp_path / "labels", annotate=True, **options)
    cut = {row["id"]: row["text"] for row in lines_of(tmp_path / "cut" / "a.jsonl")}
    labelled = lines_of(tmp_path / "labels" / "a.jsonl")
    assert [row["text"] for row in labelled] == [row["text"] for row in ROWS]
    for row in labelled[:-1]:
        spans = sorted(read_spans(f"{row['line_spans']} {row['substring_spans']}"))
        left = "".join(row["text"][start:end] for start, end in gaps([span[:2] for span in spans], len(row["text"])))
        assert clean_text(left, from_html=False) == clean_text(cut[row["id"]], from_html=False)
        assert bool(row["line_spans"]) == (row["lines_cut"] > 0) == (COOKIES in row["text"])
        assert bool(row["substring_spans"]) == (row["chars_cut"] > 0) == (row["id"] == "again")
        for start, end, _ in read_spans(row["line_spans"]):
            assert row["text"][start:end].strip() == COOKIES
    none = labelled[-1]
    assert (none["reason"], none["line_spans"], none["substring_spans"]) == ("empty", "", "")


PRIVATE = [
    {"id": 1, "text": "so\u00adft: write to jane.doe@company-mail.org\r\nor jane.doe@company-mail.org", "n": 1e3},
    {"id": 2, "text": "password='hunter2hunter9Z' and again hunter2hunter9Z"},
    {"text": "nothing"},
]


def test_labels_of_personal_data_hold_places_and_no_values(given: Path, tmp_path: Path) -> None:
    given.write_text("".join(f"{json.dumps(row)}\n" for row in PRIVATE))
    refinery.redact(str(given), tmp_path / "out", annotate=True, **QUICKLY)
    found = lines_of(tmp_path / "out" / "a.jsonl")
    assert (tmp_path / "out" / "a.jsonl").read_bytes().startswith(given.read_bytes().partition(b"}")[0])
    first, second = (
        [(row["text"][start:end], kind) for start, end, kind in read_spans(f"{row['pii_spans']} {row['secret_spans']}")]
        for row in found[:2]
    )
    assert first == [("jane.doe@company-mail.org", "email")] * 2
    assert second == [("hunter2hunter9Z", "password"), ("hunter2hunter9Z", "password")]
    assert (found[0]["pii_types"], found[1]["secret_types"]) == ("email=2", "password=1")
    for path in (*tmp_path.glob("out.refinery/**/*"), tmp_path / "out.yaml"):
        assert not path.is_file() or b"jane.doe" not in path.read_bytes()
    for table in tmp_path.glob("out.refinery/**/*.parquet"):
        assert "jane.doe" not in str(pq.read_table(table).to_pydict())


def test_attributes_are_aligned_with_the_rows(given: Path, tmp_path: Path) -> None:
    given.write_text("".join(f"{json.dumps(row)}\n" for row in [*PRIVATE, {"text": None}]) + "{broken\n")
    refinery.redact(str(given), tmp_path / "attributes" / "mine", annotate=True, labels_as="attributes", **QUICKLY)
    place = tmp_path / "attributes" / "mine" / "a.jsonl"
    found = lines_of(place)
    assert [type(row["id"]) for row in found] == [int, int, str, str, str] and set(found[0]) == {"id", "attributes"}
    emails = found[0]["attributes"]["mine__pii_spans__email"]
    assert [PRIVATE[0]["text"][start:end] for start, end, _ in emails] == ["jane.doe@company-mail.org"] * 2  # type: ignore[index] # a text
    assert found[1]["attributes"]["mine__secrets__score"] == [[0, len(str(PRIVATE[1]["text"])), 1.0]]
    assert found[4]["attributes"] == {} and b"jane.doe" not in place.read_bytes()
    accounts = str(tmp_path / "attributes" / "mine.refinery")
    assert [*verify(accounts).failures] == []
    place.write_bytes(place.read_bytes()[:-1])
    assert [*verify(accounts).failures]
    with pytest.raises(ValueError, match="only with --annotate are there labels"):
        refinery.redact(str(given), tmp_path / "out", labels_as="attributes", **QUICKLY)


def test_what_c4_would_cut(given: Path, tmp_path: Path) -> None:
    lines = [f"{text(n, 12)} One. Two. Three. Four. Five. Six." for n in range(3)]
    given.write_text(
        json.dumps({"text": "\n".join([lines[0], "Menu", lines[1], "use javascript now please", lines[2]])})
    )
    refinery.filter(str(given), tmp_path / "out", rules=["c4"], annotate=True, **QUICKLY)
    (row,) = lines_of(tmp_path / "out" / "a.jsonl")
    cut = [row["text"][start:end] for start, end, _ in read_spans(row["rule_spans"])]
    assert cut == ["Menu\n", "use javascript now please\n"] and row["keep"] is True
