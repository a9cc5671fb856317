"""The pure parts of the benchmarks: made inputs are what they claim to be, and the arithmetic behind the tables."""

import random
from itertools import product

import numpy as np
import pytest

from benchmarks.dedup_growth import Prices, cost_of_terabyte
from benchmarks.extraction_routes import Judged, table
from benchmarks.language import Text, completed, least_kept
from benchmarks.made_copies import (
    KINDS,
    WINDOW,
    Pair,
    binomial,
    chances,
    change_case,
    changed,
    fit,
    jaccard,
    plain_jaccard,
    plant,
    shingle_set,
)
from benchmarks.made_signatures import COPY_SIMILARITY, PERMUTATIONS, Mixture, made_signatures
from benchmarks.packing import Outcome as PackingOutcome
from benchmarks.packing import best_fit, best_fit_crop, concatenate, in_order
from benchmarks.pii import score
from benchmarks.planted_duplicates import outcome
from benchmarks.redaction import Labelled, finding, places
from benchmarks.redaction import score as score_spans
from benchmarks.script_pages import TICKERS, Pieces, f1, made_page
from benchmarks.signatures import make_texts, shingles_of
from refinery.transforms.core.document import document_id
from refinery.transforms.dedup.near_duplicates import NearParams


def test_made_texts_are_the_same_every_time_and_of_the_size_asked_for():
    texts = make_texts(300)
    assert texts == make_texts(300)
    assert texts != make_texts(300, seed=2)
    assert 700 < np.median([len(text) for text in texts]) < 1050
    assert len({document_id(text) for text in texts}) == 300


@pytest.mark.parametrize("words", [0, 1, 4, 5, 6, 30])
def test_shingles_for_the_peers(words):
    text = "  ".join(f"w{i}" for i in range(words))
    found = shingles_of(text)
    assert len(found) == max(1, words - 4)
    assert found[-1].split() == [f"w{i}" for i in range(max(0, words - 5), words)]


@pytest.mark.parametrize("kind", ["words", "insert", "delete", "boilerplate"])
@pytest.mark.parametrize("step", [0.5, 0.75, 0.95])
def test_a_copy_is_as_similar_as_asked_for_by_both_shinglers(kind, step):
    text, other, site = make_texts(3, seed=5, median=6000, spread=0.01)
    change = changed(text, kind, other.split(), site.split(), seed=1)
    assert change(0).split() == text.split()
    found = fit(change, len(text.split()), shingle_set(text), step)
    assert found is not None
    copy, similarity = found
    assert step <= similarity < step + WINDOW
    assert similarity == jaccard(shingle_set(text), shingle_set(copy))
    assert plain_jaccard(text, copy) == pytest.approx(similarity, abs=1e-3)


def test_no_copy_where_a_single_change_is_too_much():
    text = " ".join(f"w{i}" for i in range(20))
    change = changed(text, "words", ["other"], ["site"], seed=1)
    assert fit(change, 20, shingle_set(text), 0.95) is None


def test_case_and_punctuation_leave_every_shingle():
    text = make_texts(1, seed=7, median=3000)[0]
    other = change_case(text, 1)
    assert other != text
    assert document_id(other) != document_id(text)
    assert np.array_equal(shingle_set(other), shingle_set(text))


@pytest.mark.parametrize(
    ("a", "b", "similarity"),
    [
        ("a b c d e f", "a b c d e f", 1.0),
        ("a b c d e f", "A, b. c-d e (f)", 1.0),
        ("a b c d e f", "a b c d e g", 1 / 3),
        ("a b", "a b", 1.0),
        ("a b", "a c", 0.0),
    ],
)
def test_plain_similarity(a, b, similarity):
    assert plain_jaccard(a, b) == pytest.approx(similarity)


def test_planting_uses_every_original_once_and_fills_every_step():
    texts = make_texts(110, seed=3, median=3000, spread=0.3)
    everything, pairs = plant(texts, each=3)
    assert everything[: len(texts)] == texts
    assert len(pairs) == 3 * 21 == len({pair.original for pair in pairs}) == len(everything) - len(texts)
    assert {pair.kind for pair in pairs} == set(KINDS)
    for pair in pairs:
        exact = plain_jaccard(everything[pair.original], everything[pair.copy])
        assert exact == pytest.approx(pair.similarity, abs=1e-3)
        assert pair.step <= pair.similarity < pair.step + WINDOW
    with pytest.raises(SystemExit, match="lower --each"):
        plant(texts[:10], each=3)


