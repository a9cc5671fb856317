"""The inputs of a plan: one declaration of each, from which flags, checks, the page's fields and its text are made."""

import math
from dataclasses import dataclass

from refinery.pipelines.recipe.quantities.prices import PRICES


@dataclass(frozen=True, slots=True)
class Input:
    """name: of the quantity; the flag is --name with dashes. kind: as quantity.show has it. group: a heading.

    least: the smallest value allowed; 0 means anything above 0, except for prices, which may be 0.
    """

    name: str
    reference: float
    kind: str
    group: str
    meaning: str
    least: float = 0.0

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")


TARGET, PASS, TRAIN, COST = "Target", "Offline pass", "Training", "Prices"
MET = 1 - 1e-9  # share of the target from which on it is met: what a target needs, computed, may round to less
MOST = 1e30  # beyond it products of inputs would leave what a double holds

# The reference case (docs/planning.md): 14.8 T tokens at 4 bytes each, 6 PB read in 14 days, 54 days on 2,048 GPUs.
INPUTS = (
    Input("tokens", 14.8e12, "tokens", TARGET, "tokens wanted"),
    Input("bytes_per_token", 4.0, "number", TARGET, "bytes of text in a token"),
    Input("raw", 6e15, "bytes", PASS, "bytes to read, as the reader decodes them (default: what the target needs)"),
    Input("pass_days", 14.0, "number", PASS, "days that the offline pass may take"),
    Input("core_speed", 1e6, "bytes/s", PASS, "raw bytes per second that a core takes through all phases"),
    Input("cores_per_host", 64.0, "count", PASS, "cores of a host", 1.0),
    Input("memory_per_core", 3.75, "number", PASS, "GB of memory for each core"),
    Input("gpus", 2048.0, "count", TRAIN, "GPUs that train", 1.0),
    Input("train_days", 54.0, "number", TRAIN, "days of training; every token is read once"),
    Input("token_bytes", 4.0, "number", TRAIN, "bytes of a token in the shards: 2 up to 65,500 ids, else 4"),
    Input("shuffle_passes", 2.0, "number", COST, "times that a shuffled byte is billed, as written and as read"),
    *(
        Input(price.name, price.dollars, "number", COST, f"$ per {price.unit}, noted {price.noted}: {price.source}")
        for price in PRICES.values()
    ),
)
BY_NAME = {each.name: each for each in INPUTS}
REFERENCE = {each.name: each.reference for each in INPUTS}
# Who changes one of these asks for another target, so that the reference's 6 PB say nothing any more.
OF_TARGET = ("tokens", "bytes_per_token")


def check_input(declared: Input, value: float) -> None:
    """Raise ValueError, naming the flag, for a value that no plan can have."""
    may_be_nothing = declared.name in PRICES
    if not math.isfinite(value) or value > MOST or value < declared.least or (value == 0 and not may_be_nothing):
        least = f"{declared.least:g} or more" if declared.least or may_be_nothing else "above 0"
        raise ValueError(f"{declared.flag}: {value:g} given, a number {least} and up to {MOST:g} is allowed")
