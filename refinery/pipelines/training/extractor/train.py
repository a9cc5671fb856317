"""Train the extractor's model on pages with gold, and measure it on pages of other domains."""

import dataclasses
import io
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from refinery.pipelines.training.extractor.boosting import BoostingParams, train_trees
from refinery.pipelines.training.extractor.gold import GoldPage, read_gold
from refinery.pipelines.training.extractor.labels import block_targets
from refinery.pipelines.training.extractor.lexicon import Lexicon, PageWords, hash_table
from refinery.pipelines.training.extractor.scoring import Snippets, word_f1, words_of
from refinery.pipelines.training.extractor.scripts import in_other_script
from refinery.transforms.core.document import hash64
from refinery.transforms.extract.blocks.extract_blocks import extract_blocks
from refinery.transforms.extract.blocks.model import Model
from refinery.transforms.extract.blocks.page import Page, features, parse_page
from refinery.transforms.native import htmlblocks

COPY_WEIGHT = 0.4  # of a page's copy in another script, where the page itself weighs 1
MOST_BLOCKS = 500_000  # of a page; one with more counts as a page without text


@dataclass(frozen=True)
class Example:
    """A page's blocks: what features are made of, words, targets in 1/1000, weights. Nothing is known of a block of
    weight 0."""

    page: GoldPage
    parsed: Page
    words: PageWords
    targets: NDArray[np.int32]
    weights: NDArray[np.float64]

    @property
    def has_gold(self) -> bool:
        """Whether it is a page itself, not a copy of one in another script."""
        return self.page.text is not None or bool(self.page.wanted or self.page.unwanted)


def train_extractor(paths: Sequence[str], params: BoostingParams, folds: int, say: Callable[[str], None]) -> bytes:
    """The weights file of a model of all pages of the gold files: the same pages in any order, the same bytes.

    folds: first train so many models, each without a part of the domains, and say how good they are on these; below 2:
    do not. Cost: 2,200 pages take about 4 minutes for each model; memory: 3 GB.
    Raises ValueError for gold that cannot be read or has no page.
    """
    pages = sorted(read_gold(paths), key=lambda page: (hash64("order", page.name, page.url), page.name))
    examples = [example for page in pages for example in make_examples(page)]
    if not any(example.weights.any() for example in examples):
        raise ValueError("gold: no page has a block with a known label")
    known = sum(np.count_nonzero(example.weights) for example in examples if example.has_gold)
    say(f"{len(pages):,} pages, {known:,} blocks; {len(examples) - len(pages):,} copies of pages in other scripts")
    if folds >= 2:
        for line in cross_validate(examples, params, folds):
            say(line)
    model = fit(examples, params)
    file = io.BytesIO()
    np.save(file, model.to_array(), allow_pickle=False)
    return file.getvalue()


def make_example(page: GoldPage) -> Example:
    """Blocks and targets of one page."""
    parsed = parse_page(page.html, page.url)
    texts = [parsed.block_text(number) for number in range(len(parsed.blocks))]
    targets, weights = block_targets(texts, page)
    hashes, counts = htmlblocks.words(parsed.text, parsed.arrays.blocks)
    words = PageWords(
        page.domain,
        np.frombuffer(hashes, np.uint32),
        np.repeat(np.arange(len(texts)), np.frombuffer(counts, np.int32)),
        np.where(weights > 0, targets > 500, -1).astype(np.int8),
    )
    return Example(page, dataclasses.replace(parsed, text=b"", extras=[]), words, targets, weights)


def make_examples(page: GoldPage) -> list[Example]:
    """The page, and its copy in another script where it has one: with the targets of the page, of COPY_WEIGHT."""
    own = make_example(page)
    html = in_other_script(page.html, f"{page.name} {page.url}") if own.weights.any() else None
    if html is None:
        return [own]
    copy = dataclasses.replace(page, html=html, name=f"{page.name} copy", text=None, wanted=(), unwanted=())
    other = make_example(copy)
    if len(other.targets) != len(own.targets):
        return [own]
    words = dataclasses.replace(other.words, main=np.full(len(own.targets), -1, np.int8))
    return [own, dataclasses.replace(other, words=words, targets=own.targets, weights=own.weights * COPY_WEIGHT)]


def fit(examples: Sequence[Example], params: BoostingParams) -> Model:
    """A model of all examples: first the lexicon, then trees over features that it is one group of."""
    filled = [example for example in examples if example.weights.any()]
    lexicon = Lexicon([example.words for example in filled])
    known = [example.weights > 0 for example in filled]
    rows = [features(its.parsed, lexicon.said(its.words))[here] for its, here in zip(filled, known, strict=True)]
    model = train_trees(
        np.concatenate(rows),
        np.concatenate([example.targets[here] for example, here in zip(filled, known, strict=True)]),
        np.concatenate([example.weights[here] for example, here in zip(filled, known, strict=True)]),
        [f"{example.page.name} {example.page.url}" for example in filled],
        np.cumsum([0, *(len(its) for its in rows)]),
        params,
    )
    return dataclasses.replace(model, lexicon=hash_table(*lexicon.weights()))


def cross_validate(examples: Sequence[Example], params: BoostingParams, folds: int) -> list[str]:
    """What the models of each fold make of the pages that they have not seen: lines of a report."""
    fold = [hash64("fold", example.page.domain) % folds for example in examples]
    f1: dict[str, list[float]] = defaultdict(list)
    snippets = Snippets()
    for number in range(folds):
        model = fit([example for example, its in zip(examples, fold, strict=True) if its != number], params)
        for example, its in zip(examples, fold, strict=True):
            page = example.page
            if its != number or not example.has_gold:
                continue
            text = extract_blocks(page.html, page.url, model, "text", False, MOST_BLOCKS) or ""
            if page.text is not None:
                f1[page.kind].append(word_f1(words_of(text), words_of(page.text))[2])
            else:
                snippets.add(text, page.wanted, page.unwanted)
    lines = [
        f"held out, {kind}: word F1 {sum(values) / len(values):.3f} ({len(values)} pages)"
        for kind, values in sorted(f1.items())
    ]
    if snippets.found + snippets.missed + snippets.false:
        lines.append(f"held out, snippets: P {snippets.precision:.3f} R {snippets.recall:.3f} F1 {snippets.f1:.3f}")
    return lines
