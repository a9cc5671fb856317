"""Pages of a hostile run: what they show, and that nothing of a document becomes markup or a link, or is shown at all
that must not be."""

import json
from html.parser import HTMLParser
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from refinery.loader.format.manifest import read_manifest
from refinery.loader.storage.open_store import open_store
from tests.corpus_factory import REJECTS, build_corpus, edit_manifest, file_entry, reject_row, write_records
from tests.pipelines.corpus.browse import hostile as h
from tests.pipelines.corpus.browse.hostile import Visitor, browser_of

ELEMENTS = {"script", "link", "img", "iframe", "object", "embed", "style", "base"}


class Outline(HTMLParser):
    """The elements of a page that load or lead somewhere, and where."""

    def __init__(self, base: str) -> None:
        super().__init__()
        self.base, self.wrong, self.tags = base, list[str](), list[str]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            leads = name in ("href", "src", "action", "formaction", "srcset", "data", "ping", "poster")
            if (
                (leads and not (value or "").startswith((f"{self.base}/", "#")))
                or name == "style"
                or name.startswith("on")
            ):
                self.wrong.append(f"{tag} {name}={value}")


def outline(page: str, visitor: Visitor) -> Outline:
    """Whether the page is one of ours alone: one script, one style, one icon, no link elsewhere."""
    found = Outline(visitor.session.base)
    found.feed(page)
    assert found.wrong == []
    assert sorted(tag for tag in found.tags if tag in ELEMENTS) == ["link", "link", "script"]
    assert [found.tags.count(tag) for tag in ("h1", "main", "header")] == [1, 1, 1]
    return found


def rows(prefix: Path, folder: str) -> list[dict[str, object]]:
    return [row for path in sorted((prefix / folder).glob("*.parquet")) for row in pq.read_table(path).to_pylist()]


# --- overview and lists ---------------------------------------------------------------------------------------------


def test_the_overview_counts_what_the_manifest_counts(visitor: Visitor, runs: Path) -> None:
    page = visitor.get("a/")
    outline(page, visitor)
    manifest = read_manifest(open_store(str(runs / "first")))
    assert f"{manifest.totals['documents']:,} documents" in page
    for row in manifest.funnel:
        for reason in row["dropped"]:
            assert f">{reason}</a>" in page
    assert "train/web" not in page and ">train/s</a>" in page


@pytest.mark.parametrize(
    ("query", "there", "not_there"),
    [
        ({"in": "kept"}, [h.KEPT], [h.SHORT, h.TOXIC]),
        ({"in": "kept", "rule": "text_bytes > 100000"}, ["No document here."], [h.KEPT]),
        ({"in": "kept", "host": "a.example"}, [h.KEPT], ["evil.example"]),
        ({"in": "kept", "url": h.KEPT}, [h.KEPT], ["a.example/1"]),
        ({"in": "dropped", "reason": "gopher-too-few-words"}, [h.SHORT], [h.TOXIC, h.KEPT]),
        ({"in": "dropped", "stage": "toxicity"}, [h.TOXIC], [h.SHORT]),
        ({"in": "removed"}, [h.COPY, h.NEAR], [h.KEPT]),
        ({"in": "removed", "reason": "exact-duplicate"}, [h.COPY], [h.NEAR]),
        ({"in": "dead"}, ["No document here."], [h.KEPT]),
        ({"in": "kept", "source": "no"}, ["No document here."], [h.KEPT]),
    ],
)
def test_lists(visitor: Visitor, query: dict[str, str], there: list[str], not_there: list[str]) -> None:
    page = visitor.get("a/documents", **query)
    outline(page, visitor)
    shown = page[page.index("Found") :]
    assert [text for text in there if text not in shown] == [text for text in not_there if text in shown] == []


@pytest.mark.parametrize(
    "query",
    [
        {"in": "all"},
        {"from": "-1.0"},
        {"from": "99999.0"},
        {"from": "1"},
        {"from": "9" * 30 + ".0"},
        {"host": "https://x.example/"},
        {"rule": "text_bytes >"},
        {"rule": "no_such_column > 1"},
        {"rule": "a" * 20_000},
        {"in": "dropped", "rule": "text_bytes > 1"},
    ],
)
def test_what_cannot_be_asked_is_a_message(visitor: Visitor, query: dict[str, str]) -> None:
    long = len(query.get("rule", "")) > 8000
    page = visitor.get("a/documents", 414 if long else 422, **query)
    assert "Traceback" not in page and (long or "This cannot be shown" in page)


