"""The kinds of pages of the demo crawl: what a page is before it is HTML, and how one of each kind is written."""

import random
import string
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from demo_text.english import ENGLISH
from demo_text.french import FRENCH
from demo_text.german import GERMAN
from demo_text.grammar import Paragraphs, change_words, fill, from_sentences, write_article
from demo_text.others import OTHERS
from demo_text.programs import FUNCTIONS, LISTING_INTROS, PROGRAM_SLOTS, QUOTE_INTROS, QUOTES
from demo_text.spanish import SPANISH
from demo_text.unwanted import ADVERTS, GADGETS, LATIN, RUDE, SPAM

STOCKS = {"en": ENGLISH, "de": GERMAN, "fr": FRENCH, "es": SPANISH}
LANGUAGES = ["en"] * 13 + ["de", "de", "de", "fr", "fr", "fr", "es", "es"]
HOSTS = ["gardenpost.example", "valley-news.example", "www.oldrails.example", "blog.breadandstars.example"]
HOSTS += ["townarchive.example", "magazine.riverside.example", "notes.slowjourneys.example"]
# Site and title of pages with unwanted URLs: a listed domain, two soft words, a hard word.
BLOCKED = [
    ("www.spamfarm.example", "news"),
    ("lucky-casino.example", "jackpot bonus"),
    ("pictures.example", "xxx gallery"),
]


@dataclass
class Page:
    """A page before it is HTML. of: url of the page it is a copy of. personal: strings that must be redacted."""

    kind: str
    language: str
    url: str
    title: str
    text: Paragraphs
    charset: str = "utf-8"
    declared: str = "header"  # where the charset is declared: header, meta, bom or nowhere
    of: str = ""
    personal: list[str] = field(default_factory=list)
    file: str = ""

    def truth(self) -> dict[str, Any]:
        found = {name: getattr(self, name) for name in ("url", "kind", "language", "charset", "declared", "file")}
        return found | ({"of": self.of} if self.of else {}) | ({"personal": self.personal} if self.personal else {})


def new_url(rng: random.Random, hosts: list[str], title: str, number: int) -> str:
    slug = "-".join("".join(c for c in word if c.isascii() and c.isalnum()) for word in title.lower().split())
    return f"https://{rng.choice(hosts)}/{2015 + number % 9}/{slug.strip('-') or 'page'}-{number}"


def article(rng: random.Random, number: int, kind: str = "article", language: str = "") -> Page:
    language = language or rng.choice(LANGUAGES)
    title, text = write_article(rng, STOCKS[language], rng.choice([9, 11, 12, 14, 16, 18, 20, 24, 30, 42]))
    page = Page(kind, language, new_url(rng, HOSTS, title, number), title, text)
    if language != "en" and rng.random() < 0.4:
        page.charset, page.declared = "windows-1252", rng.choice(["header", "meta", "nowhere"])
    elif rng.random() < 0.1:
        page.declared = rng.choice(["meta", "bom", "nowhere"])
    return page


def copy_of(original: Page, rng: random.Random, number: int, kind: str) -> Page:
    text = original.text
    if kind == "near-copy":
        text = change_words(rng, text, STOCKS[original.language].slots["thing"], rng.randint(1, 3))
    url = new_url(rng, HOSTS, original.title, number)
    return Page(kind, original.language, url, original.title, text, of=original.url)


def other_language(rng: random.Random, number: int) -> Page:
    language = rng.choice(sorted(OTHERS))
    text = from_sentences(rng, OTHERS[language], {}, 10)
    page = Page("other-language", language, new_url(rng, HOSTS, "", number), text[0][0][:40], text)
    charsets = {"ja": "shift_jis", "zh": "gbk", "ru": "windows-1251"}
    if language in charsets and rng.random() < 0.5:
        page.charset, page.declared = charsets[language], rng.choice(["header", "meta"])
    return page


def personal(rng: random.Random, number: int) -> Page:
    page = article(rng, number, "personal", "en")
    first, last = fill(rng, "{person}", ENGLISH.slots).lower().split()
    mail = f"{first}.{last}@example.{rng.choice(['com', 'org', 'net'])}"
    phone = rng.choice([f"+44 20 7946 0{rng.randint(100, 999)}", f"(212) 555-01{rng.randint(10, 99)}"])
    # A documentation range (RFC 5737, RFC 3849) or an address that could be real.
    address = rng.choice(["192.0.2.{}", "203.0.113.{}", "81.169.145.{}", "2001:db8:4f::{}"]).format(rng.randint(2, 99))
    page.text[0].append(f"Questions about the visit go to {mail}, or by phone to {phone}, on every weekday.")
    page.text[-1].append(f"The last visitor of the old web page came from the address {address} late at night.")
    page.text[-1].append(
        f"The map was drawn with version 4.{rng.randint(0, 9)}.2.1 of a program that nobody sells now."
    )
    letters = string.ascii_letters + string.digits
    key = "ghp_" + "".join(random.Random(number).choices(letters, k=36))  # noqa: S311 - invented
    page.text[-1].append(f"On the back of the map somebody had written the key {key} and the date of the journey.")
    page.personal = [mail, phone, address, key]
    return page


