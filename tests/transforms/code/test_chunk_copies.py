"""Copied functions and classes: found among kept files in any layout, cut out of all but the best, counted."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from refinery.pipelines.lanes.web import LANE as WEB
from refinery.pipelines.recipe.params import fingerprint
from refinery.pipelines.recipe.recipe import recipe_class
from refinery.pipelines.run.fingerprint import phase_fingerprints
from refinery.transforms.core.document import Document, Drop
from refinery.transforms.core.exchange.side_outputs import take_side_outputs
from refinery.transforms.dedup.chunk_copies.cut import CHUNK_COPIES, ChunkCopyParams, cut_chunk_copies, cut_constructs
from refinery.transforms.dedup.chunk_copies.hashes import VALUES, compared_hashes, hash_constructs
from refinery.transforms.dedup.cut_substrings import SPAN_CUTS, SUBSTRINGS, SubstringParams
from refinery.transforms.dedup.deduplicate import Deduplicate, DedupParams, WriteVerdicts, list_parts
from refinery.transforms.dedup.records.rank import RankParams, rank_key
from refinery.transforms.dedup.signatures import (
    SignatureParams,
    compute_signatures,
    shingle_hashes,
    signature_table,
)
from refinery.transforms.write.documents import documents_table
from refinery.transforms.write.kept_documents import PartPair, read_kept_documents
from tests.beam import make_document, run_and_collect
from tests.sampling import one_commit_in_four

RANK = RankParams(prefer="provenance")
SIGNATURE = SignatureParams(permutations=16, unit="code")
PARAMS = ChunkCopyParams(min_tokens=20, min_chars=0)
LAYOUTS = [(1, 1), (3, 1), (7, 4)]


def function(name: str, style: str = " ") -> str:
    return f"int {name}(int a) {{{style}if (a > 1) {{ return {name}_of(a - 1) * a; }}{style}return a;{style}}}\n"


def files() -> list[Document]:
    """Files that share functions f0 to f9, between functions of their own; some in folders of other people's code."""
    rng = random.Random(3)
    docs = []
    for number in range(30):
        shared = [function(f"f{i}", rng.choice([" ", "\n  "])) for i in rng.sample(range(10), rng.choice([0, 1, 3]))]
        own = [function(f"own{number}_{i}") for i in range(4)]
        pieces = ["#include <a>\n", *rng.sample([*shared, *own], len(shared) + 4), f"int variable_{number};\n"]
        path = rng.choice(["third_party/x", "src", "src/deep"]) + f"/{number}.c"
        docs.append(make_document("\n".join(pieces), f"o{number}", source="web", meta={"path": path}))
    return [*docs, replace(docs[0], origin="again")]  # an equal file: it is removed as a whole


def decide(
    folder: Path, layout: Sequence[Sequence[Document]], partitions: int, chunks: ChunkCopyParams
) -> list[Document]:
    """The documents that are kept, with what is to be cut in their meta."""
    parts = []
    for name in ("documents", "signatures"):
        (folder / name).mkdir(parents=True)
    for number, docs in enumerate(layout):
        table = signature_table(
            ids=[doc.id for doc in docs],
            ranks=[rank_key(doc, 0, RANK) for doc in docs],
            sources=[doc.source for doc in docs],
            domains=[doc.source for doc in docs],
            sizes=[len(doc.text.encode()) for doc in docs],
            signatures=compute_signatures([doc.text for doc in docs], SIGNATURE),
            more={"constructs": hash_constructs(docs)},
        )
        url = f"{folder}/signatures/part-{number}.parquet"
        pq.write_table(table, url, row_group_size=3)
        pq.write_table(documents_table(list(docs)), f"{folder}/documents/part-{number}.parquet")
        parts.append((url, len(docs)))
    lists = list_parts(str(folder), parts)

    def build(pipeline):
        chosen = DedupParams(near=None, cutting=((CHUNK_COPIES, chunks),))
        decided = Deduplicate(chosen, SIGNATURE, ("web",), lists, partitions, salt="salt")
        packed = pipeline | decided
        packed | WriteVerdicts(str(folder), ("web",))
        return [packed, *take_side_outputs(pipeline)]

    run_and_collect(build)
    return [doc for number in range(len(layout)) for doc in kept_of(str(folder), f"part-{number}.parquet")]


def kept_of(folder: str, name: str) -> Iterator[Document]:
    if pq.read_metadata(f"{folder}/documents/{name}").num_rows:
        pair = PartPair(folder, f"documents/{name}", folder, f"verdicts/{name}", 1)
        yield from read_kept_documents(pair, 0, (SPAN_CUTS,))


