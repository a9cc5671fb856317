"""PyTorch shards: every token of the corpora once, in the global order, cut at exact multiples, whatever was before."""

import itertools
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.loader.format.manifest import MANIFEST, read_manifest, seal, unseal
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.corpus.checks.verify_export import verify_export
from refinery.pipelines.corpus.export.checkpoint import CHECKPOINT, SplitPlan
from refinery.pipelines.corpus.export.options import WORK
from refinery.pipelines.corpus.export.place import Place
from refinery.pipelines.corpus.export.regions import cut_shards, overlapping
from refinery.pipelines.corpus.export.status import export_status, text_lines
from refinery.pipelines.corpus.export.token_export import TokenExport
from refinery.pipelines.run.errors import RefineError
from tests.corpus_factory import SEED, build_corpus, edit_manifest, hash64
from tests.pipelines.corpus.export.exporting import corpus_shards, export, files_of, read_pt
from tests.sampling import FILE_ON_ONE_COMMIT_IN_FOUR

pytestmark = FILE_ON_ONE_COMMIT_IN_FOUR

SIZE = 64

# Document 0 of a cell is the same in both corpora where its shard's name is: ids follow from name and number.
FIRST = {
    ("train", "web"): [[f"page {i} " * (i % 7 + 1) for i in range(12)], [], ["x" * 300, "", "y"]],
    ("train", "code"): [[f"def f{i}(): return {i}" for i in range(9)]],
    ("validation", "web"): [["held out", "kept aside"]],
}
SECOND = {
    ("train", "web"): [[f"page {i} " * (i % 7 + 1) for i in range(15)], ["new"], ["x" * 300]],
    ("train", "code"): [[f"def f{i}(): return {i}" for i in range(11)], ["class C: pass"]],
}


def in_order(corpus: Path, split: str) -> Iterator[dict[str, Any]]:
    """The documents of a split in the order of their hash, over all domains."""
    every = [d for name, documents in corpus_shards(corpus) for d in documents if name.startswith(f"{split}/")]
    yield from sorted(every, key=lambda d: (hash64("order", SEED, d["id"]), d["id"], d["source"], d["origin"]))


def expected_tokens(corpora: Sequence[Path], split: str) -> tuple[list[int], list[dict[str, Any]]]:
    """All tokens of the split, and its documents, those that an earlier corpus has left out."""
    known: set[bytes] = set()
    documents = []
    for corpus in corpora:
        new = [document for document in in_order(corpus, split) if document["id"] not in known]
        known |= {document["id"] for document in new}
        documents += new
    return list(itertools.chain.from_iterable(d["input_ids"] for d in documents)), documents


def check(output: Path, corpora: Sequence[Path], size: int = SIZE, dtype: str = "int64") -> None:
    manifest = unseal((output / MANIFEST).read_bytes(), "")
    for split in ("train", "validation"):
        tokens, documents = expected_tokens(corpora, split)
        shards = [read_pt(path) for path in sorted((output / split).glob("*.pt"))]
        assert all(len(shard) == size and shard.dtype == dtype for shard in shards)
        assert len(shards) == len(tokens) // size
        left = [read_pt(path) for path in (output / "leftover").glob(f"{split}-*.pt")]
        assert len(left) == (len(tokens) % size > 0)
        assert np.concatenate([*shards, *left]).tolist() == tokens
        assert manifest["leftover_tokens"].get(split, 0) == len(tokens) % size
        rows = [
            row for path in sorted((output / "provenance" / split).iterdir()) for row in pq.read_table(path).to_pylist()
        ]
        assert [row["id"] for row in rows] == [document["id"] for document in documents]
        for row, document in zip(rows, documents, strict=True):
            assert tokens[row["position"] : row["position"] + row["tokens"]] == document["input_ids"]
            assert (row["source"], row["domain"], row["text_bytes"]) == tuple(
                document[name] for name in ("source", "domain", "text_bytes")
            )
    for part in [*manifest["shards"], *manifest["leftover"]]:
        data = (output / part["file"]["path"]).read_bytes()
        raw = np.frombuffer(data, dtype, part["tokens"], part["data_offset"])
        assert part["data_offset"] % 64 == 0
        assert raw.tolist() == read_pt(output / part["file"]["path"]).tolist()
    assert verify_export(str(output)).failures == []


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("tokens")
    return [
        build_corpus(folder / "first", FIRST),
        build_corpus(folder / "second", SECOND, fingerprint="2a" * 32),
        build_corpus(folder / "third", {("train", "code"): [["tiny"]]}, fingerprint="3b" * 32),
    ]


