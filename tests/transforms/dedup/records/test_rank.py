from typing import Any

import pytest

from refinery.transforms.core.document import Document, document_id
from refinery.transforms.dedup.records.rank import RANK_BYTES, RankParams, rank_key, seconds_of_date


def make(text: str = "text", **fields: Any) -> Document:
    values: dict[str, Any] = {"url": "u", "source": "s", "origin": "o", "position": 0} | fields
    return Document(document_id(text), text, **values)


@pytest.mark.parametrize("prefer", ["longest", "newest", "first", "provenance"])
def test_key_is_24_bytes_and_priority_comes_first(prefer):
    params = RankParams(prefer=prefer)
    better = rank_key(make("x", position=9, meta={"date": "1999-01-01"}), 1, params)
    worse = rank_key(make("xyz", position=1, meta={"date": "2020-01-01"}), 2, params)
    assert len(better) == len(worse) == RANK_BYTES
    assert better < worse


@pytest.mark.parametrize(
    ("prefer", "better", "worse"),
    [
        ("longest", make("abc"), make("ab")),
        ("longest", make("éé"), make("abc")),  # bytes, not characters
        ("first", make(position=3), make(position=2**40)),
        ("newest", make(meta={"date": "2021-05-01"}), make(meta={"date": "2021-04-30T23:59:59Z"})),
        ("newest", make(meta={"date": "20210501000000"}), make(meta={"date": "2021-04-30"})),
        ("newest", make(meta={"date": "0001-01-02"}), make()),
        ("newest", make(meta={"date": "1900-01-01"}), make(meta={"date": "yesterday"})),
        ("provenance", make("x", meta={"path": "a/b/c/z.c"}), make("xyz", meta={"path": "third_party/z.c"})),
        ("provenance", make("x", meta={"path": "vendor/z.c"}), make("xyz", meta={"path": "vendor/zlib/z.c"})),
        ("provenance", make("x", meta={"path": "./src/z.c"}), make("xyz", meta={"path": "src/old/z.c"})),
        ("provenance", make("xyz", meta={"path": "src/z.c"}), make("x", meta={"path": "lib/z.c"})),
        ("provenance", make("x", url="a/z.c"), make("xyz", url=f"a{'/b' * 40_000}/z.c")),
        ("provenance", make("x", url="b/" * 40_000), make("xyz", url="deps/z.c")),
    ],
)
def test_preference(prefer, better, worse):
    assert rank_key(better, 1, RankParams(prefer=prefer)) < rank_key(worse, 1, RankParams(prefer=prefer))


def test_ties_are_broken_by_where_a_document_came_from():
    keys = {rank_key(make(url=u, source=s, origin=o), 1, RankParams()) for u in "ab" for s in "ab" for o in "ab"}
    assert len(keys) == 8
    assert len({key[:16] for key in keys}) == 1


@pytest.mark.parametrize(
    ("date", "seconds"),
    [
        ("0001-01-01T00:00:10", 10),
        ("0001-01-01T00:00:00+14:00", 0),
        ("19700101000000", 62135596800),
        ("1970-01-01T00:00:00Z", 62135596800),
        ("1970-01-01T02:00:00.999+02:00", 62135596800),
        (" 1970-01-01 ", 62135596800),
        (19700101000000, 62135596800),
        ("20209999000000", 0),
        ("", 0),
        (None, 0),
        (3.5, 0),
        ("١٩٧٠٠١٠١٠٠٠٠٠٠", 0),
        ("\ud800", 0),
        ("9" * 100_000, 0),
    ],
)
def test_dates(date, seconds):
    assert seconds_of_date(date) == seconds


def test_golden_key():
    copy = make("abc", meta={"path": "third_party/a/b.c"})
    assert rank_key(copy, 7, RankParams(prefer="provenance")).hex() == (
        "00000000000000078002fffffffffffcb5afe4d37348cb85"
    )
    assert rank_key(make("abc"), 7, RankParams()).hex() == "0000000000000007fffffffffffffffcb5afe4d37348cb85"


def test_refuses_unknown_preference():
    message = (
        r"^prefer: 'best' \(text\) given, one of longest, newest, first, "
        r"provenance is allowed$"
    )
    with pytest.raises(ValueError, match=message):
        RankParams(prefer="best")
