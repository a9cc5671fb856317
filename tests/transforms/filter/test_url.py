"""Hosts are read from any address, and each kind of rule drops for its own reason."""

import gzip
import pickle
from pathlib import Path

import apache_beam as beam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.core.address.host import host_of
from refinery.transforms.core.document import Document, Drop
from refinery.transforms.filter.url import URL, UrlParams, judge_url, load_rules, registered_domain
from tests.beam import make_document, run_and_collect


def judged(url: str, **values: object) -> str:
    """The reason, "" for kept."""
    params = UrlParams(**values)  # type: ignore[arg-type]
    doc = make_document("text", url=url)
    result = judge_url(doc, load_rules(params), params)
    if isinstance(result, Drop):
        return result.reason
    assert result is doc
    return ""


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://example.com/a?b#c", "example.com"),
        ("HTTPS://user:p%40ss@WWW.Example.COM.:8080", "www.example.com"),
        ("http://a@b@example.com/", "example.com"),
        ("http://exämple.com/", "xn--exmple-cua.com"),
        ("http://xn--exmple-cua.com/", "xn--exmple-cua.com"),
        ("http://пример.рф", "xn--e1afmkfd.xn--p1ai"),
        ("http://example%2Ecom/", "example.com"),
        ("http://192.0.2.7:80/x", "192.0.2.7"),
        ("http://[2001:DB8::1]:443/x", "2001:db8::1"),
        ("http://[2001:db8::1", "2001:db8::1"),
        ("//example.com/x", "example.com"),
        ("http:\\\\example.com\\x", "example.com"),
        ("http:///example.com", "example.com"),
        ("  http://example.com\n", "example.com"),
        ("example.com/path", "example.com"),
        ("example.com:80", "example.com"),
        ("ftp://example.com", "example.com"),
        ("mailto:somebody@example.com", ""),
        ("urn:isbn:123", ""),
        ("just words", ""),
        ("http://", ""),
        ("http://?q", ""),
        ("http://:80", ""),
        ("http://\ud800.com", "?.com"),
        ("", ""),
        ("http://" + "a" * 10_000, "a" * 253),
    ],
)
def test_hosts(url: str, host: str) -> None:
    assert host_of(url) == host


@given(
    st.text(st.characters(codec=None, exclude_categories=())) | st.text("htp:/.@[]%#?\\-12ä\0 ").map("http:{}".format)
)
def test_no_address_is_an_error(url: str) -> None:
    assert judged(url, blocked_domains=("blocked.example",), blocked_patterns=("zzzz",)) in (
        "",
        "hard-word",
        "soft-words",
        "blocked-pattern",
    )


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("www.example.co.uk", "example.co.uk"),
        ("a.b.somebody.github.io", "somebody.github.io"),
        ("xn--e1afmkfd.xn--p1ai", "xn--e1afmkfd.xn--p1ai"),
        ("co.uk", ""),
        ("localhost", ""),
        ("192.0.2.7", ""),
        ("2001:db8::1", ""),
    ],
)
def test_registered_domains(host: str, domain: str) -> None:
    assert registered_domain(host) == domain


BLOCKED = (
    "bad.example.com",
    "evil.org",
    "github.io",
    "192.0.2.7",
    "Exämple.de",
    "*.wild.net",
    "http://full.com/x",
    "zip",
)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("", ""),
        ("http://example.com", ""),
        ("http://bad.example.com", "blocked-host"),
        ("http://very.bad.example.com", "blocked-host"),
        ("http://notbad.example.com", ""),
        ("http://evil.org", "blocked-domain"),
        ("http://www.EVIL.org.:8080/x", "blocked-domain"),
        ("http://notevil.org", ""),
        ("http://evil.org.example.com", ""),
        ("http://somebody.github.io", "blocked-host"),
        ("http://192.0.2.7/x", "blocked-host"),
        ("http://www.xn--exmple-cua.de", "blocked-domain"),
        ("http://wild.net", "blocked-domain"),
        ("http://full.com/other", "blocked-domain"),
        ("http://anything.zip", "blocked-host"),
        ("http://x.com/?session=1", "blocked-pattern"),
        ("http://x.com/Q/SPAM/1", "blocked-pattern"),
        ("http://x.com/q/spam/1\ud800", "blocked-pattern"),
        ("http://x.com/free-porn.html", "hard-word"),
        ("http://x.com/free%2Dp%6Frn.html", "hard-word"),
        ("http://freepornvideos.com", "hard-word"),
        ("http://x.com/acorn-popcorn", ""),
        ("http://essex.ac.uk/sussex", ""),
        ("http://x.com/online-casino", ""),
        ("http://x.com/casino/casino", ""),
        ("http://x.com/casino/poker", "soft-words"),
        ("http://casino.com/BONUS", "soft-words"),
        ("http://x.com/%E2%82/%zz", ""),
    ],
)
def test_reasons(url: str, reason: str) -> None:
    assert judged(url, blocked_domains=BLOCKED, blocked_patterns=("[?&]session=", "(?i)/spam/")) == reason


