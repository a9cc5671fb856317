"""Recall and precision of near-duplicate removal on planted copies whose exact similarity is known.

    python -m benchmarks.planted_duplicates [--input docs.jsonl.gz] [--each 300] [--verify exact]
    python -m benchmarks.planted_duplicates --pairs pairs.jsonl.gz

Documents of the input (or generated ones) get one changed copy each: words replaced all over the text, paragraphs
inserted or cut out, a site's header and footer added, or only letter case and punctuation changed. The amount of change
is adjusted until the exact Jaccard similarity J of the 5-word shingles is in [step, step + 0.02), for steps from 0.50
to 0.95, and is 1 for case and punctuation. All of them and the rest of the documents go through `Deduplicate` on the
local runner.

Recall: pairs of which one was removed in favour of the other (or both in favour of the same third). Next to it the
predictions for independent permutations: the chance to share a band, the chance that the estimate reaches the
threshold, their product, and the chance of both together. Precision: every near removal of the run, planted or not, is
checked exactly against its cluster representative.

--pairs reads JSONL {"a": {"text"}, "b": {"text"}, "jaccard_5word"} instead: a pair is found when at least one of the
two is removed; a removal inside a pair is wrong when the exact J is below the threshold.
"""

import argparse
import gzip
import json
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.made_copies import KINDS, SIGNATURE, STEPS, Pair, chances, jaccard, plain_jaccard, plant, shingle_set
from benchmarks.signatures import describe_run, make_texts, read_texts
from refinery.pipelines.runners.runner import Runner
from refinery.transforms.core.document import Document, document_id
from refinery.transforms.core.exchange.side_outputs import take_side_outputs
from refinery.transforms.dedup.deduplicate import Deduplicate, DedupParams, WriteVerdicts, list_parts
from refinery.transforms.dedup.near_duplicates import NearParams
from refinery.transforms.dedup.records.rank import RankParams, rank_key
from refinery.transforms.dedup.signatures import compute_signatures, signature_table
from refinery.transforms.extract.clean_text import clean_text
from refinery.transforms.write.documents import documents_table

SOURCE = "web"
PART_DOCUMENTS, GROUP_DOCUMENTS = 20_000, 2_000
LOW, GOAL_STEP, GOAL_RECALL = 0.6, 0.85, 0.98


# --- the run ----------------------------------------------------------------------------------------------------------


def write_parts(folder: Path, texts: Sequence[str]) -> Iterator[tuple[str, int]]:
    """documents/ and signatures/ parts of these texts under `folder`; yields (url, rows) of the latter."""
    for name in ("documents", "signatures"):
        (folder / name).mkdir()
    for start in range(0, len(texts), PART_DOCUMENTS):
        chunk = texts[start : start + PART_DOCUMENTS]
        docs = [Document(document_id(text), text, "", SOURCE, f"made@{i}", i) for i, text in enumerate(chunk, start)]
        name = f"part-{start // PART_DOCUMENTS:032x}.parquet"
        signatures = signature_table(
            ids=[doc.id for doc in docs],
            ranks=[rank_key(doc, 0, RankParams()) for doc in docs],
            sources=[SOURCE] * len(docs),
            domains=[SOURCE] * len(docs),
            sizes=[len(doc.text.encode()) for doc in docs],
            signatures=compute_signatures(chunk, SIGNATURE),
        )
        pq.write_table(documents_table(docs), folder / "documents" / name, row_group_size=GROUP_DOCUMENTS)
        path = folder / "signatures" / name
        pq.write_table(signatures, path, compression="none", row_group_size=GROUP_DOCUMENTS)
        yield str(path), len(docs)


def deduplicate(texts: Sequence[str], near: NearParams, workers: int) -> pa.Table:
    """Verdicts of these texts, in order, from `Deduplicate` on the local runner."""
    with TemporaryDirectory(prefix="planted-") as scratch, Runner(workers=workers, quiet=True).open() as runner:
        parts = list(write_parts(Path(scratch), texts))
        lists = list_parts(scratch, parts)

        def build(pipeline):  # type: ignore[no-untyped-def]
            verdicts = pipeline | Deduplicate(DedupParams(near=near), SIGNATURE, (SOURCE,), lists)
            verdicts | WriteVerdicts(scratch, (SOURCE,))
            take_side_outputs(pipeline)  # counters, not used here

        runner.run("dedup", build)
        return pa.concat_tables(
            [pq.read_table(url.replace("/signatures/", "/verdicts/"), partitioning=None) for url, _ in parts]
        )


