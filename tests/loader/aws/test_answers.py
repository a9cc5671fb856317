"""S3's XML: what it says comes through byte for byte, and what it is not is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.loader.aws.answers import (
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
    entries = b"<Deleted><Key>a</Key></Deleted><Error><Key>b</Key><Code>AccessDenied</Code></Error>"
    assert read_deletion(b"<DeleteResult>" + entries + b"</DeleteResult>") == {"b": "AccessDenied"}


def test_a_completion_names_its_parts_in_order() -> None:
    parts = list(parse(completion([('"a"', ""), ('"b"', "c==")]), "CompleteMultipartUpload").all("Part"))
    facts = [tuple(part.text(name) for name in ("PartNumber", "ETag", "ChecksumCRC32C")) for part in parts]
    assert facts == [("1", '"a"', ""), ("2", '"b"', "c==")]
