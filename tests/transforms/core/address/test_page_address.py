import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.core.address.host import host_of, site_of
from refinery.transforms.core.address.page_address import page_address

PAGE = "https://spam.example:8080/a/b?c=d#e"
COPIES = [
    f"urn:text:{PAGE}",
    f"urn:textFinal:{PAGE}",
    f"urn:view:{PAGE}",
    f"urn:fullPage:{PAGE}",
    f"urn:thumbnail:{PAGE}",
    f"urn:pageinfo:{PAGE}",
    f"URN:TEXT:{PAGE}",
    f" urn:text:{PAGE}\n",
    f"urn:text:urn:view:{PAGE}",
    f"urn:something.new-2:{PAGE}",
    f"screenshot:{PAGE}",
    f"youtube-dl:00001:{PAGE}",
    f"view-source:{PAGE}",
    f"blob:{PAGE}",
    "urn:text:https%3A%2F%2Fspam.example%3A8080%2Fa%2Fb%3Fc%3Dd%23e",
    "urn:X-wpull:snapshot?url=https%3A%2F%2Fspam.example%3A8080%2Fa%2Fb%3Fc%3Dd%23e",
    "urn:x-crawler:dom?time=3&url=https%3a%2f%2fspam.example%3a8080%2fa%2fb%3fc%3Dd%23e&x=y",
]


@pytest.mark.parametrize("name", COPIES)
def test_a_copy_has_the_address_of_its_page(name: str) -> None:
    assert page_address(name) == PAGE
    assert (host_of(name), site_of(name)) == ("spam.example", "spam.example:8080")


@pytest.mark.parametrize(
    "url",
    [
        PAGE,
        "http://archive.example/web/2024/https://other.example/",
        "HTTP://a.example/https://other.example/",
        "//a.example/https://other.example/",
        "a.example:80/https://other.example/",
        "/redirect:https://other.example/",
        "ftp://a.example/x",
        "urn:isbn:0262510871",
        "urn:uuid:00000000-0000-4000-8000-000000000000",
        "urn:X-wpull:log",
        "urn:x:y?z=https://other.example/",
        "mailto:somebody@a.example",
        "whois:whois.iana.org/org",
        "file:///home/notes.txt",
        "",
        "urn:text:",
    ],
)
def test_other_names_stay(url: str) -> None:
    assert page_address(url) == url


def test_a_name_may_leave_the_scheme_out() -> None:
    assert host_of("urn:text:www.spam.example/x") == "www.spam.example"
    assert host_of("urn:view:spam.example") == "spam.example"


@given(st.text(max_size=60), st.sampled_from(["", "urn:", "urn:text:", "a:b:c:", "urn:x?url="]))
def test_it_never_raises_and_asking_twice_changes_nothing(text: str, before: str) -> None:
    page = page_address(before + text)
    assert page_address(page) == page
    host_of(before + text)


def test_hostile_names_take_no_longer_than_they_are_long() -> None:
    for name in ("a:" * 50_000, "urn:" + "a" * 100_000, "urn:x?" + "url=h&" * 20_000, "a" * 100_000, ":" * 100_000):
        assert page_address(name) == name
