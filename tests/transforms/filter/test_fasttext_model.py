"""The kernel finds what fastText finds, to the bit, for every kind of model; damaged files are refused, not read."""

import struct
from itertools import product
from pathlib import Path
from typing import Any

import fasttext
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refinery.transforms.filter.fasttext_model import OriginalModel, load_model, open_model
from refinery.transforms.filter.language import bundled_model
from refinery.transforms.native.classifier import Classifier
from tests.sampling import examples, sampled
from tests.transforms.filter.fasttext_files import LOSSES, WORDS, dense, model_file, quantised, trained

LABELS = tuple(f"__label__{name}" for name in ("en", "de", "fr", "日", "es", "x y", "ru", "it", "nl", "sv", "da"))
ASKED = ((1, 0.0), (1, 0.65), (3, 0.1), (-1, 0.0), (100, 0.01), (2, 1.0))
TEXTS = (
    *("", "\n", " ", "a", "a\n", "the ship\n", "</s>", "the </s> ship\n", "</s> ship", "\0the\0ship\n", "the\nship\n"),
    *(
        "__label__en",
        "__label__en ship\n",
        "__label__zz ship\n",
        "x__label__en\n",
        "über 日本 the\n",
        "ÜBER\t日\x0bb\x0c\r\n",
    ),
    *("\x85\x1c\u2028a\n", "x" * 700 + "\n", "日" * 300, "the " * 900, "😀😀 ship\n", "<> < > <the> \n", "\x7f\x80ÿ\n"),
)


def assert_same(data: bytes, folder: Path, texts: tuple[str, ...] = TEXTS) -> None:
    """The kernel and fastText find the same in all texts."""
    path = folder / "model.bin"
    path.write_bytes(data)
    ours, theirs = Classifier(data), fasttext.load_model(str(path)).f
    for text in texts:
        for k, threshold in ASKED:
            assert ours.predict(text, k, threshold) == theirs.predict(text, k, threshold, "strict"), (text, k)


PLAIN = list(product(LOSSES, (1, 3, 8, 16, 20, 33), (1, 2, 11)))


