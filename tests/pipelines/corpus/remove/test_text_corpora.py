"""`refinery remove` on corpora of texts: the same guarantees as on tokens, whatever the files of a shard are."""

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import refinery.corpus
from refinery.loader.format.manifest import Manifest, read_manifest
from refinery.loader.format.provenance import PARQUET
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.corpus.verify.verify import verify
from refinery.transforms.write.text_writers import TEXT_WRITERS
from tests.corpus_factory import edit_manifest
from tests.fork_server import ForkServer
from tests.pipelines.corpus.remove.corpora import FIRST, PAGES, SECOND, make_inputs, remove, write_list, write_recipe
from tests.pipelines.inputs import corpus_bytes, run
from tests.sampling import ALL, one_commit_in_four, sampled, scaled, spread
from tests.shared import shared

PARTS, KEEP = scaled(40, 1), 2  # tests that share the crash points, and those of each, where not all run
SHARDS = ("train", "validation", "removals")
WRITERS = sampled("writers of texts whose corpora lose documents", list(TEXT_WRITERS), 1)


def pages(factory: pytest.TempPathFactory, writer: str) -> Path:
    """A folder with the inputs, recipe.yaml, and `corpus`."""

    def fill(folder: Path) -> None:
        inputs = make_inputs(folder / "pages")
        recipe = write_recipe(folder, inputs, None, writer=writer)
        run("refine", recipe, "--output", folder / "corpus", "--workers", 0)

    return shared(factory, f"taken-{writer}", fill)


