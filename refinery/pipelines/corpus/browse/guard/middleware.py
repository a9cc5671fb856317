"""What stands before every page: which requests are refused, and the headers of every answer.

A page of the web may send requests to 127.0.0.1, and a name of its own may resolve there (DNS rebinding). So a request
must name this host, come from this origin, and bring the session's cookie.
"""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from refinery.pipelines.corpus.browse.guard.session import OPEN, Session

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

METHODS = ("GET", "HEAD", "POST")
MOST_TARGET = 8192  # bytes of a path with its query
MOST_BODY = 32 << 10  # bytes of a form

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}


class Guard:
    """The application `app` for one session. Anything else than its own requests gets a line of text and no more."""

    def __init__(self, app: App, session: Session) -> None:
        self.app, self.session = app, session

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise RuntimeError(f"{scope['type']}: this server answers HTTP alone")

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                ours = {name.encode(): value.encode() for name, value in HEADERS.items()}
                others = [pair for pair in message.get("headers", ()) if pair[0].lower() not in ours]
                message = {**message, "headers": [*others, *ours.items()]}
            await send(message)

        refusal = refused(scope, self.session)
        if refusal:
            await answer(send_guarded, *refusal)
            return
        await self.app(scope, receive, send_guarded)


def refused(scope: Scope, session: Session) -> tuple[int, str] | None:
    """(status, why) for a request that is none of this session's; None for one that is."""
    if scope["method"] not in METHODS:
        return 405, "GET and POST are allowed"
    if headers(scope, "host") != [session.host]:
        return 421, f"this server is {session.origin} alone"
    if not from_here(scope, session):
        return 403, "the request comes from another site"
    if len(scope.get("raw_path") or b"") + len(scope.get("query_string") or b"") > MOST_TARGET:
        return 414, f"an address of more than {MOST_TARGET:,} bytes"
    if scope["method"] == "POST" and not is_small(scope):
        return 413, f"a form has up to {MOST_BODY:,} bytes, and says how many"
    opens = scope["method"] == "GET" and scope["path"] == f"{session.base}/{OPEN}"
    if not opens and not session.knows("; ".join(headers(scope, "cookie"))):
        return 403, "open the address that `refinery browse` printed; it works once, start it again for another one"
    return None


def from_here(scope: Scope, session: Session) -> bool:
    """Whether the headers that a page cannot forge say that no other site sent this request.

    With `Referrer-Policy: no-referrer` browsers send forms with `Origin: null`; then Sec-Fetch-Site must say that the
    page was of this origin.
    """
    site, origin = headers(scope, "sec-fetch-site"), headers(scope, "origin")
    if site not in ([], ["same-origin"], ["none"]) or len(origin) > 1:
        return False
    if scope["method"] == "POST":
        return origin == [session.origin] or (origin in ([], ["null"]) and site == ["same-origin"])
    return origin in ([], [session.origin]) or (origin == ["null"] and site == ["same-origin"])


def is_small(scope: Scope) -> bool:
    """Whether a form says how long it is, and is short."""
    (length, *more) = headers(scope, "content-length") or [""]
    return not more and length.isascii() and length.isdigit() and len(length) < 9 and int(length) <= MOST_BODY


def headers(scope: Scope, name: str) -> list[str]:
    """All headers of that name."""
    return [value.decode("latin-1") for key, value in scope["headers"] if key.lower() == name.encode()]


async def answer(send: Send, status: int, text: str) -> None:
    """A line of text."""
    body = f"{text}\n".encode()
    kind = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": kind})
    await send({"type": "http.response.body", "body": body})
