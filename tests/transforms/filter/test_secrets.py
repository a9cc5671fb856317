"""Credentials of every kind are found, what only looks like one is not; no string here is one, most are made."""

import base64
import json
import random
import re
import string
import subprocess
import sys
import zlib
from itertools import pairwise

import apache_beam as beam
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from refinery.transforms.core.document import Document, Drop, document_id
from refinery.transforms.filter.secrets_stage import RULES, SECRETS, SecretsParams, find_secrets, redact_secrets
from refinery.transforms.redaction.secret_types.find import HINTS
from refinery.transforms.redaction.secret_types.rules import Token, has_github_checksum
from refinery.transforms.redaction.secret_types.tokens import PATTERNS, TOKENS
from tests.beam import make_document, run_and_collect
from tests.sampling import one_commit_in_four, sampled, scaled

PARAMS = SecretsParams()
GONE = PARAMS.replacement


def made(size: int, seed: int = 1, alphabet: str = string.ascii_letters + string.digits) -> str:
    """A string drawn at random, of letters and digits in turn."""
    return "".join(random.Random(seed).choices(alphabet, k=size))


def made_hex(size: int, seed: int = 1) -> str:
    return made(size, seed, "0123456789abcdef")


def rules(text: str, params: SecretsParams = PARAMS) -> list[str]:
    return [span.rule for span in find_secrets(text, params)]


def redacted(text: str, params: SecretsParams = PARAMS) -> str:
    answer = redact_secrets(make_document(text, "f@0"), params)
    assert isinstance(answer, Document)
    return answer.text


PASSWORD, TOKEN, KEY = "k7!" + made(8), made(24, 3), made(40, 4)
UUID = "-".join(made_hex(size, size) for size in (8, 4, 4, 4, 12))
PEM = "\n".join(made(64, seed, string.ascii_letters + string.digits + "+/") for seed in range(6))

FOUND = [
    ('{{"kty": "EC", "crv": "P-256", "d": "{}"}}', made(43), "jwk"),
    ("password = '{}'", PASSWORD, "password"),
    ("db.passwd: {}\n", PASSWORD, "password"),
    ("MYSQL_PWD={}", PASSWORD, "password"),
    ('#define PASSWORD "{}"', PASSWORD, "password"),
    ('val password: String = "{}"', PASSWORD, "password"),
    ("mysql --password {} -u root", PASSWORD, "password"),
    ("CREATE USER x IDENTIFIED BY '{}';", PASSWORD, "password"),
    ("<password>{}</password>", PASSWORD, "password"),
    ('setProperty("db.password", "{}")', PASSWORD, "password"),
    ("clientSecret: {}", TOKEN, "secret"),
    ('{{\\"access_token\\": \\"{}\\"}}', TOKEN, "secret"),
    ("export SERVICE_TOKEN={}", TOKEN, "secret"),
    ("https://x.example/?a=1&api_key={}&b=2", TOKEN, "secret"),
    ("HEROKU_API_KEY = {}", UUID, "secret"),
    ("signing_key = '{}'", KEY, "key"),
    ("postgres://app:{}@db.example:5432/x", PASSWORD, "url-password"),
    ("redis://:{}@cache/0", PASSWORD, "url-password"),
    ("Authorization: Bearer {}", KEY, "authorization"),
    ("curl -u app:{} https://x.example", PASSWORD, "curl-user"),
    ("root:{}:19000:0:", "$6$" + made(8) + "$" + made(86), "password-hash"),
    ("{}", f"-----BEGIN RSA PRIVATE KEY-----\n{PEM}\n-----END RSA PRIVATE KEY-----", "private-key"),
    ("{}", f"-----BEGIN PRIVATE KEY-----\\n{PEM[:130]}\\n-----END PRIVATE KEY-----", "private-key"),
    ("a key that was cut\n{}", f"-----BEGIN EC PRIVATE KEY-----\n{PEM}\n", "private-key"),
]


@pytest.mark.parametrize(("text", "secret", "rule"), FOUND)
def test_found_by_its_context(text: str, secret: str, rule: str) -> None:
    text = text.format(secret)
    assert rule in rules(text)
    assert redacted(text) == text.replace(secret, GONE)


