"""S3's XML: what it says comes through byte for byte, and what it is not is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.loader.storage.aws.answers import (
    BadAnswer,
    ListedObject,
    can_hold,
    completion,
    deletion,
    error_of,
    escaped,
    parse,
    read_deletion,
    read_page,
)

KEYS = st.text(st.characters(codec="utf-8", exclude_characters="\0")).filter(can_hold)


@given(KEYS)
def test_keys_come_through(key: str) -> None:
    entry = f"<Contents><Key>{escaped(key)}</Key><Size>7</Size><ETag>&quot;e&quot;</ETag></Contents>"
    page, token = read_page(f'<ListBucketResult xmlns="x">{entry}</ListBucketResult>'.encode(), "")
    assert (page, token) == ([ListedObject(key, 7, '"e"')], "")
    (found,) = next(parse(deletion([key]), "Delete").all("Object")).all("Key")
    assert "".join(found.pieces) == key


def test_keys_that_are_encoded() -> None:
    body = (
        b"<ListBucketResult><EncodingType>url</EncodingType><Contents><Key>a+b%2B%20%01</Key><Size>0</Size></Contents>"
    )
    assert read_page(body + b"</ListBucketResult>", "a")[0] == [ListedObject("a b+ \x01", 0, "")]


@pytest.mark.parametrize(
    "body",
    [
        b"", b"x", b"<html/>", b"<ListBucketResult>", b"\xff<ListBucketResult/>",
        b"<!DOCTYPE x [<!ENTITY a 'b'>]><ListBucketResult>&a;</ListBucketResult>",
        b"<ListBucketResult>" + b"<a>" * 30 + b"</a>" * 30 + b"</ListBucketResult>",
        b"<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
        b"<ListBucketResult><Contents><Key>other</Key><Size>1</Size></Contents></ListBucketResult>",
        b"<ListBucketResult><Contents><Key>p/x</Key><Size>-1</Size></Contents></ListBucketResult>",
        b"<ListBucketResult><Contents><Key>p/x</Key></Contents></ListBucketResult>",
    ],
)  # fmt: skip
def test_what_is_no_listing(body: bytes) -> None:
    with pytest.raises(BadAnswer):
        read_page(body, "p/")


def test_errors() -> None:
    body = b"<Error><Code>SlowDown</Code><Message>Less &amp; less</Message></Error>"
    assert error_of(body) == {"Code": "SlowDown", "Message": "Less & less"}
    assert error_of(b"<html/>") == error_of(b"") == {}
    entries = b"<Deleted><Key>a</Key></Deleted><Error><Key>b</Key><Code>AccessDenied</Code></Error>"
    assert read_deletion(b"<DeleteResult>" + entries + b"</DeleteResult>") == {"b": "AccessDenied"}


def test_a_completion_names_its_parts_in_order() -> None:
    parts = list(parse(completion([('"a"', ""), ('"b"', "c==")]), "CompleteMultipartUpload").all("Part"))
    facts = [tuple(part.text(name) for name in ("PartNumber", "ETag", "ChecksumCRC32C")) for part in parts]
    assert facts == [("1", '"a"', ""), ("2", '"b"', "c==")]
