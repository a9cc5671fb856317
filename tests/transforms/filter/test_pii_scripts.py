"""Digits, signs, addresses and words of other scripts; what has the form of an address and is nobody's."""

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.made_personal import CLEAN, SCRIPTS, in_script, luhn_number, made_personal
from refinery.transforms.core.document import Document
from refinery.transforms.filter.pii import PiiParams, find_pii, redact_pii
from refinery.transforms.redaction.pii_types.cues import PHONE, PHONE_ASCII, PHONE_UNSPACED
from refinery.transforms.redaction.pii_types.folding import fold
from refinery.transforms.redaction.pii_types.pseudonyms import Pseudonyms
from tests.beam import make_document

PARAMS = PiiParams()


def found(text: str, params: PiiParams = PARAMS) -> list[tuple[str, str]]:
    return [(text[span.start : span.end], span.kind) for span in find_pii(text, params)]


@pytest.mark.parametrize("made", list(made_personal(1, seed=2)), ids=lambda made: made.kind)
def test_made_spans_are_found_whole_and_alone(made) -> None:
    kinds = {"PHONE_NUMBER": "phone", "IP_ADDRESS": "ip", "CREDIT_CARD": "card", "EMAIL_ADDRESS": "email"}
    assert found(made.text) == ([(made.text[made.start : made.end], kinds[made.type])] if made.type else [])


FOUND = [
    ("TEL 03ー1234ー5678", "03ー1234ー5678", "phone"),
    ("TEL：（０３）１２３４－５６７８", "（０３）１２３４－５６７８", "phone"),
    ("FAX 03−1234−5678 です", "03−1234−5678", "phone"),
    ("＋８１ ９０－１２３４－５６７８", "＋８１ ９０－１２３４－５６７８", "phone"),
    ("전화번호: 1588-1234", "1588-1234", "phone"),
    ("ＩＢＡＮ ＧＢ８２ＷＥＳＴ１２３４５６９８７６５４３２", "ＧＢ８２ＷＥＳＴ１２３４５６９８７６５４３２", "iban"),
    ("Карта 6759649826438453", "6759649826438453", "card"),
    ("卡号：6759649826438453", "6759649826438453", "card"),
    ("пишите на иван@почта.рф сегодня", "иван@почта.рф", "email"),
    ("请写信到 用户@例子.中国欢迎", "用户@例子.中国", "email"),
    ("用户@example.com", "用户@example.com", "email"),
    ("メールfoo@bar.example。", "foo@bar.example", "email"),
    ("почтаfoo@bar.example", "foo@bar.example", "email"),
    ("Write to jane dot doe at example dot org please", "jane dot doe at example dot org", "email"),
    ("john_at_example_dot_com", "john_at_example_dot_com", "email"),
    ("john<at>example<dot>com", "john<at>example<dot>com", "email"),
    ("a (dot) b (at) c (dot) d (dot) org", "a (dot) b (at) c (dot) d (dot) org", "email"),
    ("djm@openssh.com", "djm@openssh.com", "email"),
]


@pytest.mark.parametrize(("text", "value", "kind"), FOUND)
def test_found(text: str, value: str, kind: str) -> None:
    assert found(text) == [(value, kind)]


KEPT = [
    *CLEAN,
    "sk-ssh-ed25519@openssh.com ssh-ed25519-cert-v01@openssh.com sntrup761x25519-sha512@openssh.com",
    "keepalive@openssh.com no-more-sessions@openssh.com hostkeys-00@openssh.com rijndael-cbc@lysator.liu.se",
    "wg-quick@wg0.service serial-getty@ttyS0.service podman@x.socket dev@disk.mount x@y.timer",
    "icon@3x.jpeg Default@2x.zip a@2x.avif sprite@1.5x.svg pkg@1.2.3-beta.dev app@v2.0.app x@y.yaml",
    "clone('git@github.com:owner/name.git')",
    "root@localhost.localdomain aur@aur.archlinux.org anonymous@ftp.example.org",
    "meet me at the polka dot com store; us at example dot com",
    "учитель 123456, отеле 654321",
]


@pytest.mark.parametrize("text", KEPT)
def test_what_is_nobodys_stays_in_prose_and_in_code(text: str) -> None:
    assert found(text) == []
    assert found(text, PiiParams(style="code")) == []


@pytest.mark.parametrize("word", [*PHONE.split("|"), *PHONE_ASCII.split("|"), *PHONE_UNSPACED.split("|")])
def test_every_word_for_a_telephone_is_a_cue(word: str) -> None:
    for text in (f"{word}: 66778899", f"{word.capitalize()} 66778899.", f"- {word}\n  66778899"):
        assert found(text) == [("66778899", "phone")]
    assert found(f"x{word[:1]}q 66778899") == []


@pytest.mark.parametrize("first", [2221, 2229, 2230, 2719, 2720])
def test_mastercards_second_range(first: int) -> None:
    import random

    number = luhn_number(random.Random(first), first)
    assert found(f"It was {number}.") == [(number, "card")]


@pytest.mark.parametrize("first", [2220, 2721])
def test_numbers_beside_that_range_are_none(first: int) -> None:
    import random

    assert found(f"It was {luhn_number(random.Random(first), first)}.") == []


@given(st.text())
def test_folding_keeps_places(text: str) -> None:
    folded = fold(text)
    assert len(folded) == len(text)
    for char, other in zip(text, folded, strict=True):
        value = unicodedata.decimal(char, None)
        assert value is None or other == str(value)
        assert char == other or not char.isascii()


def test_every_digit_of_unicode_is_read() -> None:
    digits = {char: str(unicodedata.decimal(char)) for char in map(chr, range(sys.maxunicode + 1)) if char.isdecimal()}
    assert {char: fold(char) for char in digits} == digits


@given(st.sampled_from(sorted(SCRIPTS)), st.sampled_from(["+49 30 1234567", "93.184.216.34", "4012 8888 8888 1881"]))
def test_every_script_is_read_as_ascii_is(script: str, value: str) -> None:
    text = f"host {in_script(value, script)} there"
    [(there, kind)] = found(text)
    assert (there, kind) == (in_script(value, script), found(f"host {value} there")[0][1])


def test_the_same_number_in_another_script_has_the_same_pseudonym(monkeypatch: pytest.MonkeyPatch) -> None:
    from refinery.transforms.filter import pii

    monkeypatch.setattr(pii, "load_pseudonyms", lambda params: Pseudonyms(b"x" * 16))
    answers = [
        redact_pii(make_document(text), PARAMS) for text in ("電話 ０９０－１２３４－５６７８", "電話 090-1234-5678")
    ]
    assert all(isinstance(answer, Document) and "<PHONE_" in answer.text for answer in answers)
    assert answers[0].text == answers[1].text  # type: ignore[union-attr]


HOSTILE = ["٠", "０－", "ー1", "用户@", "@例", "at (dot) ", " dot x at ", "（", "тел ", "１．", "用@用."]


@pytest.mark.parametrize("unit", HOSTILE)
def test_rows_of_nearly_everything(unit: str) -> None:
    text = unit * (40_000 // len(unit))
    spans = find_pii(text, PARAMS)
    assert all(0 <= span.start < span.end <= len(text) for span in spans)
