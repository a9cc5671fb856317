"""Two runs: documents whose fate differs. Of small ones all, by the joins of `refinery compare`; of others a sample."""

from collections.abc import Sequence
from dataclasses import dataclass

from refinery.pipelines.corpus.browse.reading.deadline import Deadline
from refinery.pipelines.corpus.browse.reading.find import find
from refinery.pipelines.corpus.browse.reading.looked_at import LookedAt, Opened
from refinery.pipelines.corpus.browse.reading.samples import SEED
from refinery.pipelines.corpus.browse.reading.withheld import WITHDRAWN
from refinery.pipelines.corpus.compare.compare import Comparison, compare
from refinery.pipelines.corpus.compare.joining.fates import MEANINGS, Kind
from refinery.pipelines.corpus.show.draw import draw_kept
from refinery.pipelines.corpus.trace.answers import Dead, Doc, Kept, Passed, Query, Rejected, Removed

JOINED = 200_000  # documents of both, up to which all are joined: seconds
SHOWN = 100  # documents of one fate that are listed
SECONDS = 12.0  # that a sample may take
GONE = "taken out by `refinery remove`"


@dataclass(frozen=True)
class Fate:
    """What became of documents that one run alone kept. label: of that run. what: on the other side, in words.
    documents: how many, of a sample those in it. listed: some of them; none of those that were withdrawn there."""

    label: str
    what: str
    documents: int
    listed: Sequence[Doc]


@dataclass(frozen=True)
class TwoRuns:
    """fates: the largest first. same: documents that both have. sample: how many of each run were looked at, None where
    all were."""

    fates: Sequence[Fate]
    same: int
    changed: int
    sample: tuple[int, int] | None


def two_runs(a: LookedAt, b: LookedAt, number: int) -> TwoRuns:
    """Compare them, once for each pair of versions. number: of documents of each run that are looked at where both are
    too large to be joined. Raises as `compare` and `trace`."""
    with a.judging():
        first, second = a.finished, b.finished
        key = "two runs", second.corpus.sha256, number
        if key not in first.memory:
            total = sum(each.corpus.manifest.totals["documents"] for each in (first, second))
            first.memory[key] = _joined(a, b) if total <= JOINED else _sampled(first, second, number)
        found: TwoRuns = first.memory[key]
        return found


def _joined(a: LookedAt, b: LookedAt) -> TwoRuns:
    found: Comparison = compare((a.prefix, b.prefix), (a.work, b.work), SHOWN)
    if found.documents is None:
        raise ValueError("; ".join(found.notes) or "one of them has no provenance: its documents are not compared")
    fates = []
    for label, each in ((side, each) for side in "AB" for each in found.documents.only[side]):
        gone = each.fate.kind is Kind.TAKEN_DOWN or each.fate.stage == WITHDRAWN
        docs = [] if gone else [entry.a or entry.b for entry in each.entries]
        listed = [Doc(doc.id, doc.url, doc.source, doc.origin) for doc in docs if doc]
        words = " ".join(part for part in (each.fate.stage, each.fate.reason) if part)
        what = MEANINGS[each.fate.kind] + (f" ({words})" if words else "")
        fates.append(Fate(label, what, each.count.documents, listed))
    same = found.documents.same[0].documents + found.documents.cut[0].documents
    ordered = sorted(fates, key=lambda fate: (-fate.documents, fate.label, fate.what))
    return TwoRuns(ordered, same, found.documents.changed[0].documents, None)


def _sampled(a: Opened, b: Opened, number: int) -> TwoRuns:
    """Documents drawn from each run, looked up by id in the other one; those that it lacks traced there by origin."""
    found: dict[tuple[str, str], list[Doc]] = {}
    looked, same = [], 0
    for label, here, there in (("A", a, b), ("B", b, a)):
        count, deadline = 0, Deadline(SECONDS / 2)
        for kept in draw_kept(here.corpus, number, SEED):
            count += 1
            if there.corpus.find(id=kept.doc.id):
                same += 1
            else:
                found.setdefault((label, _fate(there, kept.doc)), []).append(kept.doc)
            if deadline.has_passed:
                break
        looked.append(count)
    fates = [
        Fate(label, what, len(docs), [] if WITHDRAWN in what.split(" ") or what == GONE else docs[:SHOWN])
        for (label, what), docs in found.items()
    ]
    ordered = sorted(fates, key=lambda fate: (-fate.documents, fate.label, fate.what))
    return TwoRuns(ordered, same, 0, (looked[0], looked[1]))


def _fate(there: Opened, doc: Doc) -> str:
    """What became of the record on the other side, in words."""
    found = find(there, Query("origin", doc.origin), doc.source)
    answer = found.answers[0] if found.answers else None
    if answer is None:
        return GONE
    if isinstance(answer, Kept):
        return "same page, another text"
    if isinstance(answer, Removed):
        return f"removed as a duplicate ({answer.steps[0].reason})"
    if isinstance(answer, Rejected):
        return f"dropped: {answer.stage} {answer.reason}"
    if isinstance(answer, Dead):
        return f"failed ({answer.stage} {answer.error})"
    return "dropped after deduplication, not listed" if isinstance(answer, Passed) else "not recorded"
