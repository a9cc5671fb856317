"""A run whose pages attack who looks at them, and whose recipe drops pages for what they say; and a browser on it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from starlette.testclient import TestClient

from refinery.pipelines.corpus.browse.app import Browser, make_app
from refinery.pipelines.corpus.browse.guard.session import Session
from refinery.pipelines.corpus.browse.reading.judgements import Judgements
from refinery.pipelines.corpus.browse.reading.looked_at import LookedAt
from tests.pipelines.inputs import run

PORT = 8000
KEY = "AKIA" + "Z7QJ4T5LMK3WPX2D"  # the form of a key, of nobody
SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(2)></textarea></main>"
RTL = "\u202egnp.exe\u202c \u2066turned\u2069"
CONTROLS = "\x1b[2J\x07bell"
MAIL = "anna.schmidt@example.com"
URL = "https://evil.example/"
KEPT, COPY, NEAR, TOXIC, SHORT, SECRET, GONE, TURNED = (
    *("https://a.example/0", "https://b.example/copy", "https://b.example/near", "https://rude.example/1"),
    *("https://short.example/1", "https://key.example/1", "https://gone.example/1"),
    f"{URL}?q=\"><script>alert(3)</script>&'",
)
RUDE = "scoundrel"
LOOSE, STRICT = 20, 30  # words that a page must have in the two runs


def text_of(number: int, words: int = 40) -> str:
    """A text that shares nothing with one of another number but its first words."""
    return " ".join(["some", "words", f"tail{number}", *(f"w{k}x{number}" for k in range(words - 3))])


PAGES = {
    **{f"https://a.example/{n}": text_of(n) + f" write to {MAIL}" for n in range(6)},
    COPY: text_of(0) + f" write to {MAIL}",
    NEAR: text_of(0).replace("w20x0", "no") + f" write to {MAIL}",
    TOXIC: text_of(7) + f" {RUDE}" * 9,
    SHORT: text_of(8, 10) + f" {SCRIPT} {RTL} {CONTROLS} {KEY}",
    SECRET: " ".join([f"{KEY[:-2]}{n:02}" for n in range(30)] + text_of(9, 9).split()),
    GONE: text_of(10, LOOSE + 4),
    TURNED: text_of(11) + f" {SCRIPT} {RTL} {CONTROLS}",
    "javascript:alert(4)": text_of(12),
}


def make_runs(folder: Path, inputs: Path) -> None:
    """`first`, `second` with a stricter rule, and `taken`: the first without the page GONE."""
    lines = {url: json.dumps({"text": text, "url": url}) + "\n" for url, text in PAGES.items()}
    copies = (COPY, NEAR)
    (folder / "s.jsonl").write_text("".join(line for url, line in lines.items() if url not in copies))
    (folder / "copies.jsonl").write_text("".join(lines[url] for url in copies))
    recipe: dict[str, Any] = yaml.safe_load((inputs / "recipe.yaml").read_text())
    del recipe["toxicity"], recipe["pii"], recipe["secrets"]
    rules = {"basic": False, "repetition": False, "c4": False, "fineweb": False}
    recipe |= {
        "name": "hostile",
        "sources": [
            {"name": name, "paths": [str(folder / f"{name}.jsonl")], "domain": "s", "priority": priority}
            for priority, name in enumerate(("s", "copies"))  # of copies, those of the first are kept
        ],
        "failures": {"allow_empty": True},  # all of the copies are duplicates
        "rejects": {"rate": 1.0, "excerpt_chars": 400},
        "near_dup": {"threshold": 0.5, "bands": 28, "rows": 4},
        "heuristics": {**rules, "gopher": {"min_words": LOOSE, "stop_words": {}}},
        "toxicity": {"words": [RUDE], "max_density": 10.0, "min_hits": 3},
        "secrets": {"action": "redact", "max_secrets": 5},
        "pii": {"action": "redact"},
    }
    for name, words in (("first", LOOSE), ("second", STRICT)):
        recipe["heuristics"]["gopher"]["min_words"] = words
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(recipe))
        run("refine", folder / f"{name}.yaml", "--workers", 0, "--quiet", "--output", folder / name)
    (folder / "gone.txt").write_text(f"{GONE}\n")
    run(
        "remove",
        folder / "first",
        "--url",
        folder / "gone.txt",
        "--workers",
        0,
        "--quiet",
        "--output",
        folder / "taken",
    )


def browser_of(judgements: Path, *prefixes: object, sample: int = 100, port: int = PORT) -> Browser:
    """A browser of these runs, with a session of its own."""
    runs = [LookedAt(label, str(prefix)) for label, prefix in zip("ab", prefixes, strict=False)]
    return Browser(runs, Judgements(str(judgements), [each.prefix for each in runs]), Session(port), sample)


class Visitor:
    """A client that has opened the session. said: of the last answer."""

    def __init__(self, browser: Browser, opens: bool = True) -> None:
        self.session = browser.session
        self.client = TestClient(make_app(browser), base_url=self.session.origin, follow_redirects=False)
        if opens:
            assert self.client.get(self.session.url).status_code == 303

    def get(self, path: str, code: int = 200, **query: object) -> str:
        """The page of that path below the base."""
        found = self.client.get(f"{self.session.base}/{path}", params={k.rstrip("_"): str(v) for k, v in query.items()})
        assert found.status_code == code, (path, query, found.status_code, found.text[:2000])
        return str(found.text)

    def post(self, path: str, form: dict[str, str], headers: dict[str, str] | None = None) -> int:
        """The status of a form."""
        told = {"origin": self.session.origin} if headers is None else headers
        return int(self.client.post(f"{self.session.base}/{path}", data=form, headers=told).status_code)

    def all(self, run: str, urls: Sequence[str]) -> str:
        """The pages of these documents, together."""
        return "".join(self.get(f"{run}/document", url=url) for url in urls)