@pytest.mark.parametrize(("size", "dtype"), [(SIZE, "int64"), (7, "int32"), (100_000, "int64")])
def test_every_token_once_in_shards_of_exactly_as_many(
    corpora: list[Path], tmp_path: Path, size: int, dtype: str
) -> None:
    manifest = export(corpora[0], tmp_path / "out", "torch", shard_tokens=size, dtype=dtype)
    check(tmp_path / "out", corpora[:1], size, dtype)
    totals = read_manifest(open_store(corpora[0])).totals
    assert {name: manifest["totals"][name] for name in totals} == dict(totals)
    status = export_status(str(tmp_path / "out"))
    assert status.state == "complete" and status.sources == manifest["sources"]


def test_corpora_one_after_the_other(corpora: list[Path], tmp_path: Path) -> None:
    """Leftovers are carried on, documents that are there already are not repeated, and no shard ever changes."""
    out = tmp_path / "out"
    before: dict[str, bytes] = {}
    for number, corpus in enumerate(corpora):
        export(corpus, out, "torch", shard_tokens=SIZE, append=number > 0)
        check(out, corpora[: number + 1])
        now = files_of(out)
        changing = (MANIFEST, CHECKPOINT)
        kept = {
            name: data for name, data in before.items() if name not in changing and not name.startswith("leftover/")
        }
        assert {name: now[name] for name in kept} == kept
        before = now
    manifest = unseal(before[MANIFEST], "")
    assert manifest["corpora"][0]["skipped"] == 0
    assert manifest["corpora"][1]["skipped"] >= 10  # ids of the first shards are the same in both
    export(corpora[1], out, "torch", shard_tokens=SIZE)  # it is there already
    assert files_of(out) == before
    lines = "\n".join(text_lines(export_status(str(out))))
    assert "torch, complete" in lines and "left over for the next corpus, train" in lines