def test_words_are_the_recipe_s() -> None:
    words = {"hard_words": ("Улица",), "hard_parts": (), "soft_words": ("one", "two", "three"), "soft_limit": 3}
    assert judged("http://x.com/%D1%83%D0%BB%D0%B8%D1%86%D0%B0/", **words) == "hard-word"
    assert judged("http://x.com/freepornvideos/one/two", **words) == ""
    assert judged("http://x.com/one-two_three", **words) == "soft-words"
    assert judged("http://x.com/porn", hard_words=(), hard_parts=(), soft_words=()) == ""


def test_lists_come_from_files(tmp_path: Path) -> None:
    plain, packed, patterns = tmp_path / "domains.txt", tmp_path / "more.gz", tmp_path / "patterns"
    plain.write_text("\ufeff# a comment\r\n\r\nevil.org  # why\r\n BAD.net \r\n")
    packed.write_bytes(gzip.compress(b"worse.com\n"))
    patterns.write_text("# comment\n/trap/\n/page#7\n")
    params = UrlParams(domain_lists=(str(plain), str(packed)), pattern_lists=(str(patterns),))
    assert tuple(URL.files(params)) == (str(plain), str(packed), str(patterns))
    rules = load_rules(params)
    assert load_rules(UrlParams(**vars(params))) is rules  # once per process
    reasons = {}
    for host in ("evil.org", "bad.net", "worse.com", "why", "good.com/trap/", "good.com/page#7", "good.com"):
        result = judge_url(make_document("t", url=f"http://{host}"), rules, params)
        reasons[host] = result.reason if isinstance(result, Drop) else ""
    assert reasons == {
        "evil.org": "blocked-domain",
        "bad.net": "blocked-domain",
        "worse.com": "blocked-domain",
        "why": "",
        "good.com/trap/": "blocked-pattern",
        "good.com/page#7": "blocked-pattern",
        "good.com": "",
    }


def test_a_large_list_is_small_in_memory() -> None:
    params = UrlParams(blocked_domains=tuple(f"site{number}.com" for number in range(20_000)))
    rules = load_rules(params)
    assert rules.domains.hashes.nbytes == 160_000
    assert judged("http://a.site19999.com", blocked_domains=params.blocked_domains) == "blocked-domain"
    assert judged("http://site20000.com", blocked_domains=params.blocked_domains) == ""


def test_broken_lists_are_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"domain_lists: '/nowhere/x' given, an existing file is allowed"):
        load_rules(UrlParams(domain_lists=("/nowhere/x",)))
    (tmp_path / "bad").write_text("fine\n(unclosed\n")
    with pytest.raises(ValueError, match=r"bad:2: '\(unclosed' given, an RE2 expression is allowed"):
        load_rules(UrlParams(pattern_lists=(str(tmp_path / "bad"),)))
    (tmp_path / "latin").write_bytes(b"\xe4.com\n")
    with pytest.raises(ValueError, match="a text file in UTF-8 is allowed"):
        load_rules(UrlParams(domain_lists=(str(tmp_path / "latin"),)))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"soft_limit": 0}, "soft_limit: 0 given, 1 or more is allowed"),
        ({"blocked_patterns": (r"(a)\1",)}, r"blocked_patterns: .* given, an RE2 expression is allowed"),
        ({"hard_words": ("two words",)}, "hard_words: 'two words' given"),
        ({"soft_words": ("",)}, "soft_words: '' given"),
        ({"hard_parts": ("",)}, "hard_parts: '' given, one character or more is allowed"),
    ],
)
def test_impossible_parameters(values: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        UrlParams(**values)  # type: ignore[arg-type]


def test_a_pipeline_drops_blocked_pages() -> None:
    docs = [make_document("a", "f@0", url="http://evil.org"), make_document("b", "f@1", url="http://x.org/")]
    params = pickle.loads(pickle.dumps(UrlParams(blocked_domains=("evil.org",))))  # noqa: S301
    [kept] = run_and_collect(lambda pipeline: [pipeline | beam.Create(docs) | URL(params)])
    assert kept == docs[1:]
    assert all(isinstance(doc, Document) for doc in kept)


@pytest.mark.parametrize("name", ["urn:text:{}", "urn:textFinal:{}", "urn:view:{}", "screenshot:{}"])
def test_copies_of_a_page_are_refused_as_the_page_is(name: str, tmp_path: Path) -> None:
    assert judged(name.format("https://spam.org/x"), blocked_domains=("spam.org",)) == "blocked-domain"
    assert judged(name.format("https://ham.org/x"), blocked_domains=("spam.org",)) == ""
    (tmp_path / "addresses.txt").write_text("https://ham.org/x\n")
    listed = (str(tmp_path / "addresses.txt"),)
    assert judged(name.format("https://ham.org/x"), address_lists=listed) == "blocked-address"