def test_pages_of_a_list_have_every_document_once(tmp_path: Path) -> None:
    texts = {("train", "web"): [[f"document {n} of shard {s}" for n in range(70)] for s in range(2)]}
    root = build_corpus(tmp_path / "corpus", texts)
    visitor = Visitor(browser_of(tmp_path / "j.jsonl", root))
    seen, start, pages = list[str](), "0.0", 0
    while start:
        page = visitor.get("a/documents", in_="kept", from_=start)
        seen += [part.split("&")[0] for part in page.split("document?id=")[1:]]
        start = page.partition("from=")[2].partition("&")[0].partition('"')[0]
        pages += 1
    assert len(seen) == len(set(seen)) == 140 and pages == 3


def test_a_run_that_is_damaged_while_it_is_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("refinery.pipelines.corpus.browse.reading.looked_at.AGE", -1.0)
    root = build_corpus(tmp_path / "corpus")
    visitor = Visitor(browser_of(tmp_path / "j.jsonl", root))
    manifest = root / "manifest.json"
    whole = manifest.read_bytes()
    manifest.write_bytes(whole[:-50])
    for path in ("a/", "a/search", "judgements"):
        said = visitor.get(path, 422)
        assert "manifest.json" in said and "Traceback" not in said
    manifest.write_bytes(whole)
    outline(visitor.get("a/"), visitor)
    (root / "rejects" / "part-00000.parquet").write_bytes(b"PAR1 no")
    assert "rejects/part-00000.parquet" in visitor.get("a/documents", 422, in_="dropped")


# --- search ---------------------------------------------------------------------------------------------------------


def test_searches_find_what_trace_finds(visitor: Visitor, runs: Path) -> None:
    kept = next(row for row in rows(runs / "first", "train/s") if row["url"] == h.KEPT)
    id_ = kept["id"].hex()  # type: ignore[attr-defined]  # bytes
    for by, text in (("", h.KEPT), ("", id_), ("id", id_), ("origin", kept["origin"]), ("", kept["origin"])):
        page = visitor.get("a/search", by=by, q=text)
        outline(page, visitor)
        assert "kept: train/s/shard-" in page and h.KEPT in page, (by, text)
    assert "removed: exact-duplicate" in visitor.get("a/search", q=id_)  # its copy has the same id
    assert "dropped by heuristics: gopher-too-few-words" in visitor.get("a/search", q=h.SHORT)
    assert "kept: train/s" in visitor.get("a/search", q="train/s/shard-00000-of-00001:1")
    assert "Nothing was found" in visitor.get("a/search", q="https://a.example/no")
    for reason, url in (("gopher-too-few-words", h.SHORT), ("exact-duplicate", h.COPY)):
        assert url in visitor.get("a/search", by="reason", q=reason)


def test_words_are_looked_for_in_a_stated_sample(visitor: Visitor, runs: Path) -> None:
    documents = read_manifest(open_store(str(runs / "first"))).totals["documents"]
    page = visitor.get("a/search", q="TAIL3 words")
    assert f"1 of {documents} documents, drawn by hash from {documents} kept ones" in page
    assert "a.example/3" in page
    small = Visitor(browser_of(runs / "j.jsonl", runs / "first", sample=2))
    assert f"of 2 documents, drawn by hash from {documents} kept ones" in small.get("a/search", q="words")
    assert "1 to 8 are allowed" in visitor.get("a/search", 422, by="words", q="a b c d e f g h i")


def test_passages(visitor: Visitor) -> None:
    page = visitor.get("a/search", by="passage", q="tail4 w0x4")
    assert "https://a.example/4" in page and "found in" in page and "work/documents" in page
    assert "2,000 are allowed" in visitor.get("a/search", 422, by="passage", q="x" * 2001)
    assert "Nothing was found" in visitor.get("a/search", by="passage", q="nobody wrote this")