def test_basic_credentials_in_a_header() -> None:
    pair = base64.b64encode(b"app:" + PASSWORD.encode()).decode()
    assert redacted(f"curl -H 'Authorization: Basic {pair}'") == f"curl -H 'Authorization: Basic {GONE}'"


HARMLESS = [
    "",
    "The password must have eight characters, a digit and a capital; the key: practice.",
    "password = os.environ['DB_PASSWORD']",
    "password=${DB_PASSWORD} token=$TOKEN key={{ .Values.key }} secret=%(secret)s pw=<your password>",
    'password = "password" # changeme',
    "api_key = 'YOUR_API_KEY_HERE'; token: xxxxxxxxxxxxxxxxxxxxxxxx; secret = example-secret-1234",
    "postgres://user:password@localhost/db and https://host:8080/a@b and http://user:$PASS@h",
    "token_count = 1024; key_length = 256; password_field = 'pass1word2'; token_url = https://a.example/t0k3n",
    f"commit {made_hex(40)}\nindex {made_hex(7)}..{made_hex(7, 2)}",
    f"sha256:{made_hex(64)} md5={made_hex(32)} etag: {made_hex(32, 5)} uuid = {UUID}",
    f"public_key = '{KEY}' csrf_token = '{KEY}'",
    "primaryKey = 'user_id_2_idx_41'; foreign_key: orders_2021_v2",
    "key = XSalsa20.key_length; keyboard: QWERTY2; monkey = 'George12'",
    "getToken(self, tokenizer2, max_tokens=4096, pad_token='[PAD]')",
    "Authorization: Bearer <token>; authorization: basic understanding of the matter",
    "curl -u $USER:$PASSWORD https://x.example; curl --user user:password x",
    "-----BEGIN PRIVATE KEY-----\nanything\n-----END PRIVATE KEY-----",
    "-----BEGIN PUBLIC KEY-----\n" + PEM + "\n-----END PUBLIC KEY-----",
    "AKIA" + "IOSFODNN7" + "EXAMPLE",
    "ghp_" + "x" * 36,
    "a risk-averse task-force made sk-etches of disk-space for Asia's ASIANPACIFICREGIONS",
    f"data:image/png;base64,iVBOR{made(400, 8)}+AKIA{made(16, 2, string.ascii_uppercase)}/{made(90, 9)}",
    "eyJ" + made(40) + "." + made(60) + "." + made(30),  # no header of a JWT
]


@pytest.mark.parametrize("text", HARMLESS)
def test_harmless(text: str) -> None:
    assert rules(text) == []
    doc = make_document(text, "f@0")
    assert redact_secrets(doc, PARAMS) is doc


def sample(token: Token) -> st.SearchStrategy[bytes]:
    """What the grammar of a token allows."""
    return st.from_regex(re.compile(token.pattern), fullmatch=True)


@pytest.mark.parametrize("token", sampled("grammars of credentials", TOKENS, 34), ids=lambda token: token.name)
def test_every_grammar_finds_what_it_describes(token: Token) -> None:
    """The anchors and the hint of a token occur wherever its pattern matches."""

    @settings(max_examples=12, database=None, suppress_health_check=list(HealthCheck))
    @given(sample(token))
    def check(secret: bytes) -> None:
        match = re.search(token.pattern, secret)
        assert match
        assert not token.anchors or any(anchor in secret for anchor in token.anchors)
        assert not token.hint or re.search(token.hint, secret)
        if PATTERNS[token.name][1].search(secret):  # RE2's \s and case folding are ASCII's
            assert token.name in HINTS.of(secret)

    check()


def test_jwt_is_recognised_by_its_header() -> None:
    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    jwt = f"{part({'alg': 'HS256', 'typ': 'JWT'})}.{part({'sub': '1', 'name': 'Jo'})}.{made(43)}"
    assert rules(f"cookie {jwt};") == ["jwt"]
    assert redacted(f"cookie {jwt};") == f"cookie {GONE};"


