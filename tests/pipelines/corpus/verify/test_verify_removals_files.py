"""What verify says of removals: nothing of good ones, and the name of every lie, alone in an otherwise good corpus."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from refinery.loader.format.removals import REMOVALS_SCHEMA
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.corpus.verify.joins import Found, find_cycles, join_partitions
from refinery.pipelines.corpus.verify.keyed_rows import RunWriter, Tables, table_rows
from refinery.pipelines.corpus.verify.verify import verify
from refinery.pipelines.corpus.verify.whole import Report
from tests.corpus_factory import ByteTokenizer, edit_manifest
from tests.pipelines.removals_factory import (
    OTHER,
    build_removed,
    capture,
    captures,
    every_kind,
    exact,
    kept_ids,
    made_id,
    put_removals,
    removal,
    sort_rows,
    split_rows,
)
from tests.plain_manifest import manifest_of
from tests.sampling import sampled

FILE = "removals/part-00000-of-00001.parquet"


def check(root: Path) -> Report:
    return verify(str(root), load=lambda path: ByteTokenizer())  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize("files", [1, 2, 5])
def test_good_removals(tmp_path: Path, files: int) -> None:
    report = check(build_removed(tmp_path / "corpus", files))
    assert report.failures == []
    assert (report.removals, report.dropped_later) == (10, 1)
    assert (
        report.summary_lines()[3] == "10 removed by deduplication; later stages dropped 1 of the documents kept instead"
    )


@pytest.mark.parametrize("rows", [1, 2, 3, 7])
def test_batches_of_any_size_give_the_same_answer(tmp_path: Path, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    root = build_removed(tmp_path / "corpus")
    monkeypatch.setattr("refinery.loader.format.parquet.batches.BATCH_ROWS", rows)
    assert check(root).failures == []
    put_removals(root, [sort_rows(every_kind(root)).take([0, 1, 2, 4, 3, 5, 6, 7, 8, 9])])
    assert [f for f in check(root).failures if "1 rows out of order; the first: row 4 of all" in f]


Rows = list[dict[str, Any]]


def other_rows(edit: Callable[[Rows, Path], Any]) -> Callable[[Path], None]:
    """The removals after `edit` of their rows (which may return others), sorted again; the funnel as it was."""

    def change(root: Path) -> None:
        rows = every_kind(root)
        put_removals(root, [sort_rows(edit(rows, root) or rows)])

    return change


def set_field(name: str, field: str, value: Any) -> Callable[[Path], None]:
    def edit(rows: Rows, root: Path) -> None:
        row = next(row for row in rows if row["url"].endswith(f"/{name}"))
        row[field] = value

    return other_rows(edit)


def reordered(*order: int) -> Callable[[Path], None]:
    return lambda root: put_removals(root, [sort_rows(every_kind(root)).take(list(order))])


def unsorted_url(root: Path) -> None:
    """Two copies of one text: equal in all but their addresses, which are out of order."""
    table = sort_rows([*every_kind(root), exact("a0", kept_ids(root)[0])])
    urls = table["url"].to_pylist()
    first, second = urls.index("https://e.org/a"), urls.index("https://e.org/a0")
    order = list(range(len(urls)))
    order[first], order[second] = order[second], order[first]
    put_removals(root, [table.take(order)])


def in_the_wrong_file(root: Path) -> None:
    one, two = split_rows(sort_rows(every_kind(root)), 2)
    put_removals(root, [pa.concat_tables([one, two[:1]]), two[1:]])


def without_a_file(root: Path) -> None:
    put_removals(root, split_rows(sort_rows(every_kind(root)), 3))
    edit_manifest(root, lambda m: m["files"].pop())


def manifest_rows(rows: int | None) -> Callable[[Path], None]:
    return lambda root: edit_manifest(root, lambda m: m["files"][-1].update(rows=rows) if rows else None)


def without_column(root: Path) -> None:
    put_removals(root, [sort_rows(every_kind(root)).drop_columns("scope")])


def cycle(rows: Rows, root: Path) -> Rows:
    """c -> d and d -> c: nobody is left of the two."""
    return [*(row | {"kept_id": made_id("d")} if row["url"].endswith("/c") else row for row in rows)]


def truncated(root: Path) -> None:
    (root / FILE).write_bytes((root / FILE).read_bytes()[:-1])


def none_lost(root: Path) -> None:
    """Nothing was dropped after deduplication, so every kept document must be somewhere."""

    def edit(m: dict[str, Any]) -> None:
        for row in m["funnel"]:
            if row["stage"] == "quality":
                row["dropped"] = {}
                row["in"] = row["kept"]

    edit_manifest(root, edit)


LIES: dict[str, tuple[Callable[[Path], None], str]] = {
    "a row lost": (
        other_rows(lambda rows, root: rows[1:]),
        "2 rows of reason 'exact-duplicate', source 'crawl' found, the",
    ),
    "a row more": (
        other_rows(lambda rows, root: [*rows, removal("z", kept_ids(root)[0])]),
        "6 rows of reason 'near-duplicate', source 'crawl' found, the funnel has 5 dropped",
    ),
    "another reason": (
        set_field("b", "reason", "near-duplicate-in-source"),
        "2 rows of reason 'near-duplicate-in-source', source 'crawl' found, the funnel has 1 dropped",
    ),
    "another source": (set_field("c-copy", "source", "crawl"), "0 rows of reason 'exact-duplicate', source 'code'"),
    "an unknown reason": (set_field("b", "reason", "boring"), "1 rows of an unknown reason"),
    "an unknown scope": (set_field("b", "scope", "planet"), "1 rows of an unknown scope"),
    "a corpus that the recipe does not name": (
        set_field("f", "scope", f"reference:{OTHER}x"),
        "1 rows of an unknown sc",
    ),
    "similarity below the threshold": (
        set_field("b", "similarity", 0.74),
        "1 rows of 'near-duplicate' less similar than the recipe asks; the first: row",
    ),
    "similarity below that of its source": (
        set_field("g", "similarity", 0.8),
        "1 rows of 'near-duplicate-in-source' less similar than the recipe asks",
    ),
    "similarity of a copy": (set_field("a", "similarity", 0.99), "1 rows of 'exact-duplicate' less similar than"),
    "similarity not a number": (set_field("b", "similarity", np.nan), "1 rows whose similarity is not from 0 to 1"),
    "similarity above 1": (set_field("b", "similarity", 1.01), "1 rows whose similarity is not from 0 to 1"),
    "similarity below 0": (set_field("b", "similarity", -0.5), "1 rows whose similarity is not from 0 to 1"),
    "a kept document that is nowhere": (
        set_field("b", "kept_id", made_id("nowhere")),
        "2 kept documents are neither in the corpus nor removed themselves, but later stages dropped 1 documents",
    ),
    "a lost kept document that nothing dropped": (
        none_lost,
        f"1 kept documents .* dropped 0 documents; the first: {made_id('lost').hex()}",
    ),
    "a copy of a text that is nowhere": (
        other_rows(lambda rows, root: [exact("a", made_id("gone")), *rows[1:]]),
        "2 kept documents are neither in the corpus nor removed themselves",
    ),
    "a copy that survives under another id": (
        set_field("a", "kept_id", made_id("c")),
        "1 exact copies whose kept_id",
    ),
    "a near duplicate of itself": (set_field("b", "kept_id", made_id("b")), "1 near duplicates of their own id"),
    "a cycle": (other_rows(cycle), "following kept_id from 3 ids leads into a cycle"),
    "removed and in the corpus": (
        lambda root: set_field("b", "id", kept_ids(root)[2])(root),
        "1 ids are removed and yet in the corpus",
    ),
    "removed twice": (set_field("b", "id", made_id("d")), "1 ids are removed twice in favour of others"),
    "unsorted": (reordered(1, 0, 2, 3, 4, 5, 6, 7, 8, 9), "1 rows out of order; the first: row 1 of all"),
    "unsorted within an id": (unsorted_url, "1 rows out of order; the first: row"),
    "in the wrong file": (in_the_wrong_file, "1 rows that belong to the id range of another file"),
    "a file left out": (without_a_file, r"removals/: \[.*00000-of-00003.*\] found, files 0 to 1 of 2 expected"),
    "rows of the manifest": (manifest_rows(11), f"{FILE}: 10 rows found, 11 expected from the manifest"),
    "columns": (without_column, f"{FILE}: its columns are not those of the format: .* found, .*'scope.* expected"),
    "truncated": (truncated, rf"{FILE}: size \d+ found"),
    "missing": (lambda root: (root / FILE).unlink(), f"{FILE}: missing"),
    "not Parquet": (
        lambda root: ((root / FILE).write_bytes(b"PAR1"), edit_manifest(root)),
        f"{FILE}: not a readable Parquet file: no footer of Parquet",
    ),  # type: ignore[func-returns-value]
    "unlisted": (lambda root: (root / "removals/x").touch(), "removals/x: not in manifest.json"),
    "all of them": (lambda root: put_removals(root, []), "0 rows of reason 'exact-duplicate', source 'code' found"),
}


@pytest.mark.parametrize("lie", sampled("lies about removals", LIES, 11))
def test_lie_is_named(tmp_path: Path, lie: str) -> None:
    tell, message = LIES[lie]
    root = build_removed(tmp_path / "corpus")
    tell(root)
    failures = check(root).failures
    assert any(re.search(message, failure) for failure in failures), "\n".join(failures)


def test_without_exact_removal_an_id_may_stay_and_go(tmp_path: Path) -> None:
    """Two documents of one text, one removed as a near duplicate of the other: no lie where the recipe asks for it."""
    root = build_removed(tmp_path / "corpus")
    put_removals(root, [sort_rows([*every_kind(root), removal("z", kept_ids(root)[1], id=kept_ids(root)[1])])])
    found = "\n".join(check(root).failures)
    assert "near duplicates of their own id" in found
    edit_manifest(root, lambda m: m["recipe"].update(exact_dup=False))
    assert "own id" not in "\n".join(check(root).failures)


def test_captures_of_one_address(tmp_path: Path) -> None:
    """Their ids may be in the corpus, removed for others, and lead in circles."""
    report = check(build_removed(tmp_path / "corpus", urls=True))
    assert (report.failures, report.removals) == ([], 17)


CAPTURE_LIES: dict[str, tuple[Callable[[Rows, Path], Any], str]] = {
    "a similarity": (
        lambda rows, root: [*rows[:-1], capture("s", made_id("lost"), similarity=0.5)],
        "1 captures of one address with a similarity",
    ),
    "kept instead by nobody": (
        lambda rows, root: [*rows[:-1], capture("s", made_id("nowhere"))],
        "2 kept documents are neither in the corpus nor removed themselves, but later stages dropped 1 documents",
    ),
    "a row lost": (
        lambda rows, root: rows[:-1],
        "6 rows of reason 'url-duplicate', source 'crawl' found, the funnel",
    ),
}


@pytest.mark.parametrize("lie", CAPTURE_LIES)
def test_lie_about_captures_is_named(tmp_path: Path, lie: str) -> None:
    tell, message = CAPTURE_LIES[lie]
    root = build_removed(tmp_path / "corpus", urls=True)
    put_removals(root, [sort_rows(tell([*every_kind(root), *captures(root)], root))])
    assert message in "\n".join(check(root).failures)


def test_an_address_twice_where_one_capture_is_kept(tmp_path: Path) -> None:
    """Every document of the hand-made corpus has the same address, which no recipe with url_dup would have left."""
    root = build_removed(tmp_path / "corpus", urls=True)
    edit_manifest(root, lambda m: m["recipe"].update(url_dup={"prefer": "newest"}))
    (failure,) = [failure for failure in check(root).failures if "address" in failure]
    assert failure.startswith("addresses: 5 documents have the address of another, url_dup keeps one; train/web/")


def test_corpora_without_removals_have_no_such_line(tmp_path: Path) -> None:
    root = build_removed(tmp_path / "corpus")
    put_removals(root, [])
    funnel = manifest_of(root)["funnel"]
    for row in funnel:
        row["dropped"] = {}
        row["in"] = row["kept"] = next(r for r in funnel if (r["stage"], r["source"]) == ("encode", row["source"]))[
            "in"
        ]
    edit_manifest(root, lambda m: m.update(funnel=[row | {"dead": {}} for row in funnel]))
    report = check(root)
    assert report.removals == 0 and not any("removed" in line for line in report.summary_lines())


def joined(folder: Path, ids: Any, kept: Any, corpus: Any, partitions: int = 1) -> Found:
    """What rows of removals in favour of others say, beside a shard with the ids `corpus`."""
    folder.mkdir()
    writer = RunWriter(folder, "made", partitions)
    writer.add("ids", table_rows("ids", key=corpus, row=np.arange(len(corpus))))
    writer.add("removed", table_rows("removed", key=ids, other=kept, order=np.arange(len(ids))))
    writer.add("kept", table_rows("kept", key=kept, other=ids, order=np.arange(len(ids))))
    store = open_store(folder)
    tables = Tables(store, partitions, writer.flush())
    found, runs = join_partitions(tables, range(partitions), folder)
    return found | {"cycles": find_cycles(store, runs, partitions, len(ids), folder)}


def test_ids_that_end_in_zeros_are_distinguished(tmp_path: Path) -> None:
    ids = np.array([b"\0" * 16, b"\0" * 15 + b"\1", b"\1" + b"\0" * 15], "S16")
    found = joined(tmp_path / "a", ids[:2], ids[[2, 2]], ids[2:])
    assert {count for count, _ in found.values()} == {0}
    found = joined(tmp_path / "b", ids[1:2], ids[:1], ids[2:])
    assert found["unknown"] == (1, "00" * 16) and found["cycles"] == (0, None)


@pytest.mark.parametrize("partitions", [1, 7])
def test_long_chains_end(tmp_path: Path, partitions: int) -> None:
    """A thousand removals one after another, the last in favour of a document of the corpus; then tied to a ring."""
    ids = np.array(sorted(made_id(str(i)) for i in range(1000)), "S16")
    order = np.random.default_rng(1).permutation(1000)
    towards = np.empty(1000, "S16")
    towards[order[:-1]] = ids[order[1:]]
    towards[order[-1]] = made_id("kept")
    corpus = np.array([made_id("kept")], "S16")
    found = joined(tmp_path / "chain", ids, towards, corpus, partitions)
    assert {count for count, _ in found.values()} == {0}
    towards[order[-1]] = ids[order[0]]
    assert joined(tmp_path / "ring", ids, towards, corpus, partitions)["cycles"] == (
        1000,
        ids[0].ljust(16, b"\0").hex(),
    )


def test_sorting_is_that_of_the_writer() -> None:
    """The factory sorts with Arrow, as the funnel does; texts compare by bytes, not by what a locale says."""
    rows = [removal("x", made_id("y"), url=url) for url in ("é", "z", "Z", "", "\U0001f43b", "\uffff")]
    table = sort_rows(rows)
    assert table.schema.equals(REMOVALS_SCHEMA)
    assert table["url"].to_pylist() == sorted((row["url"] for row in rows), key=str.encode)
    assert pc.count_distinct(table["id"]).as_py() == 1