@pytest.fixture
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The corpus of Parquet files."""
    return pages(tmp_path_factory, "text") / "corpus"


def manifest_of(prefix: Path) -> Manifest:
    return read_manifest(open_store(str(prefix)))


def only_shards(prefix: Path) -> dict[str, str]:
    """Without shards that are left empty, which a run does not write."""
    empty = tuple(f"{shard.name}." for shard in manifest_of(prefix).shards if not shard.documents)
    files = {name: sha for name, sha in corpus_bytes(prefix).items() if name.split("/")[0] in SHARDS}
    return {name: sha for name, sha in files.items() if not name.startswith(empty or "\0")}


def contents(prefix: Path) -> dict[str, str]:
    """Address -> text."""
    batches = refinery.corpus.open(prefix).documents(["url", "text"])
    return {row["url"]: row["text"] for batch in batches for row in batch.to_pylist()}


def without(folder: Path, asked: list[str], output: Path) -> Path:
    """The corpus of the same recipe without some pages, which are put back."""
    hidden = {path: path.read_bytes() for path in (folder / "pages").rglob("*.jsonl")}
    hidden = {path: data for path, data in hidden.items() if any(f'"{url}"'.encode() in data for url in asked)}
    try:
        for path in hidden:
            path.unlink()
        run("refine", folder / "recipe.yaml", "--output", output, "--workers", 0)
    finally:
        for path, data in hidden.items():
            path.write_bytes(data)
    return output


@pytest.mark.parametrize("writer", WRITERS)
def test_as_a_run_without_them(writer: str, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> None:
    """Byte for byte, shards and removals: what goes, what comes back, and into a shard that was not there."""
    folder, asked = pages(tmp_path_factory, writer), ["https://a.example/1", "https://site25.example/25"]
    list_, new = write_list(tmp_path / "urls.txt", asked), tmp_path / "new"
    done = remove(folder / "corpus", new, "--urls", list_, "--copies", "keep")
    assert "2 documents removed, 2 reinstated" in done.stdout and "tokens" not in done.stdout
    assert only_shards(new) == only_shards(without(folder, asked, tmp_path / "again"))
    manifest, before = manifest_of(new), manifest_of(folder / "corpus")
    assert manifest.written == before.written and "tokens" not in manifest.totals
    assert len(manifest.shards) > len(before.shards)
    assert verify(str(new), against=str(folder / "corpus")).failures == []
    gone = set(contents(folder / "corpus")) - set(contents(new))
    assert gone == set(asked) and contents(new)["https://letters.example/25"] == PAGES["https://letters.example/25"][1]
    # Once more: nothing to do, not a byte changes.
    held = corpus_bytes(new)
    assert "complete already" in remove(folder / "corpus", new, "--urls", list_, "--copies", "keep").stdout
    assert corpus_bytes(new) == held


@one_commit_in_four
def test_a_chain_of_takedowns(texts: Path, tmp_path: Path) -> None:
    """Its listings place documents without tokens; a trace says what became of one, and verify goes back a step."""
    remove(texts, tmp_path / "two", "--urls", write_list(tmp_path / "1", FIRST))
    three = tmp_path / "three"
    remove(tmp_path / "two", three, "--urls", write_list(tmp_path / "2", SECOND), "--work", texts / "work")
    assert verify(str(three), against=str(tmp_path / "two")).failures == []
    first, second = manifest_of(three).takedowns
    assert (first.tokens, second.tokens, second.added_tokens) == (0, 0, 0) and first.documents and second.documents
    listed = pq.read_table(three / second.removed).to_pylist()
    assert {(row["token_offset"], row["token_count"]) for row in listed if row["split"]} == {(0, 0)}
    assert not {*FIRST, *SECOND} & {*contents(three)}
    traced = run("trace", three, "--url", SECOND[0], "--no-replay", check=False).stdout
    assert "taken" in traced or "removed by" in traced
    dry = run("remove", three, "--hosts", write_list(tmp_path / "3", ["c.example"]), "--dry-run", "--workers", 0)
    assert "documents would go" in dry.stdout and "tokens" not in dry.stdout


def test_benchmarks_are_searched_in_the_texts(texts: Path, tmp_path: Path) -> None:
    words = PAGES["https://site12.example/12"][1].split()
    (tmp_path / "quiz.jsonl").write_text(f'{{"id": "one", "question": "{" ".join(words[5:24])}"}}\n')
    remove(texts, tmp_path / "new", "--benchmarks", tmp_path / "quiz.jsonl")
    assert set(contents(texts)) - set(contents(tmp_path / "new")) == {"https://site12.example/12"}
    assert verify(str(tmp_path / "new"), against=str(texts)).failures == []


@one_commit_in_four
@pytest.mark.parametrize("part", range(PARTS))
def test_killed_and_started_again(part: int, texts: Path, forks: ForkServer, tmp_path: Path) -> None:
    asked = write_list(tmp_path / "urls.txt", FIRST)

    def command(output: Path) -> list[object]:
        return ["remove", texts, "--urls", asked, "--output", output, "--workers", 0, "--quiet"]

    whole = tmp_path / "whole"
    done = forks.run(*command(whole), faults=[("at_change", {"root": str(whole), "syncs": ALL})])
    assert done.code == 0, done.err
    points = list(range(done.notes["changes"]))[part::PARTS]
    for point in spread(f"crash points of takedowns of texts, {part}", points, KEEP):
        out = tmp_path / f"out-{point}"
        killed = forks.run(*command(out), faults=[("at_change", {"root": str(out), "kill": point, "syncs": ALL})])
        assert killed.was_killed, killed
        again = forks.run(*command(out))
        assert again.code == 0, again.err
        assert corpus_bytes(out) == corpus_bytes(whole), point


def test_another_text_is_told_from_the_one_before(texts: Path, tmp_path: Path) -> None:
    """Of the same size and, up to white space, the same words: its id and its size say nothing of that."""
    new = tmp_path / "new"
    remove(texts, new, "--urls", write_list(tmp_path / "urls.txt", FIRST))
    same = set(manifest_of(texts).shards) & set(manifest_of(new).shards)  # others the proof has the checksums of
    shard = max(same, key=lambda each: each.documents)
    path = new / shard.content.path
    table = pq.read_table(path)
    changed = [text.replace(" ", "\n", 1) for text in table["text"].to_pylist()]
    path.unlink()  # it may be a link
    pq.write_table(table.set_column(0, table.schema.field(0), pa.array(changed)), path, **PARQUET)
    edit_manifest(new)
    assert verify(str(new)).failures == []
    (failure,) = verify(str(new), against=str(texts)).failures
    assert failure == f"{shard.content.path}: the text of row 0 is not the one that it had before"


@pytest.mark.parametrize(
    "writer", sampled("writers of texts that are damaged before a takedown", list(TEXT_WRITERS), 1)
)
def test_damage_ends_it(writer: str, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> None:
    """The file is named, and no manifest is written."""
    shutil.copytree(pages(tmp_path_factory, writer) / "corpus", tmp_path / "old")
    (row,) = refinery.corpus.open(tmp_path / "old").find(url="https://site12.example/12")
    shard = next(s for s in manifest_of(tmp_path / "old").shards if s.name == row.place.shard)
    path = tmp_path / "old" / shard.content.path
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    asked = write_list(tmp_path / "urls.txt", ["https://site12.example/12"])
    done = remove(tmp_path / "old", tmp_path / "new", "--urls", asked, check=False)
    assert done.returncode == 2 and shard.content.path in done.stderr, done.stderr
    assert not (tmp_path / "new" / "manifest.json").exists()