def made_of(kind: str, sentences: list[str], slots: dict[str, list[str]], count: int) -> Callable[..., Page]:
    """A kind of English page that is `count` of these sentences."""

    def make(rng: random.Random, number: int) -> Page:
        text = from_sentences(rng, sentences, slots, count)
        title = text[0][0].split(",")[0][:60]
        return Page(kind, "en", new_url(rng, HOSTS, kind, number), title, text)

    return make


def spam(rng: random.Random, number: int) -> Page:
    text = [[" ".join(rng.choice(SPAM) for _ in range(60)) + "."] for _ in range(4)]
    return Page("spam", "en", new_url(rng, HOSTS, "deals", number), "Cheap deals", text)


def repetition(rng: random.Random, number: int) -> Page:
    page = article(rng, number, "repetition", "en")
    # As several paragraphs, or as one: line rules apply to the first, n-gram rules to the second.
    page.text = [page.text[0][:2]] * 5 if number % 2 else [page.text[0][:2] * 5]
    return page


def short(rng: random.Random, number: int) -> Page:
    page = article(rng, number, "short", "en")
    page.text = [page.text[0][:2]]
    return page


def script_notice(rng: random.Random, number: int) -> Page:
    page = article(rng, number, "script-notice", "en")
    page.text.insert(1, ["To see the pictures of this story you have to switch on JavaScript in your browser."])
    page.text.append(["By reading on you agree to the use of cookies on this page and on those of our partners."])
    return page


def blocked(rng: random.Random, number: int) -> Page:
    page = article(rng, number, "blocked-url", "en")
    host, title = BLOCKED[number % len(BLOCKED)]
    page.url = new_url(rng, [host], title, number)
    return page


def code(rng: random.Random, number: int) -> Page:
    # A program is about one thing, so each slot has a single word.
    slots = ENGLISH.slots | {name: [rng.choice(found)] for name, found in PROGRAM_SLOTS.items()}
    text = [[fill(rng, rng.choice(LISTING_INTROS), slots)]]
    text += [[fill(rng, function, slots)] for function in rng.sample(FUNCTIONS, len(FUNCTIONS))]
    return Page("code", "en", new_url(rng, HOSTS, "program", number), "The whole program", text)


def quoted_code(rng: random.Random, number: int) -> Page:
    page = article(rng, number, "quoted-code", "en")
    quote = [[fill(rng, rng.choice(QUOTE_INTROS), ENGLISH.slots)], [fill(rng, rng.choice(QUOTES), ENGLISH.slots)]]
    page.text[1:1] = quote
    return page


def dummy_text(rng: random.Random, number: int) -> Page:
    if number % 3 == 0:
        return made_of("dummy-text", LATIN, {}, 12)(rng, number)
    page = article(rng, number, "dummy-text", "en")
    page.text.insert(1, LATIN[:2])
    return page


def listing(rng: random.Random, number: int) -> Page:
    text = [[title] for _ in range(40) for title in [write_article(rng, ENGLISH, 1)[0]]]
    return Page("list", "en", new_url(rng, HOSTS, "archive", number), "All stories", text)


def app(rng: random.Random, number: int) -> Page:
    title = write_article(rng, ENGLISH, 1)[0]
    return Page("app", "en", new_url(rng, HOSTS, "app", number), title, [])


MAKERS: dict[str, Callable[[random.Random, int], Page]] = {
    "article": article,
    "other-language": other_language,
    "personal": personal,
    "advert": made_of("advert", ADVERTS, {"gadget": GADGETS}, 14),
    "rude": made_of("rude", RUDE, ENGLISH.slots, 9),
    "dummy-text": dummy_text,
    "spam": spam,
    "repetition": repetition,
    "short": short,
    "script-notice": script_notice,
    "blocked-url": blocked,
    "code": code,
    "quoted-code": quoted_code,
    "list": listing,
    "app": app,
}
