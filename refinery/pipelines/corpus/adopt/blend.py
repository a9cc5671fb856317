"""`refinery blend`: a corpus as Megatron's --data-path, weights and shards in turn."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from refinery.loader.format.manifest import SPLITS
from refinery.loader.read.corpus import Corpus


def blend(prefix: str, split: str = "train", weights: Mapping[str, float] | None = None) -> list[str]:
    """Weight, path of a shard without .bin, weight, path, … for the words behind Megatron's --data-path.

    weights: domain -> share of what training sees; without any, every token is as likely as any other. Inside a domain
    shards weigh as many tokens as they have, so Megatron, which normalizes weights, reads all of them at the same pace.
    Numbers are exact: tokens, or tokens of a shard times the domain's weight over its tokens.

    Raises ValueError for a split that is empty, and for a domain that the split does not have, or that has no weight
    where others do; FormatError where there is no corpus.
    """
    if split not in SPLITS:
        raise ValueError(f"--split: {split!r} given, {' or '.join(SPLITS)} is allowed")
    corpus = Corpus(prefix)
    shards = [shard for shard in corpus.entries(split) if shard.tokens]
    if not shards:
        raise ValueError(f"--split: {split} given, but {prefix} has no tokens in it")
    totals: dict[str, int] = defaultdict(int)
    for shard in shards:
        totals[shard.domain] += shard.tokens
    if weights and set(weights) != set(totals):
        raise ValueError(
            f"--weight: {', '.join(sorted(weights))} given, the domains {', '.join(sorted(totals))} need one each"
        )
    words = []
    for shard in sorted(shards, key=lambda shard: shard.bin.path):
        weight = weights[shard.domain] * shard.tokens / totals[shard.domain] if weights else shard.tokens
        words += [f"{weight:.12g}", corpus.store.url(shard.bin.path).removesuffix(".bin")]
    return words


def parse_weights(given: Sequence[str]) -> dict[str, float]:
    """`--weight DOMAIN=NUMBER` flags. Raises ValueError for what is no such pair or no number above 0."""
    found: dict[str, float] = {}
    for pair in given:
        domain, _, number = pair.rpartition("=")
        try:
            value = float(number)
        except ValueError:
            value = 0.0
        if not domain or domain in found or not 0 < value < float("inf"):
            raise ValueError(f"--weight: {pair!r} given, DOMAIN=NUMBER is allowed, above 0, once for each domain")
        found[domain] = value
    return found
