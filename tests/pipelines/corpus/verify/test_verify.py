import random
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from refinery.loader.format.manifest import MANIFEST, RUN, seal, unseal
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.corpus.checks.texts import check_text
from refinery.pipelines.corpus.verify.pieces import sample_rows
from refinery.pipelines.corpus.verify.verify import verify
from refinery.pipelines.corpus.verify.whole import Report
from tests.corpus_factory import (
    EOS,
    TEXTS,
    TOKENIZER,
    VOCABULARY,
    ByteTokenizer,
    build_corpus,
    edit_manifest,
    encode,
)
from tests.fake_gcs import fake_gcs
from tests.pipelines.corpus.verify.test_verify_faults import patch_tokens, put, rewrite
from tests.sampling import scaled

WEB0, WEB1 = (f"train/web/shard-0000{i}-of-00003" for i in range(2))
CODE = "train/code/shard-00000-of-00001"


def load_bytes(path: str) -> Any:
    return ByteTokenizer()


def check(root: Path, **options: Any) -> Report:
    options.setdefault("load", load_bytes)
    return verify(str(root), **options)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return build_corpus(tmp_path / "corpus")


def test_good_corpus(corpus: Path) -> None:
    report = check(corpus)
    assert report.failures == []
    texts = [text for shards in TEXTS.values() for shard in shards for text in shard]
    assert report.documents == report.decoded == len(texts)
    assert report.tokens == sum(len(encode(text)) for text in texts)
    assert (report.shards, report.files) == (5, 1 + 4 + 15 + 4)
    assert report.summary_lines()[-1] == "all checks passed"
    assert report.read_lines()[2] == 'the first document begins: "one fine day"'
    assert check(corpus, decode=False).decoded == check(corpus, samples=0).decoded == 0


def test_the_beginning_is_cut_and_cannot_write_on_a_terminal(tmp_path: Path) -> None:
    """Sixty-four tokens, here bytes; a sign that is cut is U+FFFD."""
    texts = {("train", "web"): [["é\n\x1b[2J" + "a" * 56 + "é and the rest"]]}
    report = check(build_corpus(tmp_path / "corpus", texts=texts))
    assert report.failures == []
    assert report.beginning == "é\n\x1b[2J" + "a" * 56 + "\ufffd"
    assert report.read_lines()[2].startswith('the first document begins: "é\\n\\u001b[2Jaaa')


def test_good_corpus_with_the_real_tokenizer(corpus: Path) -> None:
    report = verify(str(corpus))
    assert report.failures == []
    assert report.decoded == 9


@pytest.mark.parametrize(
    "options", [{"bos": None}, {"eos": None}, {"bos": None, "eos": None}, {"bos": EOS}, {"vocab_size": 70_000}], ids=str
)
def test_other_good_corpora(tmp_path: Path, options: dict[str, Any]) -> None:
    """Without BOS or EOS (an empty document is then no failure), with the same id for both, and as int32."""
    tokenizer = ByteTokenizer()
    tokenizer.vocab_size = options.get("vocab_size", VOCABULARY)
    assert check(build_corpus(tmp_path, **options), load=lambda path: tokenizer).failures == []


def test_corpus_without_documents(tmp_path: Path) -> None:
    assert check(build_corpus(tmp_path / "a", {("train", "web"): [[]]})).failures == []
    assert check(build_corpus(tmp_path / "b", {})).failures == []


