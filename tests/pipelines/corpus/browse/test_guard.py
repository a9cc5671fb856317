"""Who is let in: one browser, by a token that works once, from this origin alone; and what each answer forbids."""

from pathlib import Path
from threading import Event
from typing import Any

import pytest
from starlette.testclient import TestClient

from refinery.pipelines.corpus.browse.app import make_app
from refinery.pipelines.corpus.browse.guard.middleware import HEADERS, MOST_BODY, POLICY
from refinery.pipelines.corpus.browse.guard.session import Session
from refinery.pipelines.corpus.browse.serve import ADDRESS, listen
from tests.corpus_factory import build_corpus
from tests.pipelines.corpus.browse.hostile import PORT, Visitor, browser_of


@pytest.fixture(scope="module")
def visitor(tmp_path_factory: pytest.TempPathFactory) -> Visitor:
    folder = tmp_path_factory.mktemp("guard")
    return Visitor(browser_of(folder / "j.jsonl", build_corpus(folder / "corpus")))


def statuses(visitor: Visitor, headers: dict[str, str], path: str = "a/") -> int:
    return int(visitor.client.get(f"{visitor.session.base}/{path}", headers=headers).status_code)


# --- the session ----------------------------------------------------------------------------------------------------


def test_the_token_works_once_and_nothing_works_without_it(tmp_path: Path) -> None:
    other = Visitor(browser_of(tmp_path / "j.jsonl", build_corpus(tmp_path / "corpus")), opens=False)
    client, session = other.client, other.session
    for path in ("", "a/", "static/browse.css", "judgements.jsonl", "nothing"):
        assert client.get(f"{session.base}/{path}").status_code == 403
    assert client.get(f"{session.base}/open?token=wrong").status_code == 403
    assert client.get(f"{session.base}/open").status_code == 403
    assert client.head(session.url).status_code == 403  # a preview of the link does not use it up
    found = client.get(session.url)
    assert found.status_code == 303 and found.headers["location"] == f"{session.base}/"
    cookie = found.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and f"Path={session.base}/;" in cookie
    assert client.get(f"{session.base}/a/").status_code == 200
    fresh = TestClient(client.app, base_url=session.origin, follow_redirects=False)
    assert fresh.get(session.url).status_code == 403 and fresh.get(f"{session.base}/a/").status_code == 403


def test_secrets_differ_and_are_long() -> None:
    one, other = Session(1), Session(1)
    assert one.url != other.url and one.csrf != other.csrf and one.base != other.base
    assert len(one.url.partition("token=")[2]) >= 40 and not one.knows("refinery_browse=") and not one.allows("")
    assert not one.knows("refinery_browse=ä; x") and one.exchange("\udcff") is None


def test_the_server_listens_on_this_machine_alone() -> None:
    with listen(0) as listener:
        assert listener.getsockname()[0] == ADDRESS == "127.0.0.1"
        port = listener.getsockname()[1]
        with pytest.raises(ValueError, match=rf"--port {port}: .*leave it out for a free one"):
            listen(port)


# --- where requests come from ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1", "127.0.0.1:1", f"localhost:{PORT}", ""]
)
def test_another_name_of_this_host_is_refused(visitor: Visitor, host: str) -> None:
    """As after DNS rebinding."""
    assert statuses(visitor, {"host": host}) == 421


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, 200),
        ({"sec-fetch-site": "same-origin"}, 200),
        ({"sec-fetch-site": "none"}, 200),
        ({"origin": "http://127.0.0.1:8000"}, 200),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),  # another port of this machine
        ({"origin": "http://127.0.0.1:8001"}, 403),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
    ],
)
def test_another_site_is_refused(visitor: Visitor, headers: dict[str, str], code: int) -> None:
    assert statuses(visitor, headers) == code


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"origin": "http://127.0.0.1:8000"}, 403),  # let in, and then without its token
        ({"origin": "null", "sec-fetch-site": "same-origin"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "https://evil.example", "sec-fetch-site": "same-origin"}, 403),
        ({}, 403),
    ],
)
def test_no_form_without_its_token(visitor: Visitor, headers: dict[str, str], code: int) -> None:
    form = {"id": "0" * 32, "verdict": "right", "csrf": "wrong"}
    assert visitor.post("a/judge", form, headers) == code
    assert visitor.post("a/judge", {}, headers) == code


