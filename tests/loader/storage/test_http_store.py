import base64
import datetime
import io
import ipaddress
import pickle
import ssl
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import google_crc32c
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from refinery.loader.errors import CorruptObject
from refinery.loader.storage import remote_store as remote
from refinery.loader.storage.fetch import FetchError, FetchParams, Permanent
from refinery.loader.storage.gcs_store import GcsStore
from refinery.loader.storage.http_store import HttpStore
from refinery.loader.storage.open_store import open_store
from tests.fake_gcs import fake_gcs
from tests.loader.range_server import FAULTS, RangeServer, range_server

FETCH = FetchParams(deadline=60, first_delay=0.005, max_delay=0.02)
SHORT_TIMEOUT = replace(FETCH, read_timeout=0.2)
DATA = bytes(range(256)) * 40


@pytest.fixture
def server() -> Iterator[RangeServer]:
    with range_server() as server:
        server.files = {"p/a b#c?ä.bin": DATA, "p/empty": b""}
        yield server


@pytest.fixture
def store(server: RangeServer) -> Iterator[HttpStore]:
    store = HttpStore(f"{server.url}/p/", FETCH)
    yield store
    store.close()


NAME = "a b#c?ä.bin"


def test_read(store: HttpStore) -> None:
    assert store.read(NAME) == DATA
    assert store.read(NAME, 4) == DATA[4:]
    assert store.read(NAME, 4, 3) == DATA[4:7]
    assert store.read(NAME, 10_230, 100) == DATA[10_230:]
    assert store.read(NAME, len(DATA)) == store.read(NAME, 10**9, 5) == store.read(NAME, 3, 0) == b""
    assert store.read("empty") == store.read("empty", 0, 10) == b""
    assert (store.size(NAME), store.size("empty"), store.size("missing")) == (len(DATA), 0, None)
    for read in (store.read, store.open, lambda name: store.read(name, 0, 0)):
        with pytest.raises(FileNotFoundError, match="p/missing"):
            read("missing")
    for start, length in ((-1, None), (0, -1)):
        with pytest.raises(ValueError, match="0 or more is allowed"):
            store.read(NAME, start, length)