def test_github_checksum_outweighs_what_looks_like_a_placeholder() -> None:
    body = "0" * 26 + "abc1"
    value, digits = zlib.crc32(body.encode()), ""
    for _ in range(6):
        value, digit = divmod(value, 62)
        digits = (string.digits + string.ascii_uppercase + string.ascii_lowercase)[digit] + digits
    assert has_github_checksum(f"ghp_{body}{digits}".encode())
    assert rules(f"ghp_{body}{digits}") == ["github-token"]
    assert rules(f"ghp_{body}{'A' * 6}") == []


def test_every_rule_has_its_switch_source_and_reason() -> None:
    names = [rule.name for rule in RULES]
    assert len(set(names)) == len(names)
    assert {reason.name for reason in SECRETS.reasons} == {*names, "too-many-secrets", "secret-remains"}
    assert all(rule.source and rule.what for rule in RULES)
    text = f"password = '{PASSWORD}' signing_key = '{KEY}'"
    assert rules(text) == ["password", "key"]
    assert rules(text, SecretsParams(off=("password",))) == ["key"]
    with pytest.raises(ValueError, match=r"off: 'passwords' given, the name of a rule is allowed"):
        SecretsParams(off=("passwords",))


def test_replacement_must_not_be_a_secret_itself() -> None:
    assert redacted(f"password: {PASSWORD}", SecretsParams(replacement="<SECRET>")) == "password: <SECRET>"
    with pytest.raises(ValueError, match="a text that no rule takes for a secret is allowed"):
        SecretsParams(replacement=PASSWORD)


def test_address_and_meta_are_cleaned_and_the_id_follows_the_text() -> None:
    doc = Document(
        document_id("x"), f"token={TOKEN}", f"https://u:{PASSWORD}@x.example/?key={KEY}", "s", "f@1", 0,
        {"title": f"my api_key is '{TOKEN}'", "n": 3, "note": f"bare {TOKEN}"},
    )  # fmt: skip
    answer = redact_secrets(doc, PARAMS)
    assert isinstance(answer, Document)
    assert answer.text == f"token={GONE}"
    assert answer.id == document_id(answer.text)
    assert answer.url == f"https://u:{GONE}@x.example/?key={GONE}"
    assert answer.meta == {
        "title": f"my api_key is '{TOKEN}'".replace(TOKEN, GONE), "n": 3, "note": f"bare {GONE}",
        "secrets": 3, "secret_rules": "key:1,secret:1,url-password:1",
    }  # fmt: skip


def test_a_value_that_was_found_is_replaced_wherever_it_stands() -> None:
    assert redacted(f"token={TOKEN}\nand again: {TOKEN}, {TOKEN}") == f"token={GONE}\nand again: {GONE}, {GONE}"


def test_drop_names_the_rule() -> None:
    doc = make_document(f"signing_key = '{KEY}'", "f@0")
    assert redact_secrets(doc, SecretsParams(action="drop")) == Drop("key")


def test_credentials_that_are_only_counted() -> None:
    """The same notes as where they are replaced; text, address and id stay."""
    doc = make_document(f"token={TOKEN} and {TOKEN}", "f@0", meta={"title": f"signing_key = '{KEY}'"})
    counted, redacted = redact_secrets(doc, SecretsParams(action="note")), redact_secrets(doc, SecretsParams())
    assert isinstance(counted, Document) and isinstance(redacted, Document)
    assert (counted.id, counted.text, counted.meta["title"]) == (doc.id, doc.text, doc.meta["title"])
    assert [counted.meta[name] == redacted.meta[name] for name in ("secrets", "secret_rules")] == [True, True]
    plain = make_document("nothing of that kind", "f@0")
    assert redact_secrets(plain, SecretsParams(action="note")) is plain
    several = make_document("\n".join(f"password = '{PASSWORD}{number}'" for number in range(2)), "f@0")
    assert redact_secrets(several, SecretsParams(action="note", max_secrets=1)) == Drop("too-many-secrets")


