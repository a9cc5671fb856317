"""Types with check digits, places and pseudonyms. All numbers are published examples or made for these tests."""

import pytest

from refinery.transforms.core.document import Document, Drop
from refinery.transforms.core.resources import key_id
from refinery.transforms.filter.pii import (
    PII,
    REMAINS,
    RULES,
    Kind,
    PiiParams,
    find_pii,
    judge_pii,
    load_pseudonyms,
    redact_pii,
)
from refinery.transforms.redaction.pii_types import checks
from refinery.transforms.redaction.pii_types.pseudonyms import canonical
from tests.beam import make_document
from tests.sampling import one_commit_in_four

FOUND: list[tuple[Kind, str, str]] = [
    ("card", "", "4012888888881881"),
    ("card", "", "5555-5555-5555-4444"),
    ("card", "", "3782 822463 10005"),
    ("card", "my card number is ", "6759649826438453"),
    ("card", "credit card: ", "30569309025904"),
    ("iban", "", "GB82 WEST 1234 5698 7654 32"),
    ("iban", "iban ", "de89370400440532013000"),
    ("iban", "", "NO93-8601-1117-947"),
    ("ssn", "", "219-09-9999"),
    ("ssn", "SSN: ", "219099999"),
    ("imei", "IMEI: ", "490154203237518"),
    ("imei", "imei ", "49-015420-323751-8"),
    ("mac", "", "00:1A:2b:3C:4d:5E"),
    ("mac", "", "00-1A-2B-3C-4D-5E"),
    ("mac", "", "001a.2b3c.4d5e"),
    ("user_path", "open('/home/", "jdoe"),
    ("user_path", "C:\\Users\\", "Jane.Doe"),
    ("user_path", "file:///Users/", "jdoe"),
    ("national_id", "", "12345678Z"),  # Spain
    ("national_id", "", "X1234567L"),
    ("national_id", "", "131052-308T"),  # Finland
    ("national_id", "", "RSSMRA85T10A562S"),  # Italy
    ("national_id", "", "S1234567D"),  # Singapore
    ("national_id", "", "11010519491231002X"),  # China
    ("national_id", "", "AB 12 34 56 C"),  # United Kingdom
    ("national_id", "", "1EG4-TE5-MK73"),  # United States, Medicare
    ("national_id", "", "912-70-1234"),  # United States, ITIN
    ("national_id", "", "756.9217.0769.85"),  # Switzerland
    ("national_id", "", "529.982.247-25"),  # Brazil
    ("national_id", "", "10000000146"),  # Turkey
    ("national_id", "", "29029600013"),  # Norway
    ("national_id", "", "44051401359"),  # Poland
    ("national_id", "", "85.07.30-033.28"),  # Belgium
    ("national_id", "", "8001015009087"),  # South Africa
    ("national_id", "", "811218-9876"),  # Sweden
    ("national_id", "", "1-1017-00230-70-8"),  # Thailand
    ("national_id", "Aadhaar ", "2341 2341 2346"),  # India
    ("national_id", "SIN: ", "130 692 544"),  # Canada
    ("national_id", "NHS number ", "943 476 5919"),
    ("national_id", "tax file number ", "123 456 782"),  # Australia
    ("national_id", "BSN ", "111222333"),  # Netherlands
    ("national_id", "Steuer-ID ", "86095742719"),  # Germany
    ("national_id", "passport no. ", "C01X00T47"),
    ("national_id", "여권번호는 ", "M12345678"),
    ("national_id", "CPR ", "010190-1234"),  # Denmark
]


@pytest.mark.parametrize(("kind", "cue", "value"), FOUND)
def test_found_switched_off_and_counted(kind: Kind, cue: str, value: str) -> None:
    text = f"It says {cue}{value}, and more."
    assert [(text[span.start : span.end], span.kind) for span in find_pii(text, PiiParams())] == [(value, kind)]
    rest = [span.kind for span in find_pii(text, PiiParams(**{kind: False, "phone": False}))]
    assert kind not in rest
    result = redact_pii(make_document(text), PiiParams())
    assert isinstance(result, Document)
    assert result.text == f"It says {cue}{PiiParams().replacement(kind)}, and more."
    assert result.meta["pii_types"] == f"{kind}=1"
    assert redact_pii(make_document(text), PiiParams(action="drop")) == Drop("pii-" + kind.replace("_", "-"))


@pytest.mark.parametrize(("kind", "cue", "value"), [row for row in FOUND if row[0] in ("card", "iban", "imei")])
def test_a_wrong_digit_is_no_number(kind: Kind, cue: str, value: str) -> None:
    last = str((int(value[-1]) + 1) % 10)
    assert kind not in [span.kind for span in find_pii(f"It says {cue}{value[:-1]}{last}.", PiiParams())]


NOT_FOUND = [
    "219099999 046454286 046 454 286 2341 2341 2347 123456789012",
    "order 490154203237518 of 1696512345678",
    "219-09-99990 1219-09-9999 219-09-9999-1 000-12-3456 666-12-3456 123-00-4567",
    "GB82WEST12345698765432X XGB82WEST12345698765432 ZZ82WEST12345698765432",
    "20201231 235959 201109252335 1234567L",
    "12:34:56:78:9a:bc:de ff:ff:ff:ff:ff:ff",
]


@pytest.mark.parametrize("text", NOT_FOUND)
def test_not_found(text: str) -> None:
    assert find_pii(text, PiiParams()) == []


