"""Training on pages made here: what is learned, the formats of gold, and the same bytes every time."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from refinery.pipelines.training.extractor.gold import GoldPage, read_gold
from refinery.pipelines.training.extractor.labels import block_targets, coverage
from refinery.pipelines.training.extractor.scoring import Snippets, word_f1, words_of
from refinery.transforms.extract.blocks.extract_blocks import extract_blocks
from refinery.transforms.extract.blocks.model import load_model
from tests.pipelines.inputs import run

SAID = "the ferry crosses at seven when fog permits and nobody on the island owns a clock that agrees"
WORDS = SAID.split(" ")


def page(number: int) -> tuple[str, str]:
    said = [" ".join(WORDS[(number * 7 + i * 3 + k * 5) % len(WORDS)] for k in range(12)) + "." for i in range(6)]
    menu = "".join(f"<li><a href=/{i}>Section {i}</a></li>" for i in range(8))
    html = f"<nav><ul>{menu}</ul></nav><article>{''.join(f'<p>{line}</p>' for line in said)}</article><p>Imprint"
    return html, "\n".join(said)


@pytest.fixture(scope="module")
def gold(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """40 pages of eight domains."""
    path = tmp_path_factory.mktemp("gold") / "gold.jsonl.gz"
    with gzip.open(path, "wt") as file:
        for number in range(40):
            html, text = page(number)
            row = {"id": str(number), "url": f"https://site{number % 8}.org/{number}", "page_type": "article"}
            file.write(json.dumps(row | {"html": html, "main_content": text}) + "\n")
    return path


def test_a_model_is_learned_and_is_the_same_every_time(gold: Path, tmp_path: Path) -> None:
    outputs = [tmp_path / "one.npy", tmp_path / "two.npy"]
    said = ""
    for output, folds in zip(outputs, (2, 0), strict=True):
        said += run("train-extractor", gold, "--output", output, "--trees", 20, "--folds", folds).stdout
    assert outputs[0].read_bytes() == outputs[1].read_bytes()
    assert "40 pages, 600 blocks" in said and "held out, article: word F1 " in said
    html, text = page(99)
    model = load_model(str(outputs[0]))
    assert len(model.leaves) == 2 * 20  # two models are averaged
    assert extract_blocks(html, "https://other.org/", model, "text", True, 1000) == text.replace("\n", "\n\n")


def test_an_output_is_not_written_over(gold: Path, tmp_path: Path) -> None:
    (tmp_path / "w.npy").write_text("mine")
    done = run("train-extractor", gold, "--output", tmp_path / "w.npy", check=False)
    assert done.returncode == 2 and "exists" in done.stderr and (tmp_path / "w.npy").read_text() == "mine"


def test_gold_in_a_file_and_pages_in_a_warc(tmp_path: Path) -> None:
    body = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<p>Stra\xc3\x9fe"
    head = "WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:1>\r\nX-Eval-Id: a\r\n"
    head += f"WARC-Date: 2024-01-01T00:00:00Z\r\nContent-Type: application/http\r\nContent-Length: {len(body)}\r\n\r\n"
    (tmp_path / "pages.warc.gz").write_bytes(gzip.compress(head.encode() + body + b"\r\n\r\n"))
    row = {"id": "a", "url": None, "gold_type": "snippets", "gold_text": None}
    rows = tmp_path / "gold.jsonl"
    rows.write_text(json.dumps(row | {"must_contain": ["Straße"], "must_not_contain": []}) + "\n")
    (found,) = read_gold([str(rows), str(tmp_path / "pages.warc.gz")])
    assert (found.html, found.kind, found.wanted, found.text, found.domain) == (
        "<p>Straße", "snippets", ("Straße",), None, "a",
    )  # fmt: skip
    with pytest.raises(ValueError, match="'a' has no html"):
        read_gold([str(rows)])
    rows.write_text("[]\n")
    with pytest.raises(ValueError, match="line 1: a JSON object"):
        read_gold([str(rows)])
    rows.write_text('{"id": "b", "html": ""}\n')
    with pytest.raises(ValueError, match="no main text and no snippets"):
        read_gold([str(rows)])


def test_coverage() -> None:
    long = [f"w{i}" for i in range(8)]
    blocks = [["read", "more"], long, ["read", "more"], [*long[:4], "a", "b", "c", "d"], [], ["else"]]
    assert coverage(blocks, [*long, "read", "more"]).tolist() == [1, 1, 0, 0.5, 0, 0]
    gold = GoldPage("n", "", "", "snippets", None, ("good",), ("bad",))
    targets, weights = block_targets(["a good one", "a bad one", "unknown"], gold)
    assert targets.tolist() == [1000, 0, 0] and (weights > 0).tolist() == [True, True, False]
    assert np.isfinite(weights).all()


def test_scores() -> None:
    assert word_f1(words_of("A b, b"), words_of("b c")) == (1 / 3, 1 / 2, 2 / 5)
    assert word_f1([], []) == (1.0, 1.0, 1.0)
    snippets = Snippets()
    snippets.add("one\n two three", ["one two", "four"], ["three", "five"])
    assert (snippets.precision, snippets.recall, snippets.f1) == (0.5, 0.5, 0.5)
