"""Comparisons of whole runs, against another reading of the same files; and of corpora that lack something."""

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import permutations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import RUN, seal, unseal
from refinery.pipelines.corpus.compare.as_json import as_plain
from refinery.pipelines.corpus.compare.compare import Comparison, compare
from refinery.pipelines.corpus.compare.joining import partitions
from refinery.pipelines.corpus.compare.joining.fates import Kind
from refinery.pipelines.corpus.compare.replays import wilson
from refinery.pipelines.corpus.compare.text import text_lines
from tests.corpus_factory import build_corpus, edit_manifest
from tests.pipelines.removals_factory import OTHER, add_work, build_removed, document, removal
from tests.sampling import one_commit_in_four

PAIRS = list(permutations("abc", 2))
Document = dict[str, Any]


# --- the same, read again in another way ----------------------------------------------------------------------------


def documents(prefix: Path, moved: dict[str, str]) -> Iterator[Document]:
    for path in sorted(prefix.glob("*/*/*.provenance.parquet")):
        for row in pq.read_table(path).to_pylist():
            yield {**row, "origin": there(row["origin"], moved), "place": path.parts[-3:-1]}


def there(origin: str, moved: dict[str, str]) -> str:
    path, _, offset = origin.rpartition("@")
    return f"{moved.get(path, path)}@{offset}"


def rows(prefix: Path, folder: str, moved: dict[str, str]) -> list[Document]:
    found = [row for path in sorted((prefix / folder).glob("*.parquet")) for row in pq.read_table(path).to_pylist()]
    return [{**row, "origin": there(row["origin"], moved)} for row in found]


def passed(prefix: Path, moved: dict[str, str]) -> list[Document]:
    """Documents that deduplication kept, in the corpus or not."""
    found = []
    for path in sorted((prefix / "work/documents").glob("*.parquet")):
        verdicts = prefix / "work/verdicts" / path.name
        removed = pq.read_table(verdicts)["removed"].to_pylist() if verdicts.exists() else None
        for n, row in enumerate(pq.read_table(path, columns=["id", "origin", "source"]).to_pylist()):
            if removed is None or not removed[n]:
                found.append({**row, "origin": there(row["origin"], moved)})
    return found


def expected(a: Path, b: Path, moved_a: dict[str, str], moved_b: dict[str, str]) -> dict[str, Any]:
    """What becomes of A's documents in B: no document has a copy in its own corpus here."""
    ours, theirs = list(documents(a, moved_a)), list(documents(b, moved_b))
    by_id = {doc["id"]: doc for doc in theirs}
    origins = {doc["origin"]: doc for doc in theirs}
    shared = {doc["id"] for doc in ours} & set(by_id)
    left = {doc["origin"] for doc in theirs if doc["id"] not in shared}
    removals = rows(b, "removals", moved_b)
    rejects, dead = rows(b, "rejects", moved_b), rows(b, "dead_letters", moved_b)
    kept = passed(b, moved_b)
    run = json.loads((b / "_run.json").read_text())
    read = {moved_b.get(entry["path"], entry["path"]) for entry in run["inputs"]}
    told: Counter[Any] = Counter()
    for doc in ours:
        origin = doc["origin"]
        if doc["id"] in shared:
            other = by_id[doc["id"]]
            sizes = [(each["text_bytes"], each["token_count"]) for each in (doc, other)]
            told["same" if sizes[0] == sizes[1] else "cut"] += 1
        elif origin in left:
            told["changed"] += 1
        elif origin in origins:
            told["same-text-elsewhere", "", ""] += 1
        elif found := [row for row in removals if row["origin"] == origin]:
            stage = {"near-duplicate": "near-duplicates", "exact-duplicate": "exact-duplicates"}[found[0]["reason"]]
            told["removed", stage, found[0]["reason"]] += 1
        elif found := [row for row in rejects if row["origin"] == origin]:
            told["dropped", found[0]["stage"], found[0]["reason"]] += 1
        elif found := [row for row in dead if row["origin"] == origin]:
            told["dead", found[0]["stage"], found[0]["error"]] += 1
        elif found := [row for row in kept if row["origin"] == origin]:
            target = run["recipe"]["rejects"]["rate"] == 1
            told[("dropped", "target", "over-target") if target else ("passed", "", "")] += 1
        elif origin.rpartition("@")[0] in read:
            told["unlisted", "", ""] += 1
        elif found := [row for row in removals if row["id"] == doc["id"]]:
            told["removed-elsewhere", "near-duplicates", found[0]["reason"]] += 1
        else:
            told["not-read", "", ""] += 1
    return dict(told)


