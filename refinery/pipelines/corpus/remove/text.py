"""What `refinery remove` says: what would go and what it would cost, what went, and the file of `--report`."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from refinery.loader.format.manifest import Manifest
from refinery.pipelines.corpus.remove.fates import Demoted, Lost, Moved, Reinstated, Unrepresented
from refinery.pipelines.corpus.remove.takedown import Foreseen, TakedownRun
from refinery.pipelines.progress.words import human_bytes
from refinery.transforms.core.safe_text import printable


def write_found(path: str, foreseen: Foreseen) -> None:
    """A line for each document that was found: where it is, what asks for it, the text that matched."""
    if not path:
        return
    with open(path, "x", encoding="utf-8") as out:
        for row in foreseen.found.to_pylist():
            plain = {name: value.hex() if isinstance(value, bytes) else value for name, value in row.items()}
            out.write(json.dumps(plain, ensure_ascii=False) + "\n")


def foreseen_lines(run: TakedownRun, foreseen: Foreseen) -> Iterator[str]:
    """What would go, and what it would cost."""
    outcome, shards = foreseen.outcome, run.manifest.shards
    gone = [*foreseen.decision.gone, *outcome.demoted]
    tokens, has_tokens = sum(row["token_count"] for row in gone), run.manifest.has_tokens
    yield f"{len(gone):,} documents{f' with {tokens:,} tokens' if has_tokens else ''} would go from {run.prefix}"
    if len(gone) == run.manifest.totals["documents"]:
        yield "these are all its documents; only reinstated documents would be left"
    why = Counter(row["why"] for row in gone)
    yield from (f"  {count:>12,} {name}" for name, count in sorted(why.items()))
    yield from (f"  {line}" for line in benchmark_lines(foreseen.found.to_pylist()))
    if foreseen.decision.deleted:
        yield f"{len(foreseen.decision.deleted):,} more, which deduplication had removed, would go from removals/"
    names = {Reinstated: "would come back", Moved: "are duplicates of others now", Lost: "later stages would drop"}
    for kind, words in names.items():
        if count := len(outcome.of(kind)):
            yield f"{count:,} of their duplicates {words}"
    if count := len(outcome.of(Demoted)):
        yield f"{count:,} documents would be duplicates of better ones that come back"
    left = Counter(fate.why for fate in outcome.of(Unrepresented))
    yield from (f"{count:,} of their duplicates would not come back: {why}" for why, count in sorted(left.items()))
    touched = [shard for shard in shards if shard.name in foreseen.changes]
    sizes = [
        sum(file.size for shard in group for file in (*shard.files, *shard.packed))
        for group in (touched, [shard for shard in shards if shard not in touched])
    ]
    yield (
        f"{len(touched):,} of {len(shards):,} shards would be rewritten ({human_bytes(sizes[0])}), the others copied "
        f"where they are ({human_bytes(sizes[1])})"
    )
    back = outcome.of(Reinstated)
    documents = run.manifest.totals["documents"] - len(gone) + len(back)
    now = run.manifest.totals.get("tokens", 0) - tokens + sum(len(fate.document.tokens) for fate in back)
    yield f"{documents:,} documents{f' with {now:,} tokens' if has_tokens else ''} would be left"
    if new := sum(change.before is None for change in foreseen.changes.values()):
        yield f"{new:,} shards would be new"


def benchmark_lines(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A line for each benchmark: items that were found, and documents that hold any."""
    items: dict[str, set[str]] = {}
    documents: Counter[str] = Counter()
    for row in rows:
        asked = [each.removeprefix("benchmark:") for each in row["request"].split() if each.startswith("benchmark:")]
        names = {each.partition("/")[0] for each in asked}
        documents.update(names)
        for each in asked:
            items.setdefault(each.partition("/")[0], set()).add(each)
    for name in sorted(items):
        yield f"benchmark {printable(name)}: {len(items[name]):,} items in {documents[name]:,} documents"


def done_lines(run: TakedownRun, manifest: Manifest) -> Iterator[str]:
    """What a takedown ends with."""
    last, totals = manifest.takedowns[-1], manifest.totals
    went = f" with {last.tokens:,} tokens" if manifest.has_tokens else ""
    now = f", {totals['tokens']:,} tokens" if manifest.has_tokens else ""
    yield (
        f"{last.documents:,} documents{went} removed, {last.added_documents:,} reinstated; "
        f"{totals['documents']:,} documents{now} in {run.output}"
    )
    yield f"its proof:  {last.proof} (what went: {last.removed})"
    yield f"check it:   refinery verify {run.output}"
    old = run.corpus.root
    delete = f"gcloud storage rm --recursive {old}" if "://" in old else f"rm -r {old}"
    yield f"{run.prefix} still holds all of it, and so do its work/ and exports. Once nothing reads it: {delete}"