@pytest.mark.parametrize(
    ("representative", "expected"),
    [([0, 0, 2], "found"), ([1, 1, 2], "found"), ([2, 2, 2], "found"), ([0, 1, 2], "missed"), ([2, 1, 2], "disturbed")],
)
def test_outcome_of_a_pair(representative, expected):
    assert outcome(Pair(0, 1, 0.9, 0.9, "words"), representative) == expected


@pytest.mark.parametrize("similarity", [0.3, 0.6, 0.9])
def test_predicted_chances_equal_the_sum_over_all_cases(similarity):
    near = NearParams(threshold=0.5, bands=3, rows=2)
    totals = [0.0, 0.0, 0.0]
    for equal in product((0, 1), repeat=7):  # one value beyond the bands
        chance = similarity ** sum(equal) * (1 - similarity) ** (7 - sum(equal))
        band = any(all(equal[i : i + 2]) for i in (0, 2, 4))
        enough = sum(equal) >= 4
        for index, case in enumerate((band, enough, band and enough)):
            totals[index] += chance * case
    assert chances(similarity, near, 7) == pytest.approx(tuple(totals))
    assert binomial(7, similarity).sum() == pytest.approx(1.0)


def test_exact_verification_never_removes_below_the_threshold():
    near = NearParams(verify="exact")
    assert chances(0.74, near, 112)[2] == 0.0
    assert chances(0.76, near, 112)[2] > chances(0.76, NearParams(), 112)[2] > 0.5


def test_made_signatures_hold_the_mixture():
    mixture = Mixture(copies=0.1, family=0.05, bucket=0.04)
    rows = made_signatures(2000, mixture, [1, 0])
    assert np.array_equal(rows, made_signatures(2000, mixture, [1, 0]))
    other = made_signatures(2000, mixture, [1, 1])
    firsts, counts = np.unique(rows[:, :8], axis=0, return_counts=True)
    assert counts.max() == 80  # the bucket
    assert (other[:, :8] == firsts[counts.argmax()]).all(axis=1).sum() == 80  # the same in every part
    values, often = np.unique(rows[:, 20], return_counts=True)
    assert often.max() == pytest.approx(100 * COPY_SIMILARITY, abs=12)  # the family
    assert (often == 2).sum() == pytest.approx(200 * COPY_SIMILARITY, abs=30)  # pairs
    assert len(values) > 1500
    assert rows.shape == (2000, PERMUTATIONS)
    with pytest.raises(ValueError, match="mixture"):
        made_signatures(100, Mixture(copies=0.6), [1, 0])


def test_cost_of_a_terabyte():
    prices = Prices(vcpu_hour=1.0, gb_hour=0.5, gb_per_vcpu=2.0, shuffle_gb=0.1, shuffle_passes=2.0)
    found = cost_of_terabyte(1e12 / 3600, 3.6e-6, 500.0, 1000.0, prices)
    assert found["documents"] == 1e9
    assert (found["signature hours"], found["dedup hours"]) == pytest.approx((1.0, 1.0))
    assert found["billed shuffle GB"] == pytest.approx(1000.0)
    assert (found["workers $"], found["shuffle $"], found["total $"]) == pytest.approx((4.0, 100.0, 104.0))


def test_changes_are_chosen_by_the_seed():
    text = make_texts(1, seed=9, median=2000)[0]
    other = [f"f{i}" for i in range(500)]
    seeds = random.Random(0).sample(range(1000), 5)
    made = {changed(text, "words", other, ["s"], seed)(10) for seed in seeds}
    assert len(made) == 5
    assert changed(text, "words", other, ["s"], seeds[0])(10) in made


def labelled(label: str, score: float, code: str = "", lang: str = "") -> Text:
    return Text(0, lang or code or label, code or label, label, score, score, frozenset({label}))