@pytest.mark.parametrize(
    ("loss", "dim", "labels"), sampled("plain models of fastText", PLAIN, 9, axes=lambda cell: cell)
)
def test_plain_models(loss: str, dim: int, labels: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(dim)
    inputs = dense(rng.normal(0, 1, (len(WORDS) + 50, dim)))
    outputs = dense(rng.normal(0, 1, (labels, dim)))
    for grams in ({}, {"word_ngrams": 3}, {"minn": 1, "maxn": 1}, {"maxn": 0}, {"minn": 0, "maxn": 9, "version": 11}):
        assert_same(model_file(inputs, outputs, loss, labels=LABELS[:labels], dim=dim, **grams), tmp_path)


PRUNED = (None, (), ((3, 1), (49, 0), (7, 5), (3, 2), (90, 1)))
QUANTISED = [(*cell[:1], *cell[1], *cell[2:]) for cell in product(LOSSES, ((16, 2), (7, 2), (5, 8), (12, 5)), PRUNED)]


@pytest.mark.parametrize(
    ("loss", "dim", "part", "pruned"), sampled("quantised models of fastText", QUANTISED, 8, axes=lambda cell: cell)
)
def test_quantised_models(
    loss: str, dim: int, part: int, pruned: tuple[tuple[int, int], ...] | None, tmp_path: Path
) -> None:
    rng = np.random.default_rng(dim)
    for norms in (False, True):
        inputs = quantised(rng, len(WORDS) + 50, dim, part, norms)
        for outputs in (dense(rng.normal(0, 1, (11, dim))), quantised(rng, 11, dim, part, norms)):
            file = model_file(inputs, outputs, loss, labels=LABELS, pruned=pruned, dim=dim, word_ngrams=2)
            assert_same(file, tmp_path)


def test_ties_and_names_that_come_twice(tmp_path: Path) -> None:
    """Equal scores come in the order of libstdc++'s heaps; of two words with one name the later one counts."""
    inputs = dense(np.arange(57 * 4).reshape(57, 4) % 7)
    for loss in LOSSES:
        for outputs in (np.zeros((11, 4)), np.arange(44).reshape(11, 4) % 2):
            for counts in ([5] * 11, [0] * 11, list(range(11)), [10**14] + [3] * 10):
                file = model_file(inputs, dense(outputs), loss, labels=LABELS, counts=counts)
                assert_same(file, tmp_path)
        twice = ("</s>", "the", "ship", "the", "sea", "ship", "a")
        assert_same(model_file(inputs, dense(np.eye(2, 4)), loss, words=twice), tmp_path)


LINES = [
    f"__label__{label} {words} number {i} of the {words.split()[i % 3]}"
    for i in range(40)
    for label, words in (("en", "the ship at sea"), ("de", "das Schiff auf See"), ("fr", "le navire en mer"))
]


FORMS: dict[str, dict[str, Any] | None] = {
    "bin": None,
    "ftz": {"cutoff": 300, "qnorm": True},
    "qout": {"qout": True, "dsub": 3},
}


@pytest.mark.parametrize(("loss", "form"), sampled("trained models", product(LOSSES, FORMS), 5, axes=lambda cell: cell))
def test_trained_models(loss: str, form: str, tmp_path: Path) -> None:
    quantise = FORMS[form]
    # The quantiser wants 256 rows, so the output matrix gets as many labels.
    lines = [f"__label__{i} {line}" for i, line in enumerate(LINES * 3)] if "qout" in (quantise or ()) else LINES
    data = trained(
        tmp_path, lines, quantise, loss=loss, dim=10, epoch=3, bucket=2000, minn=2, maxn=4, wordNgrams=2, lr=0.5
    )
    assert_same(data, tmp_path, (*TEXTS, *(line.partition(" ")[2] + "\n" for line in LINES)))


@settings(max_examples=examples(150))
@given(st.text(st.one_of(st.sampled_from("abc <>é日\n\0😀"), st.characters(exclude_categories=["Cs"])), max_size=300))
def test_any_text_with_the_bundled_model(text: str) -> None:
    theirs = ORACLE.predict
    for k, threshold in ASKED:
        assert load_model(bundled_model()).predict(text, k, threshold) == theirs(text, k, threshold)


ORACLE = OriginalModel(bundled_model())


def test_labels_are_all_there() -> None:
    model = load_model(bundled_model())
    assert isinstance(model, Classifier)
    assert len(model.labels) == 176
    assert sorted(model.labels) == sorted(ORACLE.labels)
    assert {"__label__ug", "__label__yue", "__label__jbo"} <= set(model.labels)


def test_what_a_prediction_refuses() -> None:
    model = load_model(bundled_model())
    with pytest.raises(UnicodeEncodeError):
        model.predict("a\ud800\n", 1, 0.0)
    for k in (0, -2):
        with pytest.raises(ValueError, match=f"k: {k} given"):
            model.predict("a\n", k, 0.0)
    assert model.predict("", 0, 0.0) == []
    with pytest.raises(TypeError):
        model.predict(b"a\n", 1, 0.0)  # type: ignore[arg-type]


def small(**changed: Any) -> bytes:
    rng = np.random.default_rng(1)
    parts: dict[str, Any] = {"inputs": dense(rng.normal(0, 1, (57, 4))), "outputs": dense(rng.normal(0, 1, (2, 4)))}
    return model_file(**(parts | changed))


SOME = [[1.0] * 4] * 2


@pytest.mark.parametrize(
    ("file", "message"),
    [
        (b"", "it ends too early"),
        (b"junk" * 100, "it begins with other bytes"),
        (small(version=13), "of version 13, up to 12 is known"),
        (small(kind=1), "a supervised one is needed"),
        (small(dim=0), "impossible arguments"),
        (small(dim=-1), "impossible arguments"),
        (small(loss="none"), "impossible arguments"),
        (small(buckets=0), "n-grams without buckets"),
        (small(buckets=-5), "n-grams without buckets"),
        (small(labels=()), "impossible sizes of the dictionary"),
        (small(counts=[-1, 2]), "impossible counts"),
        (small(counts=[10**15, 2]), "impossible counts"),
        (small(dim=5), "a matrix of impossible shape"),
        (small(buckets=51), "matrices of other sizes than the dictionary"),
        (small(outputs=dense(SOME * 2)), "matrices of other sizes than the dictionary"),
        (small(outputs=dense([[float("nan")] * 4] * 2)), "a weight is no finite number"),
        (small(outputs=dense([[float("inf")] * 4] * 2)), "a weight is no finite number"),
        (small(pruned=[(1, 1)]), "a pruned dictionary with a matrix that is not quantised"),
        (small(pruned=[(1, -8)]), "an n-gram outside the matrix"),
        (small(pruned=[(1, 2**31 - 1)]), "an n-gram outside the matrix"),
        (
            small(inputs=quantised(np.random.default_rng(1), 57, 4, 2, True), pruned=[(1, 50)]),
            "matrices of other sizes than the dictionary",
        ),
        (small(inputs=quantised(np.random.default_rng(1), 57, 6, 2, True)), "a matrix of impossible shape"),
        (small(words=("a", "b\0" + "\0" * 9)), "no fastText model"),
    ],
)
def test_damaged_files_are_named(file: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Classifier(file)


def test_labels_that_are_no_text_are_refused() -> None:
    with pytest.raises(ValueError, match="utf-8"):
        Classifier(small().replace(b"__label__de", b"__label__\xff\xfe"))


FILES = (
    small(),
    small(loss="hs", labels=LABELS[:5], outputs=dense(np.ones((5, 4)))),
    small(
        inputs=quantised(np.random.default_rng(1), 57, 4, 2, True),
        outputs=quantised(np.random.default_rng(2), 2, 4, 3, True),
        pruned=[(1, 1), (4, 2)],
    ),
)


@pytest.mark.parametrize("file", FILES, ids=["plain", "hierarchical", "quantised"])
def test_every_beginning_of_a_file_is_refused(file: bytes) -> None:
    for size in {*range(min(len(file), 700)), *range(0, len(file), 41), len(file) - 1}:
        with pytest.raises(ValueError, match="no fastText model"):
            Classifier(file[:size])


@settings(max_examples=examples(300))
@given(st.data())
def test_changed_files_are_refused_or_read(data: st.DataObject) -> None:
    """Bytes of the header, the dictionary and the shapes replaced: no crash, and no other exception."""
    file = bytearray(data.draw(st.sampled_from(FILES)))
    edge = st.sampled_from([0, -1, 1, 2**31 - 1, -(2**31), 256, 7])
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, min(len(file), 600) - 4))
        if data.draw(st.booleans()):
            file[at : at + 4] = struct.pack("<i", data.draw(edge))
        else:
            file[at] = data.draw(st.integers(0, 255))
    try:
        model = Classifier(bytes(file))
    except (ValueError, NotImplementedError):
        return
    for text in TEXTS[:12]:
        try:
            assert len(model.predict(text, -1, 0.0)) <= len(model.labels)
        except ValueError as error:
            assert "no number" in str(error)