@pytest.mark.parametrize("by", ["id", "token", "no"])
@pytest.mark.parametrize("text", ["(a+)+$" * 50, "\x00\ud800", "%00", "' or 1=1 --", "../../etc/passwd"])
def test_hostile_queries(visitor: Visitor, by: str, text: str) -> None:
    page = visitor.get("a/search", 422, by=by, q=text.encode("utf-8", "replace").decode())
    assert "Traceback" not in page
    outline(page, visitor)


# --- documents ------------------------------------------------------------------------------------------------------


def test_a_kept_document(visitor: Visitor) -> None:
    page = visitor.get("a/document", url=h.KEPT)
    outline(page, visitor)
    assert "Judged again, every stage for single documents keeps it" in page
    assert ">min_words" not in page and "heuristics.gopher.min_words" in page and f"≥ {h.LOOSE}" in page
    assert "as read" in page and "after pii" in page and "as published" in page and 'class="piece"' in page


def test_personal_data_and_credentials_are_in_no_text(visitor: Visitor) -> None:
    """Not in the text as read, either; the marks of what was redacted are."""
    page = visitor.all("a", [h.KEPT, h.SHORT, h.SECRET, h.COPY, h.NEAR])
    assert h.MAIL not in page and h.KEY not in page and h.KEY[:-2] not in page
    assert "EMAIL" in page and "REDACTED" in page


def test_what_nobody_should_read_has_no_text(visitor: Visitor) -> None:
    for url, stage in ((h.TOXIC, "toxicity"), (h.SECRET, "secrets")):
        page = visitor.get("a/document", url=url)
        outline(page, visitor)
        assert f"No text is shown: {stage} dropped it." in page
        assert 'id="texts"' not in page and "as read" not in page and h.RUDE not in page
    listed = visitor.get("a/documents", in_="dropped")
    assert h.TOXIC in listed and h.RUDE not in listed


def test_hostile_texts_are_texts(visitor: Visitor) -> None:
    page = visitor.get("a/document", url=h.TURNED)
    outline(page, visitor)
    assert "&lt;script&gt;alert(1)" in page and "<script>alert" not in page and "<img" not in page
    assert "\u202e" not in page and "\\u202e" in page and "\x1b" not in page and "\x07" not in page
    other = visitor.get("a/document", url="javascript:alert(4)")
    outline(other, visitor)
    assert "javascript:alert(4)" in other
    outline(visitor.get("a/search", q=h.SCRIPT.replace(" ", "")[:60]), visitor)


def test_a_removed_document_and_its_cluster(visitor: Visitor, runs: Path) -> None:
    page = visitor.get("a/document", url=h.NEAR)
    outline(page, visitor)
    assert "kept instead" in page and "removed: near-duplicate" in page
    kept_id = next(row for row in rows(runs / "first", "removals") if row["url"] == h.NEAR)["kept_id"]
    cluster = visitor.get("a/cluster", id=kept_id.hex(), removed="")  # type: ignore[attr-defined]  # bytes
    outline(cluster, visitor)
    assert h.NEAR in cluster and h.COPY in cluster and h.KEPT in cluster
    origin = next(row for row in rows(runs / "first", "removals") if row["url"] == h.NEAR)["origin"]
    compared = visitor.get("a/cluster", id=kept_id.hex(), removed=origin)  # type: ignore[attr-defined]  # bytes
    assert "<del>no</del>" in compared and "<ins>w20x0</ins>" in compared and h.MAIL not in compared
    assert "<h1>Documents removed as duplicates (near-duplicate)</h1>" in visitor.get("a/clusters")
    assert h.NEAR in visitor.get("a/clusters") and h.COPY not in visitor.get("a/clusters")
    assert "is allowed" in visitor.get("a/cluster", 422, id="no") or "are allowed" in visitor.get(
        "a/cluster", 422, id="no"
    )


# --- what was withdrawn ---------------------------------------------------------------------------------------------


