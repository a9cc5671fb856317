"""Pages become main text, records become clean text, and hostile markup becomes a reason."""

import pickle
from collections.abc import Callable

import apache_beam as beam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refinery.transforms.core.document import Document, Drop, RawDocument, document_id
from refinery.transforms.extract.extract import EXTRACT, ExtractParams, extract_document
from tests.beam import run_and_collect
from tests.sampling import examples, sampled

SENTENCES = [
    "The ferry leaves the northern quay at a quarter past seven, unless the fog decides otherwise.",
    "Nobody on the island owns a clock that agrees with another, and nobody has ever missed the boat.",
    "In winter the crossing takes an hour; the captain reads the same newspaper twice and says so.",
    "Those who come for the lighthouse are told, kindly, that it has been a library for thirty years.",
]
PAGE = f"""<!DOCTYPE html><html><head><title>Ferry</title><script>var x = "<div>";</script><style>p {{}}</style></head>
<body><nav><ul><li><a href="/">Home</a></li><li><a href="/about">About us</a></li></ul></nav>
<main><article><h1>The ferry</h1><p>{SENTENCES[0]}</p><p>{SENTENCES[1]} &amp; more &lt;b&gt;.</p>
<pre>def f(x):
    return  x &lt; 1</pre><p>{SENTENCES[2]}</p><ol><li>Bring a coat.</li><li>Bring a book to read on the way.</li></ol>
<p>{SENTENCES[3]}</p><h3>Read on</h3><p><a href="/1">The other island and its goats</a></p><p>Share this</p>
</article></main>
<footer><p>Imprint, privacy, terms</p></footer></body></html>"""


def raw(content: bytes | str, is_html: bool = True, charset: str = "") -> RawDocument:
    return RawDocument(content, is_html, charset, "http://x.org/", "src", "f@1", 7, {"date": "2020"})


def text_of(content: bytes | str, is_html: bool = True, charset: str = "", **values: object) -> str:
    result = extract_document(raw(content, is_html, charset), ExtractParams(**values))  # type: ignore[arg-type]
    assert isinstance(result, Document), result
    return result.text


def reason_of(content: bytes | str, is_html: bool = True, **values: object) -> str:
    result = extract_document(raw(content, is_html), ExtractParams(**values))  # type: ignore[arg-type]
    assert isinstance(result, Drop), result
    return result.reason


@pytest.mark.parametrize("content", [PAGE, PAGE.encode(), PAGE.encode("utf-16")])
def test_a_page_becomes_its_main_text(content: bytes | str) -> None:
    assert text_of(content).startswith(
        f"The ferry\n\n{SENTENCES[0]}\n\n{SENTENCES[1]} & more <b>.\n\ndef f(x):\n    return  x < 1\n\n"
        f"{SENTENCES[2]}\n\n1. Bring a coat.\n2. Bring a book to read on the way.\n\n{SENTENCES[3]}"
    )


@pytest.mark.parametrize("mode", ["fast", "standard", "precision", "recall"])
def test_trafilatura_finds_the_same_sentences(mode: str) -> None:
    text = text_of(PAGE, engine="trafilatura", mode=mode)
    for sentence in SENTENCES:
        assert sentence in text
    for other in ("About us", "Imprint", "var x"):
        assert other not in text


def test_what_a_document_carries() -> None:
    doc = extract_document(raw("  Grüße\r\n\r\n\r\naus Wien\u200b ", is_html=False), ExtractParams())
    assert doc == Document(
        document_id("Grüße\n\naus Wien"), "Grüße\n\naus Wien", "http://x.org/", "src", "f@1", 7, {"date": "2020"}
    )


@pytest.mark.parametrize(
    ("content", "charset", "text"),
    [
        (b"plain &amp; <b>raw</b>\n    indented  here", "", "plain &amp; <b>raw</b>\n    indented  here"),
        ("stra\u00dfe".encode("latin-1"), "iso-8859-1", "straße"),
        (b"\x93x\x94", "latin1", "“x”"),
        ("x\ud800y", "", "xy"),
        (b"a\0b", "", "ab"),
    ],
)
def test_raw_text_skips_the_html_part(content: bytes | str, charset: str, text: str) -> None:
    assert text_of(content, is_html=False, charset=charset) == text


def test_pages_say_their_encoding() -> None:
    page = PAGE.replace("<head>", '<head><meta charset="windows-1251">').replace("ferry", "паром")
    assert "паром" in text_of(page.encode("cp1251"))
    assert "паром" in text_of(page.encode("cp1251"), charset="utf-8")
    assert "паром" in text_of(page.encode(), charset="windows-1251")


