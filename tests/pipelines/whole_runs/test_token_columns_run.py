"""Columns of tokens in a whole run: packed rows of files with chunks, cut at chunks first, and what verify says."""

import json
import re
import shutil
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from refinery.loader import PackedStream
from refinery.loader.format.chunk_kinds import CHUNK_KINDS
from refinery.loader.format.packed import STRUCTURE
from refinery.loader.read.corpus import Corpus
from refinery.pipelines.corpus.verify.verify import verify
from refinery.pipelines.recipe.checks import packed_rows
from refinery.pipelines.recipe.load_recipe import parse_recipe
from refinery.pipelines.run.refine import Refinement
from refinery.pipelines.runners.runner import Runner
from refinery.transforms.tokenize.chunk_notes import read_chunks
from refinery.transforms.tokenize.encode import check_tokenizer
from tests.corpus_factory import tokenizer_json
from tests.packed_factory import rewrite_packed
from tests.pipelines.small_runs import OFF
from tests.sampling import FILE_ON_ONE_COMMIT_IN_FOUR

pytestmark = FILE_ON_ONE_COMMIT_IN_FOUR

LENGTH, BUDGET = 256, 200
FILES, PLAIN = 30, 10
CHUNK = "refinery.transforms.code.chunk_stage:CHUNK"


def source_file(number: int) -> str:
    """C, of a few hundred bytes to a few thousand, with characters of several bytes."""
    parts = [f"#include <a{number}.h>\n\n/* fünf 😀 {number} */\n"]
    parts += [f"static int f{i}(int x) {{\n  return x * {number + i};  // é\n}}\n\n" for i in range(number * 7 % 40)]
    return "".join(parts)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("columns")
    rows = [json.dumps({"text": source_file(number), "path": f"src/{number}.c"}) + "\n" for number in range(FILES)]
    rows += [
        json.dumps({"text": f"plain text, mail someone{number}@example.org", "path": "notes.txt"}) + "\n"
        for number in range(PLAIN)
    ]
    (folder / "files.jsonl").write_text("".join(rows))
    (folder / "tokenizer.json").write_bytes(tokenizer_json())
    tokenizer = str(folder / "tokenizer.json")
    return {
        "name": "columns",
        "sources": [{"name": "files", "paths": [f"{folder}/files.jsonl"], "meta_fields": ["path"]}],
        "tokenizer": {"path": tokenizer, "bos": "<s>", "eos": "</s>"},
        "stages": [{"use": CHUNK, "after": "heuristics", "tokenizer": tokenizer, "budget": BUDGET}],
        "packed": {"length": LENGTH},
        "shards": {"target_bytes": 40_000, "validation": 0.1},
        **OFF,
        "pii": True,  # behind the chunks, against the rule: it changes the plain texts
    }


def refine(data: dict[str, Any], prefix: Path, workers: int = 0) -> Path:
    runner = Runner("local", workers=workers, quiet=True)
    Refinement(parse_recipe(data), str(prefix), runner, say=lambda line: None).run()
    return prefix


