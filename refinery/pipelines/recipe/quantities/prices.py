"""The list prices that the planner uses, as data: each with its month and its source.

None was checked against an invoice or the provider's live price list; every one is a flag of `refinery plan`.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Price:
    """name: of the input of a plan. dollars: for one `unit`. noted: year and month."""

    name: str
    dollars: float
    unit: str
    noted: str
    source: str


DATAFLOW = "Dataflow, batch, us-central1, as public cost calculators quote it; cloud.google.com/dataflow/pricing"
STORAGE = "Cloud Storage, Standard, us-central1, as its pricing examples quote it; cloud.google.com/storage/pricing"

PRICES = {
    price.name: price
    for price in (
        Price("core_hour_price", 0.056, "vCPU hour", "2026-11", DATAFLOW),
        Price("memory_hour_price", 0.003557, "GB hour of memory", "2026-11", DATAFLOW),
        Price("shuffle_price", 0.011, "GB shuffled", "2026-11", DATAFLOW),
        Price("storage_price", 0.020, "GB and month of storage", "2026-11", STORAGE),
    )
}
UNVERIFIED = (
    f"list prices noted {min(price.noted for price in PRICES.values())} and not verified: check them, "
    "and give your own with the flags that end in -price"
)
