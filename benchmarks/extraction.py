"""Extraction engines side by side on pages with gold: precision, recall, F1 by type of page, and pages/s.

    python -m benchmarks.extraction GOLD… [--every N] [--weights FILE] [--folds N]

GOLD as for `refinery train-extractor`. Every engine gets the same pages in one process, in turns page by page; time is
processor time of the whole stage, decoding of the page's bytes included. The shipped weights may have been trained on
the pages that are given: with --folds the engine `blocks` is trained again without a page's domain before it sees it.
resiliparse and trafilatura-standard are the libraries without settings of this project.
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from refinery.pipelines.training.extractor.boosting import BoostingParams
from refinery.pipelines.training.extractor.gold import GoldPage, read_gold
from refinery.pipelines.training.extractor.scoring import Snippets, word_f1, words_of
from refinery.pipelines.training.extractor.train import fit, make_examples
from refinery.transforms.core.document import Document, RawDocument, hash64
from refinery.transforms.extract.extract import ExtractParams, extract_document


@dataclass
class Result:
    """What one engine made of the pages: (precision, recall, F1) by type, snippets, seconds."""

    scores: dict[str, list[tuple[float, float, float]]] = field(default_factory=lambda: defaultdict(list))
    snippets: Snippets = field(default_factory=Snippets)
    seconds: float = 0.0
    pages: int = 0

    def add(self, page: GoldPage, text: str, seconds: float) -> None:
        """Score one page."""
        self.seconds += seconds
        self.pages += 1
        if page.text is not None:
            self.scores[page.kind].append(word_f1(words_of(text), words_of(page.text)))
        else:
            self.snippets.add(text, page.wanted, page.unwanted)


def held_out_weights(pages: Sequence[GoldPage], folds: int, folder: Path) -> list[str]:
    """For each page the weights of a model that has not seen its domain."""
    examples = [make_examples(page) for page in pages]
    fold = [hash64("fold", page.domain) % folds for page in pages]
    for number in range(folds):
        others = [example for its, where in zip(examples, fold, strict=True) if where != number for example in its]
        np.save(folder / f"{number}.npy", fit(others, BoostingParams()).to_array(), allow_pickle=False)
    return [str(folder / f"{number}.npy") for number in fold]


def resiliparse_text(html: str) -> str:
    """resiliparse's main content as its documentation shows it."""
    from resiliparse.extract.html2text import extract_plain_text

    return str(extract_plain_text(html, main_content=True))


def compare(pages: Sequence[GoldPage], weights: Sequence[str | None], slow_every: int) -> dict[str, Result]:
    """Every engine on every page; trafilatura on each `slow_every`-th, and the others on those pages once more."""
    results: dict[str, Result] = defaultdict(Result)
    for number, (page, own) in enumerate(zip(pages, weights, strict=True)):
        raw = RawDocument(page.html.encode(), True, "utf-8", page.url, "", "", 0, {})
        engines: dict[str, Callable[[], str]] = {
            "blocks": lambda raw=raw, own=own: text_of(raw, ExtractParams(weights=own)),  # type: ignore[misc]
            "resiliparse": lambda page=page: resiliparse_text(page.html),  # type: ignore[misc]
        }
        if number % slow_every == 0:
            for mode in ("fast", "standard"):
                params = ExtractParams(engine="trafilatura", mode=mode, seconds=60)
                engines[f"trafilatura-{mode}"] = lambda raw=raw, p=params: text_of(raw, p)  # type: ignore[misc]
        for name, extract in engines.items():
            start = time.process_time()
            text = extract()
            seconds = time.process_time() - start
            results[name].add(page, text, seconds)
            if slow_every > 1 and number % slow_every == 0 and "trafilatura" not in name:
                results[f"{name}, those pages"].add(page, text, seconds)
    return results


def text_of(raw: RawDocument, params: ExtractParams) -> str:
    """The stage's text, "" where it drops the page."""
    result = extract_document(raw, params)
    return result.text if isinstance(result, Document) else ""


def table(results: dict[str, Result]) -> list[str]:
    """Markdown: a row for each engine."""
    kinds = sorted({kind for result in results.values() for kind in result.scores})
    lines = [f"| engine | pages | {' | '.join(kinds)} | all P / R / F1 | snippets P / R / F1 | pages/s |"]
    lines.append("| --- " * (len(kinds) + 5) + "|")
    for name, result in results.items():
        means = [mean(result.scores[kind], 2) for kind in kinds]
        every = [score for kind in kinds for score in result.scores[kind]]
        whole = " / ".join(mean(every, part) for part in range(3))
        found = result.snippets
        parts = f"{found.precision:.3f} / {found.recall:.3f} / {found.f1:.3f}"
        speed = result.pages / max(result.seconds, 1e-9)
        lines.append(f"| {name} | {result.pages} | {' | '.join(means)} | {whole} | {parts} | {speed:.0f} |")
    return lines


def mean(scores: Sequence[tuple[float, float, float]], part: int) -> str:
    """Of precision, recall or F1."""
    return f"{sum(score[part] for score in scores) / len(scores):.3f}" if scores else "-"


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gold", nargs="+", metavar="GOLD")
    parser.add_argument("--every", type=int, default=1, help="take each N-th page")
    parser.add_argument("--slow-every", type=int, default=1, help="trafilatura: of these, each N-th")
    parser.add_argument("--weights", default=None, help="of the engine blocks (default: the shipped ones)")
    parser.add_argument("--folds", type=int, default=0, help="train blocks without a page's domain, N models")
    args = parser.parse_args()
    pages = sorted(read_gold(args.gold), key=lambda page: (hash64("order", page.name, page.url), page.name))
    with TemporaryDirectory() as folder:
        weights: Sequence[str | None] = [args.weights] * len(pages)
        if args.folds:
            weights = held_out_weights(pages, args.folds, Path(folder))
        print("\n".join(table(compare(pages[:: args.every], weights[:: args.every], args.slow_every))))


if __name__ == "__main__":
    main()