def representatives(texts: Sequence[str], near: NearParams, workers: int) -> tuple[list[str], list[int]]:
    """Reason of each text's removal ("" where it was kept) and position of the text kept instead (its own)."""
    verdicts = deduplicate(texts, near, workers)
    places = {document_id(text): place for place, text in reversed(list(enumerate(texts)))}
    ids = verdicts["kept_id"].to_pylist()
    return verdicts["reason"].to_pylist(), [places[name] if name else place for place, name in enumerate(ids)]


# --- scores -----------------------------------------------------------------------------------------------------------


def outcome(pair: Pair, representative: Sequence[int]) -> str:
    """found: one was removed for the other, or both for the same third. disturbed: one was removed for a third. Else
    missed.
    """
    one, other = representative[pair.original], representative[pair.copy]
    if one == pair.copy or other == pair.original or (one == other):
        return "found"
    return "missed" if one == pair.original and other == pair.copy else "disturbed"


def print_recall(pairs: Sequence[Pair], representative: Sequence[int], near: NearParams) -> None:
    kinds = [kind for kind in KINDS if any(pair.kind == kind for pair in pairs)]
    print(f"| J from | found | recall | band | estimate | product | both | {' | '.join(kinds)} | disturbed |")
    print("| --- " * (8 + len(kinds)) + "|")
    outcomes = {pair: outcome(pair, representative) for pair in pairs}

    def share(chosen: Sequence[Pair]) -> tuple[int, int]:
        clear = [pair for pair in chosen if outcomes[pair] != "disturbed"]
        return sum(outcomes[pair] == "found" for pair in clear), len(clear)

    for step in (*STEPS, 1.0):
        chosen = [pair for pair in pairs if pair.step == step]
        found, clear = share(chosen)
        band, estimate, both = np.mean(
            [chances(round(pair.similarity, 4), near, SIGNATURE.permutations) for pair in chosen], axis=0
        )
        shares = [share([pair for pair in chosen if pair.kind == kind]) for kind in kinds]
        cells = [f"{step:.2f}", f"{found} of {clear}", f"{found / max(1, clear):.3f}", f"{band:.3f}", f"{estimate:.4f}"]
        cells += [f"{band * estimate:.4f}", f"{both:.4f}", *(f"{n / m:.3f}" if m else "" for n, m in shares)]
        print(f"| {' | '.join([*cells, str(len(chosen) - clear)])} |")
    found, clear = share([pair for pair in pairs if pair.step >= GOAL_STEP])
    reached = "reached" if found >= GOAL_RECALL * clear else "missed"
    print(f"\ngoal recall {GOAL_RECALL} at J >= {GOAL_STEP}: {found} of {clear} = {found / clear:.4f}, {reached}")


def print_precision(
    texts: Sequence[str], reasons: Sequence[str], representative: Sequence[int], near: NearParams
) -> None:
    """Compare every removal that is not an exact copy with its representative, exactly."""
    gone = [place for place, reason in enumerate(reasons) if reason not in ("", "exact-duplicate")]
    exact = np.array([jaccard(shingle_set(texts[place]), shingle_set(texts[representative[place]])) for place in gone])
    copies = sum(reason == "exact-duplicate" for reason in reasons)
    below = int((exact < near.threshold).sum())
    wrong = int((exact < LOW).sum())
    print(f"\n{len(texts):,} documents: {copies:,} exact copies and {len(gone):,} near duplicates removed")
    if gone:
        print(f"with exact J below {near.threshold}: {below} ({below / len(gone):.2%}); least J {exact.min():.4f}")
    if near.verify == "exact":
        print(f"goal no removal below {near.threshold}: {below}, {'missed' if below else 'reached'}")
    print(f"goal no removal below {LOW}: {wrong}, {'missed' if wrong else 'reached'}")
    predicted = (f"{p:.2f}: {chances(p, near, SIGNATURE.permutations)[2]:.1e}" for p in (0.55, 0.6, 0.65, 0.7, 0.75))
    print(f"predicted chance that a pair of exact J is removed: {', '.join(predicted)}")


