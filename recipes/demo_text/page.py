"""HTML pages in three designs, with everything around the text that an extractor should leave out."""

import random
from html import escape

from demo_text.grammar import Paragraphs, fill
from demo_text.stock import Stock

_SCRIPT = """<script>
window.dataLayer = window.dataLayer || []; function track(e) { window.dataLayer.push({event: e, id: "UA-%d"}); }
document.addEventListener("click", function (e) { if (e.target.matches("a")) { track("click"); } });
</script>"""
_STYLE = (
    "<style>body { margin: 0; font-family: sans-serif } .wrap { max-width: 60em } nav li { display: inline }</style>"
)


def html_page(
    rng: random.Random, stock: Stock, design: int, title: str, paragraphs: Paragraphs, links: list[str], meta: str
) -> str:
    """A page in design 0, 1 or 2. links: titles of other pages. meta: a charset for a meta tag, "" for none.

    Without paragraphs it is the shell of an application: nothing is there until its script has run.
    """
    words = {name: escape(fill(rng, text, stock.slots)) for name, text in stock.furniture.items()}
    text = [_block(" ".join(sentences)) for sentences in paragraphs]
    menu = "".join(f'<li><a href="/{i}/">{item}</a></li>' for i, item in enumerate(words["nav"].split("|")))
    related = "".join(f'<li><a href="/r/{rng.randrange(10**6)}">{escape(link)}</a></li>' for link in links)
    head = f'<meta charset="{meta}">' if meta else ""
    head += f"<title>{escape(title)}</title>{_STYLE}{_SCRIPT % rng.randrange(10**6)}"
    if paragraphs:
        body = (_article, _table, _plain)[design](escape(title), text, words, menu, related)
        body += f"\n<noscript>{words['script']}</noscript>"
    else:
        body = '<div id="app"></div><script src="/app.js"></script>'
    return f"<!DOCTYPE html>\n<html>\n<head>\n{head}\n</head>\n<body>\n{body}\n</body>\n</html>\n"


def _block(text: str) -> str:
    """A paragraph, or program text where there are line breaks."""
    inside = escape(text, quote=False)
    return f"<pre><code>{inside}</code></pre>" if "\n" in text else f"<p>{inside}</p>"


def _article(title: str, text: list[str], words: dict[str, str], menu: str, related: str) -> str:
    return f"""<header class="site-header"><a href="/" class="logo">Logo</a><nav><ul>{menu}</ul></nav></header>
<div id="cookie-banner" class="cookie-consent" role="dialog">{words["cookie"]} <button>OK</button></div>
<main><article>
<h1>{title}</h1>
{_joined(text)}
</article></main>
<aside class="sidebar"><p class="byline">{words["by"]}</p>
<h3>{words["related"]}</h3><ul>{related}</ul>
<form action="/newsletter"><label>{words["newsletter"]}</label><input type="email"></form></aside>
<footer class="site-footer">{words["footer"]}</footer>"""


def _table(title: str, text: list[str], words: dict[str, str], menu: str, related: str) -> str:
    return f"""<div id="header"><h2>{title}</h2></div>
<div id="menu" class="navigation"><ul>{menu}</ul></div>
<div id="content" class="content">
<h1>{title}</h1>
{_joined(text)}
</div>
<div id="sidebar" class="sidebar"><div class="share">{words["share"]}: <a href="#">A</a> <a href="#">B</a></div>
<h4>{words["related"]}</h4><ul>{related}</ul></div>
<div id="comments" class="comments"><h4>{words["comments"]}</h4></div>
<div id="footer" class="footer"><p>{words["footer"]}</p></div>
<div class="cookie-notice">{words["cookie"]}</div>"""


def _plain(title: str, text: list[str], words: dict[str, str], menu: str, related: str) -> str:
    half = len(text) // 2
    return f"""<nav class="top-nav"><ul>{menu}</ul></nav>
<section class="post"><div class="post-content entry-content">
<h1 class="entry-title">{title}</h1>
<div class="post-meta">{words["by"]}</div>
{_joined(text[:half])}
<figure><img src="/i/{len(title)}.jpg" alt=""></figure>
{_joined(text[half:])}
</div></section>
<section class="related-posts"><h3>{words["related"]}</h3><ul>{related}</ul></section>
<div class="newsletter-signup">{words["newsletter"]}</div>
<footer>{words["footer"]}</footer>
<div class="cookie-bar" aria-label="cookies">{words["cookie"]}</div>"""


def _joined(text: list[str]) -> str:
    return "\n".join(text)
