"""Keys with the lengths that their issuers give them, without a word beside them, and the checks that rules make."""

import base64
import random
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.made_secrets import ALNUM, CLEAN, HEX, PLAIN, WORD, Forms, made_secrets
from refinery.transforms.core.document import Document
from refinery.transforms.filter.secrets_stage import SecretsParams, find_secrets, redact_secrets
from refinery.transforms.redaction.secret_types.accounts import decode_base58check, has_stellar_checksum, is_wallet_key
from refinery.transforms.redaction.secret_types.rules import is_jwk, is_mixed
from tests.beam import make_document

PARAMS = SecretsParams()
FORMS = Forms(seed=11)
draw = FORMS.draw


def rules(text: str) -> list[str]:
    return [span.rule for span in find_secrets(text, PARAMS)]


def redacted(text: str) -> str:
    answer = redact_secrets(make_document(text, "f@0"), PARAMS)
    assert isinstance(answer, Document)
    return answer.text


@pytest.mark.parametrize("name", sorted(FORMS.all()))
def test_issuers_forms_are_found_without_a_cue(name: str) -> None:
    """Alone, in prose, in quotes, behind an escape of a terminal, of an address."""
    secret = FORMS.all()[name]()
    for text in PLAIN:
        assert redacted(text.format(secret)) == text.format(PARAMS.replacement)


@pytest.mark.parametrize("text", CLEAN)
def test_look_alikes_stay(text: str) -> None:
    assert rules(text) == []


def test_made_secrets_stand_in_their_texts() -> None:
    made = list(made_secrets(1, seed=3))
    assert all(row.secret is None or row.text.count(row.secret) == 1 for row in made)
    assert {row.kind for row in made} == {"clean", "password", *(f"key: {name}" for name in FORMS.all())}


OTHERS = [
    ("anthropic-key", f"sk-ant-admin01-{draw(93, WORD)}AA"),
    ("anthropic-key", f"sk-ant-oat01-{draw(93, WORD)}AA"),
    ("openai-key", f"sk-{draw(20)}T3BlbkFJ{draw(20)}"),
    ("openai-key", f"sk-svcacct-{draw(58, WORD)}T3BlbkFJ{draw(58, WORD)}"),
    ("gitlab-token", f"glpat-{draw(40, WORD)}.01.{draw(9, string.ascii_lowercase + string.digits)}"),
    ("slack-token", f"xoxe-1-{draw(146)}"),
    ("slack-token", f"xoxp-{FORMS.number(12)}-{FORMS.number(12)}-{FORMS.number(13)}-{draw(32, HEX)}"),
    ("langsmith-key", f"lsv2_sk_{draw(32, HEX)}_{draw(10, HEX)}"),
    ("langfuse-key", f"sk-lf-{FORMS.uuid()}"),
    ("dropbox-token", f"sl.u.{draw(140, WORD)}"),
    ("figma-token", f"figu_{draw(40, WORD)}"),
    ("circleci-token", f"CCIPAT_{draw(22)}_{draw(40, HEX)}"),
    ("mapbox-token", f"sk.eyJ{draw(80)}.{draw(22, WORD)}"),
    ("gemini-key", f"AQ.Ab8RN6{draw(44, WORD)}"),
    ("azure-sas", f"https://x.example/c?sv=2024-11-04&sig={draw(43)}%3D"),
]


@pytest.mark.parametrize(("rule", "secret"), OTHERS)
def test_other_forms(rule: str, secret: str) -> None:
    assert rules(f"see {secret}.") == [rule]


def test_the_secret_beside_an_id_is_taken_with_it() -> None:
    key, secret = f"AKIA{draw(16, string.ascii_uppercase)}", draw(40)
    assert redacted(f"{key},{secret}\n") == f"{PARAMS.replacement},{PARAMS.replacement}\n"
    assert rules(f"{key} at commit {draw(40, HEX)}") == ["aws-access-key"]


def test_wallet_keys_are_held_to_their_checksum() -> None:
    """WIF, with and without compression, of the test net; BIP 32. One letter changed is no key."""
    forms = Forms(seed=5)
    for version, size in ((b"\x80", 32), (b"\x80", 33), (b"\xef", 33), (bytes.fromhex("0488ADE4"), 74)):
        key = forms.wallet(version, size)
        assert is_wallet_key(key.encode())
        assert rules(f"key {key}.") == ["bitcoin-key"]
        other = key[:20] + ("2" if key[20] != "2" else "3") + key[21:]
        assert decode_base58check(other.encode()) == b""
        assert rules(f"see {other}.") == []


def crc16(data: bytes) -> int:
    """CRC-16/XModem, by polynomial division of the whole message (an oracle for the byte-wise one)."""
    value = int.from_bytes(data, "big") << 16
    for shift in range(value.bit_length() - 17, -1, -1):
        if value >> (shift + 16) & 1:
            value ^= 0x11021 << shift
    return value & 0xFFFF


@given(st.binary(min_size=32, max_size=32), st.integers(0, 55))
def test_stellar_seeds_are_held_to_their_checksum(seed: bytes, at: int) -> None:
    body = b"\x90" + seed
    text = base64.b32encode(body + crc16(body).to_bytes(2, "little"))
    assert text[:1] == b"S" and has_stellar_checksum(text)
    other = text[:at] + (b"B" if text[at : at + 1] != b"B" else b"C") + text[at + 1 :]
    assert not has_stellar_checksum(other)


NAMES = (
    "readUint16LengthPrefixed",
    "task_completion_event2",
    "convertStringSecurityDescriptor2",
)


def test_what_is_drawn_at_random_is_told_from_names() -> None:
    rng = random.Random(4)
    drawn = ["".join(rng.choices(ALNUM, k=24)).encode() for _ in range(500)]
    assert sum(map(is_mixed, drawn)) >= 490  # the others happen to have no digit
    assert not any(is_mixed(name.encode()) for name in NAMES)


def test_private_web_keys_in_base64_and_public_ones() -> None:
    private = b'[\n  {\n "kty": "EC",\n "d": "' + draw(43).encode() + b'"}]'
    public = b'[\n  {\n "kty": "EC",\n "x": "' + draw(43).encode() + b'"}]'
    assert is_jwk(base64.b64encode(private)) and not is_jwk(base64.b64encode(public))
    assert rules(base64.b64encode(private).decode()) == ["jwk"]
    assert rules(base64.b64encode(public).decode()) == []