def score_planted(args: argparse.Namespace, near: NearParams) -> None:
    need = args.each * (2 * len(STEPS) + 1)
    texts = read_texts(args.input) if args.input else make_texts(need * 3 // 2, median=2000)
    texts = [clean_text(text, from_html=False) for text in texts]
    everything, pairs = plant(texts, args.each)
    sample = pairs[:: max(1, len(pairs) // args.check)]
    apart = max(abs(p.similarity - plain_jaccard(everything[p.original], everything[p.copy])) for p in sample)
    print(f"{len(texts):,} documents, {sum(map(len, texts)) / 1e6:.1f} M characters, {len(pairs):,} planted copies")
    print(f"J by plain Python on {len(sample)} pairs: largest difference {apart:.1e}\n")
    reasons, representative = representatives(everything, near, args.workers)
    print_recall(pairs, representative, near)
    print_precision(everything, reasons, representative, near)


def score_pairs(args: argparse.Namespace, near: NearParams) -> None:
    try:
        with gzip.open(args.pairs) if args.pairs.suffix == ".gz" else args.pairs.open("rb") as lines:
            rows: list[dict[str, Any]] = [json.loads(line) for line in lines]
        sides = [[clean_text(row[side]["text"], from_html=False) for side in "ab"] for row in rows]
        given = np.array([float(row["jaccard_5word"]) for row in rows])
    except (OSError, ValueError, KeyError, TypeError) as error:
        sys.exit(f"{args.pairs}: JSONL of pairs is needed, see --help ({type(error).__name__}: {error})")
    texts = list(dict.fromkeys(text for pair in sides for text in pair))
    place = {text: number for number, text in enumerate(texts)}
    pairs = [(place[a], place[b]) for a, b in sides]
    ours = np.array([jaccard(shingle_set(a), shingle_set(b)) for a, b in sides])
    reasons, representative = representatives(texts, near, args.workers)
    print(f"{len(pairs):,} pairs of {len(texts):,} texts; largest difference of given J {abs(given - ours).max():.3f}")
    print(
        "\n| given J from | pairs | one removed | one removed for the other | of these J (ours) below the threshold |"
    )
    print("| --- | --- | --- | --- | --- |")
    edges = [0.0, *STEPS, 1.0, 1.01]
    recalled, precise = np.zeros(2, int), np.zeros(2, int)
    for low, high in pairwise(edges):
        chosen = [i for i in np.flatnonzero((given >= low) & (given < high)).tolist() if pairs[i][0] != pairs[i][1]]
        found = {i for i in chosen if reasons[pairs[i][0]] or reasons[pairs[i][1]]}
        direct = [
            i
            for i in chosen
            if representative[pairs[i][0]] == pairs[i][1] or representative[pairs[i][1]] == pairs[i][0]
        ]
        recalled += np.sum([(i in found, 1) for i in chosen if given[i] >= near.threshold] or [(False, 0)], axis=0)
        precise += np.sum([(given[i] >= near.threshold, 1) for i in direct] or [(False, 0)], axis=0)
        wrong = sum(ours[i] < near.threshold for i in direct)
        print(f"| {low:.2f} | {len(chosen)} | {len(found)} | {len(direct)} | {wrong} |")
    print(
        f"\ngiven J >= {near.threshold}: {recalled[0]} of {recalled[1]} pairs lost one; of {precise[1]} removals inside"
    )
    print(f"a pair {precise[0]} have a given J >= {near.threshold}")
    print_precision(texts, reasons, representative, near)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--input", type=Path, help="JSONL, plain or .gz, with a field text (default: generated text)")
    parser.add_argument("--pairs", type=Path, help="score the pairs of this file instead")
    parser.add_argument("--each", type=int, default=300, help="pairs per step of each family (default 300)")
    parser.add_argument(
        "--check", type=int, default=500, help="pairs whose J is also computed in plain Python (default 500)"
    )
    parser.add_argument("--threshold", type=float, default=NearParams().threshold)
    parser.add_argument("--verify", choices=["signature", "exact"], default="signature")
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    for name in ("each", "check", "workers"):
        if getattr(args, name) < 1:
            parser.error(f"--{name}: {getattr(args, name)} given, 1 or more is allowed")
    try:
        near = NearParams(threshold=args.threshold, verify=args.verify)
    except ValueError as error:
        parser.error(str(error))
    print(describe_run())
    print(f"{near}\n")
    if args.pairs:
        score_pairs(args, near)
    else:
        score_planted(args, near)


if __name__ == "__main__":
    main()
