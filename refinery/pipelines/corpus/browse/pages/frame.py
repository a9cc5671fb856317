"""What every page has in common: its frame, links, forms, notes. Nothing of a document becomes markup or a link."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any
from urllib.parse import urlencode

from refinery.pipelines.corpus.trace.answers import Doc
from refinery.pipelines.recipe.quantities.quantity import show
from refinery.pipelines.reports.pages.markup import Html, el, join, visible
from refinery.pipelines.reports.pages.page import own_file
from refinery.pipelines.reports.pages.page import table as table

ADDRESS = 300  # characters of an address or an origin that a list shows
HINT = "Address, id, origin or words"
STYLE, SCRIPT, ICON = "browse.css", "browse.js", "icon.svg"
DRAWN = (  # a funnel
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16">'
    '<path fill="#1f5fbf" d="M1 2h14l-5 7v5l-4-2V9z"/></svg>'
)


@dataclass(frozen=True)
class Run:
    """A run as pages name it. label: in addresses. finished: whether it has documents to look at."""

    label: str
    prefix: str
    name: str
    finished: bool


@dataclass(frozen=True)
class Frame:
    """Where a page is. base: of all addresses. csrf: the token of its forms. runs: one or two; run: that which it is
    about, None for pages about all."""

    base: str
    csrf: str
    runs: Sequence[Run]
    run: Run | None = None

    def href(self, path: str, **query: object) -> str:
        """The address of a page of this server. path: below the base, without a slash in front."""
        kept = {name.rstrip("_"): str(value) for name, value in query.items() if value not in (None, "")}
        return f"{self.base}/{path}" + (f"?{urlencode(kept, errors='replace')}" if kept else "")

    def here(self, path: str, **query: object) -> str:
        """The same of a page about this run."""
        return self.href(f"{self.run.label}/{path}" if self.run else path, **query)

    def link(self, text: object, path: str, **query: object) -> Html:
        """A link to a page about this run."""
        return link(text, self.here(path, **query))

    def document(self, doc: Doc, text: object = None) -> Html:
        """A link to the page of a document, named by its address or its origin."""
        if not (doc.id or doc.origin):
            return el("span", "not shown", class_="withheld")
        named = el("bdi", shortened(doc.url or doc.origin or doc.id)) if text is None else text
        return self.link(named, "document", id=doc.id, origin=doc.origin, source=doc.source)

    def form(self, path: str, *children: object, post: bool = False, **attributes: object) -> Html:
        """A form that is sent to a page about this run. post: whether it changes something; it has the token then."""
        method = "post" if post else "get"
        token = el("input", type="hidden", name="csrf", value=self.csrf) if post else None
        extra = "".join(f' {name.rstrip("_")}="{escape(str(value))}"' for name, value in attributes.items())
        action = escape(self.here(path))
        return Html(f'<form method="{method}" action="{action}"{extra}>{join([token, *children])}</form>')


def link(text: object, address: str, **attributes: object) -> Html:
    """A link within this server. Raises ValueError for any other address."""
    if not address.startswith("/") or address.startswith("//") or "\\" in address:
        raise ValueError(f"{address!r:.80}: pages link to pages of this server alone")
    extra = "".join(f' {name.rstrip("_").replace("_", "-")}="{escape(str(v))}"' for name, v in attributes.items())
    return Html(f'<a href="{escape(address)}"{extra}>{join([text])}</a>')


def page(frame: Frame, title: str, *body: object) -> str:
    """A whole page."""
    where = f"{title} · {frame.run.name}" if frame.run else title
    head = "".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
            '<meta name="referrer" content="no-referrer">\n<meta name="robots" content="noindex">\n',
            f"<title>{escape(visible(where))} · Refinery</title>\n",
            f'<link rel="stylesheet" href="{escape(frame.href(f"static/{STYLE}"))}">\n',
            f'<link rel="icon" href="{escape(frame.href(f"static/{ICON}"))}">\n',
            f'<script defer src="{escape(frame.href(f"static/{SCRIPT}"))}"></script>\n</head>\n<body>\n',
        ]
    )
    shown = join(
        [
            Html('<a class="skip" href="#main">Skip to content</a>'),
            el("header", _top(frame), class_="top"),
            el("main", el("h1", title), body, id="main", tabindex="-1"),
        ]
    )
    return f"{head}{shown}\n</body>\n</html>\n"


def _top(frame: Frame) -> list[object]:
    run = frame.run or frame.runs[0]
    at = Frame(frame.base, frame.csrf, frame.runs, run)
    pages: list[tuple[str, str]] = [("Overview", "")]
    if run.finished:
        pages += [("Search", "search"), ("Clusters", "clusters"), ("Hosts", "hosts"), ("Thresholds", "thresholds")]
    items = [el("li", at.link(name, path)) for name, path in pages]
    if len(frame.runs) > 1:
        items.append(el("li", link("Differences", frame.href("differences"))))
    items.append(el("li", link("Judgements", frame.href("judgements"))))
    return [
        el("nav", el("ul", items), aria_label="Pages"),
        _runs(frame) if len(frame.runs) > 1 else None,
        search_box(at) if run.finished else None,
    ]


def _runs(frame: Frame) -> Html:
    chosen = frame.run or frame.runs[0]
    items = []
    for run in frame.runs:
        text = el("span", el("b", run.label.upper()), " ", el("bdi", run.name))
        current = {"aria_current": "true"} if run == chosen else {}
        items.append(el("li", link(text, frame.href(f"{run.label}/"), **current)))
    return el("nav", el("ul", items), aria_label="Runs", class_="runs")


def search_box(frame: Frame) -> Html:
    """The search of the header: an address, an id, an origin or words."""
    return frame.form(
        "search",
        el("label", HINT, for_="find"),
        el(
            "input",
            type="search",
            id="find",
            name="q",
            autocomplete="off",
            spellcheck="false",
            maxlength="2000",
            placeholder=HINT,
        ),
        el("button", "Search", type="submit"),
        role="search",
        class_="find",
    )


def section(title: str, *children: object, **attributes: object) -> Html:
    """A part of a page with a heading."""
    return el("section", el("h2", title), children, **attributes)


def note(*children: object) -> Html:
    """A paragraph."""
    return el("p", children)


def alert(*children: object) -> Html:
    """A paragraph that must not be overlooked."""
    return el("p", children, class_="alert", role="status")


def field(label: str, name: str, control: Html) -> Html:
    """A labelled control, whose id is `name`."""
    return el("div", el("label", label, for_=name), control, class_="field")


def choice(name: str, options: Sequence[tuple[str, str]], chosen: str) -> Html:
    """A list to choose from."""
    listed = [el("option", text, value=value, selected=value == chosen) for value, text in options]
    return el("select", listed, name=name, id=name)


def entry(name: str, value: object = "", **attributes: Any) -> Html:
    """A line to type in."""
    return el("input", **{"type": "text", "autocomplete": "off", **attributes}, name=name, id=name, value=value)


def words(head: Sequence[object], rows: Sequence[Sequence[object]]) -> Html:
    """A table of words: its cells begin on the left."""
    return el("div", table(head, rows), class_="words")


def count(number: int) -> str:
    """All digits of a whole number."""
    return f"{number:,}"


def share(part: float, whole: float = 1.0) -> str:
    """A part of a whole; "–" of nothing."""
    return show(part / whole, "share") if whole else "–"


def shortened(text: str, most: int = ADDRESS) -> str:
    """A text, or its beginning and "…"."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def static_files() -> dict[str, tuple[str, str]]:
    """Name -> (content type, text) of the files that pages load."""
    return {
        STYLE: ("text/css; charset=utf-8", own_file("base.css") + own_file(STYLE, __package__)),
        SCRIPT: ("text/javascript; charset=utf-8", own_file(SCRIPT, __package__)),
        ICON: ("image/svg+xml", DRAWN),
    }
