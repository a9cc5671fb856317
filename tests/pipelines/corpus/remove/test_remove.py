"""`refinery remove`: what goes, what comes back, and that it is what a run without these documents would have made."""

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from refinery.loader.format.manifest import read_manifest
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.corpus.verify.verify import verify
from tests.pipelines.corpus.remove.conftest import Place
from tests.pipelines.corpus.remove.corpora import PAGES, remove, removed_rows, rows, write_list
from tests.pipelines.inputs import corpus_bytes, run
from tests.sampling import one_commit_in_four, sampled

SHARDS = ("train", "validation", "removals")


def urls(prefix: Path) -> set[str]:
    return {row["url"] for row in rows(prefix)}


def only_shards(prefix: Path) -> dict[str, str]:
    """Without shards that are left empty, which a run does not write, and a takedown keeps in their place."""
    empty = [
        shard.bin.path.removesuffix("bin")
        for shard in read_manifest(open_store(str(prefix))).shards
        if not shard.documents
    ]
    files = {name: sha for name, sha in corpus_bytes(prefix).items() if name.split("/")[0] in SHARDS}
    return {name: sha for name, sha in files.items() if not name.startswith(tuple(empty))}


ASKED = [
    ["https://a.example/1"],  # a survivor of near duplicates, of which one comes back and stands for the other
    ["https://b.example/1", "https://b.example/copy"],  # a copy of a survivor in another source comes back
    ["https://c.example/near", "https://site12.example/12"],  # one that was removed, and one without duplicates
    ["https://a.example/2", "https://mirror.example/a"],  # only removed ones: their survivor's count is less
    ["https://site25.example/25"],  # what comes back belongs into a shard that no document was in
    ["https://site26.example/26"],  # or into a domain that has none
]


@pytest.mark.parametrize("asked", sampled("pages that are taken down", ASKED, 1))
def test_as_a_run_without_them(asked: list[str], taken: Place, tmp_path: Path) -> None:
    """With --copies keep: byte for byte, shards and removals."""
    list_ = write_list(tmp_path / "urls.txt", asked)
    remove(taken.prefix, tmp_path / "new", "--urls", list_, "--copies", "keep")
    again = taken.again(tmp_path / "again", asked)
    assert only_shards(tmp_path / "new") == only_shards(again)
    both = [read_manifest(open_store(str(tmp_path / name))) for name in ("new", "again")]
    assert both[0].totals == both[1].totals
    # The columns of counts have 0, not null, also of what came back.
    assert None not in {row["pii"] for row in rows(tmp_path / "new", ("pii",))}
    assert verify(str(tmp_path / "new"), against=str(taken.prefix)).failures == []


@one_commit_in_four
def test_a_shard_that_was_not_there(taken: Place, tmp_path: Path) -> None:
    """It is new, numbered as a run would; the shards before it stay where they were, for states of that version."""
    list_ = write_list(tmp_path / "urls.txt", ["https://site25.example/25", "https://site26.example/26"])
    dry = run("remove", taken.prefix, "--urls", list_, "--dry-run", "--workers", 0)
    assert "2 shards would be new" in dry.stdout
    remove(taken.prefix, tmp_path / "new", "--urls", list_)
    before, after = (
        [shard.bin.path for shard in read_manifest(open_store(str(prefix))).shards]
        for prefix in (taken.prefix, tmp_path / "new")
    )
    added = ["train/letters/shard-00000-of-00002.bin", "train/notes/shard-00000-of-00001.bin"]
    assert [path for path in after if path in before] == before
    assert [path for path in after if path not in before] == added
    assert after.index(added[0]) == after.index("train/letters/shard-00001-of-00002.bin") - 1
    assert verify(str(tmp_path / "new"), against=str(taken.prefix)).failures == []
    # Then what came back goes, by a takedown of the new version, and its shards stay, empty.
    list_ = write_list(tmp_path / "more.txt", ["https://letters.example/25", "https://notes.example/26"])
    remove(tmp_path / "new", tmp_path / "third", "--urls", list_)
    third = read_manifest(open_store(str(tmp_path / "third")))
    assert [shard.bin.path for shard in third.shards] == after
    assert [shard.documents for shard in third.shards if shard.bin.path in added] == [0, 0]
    assert verify(str(tmp_path / "third"), against=str(tmp_path / "new")).failures == []


