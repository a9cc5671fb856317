"""What the hosts of the crawl say about training, and a few pages that say it themselves.

rules.warc.gz holds robots.txt, ai.txt and tdmrep.json as a crawler collects them; licensed.warc.gz pages that declare
a licence or refuse training. docs/rights.md follows both through the funnel.
"""

from pathlib import Path

from demo_text import archive
from demo_text.english import ENGLISH
from demo_text.grammar import generator, write_article
from demo_text.page import html_page

DAY = 86_400 // 7  # records of a day: archive.record dates them 7 seconds apart
ALL = "User-agent: *\nDisallow: /admin/\n"

# (address, days after the crawl's first, status, body). The last but one forbids from the summer on.
RULES = (
    ("https://gardenpost.example/robots.txt", 0, "200 OK", ALL),
    ("https://valley-news.example/robots.txt", 0, "200 OK", "User-agent: GPTBot\nUser-agent: CCBot\nDisallow: /\n"),
    ("https://www.oldrails.example/robots.txt", 0, "503 Service Unavailable", ""),
    ("https://notes.slowjourneys.example/robots.txt", 0, "404 Not Found", "<h1>Not found</h1>"),
    ("https://townarchive.example/robots.txt", 0, "200 OK", ALL),
    ("https://townarchive.example/ai.txt", 0, "200 OK", "User-Agent: *\nDisallow: *.html\n"),
    (
        "https://magazine.riverside.example/.well-known/tdmrep.json",
        0,
        "200 OK",
        '[{"location": "/2016/*", "tdm-reservation": 1}, {"location": "/2017/*", "tdm-reservation": 1}]',
    ),
    ("https://blog.breadandstars.example/robots.txt", 0, "200 OK", ALL),
    ("https://blog.breadandstars.example/robots.txt", 100, "200 OK", "User-agent: *\nContent-Signal: ai-train=no\n"),
    ("https://commons.example/robots.txt", 0, "200 OK", "User-agent: *\nAllow: /\n"),
)

CC = "https://creativecommons.org"
# (name, what the licence then is, in the head, in the footer)
PAGES = (
    ("by", "CC-BY-4.0", f'<link rel="license" href="{CC}/licenses/by/4.0/">', ""),
    ("by-de", "CC-BY-3.0-DE", "", f'<a rel="license" href="{CC}/licenses/by/3.0/de/">CC BY 3.0 DE</a>'),
    ("nc", "CC-BY-NC-SA-4.0", "", f'<a rel="license" href="{CC}/licenses/by-nc-sa/4.0/deed.en">Some rights</a>'),
    (
        "zero",
        "CC0-1.0",
        f'<script type="application/ld+json">{{"@type": "Article", "license": "{CC}/publicdomain/zero/1.0/"}}</script>',
        "",
    ),
    ("terms", "LicenseRef-other", '<link rel="license" href="/terms">', ""),
    ("nothing", "", "", ""),
    ("noai", "", '<meta name="robots" content="noai">', ""),
    ("reserved", "", '<meta name="tdm-reservation" content="1">', ""),
)
EACH = 3  # pages of each kind


def write_rights(out: Path, seed: int) -> list[dict[str, str]]:
    """Write both files; returns what every page of the second declares."""
    rules = [
        archive.member(archive.response(url, days * DAY + number, body.encode(), "text/plain", status))
        for number, (url, days, status, body) in enumerate(RULES)
    ]
    (out / "rules.warc.gz").write_bytes(b"".join([archive.member(archive.warcinfo("rules.warc.gz", 0)), *rules]))
    pages, truth = [archive.member(archive.warcinfo("licensed.warc.gz", 0))], []
    for number in range(EACH * len(PAGES)):
        name, license_, head, foot = PAGES[number % len(PAGES)]
        rng = generator(seed, "rights", number)
        title, text = write_article(rng, ENGLISH, 16)
        html = html_page(rng, ENGLISH, number // len(PAGES), title, text, [], "utf-8")
        html = html.replace("<head>\n", f"<head>\n{head}", 1).replace("</footer>", f" {foot}</footer>")
        if foot and "</footer>" not in html:
            html = html.replace('<div id="footer" class="footer"><p>', f'<div id="footer" class="footer"><p>{foot} ')
        url = f"https://commons.example/{name}-{number}"
        pages.append(archive.member(archive.response(url, number, html.encode(), "text/html; charset=utf-8")))
        truth.append({"url": url, "kind": name, "license": license_})
    (out / "licensed.warc.gz").write_bytes(b"".join(pages))
    return truth
