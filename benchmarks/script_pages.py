"""Made newspaper pages in ten scripts: how well is the article told from tickers, menus and lists of links?

    python -m benchmarks.script_pages TEXTS [--pages 40] [--weights FILE] [--others]

TEXTS: JSON lines (.gz too) with `text` and `lang` (ISO 639-3). Each page has real text of one language as its article
and, as headlines and menus around it, pieces of other texts of that language. No template of a page is ever trained
on: the model learns from pages with gold and from copies of these (pipelines/training/extractor/scripts.py). F1 is of
words, of characters in scripts without spaces. --others: resiliparse and trafilatura, too.
"""

import argparse
import gzip
import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from benchmarks.extraction import resiliparse_text, text_of
from refinery.transforms.core.document import RawDocument, hash64
from refinery.transforms.extract.extract import ExtractParams

LANGUAGES = {
    "rus": "Cyrillic", "zho": "Han", "arb": "Arabic", "jpn": "Kana", "kor": "Hangul", "tha": "Thai",
    "hin": "Devanagari", "ell": "Greek", "heb": "Hebrew", "kat": "Georgian", "eng": "Latin",
}  # fmt: skip
NO_SPACES = {"zho", "jpn", "tha"}
BREAK = re.compile(r"[.!?。！？।…\n]+")


@dataclass(frozen=True)
class Made:
    """A page and its main text."""

    html: str
    text: str
    template: str


@dataclass
class Pieces:
    """What pages of a language are made of."""

    texts: list[str]
    rng: random.Random

    def paragraph(self) -> str:
        """Two to four texts in a row."""
        return " ".join(self.rng.sample(self.texts, self.rng.randint(2, 4)))

    def headline(self) -> str:
        """The beginning of a text, as long as headlines are, without its stop."""
        clause = BREAK.split(self.rng.choice(self.texts), maxsplit=1)[0].strip()
        if " " in clause[:70]:
            return clause if len(clause) <= 70 else clause[:70].rsplit(" ", 1)[0]
        return clause[: self.rng.randint(14, 26)]

    def label(self) -> str:
        """A word or two, as in menus."""
        text = self.rng.choice(self.texts)
        words = [word for word in re.findall(r"[^\W\d_]+", text) if len(word) > 2]
        if len(words) > 5:
            return " ".join(self.rng.sample(words, self.rng.choice([1, 1, 2])))
        at = self.rng.randrange(max(1, len(text) - 4))
        return text[at : at + self.rng.randint(2, 4)].strip("、。，, ") or text[:3]

    def time(self) -> str:
        """Of day."""
        return f"{self.rng.randrange(24):02}:{self.rng.randrange(60):02}"


def link(text: str) -> str:
    """With an address."""
    return f'<a href="/news/{hash64("link", text) % 10_000}/">{escape(text)}</a>'


def items(tag: str, inner: Sequence[str], name: str) -> str:
    """A list of elements."""
    return "".join(f'<{tag} class="{name}">{each}</{tag}>' for each in inner)


# How sites name the same places: in English, in a language of their own, by a tool, not at all.
NAMES = {
    "english": {"menu": "main-menu", "ticker": "news-ticker", "list": "latest", "side": "sidebar",
                "body": "article-body", "foot": "footer", "share": "share"},
    "own": {"menu": "verh", "ticker": "lenta-col", "list": "korotko", "side": "pravo", "body": "tekst", "foot": "niz",
            "share": "knopki"},
    "tool": {"menu": "_1xk2", "ticker": "_9Qz1", "list": "css-8a1f", "side": "sc-kE", "body": "_b77", "foot": "f0-2",
             "share": "x-19"},
    "none": {},
}  # fmt: skip


