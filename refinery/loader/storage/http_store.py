"""A corpus behind a web server or CDN, read-only. Nothing can be listed; readers request what the manifest names.

Every response is checked: status, Content-Range, Content-Length, identity encoding, and an unchanged ETag. Redirects
are followed on the same host only, unless the store was opened for a hub that keeps its files elsewhere. URLs with a
user name, password or query string are rejected, so none can end up in a log.
"""

import http.client
import io
import re
import weakref
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, NoReturn, cast
from urllib.parse import quote, unquote, urljoin, urlsplit

from refinery.loader.arguments import is_loopback
from refinery.loader.storage.connections import Connections
from refinery.loader.storage.fetch import Attempt, FetchParams, Permanent, RangeResponse, ReadCounters, Transient
from refinery.loader.storage.pace import MOST_BYTES
from refinery.loader.storage.receive import Buffers, crc32c_of, receive
from refinery.loader.storage.remote_store import REQUEST_BYTES, RangeStream, RemoteStore
from refinery.loader.storage.store import Names, check_name

_REDIRECTS = 3
_REMEMBERED = 1000  # targets of redirects, a kilobyte each
_MOVED = (301, 302, 303, 307, 308)
_EXPIRED = (400, 401, 403, 404, 410)  # what signed addresses answer when their time is over


def no_headers() -> Mapping[str, str]:
    """For servers that everyone may read."""
    return {}


