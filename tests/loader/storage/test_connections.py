"""Connections that are opened before the first requests."""

import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from refinery.loader.errors import FormatError
from refinery.loader.storage.connections import Connections, proxy_of
from refinery.loader.storage.fetch import Attempt, FetchError, FetchParams, Permanent, Transient
from refinery.loader.storage.http_store import HttpStore
from refinery.loader.storage.pace import FIRST
from refinery.loader.view.open_readable import open_readable
from tests.loader.range_server import RangeServer, range_server
from tests.loader.remote_split import wait_for


@pytest.fixture
def server() -> Iterator[RangeServer]:
    with range_server() as server:
        server.files = {"a": b"abc"}
        yield server


@pytest.fixture
def store(server: RangeServer) -> Iterator[HttpStore]:
    store = HttpStore(server.url, FetchParams(deadline=30))
    yield store
    store.close()


def ports(store: HttpStore, count: int) -> set[int]:
    """The client's ports of `count` idle connections, once they are there."""
    (pool,) = store._pools.values()
    wait_for(lambda: len(pool._idle) == count)
    return {connection.sock.getsockname()[1] for connection in pool._idle}


def test_requests_take_connections_that_are_open(server: RangeServer, store: HttpStore) -> None:
    store.open_ahead(3)
    opened = ports(store, 3)
    assert not server.ports
    assert store.read("a") == store.read("a") == b"abc"
    assert set(server.ports) <= opened
    assert len(set(server.ports)) == 1  # one that was used is used again first
    store.close()
    assert ports(store, 0) == set()
    assert store.read("a") == b"abc"
    assert server.ports[-1] not in opened


def test_a_forked_child_opens_its_own(server: RangeServer, store: HttpStore) -> None:
    assert store.read("a") == b"abc"
    inherited = ports(store, 1)
    (pool,) = store._pools.values()
    kept = list(pool._idle)
    process = os.getpid()
    pool._process = process + 1  # as if it had been made in another one
    assert pool._lock.acquire()  # as a thread of the parent may have
    assert store.read("a") == b"abc"
    assert server.ports[-1] not in inherited
    assert kept[0].sock is not None  # the parent's, which it still uses
    for connection in kept:
        connection.close()


def test_one_that_is_there_after_the_store_was_closed_is_closed(store: HttpStore) -> None:
    (pool,) = store._pools.values()
    new = pool._new

    def closing(timeout: float) -> object:
        store.close()
        return new(timeout)

    pool._new = closing  # type: ignore[assignment, method-assign]
    pool._open_one(10, 0)
    assert not pool._idle


def test_no_connection_is_an_error_of_the_request_only() -> None:
    with socket.socket() as nobody:  # has a port, and does not listen
        nobody.bind(("127.0.0.1", 0))
        params = FetchParams(deadline=0.05, first_delay=0.01, max_delay=0.01)
        store = HttpStore(f"http://127.0.0.1:{nobody.getsockname()[1]}", params)
        store.open_ahead(2)
        (pool,) = store._pools.values()
        pool._open_one(1, 0)
        assert not pool._idle
        with pytest.raises(FetchError, match="refused"):
            store.read("a")


def test_opening_a_corpus_opens_connections(store: HttpStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(HttpStore, "open_ahead", lambda store, connections: asked.append(connections))
    with pytest.raises(FormatError):
        open_readable(store, None)
    assert asked == [FIRST]


def test_through_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it is asked for: a tunnel to the host, with its own login; nothing where NO_PROXY names the host."""
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://me:p%40ss@127.0.0.1:{proxy.getsockname()[1]}")
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        pool = Connections("https", "bucket.example", None, proxied=True)
        attempt = Attempt(FetchParams(), time.monotonic() + 30)
        heard: list[bytes] = []

        def serve() -> None:
            client, _ = proxy.accept()
            with client:
                heard.append(client.recv(4096))
                client.sendall(b"HTTP/1.1 403 no\r\n\r\n")

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(Transient, match="403"), pool.use(attempt):
            pass
        thread.join()
        assert heard[0].startswith(b"CONNECT bucket.example:443 ") and b"Basic bWU6cEBzcw==" in heard[0]
    monkeypatch.setenv("NO_PROXY", "bucket.example")
    assert proxy_of("bucket.example") is None
    monkeypatch.setenv("HTTPS_PROXY", "socks5://127.0.0.1")
    with pytest.raises(Permanent, match="HTTPS_PROXY"):
        proxy_of("other.example")
