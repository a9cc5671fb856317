"""Credentials that only their context gives away: a value behind a name that says password, secret, token or key.

The name must end in such a word (an id, a path, a length of a key is none), and the value must look drawn at random:
letters and digits in turn, as words, versions and identifiers are not. References to variables, placeholders and
examples are let pass. The approach is that of gitleaks' generic-api-key (entropy behind a keyword), detect-secrets'
keyword plugin and CredSweeper's filters; the thresholds are ours.
"""

import re
from collections import Counter
from functools import lru_cache
from itertools import pairwise
from math import log2
from typing import Literal

from refinery.transforms.redaction.pii_types.scan import compile_bytes

Kind = Literal["password", "secret", "key"]


REACH = 512  # bytes of a value that are read
# The last words of a name, in lower case, and what they make of it.
PASSWORD = re.compile(
    r"(?:pass?w(?:o?r?d|rd|sd)s?|passs?phrase|passcode|p[as]{0,3}s?s?wo?r?s?d|pwd?|pass|psw|pin_?code"
    r"|passwort|kennwort|passord|contrasen[iy]?a|contrasenya|clave|senha|passe|mdp|parola|haslo|heslo|geslo|jelszo|sifre"
    r"|wachtwoord|losenord|adgangskode|kodeord|salasana|parool|lozinka|zaporka|sandi)$",
    re.ASCII,
)
SECRET = re.compile(
    r"(?:secrets?|tokens?|credentials?|creds?|api_?keys?|auth_?keys?|access_?keys?|secret_?keys?|private_?keys?|auth"
    r"|oauth|bearer|authorization|authentication|pat|jwt|dsn|secret_?key_?base|passin|passout|client_?srt)$",
    re.ASCII,
)
KEY = re.compile(r"(?:keys?|salt|pepper|(?<![a-z])api)$", re.ASCII)
NOT_PASS = re.compile(r"(?:by|com|tres|sur|over|under|im|en)pass$", re.ASCII)
_TAIL = """
confirmation confirm again repeat value val str string text data base64 b64 hex env default prod production dev old new
raw plain
"""
_PUBLIC = "public pub csrf xsrf pubkey publickey schema primary foreign index sort partition cache"
_PROVIDERS = """
adafruit adobe airtable algolia alibaba artifactory asana atlassian aws azure beamer bitbucket bittrex cloudant
cloudflare codecov cohere coinbase confluence confluent contentful cos datadog discord droneci dropbox etsy facebook
fastly finicity finnhub flickr freshbooks gcp heroku hubspot ibm intercom jfrog jira kraken kucoin launchdarkly linkedin
lob mailchimp mailgun mapbox mattermost meraki messagebird netlify newrelic npm nytimes octopus okta plaid privateai
rapidapi sendbird sentry slapikey snyk softlayer sonar sourcegraph squarespace sumo travis twitch twitter yandex zendesk
"""
_NEVER = b"""
password passwd secret token none null nil true false undefined string required optional username user admin root
changeme default enabled disabled hidden public private secrets keychain prompt basic bearer digest
"""
TAIL = frozenset(_TAIL.split())
"""what may stand behind such a word without changing what the value is"""
PUBLIC = frozenset(_PUBLIC.split())
"""words that make a name public, or a matter of a database, wherever they stand"""
PROVIDERS = tuple(_PROVIDERS.split())
"""providers whose keys are hexadecimal or a UUID, which would otherwise be taken for an identifier. Source: gitleaks'
rules that look for the provider's name before an assignment; softlayer, sl, ibm, cos, cloudant: detect-secrets"""
NEVER = frozenset(_NEVER.split())
"""values that are not passwords"""

_EXAMPLES = b"""
password passwd pass pwd secret token user username test changeme changeit x xx xxx yyy port pw hostname host
"""
EXAMPLES = frozenset(_EXAMPLES.split())
"""passwords of examples in addresses and calls"""

