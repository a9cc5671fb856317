"""What a view delivers, as tables for the terminal: its domains, and the bins of those that are upsampled."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from refinery.loader.format.manifest import SPLITS

LEFT = ("domain", "split", "times")  # columns of text


def domain_lines(domains: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What each domain delivers, a line for each, with its distribution of times."""
    rows = [("domain", "split", "documents", "tokens", "delivered", "epochs", "share", "times")]
    total = {
        split: sum(each["splits"][split]["tokens"] for each in domains if split in each["splits"]) for split in SPLITS
    }
    for split in SPLITS:
        for each in domains:
            found = each["splits"].get(split)
            if found is None or not found["times"]:
                continue
            documents = sum(row["documents"] for row in found["times"])
            tokens = sum(row["tokens"] for row in found["times"])
            times = " ".join(f"{row['times']}x{row['documents']:,}" for row in found["times"][:6])
            more = f" +{len(found['times']) - 6}" if len(found["times"]) > 6 else ""
            rows.append(
                (
                    each["name"],
                    split,
                    f"{documents:,}",
                    f"{tokens:,}",
                    f"{found['tokens']:,}",
                    f"{found['tokens'] / tokens:.3g}",
                    f"{found['tokens'] / total[split]:.1%}",
                    times + more,
                )
            )
    return _aligned(rows)


def bin_lines(domains: Sequence[Mapping[str, Any]], plan: Mapping[str, Any]) -> Iterator[str]:
    """The bins of each domain that is upsampled, a line for each: values, documents, tokens, how often they come."""
    for domain in domains:
        planned = plan.get(domain["name"], {})
        bins = planned.get("bins", ())
        if bins:
            yield f"bins of {domain['name']}:"
            rows: list[tuple[str, ...]] = [("bin", "from", "to", "documents", "tokens", "each", "delivered")]
            for number, (found, times) in enumerate(zip(bins, planned["times"], strict=True), 1):
                ends = ("" if found[key] is None else f"{found[key]:.6g}" for key in ("from", "to"))
                counts = (f"{found[key]:,}" for key in ("documents", "tokens"))
                name = "missing" if number == len(bins) else str(number)
                rows.append((name, *ends, *counts, f"{times:.4g}", f"{found['delivered_tokens']:,}"))
            yield from _aligned(rows)


def _aligned(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Lines of columns; the first row names them."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        cells = [
            cell.ljust(width) if name in LEFT else cell.rjust(width)
            for name, cell, width in zip(rows[0], row, widths, strict=True)
        ]
        yield "  ".join(cells).rstrip()