def test_by_default_copies_go_too(taken: Place, tmp_path: Path) -> None:
    """What stands for a document that is asked for goes, and so does its very text; near copies of others come back."""
    asked = ["https://b.example/copy", "https://c.example/near", "https://a.example/1"]
    remove(taken.prefix, tmp_path / "new", "--urls", write_list(tmp_path / "urls.txt", asked))
    assert verify(str(tmp_path / "new"), against=str(taken.prefix)).failures == []
    went = urls(taken.prefix) - urls(tmp_path / "new")
    assert went == {"https://a.example/1", "https://b.example/1", "https://c.example/1"}
    assert urls(tmp_path / "new") - urls(taken.prefix) == {"https://a.example/2"}
    left = {row["url"] for row in removed_rows(tmp_path / "new")} - {
        "https://letters.example/25",
        "https://notes.example/26",
    }
    assert left == {"https://mirror.example/a"}  # the copy in the other source has the text that went
    listing = {row["url"]: row for row in listed_rows(tmp_path / "new")}
    assert {url: row["why"] for url, row in listing.items()} == {
        "https://a.example/1": "requested",
        "https://b.example/copy": "requested",
        "https://b.example/1": "copy-of-requested",
        "https://other.example/b": "copy-of-requested",
        "https://c.example/near": "requested",
        "https://c.example/1": "copy-of-requested",
    }
    assert {row["request"] for row in listing.values()} == {"urls:1", "urls:2", "urls:3"}


def listed_rows(prefix: Path) -> list[dict[str, Any]]:
    manifest = read_manifest(open_store(str(prefix)))
    table: list[dict[str, Any]] = pq.read_table(prefix / manifest.takedowns[-1].removed).to_pylist()
    return table


SPELLINGS: list[tuple[str, list[str], set[str]]] = [
    ("--hosts", ["c.example"], {"https://c.example/1", "https://sub.c.example/x"}),
    (
        "--hosts",
        ["# a comment", "", "HTTPS://C.Example/whatever"],
        {"https://c.example/1", "https://sub.c.example/x"},
    ),
    ("--hosts", ["sub.c.example"], {"https://sub.c.example/x"}),
    ("--urls", ["http://user@SUB.c.example:80/x/?utm_source=mail#top"], {"https://sub.c.example/x"}),
]


@pytest.mark.parametrize(("flags", "lines", "gone"), sampled("spellings of what is taken down", SPELLINGS, 2))
def test_spellings(flags: str, lines: list[str], gone: set[str], taken: Place, tmp_path: Path) -> None:
    remove(taken.prefix, tmp_path / "new", flags, write_list(tmp_path / "list", lines), "--copies", "keep")
    assert urls(taken.prefix) - urls(tmp_path / "new") == gone


@one_commit_in_four
def test_by_id_and_by_source(taken: Place, tmp_path: Path) -> None:
    """An id is a text's: all copies go. A source goes by itself: what other sources had as its duplicates comes back,
    and what stood for its documents stays, and counts them no more."""
    ids = {row["url"]: row["id"].hex() for row in rows(taken.prefix)}
    listed = write_list(tmp_path / "ids", [ids["https://b.example/1"].upper()])
    remove(taken.prefix, tmp_path / "by-id", "--documents", listed)
    assert urls(taken.prefix) - urls(tmp_path / "by-id") == {"https://b.example/1"}
    assert not [row for row in removed_rows(tmp_path / "by-id") if "b" in row["url"].partition("//")[2][:7]]

    remove(taken.prefix, tmp_path / "by-source", "--source", "web")
    kept = {row["url"]: row for row in rows(tmp_path / "by-source")}
    others = {url for url, (source, _) in PAGES.items() if source != "web"} - {"https://other.example/b"}
    assert set(kept) == others and kept["https://b.example/1"]["copies"] == 2
    assert kept["https://b.example/1"]["sources"] == ["books", "news"]
    assert verify(str(tmp_path / "by-source"), against=str(taken.prefix)).failures == []
    remove(taken.prefix, tmp_path / "other", "--source", "books")
    found = {row["url"]: row for row in rows(tmp_path / "other")}
    assert found["https://b.example/1"]["copies"] == 2 and found["https://b.example/1"]["sources"] == ["news", "web"]