def made_page(pieces: Pieces) -> Made:
    """One page: a template is a way of names, of tickers, of the frame and of the article."""
    rng = pieces.rng
    style, ticker, frame = rng.choice(list(NAMES)), rng.choice(sorted(TICKERS)), rng.choice(["div", "table", "html5"])
    names = defaultdict(str, NAMES[style])
    title, body = pieces.headline(), [pieces.paragraph() for _ in range(rng.randint(3, 7))]
    entries = [link(pieces.label()) for _ in range(rng.randint(8, 24))]
    menu = f'<ul class="{names["menu"]}">{items("li", entries, "")}</ul>'
    if rng.random() < 0.3:
        menu = f'<div class="{names["menu"]}">{" | ".join(entries)}</div>'
    latest = TICKERS[ticker](pieces, names["ticker"])
    others = [f"{link(pieces.headline())}<p>{escape(pieces.headline())}</p>" for _ in range(rng.randint(4, 10))]
    side = f"<h3>{escape(pieces.label())}</h3>" + items("div", others, names["list"])
    links = items("li", [link(pieces.headline()) for _ in range(5)], "")
    related = f"<h4>{escape(pieces.label())}</h4><ul>{links}</ul>"
    share = "".join(f"<span>{escape(pieces.label())}</span> " for _ in range(4))
    foot = f"<p>© 2026 {escape(pieces.label())}. {escape(pieces.headline())}.</p>"
    foot += " ".join(link(pieces.label()) for _ in range(8))
    said = "".join(f"<p>{escape(text)}</p>" for text in body)
    if rng.random() < 0.25:
        said = "<br><br>".join(map(escape, body))
    inner = f'<h1>{escape(title)}</h1><div>12.05.2026, {pieces.time()}</div><div class="{names["body"]}">{said}</div>'
    inner += f'<div class="{names["share"]}">{share}</div>{related}'
    if frame == "table":
        middle = f"<table><tr><td>{latest}</td><td>{inner}</td><td>{side}</td></tr></table>"
    elif frame == "html5":
        middle = f"<aside>{latest}</aside><main><article>{inner}</article></main><aside>{side}</aside>"
    else:
        beside = [f'<div class="{names["side"]}">{each}</div>' for each in (latest, side)]
        middle = f"{beside[0]}<div>{inner}</div>{beside[1]}"
    body_html = f'{menu}{middle}<div class="{names["foot"]}">{foot}</div>'
    html = f"<html><head><title>{escape(title)}</title></head><body>{body_html}</body></html>"
    return Made(html, "\n".join([title, *body]), f"{ticker} {frame} {style}")


def _timed(pieces: Pieces, name: str) -> str:
    return items("div", [f"<span>{pieces.time()}</span> {link(pieces.headline())}" for _ in range(20)], name)


def _flat(pieces: Pieces, name: str) -> str:
    return f'<div class="{name}">{"".join(f"{pieces.time()} {link(pieces.headline())}<br>" for _ in range(15))}</div>'


def _moving(pieces: Pieces, name: str) -> str:
    return f'<marquee class="{name}">{" *** ".join(escape(pieces.headline()) for _ in range(8))}</marquee>'


def _plain(pieces: Pieces, name: str) -> str:
    return f'<ul class="{name}">{items("li", [escape(pieces.headline()) for _ in range(12)], "")}</ul>'


def _teasers(pieces: Pieces, name: str) -> str:
    def teaser() -> str:
        return f"<h3>{link(pieces.headline())}</h3><p>{escape(pieces.rng.choice(pieces.texts)[:120])}…</p>"

    return items("div", [teaser() for _ in range(8)], name)


TICKERS: dict[str, Callable[[Pieces, str], str]] = {
    "timed": _timed, "flat": _flat, "moving": _moving, "plain": _plain, "teasers": _teasers,
}  # fmt: skip


def f1(found: str, gold: str, spaces: bool) -> float:
    """Of words, or of characters."""
    units = [Counter(re.findall(r"\w+" if spaces else r"\w", text.lower())) for text in (found, gold)]
    return 2 * (units[0] & units[1]).total() / max(units[0].total() + units[1].total(), 1)


def read_texts(path: str) -> dict[str, list[str]]:
    """Texts of 40 characters (15 without spaces) and more, by language."""
    texts = defaultdict(list)
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as file:
        for row in map(json.loads, file):
            if row["lang"] in LANGUAGES and len(row["text"]) >= (15 if row["lang"] in NO_SPACES else 40):
                texts[row["lang"]].append(" ".join(row["text"].split()))
    return texts


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts")
    parser.add_argument("--pages", type=int, default=40, help="of each language")
    parser.add_argument("--weights", default=None)
    parser.add_argument("--others", action="store_true")
    args = parser.parse_args()
    engines: dict[str, Callable[[Made], str]] = {
        "blocks": lambda page: text_of(raw_page(page), ExtractParams(weights=args.weights))
    }
    if args.others:
        engines["resiliparse"] = lambda page: resiliparse_text(page.html)
        engines["trafilatura"] = lambda page: text_of(raw_page(page), ExtractParams(engine="trafilatura", seconds=60))
    scores: dict[tuple[str, str], list[float]] = defaultdict(list)
    for language, texts in sorted(read_texts(args.texts).items()):
        pieces = Pieces(texts, random.Random(language))
        for page in [made_page(pieces) for _ in range(args.pages)]:
            for name, extract in engines.items():
                score = f1(extract(page), page.text, language not in NO_SPACES)
                for group in (f"{LANGUAGES[language]} ({language})", *page.template.split(), "all"):
                    scores[name, group].append(score)
    print(f"| F1 | {' | '.join(engines)} |\n| --- |{' --- |' * len(engines)}")
    for group in dict.fromkeys(group for _, group in scores):
        print(f"| {group} | {' | '.join(f'{sum(scores[e, group]) / len(scores[e, group]):.3f}' for e in engines)} |")


def raw_page(page: Made) -> RawDocument:
    """As a reader gives it."""
    return RawDocument(page.html.encode(), True, "utf-8", "https://news.example/2026/05/12/story.html", "", "", 0, {})


if __name__ == "__main__":
    main()