@one_commit_in_four
@pytest.mark.parametrize(("parts", "partitions"), LAYOUTS)
def test_every_shared_function_stays_once_where_rank_says(tmp_path: Path, parts: int, partitions: int) -> None:
    docs = files()
    layout: list[list[Document]] = [[] for _ in range(parts)]
    for doc in random.Random(parts).sample(docs, len(docs)):
        layout[random.Random(doc.origin).randrange(parts)].append(doc)
    kept = decide(tmp_path, layout, partitions, PARAMS)
    after = {doc.origin: cut_chunk_copies(doc, PARAMS) for doc in kept}
    ranked = sorted(kept, key=lambda doc: (rank_key(doc, 0, RANK), doc.id))
    assert len(kept) == 30
    for name in [f"f{i}(" for i in range(10)]:
        holders = [doc for doc in ranked if name in doc.text]
        left = [doc.origin for doc in ranked if name in answer(after[doc.origin]).text]
        assert left == [doc.origin for doc in holders[:1]]
        assert "third_party" not in str(holders[0].meta["path"]) or all("third" in str(d.meta["path"]) for d in holders)
    for doc in kept:
        text = answer(after[doc.origin]).text
        assert text.count(" own") == doc.text.count(" own")  # functions of its own, calls and all
        assert text.count("variable_") == text.count("#include") == 1
        gone = sum(doc.text.count(f" f{i}(") - text.count(f" f{i}(") for i in range(10))
        assert answer(after[doc.origin]).meta.get("chunks_cut", 0) == gone


def answer(result: Document | Drop) -> Document:
    assert isinstance(result, Document)
    return result


def test_short_functions_and_members_stay(tmp_path: Path) -> None:
    member = "  int m(int a) { return a + a + a + a + a + a + a + a + a + a + a + a; }\n"
    one = f"int s() {{ return 1; }}\nclass A{{\n{member}}};\n"
    docs = [make_document(f"{one}int x{i};\n".replace("A{", f"A{i} {{"), f"o{i}", source="web", meta={"path": "a.cc"})
            for i in range(3)]  # fmt: skip
    assert all("cut_substrings" not in doc.meta for doc in decide(tmp_path, [docs], 1, PARAMS))


@pytest.mark.parametrize(
    ("text", "spans", "left"),
    [
        ("a\n\nF\n\nb\n", [(3, 5)], "a\n\nb\n"),
        ("F\n\nb\n", [(0, 2)], "b\n"),
        ("a\nF\nb\n", [(2, 4)], "a\nb\n"),
        ("a\n\nF\n\nG\n\nb\n", [(3, 5), (6, 8)], "a\n\nb\n"),
        ("a F b", [(2, 3)], "a  b"),
        ("F\n", [(0, 2)], ""),
    ],
)
def test_cuts_leave_one_blank_line(text: str, spans: list[tuple[int, int]], left: str) -> None:
    assert cut_constructs(text, spans) == left


def test_a_file_with_too_little_left_is_dropped() -> None:
    doc = make_document("a" * 100 + "b" * 100, meta={"cut_substrings": "0-101"})
    assert cut_chunk_copies(doc, ChunkCopyParams()) == Drop("too-little-left")
    left = cut_chunk_copies(doc, ChunkCopyParams(min_chars=99))
    assert (answer(left).text, dict(answer(left).meta)) == ("b" * 99, {"chunks_cut": 1, "chars_cut": 101})
    whole = make_document("x")
    assert cut_chunk_copies(whole, ChunkCopyParams()) is whole


def test_a_recipe_has_the_section_where_its_lane_has_the_stage(tmp_path: Path) -> None:
    stages = tuple(CHUNK_COPIES if stage is SUBSTRINGS else stage for stage in WEB.shards)
    data = {"name": "x", "sources": [{"name": "s", "paths": ["x"]}], "tokenizer": {"path": str(tmp_path / "t")}}
    (tmp_path / "t").write_text("{}")
    off = {"url": None, "language": None, "quality": None, "decontaminate": None, "perplexity": None}
    recipe = recipe_class(replace(WEB, name="tried", shards=stages))(**data, **off)
    assert recipe.cutting() == recipe_class(WEB)(**data).cutting() == ()
    on = recipe.replace(chunk_dup=ChunkCopyParams())
    other = recipe.replace(chunk_dup=ChunkCopyParams(min_tokens=60))
    assert on.cutting() == ((CHUNK_COPIES, ChunkCopyParams()),)
    prints = [phase_fingerprints(each, []) for each in (recipe, on, other)]
    assert len({fingerprint(each) for each in prints}) == 3
    assert prints[1]["clean"] == prints[2]["clean"] != prints[0]["clean"]  # which are cut is decided later
    assert prints[1]["dedup"] != prints[2]["dedup"]
    with pytest.raises(ValueError, match="substring_dup: on given, the lane tried has no such stage"):
        on.replace(substring_dup=SubstringParams())


def test_a_name_with_the_hash_of_another_makes_no_copy() -> None:
    """Anybody finds names with equal 32-bit hashes: a function with the one is no copy of the other's."""
    names = [f"n{number}" for number in range(200_000)]
    tokens = shingle_hashes(" ".join(names), SignatureParams(ngram=1, unit="code"))
    order = np.argsort(tokens, kind="stable")
    (at, *_) = np.flatnonzero(tokens[order][1:] == tokens[order][:-1]).tolist()
    name, twin = names[order[at]], names[order[at + 1]]
    assert name != twin
    docs = [make_document(function(each), each, source="web", meta={"path": "a.c"}) for each in (name, twin)]
    docs.append(replace(docs[0], text=function(name, "\n    "), origin="again"))  # its layout does not matter
    values = hash_constructs(docs).values.to_numpy().reshape(-1, VALUES)
    for key in (b"", b"one", b"another"):
        one, other, again = compared_hashes(values, key).tolist()
        assert one == again != other
        assert one % 2 == other % 2 == 0
