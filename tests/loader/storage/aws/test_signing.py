"""Signature Version 4: AWS's own example, and what it is of."""

import hashlib
from calendar import timegm

from hypothesis import given
from hypothesis import strategies as st

from refinery.loader.storage.aws.keys import Credentials
from refinery.loader.storage.aws.signing import NO_BODY, encoded_path, encoded_query, signed_headers
from tests.fake_gcs_wire import Request
from tests.fake_s3_wire import KEY, SECRET, is_signed

# "Example: GET object" of docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html.
EXAMPLE = Credentials("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
MOMENT = timegm((2013, 5, 24, 0, 0, 0))
HOST = "examplebucket.s3.amazonaws.com"


def test_the_example_of_the_documentation() -> None:
    headers = {"host": HOST, "range": "bytes=0-9"}
    signed = signed_headers("GET", "/test.txt", "", headers, NO_BODY, EXAMPLE, "us-east-1", MOMENT)
    assert signed["authorization"] == (
        "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
        "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, "
        "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
    )


def test_the_example_of_a_listing() -> None:
    query = encoded_query([("prefix", "J"), ("max-keys", "2")])
    signed = signed_headers("GET", "/", query, {"host": HOST}, NO_BODY, EXAMPLE, "us-east-1", MOMENT)
    assert signed["authorization"].endswith("34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7")


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1), st.binary())
def test_any_key_and_body(key: str, body: bytes) -> None:
    """As the fake checks it, which was written by itself; anything changed is noticed."""
    path, query = f"/bucket/{encoded_path(key)}", encoded_query([("prefix", key), ("list-type", "2")])
    digest = hashlib.sha256(body).hexdigest()
    signed = signed_headers("PUT", path, query, {"host": "h"}, digest, Credentials(KEY, SECRET, "token"), "r-1", MOMENT)
    assert "x-amz-security-token" in signed["authorization"]
    assert is_signed(Request("PUT", f"{path}?{query}", signed, body))
    assert not is_signed(Request("GET", f"{path}?{query}", signed, body))
    assert not is_signed(Request("PUT", f"{path}x?{query}", signed, body))
    assert not is_signed(Request("PUT", f"{path}?{query}", {**signed, "x-amz-date": "20130524T000001Z"}, body))