def test_entities_are_decoded_once() -> None:
    page = f"<main><p>{SENTENCES[0]} &amp;lt;p&amp;gt; &eacute;&#233;&#xe9; &nbsp; end.</p></main>"
    assert text_of(page) == f"{SENTENCES[0]} &lt;p&gt; ééé end."


def test_pages_that_a_script_would_have_filled() -> None:
    late = f"<body><main><p>{SENTENCES[0]}</p></main></body>"
    script = f"<body><div id=app></div><noscript><p>{SENTENCES[0]}</p></noscript></body>"
    assert text_of(late) == text_of(script) == SENTENCES[0]


@pytest.mark.parametrize(
    ("content", "is_html", "reason"),
    [
        (b"", False, "empty"),
        ("", True, "empty"),
        (" \n\t ", False, "empty"),
        ("\ud800\u200b", False, "empty"),
        ("<html><body><script>x</script></body></html>", True, "empty"),
    ],
)
def test_drops(content: bytes | str, is_html: bool, reason: str) -> None:
    assert reason_of(content, is_html) == reason


@pytest.mark.parametrize(("unit", "times"), [("x", 10_000_001), (b"x", 10_000_001), ("é", 5_000_001)])
def test_pages_that_are_too_large(unit: bytes | str, times: int) -> None:
    assert reason_of(unit * times, isinstance(unit, bytes)) == "too-large"


def test_shortest_text() -> None:
    assert text_of("four", is_html=False, min_chars=4) == "four"
    assert reason_of("four", is_html=False, min_chars=5) == "empty"


