"""Would another engine do better on the pages of which the engine `blocks` is least certain?

    python -m benchmarks.extraction_routes GOLD… [--folds 4] [--shares 0.03 0.05 0.1]

GOLD as for `refinery train-extractor`; pages without a full gold text are left out. The engine `blocks` never saw a
page's domain. Its certainty is the F1 of words that it expects of its own choice. For each share, the pages of least
certainty: word F1 of each engine there, and what the mean over all pages would gain from each engine on them.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.extraction import held_out_weights, resiliparse_text, text_of
from refinery.pipelines.training.extractor.gold import GoldPage, read_gold
from refinery.pipelines.training.extractor.scoring import word_f1, words_of
from refinery.transforms.core.document import RawDocument, hash64
from refinery.transforms.extract.blocks.extract_blocks import main_blocks
from refinery.transforms.extract.blocks.model import load_model, score_blocks
from refinery.transforms.extract.blocks.page import Column, parse_page
from refinery.transforms.extract.extract import ExtractParams

TRAFILATURA = ExtractParams(engine="trafilatura", seconds=60)
OTHERS: dict[str, Callable[[RawDocument, GoldPage], str]] = {
    "trafilatura": lambda raw, _: text_of(raw, TRAFILATURA),
    "trafilatura, recall": lambda raw, _: text_of(raw, TRAFILATURA.model_copy(update={"mode": "recall"})),
    "resiliparse": lambda _, page: resiliparse_text(page.html),
}


@dataclass(frozen=True)
class Judged:
    """Of one page: the certainty of `blocks`, its word F1, and that of the others in the order of OTHERS."""

    certainty: float
    blocks: float
    others: tuple[float, ...]


def certainty(page: GoldPage, weights: str | None) -> float:
    """Twice the words expected in the choice over its words and all that are expected; 0 without any."""
    parsed = parse_page(page.html, page.url)
    probabilities = score_blocks(parsed, load_model(weights))
    words = parsed.blocks[:, Column.WORDS].astype(np.int64)
    kept, expected = main_blocks(parsed, probabilities), words * probabilities
    return float(2 * expected[kept].sum() / max(1000 * words[kept].sum() + expected.sum(), 1))


def judge(page: GoldPage, weights: str | None) -> Judged:
    """All engines on one page with a full gold text."""
    raw = RawDocument(page.html.encode(), True, "utf-8", page.url, "", "", 0, {})
    gold = words_of(page.text or "")
    texts = [text_of(raw, ExtractParams(weights=weights)), *(extract(raw, page) for extract in OTHERS.values())]
    blocks, *others = (word_f1(words_of(text), gold)[2] for text in texts)
    return Judged(certainty(page, weights), blocks, tuple(others))


def table(judged: Sequence[Judged], shares: Sequence[float]) -> list[str]:
    """Markdown: a row for each share and engine."""
    ordered = sorted(judged, key=lambda one: one.certainty)
    mean = sum(one.blocks for one in judged) / len(judged)
    lines = [
        f"{len(judged):,} pages, word F1 of blocks {mean:.4f}\n",
        "| pages | certainty below | engine | F1 of blocks there | its F1 | better | worse | gain over all pages |",
        "| --- " * 8 + "|",
    ]
    for share in shares:
        chosen = ordered[: max(1, round(share * len(ordered)))]
        for number, name in enumerate(OTHERS):
            before = np.array([one.blocks for one in chosen])
            after = np.array([one.others[number] for one in chosen])
            better, worse = int((after > before + 0.01).sum()), int((after < before - 0.01).sum())
            gain = float((after - before).sum()) / len(judged)
            lines.append(
                f"| {len(chosen)} ({share:.0%}) | {chosen[-1].certainty:.2f} | {name} | {before.mean():.3f} | "
                f"{after.mean():.3f} | {better} | {worse} | {gain:+.4f} |"
            )
    return lines


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gold", nargs="+", metavar="GOLD")
    parser.add_argument("--folds", type=int, default=4, help="train blocks without a page's domain, N models")
    parser.add_argument("--shares", type=float, nargs="+", default=[0.03, 0.05, 0.1])
    args = parser.parse_args()
    pages = sorted(read_gold(args.gold), key=lambda page: (hash64("order", page.name, page.url), page.name))
    with TemporaryDirectory() as folder:
        weights = held_out_weights(pages, args.folds, Path(folder))
        judged = [judge(page, own) for page, own in zip(pages, weights, strict=True) if page.text is not None]
    print("\n".join(table(judged, args.shares)))


if __name__ == "__main__":
    main()
