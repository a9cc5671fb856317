"""The tables of bytes say of every encoding what its decoded text says."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.extract.charsets.decoders import decode_as
from refinery.transforms.extract.charsets.letters import folded, log_probabilities, turns
from refinery.transforms.extract.charsets.single_byte import NAMES, single_byte_evidence

COMMON = st.sampled_from([*b"aBe 1.,-", *range(0x80, 0x100)])
LEFT_OUT = ("cp874", "cp1255", "cp1256", "cp1258", "iso8859-6")  # marks that NFC may move or join


@given(st.one_of(st.binary(max_size=60), st.lists(COMMON, max_size=40).map(bytes)))
def test_evidence_is_that_of_the_text(words: bytes) -> None:
    found = single_byte_evidence(words)
    for name in NAMES:
        text = unicodedata.normalize("NFC", decode_as(words, name))
        if name in found:
            logarithms, turned, undefined = found[name]
            assert (logarithms == log_probabilities(folded(text))).all(), name
            assert (turned, undefined) == (turns(text), text.count("\ufffd")), name
        else:
            assert name in LEFT_OUT or "İ" in text or "Σ" in text


@pytest.mark.parametrize(
    ("words", "left_out"),
    [(b"Gr\xfc\xdfe", ()), ("İzmir".encode("cp1254"), ("cp1254",)), ("ΣΑΣ".encode("cp1253"), ("cp1253", "iso8859-7"))],
)
def test_what_no_table_folds_is_left_out(words: bytes, left_out: tuple[str, ...]) -> None:
    assert not set(left_out) & set(single_byte_evidence(words))
    assert "cp1251" in single_byte_evidence(words)
