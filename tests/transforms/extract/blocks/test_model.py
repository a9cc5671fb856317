"""The model: what it may be loaded from, what it chooses, and that nothing else on the worker changes a page's text."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.extract.blocks.extract_blocks import extract_blocks, linked_text
from refinery.transforms.extract.blocks.model import (
    choose_blocks,
    from_array,
    load_model,
    score_blocks,
)
from refinery.transforms.extract.blocks.page import features, parse_page
from refinery.transforms.native import htmlblocks, trees

BODY = "".join(f"<p>Sentence {i} of an article says something, and says it at some length.</p>" for i in range(30))
PAGE = f"<nav><a href=/>Home</a></nav><article><h1>Fog over the sound</h1>{BODY}</article><footer>Imprint</footer>"


def text_of(html: str) -> str | None:
    return extract_blocks(html, "https://x.org/", load_model(None), "text", True, 1000)


def test_an_article_without_its_frame() -> None:
    text = text_of(PAGE)
    assert text is not None and text.startswith("Fog over the sound\n\nSentence 0") and text.endswith("length.")
    assert text_of("<p>x" * 1001) is None


def test_the_kernel_scores_the_features_that_training_sees() -> None:
    page, model = parse_page(PAGE, "https://x.org/"), load_model(None)
    said = htmlblocks.say(page.text, page.arrays.blocks, model.lexicon)
    rows, scores = features(page, said), np.full(len(page.blocks), model.base, np.int32)
    flat = (model.features.reshape(-1), model.edges.view(np.uint32).reshape(-1), model.leaves.reshape(-1))
    trees.score(rows.view(np.uint32).reshape(-1), model.width, *flat, model.depth, scores)
    expected = np.empty_like(scores)
    trees.probabilities(scores, expected)
    assert (score_blocks(page, model) == expected).all()


def test_the_shipped_weights() -> None:
    model = load_model(None)
    assert model.width == htmlblocks.FEATURES + len(parse_page("", "").arrays.values)
    assert model.to_array().nbytes < 1_000_000
    assert (from_array(model.to_array()).to_array() == model.to_array()).all()


@pytest.mark.parametrize("wrong", ["nothing", "text", "short", "version", "feature", "slots", "pickle"])
def test_other_files_are_refused(wrong: str, tmp_path: Path) -> None:
    path = tmp_path / "w.npy"
    array = load_model(None).to_array()
    if wrong == "text":
        path.write_text("weights")
    elif wrong == "pickle":
        np.save(path, np.array([{}]), allow_pickle=True)
    elif wrong != "nothing":
        array = array[:-1] if wrong == "short" else array.copy()
        place = {"version": 0, "short": 1, "slots": 5, "feature": 6 + len(load_model(None).lexicon)}[wrong]
        array[place] = {"version": 99, "short": 6, "slots": 1000, "feature": 10_000}[wrong]
        np.save(path, array)
    with pytest.raises(ValueError, match=r"weights: .*w.npy"):
        load_model(str(path))


@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 50)), max_size=30))
def test_the_choice_is_of_the_likeliest(blocks: list[tuple[int, int]]) -> None:
    probabilities = np.array([block[0] for block in blocks], np.int32)
    kept = choose_blocks(probabilities, np.array([block[1] for block in blocks], np.int32))
    sure = [words for probability, words in blocks if probability == 1000 and words]
    assert kept.any() or not sure or sum(sure) < sum(words for _, words in blocks)
    if kept.any() and not kept.all():
        assert probabilities[kept].min() >= probabilities[~kept].max()


def test_nothing_is_kept_where_nothing_is_likely() -> None:
    words = np.full(40, 10, np.int32)
    assert not choose_blocks(np.full(40, 120, np.int32), words).any()
    assert choose_blocks(np.full(40, 320, np.int32), words).all()


def test_linked_data_speaks_where_the_page_does_not() -> None:
    said = "It was said in full. " * 40
    data = f'{{"@graph": [{{"@type": "Article", "description": "d", "articleBody": "{said}"}}]}}'
    assert text_of(f'<script type="application/ld+json">{data}</script><p>Loading') == said
    page = parse_page('<script type="application/ld+json">{"a": [</script>', "")
    assert linked_text(page) == ""
    data = '{"description": "<p>One &amp; two</p><p>three</p>"}'
    assert linked_text(parse_page(f'<script type="application/ld+json">{data}</script>', "")) == "One & two\n\nthree"
