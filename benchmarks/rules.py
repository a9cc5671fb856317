"""How fast rules judge tables: by whole columns, as `Rule.mask` does, beside row by row, as a stage judges documents

    python -m benchmarks.rules [ROWS]

Prints millions of rows per second of processor time for each rule, the median of five interleaved rounds, and their
ratio. Both have to give the same mask.
"""

import sys
import time
from statistics import median

import numpy as np
import pyarrow as pa

from refinery.transforms.filter.rules.expression import Rule, compile_rule

TYPES = {"quality": "float", "toxicity": "float", "language": "string", "copies": "integer", "url": "string"}
RULES = (
    "quality > 0.3",
    "quality > 0.3 and (language == 'en' or copies < 5)",
    "not (toxicity > 0.2) and language in ('en', 'de') and min(copies, 10) / 10 < quality",
    "starts_with(url, 'https://host-1') or toxicity is null",
)
SHARE = 10  # of the rows are judged one by one


def made(rows: int) -> pa.Table:
    """Columns as in provenance files."""
    rng = np.random.default_rng(0)
    toxicity = pa.array(rng.random(rows, np.float32), mask=rng.random(rows) < 0.2)
    hosts = rng.integers(0, 99, rows)
    return pa.table(
        {
            "quality": rng.random(rows, np.float32),
            "toxicity": toxicity,
            "language": np.array(["en", "de", "fr"])[rng.integers(0, 3, rows)],
            "copies": pa.array(rng.integers(1, 20, rows), pa.uint32()),
            "url": [f"https://host-{host}.example/{number}" for number, host in enumerate(hosts.tolist())],
        }
    )


def one_by_one(rule: Rule, table: pa.Table) -> pa.Array:
    """The mask, row by row."""
    return pa.array([rule(row) for row in table.select(list(rule.names)).to_pylist()])


def main() -> None:
    table = made(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
    few = table.slice(0, len(table) // SHARE)
    print("columns   rows   ratio   M rows/s   rule")
    for text in RULES:
        rule = compile_rule(text, TYPES)
        if not rule.mask(few).equals(one_by_one(rule, few)):
            raise SystemExit(f"{text}: another mask")
        rates: tuple[list[float], list[float]] = ([], [])
        for _ in range(5):
            for found, judge, rows in ((rates[0], Rule.mask, table), (rates[1], one_by_one, few)):
                start = time.process_time()
                judge(rule, rows)
                found.append(len(rows) / (time.process_time() - start) / 1e6)
        columns, single = median(rates[0]), median(rates[1])
        print(f"{columns:7.1f}{single:7.2f}{columns / single:8.0f}              {text}")


if __name__ == "__main__":
    main()
