import json
import os
import random
from pathlib import Path

import numpy as np
import pytest

from refinery.pipelines.cli.command_line import execute
from refinery.pipelines.training.kneser_ney import learn, number_words, pair_keys, triple_keys
from refinery.pipelines.training.train_perplexity import TrainPerplexityParams, percentiles, train_perplexity
from refinery.transforms.dedup.signatures import character_table
from refinery.transforms.filter.ngram_model import START, UNIT, load_model, perplexity_of, word_keys
from refinery.transforms.native import ngram_costs

WORDS = ["the", "river", "carries", "sand", "past", "a", "village", "where", "millers", "keep", "their", "wheels"]
WORDS += ["and", "gardens"]


def prose(count: int, seed: int = 1) -> list[str]:
    """Texts with a grammar of a kind: each word is followed by one of three."""
    generator = random.Random(seed)
    texts = []
    for _ in range(count):
        place, text = 0, []
        for _ in range(30):
            place = (place * 2 + generator.randrange(3)) % len(WORDS)
            text.append(WORDS[place])
        texts.append(" ".join(text))
    return texts


TEXTS = prose(80)


@pytest.mark.parametrize("least", [1, 2])
@pytest.mark.parametrize("context", ["the river", "village where", "gardens the", "never seen", "never the", ""])
def test_the_probabilities_of_all_words_add_up_to_one(least: int, context: str) -> None:
    documents = [word_keys(text) for text in [*TEXTS, "hapax legomenon", "the hapaxes river"]]
    keys, costs = learn(documents, 2, least)
    known = len(number_words(documents, 2)[1]) - 2
    unknown = number_words(documents, 2)[2]
    assert (known, unknown) == (len(WORDS), 3)

    def cost(text: str) -> int:
        return ngram_costs.score(text, character_table(), keys, costs)[0]

    shares = [2 ** -((cost(f"{context} {word}") - cost(context)) / UNIT) for word in [*WORDS, "neologism"]]
    assert sum(shares[:-1]) + shares[-1] * (unknown + 1) == pytest.approx(1, abs=1e-3)


def test_the_keys_of_the_training_are_the_kernels() -> None:
    """The table of one text, read by the kernel, finds its trigram, its bigram and its word."""
    a, b, c = word_keys("one two three").view(np.uint64)
    given = np.concatenate([np.array([a, b, c, START], np.uint64).view(np.int64), pair_keys(a[None], b[None])])
    given = np.concatenate([given, triple_keys(a[None], b[None], c[None])])
    keys, costs = np.zeros(16, np.int64), np.zeros(32, np.int32)
    ngram_costs.insert(given, np.array([1, 10, 2, 20, 4, 40, 0, 80, 100, 1000, 5000, 0], np.int32), keys, costs)
    assert ngram_costs.score("One, two — THREE", character_table(), keys, costs) == (80 + 1 + 100 + 5000, 3)
    assert ngram_costs.score("two three one", character_table(), keys, costs) == (80 + 2 + 20 + 4 + 40 + 1, 3)


def test_order_of_words_matters_and_unknown_words_are_dear(tmp_path: Path) -> None:
    model = train_perplexity(TEXTS, str(tmp_path / "m"), TrainPerplexityParams())
    unseen = prose(1, seed=2)[0]
    words = unseen.split()
    random.Random(1).shuffle(words)
    found = [model.perplexity(text) for text in (unseen, " ".join(words), "qx vb zj kk ww")]
    assert found == sorted(found, key=lambda value: value or 0) and len(set(found)) == 3
    assert model.perplexity(" ,. ") is None


def test_same_bytes_in_any_order_and_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "en.ngrams"
    found = set()
    for texts in (TEXTS, TEXTS[::-1] + TEXTS[:9]):
        model = train_perplexity(texts, str(path), TrainPerplexityParams(), overwrite=True)
        found.add(path.read_bytes())
    assert len(found) == 1
    assert "perplexity of" in capsys.readouterr().out
    loaded = load_model(str(path))
    assert loaded.percentiles == model.percentiles and loaded.facts == model.facts
    assert np.array_equal(loaded.keys, model.keys) and np.array_equal(loaded.costs, model.costs)
    report = json.loads((tmp_path / "en.ngrams.json").read_text())
    assert report["size_bytes"] == path.stat().st_size and report["deciles"]["50%"] == model.percentiles[50]
    train_perplexity(TEXTS, str(path), TrainPerplexityParams(seed=2), overwrite=True)
    assert path.read_bytes() not in found


def test_percentiles_of_a_sample(tmp_path: Path) -> None:
    sample = ["the river", "qx vb zj", "carries sand past a village"]
    model = train_perplexity(TEXTS, str(tmp_path / "m"), TrainPerplexityParams(), sample=sample)
    assert [model.percentiles[place] for place in (0, 50, 100)] == sorted(model.perplexity(text) for text in sample)  # type: ignore[type-var]
    assert percentiles([5.0]) == (5.0,) * 101


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, texts in (("good", TEXTS), ("crawl", [TEXTS[0], "qx vb zj"])):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    flags = ["--input", str(tmp_path / "good.jsonl"), "--sample", str(tmp_path / "crawl.jsonl")]
    command = ["train-perplexity", *flags, "--output", str(tmp_path / "new" / "en.ngrams")]
    assert execute(command) == 0
    assert "perplexity of 2 of a sample" in capsys.readouterr().out
    assert load_model(str(tmp_path / "new" / "en.ngrams")).facts["texts"] == len(set(TEXTS))
    assert execute(command) == 2
    assert "exists; choose another name" in capsys.readouterr().err


def test_nothing_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text("mine")
    with pytest.raises(ValueError, match="exists; choose another name"):
        train_perplexity(TEXTS, str(tmp_path / "m"), TrainPerplexityParams())
    assert os.listdir(tmp_path) == ["m.json"]


@pytest.mark.parametrize(
    ("texts", "sample", "message"),
    [
        ([], None, "too few"),
        (["one"], None, "too few"),
        (TEXTS, [], "too few"),
        (TEXTS, [" - "], "no words"),
        ([" - "], ["a"], "no word in them"),
    ],
)
def test_too_little(tmp_path: Path, texts: list[str], sample: list[str] | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        train_perplexity(texts, str(tmp_path / "m"), TrainPerplexityParams(), sample=sample)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("values", [{"held_out": 0}, {"held_out": 1}, {"min_word_count": 0}, {"min_trigram_count": 0}])
def test_impossible_parameters(values: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(values))}: . given"):
        TrainPerplexityParams(**values)  # type: ignore[arg-type]


def test_perplexity_has_bounds() -> None:
    assert perplexity_of(-5, 1) == 1.0 and perplexity_of(2**60, 1) == 1e9 and perplexity_of(3 * UNIT, 1) == 8.0
