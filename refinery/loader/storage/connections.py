"""Connections of HttpStore and S3Store to one host: kept open between requests, and opened before the first ones."""

import contextlib
import http.client
import os
import select
import socket
import ssl
import threading
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import SplitResult, unquote, urlsplit

from refinery.loader.storage.fetch import Attempt, Permanent, Transient


@dataclass
class Lease:
    connection: http.client.HTTPConnection
    keep: bool = False  # whether its response was read to the end


class Connections:
    """Connections to one host, used again when idle. Safe to share between threads; a forked child opens its own.

    proxied: through the proxy that HTTPS_PROXY names, unless NO_PROXY names the host; only for https.
    """

    def __init__(self, scheme: str, host: str, port: int | None, proxied: bool = False) -> None:
        self._scheme, self._host, self._port, self._proxied = scheme, host, port, proxied
        self._tls: ssl.SSLContext | None = None
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._idle: list[http.client.HTTPConnection] = []
        self._closed = 0  # times that `close` was called
        self._lock = threading.Lock()
        self._making = threading.Lock()

    def _check_process(self) -> None:
        if self._process != os.getpid():  # two processes must not read from one connection; and locks may be taken
            self._begin()

    def open_ahead(self, count: int, timeout: float) -> None:
        """Open `count` connections in the background, so the first requests need not wait for that. timeout:
        seconds for each. An error is left to the request that needs the connection."""
        self._check_process()
        how = timeout, self._closed
        for _ in range(count):
            threading.Thread(target=self._open_one, args=how, name="refinery-connect", daemon=True).start()

    def _open_one(self, timeout: float, closed: int) -> None:
        """Add a connection, unless `close` was called since it had been `closed` times."""
        with contextlib.suppress(OSError, http.client.HTTPException):
            connection = self._new(timeout)
            try:
                connection.connect()
                with self._lock:
                    if self._closed == closed:
                        self._idle.insert(0, connection)  # behind those that were used already
                        return
            except BaseException:
                connection.close()
                raise
            connection.close()

    def _take(self, attempt: Attempt) -> http.client.HTTPConnection:
        self._check_process()
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                break
            # A readable idle connection was closed by the server, or has unrequested bytes.
            watch = select.poll()
            watch.register(connection.sock, select.POLLIN)
            if not watch.poll(0):
                return connection
            connection.close()
        return self._new(attempt.params.connect_timeout)

    def _new(self, timeout: float) -> http.client.HTTPConnection:
        if self._scheme == "http":
            return http.client.HTTPConnection(self._host, self._port, timeout=timeout)
        with self._making:  # it takes 20 ms
            if self._tls is None:
                self._tls = ssl.create_default_context()
        proxy = proxy_of(self._host) if self._proxied else None
        if proxy is None:
            return http.client.HTTPSConnection(self._host, self._port, timeout=timeout, context=self._tls)
        connection = http.client.HTTPSConnection(
            proxy.hostname or "", proxy.port or 80, timeout=timeout, context=self._tls
        )
        login = f"{unquote(proxy.username or '')}:{unquote(proxy.password or '')}"
        secret = {"Proxy-Authorization": f"Basic {b64encode(login.encode()).decode()}"} if proxy.username else {}
        connection.set_tunnel(self._host, self._port, secret)
        return connection

    @contextlib.contextmanager
    def use(self, attempt: Attempt) -> "Iterator[Lease]":
        """A connection, returned to the pool if `lease.keep` is set. Raises Transient if it breaks."""
        connection = self._take(attempt)
        lease = Lease(connection)
        try:
            if connection.sock is None:
                connection.connect()
            connection.sock.settimeout(attempt.params.read_timeout)
            sock = connection.sock  # http.client drops it for a response that ends with its connection
            with attempt.abortable(lambda: _shut_down(sock)):
                yield lease
        except FileNotFoundError:
            raise
        except ssl.SSLCertVerificationError as error:
            raise Permanent(error) from error
        except (OSError, http.client.HTTPException) as error:
            raise Transient(error) from error
        finally:
            if lease.keep:
                with self._lock:
                    self._idle.append(connection)
            else:
                connection.close()

    def close(self) -> None:
        self._check_process()
        with self._lock:
            idle, self._idle = self._idle, []
            self._closed += 1
        for connection in idle:
            connection.close()


def proxy_of(host: str) -> SplitResult | None:
    """The proxy on the way to a host, None for none. Raises Permanent for one that is not http://."""
    import urllib.request  # takes a while, and few are behind a proxy

    address = urllib.request.getproxies().get("https", "")
    if not address or urllib.request.proxy_bypass(host):
        return None
    proxy = urlsplit(address if "://" in address else f"http://{address}")
    if proxy.scheme != "http" or not proxy.hostname:
        raise Permanent("HTTPS_PROXY: http://HOST:PORT is allowed")
    return proxy


def _shut_down(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        # Not SSLSocket.shutdown, which discards the TLS state that the reading thread still uses.
        socket.socket.shutdown(sock, socket.SHUT_RDWR)
