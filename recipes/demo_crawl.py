"""Writes a small crawl of invented pages, so that every stage of the funnel has something to do.

    python recipes/demo_crawl.py OUT_DIR [--pages 600] [--seed 1]

OUT_DIR then holds crawl-00000.warc.gz to crawl-00003.warc.gz, notes.jsonl.gz (a second source that shares documents
with the crawl), good.jsonl and bad.jsonl (to train a quality classifier), rules.warc.gz and licensed.warc.gz (who may
use what: docs/rights.md) and truth.json: what every page is. The same arguments give the same bytes. Needs the standard
library alone.
"""

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

from demo_text import archive
from demo_text.english import ENGLISH
from demo_text.grammar import Paragraphs, from_sentences, generator, write_article
from demo_text.kinds import HOSTS, LANGUAGES, MAKERS, STOCKS, Page, article, copy_of
from demo_text.page import html_page
from demo_text.rights import write_rights
from demo_text.stock import Stock
from demo_text.unwanted import ADVERTS, GADGETS, SPAM

FILES = 4
NOTES = 48

# Share of the pages by kind; the rest are articles. What should become of each: docs/recipes/demo-crawl.md.
SHARES = {
    "exact-copy": 0.06,  # an article's text on another site
    "near-copy": 0.06,  # the same with up to three words changed
    "other-language": 0.08,
    "advert": 0.04,
    "spam": 0.03,  # keywords
    "repetition": 0.02,  # two sentences over and over
    "short": 0.03,
    "dummy-text": 0.015,  # an article where a part is still lorem ipsum; every third page is nothing else
    "script-notice": 0.015,  # an article with a line about JavaScript and one about cookies
    "rude": 0.02,
    "personal": 0.04,  # an article with e-mail addresses, phone numbers, IP addresses and a key
    "blocked-url": 0.02,  # an article under a URL of another kind
    "code": 0.015,  # functions with English comments
    "quoted-code": 0.015,  # an article that shows a line or two of a program
    "list": 0.015,  # headlines without a sentence
    "app": 0.01,  # no text before a script has run
}


def make_pages(seed: int, count: int) -> list[Page]:
    """All pages, in the order of the crawl."""
    shuffle = generator(seed, "kinds")
    kinds = [kind for kind, share in SHARES.items() for _ in range(round(share * count))]
    kinds = ["article"] * max(1, count - len(kinds)) + kinds
    pages: list[Page] = []
    for number, kind in enumerate(sorted(kinds, key=lambda kind: kind.endswith("-copy"))):
        rng = generator(seed, "page", number)
        if kind.endswith("-copy"):
            originals = [page for page in pages if page.kind == "article" and len(page.text) > 2]
            pages.append(copy_of(rng.choice(originals), rng, number, kind))
        else:
            pages.append(MAKERS[kind](rng, number))
    shuffle.shuffle(pages)
    return pages


def page_record(page: Page, seed: int, number: int, titles: list[str], length: str = "") -> bytes:
    rng = generator(seed, "html", page.url)
    stock: Stock = STOCKS.get(page.language, ENGLISH)
    meta = page.charset if page.declared == "meta" else ""
    html = html_page(rng, stock, rng.randrange(3), page.title, page.text, rng.sample(titles, min(6, len(titles))), meta)
    body = html.encode(page.charset, "xmlcharrefreplace")
    content_type = f"text/html; charset={page.charset}" if page.declared == "header" else "text/html"
    return archive.response(
        page.url, number, b"\xef\xbb\xbf" * (page.declared == "bom") + body, content_type, length=length
    )


def other_records(number: int) -> list[tuple[str, bytes]]:
    """Records of a crawl that hold no page: (what, record)."""
    url = f"https://{HOSTS[number % len(HOSTS)]}/x/{number}"
    image = bytes((number * 31 + i * i) % 256 for i in range(900))
    return [
        ("not-found", archive.response(url, number, b"<h1>Not found</h1>", "text/html", "404 Not Found")),
        ("redirect", archive.response(url + "r", number + 1, b"", "text/html", "301 Moved Permanently")),
        ("error", archive.response(url + "e", number + 2, b"<p>Sorry.</p>", "text/html", "503 Service Unavailable")),
        ("image", archive.response(url + ".jpg", number + 3, b"\xff\xd8\xff\xe0" + image, "image/jpeg")),
        ("json", archive.response(url + ".json", number + 4, b'{"items": [1, 2, 3]}', "application/json")),
        ("request", archive.request(url, number + 5)),
        ("metadata", archive.metadata(url, number + 6)),
    ]


