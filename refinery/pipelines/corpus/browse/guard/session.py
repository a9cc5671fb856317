"""The one session of a server: a token that works once, the cookie it is exchanged for, and the token of forms."""

import hmac
import secrets
from dataclasses import dataclass, field
from threading import Lock

COOKIE = "refinery_browse"
OPEN = "open"  # the page that takes the one-time token
BYTES = 32  # of each secret


def new_secret() -> str:
    """256 bits that nobody can guess, fit for a URL."""
    return secrets.token_urlsafe(BYTES)


@dataclass
class Session:
    """The secrets of one server. port: where it listens.

    base: the path below which everything is, "/…", itself a secret: a browser sends a cookie to every port of
    127.0.0.1, but only below the cookie's path, so that no other server on this machine gets it.
    """

    port: int
    base: str = field(default_factory=lambda: f"/{secrets.token_urlsafe(16)}")
    csrf: str = field(default_factory=new_secret)
    _token: str = field(default_factory=new_secret)
    _cookie: str = field(default_factory=new_secret)
    _used: bool = False
    _lock: Lock = field(default_factory=Lock)

    @property
    def origin(self) -> str:
        """Of its pages."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def host(self) -> str:
        """What the header Host must be: any other name leads here by DNS rebinding."""
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """The address to print. It works once."""
        return f"{self.origin}{self.base}/{OPEN}?token={self._token}"

    def exchange(self, token: str) -> str | None:
        """The header Set-Cookie for the one-time token; None for another one, and for its second use."""
        with self._lock:
            if self._used or not same(token, self._token):
                return None
            self._used = True
        return f"{COOKIE}={self._cookie}; Path={self.base}/; HttpOnly; SameSite=Strict"

    def knows(self, cookies: str) -> bool:
        """Whether a header Cookie holds the session's."""
        pairs = (part.strip().partition("=") for part in cookies.split(";"))
        return any(name == COOKIE and same(value, self._cookie) for name, _, value in pairs)

    def allows(self, form_token: str) -> bool:
        """Whether a form was made by this server."""
        return same(form_token, self.csrf)


def same(given: str, expected: str) -> bool:
    """Equality that takes as long whatever is given."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode())