@one_commit_in_four
def test_without_work_nothing_comes_back(taken: Place, tmp_path: Path) -> None:
    """The texts are gone: what the removed document stood for is listed, with the reason."""
    shutil.copytree(taken.prefix, tmp_path / "old", ignore=shutil.ignore_patterns("work"))
    list_ = write_list(tmp_path / "urls.txt", ["https://a.example/1"])
    remove(tmp_path / "old", tmp_path / "new", "--urls", list_)
    assert verify(str(tmp_path / "new"), against=str(tmp_path / "old")).failures == []
    why = {row["url"]: row["why"] for row in listed_rows(tmp_path / "new")}
    assert why["https://a.example/2"] == why["https://mirror.example/a"] == "duplicate-of-removed"
    proof = json.loads((tmp_path / "new" / "takedowns/00001/removal.json").read_text())
    (reason,) = proof["duplicates"]["not_reinstated"]
    assert "its text is gone" in reason
    remove(tmp_path / "old", tmp_path / "again", "--urls", list_, "--work", taken.prefix / "work")
    assert urls(tmp_path / "again") - urls(taken.prefix) == {"https://a.example/2"}
    remove(taken.prefix, tmp_path / "strict", "--urls", list_, "--no-reinstate")
    assert urls(tmp_path / "strict") < urls(taken.prefix)


@one_commit_in_four
def test_a_chain_of_takedowns(taken: Place, tmp_path: Path) -> None:
    """What came back in the first goes in the second, and the next one comes; the proofs of both hold."""
    first, second = (
        write_list(tmp_path / name, [url]) for name, url in (("1", "https://a.example/1"), ("2", "https://a.example/2"))
    )
    remove(taken.prefix, tmp_path / "two", "--urls", first, "--copies", "keep")
    remove(tmp_path / "two", tmp_path / "three", "--urls", second, "--copies", "keep", "--work", taken.prefix / "work")
    assert urls(taken.prefix) ^ urls(tmp_path / "three") == {"https://a.example/1", "https://mirror.example/a"}
    assert verify(str(tmp_path / "three"), against=str(tmp_path / "two")).failures == []
    manifest = read_manifest(open_store(str(tmp_path / "three")))
    assert [(each.documents, each.added_documents) for each in manifest.takedowns] == [(1, 1), (1, 1)]
    both = [
        only_shards(tmp_path / "three"),
        only_shards(taken.again(tmp_path / "again", ["https://a.example/1", "https://a.example/2"])),
    ]
    assert both[0] == both[1]


def test_nothing_asked_for_is_there(taken: Place, tmp_path: Path) -> None:
    """A version all the same: the proof says that nothing was there."""
    list_ = write_list(tmp_path / "urls.txt", ["https://nobody.example/"])
    done = remove(taken.prefix, tmp_path / "new", "--urls", list_)
    assert "0 documents with 0 tokens removed" in done.stdout
    assert verify(str(tmp_path / "new"), against=str(taken.prefix)).failures == []
    same = [only_shards(each) for each in (taken.prefix, tmp_path / "new")]
    assert same[0] == same[1]


def test_the_old_version_stays_and_files_are_shared(taken: Place, tmp_path: Path) -> None:
    before = corpus_bytes(taken.prefix, leave_out=())
    list_ = write_list(tmp_path / "urls.txt", ["https://site12.example/12"])
    done = remove(taken.prefix, tmp_path / "new", "--urls", list_)
    assert corpus_bytes(taken.prefix, leave_out=()) == before
    assert "1 shards rewritten" in done.stdout + done.stderr
    manifest = read_manifest(open_store(str(tmp_path / "new")))
    old = {shard.bin.path: shard.bin.sha256 for shard in read_manifest(open_store(str(taken.prefix))).shards}
    changed = [shard for shard in manifest.shards if old[shard.bin.path] != shard.bin.sha256]
    assert len(changed) == 1 < len(manifest.shards)
    shared = [s for s in manifest.shards if (taken.prefix / s.bin.path).samefile(tmp_path / "new" / s.bin.path)]
    assert len(shared) == len(manifest.shards) - 1
    assert not (tmp_path / "new" / "work").exists()
    again = remove(taken.prefix, tmp_path / "new", "--urls", list_)
    assert "complete already" in again.stdout + again.stderr