def test_a_form_with_its_token_is_let_in_from_this_origin_alone(visitor: Visitor) -> None:
    form = {"id": "0" * 32, "verdict": "right", "csrf": visitor.session.csrf}
    own = [{"origin": visitor.session.origin}, {"origin": "null", "sec-fetch-site": "same-origin"}]
    assert [visitor.post("a/judge", form, headers) for headers in own] == [422, 422]  # there is no such document
    others = [{"origin": "null"}, {"origin": "https://evil.example"}, {}, {"sec-fetch-site": "cross-site"}]
    assert [visitor.post("a/judge", form, headers) for headers in others] == [403] * 4


def test_bounds_of_a_request(visitor: Visitor) -> None:
    base, own = visitor.session.base, {"origin": visitor.session.origin}
    assert visitor.client.put(f"{base}/a/").status_code == 405
    assert visitor.client.delete(f"{base}/a/").status_code == 405
    assert visitor.client.get(f"{base}/a/", params={"q": "x" * 9000}).status_code == 414
    form = {"note": "x" * MOST_BODY, "csrf": visitor.session.csrf}
    assert visitor.post("a/judge", form) == 413
    chunks = visitor.client.post(f"{base}/a/judge", content=iter([b"a=b"]), headers=own)
    assert chunks.status_code == 413  # it does not say how long it is
    files: Any = {"file": b"x"}
    assert visitor.client.post(f"{base}/a/judge", files=files, headers=own).status_code == 403
    many = {f"f{n}": "x" for n in range(50)} | {"csrf": visitor.session.csrf}
    assert visitor.post("a/judge", many) == 403
    assert visitor.client.get(f"{base}/a/judge").status_code == 405
    assert visitor.client.post(f"{base}/judgements", headers=own).status_code == 405


def test_a_page_that_takes_too_long_and_one_that_fails(visitor: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    ends = Event()

    def slow(frame: Any, run: Any) -> str:
        ends.wait(60)
        return ""

    def fails(frame: Any, run: Any) -> str:
        raise RuntimeError("<b>no</b>")

    monkeypatch.setattr("refinery.pipelines.corpus.browse.app.overview", slow)
    monkeypatch.setattr("refinery.pipelines.corpus.browse.app.SECONDS", 0.01)
    assert statuses(visitor, {}) == 503
    ends.set()
    monkeypatch.setattr("refinery.pipelines.corpus.browse.app.SECONDS", 60)
    monkeypatch.setattr("refinery.pipelines.corpus.browse.app.overview", fails)
    found = visitor.client.get(f"{visitor.session.base}/a/")
    assert found.status_code == 500 and "RuntimeError: &lt;b&gt;no&lt;/b&gt;" in found.text
    assert found.headers["content-security-policy"] == POLICY


# --- what answers forbid --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", ["a/", "a/nothing", "static/browse.js", "static/../app.py", "a/search?by=id&q=no", "open"]
)
def test_every_answer_has_the_headers(visitor: Visitor, path: str) -> None:
    found = visitor.client.get(f"{visitor.session.base}/{path}")
    assert {name: found.headers.get_list(name) for name in HEADERS} == {
        name: [value] for name, value in HEADERS.items()
    }
    assert "server" not in found.headers


def test_the_policy_allows_own_files_alone() -> None:
    parts = dict(part.split(" ", 1) for part in POLICY.split("; "))
    assert parts["default-src"] == "'none'" and parts["frame-ancestors"] == "'none'" and parts["base-uri"] == "'none'"
    assert parts["script-src"] == parts["style-src"] == parts["form-action"] == "'self'"
    assert "unsafe" not in POLICY and "http" not in POLICY and "data:" not in POLICY
    assert HEADERS["referrer-policy"] == "no-referrer" and HEADERS["x-content-type-options"] == "nosniff"


def test_refused_requests_have_the_headers_too(visitor: Visitor) -> None:
    fresh = TestClient(make_app(browser_of(Path("j.jsonl"))), base_url=visitor.session.origin)
    found = fresh.get("/")
    assert found.status_code == 403 and found.headers["content-security-policy"] == POLICY
    assert found.headers["content-type"] == "text/plain; charset=utf-8"