def write_crawl(out: Path, seed: int, pages: list[Page]) -> dict[str, Any]:
    """The WARC files. The second has a truncated member and one with flipped bytes, the third a record with a false
    length, the last ends in the middle of a record. Returns counts of other records and the damaged urls."""
    records: Counter[str] = Counter()
    damaged: list[dict[str, str]] = []
    titles = [page.title for page in pages]
    for index in range(FILES):
        name = f"crawl-{index:05d}.warc.gz"
        members = [archive.member(archive.warcinfo(name, index))]
        records["warcinfo"] += 1
        for position, page in enumerate(pages[index::FILES]):
            number = 10 * (position * FILES + index) + 10
            page.file = name
            members.append(archive.member(page_record(page, seed, number, titles)))
            if position % 16 == 5:
                for what, data in other_records(number + 1):
                    members.append(archive.member(data))
                    records[what] += 1
        for where, what in {1: ((5, "cut-member"), (9, "flipped-bytes")), 2: ((5, "false-length"),)}.get(index, ()):
            damaged.append(insert_damage(members, where, what, seed, index, titles) | {"file": name, "damage": what})
        if index == FILES - 1:
            damaged.append(insert_damage(members, len(members), "cut-tail", seed, index, titles))
            damaged[-1] |= {"file": name, "damage": "cut-tail"}
        (out / name).write_bytes(b"".join(members))
    return {"records": dict(sorted(records.items())), "damaged": damaged}


def insert_damage(
    members: list[bytes], where: int, what: str, seed: int, index: int, titles: list[str]
) -> dict[str, str]:
    """Insert an extra page, damaged as `what` says, among the members of a file."""
    number = 10**6 + 100 * index + where
    page = article(generator(seed, "damage", what), number)
    data = archive.member(page_record(page, seed, number, titles, "many" if what == "false-length" else ""))
    broken = {"cut-member": archive.cut, "cut-tail": archive.cut, "flipped-bytes": archive.flip}.get(what)
    members.insert(where, broken(data) if broken else data)
    return {"url": page.url}


def plain(text: Paragraphs) -> str:
    return "\n\n".join(" ".join(sentences) for sentences in text)


def write_notes(out: Path, seed: int, pages: list[Page]) -> list[dict[str, str]]:
    """The second source: a quarter are copies of articles, an eighth near copies, and one line is not JSON."""
    rng = generator(seed, "notes")
    articles = [page for page in pages if page.kind == "article" and len(page.text) > 2]
    originals = rng.sample(articles, min(len(articles), NOTES * 3 // 8))
    truth, rows = [], []
    for number in range(NOTES):
        page = article(generator(seed, "note", number), number, "note")
        if number < len(originals):
            kind = "exact-copy" if number < NOTES // 4 else "near-copy"
            page = copy_of(originals[number], rng, number, kind)
        page.url = f"https://notes.example/{number}"
        row = {"id": f"note-{number:03d}", "date": f"2023-{number % 12 + 1:02d}-{number % 28 + 1:02d}", "url": page.url}
        rows.append(json.dumps(row | {"text": f"{page.title}\n\n{plain(page.text)}"}, ensure_ascii=False))
        truth.append({"id": row["id"], "url": page.url, "kind": page.kind, "language": page.language, "of": page.of})
    rows.insert(len(rows) // 2, '{"id": "note-broken", "text": "This line ends in the middle of')
    (out / "notes.jsonl.gz").write_bytes(archive.member(("\n".join(rows) + "\n").encode()))
    return truth


def write_examples(out: Path, seed: int, count: int = 240) -> None:
    """good.jsonl and bad.jsonl: separate texts, none of them in the crawl."""
    good, bad = [], []
    for number in range(count):
        rng = generator(seed, "example", number)
        good.append(plain(write_article(rng, STOCKS[rng.choice(LANGUAGES)], 10)[1]))
        if number % 4:
            bad.append(plain(from_sentences(rng, ADVERTS, {"gadget": GADGETS}, 10)))
        else:
            bad.append(" ".join(rng.choice(SPAM) for _ in range(80)))
    for name, texts in (("good", good), ("bad", bad)):
        rows = [json.dumps({"text": text}, ensure_ascii=False) for text in texts]
        (out / f"{name}.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8", newline="\n")


def write_all(out: Path, pages: int, seed: int) -> dict[str, Any]:
    """Write everything; returns the content of truth.json."""
    out.mkdir(parents=True, exist_ok=True)
    made = make_pages(seed, pages)
    crawl = write_crawl(out, seed, made)
    notes = write_notes(out, seed, made)
    write_examples(out, seed)
    truth = {"seed": seed, "pages": [page.truth() for page in made], "notes": notes, "notes_malformed": 1, **crawl}
    truth["rights"] = write_rights(out, seed)
    (out / "truth.json").write_text(
        json.dumps(truth, ensure_ascii=False, indent=1) + "\n", encoding="utf-8", newline="\n"
    )
    return truth


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, metavar="OUT_DIR")
    parser.add_argument("--pages", type=int, default=600)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if args.pages < 1:
        parser.error(f"--pages: {args.pages} given, 1 or more is allowed")
    truth = write_all(args.out, args.pages, args.seed)
    kinds = Counter(page["kind"] for page in truth["pages"])
    print(f"{args.out}: {len(truth['pages'])} pages ({', '.join(f'{n} {kind}' for kind, n in kinds.most_common())})")


if __name__ == "__main__":
    main()
