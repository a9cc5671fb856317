import dataclasses

import apache_beam as beam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.core.document import Document, Drop
from refinery.transforms.filter.pii import PII, PiiParams, find_pii, redact_pii
from tests.beam import make_document, run_and_collect
from tests.sampling import one_commit_in_four, scaled

ALL = PiiParams(private_ip=True)
EMAIL, PHONE, IP = "<EMAIL>", "<PHONE>", "<IP>"

REDACTED = [
    # e-mail
    ("write to jane.doe+news@mail.example.org.", f"write to {EMAIL}."),
    ("<mailto:a@b.co>, or A_B%C@x-y.museum!", f"<mailto:{EMAIL}>, or {EMAIL}!"),
    ("Jörg: jörg@bücher.example", f"Jörg: {EMAIL}"),
    ("почта: иван@example.ru", f"почта: {EMAIL}"),
    ("メールfoo@bar.example。", f"メール{EMAIL}。"),
    ("Jane Doe <jane at example.org>", f"Jane Doe <{EMAIL}>"),
    ("jane (at) example.org, jane[at]example.org", f"{EMAIL}, {EMAIL}"),
    ("x@y.xn--p1ai", EMAIL),
    # telephone
    ("Tel.: +49 (0)30 1234567", f"Tel.: {PHONE}"),
    ("+33 1 23 45 67 89", PHONE),
    ("+15551234567 or +44 20 7946 0958", f"{PHONE} or {PHONE}"),
    ("0049 30 1234567", PHONE),
    ("(212) 555-0123 x45", PHONE),
    ("Call 212-555-0123, 1-800-555-0199 or 212.555.0123.", f"Call {PHONE}, {PHONE} or {PHONE}."),
    ("212-555-0123 646-555-0199", f"{PHONE} {PHONE}"),
    ("030/1234567 and 01 23 45 67 89", f"{PHONE} and {PHONE}"),
    ("079 460 12 34; 03-1234-5678", f"{PHONE}; {PHONE}"),
    ("8 (495) 123-45-67", PHONE),
    ("phone 555 0142", f"phone {PHONE}"),
    ("Telefon: 98 76 54 32", f"Telefon: {PHONE}"),
    ("tel:5551234567", f"tel:{PHONE}"),
    ("(212)\u00a0555‑0123", PHONE),
    ("New York, NY 10003 212-555-0123", f"New York, NY 10003 {PHONE}"),  # what is rejected swallows nothing
    ("978-555-0123 or 979-555-0199", f"{PHONE} or {PHONE}"),  # area codes of Massachusetts and Texas
    ("Phone:\n   555 0142", f"Phone:\n   {PHONE}"),
    ("Tel: 12125550123, Fax: 5403926876", f"Tel: {PHONE}, Fax: {PHONE}"),
    ("416 60 039 office\n9885 1152-Office\\,", f"{PHONE} office\n{PHONE}-Office\\,"),
    ("call (212) 555 0123, 555-0199 or 555 0188", f"call {PHONE}, {PHONE} or {PHONE}"),
    ("stop sending messages to 541 714 1388", f"stop sending messages to {PHONE}"),
    ("тел. 8 495 123-45-67; 电话：010-12345678", f"тел. {PHONE}; 电话：{PHONE}"),
    ("05321234567", PHONE),
    ("011 44 20 7946 0958 +49-30-1234567 +1 (212) 555-0123", f"{PHONE} {PHONE} {PHONE}"),
    # IP
    ("from 81.2.69.142:8080, http://81.2.69.142/", f"from {IP}:8080, http://{IP}/"),
    ("server 8.8.8.8", f"server {IP}"),
    ("81.2.69.142, 5.9.1.7 and 5.9.1.8", f"{IP}, {IP} and {IP}"),
    ("2a00:1450:4001:81b::200e and 2a00:1450:4001:081b:0000:0000:0000:200e", f"{IP} and {IP}"),
    ("[2a00:1450:4001::200e]:443", f"[{IP}]:443"),
]

KEPT = [
    "a@b, @user, user@, a@b.c, icon@2x.png, 3 @ 4.50",
    "look at example.org, or meet at 5",
    "Version 1.2.3.4, v10.20.30.40, release 99.1.2.3, section 41.2.3.4",
    "Chrome/96.0.46.45 libfoo-1.2.3.44 1.2.3.4.5 foo1.2.3.44 1.2.3.4-rc1",
    "3.1.4.1 Scope",
    "256.1.1.1 1.2.3 1.2.3.999",
    "std::vector a::b ::f 12:30:45 Python 3000::",
    "2020-12-31 31.12.2020 01/02/2020 10:30 1998-2003 call 2010-2015",
    "ISBN 978-3-16-148410-0, ISBN 0-306-40615-2",
    "$212-555-0123 #212-555-0123 id=212-555-0123 /212-555-0123/",
    "1 000 000 000 people, 12,345,678 and 3.14159265358979",
    "4111 1111 1111 1112 and 123456789012345678",
    "000-05-1120 is no telephone number",
    "order 5551234567, code 12-345-6789, 10-20-30-40",
    "DE89 3704 0044 0532 0130 01 and GB82 WEST 1234 5698 7654 33",
    "+1 for that, C++11, +0200, 1+2+3",
    "003 00000000 SECT2",
    "Boston, MA 02111-1307, USA. Phone: MA 02111-1307",
    "ISBN 978-0-306-40615-7, 9780306406157",
    "pages 32,4 (1989) 490-595 and 12 (34) 1234-1240",
    "call 2010-2015, phone 2.5.1000, text 2020-12-31, fax 10.0.0.1",
    "0101111111 0123456789 01234567890 07777777777 12345678 12345678901",
    "1.3.6.1.4.1.311.2.1.12 OID 2.5.29.37; 1.3.132.34, 1.2.250.99",
    '#define VERSION "96.40.46.45" | 3.36.04.0 | 3.36.10.0 | 3.37.04.0 | 3.37.10.0 |',
    "16:27:ac:a5:76:28:2d:36:11 00:00:00:00:00:00 10-20-30-40-50-60",
    "x = 0x4111111111111111; 4111111111111112 1.4111111111111111",
    "12345678L 10000003F 20201231A",
    "http://example.org/home/eve/ ~/home/zoe /home/$USER/x /home/user/x",
]


