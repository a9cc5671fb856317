"""robots.txt by RFC 9309, ai.txt, and signals about training: who may use which address."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.rights.path_patterns import parse_pattern, path_of, pattern_text
from refinery.transforms.rights.robots import MAX_BYTES, parse_rules, short_form
from refinery.transforms.rights.tdm_file import parse_reservations, reservation
from refinery.transforms.rights.tdm_file import short_form as tdm_form

TWO = "user-agent: a\ndisallow: /x\nuser-agent: b\ndisallow: /\nuser-agent: a\ndisallow: /y\n"

# (file, address, agent, whether it may be used); sections of RFC 9309
FILES = [
    ("user-agent: a\ndisallow: /x\n", "/x", "a", False),
    ("user-agent: a\ndisallow: /x\n", "/y", "a", True),
    ("User-Agent: A\nDISALLOW: /x\n", "/x", "a", False),  # 2.2.1: names of fields and agents in any case
    (TWO, "/y", "a", False),  # 2.2.1: groups of one agent are one
    (TWO, "/z", "a", True),
    ("user-agent: a\nuser-agent: b\ndisallow: /x\n", "/x", "a", False),
    ("user-agent: *\ndisallow: /\nuser-agent: a\nallow: /\n", "/x", "a", True),  # its own group, not that of all
    ("user-agent: *\ndisallow: /\nuser-agent: a\n", "/x", "a", True),
    ("user-agent: *\ndisallow: /\nuser-agent: a\ncrawl-delay: 1\n", "/x", "a", True),
    ("user-agent: *\ndisallow: /\n", "/x", "a", False),
    ("user-agent: foo\ndisallow: /\n", "/x", "foobar", True),  # product tokens, not their beginnings
    ("user-agent: foobar\ndisallow: /\n", "/x", "foo", True),
    ("user-agent: a/2.1 (words)\ndisallow: /\n", "/x", "a", False),
    ("disallow: /\n", "/x", "a", True),  # a rule before any agent
    ("user-agent: a\nsitemap: /s\nuser-agent: b\ndisallow: /\n", "/x", "a", False),  # 2.2.4: other lines end no group
    ("user-agent: a\ndisallow: /x\nallow: /x/y\n", "/x/y/z", "a", True),  # 2.2.2: the longest pattern decides
    ("user-agent: a\nallow: /x/y\ndisallow: /x\n", "/x/z", "a", False),
    ("user-agent: a\ndisallow: /x\nallow: /x\n", "/x", "a", True),  # equally long: allow
    ("user-agent: a\ndisallow:\n", "/x", "a", True),  # an empty pattern
    ("user-agent: a\ndisallow: /x # because\n", "/x", "a", False),
    ("user-agent: a\r\ndisallow: /x\r\n", "/x", "a", False),
    ("user-agent: a\rdisallow: /x\r", "/x", "a", False),
    ("\ufeffuser-agent: a\ndisallow: /x\n", "/x", "a", False),
    ("user-agent: a\ndisallow: /foo/bar/%62%61%7A\n", "/foo/bar/baz", "a", False),  # 2.2.2: the table of octets
    ("user-agent: a\ndisallow: /foo/bar/baz\n", "/foo/bar/%62%61%7A", "a", False),
    ("user-agent: a\ndisallow: /foo/bar?baz=https://foo.bar\n", "/foo/bar?baz=https://foo.bar", "a", False),
    ("user-agent: a\ndisallow: /foo/bar/ツ\n", "/foo/bar/%E3%83%84", "a", False),
    ("user-agent: a\ndisallow: /foo/bar/%e3%83%84\n", "/foo/bar/ツ", "a", False),
    ("user-agent: a\ndisallow: /X\n", "/x", "a", True),
    ("user-agent: a\ndisallow: /*.gif$\n", "/b/c.gif", "a", False),  # 2.2.3
    ("user-agent: a\ndisallow: /*.gif$\n", "/b/c.gif?d", "a", True),
    ("user-agent: a\ndisallow: /x*z\n", "/xyzw", "a", False),
    ("user-agent: a\ndisallow: /a*a$\n", "/a", "a", True),
    ("user-agent: a\ndisallow: /file-%2A.html\n", "/file-*.html", "a", False),
    ("user-agent: a\ndisallow: /x%24\n", "/x$", "a", False),
    ("user-agent: a\ndisallow: /*%\n", "/x%20y", "a", False),  # an octet that is cut fits all that begin so
    ("user-agent: a\ndisallow: /*%\n", "/100%", "a", False),
    ("user-agent: a\ndisallow: /*%\n", "/x", "a", True),
    ("user-agent: a\ndisallow: /*%c*z\n", "/ä/z", "a", False),
    ("user-agent: a\ndisallow: /*%c*z\n", "/%20/z", "a", True),
    ("user-agent: a\ndisallow: /100%real\n", "/100%real/x", "a", False),
    ("user-agent: a\ndisallow: /*%$\n", "/x%20", "a", True),
    ("user-agent: a\ndisallow: /*%$\n", "/x%", "a", False),
    ("user-agent: a\ndisallow: /%%41%\n", "/%A%20", "a", False),
    ("user-agent: a\ndisallow: x\n", "/x", "a", True),
    ("user-agent: *\ncontent-signal: search=yes, ai-train=no\nallow: /\n", "/x", "a", False),
    ("content-signal: ai-train=no\n", "/x", "a", False),
    ("user-agent: *\ncontent-signal: ai-train=yes\n", "/x", "a", True),
    ("user-agent: *\ncontent-usage: /x train-ai=n\n", "/x/y", "a", False),
    ("user-agent: *\ncontent-usage: /x train-ai=n\n", "/y", "a", True),
    ("user-agent: *\ncontent-usage: train-ai=n\ncontent-usage: /x train-ai=y\n", "/x", "a", True),
    ("<!doctype html><p>user-agent: *<p>disallow: /", "/x", "a", True),
    ("", "/x", "a", True),
]


@pytest.mark.parametrize(("text", "address", "agent", "may"), FILES)
def test_rules_of_agents(text: str, address: str, agent: str, may: bool) -> None:
    rules = parse_rules(short_form(text.encode()))
    refused = rules.refusal(path_of("https://a.example" + address), [agent], every=True)
    assert (refused == "") == may, refused


def test_rules_for_all_count_only_where_they_are_asked_for() -> None:
    rules = parse_rules(short_form(b"user-agent: *\ndisallow: /x\ncontent-signal: ai-train=no\n"))
    assert rules.refusal("/x", ["a"], every=True) == "* disallow: /x"
    assert rules.refusal("/x", ["a"], every=False) == "* no-train: /"  # a signal is meant for all who train


def test_an_ai_txt_for_html_is_about_pages_whatever_their_address_ends_in() -> None:
    rules = parse_rules(short_form(b"User-Agent: *\nDisallow: *.html\nDisallow: *.jpg\n"))
    assert rules.refusal("/a.php?b=1", ["a"], every=True, is_page=True) == "* disallow: *.html"
    assert rules.refusal("/a.php", ["a"], every=True) == ""


def test_files_are_read_to_a_limit_and_never_half_a_line() -> None:
    body = b"user-agent: a\n" + b"#" * (MAX_BYTES - 40) + b"\ndisallow: /long-enough-to-be-cut-here\ndisallow: /late\n"
    assert short_form(body) == ""
    assert short_form(body[: MAX_BYTES - 200].rstrip(b"#") + b"disallow: /x\n") == "agents: a\ndisallow: /x\n"


def test_encodings() -> None:
    text = "user-agent: a\ndisallow: /ä\n"
    forms = {short_form(text.encode(name)) for name in ("utf-8", "utf-8-sig", "utf-16")}
    assert forms == {"agents: a\ndisallow: /%C3%A4\n"}
    assert short_form(text.encode("latin-1")) == "agents: a\ndisallow: /%EF%BF%BD\n"


def test_files_that_say_the_same_are_one_text() -> None:
    one = b"User-agent: B\nUser-agent: a\nDisallow: /x\nDisallow: /y # no\n"
    other = b"# words\nuser-agent: a\ndisallow: /y\ndisallow: /x\n\nuser-agent: b\ndisallow: /x\ndisallow: /y\n" * 2
    assert short_form(one) == short_form(other) == "agents: a b\ndisallow: /x\ndisallow: /y\n"
    assert short_form(b"user-agent: *\nallow: /\nsitemap: /s") == ""


@pytest.mark.parametrize("own", [False, True])
def test_a_group_that_many_agents_share_is_written_once(own: bool) -> None:
    """Also where each of them has a group of its own beside it: n agents with n rules are not n² lines."""
    count = 1500
    lines = [f"user-agent: a{i}" for i in range(count)] + [f"disallow: /p{i}/" for i in range(count)]
    if own:
        lines += [f"user-agent: a{i}\nallow: /p{i}/x\ndisallow: /q{i}/" for i in range(count)]
    body = "\n".join(lines).encode()
    form = short_form(body)
    assert len(form) < 2 * len(body)
    rules = parse_rules(form)
    assert len({id(group) for groups in rules.groups.values() for group in groups}) <= count + 1
    for i in (0, 7, count - 1):
        said = [rules.refusal(path, [f"a{i}"], every=True) for path in ("/p0/", f"/p{i}/x", f"/q{i}/", "/q1/", "/")]
        ours = [
            f"a{i} disallow: /p0/",
            "" if own else f"a{i} disallow: /p{i}/",
            f"a{i} disallow: /q{i}/" if own else "",
        ]
        assert said == [*ours, "", ""]


@given(st.text(alphabet="/ab*$%", max_size=12), st.text(alphabet="/ab$", max_size=12))
def test_patterns_match_as_their_definition_says(pattern: str, address: str) -> None:
    """Against a search of all ways, which is what a pattern means."""
    text, path = pattern_text("/" + pattern), path_of("https://a.example/" + address)

    def matches(p: str, a: str) -> bool:
        if p in ("", "$"):
            return p == "" or a == ""
        if p[0] == "*":
            return any(matches(p[1:], a[i:]) for i in range(len(a) + 1))
        return a[:1] == p[0] and matches(p[1:], a[1:])

    assert parse_pattern(text).matches(path) == matches(text, path)


def test_no_pattern_takes_long() -> None:
    """A backtracking engine would not come back from this."""
    text = "user-agent: a\n" + f"disallow: /{'a*' * 4000}b\n" * 30
    rules = parse_rules(short_form(text.encode()))
    assert rules.refusal("/" + "a" * 8000, ["a"], every=True) == ""


@given(st.binary(max_size=300))
def test_any_bytes_are_read(body: bytes) -> None:
    for data in (body, b"user-agent: a\ndisallow: /" + body, b'[{"location":"/", "tdm-reservation":1}, ' + body):
        form = short_form(data)
        assert parse_rules(form).refusal("/x", ["a"], True) is not None and short_form(data) == form
        parse_reservations(tdm_form(data) or "")


# --- tdmrep.json ----------------------------------------------------------------------------------------------------

TDM = [
    ('[{"location": "/", "tdm-reservation": 1}]', "/x", "reserved: /"),
    ('[{"location": "/a", "tdm-reservation": 1}]', "/b", ""),
    ('[{"location": "/", "tdm-reservation": 1}, {"location": "/free/*.jpg", "tdm-reservation": 0}]', "/free/a.jpg", ""),
    ('[{"location": "/x", "tdm-reservation": 1}, {"location": "/x", "tdm-reservation": 0}]', "/x", "reserved: /x"),
    ('[{"location": "https://a.example/p/*", "tdm-reservation": "1"}]', "/p/q", "reserved: /p/*"),
    ('{"tdm-reservation": true}', "/x", "reserved: /"),
    ('[{"location": "/", "tdm-reservation": 2}, {"location": 7, "tdm-reservation": 1}]', "/x", ""),
    ('\ufeff[{"location": "/", "tdm-reservation": 1}]', "/x", "reserved: /"),
]


@pytest.mark.parametrize(("text", "path", "rule"), TDM)
def test_reservations(text: str, path: str, rule: str) -> None:
    form = tdm_form(text.encode())
    assert form is not None and reservation(parse_reservations(form), path) == rule


@pytest.mark.parametrize("text", ["", "no json", "[1]", "7", "[" * 100_000, '[{"a": 1}' + " " * 600_000 + "]"])
def test_what_is_no_file_of_reservations(text: str) -> None:
    assert tdm_form(text.encode()) is None
