"""One page of HTML that needs nothing but itself: for a browser without a network.

Everything is inline. The content security policy names each script and style by its SHA-256, so that nothing else
runs or is loaded, even if markup got in (https://www.w3.org/TR/CSP3/).
"""

import base64
import hashlib
import json
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files

from refinery.pipelines.reports.pages.markup import Html, el, join, visible

DATA_ID = "data"  # of the element that holds the data of a page's scripts


def page(
    title: str, body: Iterable[object], data: object = None, styles: Sequence[str] = (), scripts: Sequence[str] = ()
) -> str:
    """The whole page. body: the children of <body>, as for `el`. data: what the scripts read, as JSON, from the element
    "data". styles, scripts: their texts, after those of every page (base.css).

    Raises ValueError for a script or style that ends its own element.
    """
    styles = (own_file("base.css"), *styles)
    for text in (*styles, *scripts):
        if any(end in text.lower() for end in ("</script", "</style", "<!--")):
            raise ValueError("a script or style of a page holds </script, </style or <!--: its element would end there")
    policy = "default-src 'none'; base-uri 'none'; form-action 'none'"
    policy += "".join(
        f"; {kind}-src {' '.join(map(digest, texts))}"
        for kind, texts in (("style", styles), ("script", scripts))
        if texts
    )
    written = "" if data is None else f'<script type="application/json" id="{DATA_ID}">{inert_json(data)}</script>\n'
    return "".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n',
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
            '<meta name="referrer" content="no-referrer">\n',
            f"<title>{escape(visible(title))}</title>\n",
            *(f"<style>{text}</style>\n" for text in styles),
            "</head>\n<body>\n",
            join(body),
            "\n",
            written,
            *(f"<script>{text}</script>\n" for text in scripts),
            "</body>\n</html>\n",
        ]
    )


def own_file(name: str, package: str = __package__) -> str:
    """A style or script that lies beside the modules of `package`."""
    return files(package).joinpath(name).read_text("utf-8")


def digest(text: str) -> str:
    """The text as a content security policy names it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def inert_json(data: object) -> str:
    """JSON that no HTML parser takes for anything else: ASCII, and no `<`, `>` or `&` in it.

    Raises ValueError for infinite numbers and NaN.
    """
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def table(head: Sequence[object], rows: Iterable[Sequence[object]], caption: str = "") -> Html:
    """A table: the first cell of a row is its heading, the others are aligned as numbers. A cell is a child of `el`. A
    table wider than the page scrolls by itself; on a phone a row is a block, with the heading before each cell."""
    first, *others = head
    labels = [each if isinstance(each, str) and not isinstance(each, Html) else None for each in others]
    lines = [
        el(
            "tr",
            el("th", name, scope="row"),
            [el("td", cell, data_label=label) for cell, label in zip(cells, labels, strict=True)],
        )
        for name, *cells in rows
    ]
    columns = [el("th", first, scope="col"), *(el("th", each, scope="col") for each in others)]
    shown = el("table", el("caption", caption) if caption else None, el("thead", el("tr", columns)), el("tbody", lines))
    return el("div", shown, class_="wide", tabindex="0", role="region", aria_label=caption or str(first))
