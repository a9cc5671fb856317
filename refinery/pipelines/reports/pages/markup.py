"""HTML as values: whatever is not already markup is escaped, and no element can carry a script.

    el("td", document.url, class_="long")        the URL is text, whatever it says

Every page of the project is made of these elements.
"""

import re
from collections.abc import Iterable, Iterator
from html import escape

# What HTML closes itself (https://html.spec.whatwg.org/#void-elements), of that what pages here use.
VOID = {"meta", "input", "br", "col"}
# Elements whose content a parser does not take for text: they are written by `pages.page` alone.
RAW = {"script", "style", "textarea", "title", "iframe", "object", "embed", "link", "base"}
# Attributes that load, run or style something; the content security policy of a page would refuse most of them, too.
FORBIDDEN = {"src", "srcset", "style", "action", "formaction", "srcdoc", "ping", "background", "poster"}
# Characters that would change how the text around them is shown: controls but for tab and line feed, marks and
# overrides of direction (Unicode Bidirectional Algorithm, UAX #9), invisible ones but for the joiners that scripts and
# emoji need, separators of lines, tags, lone surrogates.
CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)


class Html(str):
    """Text that is markup already. Made by `el` and `join` alone."""

    __slots__ = ()


def el(tag: str, *children: object, **attributes: object) -> Html:
    """An element. children: `Html` as it is, None not at all, iterables of children in order, anything else as text.
    attributes: names as Python spells them (`class_`, `aria_label`); True: without a value; None or False: left out.

    >>> el("p", "a < b & c", el("br"), class_="note", hidden=True)
    '<p class="note" hidden>a &lt; b &amp; c<br></p>'

    Raises ValueError for elements and attributes that load or run something.
    """
    names = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
    wrong = [name for name in names if name in FORBIDDEN or name.startswith("on")]
    if not str(names.get("href", "#")).startswith("#"):  # a page links to its own parts alone
        wrong.append("href")
    if tag in RAW or wrong:
        raise ValueError(
            f"<{tag}> with {wrong}: a page has no such element; its scripts and styles are given to `page`"
        )
    written = [
        f" {name}" if value is True else f' {name}="{escape(str(value))}"'
        for name, value in names.items()
        if value is not None and value is not False
    ]
    start = f"<{tag}{''.join(written)}>"
    return Html(start if tag in VOID else f"{start}{join(children)}</{tag}>")


def join(children: Iterable[object]) -> Html:
    """The children of an element, one after another."""
    return Html("".join(pieces(children)))


def pieces(children: Iterable[object]) -> Iterator[str]:
    """Each child as markup."""
    for child in children:
        if isinstance(child, Html):
            yield child
        elif isinstance(child, (str, int, float)):
            yield escape(visible(str(child)))
        elif isinstance(child, Iterable):
            yield from pieces(child)
        elif child is not None:
            raise TypeError(f"{type(child).__name__} is neither text nor markup")


def prose(text: str) -> Html:
    """A sentence with `code` in it, as declarations and messages have.

    >>> prose("raise `max_ratio` < 1")
    'raise <code>max_ratio</code> &lt; 1'
    """
    parts = text.split("`")
    if len(parts) % 2 == 0:  # a lone backtick is a character
        return join([text])
    return join(el("code", part) if place % 2 else part for place, part in enumerate(parts))


def visible(text: str) -> str:
    """The text with control characters escaped, which would change how their surroundings are shown.

    >>> visible("a\\u202eb")
    'a\\\\u202eb'
    """
    return CONTROLS.sub(lambda found: ascii(found[0])[1:-1], text)