def test_a_list_of_credentials_is_dropped() -> None:
    text = "\n".join(f"password = '{PASSWORD}{number}'" for number in range(11))
    assert redact_secrets(make_document(text, "f@0"), SecretsParams(max_secrets=10)) == Drop("too-many-secrets")
    assert isinstance(redact_secrets(make_document(text, "f@0"), SecretsParams(max_secrets=11)), Document)


def test_what_redaction_leaves_behind_drops_the_document(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail closed: where the text still holds a secret after all rounds, nothing of it goes on."""
    from refinery.transforms.filter import secrets_stage as secrets

    monkeypatch.setattr(secrets, "find", lambda data, off: [secrets.Found(0, 1, "key")] if data else [])
    assert redact_secrets(make_document("x", "f@0"), PARAMS) == Drop("secret-remains")


PIECES = st.sampled_from(
    ["password", "=", ": ", "'", '"', "\n", " ", "token", "://", "@", ":", PASSWORD, KEY, "ghp_", made(36), "é漢", "\\",
     "-----BEGIN PRIVATE KEY-----", PEM, "-----END PRIVATE KEY-----", "eyJ", "curl -u ", "$6$", "Bearer ", "<", ">"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=30).map("".join))
def test_nothing_is_found_after_redaction(text: str) -> None:
    answer = redact_secrets(make_document(text, "f@0"), PARAMS)
    if isinstance(answer, Document):
        assert find_secrets(answer.text, PARAMS) == []
        again = redact_secrets(answer, PARAMS)
        assert isinstance(again, Document)
        assert again.text == answer.text
        spans = find_secrets(text, PARAMS)
        assert all(a.end <= b.start for a, b in pairwise(spans))
        assert not any(text[span.start : span.end] in answer.text for span in spans if span.end - span.start >= 8)


UNITS = ["key=", "password='", "://a:b@", "-----BEGIN PRIVATE KEY-----\n", "eyJ", "a" * 50, "token: x9", "curl -u a:",
         "xox", "\\\"", "$2a$10$", "A" * 16 + "==", "MII", "0x", "glc_", "Bearer ", "the password is ", "id/pw ",
         "mysql -p", "\\nk", "login a password ", "a:1:b:c:", "5K", "&quot;key=", "token "]  # fmt: skip
LENGTH = scaled(20_000, 5_000)
COUNT_CALLS = """
import cProfile, json, pstats, sys
from refinery.transforms.filter.secrets_stage import SecretsParams, find_secrets

def calls(unit, size):
    profile = cProfile.Profile()
    profile.runcall(find_secrets, unit * (size // len(unit)), SecretsParams())
    return pstats.Stats(profile).total_calls

units, size = json.load(sys.stdin)
print(json.dumps([[calls(unit, size), calls(unit, 4 * size)] for unit in units]))
"""


@pytest.fixture(scope="module")
def calls() -> list[list[int]]:
    """For each unit, calls on a text of it and on one four times as long. In an interpreter of its own: Python 3.11
    hangs in a profiled call while another thread has an exception waiting, as one that extraction has given up may
    have.
    """
    command = [sys.executable, "-c", COUNT_CALLS]
    done = subprocess.run(command, input=json.dumps([UNITS, LENGTH]), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)  # type: ignore[no-any-return]


@one_commit_in_four
@pytest.mark.parametrize("unit", range(len(UNITS)), ids=UNITS)
def test_cost_is_linear(unit: int, calls: list[list[int]]) -> None:
    """Work done on hostile repetition, counted in calls, grows with the text."""
    small, large = calls[unit]
    assert large <= 5 * small + LENGTH // 20


def test_lone_surrogates_are_a_clean_error() -> None:
    with pytest.raises(UnicodeEncodeError):
        find_secrets("password = '\ud800'", PARAMS)


def test_a_pipeline_redacts() -> None:
    docs = [make_document(f"password = '{PASSWORD}'", "f@0"), make_document("none", "f@1")]
    [kept] = run_and_collect(lambda p: [p | beam.Create(docs) | SECRETS()])
    assert sorted(doc.text for doc in kept) == ["none", f"password = '{GONE}'"]