class HttpStore(RemoteStore):
    """https://host/prefix, or http:// for loopback addresses. Raises ValueError for other addresses.

    anywhere: follow redirects to other hosts, too; where one leads is remembered until it expires. headers: called for
    each request to the store's own host, and to no other (credentials).
    """

    def __init__(
        self,
        url: str,
        params: FetchParams | None = None,
        anywhere: bool = False,
        headers: Callable[[], Mapping[str, str]] = no_headers,
    ) -> None:
        try:
            parts = urlsplit(url)
            host, port = parts.hostname or "", parts.port
            prefix = quote(unquote(parts.path.strip("/")))
            check_name(unquote(prefix) or "x")
        except ValueError:
            host, port = "", None
        if not host or "@" in parts.netloc or parts.query or parts.fragment or not parts.netloc.isascii():
            # The URL may contain a password, so it is not quoted.
            raise ValueError(
                f"location: {parts.scheme}://{host or '...'} given, https://host/path without user, password, query or "
                f"fragment is allowed"
            )
        if parts.scheme == "http" and not is_loopback(host):
            raise ValueError(f"location: http://{host} given, https:// is allowed, http:// for loopback addresses only")
        self.params = params or FetchParams()
        self.counters = ReadCounters()
        shown = f"[{host}]" if ":" in host else host
        self._origin = f"{parts.scheme}://{shown}" + (f":{port}" if port else "")
        self._path = f"/{prefix}/" if prefix else "/"
        self._anywhere, self._headers = anywhere, headers
        self._buffers = Buffers(2 * MOST_BYTES)  # on their way, and being stored
        self._targets: dict[str, str] = {}  # URL -> where it was redirected to, on another host
        self._pools = {self._origin: Connections(parts.scheme, host, port)}
        weakref.finalize(self, _close_all, self._pools)
        self.root = (self._origin + self._path).rstrip("/")

    def url(self, name: str) -> str:
        return self._origin + self._path + quote(check_name(name))

    def get(self, name: str, start: int, stop: int, attempt: Attempt, version: str = "") -> RangeResponse:
        """One attempt. The version is the object's ETag, "" if the server sends none."""
        response = self._follow(self.url(name), name, start, stop, attempt)
        if version and response.version != version:
            found = response.version or None
            raise Permanent(f"the object has changed: ETag {found!s:.80} found, {version:.80} expected")
        return response

    def open_ahead(self, connections: int) -> None:
        self._pools[self._origin].open_ahead(connections, self.params.connect_timeout)

    def open(self, name: str) -> BinaryIO:
        found = self._piece(name, 0, 1, "", None)
        stream = RangeStream(self, name, cast(int, found.size), found.version)
        return cast(BinaryIO, io.BufferedReader(stream, REQUEST_BYTES // 8))

    def size(self, name: str) -> int | None:
        try:
            return self._piece(name, 0, 1, "", None).size
        except FileNotFoundError:
            return None

    def pages(self, folder: str = "") -> Iterator[Names]:
        raise io.UnsupportedOperation(f"{self.root}: web servers cannot be listed; read what the manifest names")

    def create(self, name: str, source: bytes | Path) -> None:
        self._refuse(name)

    def replace(self, name: str, data: bytes) -> None:
        self._refuse(name)

    def delete(self, name: str) -> None:
        self._refuse(name)

    def close(self) -> None:
        _close_all(self._pools)

    def _refuse(self, name: str) -> NoReturn:
        raise io.UnsupportedOperation(f"{self.url(name)}: web servers are read-only")

    def _follow(self, url: str, name: str, start: int, stop: int, attempt: Attempt) -> RangeResponse:
        target = self._targets.get(url, url)
        for _ in range(1 + _REDIRECTS):
            found = urlsplit(target)
            origin = f"{found.scheme}://{found.netloc}"
            with self._pool(origin).use(attempt) as lease:
                headers = {"Range": f"bytes={start}-{stop - 1}", "Accept-Encoding": "identity"}
                headers |= self._headers() if origin == self._origin else {}
                path = found.path + (f"?{found.query}" if found.query else "")
                lease.connection.request("GET", path, headers=headers | {"User-Agent": "refinery-loader"})
                with lease.connection.getresponse() as response:
                    if response.status in _MOVED:
                        target = self._redirected(target, response.getheader("Location") or "")
                    elif response.status in _EXPIRED and self._targets.pop(url, None) == target:
                        target = url
                    else:
                        answer = self._parse(response, name, start, stop, attempt)
                        lease.keep = response.isclosed() and not response.will_close
                        if origin != self._origin:
                            if len(self._targets) >= _REMEMBERED:
                                self._targets.clear()
                            self._targets[url] = target
                        return answer
        raise Permanent(f"more than {_REDIRECTS} redirects")

    def _pool(self, origin: str) -> "Connections":
        if origin not in self._pools:  # two threads may both create one, which is harmless
            found = urlsplit(origin)
            self._pools[origin] = Connections(found.scheme, found.hostname or "", found.port)
        return self._pools[origin]

    def _redirected(self, url: str, location: str) -> str:
        try:
            target = urljoin(url, location)
            found = urlsplit(target)
            host = found.hostname or ""
            # From a server elsewhere nothing leads to services of this machine.
            near = self._origin.startswith("http://") and found.scheme == "http" and is_loopback(host)
            secure = (found.scheme == "https" or near) and found.port != 0
        except ValueError:
            raise Permanent("redirected to an invalid URL") from None
        elsewhere = f"{found.scheme}://{found.netloc}" != self._origin
        if elsewhere and not (self._anywhere and host and secure and "@" not in found.netloc):
            named = f"{found.scheme}://{host}"
            raise Permanent(f"redirected to {named:.80}, only {self._origin} is allowed")
        if not target.isascii():
            raise Permanent("redirected to a URL with non-ASCII characters")
        return target

    def _parse(
        self, response: http.client.HTTPResponse, name: str, start: int, stop: int, attempt: Attempt
    ) -> RangeResponse:
        status = response.status
        if status in (404, 410):
            raise FileNotFoundError(self.url(name))
        text = response.getheader("Content-Range") or ""
        if status == 416:
            beyond = re.fullmatch(r"bytes \*/([0-9]{1,19})", text)
            if beyond is None or int(beyond[1]) > start:
                raise Transient(f"status 416, Content-Range {text!r:.80}")
            return RangeResponse(b"", int(beyond[1]), response.getheader("ETag") or "", crc32c_of(response))
        if status not in (200, 206):
            if status in (408, 429) or status >= 500:
                raise Transient(f"status {status}", _seconds(response.getheader("Retry-After")), status in (429, 503))
            raise Permanent(f"status {status}")
        if (response.getheader("Content-Encoding") or "identity").lower() != "identity":
            raise Transient(f"Content-Encoding {response.getheader('Content-Encoding')!r:.80}, identity requested")
        data, total = receive(response, start, stop, attempt, self._buffers)
        return RangeResponse(data, total, response.getheader("ETag") or "", crc32c_of(response))


def _seconds(text: str | None) -> float:
    """Retry-After in seconds; its other form, a date, is ignored."""
    return float(text) if text and re.fullmatch(r"\d{1,6}", text) else 0.0


def _close_all(pools: "Mapping[str, Connections]") -> None:
    for pool in list(pools.values()):
        pool.close()