@pytest.mark.parametrize(("text", "expected"), REDACTED)
def test_redacted(text: str, expected: str) -> None:
    assert redacted(text, PiiParams()) == expected


@pytest.mark.parametrize("text", KEPT)
def test_kept(text: str) -> None:
    assert find_pii(text, PiiParams()) == []


def redacted(text: str, params: PiiParams) -> str:
    result = redact_pii(make_document(text), params)
    assert isinstance(result, Document)
    return result.text


def test_reserved_addresses_are_an_option() -> None:
    text = "hosts 10.0.0.1, 192.168.1.77, 127.0.0.1, ::1, fe80::1, 2001:db8::1, 203.0.113.9"
    assert find_pii(text, PiiParams()) == []
    assert redacted(text, ALL) == "hosts " + ", ".join([IP] * 7)


@pytest.mark.parametrize(
    ("kind", "text"), [("email", "a@b.example"), ("phone", "+44 20 7946 0958"), ("ip", "host 81.2.69.142")]
)
def test_kinds_can_be_switched_off_and_named(kind: str, text: str) -> None:
    assert [span.kind for span in find_pii(text, PiiParams())] == [kind]
    off = {"email": PiiParams(email=False), "phone": PiiParams(phone=False), "ip": PiiParams(ip=False)}[kind]
    assert find_pii(text, off) == []
    named = PiiParams(email_replacement="E", phone_replacement="P", ip_replacement="I")
    assert redacted(text, named).split()[-1] == {"email": "E", "phone": "P", "ip": "I"}[kind]


def test_document_keeps_its_id_and_gets_a_count() -> None:
    doc = make_document("a@b.example and c@d.example", meta={"language": "en"})
    result = redact_pii(doc, PiiParams())
    assert isinstance(result, Document)
    assert result == dataclasses.replace(
        doc, text=f"{EMAIL} and {EMAIL}", meta={"language": "en", "pii": 2, "pii_types": "email=2"}
    )
    clean = make_document("nothing here")
    assert redact_pii(clean, PiiParams()) is clean
    assert redact_pii(doc, PiiParams(action="drop")) == Drop("pii-email")
    for remains in ("unchecked", "drop", "fail"):
        counted = redact_pii(doc, PiiParams(action="note", remains=remains))
        assert counted == dataclasses.replace(doc, meta=result.meta)


def test_offsets_are_characters() -> None:
    text = "ÄÖÜ 😀 a@b.example 中 +44 20 7946 0958 é"
    found = [(text[span.start : span.end], span.kind) for span in find_pii(text, PiiParams())]
    assert found == [("a@b.example", "email"), ("+44 20 7946 0958", "phone")]


PIECES = [
    "a@b.example",
    "+44 20 7946 0958",
    "81.2.69.142",
    "::1",
    " ",
    "\n",
    "é",
    "😀",
    ".",
    "x",
    "7",
    "-",
    "@",
    "<",
    "at",
]


@given(st.lists(st.sampled_from(PIECES), max_size=20).map("".join) | st.text())
def test_spans_are_ordered_inside_the_text_and_disjoint(text: str) -> None:
    spans = find_pii(text, ALL)
    ends = [0, *(span.end for span in spans)]
    for span, before in zip(spans, ends, strict=False):
        assert before <= span.start < span.end <= len(text)
    assert len(redacted(text, PiiParams(email_replacement="", phone_replacement="", ip_replacement=""))) <= len(text)


@given(st.lists(st.sampled_from(PIECES), max_size=12).map(" ".join))
def test_e_mail_addresses_are_all_found(text: str) -> None:
    assert "a@b.example" not in redacted(text, PiiParams()).split(" ")


HOSTILE = [
    "1",
    "1 ",
    "@",
    "a@",
    "a.",
    ":",
    "a:",
    "1.",
    "0 ",
    "tel ",
    "+1",
    "é",
    " at a>",
    "<at a",
    "212-555-0123 ",
    "::1 ",
]


SIZE = scaled(300_000, 60_000)


@one_commit_in_four
@pytest.mark.parametrize("unit", HOSTILE)
def test_a_megabyte_of_nearly_personal_data(unit: str) -> None:
    text = unit * (SIZE // len(unit))
    spans = find_pii(text, ALL)
    assert all(0 <= span.start < span.end <= len(text) for span in spans)


def test_lone_surrogates_are_a_clean_error() -> None:
    with pytest.raises(UnicodeEncodeError):
        find_pii("a\ud800@b.example", PiiParams())


def test_impossible_action() -> None:
    with pytest.raises(ValueError, match=r"action: 'mask' \(text\) given, one of redact, drop, note is allowed"):
        PiiParams(action="mask")  # type: ignore[arg-type]


def test_a_pipeline_redacts() -> None:
    docs = [make_document("mail a@b.example", "f@0"), make_document("none", "f@1")]
    [kept] = run_and_collect(lambda p: [p | beam.Create(docs) | PII()])
    assert sorted(doc.text for doc in kept) == [f"mail {EMAIL}", "none"]