def test_documents_that_were_taken_down_are_not_shown(runs: Path, tmp_path: Path) -> None:
    before = Visitor(browser_of(tmp_path / "j.jsonl", runs / "first"))
    row = next(row for row in rows(runs / "first", "train/s") if row["url"] == h.GONE)
    id_ = row["id"].hex()  # type: ignore[attr-defined]  # bytes
    assert "tail10" in before.get("a/document", id=id_)
    visitor = Visitor(browser_of(tmp_path / "j.jsonl", runs / "taken"))
    for query in ({"id": id_}, {"origin": row["origin"]}, {"url": h.GONE}):
        page = visitor.get("a/document", **query)
        assert "It is not shown, because it was taken down or its owner opted out." in page, query
        assert "tail10" not in page, query
        found = visitor.get("a/search", by=next(iter(query)), q=next(iter(query.values())))
        assert "1 more are not shown: taken down." in found
    assert "gone.example" not in visitor.get("a/documents", in_="kept")
    assert "tail10" not in visitor.get("a/search", by="passage", q="tail10").partition("Found")[2]
    form = {"id": id_, "verdict": "right", "csrf": visitor.session.csrf}
    assert visitor.post("a/judge", form) == 422


def test_opted_out_documents_are_not_shown(tmp_path: Path) -> None:
    root = build_corpus(tmp_path / "corpus")
    rows = [reject_row("opt-out", "opted-out") | {"url": "https://out.example/1", "origin": "in/out@1"}]
    write_records(root, REJECTS, [*rows, reject_row("language", "not-allowed") | {"url": "https://in.example/2"}])

    def edit(manifest: dict[str, list[dict[str, object]]]) -> None:
        manifest["files"] = [file_entry(root, REJECTS) if f["path"] == REJECTS else f for f in manifest["files"]]

    edit_manifest(root, edit)
    visitor = Visitor(browser_of(tmp_path / "j.jsonl", root))
    page = visitor.get("a/documents", in_="dropped")
    assert "not shown: opted out" in page and "out.example" not in page and "in/out" not in page
    assert "https://in.example/2" in page
    assert "out@1" not in visitor.get("a/document", origin="in/out@1").partition("<main")[2]
    assert "not shown: opted out" in visitor.get("a/search", by="origin", q="in/out@1")