def found_of(comparison: Comparison, label: str) -> dict[str, Any]:
    assert comparison.documents is not None
    side = "AB".index(label)
    pairs = {what: getattr(comparison.documents, what)[side].documents for what in ("same", "cut", "changed")}
    fates: Any = {
        (each.fate.kind.word, each.fate.stage, each.fate.reason): each.count.documents
        for each in comparison.documents.only[label]
    }
    return {key: count for key, count in {**pairs, **fates}.items() if count}


@one_commit_in_four
@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_every_document_of_whole_runs(
    runs: Path, one: str, other: str, many: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """many: ranges, so that each holds a few documents; nothing depends on them."""
    if many:
        monkeypatch.setattr(partitions, "RANGE_ROWS", 16)
    found = compare((str(runs / one), str(runs / other)))
    here, moved = str(runs / "here/moved.jsonl"), str(runs / "there/moved.jsonl")
    names = {moved: here} if one == "a" else {here: moved} if other == "a" else {}
    side_a, side_b = (runs / one, {}), (runs / other, names)
    assert found_of(found, "A") == expected(side_a[0], side_b[0], side_a[1], side_b[1])
    assert found_of(found, "B") == expected(side_b[0], side_a[0], side_b[1], side_a[1])
    assert found.documents is not None
    for n, side in enumerate((found.a, found.b)):
        total = side.manifest.totals
        lost = found.documents.lost(side.label)
        counts = [found.documents.same[n], found.documents.cut[n], found.documents.changed[n], lost]
        for name in ("documents", "tokens", "bytes"):
            assert sum(getattr(count, name) for count in counts) == total[name]
        by_source = [count for (_, label, _), count in found.documents.by_source.items() if label == side.label]
        assert sum(count.documents for count in by_source) == total["documents"]


@one_commit_in_four
def test_what_the_runs_are_made_for(runs: Path) -> None:
    """Every kind of answer is among them, so that the test above says something."""
    kinds: set[Kind] = set()
    for one, other in PAIRS:
        found = compare((str(runs / one), str(runs / other)))
        assert found.documents is not None and found.differ is ("a" in (one, other))  # b and c: one corpus
        kinds |= {each.fate.kind for label in "AB" for each in found.documents.only[label]}
        assert found.documents.moved_inputs == (1 if "a" in (one, other) else 0)
    # SPLIT: the lane of source code alone; UNKNOWN: runs without work files.
    assert kinds == set(Kind) - {Kind.CHANGED, Kind.SPLIT, Kind.TAKEN_DOWN, Kind.UNKNOWN}
    found = compare((str(runs / "a"), str(runs / "b")))
    assert found.documents is not None
    assert [count.documents for count in (found.documents.cut[0], found.documents.changed[0])] == [5, 4]
    assert found.documents.other_record


def test_a_corpus_and_itself(runs: Path) -> None:
    found = compare((str(runs / "b"), str(runs / "b")))
    assert found.documents is not None and found.identical and not found.differ and not found.settings
    assert found.documents.same[0].documents == found.a.manifest.totals["documents"]
    assert next(iter(text_lines(found))) == "The tokens are the same, byte for byte."
    assert {each.total_variation for each in found.distributions} <= {0, None}


def test_the_same_documents_in_other_shards(runs: Path, tmp_path: Path) -> None:
    """And the phases before are taken over, so nothing but their place is new."""
    from tests.pipelines.inputs import run

    prefix = tmp_path / "more"
    told = ["refine", runs / "b.yaml", "--output", prefix, "--reuse", runs / "b", "--workers", 0, "--quiet"]
    run(*told, "--set", "shards.target_bytes=4000")
    found = compare((str(runs / "b"), str(prefix)))
    assert not found.identical and not found.differ and found.documents is not None and not found.documents.moves
    assert next(iter(text_lines(found))) == "The documents are the same, but in other shards."
    assert [each.path for each in found.settings] == ["shards.target_bytes"]


# --- replays --------------------------------------------------------------------------------------------------------


def test_a_replay_finds_the_rule_that_no_file_names(runs: Path) -> None:
    listed = compare((str(runs / "a"), str(runs / "c")))
    found = compare((str(runs / "a"), str(runs / "b")), replayed=50)
    assert found.documents is not None and listed.documents is not None
    known = {each.fate.reason: each.count.documents for each in listed.documents.only["A"] if each.fate.reason}
    by_kind = {each.fate.kind: each for each in found.documents.only["A"]}
    unlisted, passed = (by_kind[kind].replays for kind in (Kind.UNLISTED, Kind.PASSED))
    assert unlisted is not None and passed is not None
    (rule,) = unlisted.rules
    assert (rule.stage, rule.reason, rule.outcome) == ("heuristics", "gopher-too-few-words", "dropped")
    assert rule.low == rule.high == rule.records == known["gopher-too-few-words"] == unlisted.judged
    assert [(each.stage, each.reason) for each in passed.rules] == [("target", "over-target")]
    assert all(by_kind[kind].replays is None for kind in by_kind if kind not in (Kind.UNLISTED, Kind.PASSED))


def test_a_sample_speaks_of_all_with_an_interval(runs: Path) -> None:
    found = compare((str(runs / "a"), str(runs / "b")), shown=1, replayed=4)
    assert found.documents is not None
    (each,) = [each for each in found.documents.only["A"] if each.fate.kind is Kind.UNLISTED]
    assert each.replays is not None and len(each.entries) == 1
    (rule,) = each.replays.rules
    assert (each.replays.judged, rule.records, rule.high) == (4, 4, each.count.documents)
    assert 4 <= rule.low < rule.high
    lines = "\n".join(text_lines(found))
    assert f"({rule.low:,} to {rule.high:,} of all, with 95 %)" in lines
    assert each.entries[0].a is not None and each.replays.by_id[each.entries[0].a.id] in lines


@pytest.mark.parametrize(
    ("records", "judged", "low", "high"), [(8, 10, 0.4902, 0.9433), (0, 40, 0.0, 0.0876), (40, 40, 0.9124, 1.0)]
)
def test_wilsons_interval(records: int, judged: int, low: float, high: float) -> None:
    """By hand: at its ends it is z²/(n + z²)."""
    assert wilson(records, judged) == (pytest.approx(low, abs=1e-4), pytest.approx(high, abs=1e-4))


@pytest.mark.parametrize(
    "inputs", [[{}], [3], [{"path": 3, "source": "s"}], [{"source": "s", "path": "x", "size": ""}]]
)
def test_inputs_that_no_run_writes(runs: Path, tmp_path: Path, inputs: list[Any]) -> None:
    """A run file that somebody edited costs the replay, not the comparison."""
    a, b = build_corpus(tmp_path / "a"), build_corpus(tmp_path / "b", {("train", "web"): [["x"]]})
    run = unseal((b / RUN).read_bytes(), RUN)
    (b / RUN).write_bytes(seal({**run, "inputs": inputs}))
    edit_manifest(b)
    found = compare((str(a), str(b)), replayed=3)
    assert found.documents is not None and found.documents.lost("A").documents and list(text_lines(found))


def test_inputs_that_changed_are_not_replayed(runs: Path, tmp_path: Path) -> None:
    """Nor is a run whose recipe cannot be read. Both are counted as unknown, with the reason."""
    shutil.copytree(runs / "b", tmp_path / "b")
    run = unseal((tmp_path / "b" / RUN).read_bytes(), RUN)
    (changed,) = [entry for entry in run["inputs"] if entry["path"].endswith("main.jsonl")]
    changed["digest"] = "00000000"
    (tmp_path / "b" / RUN).write_bytes(seal(run))
    edit_manifest(tmp_path / "b")
    for prefix, recipe, words in (
        (tmp_path / "b", "", "has changed since the run read it"),
        (runs / "b", str(runs / "no.yaml"), "no such recipe file"),
    ):
        found = compare((str(runs / "a"), str(prefix)), replayed=50, recipes=("", recipe))
        assert found.documents is not None
        (each,) = [each for each in found.documents.only["A"] if each.fate.kind is Kind.UNLISTED]
        assert each.replays is not None
        ((why, records),) = each.replays.failures
        assert words in why and records + each.replays.judged == each.count.documents
        assert records == 7 or recipe  # the short texts of main.jsonl; those of the edited file can be read
        lines = "\n".join(text_lines(found))
        assert f"{records}  unknown: not in the sample of rejects, and not readable again (" in lines


# --- what a corpus may lack ------------------------------------------------------------------------------------------


def without_work(root: Path, edit: Callable[[dict[str, Any]], None] = lambda run: None) -> None:
    run = unseal((root / RUN).read_bytes(), RUN)
    edit(run)
    (root / RUN).write_bytes(seal(run))
    for path in (root / "work").glob("*.json"):
        path.unlink()
    edit_manifest(root)


def test_an_older_corpus(tmp_path: Path) -> None:
    """No work files, no inputs and no stages in its run: what cannot be known is said to be unknown."""
    a, b = build_corpus(tmp_path / "a"), build_removed(tmp_path / "b")
    add_work(a, [], [])
    without_work(b, lambda run: [run.pop(name) for name in ("inputs", "stages")])

    def more(manifest: dict[str, Any]) -> None:
        manifest["recipe"] = {**manifest["recipe"], "sources": "none"}

    edit_manifest(b, more)
    found = compare((str(a), str(b)), replayed=5)
    assert found.documents is not None and not found.documents.lost("A").documents
    assert any("work files of B" in note and "--work-b" in note for note in found.notes)
    assert list(text_lines(found)) and as_plain(found)


def test_removals_and_other_corpora(tmp_path: Path) -> None:
    """A document that B removed in favour of one of a published corpus."""
    a, b = build_corpus(tmp_path / "a"), build_removed(tmp_path / "b")
    name = "train/web/shard-00000-of-00003.provenance.parquet"
    table = pq.read_table(a / name)
    gone = document(removal("f", b"theirs".ljust(16, b"."), scope=f"reference:{OTHER}"))
    for column in ("id", "origin"):
        field = table.schema.field(column)
        values = pa.array([gone[column], *table[column].to_pylist()[1:]], field.type)
        table = table.set_column(table.column_names.index(column), field, values)
    pq.write_table(table, a / name)
    edit_manifest(a)
    found = compare((str(a), str(b)))
    assert found.documents is not None
    (each,) = found.documents.only["A"]
    assert (each.fate.kind, each.fate.reason, each.fate.scope) == (Kind.REMOVED, "near-duplicate", f"reference:{OTHER}")
    assert f"removed as a duplicate: near-duplicate (near-duplicates), reference:{OTHER}" in "\n".join(
        text_lines(found)
    )


def test_without_a_run_file_and_adopted(tmp_path: Path, runs: Path) -> None:
    a = build_corpus(tmp_path / "a")
    (a / RUN).unlink()
    edit_manifest(a, lambda m: m.update(files=[f for f in m["files"] if f["path"] != RUN]))
    found = compare((str(a), str(runs / "a")))
    assert any("has no _run.json" in note for note in found.notes) and found.differ

    def adopt(manifest: dict[str, Any]) -> None:
        manifest.update(lane="adopted", stages=[], columns=[], funnel=[])
        for shard in manifest["shards"]:
            del shard["files"]["provenance"]

    edit_manifest(a, adopt)
    found = compare((str(a), str(runs / "a")))
    assert found.documents is None and found.differ
    lines = list(text_lines(found))
    assert lines[0] == "The tokens differ; the documents cannot be compared."
    assert any("adopted" in line for line in lines) and as_plain(found)["documents"] is None


def test_damaged_files_are_errors_with_a_next_step(tmp_path: Path) -> None:
    a, b = build_corpus(tmp_path / "a"), build_corpus(tmp_path / "b")
    path = b / "train/code/shard-00000-of-00001.provenance.parquet"
    whole = path.read_bytes()
    for data in (whole[: len(whole) // 2], b"", whole[:200] + b"\xff" * 50 + whole[250:]):
        path.write_bytes(data)
        with pytest.raises(FormatError, match=r"shard-00000-of-00001.provenance.parquet: not "):
            compare((str(a), str(b)))
    pq.write_table(pq.read_table(a / "train/code" / path.name).drop_columns(["origin"]), path)
    with pytest.raises(FormatError, match=r"its columns are not those of the format: .*origin: string"):
        compare((str(a), str(b)))
    path.unlink()
    with pytest.raises(FormatError, match="missing; `refinery verify` says what else is"):
        compare((str(a), str(b)))