@pytest.mark.parametrize("moment", ["begun", "finished"])
def test_of_two_corpora_added_at_once_one_goes_on(
    corpora: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """As from two machines, where leases tell nothing: when both had seen that nobody adds a corpus, the other one has
    begun, or has finished and tidied. One is refused; the export is as if it had never been."""
    out, claim, met = tmp_path / "out", TokenExport._claim, []
    export(corpora[0], out, "torch", shard_tokens=SIZE)
    monkeypatch.setattr(Place, "at_work", lambda place: nullcontext())

    def add(number: int) -> None:
        export(corpora[number], out, "torch", shard_tokens=SIZE, append=True)

    def at_once(self: TokenExport, *arguments: Any) -> Any:
        if met:
            return claim(self, *arguments)
        met.append(moment)
        if moment == "finished":
            add(1)
            return claim(self, *arguments)
        claimed = claim(self, *arguments)
        with pytest.raises(RefineError, match=r"the corpus tiny \(fingerprint 2a2a.* is being written there; run its"):
            add(2)
        return claimed

    monkeypatch.setattr(TokenExport, "_claim", at_once)
    if moment == "finished":
        with pytest.raises(RefineError, match="a corpus was added by another command just now; run this one again"):
            add(2)
    else:
        add(1)
    check(out, corpora[:2])
    add(2)
    check(out, corpora)
    assert not any(name.startswith(WORK) for name in files_of(out))


@pytest.mark.parametrize("name", ["leftover/train-00000.pt", "provenance/train/00000-00000-of-00003.parquet"])
def test_a_file_that_the_next_corpus_needs_is_not_there(corpora: list[Path], tmp_path: Path, name: str) -> None:
    """Said before any job; with the file put back, the same command goes on."""
    out = tmp_path / "out"
    export(corpora[0], out, "torch", shard_tokens=SIZE)
    data = (out / name).read_bytes()
    for harm, message in ((None, "is missing"), (data[:-1], f"has {len(data) - 1} bytes, {len(data)} expected")):
        (out / name).unlink(missing_ok=True)
        if harm is not None:
            (out / name).write_bytes(harm)
        with pytest.raises(RefineError, match=f"{name} {message}: it holds .* Put it back from a copy of the export"):
            export(corpora[1], out, "torch", shard_tokens=SIZE, append=True)
    (out / name).write_bytes(data)
    export(corpora[1], out, "torch", shard_tokens=SIZE, append=True)
    check(out, corpora[:2])


def with_ids(root: Path, ids: Sequence[bytes], seed: int) -> Path:
    """A corpus of as many documents, two shards under another seed, whose ids are these."""
    halves = [[id_ for id_ in ids if hash64("order", seed, id_) >> 63 == half] for half in (0, 1)]
    root = build_corpus(root, {("train", "web"): [["again"] * len(half) for half in halves]}, fingerprint="4c" * 32)
    for number, half in enumerate(halves):
        path = root / f"train/web/shard-0000{number}-of-00002.provenance.parquet"
        table = pq.read_table(path)
        column = pa.array(sorted(half, key=lambda id_: hash64("order", seed, id_)), pa.binary(16))
        pq.write_table(table.set_column(0, table.schema.field(0), column), path)
    edit_manifest(root, lambda payload: payload["recipe"]["shards"].update(seed=seed))
    return root


def test_a_corpus_of_another_seed_is_compared_as_a_whole(corpora: list[Path], tmp_path: Path) -> None:
    """Regions of other orders do not match, so every earlier document may be in any of them."""
    ids = [document["id"] for document in in_order(corpora[0], "train") if document["domain"] == "web"]
    again = with_ids(tmp_path / "again", [*ids, b"a new document's"], 99)
    places = [(hash64("order", seed, id_) >> 63) for seed in (SEED, 99) for id_ in ids]
    assert places[: len(ids)] != places[len(ids) :]  # some are in another half
    out = tmp_path / "out"
    export(corpora[0], out, "torch", shard_tokens=SIZE)
    manifest = export(again, out, "torch", shard_tokens=SIZE, append=True)
    assert (manifest["corpora"][1]["documents"], manifest["corpora"][1]["skipped"]) == (1, len(ids))
    assert verify_export(str(out)).failures == []


def test_what_cannot_follow_is_refused(corpora: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    export(corpora[0], out, "torch", shard_tokens=SIZE)
    before = files_of(out)
    other = build_corpus(tmp_path / "other", FIRST, bos=None, fingerprint="5d" * 32)
    shares = build_corpus(tmp_path / "shares", FIRST, fingerprint="6e" * 32)
    edit_manifest(shares, lambda payload: payload["recipe"]["shards"].update(validation=0.5))
    for corpus, options, error, message in (
        (corpora[1], {"shard_tokens": SIZE}, RuntimeError, "holds an export of tiny; --append adds this corpus to it"),
        (corpora[1], {"shard_tokens": 65, "append": True}, RuntimeError, "holds another export"),
        (other, {"shard_tokens": SIZE, "append": True}, RuntimeError, "tokenizer is"),
        (shares, {"shard_tokens": SIZE, "append": True}, ValueError, "shards.validation: 0.5 in this corpus, 0.25"),
    ):
        with pytest.raises(error, match=message):
            export(corpus, out, "torch", **options)
    with pytest.raises(ValueError, match="--append: given with --format jsonl"):
        export(corpora[1], tmp_path / "text", "jsonl", append=True)
    assert files_of(out) == before


def test_a_corpus_that_is_half_there_comes_first(corpora: list[Path], tmp_path: Path) -> None:
    """A command that was cut off after counting: another corpus waits, the same one goes on, and status says so."""
    out, whole = tmp_path / "out", tmp_path / "whole"
    for place in (out, whole):
        export(corpora[0], place, "torch", shard_tokens=SIZE)
    finished = files_of(out)
    export(corpora[1], whole, "torch", shard_tokens=SIZE, append=True)
    checkpoint = unseal((whole / CHECKPOINT).read_bytes(), "")
    (out / CHECKPOINT).write_bytes(seal({**checkpoint, "state": "writing"}))
    with pytest.raises(RuntimeError, match=r"the corpus tiny \(fingerprint 2a2a2a2a2a2a…\) is being written there"):
        export(corpora[2], out, "torch", shard_tokens=SIZE, append=True)
    assert export_status(str(out)).state == "growing"
    assert {n: d for n, d in files_of(out).items() if n != CHECKPOINT} == {
        n: d for n, d in finished.items() if n != CHECKPOINT
    }
    export(corpora[1], out, "torch", shard_tokens=SIZE)  # what was begun with --append needs it no more
    assert files_of(out) == files_of(whole)


@pytest.mark.parametrize("where", ["train/web/shard-00000-of-00003.bin", "leftover"])
def test_damaged_tokens_are_not_exported(corpora: list[Path], tmp_path: Path, where: str) -> None:
    corpus = build_corpus(tmp_path / "corpus", FIRST)
    out = tmp_path / "out"
    if where == "leftover":
        export(corpus, out, "torch", shard_tokens=SIZE)
        path = next((out / "leftover").glob("train-*"))
        corpus = corpora[1]
    else:
        path = corpus / where
    data = bytearray(path.read_bytes())
    data[-len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(Exception, match="damaged"):
        export(corpus, out, "torch", shard_tokens=SIZE, append=where == "leftover")


@given(st.lists(st.integers(0, 40), min_size=1, max_size=8), st.integers(1, 30), st.integers(0, 5), st.data())
def test_every_shard_has_one_writer_that_reads_enough(
    tokens: list[int], size: int, shards: int, data: st.DataObject
) -> None:
    """Shards are numbered on, each is written once, and the regions of its task hold all of its tokens."""
    left = data.draw(st.integers(0, size - 1))
    plan = SplitPlan("train", len(tokens), shards, left, "", tuple(tokens))
    regions = [{"region": number} for number in range(len(tokens))]
    tasks = cut_shards(plan, size, regions, {"tokens": left} if left else None)
    end = shards * size + left + sum(tokens)
    assert [task["regions"][0]["region"] for task in tasks] == list(range(len(tokens)))
    assert [index for task in tasks for index in task["shards"]] == list(range(shards, end // size))
    rests = [task["leftover"] for task in tasks if task["leftover"]]
    assert rests == ([[end // size * size, end]] if end % size else [])
    position = shards * size + left
    for task, count in zip(tasks, tokens, strict=True):
        assert task["start"] == position
        read = position + sum(tokens[region["region"]] for region in task["regions"])
        wanted = [(index * size, index * size + size) for index in task["shards"]] + [
            tuple(task["leftover"] or (read, read))
        ]
        assert all(stop <= read for _, stop in wanted)
        first = min(start for start, _ in wanted)
        assert first >= (position - left if task["before"] else position)
        position += count


@given(st.integers(1, 50), st.integers(1, 50), st.integers(0, 2**64 - 1))
def test_a_region_overlaps_the_shards_of_all_its_keys(regions: int, count: int, order: int) -> None:
    assert order * count >> 64 in overlapping(order * regions >> 64, regions, count)
