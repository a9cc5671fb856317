import pickle
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.core.document import Document, Drop
from refinery.transforms.tokenize.encode import (
    ENCODE,
    EncodedDocument,
    TokenizerInfo,
    TokenizerParams,
    check_tokenizer,
    encode_document,
    load_encoder,
)
from refinery.transforms.tokenize.load_tokenizer import load_tokenizer
from refinery.transforms.tokenize.tokenizer import check_ids
from tests.beam import make_document, run_and_collect
from tests.transforms.tokenizer_files import END, added, byte_level_spec, sentencepiece_model, write

HELLO = [("h", "e"), ("l", "l"), ("he", "ll"), ("hell", "o"), ("Ġ", "w")]


@pytest.fixture
def path(tmp_path: Path) -> str:
    return write(tmp_path / "tokenizer.json", byte_level_spec(HELLO))


@pytest.fixture(scope="module")
def model_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("sp") / "tiny.model"
    file.write_bytes(sentencepiece_model(user_defined_symbols=["<im>", "\n\n"]))
    return str(file)


def encoded_with(params: TokenizerParams, doc: Document) -> EncodedDocument | Drop:
    return encode_document(doc, load_encoder(params), params)


def test_document_becomes_tokens_with_eos(path: str) -> None:
    doc = make_document("hello wé", url="http://x/", meta={"language": "en"})
    encoded = encoded_with(TokenizerParams(path=path), doc)
    assert isinstance(encoded, EncodedDocument)
    tokenizer = load_tokenizer(path)
    hello, space_w = tokenizer.token_id("hello"), tokenizer.token_id("Ġw")
    assert encoded.tokens.tolist() == [hello, space_w, 1 + 0xC3, 1 + 0xA9, 0]
    assert encoded.tokens.dtype == np.uint16
    assert (encoded.id, encoded.url, encoded.source, encoded.origin) == (doc.id, doc.url, doc.source, doc.origin)
    assert encoded.meta == {"language": "en"}
    assert encoded.text_bytes == 9


@pytest.mark.parametrize(
    ("bos", "eos", "ends"),
    [
        (None, None, ([], [])),
        (None, "auto", ([], [0])),
        (END, "auto", ([0], [0])),
        ("hello", None, ([260], [])),
        ("hello", "ll", ([260], [258])),
    ],
)
def test_bos_and_eos(path: str, bos: str | None, eos: str | None, ends: tuple[list[int], list[int]]) -> None:
    encoded = encoded_with(TokenizerParams(path=path, bos=bos, eos=eos), make_document("a"))
    assert isinstance(encoded, EncodedDocument)
    assert encoded.tokens.tolist() == [*ends[0], 1 + ord("a"), *ends[1]]


def test_large_vocabularies_take_int32(tmp_path: Path) -> None:
    spec = byte_level_spec(HELLO)
    spec["model"]["vocab"]["rare"] = 65_500
    path = write(tmp_path / "large.json", spec)
    assert check_tokenizer(TokenizerParams(path=path)).vocab_size == 65_501
    encoded = encoded_with(TokenizerParams(path=path), make_document("hello"))
    assert isinstance(encoded, EncodedDocument)
    assert encoded.tokens.dtype == np.int32


def test_facts_of_both_kinds(path: str, model_path: str) -> None:
    assert check_tokenizer(TokenizerParams(path=path)) == TokenizerInfo(262, None, 0, "byte-level-bpe", True)
    assert check_tokenizer(TokenizerParams(path=model_path, bos="auto")) == TokenizerInfo(
        320, 1, 2, "sentencepiece", False
    )