MANY = 100_000
HOSTILE: dict[str, Callable[[], str]] = {  # made when needed: 120 MB
    "nested div": lambda: "<div>" * MANY + "x" + "</div>" * MANY,
    "nested div, upper case": lambda: "<DIV\n>" * MANY + "x",
    "nested unknown": lambda: "<x-y>" * MANY + "x",
    "nested links": lambda: "<a href=x><div>" * MANY,
    "nested tables": lambda: "<table><tr><td>" * MANY + "x",
    "foster parenting": lambda: "<table>" + "<div>x" * MANY,
    "misnested formatting": lambda: "<b><i><div>" * MANY,
    "adoption": lambda: "<a><b>" * MANY + "</a>" * MANY,
    "svg": lambda: "<svg>" * MANY,
    "lists": lambda: "<ul><li>" * MANY + "x",
    "nested div with NUL": lambda: "<div\0>" * MANY + "x",
    "elements": lambda: "<br>" * 600_000,
    "reopened fonts": lambda: "<p>" + "".join(f"<font size={i}>" for i in range(400)) + "</p>" + "<p>x</p>" * 10_000,
    "attributes": lambda: "<p " + " ".join(f"a{i}" for i in range(MANY)) + ">x",
    "text far down": lambda: "<div>" * 500 + "x " * 2_000_000,
    "elements far down": lambda: "<div>" * 500 + "<p>x" * 30_000,
    "less-than": lambda: "<" * 5_000_000,
    "NULs": lambda: "\0" * 9_000_000,
    "unclosed comment": lambda: "<p>x<!--" * 1_000_000,
    "unclosed attribute": lambda: '<div a="' + "x" * 9_000_000,
    "huge attribute": lambda: '<div class="' + "a " * 4_000_000 + '">x</div>',
    "entities": lambda: "&amp;" * 1_900_000,
    "ampersands": lambda: "&" * 5_000_000,
    "endless entity": lambda: "&#x" + "1" * 9_000_000,
    "end tags": lambda: "</div>" * MANY,
    "unclosed p": lambda: "<p>" * MANY,
    "unclosed script": lambda: "<script>" + "<div>" * MANY,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_pages_end_in_a_reason_or_a_text(name: str) -> None:
    result = extract_document(raw(HOSTILE[name]()), ExtractParams())
    assert isinstance(result, Document) or result == Drop("empty")


STUCK = ["nested div", "huge attribute", "unclosed comment", "entities", "unclosed p"]
# A call that is cut off may leave a file of its library open.
CUT_OFF = pytest.mark.filterwarnings("ignore:.*unclosed file:ResourceWarning")


@CUT_OFF
@pytest.mark.parametrize("name", sampled("hostile pages of trafilatura", STUCK, 2))
def test_hostile_pages_do_not_hang_trafilatura(name: str) -> None:
    result = extract_document(raw(HOSTILE[name]()), ExtractParams(engine="trafilatura", seconds=2))
    assert isinstance(result, Drop | Document)


@pytest.mark.parametrize("begin", ["<p", "<title><p"])
def test_a_tag_that_would_hold_its_parser_for_hours(begin: str) -> None:
    assert reason_of(HOSTILE["attributes"]().replace("<p", begin), engine="trafilatura") == "too-many-attributes"


@CUT_OFF
def test_trafilatura_has_its_time_only() -> None:
    page = "<html><body>" + "<div>some words here, and more</div>" * 100_000
    assert reason_of(page, engine="trafilatura", seconds=0.3) == "extraction-timeout"
    assert SENTENCES[0] in text_of(PAGE, engine="trafilatura")  # and the next page is not harmed


@pytest.mark.parametrize("engine", ["blocks", "trafilatura"])
def test_text_does_not_depend_on_the_pages_before(engine: str) -> None:
    shared = "<p>This very sentence, long enough to be noticed, stands on each and every page of the whole site.</p>"
    pages = [
        f"<html><body><article><h1>Page {i}</h1>{shared}<p>{SENTENCES[i % 4]}</p>{shared}</article></body></html>"
        for i in range(8)
    ]
    params = ExtractParams(engine=engine)  # type: ignore[arg-type]
    forward = [extract_document(raw(page), params) for page in pages]
    again = [extract_document(raw(page), params) for page in pages]
    backward = [extract_document(raw(page), params) for page in reversed(pages)][::-1]
    assert forward == again == backward
    assert all(isinstance(doc, Document) and "every page" in doc.text for doc in forward)


@settings(max_examples=examples(150))
@given(st.binary(max_size=200) | st.text(st.characters(codec=None, exclude_categories=())), st.booleans())
def test_no_content_is_an_error(content: bytes | str, is_html: bool) -> None:
    result = extract_document(raw(content, is_html), ExtractParams())
    if isinstance(result, Document):
        result.text.encode()
        assert result.text == result.text.strip()
        assert result.id == document_id(result.text)
    else:
        assert result == Drop("empty")


@given(
    st.lists(
        st.sampled_from(
            [
                "<div>",
                "</div>",
                "<p>",
                "<b>",
                "</b>",
                "<a",
                "href=u>",
                "</a>",
                "<td>",
                "<li>",
                "<pre>",
                "</pre>",
                "text.",
                "<br>",
                "&lt;",
                "\n",
            ]
        )
    )
)
def test_no_markup_is_an_error(parts: list[str]) -> None:
    assert isinstance(extract_document(raw("".join(parts)), ExtractParams()), Document | Drop)


def test_limits_are_the_recipe_s() -> None:
    page = f"<p>{SENTENCES[0]}" * 20 + "<p a=1 b=2>text"
    assert reason_of(page, max_elements=20) == "too-many-elements"
    assert reason_of(page, engine="trafilatura", max_attributes=1) == "too-many-attributes"
    assert text_of(page, max_elements=21) and text_of(page, engine="trafilatura", max_attributes=2)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"engine": "lynx"}, "engine: 'lynx' \\(text\\) given, one of blocks, trafilatura is allowed"),
        ({"mode": "slow"}, "mode: 'slow' \\(text\\) given, one of fast, standard, precision, recall is allowed"),
        ({"min_chars": 0}, "min_chars: 0 given, 1 or more is allowed"),
        ({"max_raw_bytes": 0}, "max_raw_bytes: 0 given, 1 or more is allowed"),
        ({"max_depth": 512}, "max_depth: unknown key, engine, output"),
        ({"output": "html"}, "output: 'html' \\(text\\) given, one of text, markdown is allowed"),
        ({"seconds": 0}, "seconds: 0 given, a number above 0 is allowed"),
    ],
)
def test_impossible_parameters(values: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ExtractParams(**values)  # type: ignore[arg-type]


def test_a_pipeline_extracts_and_drops() -> None:
    raws = [raw(PAGE.encode()), raw("<div>" * 1000)]
    params = pickle.loads(pickle.dumps(ExtractParams()))  # noqa: S301
    [kept] = run_and_collect(lambda pipeline: [pipeline | beam.Create(raws) | EXTRACT(params)])
    assert [doc.text for doc in kept] == [text_of(PAGE)]


@pytest.mark.parametrize("engine", ["blocks", "trafilatura"])
@pytest.mark.parametrize("codec", ["latin-1", "cp1252"])
def test_text_that_was_encoded_twice_is_repaired_before_controls_go(engine: str, codec: str) -> None:
    right = f"{SENTENCES[0]} It’s a café – “naïve”, they’re told."
    wrong = "".join(bytes([byte]).decode(codec, "ignore") or chr(byte) for byte in right.encode())
    page = PAGE.replace(SENTENCES[0], wrong)
    for content in (page, page.encode()):
        assert right in text_of(content, engine=engine)
        assert right not in text_of(content, engine=engine, repair_encoding=False)
    assert text_of(wrong, is_html=False) == right
    assert "â" in text_of(wrong, is_html=False, repair_encoding=False)