def test_a_threshold_keeps_nearly_all_that_is_right_and_passes_little_that_is_not():
    """0.05 to 1 in steps of 0.01: 95 % are at 0.09 or above, so the lowest step; then a floor by precision."""
    spread = [labelled("hr", score / 100) for score in range(5, 100)]
    assert least_kept(spread) == {"hr": 0.1}
    high = [labelled("hr", 0.5 + score / 1000) for score in range(100)]
    assert least_kept(high) == {"hr": 0.5}
    assert least_kept([*high, *(labelled("hr", 0.52, "sl") for _ in range(100))])["hr"] == 0.55
    assert least_kept(labelled("en", 0.99) for _ in range(10)) == {"en": 0.65}
    assert least_kept(labelled("en", 0.99) for _ in range(9)) == {}
    found = completed({"en": 0.65, "hr": 0.3, "sw": 0.1, "ga": 0.4})
    assert (len(found), found["sw"], found["yo"]) == (176, 0.1, 0.3)


def test_scores_of_personal_data():
    spans = [{"start": 0, "end": 3, "type": "PHONE_NUMBER"}, {"start": 9, "end": 12, "type": "DE_PASSPORT"}]
    rows = [{"text": "", "spans": spans}, {"text": "", "spans": None}, {"text": "", "spans": [], "kind": "recall_only"}]
    found = [(2, 5, "phone"), (6, 8, "phone"), (9, 12, "national_id")]
    assert score(rows, lambda text: found) == {"national_id": (0, 0, 1, 1), "phone": (1, 1, 1, 2)}


def test_what_another_engine_would_gain_on_the_least_certain_pages():
    judged = [Judged(0.9, 1.0, (0.0, 0.0, 0.0)), Judged(0.1, 0.2, (0.6, 0.2, 0.0))]
    head, _, _, *rows = table(judged, [0.5])
    assert head.startswith("2 pages, word F1 of blocks 0.6000")
    assert rows[0] == "| 1 (50%) | 0.10 | trafilatura | 0.200 | 0.600 | 1 | 0 | +0.2000 |"
    assert rows[2].endswith("| 0.000 | 0 | 1 | -0.1000 |")


def test_ways_to_pack():
    """Four documents in rows of 10: what each way does to them."""
    sizes = np.array([6, 7, 4, 3])
    assert best_fit(sizes, 10) == PackingOutcome(rows=2, tokens=20, parts=4, cut=0, needless=0, cropped=0)
    assert in_order(sizes, 10) == PackingOutcome(rows=3, tokens=20, parts=4, cut=0, needless=0, cropped=0)
    assert concatenate(sizes, 10) == PackingOutcome(rows=2, tokens=20, parts=5, cut=1, needless=1, cropped=0)


def test_cropping_keeps_rows_full():
    """Documents of 7 in rows of 10: one whole, one cropped to 3. What is in the buffer at the end does not count."""
    found = best_fit_crop(np.full(1000, 7), 10)
    assert found.tokens == found.rows * 10
    assert found.parts == 2 * found.rows
    assert (found.cut, found.needless, found.cropped) == (found.rows, found.rows, 4 * found.rows)


def test_spans_are_found_whole_and_matches_are_right_by_type() -> None:
    row = Labelled("id 12 key abcd", [(10, 14, "secret")], [(3, 5, "secret")], True)
    found = [[(10, 12, "secret"), (12, 14, "secret"), (3, 4, "secret"), (0, 2, "secret"), (10, 14, "other")]]
    assert score_spans([row], found) == {"spans": 1, "found": 1, "matches": 5, "right": 3}
    assert score_spans([row], [[(10, 13, "secret")]])["found"] == 0
    assert score_spans([row._replace(whole=False)], found)["matches"] == 0


def test_findings_are_placed_by_line_and_column() -> None:
    text = "a\nkey: key\n"
    assert finding(text, {"value": "key", "found_in_line": True, "line_num": 2, "value_start": 5}) == [
        (7, 10, "secret")
    ]
    assert finding(text, {"value": "key", "line_num": 9, "value_start": 0}) == [(2, 5, "secret")]
    assert list(places("aa", "", "x")) == []


def test_made_news_pages_hold_their_text_and_much_around_it():
    texts = ["Паром уходит в семь часов утра, когда нет тумана. " * 2 + str(number) for number in range(20)]
    pages = [made_page(Pieces(texts, random.Random(seed))) for seed in range(30)]
    again = [made_page(Pieces(texts, random.Random(seed))) for seed in range(30)]
    assert pages == again and {page.template.split()[0] for page in pages} == set(TICKERS)
    for page in pages:
        assert all(line in page.html for line in page.text.split("\n"))
        assert page.html.count("<a ") > 20
    assert (f1("Да, нет.", "нет", True), f1("天気", "天", False), f1("", "", True)) == (2 / 3, 2 / 3, 0.0)
