"""The fixed inputs of stages' golden outputs: texts with addresses, pages in several encodings, and odd ones."""

import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from refinery.transforms.core.document import Document, RawDocument, document_id
from tests.transforms.dedup_oracle import SOURCES

sys.path.append(str(Path(__file__).parents[1] / "recipes"))

import demo_crawl

ODD = (
    "",
    " \n\t ",
    "one line",
    "Ünïcödé, 漢字かな and 한국어; emoji 👩‍👩‍👧 and \u200bzero width.",
    "ไม่มีช่องว่างระหว่างคำ " * 40,
    "call +1 212-555-0123 or mail someone@example.org from 192.168.1.10 and 8.8.8.8\n" * 3,
    'if (x[1]) { return "a"; }\n' * 30,
    "the same line again and again\n" * 50,
    "lorem ipsum dolor sit amet. " * 30,
    "fuck this shit, you motherfucker. " * 5,
    "- bullet\n• bullet\n* bullet\n" * 20,
    "# hash # hash … and so on...\n" * 30,
    "word " * 20_000,
    "word " * 120_000,
    "!?;:,.-()[]{}*+~#' " * 60,
    "".join(f"Sentence number {i} trails off into the distance...\n" for i in range(40)),
    "".join(f"Word{i}\n\n" for i in range(100)),
    "a b c d e f g h i j k l m n o p q r s t u v w x y z " * 10,
    "incomprehensibilities antidisestablishmentarianism floccinaucinihilipilification " * 20,
    "1234 5678 9012 3456 7890 " * 40,
    "Zwei Wege führten damals durch den Wald hinab zum Fluss, an dem die alte Mühle stand. " * 1
    + "".join(f"Am Tag Nummer {i} kam jemand vorbei und erzählte von etwas Neuem aus der Stadt.\n" for i in range(40)),
    "short\nlines\nonly\nhere\n" * 1 + "".join(f"line {i}\n" for i in range(300)),
    "".join(f"First paragraph number {i} is rather short.\n\n" for i in (1, 2, 3, 1, 2, 3, 1, 2, 3)) * 2,
)


@cache
def pages() -> tuple[demo_crawl.Page, ...]:
    return tuple(demo_crawl.make_pages(7, 150))


@cache
def documents() -> tuple[Document, ...]:
    """Texts with addresses, of every kind of page in the demo, and odd ones."""
    texts = [(demo_crawl.plain(page.text), page.url) for page in pages()] + [(text, "") for text in ODD]
    return tuple(
        Document(document_id(text), text, url, SOURCES[i % len(SOURCES)], f"file@{i}", i, {"language": "en"})
        for i, (text, url) in enumerate(texts)
    )


def raw_documents() -> Iterator[RawDocument]:
    """HTML pages in several encodings, and plain text."""
    for i, page in enumerate(pages()):
        charset = ("utf-8", "", "iso-8859-1", "utf-16")[i % 4]
        data = page_html(page, i).encode(charset or "utf-8", "xmlcharrefreplace")
        yield RawDocument(data, True, charset, page.url, "s", f"file@{i}", i)
    for i, text in enumerate(ODD):
        yield RawDocument(text.encode(), False, "", "", "s", f"text@{i}", i)
        yield RawDocument(text, False, "", "", "s", f"text@{i}", i)


def page_html(page: demo_crawl.Page, number: int) -> str:
    """One of the demo's three layouts, with a menu and related titles around the text."""
    stock = demo_crawl.STOCKS.get(page.language, demo_crawl.ENGLISH)
    titles = [other.title for other in pages()[:6]]
    rng = demo_crawl.generator(7, "html", page.url)
    return demo_crawl.html_page(rng, stock, number % 3, page.title, page.text, titles, "")
