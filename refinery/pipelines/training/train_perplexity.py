"""Train the language model of the stage `perplexity`: trigrams, with the percentiles of texts that it never saw."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

import orjson

from refinery.pipelines.progress.output import current
from refinery.pipelines.training.kneser_ney import learn
from refinery.pipelines.training.new_file import check_new, write_new
from refinery.transforms.core.document import document_id, hash64, text_bytes
from refinery.transforms.core.wording import many
from refinery.transforms.filter.ngram_model import NgramModel, model_bytes, word_keys


@dataclass(frozen=True)
class TrainPerplexityParams:
    """seed, held_out: share of the texts, by hash, that is measured instead of learned.

    min_word_count: rarer words count as unknown, so unknown words have a cost of their own. min_trigram_count:
    rarer trigrams are left to their bigrams, as with lmplz's --prune 0 0 1: half the file, hardly another order.
    """

    seed: int = 1
    held_out: float = 0.1
    min_word_count: int = 2
    min_trigram_count: int = 2

    def __post_init__(self) -> None:
        if not 0 < self.held_out < 1:
            raise ValueError(f"held_out: {self.held_out} given, a number between 0 and 1 is allowed")
        for name in ("min_word_count", "min_trigram_count"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}: {getattr(self, name)} given, 1 or more is allowed")


def train_perplexity(
    texts: Iterable[str],
    output: str,
    params: TrainPerplexityParams,
    overwrite: bool = False,
    sample: Iterable[str] | None = None,
) -> NgramModel:
    """Learn from `texts`, take the percentiles of those held out (or of `sample`: a crawl that is to be cut at its own
    percentiles), write the model to `output` and its figures to OUTPUT.json, print the deciles.

    Texts count once, in the order of a hash: the same texts in any order give the same bytes. Cost: about 2 MB/s,
    memory of the texts and 100 bytes for each of their words.

    Raises ValueError for too few texts and, without overwrite, for files that exist.
    """
    if not overwrite:
        check_outputs(output)
    given = {document_id(text): text for text in texts}
    chosen = given if sample is None else ()  # with a sample nothing has to be held out
    held_out = {key for key in chosen if hash64("held-out", params.seed, key) < params.held_out * 2**64}
    learned = [given[key] for key in sorted(given) if key not in held_out]
    measured = [given[key] for key in sorted(held_out)] if sample is None else list(sample)
    if not learned or not measured:
        raise ValueError(f"texts: {len(given)} given, too few to learn from some and measure others")
    keys, costs = learn([word_keys(text) for text in learned], params.min_word_count, params.min_trigram_count)
    model = NgramModel(keys, costs, (), {})
    found = sorted(value for text in measured if (value := model.perplexity(text)) is not None)
    if not found:
        raise ValueError("texts: those to measure have no words, at least one is needed")
    facts: dict[str, Any] = {
        **asdict(params),
        "texts": len(learned),
        "bytes": sum(map(text_bytes, learned)),
        "measured": len(found),
        "measured_on": "held-out texts" if sample is None else "a sample",
    }
    model = replace(model, percentiles=percentiles(found), facts=facts)
    data = model_bytes(model)
    write_new(output, data, overwrite)
    deciles = {f"{step * 10}%": model.percentiles[step * 10] for step in range(11)}
    report = {**facts, "size_bytes": len(data), "deciles": deciles}
    write_new(f"{output}.json", orjson.dumps(report, option=orjson.OPT_INDENT_2) + b"\n", overwrite)
    current().result(
        f"{output}: {many(len(data), 'byte')}, learned from {many(len(learned), 'text')}; perplexity of "
        f"{len(found):,} of {facts['measured_on']} by deciles: "
        f"{', '.join(f'{value:,.0f}' for value in deciles.values())}"
    )
    return model


def check_outputs(output: str) -> None:
    """Raises ValueError where the model or its figures are there already."""
    for path in (output, f"{output}.json"):
        check_new(path)


def percentiles(ordered: list[float]) -> tuple[float, ...]:
    """The 0th to the 100th of sorted numbers, by the nearest rank."""
    return tuple(ordered[round(percent * (len(ordered) - 1) / 100)] for percent in range(101))
