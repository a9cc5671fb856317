"""Texts of a tokenizer that does not give them back come from the work files, and are those that were encoded."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import sentencepiece
import yaml

from refinery.pipelines.corpus.checks.verify_export import verify_export
from refinery.pipelines.corpus.export.recompute import RecomputedTexts
from refinery.pipelines.corpus.export.rows import TextDiffers
from refinery.pipelines.corpus.verify.verify import verify
from refinery.transforms.tokenize.load_tokenizer import load_tokenizer
from refinery.transforms.write.targets import slice_of
from tests.pipelines.corpus.export.exporting import corpus_shards, export, read_jsonl
from tests.pipelines.inputs import refine
from tests.pipelines.small_runs import make_small_inputs, text_of
from tests.sampling import FILE_ON_ONE_COMMIT_IN_FOUR
from tests.shared import shared

pytestmark = FILE_ON_ONE_COMMIT_IN_FOUR

MAIL = "Mail me at jane.doe@example.org  please, now.\n\nBye ﬁ①"  # normalised by NFKC, two spaces become one
CLEAN = "Mail me at <EMAIL>  please, now.\n\nBye ﬁ①"


def make(folder: Path) -> None:
    """Two corpora of the same documents: with a tokenizer that loses nothing, and with one that normalises."""
    make_small_inputs(folder)
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([text_of(number) for number in range(200)]),
        model_prefix=str(folder / "lossy"),
        vocab_size=330,
        model_type="bpe",
        byte_fallback=True,
        normalization_rule_name="nmt_nfkc",
        minloglevel=2,
    )
    texts = [MAIL, "copy of a text that is there twice", "copy of a text that is there twice", "two  spaces   here"]
    (folder / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    recipe: dict[str, Any] = yaml.safe_load((folder / "recipe.yaml").read_text())
    recipe |= {"pii": True, "exact_dup": False, "shards": {"validation": 0.3, "target_bytes": 400}}
    for name, tokenizer in (("lossless", "tokenizer.json"), ("lossy", "lossy.model"), ("target", "lossy.model")):
        if name == "target":
            recipe["sources"][0]["target"] = 200
        recipe["tokenizer"] = {"path": str(folder / tokenizer)}
        (folder / "recipe.yaml").write_text(yaml.safe_dump(recipe))
        refine(folder, folder / name, "--workers", 0)


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shared(tmp_path_factory, "texts-of-tokenizers", make)


def texts(out: Path) -> list[tuple[str, ...]]:
    """(id, origin, text) of every document, in the order of the files."""
    return [
        tuple(row[name] for name in ("id", "origin", "text"))
        for path in sorted(out.rglob("*.jsonl"))
        for row in read_jsonl(path)
    ]


def texts_of(corpus: Path, out: Path) -> list[tuple[str, ...]]:
    export(corpus, out, "jsonl", compression="none")
    return texts(out)


def test_both_ways_give_the_same_text(corpora: Path, tmp_path: Path) -> None:
    """Decoded where nothing is lost, made again where something is; redacted, in the order of the shards."""
    for name in ("lossless", "lossy"):
        export(corpora / name, tmp_path / name, "jsonl", compression="none")
        assert verify_export(str(tmp_path / name)).failures == []
    found = texts(tmp_path / "lossy")
    assert found == texts(tmp_path / "lossless")
    assert CLEAN in [text for _, _, text in found]
    assert len({id_ for id_, _, _ in found}) == len(found) - 1  # the copy is there twice
    tokenizer = load_tokenizer(str(corpora / "lossy.model"))
    assert not tokenizer.lossless and tokenizer.decode(tokenizer.encode(CLEAN)) != CLEAN
    ids = [d["input_ids"] for _, documents in corpus_shards(corpora / "lossy") for d in documents]
    for (_, _, text), tokens in zip(found, ids, strict=True):
        assert tokenizer.encode(text).tolist() == [
            t for t in tokens if t not in (tokenizer.bos_id(), tokenizer.eos_id())
        ]


def test_documents_beyond_a_target_are_passed_over(corpora: Path, tmp_path: Path) -> None:
    everything, kept = (
        sorted((d["id"], d["origin"]) for _, documents in corpus_shards(corpora / name) for d in documents)
        for name in ("lossy", "target")
    )
    assert 0 < len(kept) < len(everything)
    export(corpora / "target", tmp_path / "out", "jsonl", compression="none")
    assert verify_export(str(tmp_path / "out")).failures == []
    assert verify(str(corpora / "target")).failures == []  # its tokens are within the target, too
    found = texts(tmp_path / "out")
    assert sorted((bytes.fromhex(id_), origin) for id_, origin, _ in found) == kept
    assert set(found) < set(texts_of(corpora / "lossy", tmp_path / "all"))


def test_a_document_within_the_target_is_missed() -> None:
    """Whatever is cut has a later slice than all that is kept; one that has not was lost."""
    ids = sorted((bytes([k]) * 16 for k in range(4)), key=slice_of)
    columns = {"id": ids, "source": ["s"] * 4, "origin": ["o"] * 4, "tokens": [b"text", b" ", b"text", b"text"]}
    for kept, lost in ((ids[:1], False), ([], False), (ids[2:3], True), (ids[3:], True)):
        found = RecomputedTexts(pa.table(columns), Words(), frozenset({"s"}))  # type: ignore[arg-type]
        for id_ in kept:
            found.text(id_, "s", "o", [])
        if lost:
            with pytest.raises(TextDiffers, match=f"{ids[0].hex()} of the work files is not in the corpus"):
                found.finish()
        else:
            found.finish()


def test_without_the_work_files_it_says_what_is_missing(corpora: Path, tmp_path: Path) -> None:
    with pytest.raises(
        RuntimeError,
        match="the parts of the phase clean are not there; they are needed because the tokenizer of this corpus",
    ):
        export_elsewhere(corpora / "lossy", tmp_path)
    model = corpora / "lossy.model"
    good = model.read_bytes()
    moved = model.rename(tmp_path / "moved")
    try:
        with pytest.raises(ValueError, match=r"lossy\.model: cannot be read"):
            export(corpora / "lossy", tmp_path / "out", "jsonl")
    finally:
        moved.rename(model)
    assert model.read_bytes() == good


def export_elsewhere(corpus: Path, folder: Path) -> None:
    from refinery.pipelines.corpus.export.export import export_corpus
    from refinery.pipelines.corpus.export.options import ExportOptions
    from refinery.pipelines.runners.runner import Runner

    with Runner("local", 0, quiet=True).open() as runner:
        export_corpus(corpus, folder / "out", ExportOptions("jsonl"), runner, work=str(folder / "nowhere"))


class Words:
    """A tokenizer that knows nothing but the number of words."""

    def encode(self, text: str) -> list[str]:
        return text.split()


def test_documents_that_do_not_match_are_named() -> None:
    rows = [(b"a" * 16, "s", "o@1", b" "), (b"b" * 16, "s", "o@2", b"text")]
    table = pa.table({name: [row[k] for row in rows] for k, name in enumerate(("id", "source", "origin", "tokens"))})

    def fresh() -> RecomputedTexts:
        return RecomputedTexts(table, Words())  # type: ignore[arg-type]

    assert fresh().text(b"b" * 16, "s", "o@2", []) == "text"  # the first encodes to nothing, and is passed over
    with pytest.raises(TextDiffers, match=r"6262.* of the work files is not in the corpus"):
        fresh().finish()
    with pytest.raises(TextDiffers, match=r"6262.* of the work files is not in the corpus"):
        fresh().text(b"c" * 16, "s", "o@3", [])
    found = fresh()
    found.text(b"b" * 16, "s", "o@2", [])
    with pytest.raises(TextDiffers, match=r"6262.* of the corpus is not among those of its work files"):
        found.text(b"b" * 16, "s", "o@2", [])