def halves(state: np.uint32) -> tuple[tuple[str, str], np.uint32]:
    """Two pieces of eight letters that lead FNV-1a from `state` to one state, and that state."""
    letters = np.random.default_rng(1).integers(97, 123, (300_000, 8), np.uint32)
    hashes = np.full(len(letters), state, np.uint32)
    for column in letters.T:
        hashes = (hashes ^ column) * np.uint32(16777619)
    order = np.argsort(hashes, kind="stable")
    at = int(np.flatnonzero(hashes[order][1:] == hashes[order][:-1])[0])
    one, other = ("".join(map(chr, letters[i])) for i in order[at : at + 2])
    return (one, other), hashes[order[at]]


def test_words_of_one_hash_are_refused() -> None:
    """A dictionary made so that each look-up would pass over all words before it."""
    words = [""]
    state = np.uint32(2166136261)
    for _ in range(11):
        pair, state = halves(state)
        words = [word + half for word in words for half in pair]
    inputs = dense(np.zeros((len(words), 1)))
    Classifier(model_file(inputs, dense(np.ones((2, 1))), words=words[:100], dim=1, maxn=0))
    with pytest.raises(ValueError, match="its words share one hash"):
        Classifier(model_file(inputs, dense(np.ones((2, 1))), words=words, dim=1, maxn=0))


def test_weights_that_overflow_are_an_error() -> None:
    big = dense(np.full((57, 4), 3e38))
    outputs = dense([[3e38, -3e38, 1, 1], [1, 1, 1, 1]])
    with pytest.raises(ValueError, match="a product is no number"):
        Classifier(small(inputs=big, outputs=outputs)).predict("the ship\n", 1, 0.0)


def test_models_beyond_the_limits_go_to_fasttext(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    path = tmp_path / "wide.bin"
    wide = model_file(dense(rng.normal(0, 1, (57, 1025))), dense(rng.normal(0, 1, (2, 1025))), dim=1025)
    many = model_file(
        dense(rng.normal(0, 1, (57, 4))),
        dense(rng.normal(0, 1, (4097, 4))),
        labels=[f"__label__{i}" for i in range(4097)],
    )
    for file, reason in (
        (wide, "too wide"),
        (many, "too many labels"),
        (small(word_ngrams=65), "n-grams are too long"),
    ):
        with pytest.raises(NotImplementedError, match=reason):
            Classifier(file)
        with pytest.raises(ValueError, match="it ends too early"):  # it must be sound to go there
            Classifier(file[:-1])
        path.write_bytes(file)
        model, oracle = open_model(path), fasttext.load_model(str(path)).f
        assert isinstance(model, OriginalModel)
        assert len(model.labels) == len(oracle.predict("\n", -1, -1.0, "strict"))
        assert model.predict("the ship\n", -1, 0.0) == oracle.predict("the ship\n", -1, 0.0, "strict")
