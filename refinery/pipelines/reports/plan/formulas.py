"""The planner's formulas, each one expression of named quantities. The interactive page runs the same ones.

A function's name is the quantity it gives, its parameters are the quantities it needs: inputs of a plan
(refinery.pipelines.reports.plan.inputs) or other formulas. All are floats in SI units. Bodies are one `return` of
+ - * /, ceil, names and numbers: `javascript.py` translates them to JavaScript from their syntax trees. Both
compute in IEEE doubles, in the same order, so the page's numbers are Python's to the last bit.
"""

import inspect
from collections.abc import Callable, Mapping
from math import ceil

DAY = 86_400.0  # seconds
HOUR = 3_600.0  # seconds
GB = 1e9  # bytes
MONTH = 30.0  # days of storage that a month's price buys


def raw_needed(tokens: float, bytes_per_token: float, retention: float) -> float:
    """Raw bytes that the target takes: tokens, bytes of text per token, over what the funnel leaves of its bytes."""
    return tokens * bytes_per_token / retention


def output_tokens(raw: float, retention: float, bytes_per_token: float) -> float:
    """Tokens that come out of the raw bytes that are read."""
    return raw * retention / bytes_per_token


def target_share(output_tokens: float, tokens: float) -> float:
    """Tokens that come out over those wanted: from 1 on the target is met."""
    return output_tokens / tokens


def pass_speed(raw: float, pass_days: float) -> float:
    """Raw bytes per second that the offline pass has to read, to be over in that many days."""
    return raw / (pass_days * DAY)


def cores(pass_speed: float, core_speed: float) -> float:
    """Cores of the offline pass, not rounded. core_speed: raw bytes per second and core, through all phases."""
    return pass_speed / core_speed


def hosts(cores: float, cores_per_host: float) -> float:
    """Whole hosts that have these cores."""
    return ceil(cores / cores_per_host)


def finish_days(raw: float, hosts: float, cores_per_host: float, core_speed: float) -> float:
    """Days that these whole hosts take; a little less than was allowed."""
    return raw / (hosts * cores_per_host * core_speed) / DAY


def core_hours(raw: float, core_speed: float) -> float:
    """Core hours of work in the offline pass."""
    return raw / core_speed / HOUR


def work_cost(core_hours: float, core_hour_price: float, memory_per_core: float, memory_hour_price: float) -> float:
    """Dollars for cores and their memory (GB per core), while they work."""
    return core_hours * (core_hour_price + memory_per_core * memory_hour_price)


def corpus_bytes(output_tokens: float, token_bytes: float) -> float:
    """Bytes of the shards' tokens: 2 per token for vocabularies up to 65,500 ids, else 4 (docs/format.md)."""
    return output_tokens * token_bytes


def shuffle_cost(corpus_bytes: float, shuffle_passes: float, shuffle_price: float) -> float:
    """Dollars for the global shuffle, in which every token is written and read once; $ per GB that passes.

    Upper bound: tokens are compressed on the way. What phase 2 shuffles is left out (docs/near-dedup.md).
    """
    return corpus_bytes * shuffle_passes / GB * shuffle_price


def pass_cost(work_cost: float, shuffle_cost: float) -> float:
    """Dollars of the offline pass."""
    return work_cost + shuffle_cost


def storage_cost(raw: float, corpus_bytes: float, pass_days: float, train_days: float, storage_price: float) -> float:
    """Dollars of storage, $ per GB and month: the raw bytes during the pass, the corpus during training."""
    return (raw * pass_days + corpus_bytes * train_days) / MONTH / GB * storage_price


def train_speed(tokens: float, train_days: float) -> float:
    """Tokens per second that the loader has to deliver: the target once, in the days of training."""
    return tokens / (train_days * DAY)


def gpu_speed(train_speed: float, gpus: float) -> float:
    """Tokens per second and GPU."""
    return train_speed / gpus


def loader_speed(train_speed: float, token_bytes: float) -> float:
    """Bytes per second that leave the storage, all nodes together, if each token is read once."""
    return train_speed * token_bytes


FORMULAS: tuple[Callable[..., float], ...] = (
    raw_needed,
    output_tokens,
    target_share,
    pass_speed,
    cores,
    hosts,
    finish_days,
    core_hours,
    work_cost,
    corpus_bytes,
    shuffle_cost,
    pass_cost,
    storage_cost,
    train_speed,
    gpu_speed,
    loader_speed,
)


def product(retentions: Mapping[str, float]) -> float:
    """What a funnel leaves of its bytes: the product of its stages' retentions, in their order."""
    result = 1.0
    for value in retentions.values():
        result *= value
    return result


def compute(given: Mapping[str, float]) -> dict[str, float]:
    """All quantities: `given`, which has every input and "retention", and what the formulas make of it."""
    values = dict(given)
    for formula in FORMULAS:
        values[formula.__name__] = float(
            formula(**{name: values[name] for name in inspect.signature(formula).parameters})
        )
    return values