HEX = compile_bytes(rb"(?:0x)?[0-9a-fA-F]+")
UUID = compile_bytes(rb"[0-9a-fA-F]{8}-(?:[0-9a-zA-Z]{4}-){3}[0-9a-zA-Z]{12}")
EXAMPLE = compile_bytes(
    rb"(?i)example|placeholder|redacted|your_?-?(?:key|token|secret|api|pass|own|real)|xxxx|\*\*\*|\.\.\.|____"
    rb"|abcdefghijklm|000000"
    rb"|(?:key|token|secret|password|value)_?-?here"
)
PLACEHOLDER = compile_bytes(
    rb"(?i)sample|change_?-?me|changeit|your|insert|dummy|fake|replace|todo|not_?real|some_?(?:key|token|secret|pass)|(?:key|token|secret|password|value)_?here"
    rb"|my_?-?(?:key|token|secret|pass|super|client)|foobar|lorem|enc\(|deadbeefdead|test_?-?(?:key|token|secret|pass)"
)
# References to a variable, a template, a function: the secret is elsewhere.
REFERENCE = compile_bytes(
    rb"^\*[A-Za-z]|[$%#@]\{|\$\(|\{\{|^\$[A-Za-z_0-9]|^%[A-Za-z_]+%$|^<|^\[|^%[sdrv(]|%[sdvq](?:$|[^A-Za-z0-9])|^\{[A-Za-z_0-9]*\}?$"
    rb"|^@[A-Za-z_]+@$|\(\)|^\\\$|^&[A-Za-z]|://|^vault:|^!|^ENC\["
)
# Encrypted for one cluster (kubeseal: the length of a wrapped key of 2,048 or 4,096 bits, then the key), or by sops.
SEALED = (b"AgA", b"AgB", b"AgC", b"AgD", b"AQA", b"AQB", b"AQC", b"AQD")
SEALED_BYTES = 340
PATH = compile_bytes(rb"(?:[./~]|[A-Za-z]:\\)?(?:[\w.-]*/)+[\w.-]*\.[A-Za-z]{2,5}$|^[./~]|^[A-Za-z]:\\")
DOTTED = compile_bytes(rb"[A-Za-z_][\w]*(?:(?:\.|::|->)[A-Za-z_]\w*)+")
PRODUCT_KEY = compile_bytes(rb"(?:[A-Z0-9]{4,6}-){3,7}[A-Z0-9]{4,6}")
VERSION = compile_bytes(rb"v?[0-9]+(?:\.[0-9]+)+(?:[-_.+][\w.]+)*")
DATE = compile_bytes(rb"[0-9T:./+Z-]+")
WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+", re.ASCII)


def name_words(name: str) -> list[str]:
    """Words of an identifier in snake, kebab, dotted or camel case, in lower case."""
    return [word.lower() for word in WORDS.findall(name)]


@lru_cache(maxsize=4096)
def judge_name(name: str) -> Kind | None:
    """What a name says of the value assigned to it; None if nothing. Cost: linear."""
    words = name_words(name)
    while words and (words[-1].isdigit() or words[-1] in TAIL):
        words.pop()
    if not words or not PUBLIC.isdisjoint(words):
        return None
    last, ending = words[-1], "_".join(words[-3:])
    if PASSWORD.search(ending) and not NOT_PASS.search(last):
        return "password"
    if SECRET.search(ending) and last not in ("spat", "compat", "format"):
        return "secret"
    if KEY.search(last) and last not in ("monkey", "turkey", "hockey", "jockey", "donkey", "whiskey"):
        return "secret" if has_provider(words) else "key"
    return None


def has_provider(words: list[str]) -> bool:
    """Whether a word of a name is one of PROVIDERS or begins with one, as in softlayerapikey."""
    return any(word == "sl" or (len(word) > 2 and word.startswith(PROVIDERS)) for word in words)


def entropy(value: bytes) -> float:
    """Shannon entropy of the bytes of `value`, in bits per byte."""
    size = len(value)
    return -sum(count / size * log2(count / size) for count in Counter(value).values())