def test_corpus_on_gcs(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    local = open_store(corpus)
    with fake_gcs("bucket") as server:
        server.use(monkeypatch)
        for name in local.list():
            server.put("bucket", f"a/b/{name}", local.read(name))
        assert verify("gs://bucket/a/b", load=load_bytes).failures == []
        del server.objects["bucket", f"a/b/{WEB0}.idx"]
        failures = verify("gs://bucket/a/b", load=load_bytes).failures
        assert any(f"{WEB0}.idx: missing" in failure for failure in failures)


def test_tokenizer_that_cannot_be_loaded(corpus: Path) -> None:
    put(TOKENIZER, b"{}", reseal=True)(corpus)
    (failure,) = verify(str(corpus)).failures
    assert failure.startswith(f"{TOKENIZER}: ValueError: ")


def test_shifted_document_without_special_ids(tmp_path: Path) -> None:
    """What no count can see, decoding does: other bytes of the same number, cut inside a character."""
    corpus = build_corpus(tmp_path, {("train", "web"): [["äb"]]}, bos=None, eos=None)
    name = "train/web/shard-00000-of-00001"
    rewrite(corpus, name, [encode("äb", None, None)[::-1]])
    edit_manifest(corpus)
    assert any("document 0" in failure for failure in check(corpus).failures)
    assert check(corpus, decode=False).failures == []


def test_faults_do_not_hide_each_other(corpus: Path) -> None:
    (corpus / RUN).unlink()
    (corpus / f"{WEB0}.bin").unlink()
    put(f"{WEB1}.idx", b"junk")(corpus)
    put(f"{CODE}.provenance.parquet", b"junk")(corpus)
    put("validation/web/shard-00009-of-00010.bin", b"")(corpus)
    found = "\n".join(check(corpus).failures)
    for name in (RUN, f"{WEB0}.bin", f"{WEB1}.idx", f"{CODE}.provenance", "validation/web/shard-00009-of-00010.bin"):
        assert name in found


def test_one_flipped_bit_in_any_file(corpus: Path) -> None:
    rng = random.Random(7)
    for path in sorted(p for p in corpus.rglob("*") if p.is_file() and p.stat().st_size):
        whole = path.read_bytes()
        for _ in range(scaled(3, 1)):
            damaged = bytearray(whole)
            at = rng.randrange(len(whole) * 8)
            damaged[at // 8] ^= 1 << at % 8
            path.write_bytes(damaged)
            name = path.relative_to(corpus).as_posix()
            assert any(name in failure for failure in check(corpus).failures), (name, at)
        path.write_bytes(whole)
    assert check(corpus).failures == []


@pytest.mark.parametrize("prefix", ["", "s3://bucket/x", "gs://", "/nonexistent/place", "a\0b"])
def test_prefix_that_is_no_corpus(prefix: str) -> None:
    assert len(verify(prefix).failures) == 1


def test_prefix_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"")
    assert "x is not a corpus" in verify(str(tmp_path / "x")).failures[0]


def test_manifest_that_is_hostile(corpus: Path) -> None:
    payload = unseal((corpus / MANIFEST).read_bytes(), "")
    for junk in (b"\xff" * 100, b"[" * 100_000, seal({}), seal(payload | {"domains": [[]]})):
        (corpus / MANIFEST).write_bytes(junk)
        assert len(check(corpus).failures) == 1


def test_names_that_a_terminal_must_not_see(corpus: Path) -> None:
    put("train/web/a\n\x1b[2J\udcff.bin", b"")(corpus)
    lines = check(corpus).summary_lines()
    assert lines[-2:] == [r"train/web/a\n\x1b[2J\udcff.bin: not in manifest.json", "1 failure"]


def test_tokenizer_that_raises(corpus: Path) -> None:
    class Broken(ByteTokenizer):
        def decode(self, ids: Any) -> str:
            raise RuntimeError("no such id")

    def fail(path: str) -> Any:
        raise RuntimeError("no such model")

    assert any("RuntimeError: no such id" in failure for failure in check(corpus, load=lambda path: Broken()).failures)
    assert check(corpus, load=fail).failures == [f"{TOKENIZER}: RuntimeError: no such model"]


class FoldingTokenizer(ByteTokenizer):
    """Lossy like SentencePiece: lower case, no outer space, NULs vanish, and "?" stands for the unknown."""

    lossless = False

    def encode(self, text: str) -> np.ndarray:
        return super().encode(text.lower().strip())

    def decode(self, ids: Any) -> str:
        return super().decode(ids).replace("\0", "").replace("?", "\u2047")


@pytest.mark.parametrize(
    ("text", "size", "problem"),
    [
        ("plain", 9, ""),
        ("", 1, ""),
        ("\0", 1, ""),
        ("what?", 5, ""),
        ("UPPER", 5, "encodes to tokens of another text"),
        ("\0\0\0", 3, "decodes to an empty text, 3 bytes expected"),
        ("\0a", 3, ""),
    ],
)
def test_lossy_read_back(text: str, size: int, problem: str) -> None:
    ids = ByteTokenizer().encode(text)
    found = check_text(FoldingTokenizer(), threading.Lock(), ids, size)  # type: ignore[arg-type]
    assert (problem in found) if problem else found == ""


def test_samples_are_the_same_every_time() -> None:
    assert sample_rows("f", "train/web/x.bin", 1000, 4) == sample_rows("f", "train/web/x.bin", 1000, 4)
    assert sample_rows("f", "train/web/x.bin", 3, 8) == [0, 1, 2]
    assert sample_rows("f", "train/web/x.bin", 0, 8) == []
    assert len(sample_rows("f", "x", 2**62, 8)) == 8
    assert sample_rows("f", "x", 1000, 8) != sample_rows("f", "y", 1000, 8)


def test_chunks_of_any_size_give_the_same_answer(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """BOS and EOS at the borders of what is read at once."""
    patch_tokens(WEB0, 14, 1)(corpus)
    patch_tokens(WEB1, 3, EOS + 1)(corpus)
    expected = check(corpus, samples=0).failures
    assert len(expected) == 2
    for size in (2, 4, 14, 26, 28, 30, 78):
        monkeypatch.setattr("refinery.pipelines.corpus.checks.file_checks.CHUNK", size)
        assert check(corpus, samples=0).failures == expected
