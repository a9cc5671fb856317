"""Every kind of answer, from published files alone and with work/."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import RUN, seal, unseal
from refinery.loader.format.parquet.guarded import GuardedFile
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import LocalStore
from refinery.pipelines.corpus.trace.answers import (
    Cycle,
    Dead,
    Elsewhere,
    Kept,
    Missing,
    Passed,
    Query,
    Rejected,
    Removed,
    Trace,
)
from refinery.pipelines.corpus.trace.trace_documents import trace
from refinery.pipelines.corpus.trace.trace_text import text_lines
from tests.corpus_factory import DEAD, REJECTS, dead_row, edit_manifest, reject_row, write_records
from tests.fake_gcs import fake_gcs
from tests.pipelines.removals_factory import (
    OTHER,
    WEB0,
    Row,
    add_work,
    build_removed,
    document,
    every_kind,
    exact,
    kept_ids,
    made_id,
    put_removals,
    removal,
    sort_rows,
)

LOST: Row = {"id": made_id("lost"), "url": "https://e.org/lost", "source": "crawl", "origin": "in/a@lost"}


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return build_removed(tmp_path / "corpus", files=3)


def ask(root: Path | str, **queries: str | list[str]) -> Trace:
    asked = [
        Query(field, value)
        for field, values in queries.items()
        for value in ([values] if isinstance(values, str) else values)
    ]
    return trace(str(root), asked)


def answers(root: Path | str, **queries: str | list[str]) -> list[Any]:
    return [answer for _, answer in ask(root, **queries).answers]


def removed(root: Path, name: str) -> Removed:
    (answer,) = answers(root, url=f"https://e.org/{name}")
    assert isinstance(answer, Removed)
    return answer


def add_rejects(root: Path, rows: Sequence[Row]) -> None:
    write_records(root, REJECTS, [reject_row("language", "not-allowed"), *rows])
    edit_manifest(root)


# --- in the corpus --------------------------------------------------------------------------------------------------


def test_kept(corpus: Path) -> None:
    for number, row in enumerate(pq.read_table(corpus / f"{WEB0}.provenance.parquet").to_pylist()):
        for answer in (*answers(corpus, id=row["id"].hex()), *answers(corpus, id=row["id"].hex().upper())):
            if isinstance(answer, Removed):
                continue  # a copy of it
            assert isinstance(answer, Kept)
            assert (answer.shard, answer.document, answer.token_offset) == (WEB0, number, row["token_offset"])
            assert (answer.doc.id, answer.sources) == (row["id"].hex(), ("crawl",))
            scores = {"language": "en", "language_score": pytest.approx(0.9), "quality": None}
            assert answer.columns == {"license": "", "license_from": "", **scores}


def test_one_address_of_many_documents(corpus: Path) -> None:
    """Every document of the hand-made corpus has the same address."""
    found = answers(corpus, url="https://example.org/")
    assert {type(answer) for answer in found} == {Kept}
    assert len(found) == len({(a.shard, a.document) for a in found}) == 9


# --- captures of one address ----------------------------------------------------------------------------------------


def test_captures(tmp_path: Path) -> None:
    """What was kept instead is followed as what it is; other documents of these ids are not."""
    root = build_removed(tmp_path / "corpus", urls=True)
    near = ("near-duplicate", 0.875)
    for name, steps, end in (
        ("m", [], 0),
        ("n", [], 1),
        ("o", [], 0),
        ("p", [], 1),
        ("q", [near, near], 1),
        ("r", [], 0),
    ):
        answer = removed(root, name)
        assert [(s.reason, s.similarity) for s in answer.steps] == [("url-duplicate", 0.0), *steps]
        assert isinstance(answer.end, Kept) and answer.end.document == end
    assert [s.reason for s in removed(root, "d").steps] == ["near-duplicate"] * 2
    lines = list(text_lines(ask(root, url="https://e.org/q")))
    assert "  removed: url-duplicate, among all documents, the same address" in lines


# --- removed --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "steps", "end"),
    [
        ("a", [("exact-duplicate", "corpus", 1.0)], 0),
        ("b", [("near-duplicate", "corpus", 0.75)], 1),
        ("c", [("near-duplicate", "corpus", 0.875)], 1),
        ("c-copy", [("exact-duplicate", "corpus", 1.0), ("near-duplicate", "corpus", 0.875)], 1),
        ("d", [("near-duplicate", "corpus", 0.875)] * 2, 1),
        ("g", [("near-duplicate-in-source", "source", 0.9), *[("near-duplicate", "corpus", 0.875)] * 2], 1),
    ],
)
def test_chain_of_kept_documents(corpus: Path, name: str, steps: list[Any], end: int) -> None:
    answer = removed(corpus, name)
    assert [(s.reason, s.scope, s.similarity) for s in answer.steps] == steps
    assert isinstance(answer.end, Kept) and (answer.end.shard, answer.end.document) == (WEB0, end)
    assert answer.steps[-1].kept == answer.end.doc
    assert answer.steps[-1].kept.id == kept_ids(corpus)[end].hex()


def test_kept_documents_on_the_way_have_their_addresses(corpus: Path) -> None:
    urls = [step.kept.url for step in removed(corpus, "g").steps]
    assert urls == ["https://e.org/d", "https://e.org/c", "https://example.org/"]
    assert removed(corpus, "c-copy").steps[0].kept.url == "https://e.org/c"


def test_kept_document_in_another_corpus(corpus: Path) -> None:
    for name in ("f", "h"):
        end = removed(corpus, name).end
        assert isinstance(end, Elsewhere) and (end.prefix, end.doc.id) == (OTHER, made_id("theirs").hex())
    assert f"in the corpus {OTHER}; trace --id {made_id('theirs').hex()} there" in "\n".join(
        text_lines(ask(corpus, url="https://e.org/f"))
    )


def test_cycle_ends(corpus: Path) -> None:
    rows = [row | {"kept_id": made_id("d")} if row["url"].endswith("/c") else row for row in every_kind(corpus)]
    put_removals(corpus, [sort_rows(rows)])
    for name in ("c", "d", "g", "c-copy"):
        assert isinstance(removed(corpus, name).end, Cycle)
    put_removals(corpus, [sort_rows([removal("z", made_id("z"))])])
    assert isinstance(removed(corpus, "z").end, Passed)  # near to itself: as far as ids go, it was kept


def test_kept_document_dropped_later(corpus: Path) -> None:
    """From the published files: gone. With work/: its address. In the sample: by which rule."""
    answer = removed(corpus, "e")
    assert isinstance(answer.end, Passed) and answer.end.doc.id == made_id("lost").hex() and not answer.end.doc.url
    assert answer.end.rate == 0.5

    add_work(corpus, [*map(document, every_kind(corpus)), LOST], [True] * 10 + [False])
    end = removed(corpus, "e").end
    assert isinstance(end, Passed) and end.doc.url == "https://e.org/lost"

    lost = reject_row("quality", "quality-score") | {"url": LOST["url"], "origin": LOST["origin"]}
    add_rejects(corpus, [lost])
    end = removed(corpus, "e").end
    assert isinstance(end, Rejected) and (end.stage, end.doc.id) == ("quality", made_id("lost").hex())


def test_kept_document_that_failed_later(corpus: Path) -> None:
    add_work(corpus, [LOST], [False])
    write_records(corpus, DEAD, [dead_row("pii", "TypeError") | {"origin": LOST["origin"]}])
    edit_manifest(corpus)
    end = removed(corpus, "e").end
    assert isinstance(end, Dead) and (end.stage, end.error, end.doc.url) == ("pii", "TypeError", LOST["url"])


def test_kept_documents_of_the_same_id_in_all_files(corpus: Path) -> None:
    """By id: the near duplicate itself and its copies."""
    found = answers(corpus, id=made_id("c").hex())
    assert sorted((type(a).__name__, len(a.steps)) for a in found) == [("Removed", 1), ("Removed", 2), ("Removed", 2)]


# --- dropped, failed, missing ---------------------------------------------------------------------------------------


def test_rejected_and_dead(corpus: Path) -> None:
    add_rejects(corpus, [reject_row("url", "hard-word") | {"url": "https://x/", "origin": "in/a@70"}])
    for answer in (*answers(corpus, url="https://x/"), *answers(corpus, origin="in/a@70")):
        assert isinstance(answer, Rejected) and (answer.stage, answer.reason) == ("url", "hard-word")
    (answer,) = answers(corpus, origin="in/a@9")
    assert isinstance(answer, Dead) and (answer.stage, answer.error, answer.size) == ("read", "BadRecord", 3)


def test_passed(corpus: Path) -> None:
    add_work(corpus, [*map(document, every_kind(corpus)), LOST], [True] * 10 + [False])
    for query in ({"url": LOST["url"]}, {"id": LOST["id"].hex()}, {"origin": LOST["origin"]}):
        (answer,) = answers(corpus, **query)
        assert isinstance(answer, Passed) and answer.doc.url == LOST["url"]
    (answer,) = answers(corpus, url="https://e.org/b")
    assert isinstance(answer, Removed)  # reported once, though work/ has it, too


def test_work_without_verdicts(corpus: Path) -> None:
    """Deduplication off: every cleaned document was kept."""
    add_work(corpus, [LOST], [False])
    path = corpus / "work" / "dedup.json"
    payload = unseal(path.read_bytes(), "")
    path.write_bytes(seal(payload | {"parts": {}}))
    (answer,) = answers(corpus, url=LOST["url"])
    assert isinstance(answer, Passed)


def test_a_kept_document_is_not_reported_twice(corpus: Path) -> None:
    (row,) = pq.read_table(corpus / f"{WEB0}.provenance.parquet").to_pylist()[1:2]
    add_work(corpus, [document(row)], [False])
    assert [type(a) for a in answers(corpus, id=row["id"].hex())] == [Kept]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ({"url": "https://nowhere/"}, ["no input has exactly this url", "rejects.rate is 0.5", "1 dead letters"]),
        ({"id": "00" * 16}, ["no input has exactly this id", "list no ids"]),
        ({"origin": "in/a@1"}, ["its file was read, but has no record at this offset", "rejects.rate is 0.5"]),
        ({"origin": "in/b@1"}, ["its file is not among the inputs"]),
    ],
)
def test_missing(corpus: Path, query: dict[str, str], text: list[str]) -> None:
    found = ask(corpus, **query)
    assert [type(answer) for _, answer in found.answers] == [Missing] and not found.complete
    output = "\n".join(text_lines(found))
    for part in (*text, "work/ is missing", "source crawl: 1 files", "in/a"):
        assert part in output
    assert ("dead letters" in output) is ("url" in query)


def test_origins_of_an_earlier_run_are_not_looked_for_among_the_inputs(corpus: Path) -> None:
    edit_manifest(corpus, lambda m: m["recipe"]["sources"][0].update(format="documents"))
    (answer,) = answers(corpus, origin="in/b@1")
    assert isinstance(answer, Missing) and answer.file_read is None


def test_missing_with_every_dropped_page_listed(corpus: Path) -> None:
    edit_manifest(corpus, lambda m: m["recipe"].update(rejects={"rate": 1.0}))
    add_work(corpus, [LOST], [False])
    output = "\n".join(text_lines(ask(corpus, url="https://nowhere/")))
    assert "rejects.rate" not in output and "work/ is missing" not in output


@pytest.mark.parametrize("rate", [1.0, 0.5])
def test_beyond_a_target(corpus: Path, rate: float) -> None:
    """rejects/ never lists it; where that lists all that rules drop, only the target is left."""
    cut = {"stage": "target", "source": "crawl", "dropped": {"over-target": {"documents": 1, "bytes": 9}}}

    def edit(manifest: dict[str, Any]) -> None:
        manifest["recipe"]["rejects"] = {"rate": rate}
        manifest["funnel"].append({**manifest["funnel"][-1], **cut})

    edit_manifest(corpus, edit)
    add_work(corpus, [LOST], [False])
    output = "\n".join(text_lines(ask(corpus, url=[LOST["url"], "https://nowhere/"])))
    assert ("dropped by target: over-target" in output) is (rate == 1)
    never = (
        "which one is not listed (rejects.rate is 0.5; over-target, what is beyond the target of its source, never is)"
    )
    assert (never in output) is (rate < 1)
    assert "- it was beyond the target of its source (over-target), which is never listed" in output


@pytest.mark.parametrize("rejects", [None, "all", {"rate": "many"}])
def test_a_recipe_without_a_rate(corpus: Path, rejects: Any) -> None:
    edit_manifest(corpus, lambda manifest: manifest["recipe"].update(rejects=rejects))
    output = "\n".join(text_lines(ask(corpus, url="https://nowhere/")))
    assert "rejects.rate is unknown" in output


def test_damaged_work_is_a_note(corpus: Path) -> None:
    add_work(corpus, [LOST], [False])
    (corpus / "work" / "documents" / "part-0.parquet").unlink()
    found = ask(corpus, url=LOST["url"])
    assert isinstance(found.answers[0][1], Missing) and "was not searched" in found.notes[0]
    assert any(line.startswith("note: work/ was not searched") for line in text_lines(found))
    (corpus / "work" / "clean.json").write_bytes(b"{}")
    assert "was not searched" in ask(corpus, url=LOST["url"]).notes[0]


@pytest.mark.parametrize("damage", ["cut", "another-file", "too-few-rows"])
def test_damaged_verdicts_are_a_note(corpus: Path, damage: str) -> None:
    add_work(corpus, [document(LOST), LOST], [False, False])
    path = corpus / "work" / "verdicts" / "part-0.parquet"
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-9])
    else:
        pq.write_table(pa.table({"removed" if damage == "too-few-rows" else "other": [False]}), path)
    found = ask(corpus, url=LOST["url"])
    assert isinstance(found.answers[0][1], Missing)
    said = {"cut": "no footer", "another-file": "no column 'removed'", "too-few-rows": "1 rows found, one of each"}
    assert re.search(rf"verdicts/part-0.parquet: .*{said[damage]}", found.notes[0])


def test_another_file_in_place_of_a_published_one_is_named(corpus: Path) -> None:
    path = min((corpus / "removals").iterdir())
    pq.write_table(pa.table({"url": ["https://e.org/b"]}), path)
    with pytest.raises(FormatError, match=r"removals/part-.*: its columns are not those of the format: .*url: "):
        ask(corpus, url="https://e.org/b")


def test_work_of_another_run_is_not_believed(corpus: Path) -> None:
    add_work(corpus, [LOST], [False])
    run = unseal((corpus / RUN).read_bytes(), RUN)
    (corpus / RUN).write_bytes(seal(run | {"phases": {"clean": "77", "dedup": "77"}}))
    edit_manifest(corpus)
    (answer,) = answers(corpus, url=LOST["url"])
    assert isinstance(answer, Missing) and not answer.work


# --- what it reads --------------------------------------------------------------------------------------------------


def test_an_id_is_looked_for_where_it_can_be(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    real = LocalStore.open

    def spy(store: LocalStore, name: str) -> Any:
        opened.append(name)
        return real(store, name)

    monkeypatch.setattr(LocalStore, "open", spy)
    answers(corpus, id=kept_ids(corpus)[2].hex())
    shards = [name for name in opened if name.endswith(".provenance.parquet")]
    assert WEB0 + ".provenance.parquet" in shards and len({s for s in shards if s.startswith("train/web")}) == 1
    assert not any(name.startswith("validation") for name in shards)
    assert len({name for name in opened if name.startswith("removals/")}) == 1


def test_row_groups_that_cannot_hold_it_are_not_read(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = sort_rows([exact(f"copy {i:05d}", made_id(str(i)), url=f"u{i:05d}") for i in range(2_000)])
    put_removals(corpus, [rows])
    path = corpus / "removals/part-00000-of-00001.parquet"
    pq.write_table(rows, path, row_group_size=100)
    read: list[tuple[int, tuple[str, ...]]] = []
    real = GuardedFile.read_row_group

    def spy(file: Any, group: int, columns: Any = None, **more: Any) -> Any:
        read.append((group, tuple(columns)))
        return real(file, group, columns=columns, **more)

    monkeypatch.setattr(GuardedFile, "read_row_group", spy)
    row = rows.slice(750, 1).to_pylist()[0]
    find = answers(corpus, id=row["id"].hex())
    assert len(find) == 1 and isinstance(find[0], Removed)
    groups = {group for group, columns in read if "kept_id" in columns or columns == ("id",)}
    assert 7 in groups and len(groups) <= 2  # the second is of a provenance


def test_many_addresses_at_once(corpus: Path) -> None:
    urls = [f"https://e.org/{name}" for name in "abcdefgh"] + [f"https://nowhere/{i}" for i in range(5_000)]
    found = ask(corpus, url=urls)
    assert [query.value for query, _ in found.answers] == urls
    assert sum(isinstance(answer, Removed) for _, answer in found.answers) == 8


def test_on_gcs(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    local = open_store(corpus)
    add_work(corpus, [LOST], [False])
    with fake_gcs("bucket") as server:
        server.use(monkeypatch)
        for name in local.list():
            server.put("bucket", f"a/b/{name}", local.read(name))
        queries = {"url": ["https://e.org/g", LOST["url"], "https://nowhere/"], "id": made_id("c").hex()}
        assert ask("gs://bucket/a/b", **queries).answers == ask(corpus, **queries).answers  # type: ignore[arg-type]
