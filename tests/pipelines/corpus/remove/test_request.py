"""Lists of what is to go: spellings, lines that say nothing, and what matches."""

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.pipelines.corpus.remove.request import (
    DOCUMENTS,
    HOSTS,
    URLS,
    BadList,
    Request,
    domains,
    many,
    names,
    read_list,
)


def request(kind: str, tmp_path: Path, *lines: str) -> Request:
    path = tmp_path / f"{kind}.txt"
    path.write_text("".join(f"{line}\n" for line in lines))
    return Request({kind: read_list(kind, str(path))})


def rows(*urls: str) -> dict[str, list[str]]:
    return {"url": list(urls), "source": ["s"] * len(urls)}


@pytest.mark.parametrize(
    ("line", "url", "found"),
    [
        ("https://a.example/x", "http://A.example:80/x/", True),
        ("https://a.example/x?b=2&a=1#top", "https://a.example/x?a=1&b=2", True),
        ("https://a.example/x", "https://a.example/x?page=2", False),
        ("https://a.example/x", "https://www.a.example/x", False),
        ("repo/src/main.c", "repo/src/main.c", True),  # no address at all: as it is
        ("https://a.example/?access_token=abc", "https://a.example/?access_token=REDACTED", True),
    ],
)
def test_addresses(line: str, url: str, found: bool, tmp_path: Path) -> None:
    assert bool(request(URLS, tmp_path, line).match(rows(url))[0]) is found


@pytest.mark.parametrize(
    ("line", "url", "found"),
    [
        ("example.com", "https://deep.below.EXAMPLE.com./x", True),
        ("example.com", "https://notexample.com/x", False),
        ("www.example.com", "https://example.com/x", False),
        ("https://example.com:8080/a/page", "http://example.com/b", True),
        ("bücher.example", "https://xn--bcher-kva.example/", True),
        ("example.com:8080", "https://www.example.com/", True),
        ("Example.COM.:443", "https://example.com/", True),
        ("10.1.2.3", "http://10.1.2.3:81/x", True),
        ("10.1.2.3:81", "http://10.1.2.3/x", True),
        ("2001:DB8::1", "http://[2001:db8::1]:8080/x", True),
        ("[2001:db8::1]", "http://[2001:DB8::1]/x", True),
        ("[2001:db8::1]:443", "http://[2001:db8::1]/x", True),
        ("http://[2001:db8::1]:443/a", "http://[2001:db8::1]/x", True),
        ("2.3.example", "https://1.2.3.example/x", True),
        ("2.3.4", "http://1.2.3.4/x", False),  # an address has no domains above it
        ("example.com", "", False),
    ],
)
def test_hosts(line: str, url: str, found: bool, tmp_path: Path) -> None:
    assert bool(request(HOSTS, tmp_path, line).match(rows(url))[0]) is found


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        (HOSTS, b"com\n", "line 1 is 'com'"),
        (HOSTS, b"\nexample.com\nnot a host\n", "line 3"),
        (HOSTS, b"*.example.com\n", "no pattern: example.com covers"),
        (HOSTS, b".example.com\n", "no pattern: example.com covers"),
        (HOSTS, b"https://*.example.com/\n", "no pattern: example.com covers"),
        (HOSTS, b"example.com:80:1\n", "a host with a dot"),
        (HOSTS, b"example.com:http\n", "a host with a dot"),
        (HOSTS, b"me@example.com\n", "a host with a dot"),
        (HOSTS, b"[::1\n", "a host with a dot"),
        (HOSTS, b":80\n", "a host with a dot"),
        (DOCUMENTS, b"00ff\n", "32 hexadecimal digits"),
        (DOCUMENTS, b"zz" * 16, "32 hexadecimal digits"),
        (URLS, b"", "the file has no line"),
        (URLS, b"# nothing\n\n", "the file has no line"),
        (URLS, b"https://a.example/\n\xff\xfe\n", "line 2 is not UTF-8"),
        (URLS, b"https://a.example/\x1b[2J\n", "an address is expected"),
        (URLS, b"x" * (1 << 17), "longer than"),
    ],
)
def test_lines_that_say_nothing(kind: str, text: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_bytes(text)
    with pytest.raises(BadList) as caught:
        read_list(kind, str(path))
    assert said in str(caught.value) and "\x1b" not in str(caught.value) and "\n" not in str(caught.value)


def test_the_line_is_named_and_a_list_may_be_compressed(tmp_path: Path) -> None:
    path = tmp_path / "list.txt.gz"
    path.write_bytes(
        gzip.compress(b"\xef\xbb\xbfhttps://a.example/1\n# no\nhttps://b.example/2\r\nhttps://a.example/1/\n")
    )
    keys = read_list(URLS, str(path))
    found = Request({URLS: keys}).match(rows("https://b.example/2", "https://c.example/", "https://a.example/1"))
    assert found == ["urls:3", "", "urls:1"] and keys.count == 3


@pytest.mark.parametrize(
    "data",
    [gzip.compress(b"a.example\n")[:-9], b"a.example\n", gzip.compress(b"a.b") + b"x"],
    ids=["cut", "plain", "more"],
)
def test_a_damaged_list_is_one_line_with_its_name(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "list.gz").write_bytes(data)
    with pytest.raises(BadList, match=r"list\.gz: is cut or is not gzip \(.*\); copy it again$"):
        read_list(HOSTS, str(tmp_path / "list.gz"))


def test_licences_and_sources() -> None:
    assert (
        names("GPL-3.0-only OR MIT", "mit") and not names("MIT-0", "MIT") and names("Custom license", "custom license")
    )
    asked = Request(licences=("MIT",), sources=("books",))
    columns = {"url": ["", ""], "source": ["books", "web"], "license": ["", "Apache-2.0 AND MIT"]}
    assert asked.match(columns) == ["source:books", "licence:MIT"]
    assert many(["a, b", "b", " c "]) == ("a", "b", "c")


@given(st.lists(st.binary(min_size=16, max_size=16), min_size=1, max_size=30), st.binary(min_size=16, max_size=16))
def test_ids(ids: list[bytes], other: bytes) -> None:
    """Those with zeros at their end, too, which arrays of bytes do not show."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ids.txt"
        path.write_text("".join(f"{id_.hex()}\n" for id_ in ids))
        asked = Request({DOCUMENTS: read_list(DOCUMENTS, str(path))})
        columns = {"id": [*ids, other], "url": [""] * (len(ids) + 1), "source": [""] * (len(ids) + 1)}
        found = asked.match(columns)
    assert [each.partition(":")[2] for each in found[:-1]] == [str(ids.index(id_) + 1) for id_ in ids]
    assert bool(found[-1]) is (other in ids)


def test_domains() -> None:
    assert list(domains("a.b.c")) == ["a.b.c", "b.c", "c"] and list(domains("1.2.3.4")) == ["1.2.3.4"]


def test_copies_of_a_page_are_found_by_its_host_and_its_address(tmp_path: Path) -> None:
    copies = ("urn:text:https://spam.example/x", "urn:X-wpull:snapshot?url=https%3A%2F%2Fspam.example%2Fx")
    others = ("urn:text:https://ham.example/x", "urn:X-wpull:log", "urn:isbn:0262510871")
    for kind, line in (("hosts", "spam.example"), ("urls", "https://spam.example/x")):
        found = request(kind, tmp_path, line).match(rows(*copies, *others))
        assert found == [f"{kind}:1"] * 2 + [""] * 3
    assert request("urls", tmp_path, copies[0]).match(rows("https://spam.example/x")) == ["urls:1"]