ADDRESSES = [
    "123 Main Street, Springfield, IL 62704",
    "10 Downing Street",
    "P.O. Box 123",
    "12 rue de la Paix",
    "Hauptstraße 12",
    "Via Roma 5",
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_street_addresses_are_an_option(address: str) -> None:
    text = f"Send it to {address}."
    assert find_pii(text, PiiParams()) == []
    [span] = find_pii(text, PiiParams(address=True))
    assert (text[span.start : span.end], span.kind) == (address, "address")


def test_each_rule_has_a_switch_a_placeholder_and_a_reason() -> None:
    kinds = [rule.kind for rule in RULES]
    fields = PiiParams.model_fields
    assert len(set(kinds)) == len(kinds)
    assert {f"{kind}_replacement" for kind in kinds} == {name for name in fields if name.endswith("_replacement")}
    assert all(isinstance(getattr(PiiParams(), kind), bool) and PiiParams().replacement(kind) for kind in kinds)
    assert [reason.name for reason in PII.reasons] == [*("pii-" + kind.replace("_", "-") for kind in kinds), REMAINS]
    assert all(reason.source for reason in PII.reasons[:-1])


def test_verhoeff() -> None:
    assert checks.india(b"234123412346")
    assert not checks.india(b"234123412364")  # two digits swapped


# --- pseudonyms -----------------------------------------------------------------------------------------------------

KEY = "0123456789abcdef0123456789abcdef"
KEY_ID = key_id(KEY.encode(), "pii")


def params(monkeypatch: pytest.MonkeyPatch, key: str = KEY, key_id: str = KEY_ID) -> PiiParams:
    monkeypatch.setenv("PII_TEST_KEY", key)
    load_pseudonyms.cache_clear()
    return PiiParams(pseudonym_key="env:PII_TEST_KEY", pseudonym_key_id=key_id)


def pseudonymized(text: str, chosen: PiiParams) -> str:
    result = judge_pii(make_document(text), load_pseudonyms(chosen), chosen)
    assert isinstance(result, Document)
    return result.text


def test_the_same_person_gets_the_same_token(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = params(monkeypatch)
    first, second, other = pseudonymized("Jane@x.example jane (at) x.example, joe@x.example", chosen).split()[:3]
    assert first == second.rstrip(",") == pseudonymized("jane@X.example", chosen)
    assert first != other
    assert first.startswith("<EMAIL_") and first.endswith(">") and len(first) == len("<EMAIL_>") + 12
    assert "jane" not in first.lower()


def test_spellings_of_a_number_are_one() -> None:
    assert len({canonical("phone", number) for number in ("+1 (212) 555-0123", "212-555-0123", "1.212.555.0123")}) == 1
    assert len({canonical("phone", number) for number in ("+44 (0)20 7946 0958", "0044 20 7946 0958 x12")}) == 1
    assert canonical("iban", "gb82 west 1234") == canonical("iban", "GB82-WEST-1234")


def test_another_key_gives_other_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = pseudonymized("a@b.example", params(monkeypatch))
    other = "fedcba9876543210"
    theirs = pseudonymized("a@b.example", params(monkeypatch, other, key_id(other.encode(), "pii")))
    assert ours != theirs


def test_keys_are_named_and_checked_and_never_quoted(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    with pytest.raises(ValueError, match=rf"pseudonym_key_id: none given, the secret's is '{KEY_ID}'") as error:
        load_pseudonyms(params(monkeypatch, key_id=""))
    assert KEY not in str(error.value)
    with pytest.raises(ValueError, match="pseudonym_key_id: '00000000' given"):
        load_pseudonyms(params(monkeypatch, key_id="00000000"))
    with pytest.raises(ValueError, match=r"pseudonym_key: 5 bytes in 'env:PII_TEST_KEY' given, 16 or more are needed"):
        load_pseudonyms(params(monkeypatch, key="short"))
    monkeypatch.delenv("PII_TEST_KEY")
    load_pseudonyms.cache_clear()
    with pytest.raises(ValueError, match="pseudonym_key: 0 bytes"):
        load_pseudonyms(PiiParams(pseudonym_key="env:PII_TEST_KEY", pseudonym_key_id=KEY_ID))
    with pytest.raises(ValueError, match=r"pseudonym_key_id: 'aa' given, only with pseudonym_key is it allowed"):
        PiiParams(pseudonym_key_id="aa")
    (tmp_path / "key").write_text(KEY + "\n")
    from_file = PiiParams(pseudonym_key=str(tmp_path / "key"), pseudonym_key_id=KEY_ID)
    assert load_pseudonyms(from_file) is not None
    assert KEY not in repr(from_file.plain())
    with pytest.raises(OSError, match="nowhere"):
        load_pseudonyms(PiiParams(pseudonym_key=str(tmp_path / "nowhere"), pseudonym_key_id=KEY_ID))


# --- cost -----------------------------------------------------------------------------------------------------------

HOSTILE = [
    "1 ",
    "1.",
    "12-",
    "0 ",
    "4111 1111 1111 1111 ",
    "00:",
    "GB82 ",
    "1.1.1.1 ",
    "10003 ",
    "212.555-",
    "A1-",
    "/home/",
]


@one_commit_in_four
@pytest.mark.parametrize("unit", HOSTILE)
def test_rows_of_nearly_everything(unit: str) -> None:
    text = unit * (60_000 // len(unit))
    spans = find_pii(text, PiiParams(private_ip=True, address=True))
    assert all(0 <= span.start < span.end <= len(text) for span in spans)
