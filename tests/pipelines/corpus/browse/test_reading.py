"""Differences, places in lists, hosts, and a corpus of a thousand shards of which almost none is opened."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.loader.storage.store import LocalStore
from refinery.pipelines.corpus.browse.reading.deadline import Deadline
from refinery.pipelines.corpus.browse.reading.differences import EDITS, Differences, differences
from refinery.pipelines.corpus.browse.reading.listing import Asked, Position, is_of_host, list_documents
from refinery.pipelines.published.published import PublishedCorpus
from tests.corpus_factory import SEED, VALIDATION, hash64
from tests.many_shards import build_many, id_of, text_of
from tests.pipelines.corpus.browse.hostile import Visitor, browser_of

SHARDS = 1_000
TEXTS = st.lists(st.sampled_from(["a", "b", " ", "\n", "cc", ".", "é"]), max_size=30).map("".join)


@given(TEXTS, TEXTS)
def test_pieces_together_are_the_texts(before: str, after: str) -> None:
    found = differences(before, after)
    assert found.aligned
    assert "".join(piece for _, piece in found.before) == before
    assert "".join(piece for _, piece in found.after) == after
    same = ["".join(piece for differs, piece in side if not differs) for side in (found.before, found.after)]
    assert same[0] == same[1] and (before != after or not any(differs for differs, _ in found.before))


def test_the_script_is_the_shortest() -> None:
    found = differences("one two three four", "one three four five")
    assert [piece for differs, piece in found.before if differs] == ["two "]
    assert [piece for differs, piece in found.after if differs] == [" five"]


def test_texts_that_have_little_in_common_are_not_aligned() -> None:
    one = " ".join(f"a{n}" for n in range(EDITS)) + " shared"
    other = "shared " + " ".join(f"b{n}" for n in range(EDITS))
    found = differences(one, other)
    assert not found.aligned
    assert [piece for differs, piece in found.before if not differs and piece.strip()] == [" shared"]
    assert differences("", "") == Differences([], [], True)
    assert not differences("x " * 100_000, "y " * 100_000).aligned  # bounded, whatever the texts


@pytest.mark.parametrize(
    ("url", "host", "expected"),
    [
        ("https://a.example/x", "a.example", True),
        ("https://A.Example:8080/x", "a.example", True),
        ("https://sub.a.example/", "a.example", True),
        ("https://nota.example/", "a.example", False),
        ("https://b.example/a.example", "a.example", False),
        ("https://user@a.example/", "a.example", True),
        ("http://[::1", "a.example", False),
        ("a.example", "a.example", False),
    ],
)
def test_hosts(url: str, host: str, expected: bool) -> None:
    assert is_of_host(url, host) is expected


def test_places() -> None:
    assert Position.parse("") == Position() and Position.parse("3.17") == Position(3, 17)
    assert str(Position(3, 17)) == "3.17"
    for wrong in ("1", "1.", ".1", "a.b", "1.1.1", "-1.0", "٣.٠", "1" * 20 + ".0"):
        with pytest.raises(ValueError, match="two whole numbers"):
            Position.parse(wrong)


def test_a_page_ends_where_its_time_is_up_and_the_next_one_goes_on(tmp_path: Path) -> None:
    corpus = PublishedCorpus(str(build_many(tmp_path / "corpus", 40, 300)))
    whole = list_documents(corpus, Asked(host="no.example"), Position(), Deadline(60))
    assert whole.next is None and whole.looked == 40
    place, looked, pages = Position(), 0, 0
    while place is not None:
        page = list_documents(corpus, Asked(host="no.example"), place, Deadline(0))
        assert page.next is None or (page.next.file, page.next.row) > (place.file, place.row)
        place, looked, pages = page.next, looked + page.looked, pages + 1  # type: ignore[assignment]  # None ends it
    assert pages >= 40


def test_opening_reads_the_manifest_and_a_page_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All shards but one are missing: nothing else is opened, whatever their number."""
    number = next(n for n in range(100) if hash64("validation", id_of(n)) >= VALIDATION * 2**64)
    shard = hash64("order", SEED, id_of(number)) * SHARDS >> 64
    root = build_many(tmp_path / "corpus", SHARDS, 500, lambda index: index == shard)
    names: set[str] = set()
    real: Callable[..., Any] = LocalStore.open

    def spy(store: LocalStore, name: str) -> Any:
        names.add(name)
        return real(store, name)

    monkeypatch.setattr(LocalStore, "open", spy)
    visitor = Visitor(browser_of(tmp_path / "j.jsonl", root))
    page = visitor.get("a/")
    assert f"{SHARDS:,}" in page and names == {"manifest.json"} and len(page) < 20_000
    shown = visitor.get("a/document", id=id_of(number).hex())
    assert text_of(number).split(":")[0] in shown
    name = f"train/web/shard-{shard:05d}-of-{SHARDS:05d}"
    opened = {each for each in names if each.startswith("train/")}
    assert opened == {f"{name}.bin", f"{name}.provenance.parquet"}