# Each byte by its class: a lower case, A capital, 0 digit, - any other.
CLASSES = bytes(
    97 if 97 <= byte <= 122 else 65 if 65 <= byte <= 90 else 48 if 48 <= byte <= 57 else 45 for byte in range(256)
)
CHANGES = (b"a0", b"0a", b"aA", b"0A", b"A0")


def changes(value: bytes) -> int:
    """How often lower case, capitals and digits give way to each other, except at a capital that begins a word."""
    kinds = value.translate(CLASSES)
    return sum(kinds.count(pair) for pair in CHANGES)


ALPHABET = 10  # letters in the order of the alphabet that nobody draws by chance


def is_example(value: bytes) -> bool:
    """Whether a value says that it is none, is filled with x, 0, dots or stars, or has a piece of the alphabet."""
    if EXAMPLE.search(value):
        return True
    run = 1
    for before, byte in pairwise(value[:REACH].lower()):
        run = run + 1 if byte == before + 1 and byte > 97 else 1
        if run >= ALPHABET:
            return True
    return False


def is_placeholder(value: bytes) -> bool:
    """Whether a value stands for a secret: an example, a run of few characters, a reference to a variable."""
    if value.startswith(SEALED) and len(value) >= SEALED_BYTES:
        return True
    if is_example(value) or PLACEHOLDER.search(value) or REFERENCE.search(value):
        return True
    return len(set(value)) < 4 and len(value) < 40


def is_random(value: bytes, strict: bool) -> bool:
    """Whether a value of 8 bytes or more looks drawn at random. strict: what is not clearly random is not.

    Hexadecimal: 16 digits or more of at least 2.5 bits. Others: at least a fifth (strict: a quarter) of the places
    change between digits, capitals and lower case, and 2.5 bits (strict: 3) a byte.
    """
    value = value[:128]
    if value.startswith(b"0x") and not HEX.fullmatch(value):
        return False
    if HEX.fullmatch(value):
        return len(value) >= (32 if strict else 16) and entropy(value) >= 2.5 and not value.isdigit()
    if b"0" not in value.translate(CLASSES) and len(value) < 20:
        return False
    if VERSION.fullmatch(value) or DATE.fullmatch(value) or DOTTED.fullmatch(value):
        return False
    share = changes(value) / len(value)
    return share >= (0.25 if strict else 0.2) and entropy(value) >= (3.0 if strict else 2.5)


def is_password(value: bytes, quoted: bool) -> bool:
    """Whether a value behind a password's name is one: letters together with digits or signs, no word, no code."""
    if len(value) < 6 or len(value) > 256 or value.lower() in NEVER or PATH.search(value):
        return False
    if not quoted and (DOTTED.fullmatch(value) or value.startswith((b"0x", b"0X"))):
        return False
    kinds = value.translate(CLASSES)
    letters, digits = b"a" in kinds or b"A" in kinds, b"0" in kinds
    signs = any(kind == 45 and byte < 128 and byte not in b"_-.:/" for kind, byte in zip(kinds, value, strict=True))
    if not letters or (value.endswith((b":", b"=", b"?")) and not digits):
        return False
    if quoted:
        return digits or signs
    return (digits and changes(value) >= 1) or (digits and signs)


def judge_value(kind: Kind, value: bytes, quoted: bool) -> bool:
    """Whether the value assigned to a name of this kind is secret."""
    if kind == "password":
        found = is_password(value, quoted)
    elif len(value) == 36 and UUID.fullmatch(value):
        found = kind == "secret"
    elif PRODUCT_KEY.fullmatch(value) and len(set(value)) > 7:
        found = True
    else:
        long_enough = len(value) >= (16 if kind == "key" else 8)
        found = long_enough and is_random(value, kind == "key" and len(value) < 32) and not PATH.search(value)
    return found and not is_placeholder(value)
