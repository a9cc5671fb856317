"""The demo crawl: the same bytes for the same arguments, and in it what truth.json says."""

import gzip
import hashlib
import importlib.util
import json
import os
import re
import subprocess
import sys
import zlib
from collections import Counter, defaultdict
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from refinery.pipelines.recipe.load_recipe import load_recipe
from refinery.transforms.core.document import Drop, RawDocument
from refinery.transforms.extract.extract import ExtractParams, extract_document
from refinery.transforms.filter.heuristics import judge_heuristics
from refinery.transforms.filter.language import judge_language, load_language
from refinery.transforms.filter.url import judge_url, load_rules
from refinery.transforms.read.params import SourceParams
from refinery.transforms.read.sources import plan_sources, read_task
from refinery.transforms.rights.rule_rows import BadRow, read_rows

SCRIPT = Path(__file__).parent.parent / "recipes" / "demo_crawl.py"

# What the stages about single documents make of each kind of page: "stage: reason", or "" where they let it pass.
OUTCOMES = {
    "article": {""},
    "exact-copy": {""},
    "near-copy": {""},
    "advert": {""},
    "rude": {""},
    "personal": {""},
    "script-notice": {""},
    "app": {"extract: empty"},
    "blocked-url": {"url: blocked-host", "url: hard-word", "url: soft-words"},
    "other-language": {"language: language-not-allowed"},
    "dummy-text": {"language: language-not-allowed", "heuristics: c4-lorem-ipsum"},
    "code": {"heuristics: basic-code-like"},
    "quoted-code": {"heuristics: c4-curly-bracket"},
    "spam": {"heuristics: basic-low-unique-word-ratio"},
    "repetition": {"heuristics: repetition-duplicate-lines", "heuristics: repetition-duplicate-5-grams"},
    "list": {"heuristics: fineweb-few-terminal-lines"},
    "short": {
        "heuristics: basic-too-few-characters",
        "heuristics: gopher-too-few-words",
        "heuristics: c4-too-few-sentences",
    },
}


def load_script() -> ModuleType:
    """The script as a module, found as Python would find it when run."""
    sys.path.insert(0, str(SCRIPT.parent))
    try:
        spec = importlib.util.spec_from_file_location("demo_crawl", SCRIPT)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["demo_crawl"] = module
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path.remove(str(SCRIPT.parent))


demo_crawl = load_script()


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("demo") / "input"
    demo_crawl.write_all(out, 600, 1)
    return out


