"""What the stage `secrets` finds and what it takes for a secret by mistake, and how fast: one table.

    python -m benchmarks.found_secrets --labelled secrets/dev.jsonl.gz --clean code/repos.jsonl.gz prose/docs.jsonl.gz
        [--megabytes 60] [--repeat 3] [--wrong]

Labelled files: JSON lines with `text` and `label` (`secret` or `clean`; other labels are left out). A row counts as
found if anything in it is redacted. Rows with `findings`, a list of objects with `value` and `severity`, also count
value by value: a value of high or medium severity is found if redaction leaves no copy of it. Clean files: JSON lines
with `text` or `content`; each match counts as a false one. `source_repo`, where it is given, makes rows.
MB/s: one thread, processor time, the best repetition. --wrong prints the ids of labelled rows that were judged wrongly.
"""

import argparse
import gzip
import json
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from refinery.transforms.core.document import Document
from refinery.transforms.filter.secrets_stage import SecretsParams, find_secrets, redact_secrets

PARAMS = SecretsParams()


def rows_of(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as lines:
        yield from map(json.loads, lines)


def texts_of(path: Path, size: int) -> list[str]:
    """The first texts of a file, up to `size` bytes."""
    texts, total = [], 0
    for row in rows_of(path):
        texts.append(row["text"] if "text" in row else row["content"])
        total += len(texts[-1].encode())
        if total >= size:
            break
    return texts


def left_over(row: dict[str, Any]) -> Iterator[bool]:
    """For each value that a row names: whether redaction removed every copy of it."""
    if "findings" not in row:
        return
    answer = redact_secrets(Document(b"", row["text"], "", "", "", 0), PARAMS)
    text = answer.text if isinstance(answer, Document) else ""
    for finding in row["findings"]:
        if finding["severity"] in ("high", "medium"):
            yield finding["value"] not in text


def measure_labelled(paths: list[Path], wrong: bool) -> list[list[str]]:
    """A row of the table for every repository of labelled rows, and one for all."""
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for path in paths:
        for row in rows_of(path):
            if row["label"] not in ("secret", "clean"):
                continue
            outcome = f"{row['label']} {bool(find_secrets(row['text'], PARAMS))}"
            values = Counter(f"value {removed}" for removed in left_over(row))
            for name in (row.get("source_repo", path.name), "all labelled"):
                counts[name].update([outcome])
                counts[name].update(values)
            if wrong and outcome in ("secret False", "clean True"):
                print(outcome, row.get("id", ""))
    return [_labelled(name, count) for name, count in sorted(counts.items())]


def _labelled(name: str, count: Counter[str]) -> list[str]:
    hits, misses, false = count["secret True"], count["secret False"], count["clean True"]
    values = count["value True"] + count["value False"]
    return [
        name,
        str(sum(n for key, n in count.items() if not key.startswith("value"))),
        f"{hits / (hits + false):.3f}" if hits + false else "",
        f"{hits / (hits + misses):.3f}" if hits + misses else "",
        f"{count['value True'] / values:.3f} of {values}" if values else "",
        "",
        "",
    ]


def measure_clean(path: Path, size: int, repeat: int) -> list[str]:
    """The row of the table for a file without secrets."""
    texts = texts_of(path, size)
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    best, found = float("inf"), 0
    for _ in range(repeat):
        start = time.process_time()
        found = sum(len(find_secrets(text, PARAMS)) for text in texts)
        best = min(best, time.process_time() - start)
    name = f"{path.parent.name}/{path.name} ({megabytes:.0f} MB)"
    return [name, str(len(texts)), "", "", "", f"{found / megabytes:.2f}", f"{megabytes / best:.0f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labelled", type=Path, nargs="*", default=[])
    parser.add_argument("--clean", type=Path, nargs="*", default=[])
    parser.add_argument("--megabytes", type=float, default=60, help="of each clean file")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--wrong", action="store_true", help="ids of labelled rows that were judged wrongly")
    options = parser.parse_args()
    table = measure_labelled(options.labelled, options.wrong)
    table += [measure_clean(path, int(options.megabytes * 1e6), options.repeat) for path in options.clean]
    for row in [
        ["texts", "rows", "precision", "recall", "values removed", "false per MB", "MB/s"],
        ["---"] * 7,
        *table,
    ]:
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