def test_auto_finds_well_known_names_among_added_tokens(tmp_path: Path) -> None:
    spec = byte_level_spec([], added_tokens=[added(257, "<|begin_of_text|>"), added(258, "<|end_of_text|>")])
    info = check_tokenizer(TokenizerParams(path=write(tmp_path / "t.json", spec), bos="auto"))
    assert (info.vocab_size, info.bos_id, info.eos_id) == (259, 257, 258)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("missing.json", None, "path: '{path}' given, which cannot be read (No such file or directory)"),
        ("t.txt", b"{}", "path: '{path}' given, a tokenizer.json, a SentencePiece .model or"),
        (
            "junk.json",
            b"\xff\x00{",
            "path: '{path}' given, which is not a usable tokenizer (no JSON: UnicodeDecodeError)",
        ),
        (
            "deep.json",
            b"[" * 100_000,
            "path: '{path}' given, which is not a usable tokenizer (no JSON: RecursionError)",
        ),
        (
            "list.json",
            b"[]",
            "path: '{path}' given, which is not a usable tokenizer (not a tokenizer.json: it has no model)",
        ),
        ("half.json", b'{"model": {"type": "BPE"}}', "path: '{path}' given, which is not a usable tokenizer ("),
        (
            "odd.json",
            b'{"model": {"type": 3}, "added_tokens": 7}',
            "path: '{path}' given, which is not a usable tokenizer (",
        ),
        (
            "junk.model",
            b"junk" * 99,
            "path: '{path}' given, which is not a usable tokenizer (not a SentencePiece model",
        ),
        ("empty.model", b"", "path: '{path}' given, which is not a usable tokenizer (not a SentencePiece model"),
    ],
)
def test_unusable_files_are_one_line(tmp_path: Path, name: str, content: bytes | None, message: str) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ValueError) as error:
        check_tokenizer(TokenizerParams(path=str(path)))
    assert str(error.value).startswith(message.replace("{path}", str(path)))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"eos": "</s>"}, "eos: '</s>' given, which is not a token of it; a token's name or null is allowed"),
        ({"bos": "auto"}, "bos: auto given, but the tokenizer names none; a token's name or null is allowed"),
    ],
)
def test_unknown_boundaries_are_one_line(path: str, params: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as error:
        check_tokenizer(TokenizerParams(path=path, **params))
    assert str(error.value) == message


@pytest.mark.parametrize("field", ["path", "bos", "eos"])
def test_empty_parameters_are_refused(field: str) -> None:
    with pytest.raises(ValueError, match=rf"^{field}: '' \(empty text\) given, text that is not empty"):
        TokenizerParams(**{"path": "x.json", field: ""})


def test_empty_text_is_dropped_and_surrogates_fail(path: str, model_path: str) -> None:
    for each in (path, model_path):
        params = TokenizerParams(path=each)
        assert encoded_with(params, make_document("")) == Drop("no-tokens")
        with pytest.raises(UnicodeEncodeError):
            load_encoder(params).tokenizer.encode("a\ud800b")


@given(st.text())
def test_sentencepiece_ids_stay_in_the_vocabulary(model_path: str, text: str) -> None:
    tokenizer = load_tokenizer(model_path)
    ids = tokenizer.encode(text)
    assert ids.dtype == np.uint32
    assert (ids < tokenizer.vocab_size).all()


@pytest.mark.parametrize("name", ["<s>", "</s>", "<unk>", "<im>", "<0x0A>"])
def test_sentencepiece_names_in_text_are_text(model_path: str, name: str) -> None:
    tokenizer = load_tokenizer(model_path)
    id_ = tokenizer.token_id(name)
    assert id_ is not None
    for text in (name, f"a{name}b", f" {name} {name}"):
        assert id_ not in tokenizer.encode(text)


def test_sentencepiece_whitespace_symbols_are_text(model_path: str) -> None:
    tokenizer = load_tokenizer(model_path)
    assert tokenizer.token_id("\n\n") in tokenizer.encode("a\n\nb")
    assert tokenizer.decode(tokenizer.encode("the cat\n\nsat")) == "the cat\n\nsat"


def test_ids_outside_the_vocabulary_are_refused(path: str, model_path: str) -> None:
    for each in (path, model_path):
        tokenizer = load_tokenizer(each)
        for wrong in ([tokenizer.vocab_size], [-1], [0, 2**40]):
            with pytest.raises(ValueError, match="is allowed"):
                tokenizer.decode(wrong)
        assert tokenizer.decode([]) == ""
    assert check_ids([1, 2], 3).tolist() == [1, 2]


def test_a_pipeline_encodes_and_counts(path: str) -> None:
    docs = [make_document("hello", "f@0"), make_document("", "f@1"), make_document("hello w", "f@2")]
    [encoded] = run_and_collect(lambda p: [p | beam.Create(docs) | ENCODE(TokenizerParams(path=path))])
    assert sorted(doc.tokens.tolist() for doc in encoded) == [[260, 0], [260, 261, 0]]


def test_parameters_and_transform_pickle(path: str) -> None:
    params = TokenizerParams(path=path)
    assert pickle.loads(pickle.dumps(params)) == params  # noqa: S301
    again = pickle.loads(pickle.dumps(ENCODE(params)))  # noqa: S301
    assert again.judge.keywords == {"params": params} and again.prepare.args == (params,)