@pytest.fixture(scope="module")
def truth(crawl: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((crawl / "truth.json").read_text(encoding="utf-8"))
    return found


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def members(data: bytes) -> list[bytes]:
    """Gzip members of a file, found and read one by one; an unreadable one is skipped up to the next magic."""
    found = []
    while data:
        inflate = zlib.decompressobj(wbits=31)
        try:
            content = inflate.decompress(data)
            if not inflate.eof:
                raise zlib.error("cut")
            found.append(content)
            data = inflate.unused_data
        except zlib.error:
            following = data.find(b"\x1f\x8b\x08\x00\x00\x00\x00\x00", 1)
            data = data[following:] if following > 0 else b""
    return found


def test_same_arguments_same_bytes(tmp_path: Path) -> None:
    for seed in ("0", "1"):
        subprocess.run(
            [sys.executable, str(SCRIPT), str(tmp_path / seed), "--pages", "80", "--seed", "3"],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
        )
    assert digests(tmp_path / "0") == digests(tmp_path / "1")
    demo_crawl.write_all(tmp_path / "other", 80, 4)
    assert digests(tmp_path / "other")["crawl-00000.warc.gz"] != digests(tmp_path / "0")["crawl-00000.warc.gz"]


@pytest.mark.parametrize("pages", [1, 2, 7, 40])
def test_any_number_of_pages(tmp_path: Path, pages: int) -> None:
    truth = demo_crawl.write_all(tmp_path / "out", pages, 1)
    assert len(truth["pages"]) == pages
    assert len(list((tmp_path / "out").glob("crawl-*.warc.gz"))) == demo_crawl.FILES


def test_usage() -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "x", "--pages", "0"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "--pages: 0 given, 1 or more is allowed" in done.stderr


def test_every_page_is_in_its_file(crawl: Path, truth: dict[str, Any]) -> None:
    wanted = Counter((page["file"], page["url"]) for page in truth["pages"])
    wanted += Counter((page["file"], page["url"]) for page in truth["damaged"] if page["damage"] == "false-length")
    found: Counter[tuple[str, str]] = Counter()
    others: Counter[str] = Counter()
    for path in sorted(crawl.glob("crawl-*.warc.gz")):
        for data in members(path.read_bytes()):
            headers = dict(re.findall(r"^([\w-]+): (.*?)\r?$", data.partition(b"\r\n\r\n")[0].decode(), re.M))
            kind, url = headers["WARC-Type"], headers.get("WARC-Target-URI", "")
            assert re.fullmatch(r"<urn:uuid:[0-9a-f-]{36}>", headers["WARC-Record-ID"])
            if kind == "response" and b" 200 OK\r\n" in data and b"Content-Type: text/html" in data:
                found[path.name, url] += 1
            else:
                others[kind] += 1
    assert found == wanted
    records = truth["records"]
    assert others == {
        "warcinfo": records["warcinfo"],
        "request": records["request"],
        "metadata": records["metadata"],
        "response": sum(records[name] for name in ("not-found", "redirect", "error", "image", "json")),
    }


def test_record_lengths_and_digests_hold(crawl: Path) -> None:
    for data in members((crawl / "crawl-00000.warc.gz").read_bytes()):
        head, _, rest = data.partition(b"\r\n\r\n")
        headers = dict(re.findall(r"^([\w-]+): (.*?)\r?$", head.decode(), re.M))
        block = rest[: int(headers["Content-Length"])]
        assert rest == block + b"\r\n\r\n"
        assert headers["WARC-Block-Digest"] == f"sha1:{demo_crawl.archive._sha1(block)}"


def test_damage_is_where_it_is_said(crawl: Path, truth: dict[str, Any]) -> None:
    assert [(d["file"], d["damage"]) for d in truth["damaged"]] == [
        ("crawl-00001.warc.gz", "cut-member"),
        ("crawl-00001.warc.gz", "flipped-bytes"),
        ("crawl-00002.warc.gz", "false-length"),
        ("crawl-00003.warc.gz", "cut-tail"),
    ]
    readable = {"crawl-00000.warc.gz": True, "crawl-00001.warc.gz": False, "crawl-00003.warc.gz": False}
    for name, whole in readable.items():
        try:
            gzip.decompress((crawl / name).read_bytes())
            assert whole, name
        except (EOFError, zlib.error, gzip.BadGzipFile):
            assert not whole, name


def test_every_kind_is_there(truth: dict[str, Any]) -> None:
    kinds = Counter(page["kind"] for page in truth["pages"])
    assert set(kinds) == {"article", *demo_crawl.SHARES}
    assert all(kinds[kind] == round(600 * share) for kind, share in demo_crawl.SHARES.items())
    assert {page["language"] for page in truth["pages"]} >= {"en", "de", "fr", "es", "it", "zh", "ja", "ru"}
    assert {page["charset"] for page in truth["pages"]} >= {"utf-8", "windows-1252", "shift_jis", "gbk"}
    assert {page["declared"] for page in truth["pages"]} == {"header", "meta", "bom", "nowhere"}
    assert len({page["url"] for page in truth["pages"]}) == len(truth["pages"])


def outcomes_by_url(crawl: Path) -> dict[str, str]:
    """Every page that can be read through the stages about single documents, as demo.yaml sets them."""
    recipe = load_recipe(str(SCRIPT.parent / "demo.yaml"), inputs=[str(crawl / "crawl-*.warc.gz")])
    assert recipe.url and recipe.language and recipe.heuristics
    rules, model = load_rules(recipe.url), load_language(recipe.language)
    found = {}
    for task in plan_sources(recipe.sources):
        for raw in read_task(task):
            if not isinstance(raw, RawDocument):
                continue
            stage, result = "extract", extract_document(raw, recipe.extract)
            if not isinstance(result, Drop):
                stage, result = "url", judge_url(result, rules, recipe.url)
            if not isinstance(result, Drop):
                stage, result = "language", judge_language(result, model, recipe.language)
            if not isinstance(result, Drop):
                stage, result = "heuristics", judge_heuristics(result, recipe.heuristics)
            found[raw.url] = f"{stage}: {result.reason}" if isinstance(result, Drop) else ""
    return found


def test_every_kind_meets_its_stage(crawl: Path, truth: dict[str, Any]) -> None:
    outcomes = outcomes_by_url(crawl)
    found = defaultdict(set)
    for page in truth["pages"]:
        found[page["kind"]].add(outcomes[page["url"]])
    assert found == OUTCOMES
    rules = {reason.split(" ")[1].split("-")[0] for reason in outcomes.values() if reason.startswith("heuristics")}
    assert rules == {"basic", "gopher", "repetition", "c4", "fineweb"}


def test_dummy_text_is_in_prose_or_alone() -> None:
    """Two in three such pages are English but for a paragraph; the language model never takes the others for it."""
    pages = [page for page in demo_crawl.make_pages(1, 600) if page.kind == "dummy-text"]
    texts = [demo_crawl.plain(page.text) for page in pages]
    assert all(text.count("Lorem ipsum") >= 1 for text in texts)
    assert sum(" the " in text for text in texts) == 6 and len(texts) == 9


def test_copies_name_their_original(truth: dict[str, Any]) -> None:
    articles = {page["url"] for page in truth["pages"] if page["kind"] == "article"}
    copies = [page for page in truth["pages"] + truth["notes"] if page["kind"].endswith("-copy")]
    assert copies
    assert all(page["of"] in articles and page["of"] != page["url"] for page in copies)


def shingles(text: str) -> set[tuple[str, ...]]:
    split = text.lower().split()
    return set(zip(*(split[i:] for i in range(5)), strict=False))


def test_copies_are_near_and_articles_are_not() -> None:
    pages = demo_crawl.make_pages(1, 200)
    texts = {page.url: shingles(demo_crawl.plain(page.text)) for page in pages}
    urls = [page.url for page in pages if page.kind in ("article", "exact-copy", "near-copy", "advert", "rude")]
    original = {page.url: page.of or page.url for page in pages}
    kind = {page.url: page.kind for page in pages}
    for i, a in enumerate(urls):
        for b in urls[:i]:
            common = len(texts[a] & texts[b])
            similarity = common / (len(texts[a]) + len(texts[b]) - common)
            if original[a] != original[b]:
                assert similarity < 0.6, (a, b)
            elif "near-copy" in (kind[a], kind[b]):
                assert similarity > 0.7, (a, b)
            else:
                assert similarity == 1, (a, b)


def test_personal_data_is_in_the_page() -> None:
    pages = [page for page in demo_crawl.make_pages(1, 200) if page.kind == "personal"]
    assert pages
    for page in pages:
        text = demo_crawl.plain(page.text)
        assert len(page.personal) == 4
        assert all(text.count(item) == 1 for item in page.personal)
        assert re.search(r"version 4\.\d\.2\.1 of", text)


def test_notes_and_examples(crawl: Path, truth: dict[str, Any]) -> None:
    rows, broken = [], 0
    for line in gzip.decompress((crawl / "notes.jsonl.gz").read_bytes()).decode().splitlines():
        try:
            rows.append(json.loads(line))
        except ValueError:
            broken += 1
    assert broken == truth["notes_malformed"] == 1
    assert [row["id"] for row in rows] == [note["id"] for note in truth["notes"]]
    assert Counter(note["kind"] for note in truth["notes"]) == {"exact-copy": 12, "near-copy": 6, "note": 30}
    for name in ("good", "bad"):
        texts = [json.loads(line)["text"] for line in (crawl / f"{name}.jsonl").read_text("utf-8").splitlines()]
        assert len(texts) == len(set(texts)) == 240
        assert all(len(text.split()) >= 80 for text in texts)


def test_pages_declare_what_is_said_of_them(crawl: Path, truth: dict[str, Any]) -> None:
    source = SourceParams(name="licensed", paths=(str(crawl / "licensed.warc.gz"),))
    found = {}
    for task in plan_sources([source]):
        for raw in read_task(task):
            if isinstance(raw, RawDocument):
                page = extract_document(raw, ExtractParams())
                assert not isinstance(page, Drop), raw.url
                found[raw.url] = page.meta
                assert "CC BY" not in page.text
    assert {url: meta.get("license", "") for url, meta in found.items()} == {
        page["url"]: page["license"] for page in truth["rights"]
    }
    refused = {page["kind"] for page in truth["rights"] if found[page["url"]].keys() & {"no_ai", "tdm_reservation"}}
    assert refused == {"noai", "reserved"}


def test_hosts_say_what_they_refuse(crawl: Path) -> None:
    rows = list(read_rows([str(crawl / "rules.warc.gz")]))
    assert len(rows) == 10 and not [row for row in rows if isinstance(row, BadRow)]


def test_every_slot_is_filled(truth: dict[str, Any]) -> None:
    for page in demo_crawl.make_pages(2, 300):
        if page.kind not in ("code", "quoted-code"):
            assert not re.search(r"[{}|]", page.title + demo_crawl.plain(page.text)), page.url
        else:
            assert not re.search(r"\{\w+\}", demo_crawl.plain(page.text)), page.url


def test_program_text_keeps_its_lines(crawl: Path) -> None:
    data = b"".join(members((crawl / "crawl-00000.warc.gz").read_bytes()))
    listings = re.findall(rb"<pre><code>(.*?)</code></pre>", data, re.S)
    assert listings
    assert all(b"\n" in listing and b"<" not in listing and b"{" in listing for listing in listings)