def test_read_in_pieces(store: HttpStore, server: RangeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large file is read with several requests, all for one version."""
    monkeypatch.setattr(remote, "REQUEST_BYTES", 1000)
    assert store.read(NAME) == DATA
    assert store.read(NAME, 500, 3000) == DATA[500:3500]
    server.script = deque(["", "", "etag"])
    with pytest.raises(FetchError, match=r"bytes 2000 to 3000: 1 attempt .* has changed"):
        store.read(NAME)


def test_stream(store: HttpStore, server: RangeServer) -> None:
    with store.open(NAME) as stream:
        assert stream.read(4) == DATA[:4]
        assert stream.seek(-2, io.SEEK_END) == len(DATA) - 2
        assert (stream.tell(), stream.read()) == (len(DATA) - 2, DATA[-2:])
        stream.seek(10)
        assert stream.seek(5, io.SEEK_CUR) == 15
        assert stream.read() == DATA[15:]
        assert stream.seek(10**6) == 10**6
        assert stream.read() == b""
        with pytest.raises(ValueError, match="position -1 given"):
            stream.seek(-1)
    with store.open("empty") as stream:
        assert stream.read() == b""
    with store.open(NAME) as stream:
        server.script = deque(["etag"])
        with pytest.raises(FetchError, match="has changed"):
            stream.read()


def test_read_only(store: HttpStore) -> None:
    """Listing and writing are not supported."""
    uses: list[Callable[[], object]] = [store.list, lambda: store.create("x", b""), lambda: store.replace("x", b"")]
    for use in (*uses, lambda: store.delete("x")):
        with pytest.raises(io.UnsupportedOperation, match=r"cannot be listed|are read-only"):
            use()


# Faults of the first two responses, and the number of retries. A small object that is sent whole is accepted if its
# beginning was requested; unrequested bytes cost only the connection.
RETRIES = {fault: (2, 2) for fault in FAULTS if fault != "trickle"}
RETRIES |= {"wrong": (1, 1), "200": (2, 1), "garbage": (2, 0)}


@pytest.mark.parametrize(("fault", "count", "retries"), [(fault, *numbers) for fault, numbers in RETRIES.items()])
def test_faults(store: HttpStore, server: RangeServer, fault: str, count: int, retries: int) -> None:
    store.params = SHORT_TIMEOUT if fault in ("stall", "stall in body") else FETCH
    server.script = deque([fault] * count)
    if fault == "wrong":
        server.goog_hash = "crc32c=" + remote_hash(DATA)
    assert store.read(NAME) == DATA
    assert store.read(NAME, 100, 50) == DATA[100:150]
    # The short timeout of stalls may be exceeded more often on a loaded machine.
    assert store.counters.retries == retries or ("stall" in fault and store.counters.retries > retries)


def remote_hash(data: bytes) -> str:
    return base64.b64encode(google_crc32c.value(data).to_bytes(4, "big")).decode()


def test_wrong_bytes_twice(store: HttpStore, server: RangeServer) -> None:
    server.goog_hash = "md5=x,crc32c=" + remote_hash(b"other")
    with pytest.raises(CorruptObject, match=r"crc32c \w+ found, \w+ expected by the server"):
        store.read(NAME)


def test_connections_are_kept(store: HttpStore, server: RangeServer) -> None:
    for _ in range(5):
        store.read(NAME, 0, 10)
    assert len(set(server.ports)) == 1
    server.script = deque(["garbage"])
    assert store.read(NAME) == DATA
    assert store.read(NAME) == DATA  # not the forged response that was waiting
    assert len(set(server.ports)) == 2


def test_redirects(store: HttpStore, server: RangeServer) -> None:
    """Followed on the same host only."""
    server.files["moved"] = DATA
    server.script = deque(["redirect /moved", "", f"redirect {server.url}/moved?token=1"])
    assert store.read(NAME) == store.read(NAME) == DATA
    host = server.url.replace("127.0.0.1", "localhost")
    for target in (f"{host}/moved", "https://user:secret@evil.example/x?sig=secret", "//evil.example/x", "file:///etc"):
        server.script = deque([f"redirect {target}"])
        with pytest.raises(FetchError, match=r"1 attempt .* redirected to") as caught:
            store.read(NAME)
        assert "secret" not in str(caught.value)
    server.script = deque(["redirect /moved"] * 5)
    with pytest.raises(FetchError, match="more than 3 redirects"):
        store.read(NAME)


@pytest.mark.parametrize(
    "url",
    [
        "https://",
        "https:///x",
        "https://host/../x",
        "https://host/a//b",
        "https://host/a%00b",
        "https://host:port/x",
        "https://user:secret@host/x",
        "https://secret@host/x",
        "https://host/x?token=secret",
        "https://host/x#secret",
        "http://example.org/x",
        "http://10.0.0.1/x",
        "http://127.0.0.1.example.org/x",
        "http://localhost:1@example.org/x",
        "ftp://user:secret@host/x",
    ],
)
def test_locations_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"location: .* given") as caught:
        open_store(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "root", "file"),
    [
        ("https://host", "https://host", "https://host/a%20b"),
        ("https://host:8443/c d/ä/", "https://host:8443/c%20d/%C3%A4", "https://host:8443/c%20d/%C3%A4/a%20b"),
        ("https://host/c%20d", "https://host/c%20d", "https://host/c%20d/a%20b"),
        ("http://localhost:1/x", "http://localhost:1/x", "http://localhost:1/x/a%20b"),
        ("http://[::1]:1/x", "http://[::1]:1/x", "http://[::1]:1/x/a%20b"),
        ("http://127.8.8.8/x", "http://127.8.8.8/x", "http://127.8.8.8/x/a%20b"),
    ],
)
def test_locations(url: str, root: str, file: str) -> None:
    store = open_store(url)
    assert isinstance(store, HttpStore)
    assert (store.root, store.url("a b"), store.local_path("x")) == (root, file, None)
    again = pickle.loads(pickle.dumps(store))  # noqa: S301 - our own bytes
    assert again.root == root
    with pytest.raises(ValueError):
        store.url("../x")


@contextmanager
def tls_server(folder: Path) -> Iterator[RangeServer]:
    """A range server with a self-signed certificate, folder/ca.pem."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "ca.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    pem, form, none = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (folder / "key.pem").write_bytes(key.private_bytes(pem, form, none))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "ca.pem", folder / "key.pem")
    with range_server() as server:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        yield server