def test_a_takedown_is_seen_by_a_browser_that_is_open(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("refinery.pipelines.corpus.browse.reading.looked_at.AGE", -1.0)
    here = tmp_path / "here"
    here.symlink_to(runs / "first")
    visitor = Visitor(browser_of(tmp_path / "j.jsonl", here))
    assert "gone.example" in visitor.get("a/documents", in_="kept")
    here.unlink()
    here.symlink_to(runs / "taken")
    assert "gone.example" not in visitor.get("a/documents", in_="kept")


# --- thresholds, hosts, judgements ----------------------------------------------------------------------------------


def test_a_moved_threshold(visitor: Visitor, runs: Path) -> None:
    """The second run has that threshold: what flips in the sample, here all documents, it drops."""
    named = {"stage": "heuristics", "reason": "gopher-too-few-words", "key": "gopher.min_words"}
    assert "heuristics.gopher.min_words" in visitor.get("a/thresholds")
    page = visitor.get("a/threshold", **named, to=h.STRICT)
    outline(page, visitor)
    first, second = (read_manifest(open_store(str(runs / name))).totals["documents"] for name in ("first", "second"))
    assert f"{first - second} of {first} kept documents would be dropped" in page
    assert f"{h.GONE}</bdi>" in page and f">{h.LOOSE + 4}</td>" in page
    looser = visitor.get("a/threshold", **named, to=1)
    assert "1 of 1 dropped ones would be kept" in looser and h.SHORT in looser
    assert "0 of" in visitor.get("a/threshold", **named, to=h.LOOSE)
    for wrong in ("-1", "nan", "1e300", "many", "inf", "1e999", "٣", "1_000", "--1"):
        visitor.get("a/threshold", 422, **named, to=wrong)
    visitor.get("a/threshold", 422, stage="heuristics", reason="no", key="gopher.min_words")


def test_a_moved_threshold_of_a_stage_that_loads_lists(visitor: Visitor) -> None:
    """What the stage prepares is prepared again; the value is measured with it."""
    named = {"stage": "toxicity", "reason": "toxic-density", "key": "max_density"}
    assert "toxicity.max_density" in visitor.get("a/thresholds")
    looser = visitor.get("a/threshold", **named, to=1000)
    outline(looser, visitor)
    assert "1 of 1 dropped ones would be kept" in looser and h.TOXIC in looser
    stricter = visitor.get("a/threshold", **named, to=1e-6)
    assert "0 of 1 dropped ones would be kept" in stricter


def test_hosts(visitor: Visitor) -> None:
    page = visitor.get("a/hosts")
    outline(page, visitor)
    assert ">a.example</bdi>" in page and ">rude.example</bdi>" in page


def test_a_judgement_is_a_line_to_tune_on(runs: Path, tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    visitor = Visitor(browser_of(path, runs / "first"))
    row = next(row for row in rows(runs / "first", "rejects") if row["url"] == h.SHORT)
    form = {"origin": str(row["origin"]), "source": "s", "verdict": "wrongly-dropped", "csrf": visitor.session.csrf}
    assert visitor.post("a/judge", form | {"note": f"{h.SCRIPT} fine"}) == 303
    assert visitor.post("a/judge", form | {"note": "after all"}) == 303
    assert oct(path.stat().st_mode & 0o777) == "0o600" and len(path.read_text().splitlines()) == 2
    (line,) = map(json.loads, visitor.get("judgements.jsonl").splitlines())
    assert (line["verdict"], line["note"], line["outcome"]) == (
        *("wrongly-dropped", "after all"),
        "heuristics: gopher-too-few-words",
    )
    (measured,) = [each for each in line["measured"] if each["reason"] == "gopher-too-few-words"]
    assert measured["threshold"] == h.LOOSE > measured["value"] and measured["drops"]
    page = visitor.get("judgements")
    outline(page, visitor)
    assert "after all" in page and "wrongly dropped" in page
    assert visitor.post("a/judge", form | {"verdict": "no"}) == 422
    assert visitor.post("a/judge", form | {"note": "x" * 2001}) == 422
    assert visitor.post("a/judge", {k: v for k, v in form.items() if k != "csrf"}) == 403
    assert len(path.read_text().splitlines()) == 2


def test_a_document_that_was_taken_down_since_is_in_no_list_of_judgements(runs: Path, tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    visitor = Visitor(browser_of(path, runs / "first"))
    for url in (h.GONE, h.KEPT):
        form = {"url": url, "verdict": "right", "csrf": visitor.session.csrf}
        assert visitor.post("a/judge", form) == 303
    assert h.GONE in visitor.get("judgements") and h.GONE in visitor.get("judgements.jsonl")
    after = Visitor(browser_of(path, runs / "taken"))
    for page in ("judgements", "judgements.jsonl"):
        assert h.GONE not in after.get(page) and h.KEPT in after.get(page)


# --- two runs, and runs in progress ---------------------------------------------------------------------------------


@pytest.mark.parametrize("joined", [200_000, 0])
def test_two_runs(runs: Path, tmp_path: Path, joined: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("refinery.pipelines.corpus.browse.reading.two_runs.JOINED", joined)
    visitor = Visitor(browser_of(tmp_path / "j.jsonl", runs / "first", runs / "second"))
    page = visitor.get("differences")
    outline(page, visitor)
    assert "gopher-too-few-words" in page and "Only in A" in page and h.GONE in page
    assert ("All documents of both were compared." in page) == bool(joined)
    assert ("drawn by hash" in page) != bool(joined)
    assert visitor.get("b/") != visitor.get("a/")
    outline(visitor.get("b/document", url=h.KEPT), visitor)


def test_what_a_takedown_took_is_not_listed_among_differences(runs: Path, tmp_path: Path) -> None:
    visitor = Visitor(browser_of(tmp_path / "j.jsonl", runs / "first", runs / "taken"))
    page = visitor.get("differences")
    assert "removed by `refinery remove`" in page and "gone.example" not in page


def test_a_run_in_progress(runs: Path, tmp_path: Path) -> None:
    root = tmp_path / "started"
    root.mkdir()
    (root / "_run.json").write_bytes((runs / "first" / "_run.json").read_bytes())
    visitor = Visitor(browser_of(tmp_path / "j.jsonl", root))
    page = visitor.get("a/")
    outline(page, visitor)
    assert "phase 1 of 3 is not finished" in page and "1. clean" in page and "href" in page
    assert "the run is not finished" in visitor.get("a/documents", 404)
