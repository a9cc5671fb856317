"""`refinery remove --where`: documents by a rule over their columns."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from refinery.loader.format.provenance import Column, provenance_schema
from refinery.pipelines.corpus.remove.request import Request, where_rule
from refinery.pipelines.corpus.verify.verify import verify
from tests.pipelines.corpus.remove.conftest import Place
from tests.pipelines.corpus.remove.corpora import PAGES, remove, removed_rows, rows
from tests.pipelines.inputs import run
from tests.sampling import one_commit_in_four

SCHEMA = provenance_schema((Column("edu", "float"), Column("language", "string")))


@pytest.mark.parametrize(
    ("rule", "found"),
    [
        ("edu < 0.1 and language == 'de'", [True, False, False, False]),
        ("edu < 0.7", [True, True, False, False]),  # as the column holds it: 0.7 is not below 0.7
        ("edu is null", [False, False, False, True]),
        ("not edu < 0.1", [False, True, True, False]),  # what is missing is not met either way
        ("contains(url, 'b.example') and copies > 1", [False, True, False, False]),
    ],
)
def test_rules(rule: str, found: list[bool]) -> None:
    columns = {
        "url": ["https://a.example/", "https://b.example/", "https://b.example/2", "https://c.example/"],
        "source": ["s"] * 4,
        "copies": [1, 2, 1, 1],
        "edu": pa.array([0.05, 0.3, 0.7, None], pa.float32()).to_pylist(),
        "language": ["de", "de", "en", ""],
    }
    request = Request(where=where_rule(rule, SCHEMA))
    assert [asked == "where" for asked in request.match(columns)] == found
    names = sorted(request.columns)
    assert request.match({"url": columns["url"], "source": columns["source"]}) == [""] * 4, "a column is not there"
    assert request.says(names) and not request.says(names[1:])


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("edux < 0.1", "--where: at character 1: edux is not a column"),
        ("edu", "--where: at character 1: a value given, a condition is needed"),
        ("token_offset > 5", "token_offset is not a column"),  # a place in a file, which takedowns move
        ("edu < 0.1 and __import__('os')", "--where: at character"),
        ("edu < 0.1\x1b[2J", r"--where: at character 10: \x1b is not understood here"),
        ("(" * 11_000, "characters given"),
    ],
)
def test_rules_that_say_nothing(rule: str, said: str) -> None:
    with pytest.raises(ValueError) as error:
        where_rule(rule, SCHEMA)
    assert said in str(error.value) and "\n" not in str(error.value)


def test_what_meets_the_rule_goes_and_does_not_come_back(taken: Place, tmp_path: Path) -> None:
    """By what is measured in phase 3, too: a duplicate of what goes is judged as it would be published."""
    survivor, duplicate = "https://site26.example/26", "https://notes.example/26"
    rule = f"url == '{survivor}' or pii > 0"
    dry = run("remove", taken.prefix, "--where", rule, "--dry-run", "--workers", 0)
    assert dry.stdout.startswith("1 documents with") and "the request names it, too" in dry.stdout
    remove(taken.prefix, tmp_path / "new", "--where", rule)
    before, after = ({row["url"] for row in rows(prefix)} for prefix in (taken.prefix, tmp_path / "new"))
    assert before ^ after == {survivor}
    assert verify(str(tmp_path / "new"), against=str(taken.prefix)).failures == []
    proof = json.loads((tmp_path / "new" / "takedowns/00001/removal.json").read_text())
    assert proof["request"]["where"] == rule and proof["options"]["copies"] == "keep"
    assert set(proof["left"].values()) == {0}
    assert duplicate not in {row["url"] for row in removed_rows(tmp_path / "new")}
    remove(taken.prefix, tmp_path / "other", "--where", f"url == '{survivor}'")
    back = {row["url"]: row for row in rows(tmp_path / "other", ("url", "pii"))}
    assert back[duplicate]["pii"] == 1
    again = run("remove", tmp_path / "new", "--where", rule, "--dry-run", "--workers", 0)
    assert again.stdout.startswith("0 documents with 0 tokens would go")


@one_commit_in_four
def test_columns_that_removals_have_go_from_there_too(taken: Place, tmp_path: Path) -> None:
    """As by --source: a rule over address, source and origin alone is asked of what deduplication had removed."""
    remove(taken.prefix, tmp_path / "new", "--where", "source == 'books'")
    remove(taken.prefix, tmp_path / "same", "--source", "books")
    assert rows(tmp_path / "new") == rows(tmp_path / "same")
    assert removed_rows(tmp_path / "new") == removed_rows(tmp_path / "same")
    assert not {url for url, (source, _) in PAGES.items() if source == "books"} & {
        row["url"] for row in (*rows(tmp_path / "new"), *removed_rows(tmp_path / "new"))
    }


def test_a_rule_of_another_corpus(taken: Place) -> None:
    done = run("remove", taken.prefix, "--where", "edu < 0.1", "--dry-run", check=False)
    assert done.returncode == 2 and "--where: at character 1: edu is not a column" in done.stderr
