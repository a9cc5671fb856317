"""Addresses without what they say about a person or let in: for the rows of dropped documents.

Pages that are dropped while they are read or extracted never reach the stage of secrets, and the address of a page is
listed in `rejects/` whatever the page holds. What is replaced: who logs in (RFC 3986, section 3.2.1), the values of
parameters that carry credentials, sessions or a person (OpenTelemetry's conventions for `url.full`; OWASP, "Information
exposure through query strings in URL"), e-mail addresses, and whatever a rule of the stage of secrets finds.
"""

from urllib.parse import unquote

import re2

from refinery.transforms.redaction.secret_types.find import find

REDACTED = "REDACTED"
PASSES = 8  # what is replaced may leave the form of an address behind: REDACTED://user@
NOTHING_OFF: frozenset[str] = frozenset()

USER = re2.compile(r"^([A-Za-z][A-Za-z0-9+.-]*:[/\\]+|mailto:|[/\\]*)[^/\\?#]*@")
EMAIL = re2.compile(r"[\w.%+'-]+(?:@|%(?:25)*40)[\w-]+(?:\.[\w-]+)+")
PARAMETER = re2.compile(r"([?&;#])([^=&;#?]*)=([^&;#]*)")
PRIVATE = re2.compile(
    r"pass|pwd|secret|token|key|auth|credential|cookie|sess|jwt|login|mail|phone|mobile|user|account|signature"
    r"|(?:^|[^a-z])(?:sig|sid|otp|pin|code|state|hash|ssn|iban|tel|dob|birth\w*|cf(?:id|token))$"
)


def redact_address(url: str) -> str:
    """`url` with REDACTED in place of what nobody else should read; itself where there is nothing of that kind.

    Idempotent. Lone surrogates become "?". Cost: linear, some 20 microseconds.

    >>> redact_address("https://anna:pw@example.com/a?page=2&access_token=abc&to=anna@example.com")
    'https://REDACTED@example.com/a?page=2&access_token=REDACTED&to=REDACTED'
    """
    url = url.encode("utf-8", "replace").decode()
    for _ in range(PASSES):
        url, before = _redact(url), url
        if url == before:
            break
    return url


def _redact(url: str) -> str:
    if not url:
        return url
    url = USER.sub(rf"\1{REDACTED}@", url)
    url = PARAMETER.sub(_parameter, url)
    user, at, rest = url.partition(f"{REDACTED}@")  # which is not an e-mail address: the host stays
    url = EMAIL.sub(REDACTED, url) if not at or "/" in user.rstrip("/") else user + at + EMAIL.sub(REDACTED, rest)
    data = url.encode()
    for start, end, _rule in reversed(find(data, NOTHING_OFF)):
        if data[start:end] != REDACTED.encode():
            data = data[:start] + REDACTED.encode() + data[end:]
    return data.decode("utf-8", "replace")  # a rule reads so many bytes, which may end inside a character


def _parameter(match: "re2._Match[str]") -> str:
    name = unquote(match[2]).lower()
    return f"{match[1]}{match[2]}={REDACTED if PRIVATE.search(name) else match[3]}"