@pytest.fixture(scope="module")
def corpus(data: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return refine(data, tmp_path_factory.mktemp("corpus") / "out")


def documents(corpus: Path) -> dict[bytes, list[tuple[int, dict[str, Any]]]]:
    """The pieces of each document: its first token, and the columns of its places without a BOS that was put in."""
    found = defaultdict(list)
    for path in sorted((corpus / "packed").rglob("*.parquet")):
        for row in pq.read_table(path).to_pylist():
            docs = np.array(row["doc_ids"])
            for number, (id_, start) in enumerate(zip(row["document_ids"], row["document_starts"], strict=True)):
                places = np.flatnonzero(docs == number)[start > 0 :]
                columns = {name: np.array(row[name])[places] for name in ("input_ids", *STRUCTURE)}
                found[id_].append((start, columns))
    return {id_: sorted(pieces, key=lambda piece: piece[0]) for id_, pieces in found.items()}


def test_columns_are_those_of_the_files(corpus: Path) -> None:
    """Against the texts: the characters of each token are the token, and lie in the chunk that the note has there."""
    assert Corpus(str(corpus)).manifest.packed.structure == tuple(STRUCTURE)
    paths = sorted(corpus.rglob("*.provenance.parquet"))
    notes = {row["id"]: json.loads(row["meta"]) for path in paths for row in pq.read_table(path).to_pylist()}
    texts = {source_file(number).strip() for number in range(FILES)}
    seen = cut = 0
    for id_, pieces in documents(corpus).items():
        if (pieces[0][1]["chunk_id"] == -1).all():  # a plain text
            continue
        whole = {name: np.concatenate([columns[name] for _, columns in pieces]) for name in pieces[0][1]}
        ids = whole["input_ids"]
        assert (ids[0], ids[-1]) == (256, 257)
        assert all(whole[name][0] == whole[name][-1] == -1 for name in STRUCTURE)
        text = bytes(ids[1:-1].astype(np.uint8)).decode()  # a byte is a token
        chunks = read_chunks(notes[id_]["chunks"])
        inner = {name: whole[name][1:-1].tolist() for name in STRUCTURE}
        owners = [number for number, char in enumerate(text) for _ in char.encode()]
        assert inner["char_start"] == owners and inner["char_end"] == [place + 1 for place in owners]
        for place, chunk in zip(owners, inner["chunk_id"], strict=True):
            assert chunks[chunk].start <= place < chunks[chunk].end
        assert inner["chunk_kind"] == [CHUNK_KINDS.index(chunks[chunk].kind) for chunk in inner["chunk_id"]]
        assert inner["nesting_depth"] == [chunks[chunk].depth for chunk in inner["chunk_id"]]
        seen += text in texts
        for _, columns in pieces[1:]:  # the budget is below a row's length, so every cut is at a chunk
            assert columns["char_start"][0] == chunks[columns["chunk_id"][0]].start
            cut += 1
    assert seen == FILES and cut > 20


def test_verified_and_the_same_by_other_workers(corpus: Path, data: dict[str, Any], tmp_path: Path) -> None:
    assert verify(str(corpus)).failures == []
    again = refine(data, tmp_path / "again", workers=1)
    for path in (corpus / "packed").rglob("*.parquet"):
        assert path.read_bytes() == (again / path.relative_to(corpus)).read_bytes()


def pieces_of(table: pa.Table, number: int, edit: Callable[[str, np.ndarray], Any]) -> pa.Table:
    """Changes the columns of every document's pieces from the number-th of a row's tokens on, where they are known."""
    docs, starts = np.array(table["doc_ids"].to_pylist()), table["document_starts"].to_pylist()
    behind = np.array([[doc >= 0 and starts[row][doc] > 0 for doc in docs[row]] for row in range(len(docs))])
    chosen = behind if number else docs >= 0
    for name in STRUCTURE:
        values = np.array(table[name].to_pylist())
        values[chosen & (values >= 0)] = edit(name, values)[chosen & (values >= 0)]
        field = table.schema.field(name)
        place = table.schema.get_field_index(name)
        table = table.set_column(place, field, pa.array(values.tolist(), field.type))
    return table


@pytest.mark.parametrize(
    ("number", "edit", "message"),
    [
        (0, lambda name, v: v + name.startswith("char"), r"char_start: 1 found at token 1, 0 expected from its text"),
        (
            0,
            lambda name, v: np.minimum(v + (name == "nesting_depth"), 90),
            r"nesting_depth: 1 found at token 1, 0 expe",
        ),
        (0, lambda name, v: v + 9_000 * name.startswith("char"), r"char_end: beyond the end of the text"),
        (0, lambda name, v: v * 0 - 1, r"chunk_kind: -1 found at token 1, \d expected from its text"),
        (1, lambda name, v: v * 0 - 1, r"some of its pieces have columns, others none"),
        (1, lambda name, v: v * 0, r"char_start: it decreases from piece to piece"),
    ],
)
def test_lies(corpus: Path, tmp_path: Path, number: int, edit: Any, message: str) -> None:
    """Rows that are right each by itself, with every checksum: verify compares them with the text."""
    root = tmp_path / "out"
    shutil.copytree(corpus, root, ignore=shutil.ignore_patterns("work"))
    path = "packed/train/files/rows-00000-of-00001-00000.parquet"
    rewrite_packed(root, path, lambda table: pieces_of(table, number, edit))
    failures = verify(str(root), samples=50).failures
    assert re.search(rf"packed rows of document [0-9a-f]{{32}}: {message}", "\n".join(failures)), failures


def test_the_stream_has_them(corpus: Path) -> None:
    names = tuple(STRUCTURE)
    with_all = PackedStream(str(corpus), sequence_length=LENGTH, batch_size=4, epochs=1, columns=names, doc_ids=True)
    plain = PackedStream(str(corpus), sequence_length=LENGTH, batch_size=4, epochs=1)
    known = {tuple(r["input_ids"]): r for p in (corpus / "packed/train").rglob("*.parquet")
             for r in pq.read_table(p).to_pylist()}  # fmt: skip
    found = 0
    for batch, other in zip(with_all, plain, strict=True):
        assert (batch["input_ids"] == other["input_ids"]).all() and not set(STRUCTURE) & set(other)
        for i, ids in enumerate(batch["input_ids"].tolist()):
            row = known.get(tuple(ids), dict.fromkeys(names, [-1] * LENGTH))
            assert all(batch[name][i].tolist() == row[name] for name in names)
            found += tuple(ids) in known
        assert all((batch[name].shape, batch[name].dtype) == ((4, LENGTH), STRUCTURE[name]) for name in names)
    assert found == len(known)


def test_what_changes_the_text_behind_them_costs_the_columns(corpus: Path) -> None:
    """Those documents are counted, and have none; the others keep theirs."""
    row = next(row for row in Corpus(str(corpus)).manifest.funnel if row["stage"] == "encode")
    assert {group: found["documents"] for group, found in row["found"].items()} == {"no-columns-text-changed": PLAIN}
    lost = [pieces for pieces in documents(corpus).values() if all((c["chunk_id"] == -1).all() for _, c in pieces)]
    assert len(lost) == PLAIN


def test_nothing_is_declared_without_chunks(data: dict[str, Any]) -> None:
    """Without the stage, and where it makes documents of the chunks, rows are those without columns."""
    emit = [{**data["stages"][0], "emit": "chunks"}]
    for stages, names in (([], ()), (emit, ()), (data["stages"], tuple(STRUCTURE))):
        recipe = parse_recipe({**data, "stages": stages})
        packed = packed_rows(recipe, check_tokenizer(recipe.tokenizer))
        assert packed is not None and packed.structure == names