def test_https(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with tls_server(tmp_path) as server:
        server.files["x"] = DATA
        url = server.url.replace("http:", "https:")
        untrusted = HttpStore(url, FETCH)
        with pytest.raises(FetchError, match=r"1 attempt .*CERTIFICATE_VERIFY_FAILED"):
            untrusted.read("x")
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        store = HttpStore(url, FETCH)
        server.stall = 0.2
        server.script = deque(["", "stall in body", "reset", "short"])
        assert store.read("x") == store.read("x", 0) == DATA
        assert store.counters.retries == 3
        store.close()
        untrusted.close()


@pytest.mark.parametrize("fault", ["", "408", "429", "500", "503", "reset", "short", "wrong", "stall", "200"])
def test_gcs_reads_are_retried(fault: str) -> None:
    with pytest.MonkeyPatch.context() as patch, fake_gcs("bucket") as server:
        server.use(patch)
        server.put("bucket", "p/x", DATA)
        server.stall = 0.4
        server.script = deque([fault])
        store = GcsStore("gs://bucket/p", SHORT_TIMEOUT if fault == "stall" else FETCH)
        assert store.read("x") == DATA
        assert store.counters.retries == (fault not in ("", "200"))
        if fault != "wrong":  # not detectable in a part of an object
            server.script = deque([fault])
            assert store.read("x", 10, 20) == DATA[10:30]
            assert store.counters.retries == 2 * (fault not in ("", "200")) + (fault == "200")
        store.close()


def test_gcs_refusals_are_not_retried() -> None:
    with pytest.MonkeyPatch.context() as patch, fake_gcs("bucket") as server:
        server.use(patch)
        server.put("bucket", "x", DATA)
        server.script = deque(["403"])
        store = GcsStore("gs://bucket", FETCH)
        with pytest.raises(FetchError, match=r"gs://bucket/x: .*1 attempt .*status 403"):
            store.read("x")
        store.close()


def test_many_threads(store: HttpStore, server: RangeServer) -> None:
    server.script = deque(["", "503", "reset", "short", "", "garbage", "no content-range"] * 4)
    wrong = []

    def work(start: int) -> None:
        for i in range(10):
            if store.read(NAME, start + i, 500) != DATA[start + i : start + i + 500]:
                wrong.append(start)

    threads = [threading.Thread(target=work, args=(100 * i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_stores_close(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.close()
    store.create("x", b"1")
    assert store.read("x") == b"1"


def test_redirects_lead_elsewhere_only_where_asked_for(server: RangeServer) -> None:
    """With credentials for the first host alone, and never from another machine to this one's services."""
    with range_server() as other:
        other.files["a"] = b"elsewhere"
        server.scripts["a"] = deque([f"redirect {other.url}/a"] * 2)
        server.files["a"] = b""
        with pytest.raises(FetchError, match="redirected to"):
            HttpStore(server.url, FETCH).read("a")
        store = HttpStore(server.url, FETCH, anywhere=True, headers=lambda: {"Authorization": "Bearer x"})
        assert store.read("a") == store.read("a") == b"elsewhere"
        assert sum(name == "a" for name, _, _ in server.requests) == 2  # where it leads is remembered
        assert server.headers_seen[-1]["authorization"] == "Bearer x"
        assert not any("authorization" in headers for headers in other.headers_seen)
    far = HttpStore("https://host.example", anywhere=True)
    assert far._redirected("https://host.example/a", "https://cdn.example/b") == "https://cdn.example/b"
    for target in ("http://127.0.0.1:8080/b", "http://cdn.example/b", "ftp://cdn.example", "https://u:p@cdn.example/b"):
        with pytest.raises(Permanent, match="redirected to"):
            far._redirected("https://host.example/a", target)
