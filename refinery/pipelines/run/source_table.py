"""What became of each source, in a line: for the table at the end of a run, and for `refinery inspect`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from refinery.loader.errors import written_by_a_run
from refinery.loader.format.manifest import Manifest
from refinery.loader.format.shard_list import as_shards
from refinery.pipelines.run.empty_sources import losses

LINES = 40  # sources that are listed
LOSSES = 3  # of each


def tokens_by_source(manifest: Manifest) -> dict[str, int]:
    """Source -> tokens, of the sources that have a domain of their own: shards are counted by domain. None of a corpus
    of texts."""
    if not manifest.has_tokens:
        return {}
    tokens: dict[str, int] = {}
    for run in as_shards(manifest.shards).runs:
        tokens[run.domain] = tokens.get(run.domain, 0) + run.tokens
    domains: dict[str, list[str]] = {}
    with written_by_a_run("manifest.json: the sources of its recipe are"):
        for source in manifest.recipe.get("sources") or ():
            domains.setdefault(source.get("domain") or source["name"], []).append(source["name"])
    return {names[0]: tokens.get(domain, 0) for domain, names in domains.items() if len(names) == 1}


def source_rows(funnel: Sequence[Mapping[str, Any]], tokens: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    """One entry a source: documents read and kept so far, tokens (None if unknown), and all losses, largest first."""
    read: dict[str, int] = {}
    kept: dict[str, int] = {}
    for row in funnel:
        read.setdefault(row["source"], row["in"]["documents"])
        kept[row["source"]] = row["kept"]["documents"]
    rows: dict[str, list[Mapping[str, Any]]] = {source: [] for source in read}
    for row in funnel:
        rows[row["source"]].append(row)
    for source, count in read.items():
        lost = [
            {"stage": stage, "reason": reason, "documents": documents}
            for stage, reason, documents in losses(rows[source], source)
        ]
        yield {
            "source": source,
            "read": count,
            "kept": kept[source],
            "tokens": tokens.get(source),
            "losses": lost,
        }


def source_table(rows: Iterable[Mapping[str, Any]], has_tokens: bool = True) -> list[str]:
    """The entries of `source_rows` as text, up to 40 of them, and how many more there are. has_tokens: whether the
    corpus is, or will be, one of tokens."""
    head = f"{'tokens':>16}" if has_tokens else ""
    lines = [f"{'source':<28}{'read':>12}{'kept':>12}{'of read':>9}{head}  most lost to"]
    entries = list(rows)
    for row in entries[:LINES]:
        share = f"{row['kept'] / row['read']:.1%}" if row["read"] else ""
        tokens = f"{'' if row['tokens'] is None else format(row['tokens'], ','):>16}" if has_tokens else ""
        lost = ", ".join(f"{loss['stage']} {loss['reason']} {loss['documents']:,}" for loss in row["losses"][:LOSSES])
        line = f"{row['source']:<28}{row['read']:>12,}{row['kept']:>12,}{share:>9}{tokens}  {lost}"
        lines.append(line.rstrip())
    if len(entries) > LINES:
        lines.append(f"and {len(entries) - LINES:,} more sources; `refinery inspect PREFIX --json` lists all of them")
    return lines
