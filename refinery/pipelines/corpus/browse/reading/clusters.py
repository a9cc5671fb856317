"""Near-duplicate clusters: the documents that were removed in favour of one, and how each differs from it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from refinery.pipelines.corpus.browse.reading.deadline import Deadline
from refinery.pipelines.corpus.browse.reading.differences import Differences, differences
from refinery.pipelines.corpus.browse.reading.find import find
from refinery.pipelines.corpus.browse.reading.looked_at import LookedAt, Opened
from refinery.pipelines.corpus.browse.reading.stages import CHARACTERS, cut_view
from refinery.pipelines.corpus.browse.reading.withheld import taken_down
from refinery.pipelines.corpus.trace.answers import Doc, Kept, Query
from refinery.transforms.core.document import ID_BYTES

MEMBERS = 50  # of a cluster that a page lists
BATCH = 1 << 16


@dataclass(frozen=True)
class Member:
    """A removed document."""

    doc: Doc
    reason: str
    scope: str
    similarity: float


@dataclass(frozen=True)
class Cluster:
    """What was removed in favour of the document `id`. kept: that document, where the corpus has it. files: of
    removals/ that were looked through, of `of_files`. more: whether there are further members."""

    id: str
    kept: Kept | None
    members: Sequence[Member]
    files: int
    of_files: int
    more: bool


@dataclass(frozen=True)
class Pair:
    """A removed document beside the kept one. problem: why there is no text of one of them. cut: whether only their
    beginnings were compared."""

    member: Member
    kept: Kept
    found: Differences | None
    problem: str = ""
    cut: bool = False


def cluster_of(opened: Opened, id_: str, deadline: Deadline) -> Cluster:
    """The cluster of a kept document. Raises ValueError for what is no id. Cost: the column of kept ids of every file
    of removals/, up to the deadline: members are in the files of their own ids."""
    answers = find(opened, Query("id", id_)).answers
    kept = next((each for each in answers if isinstance(each, Kept)), None)
    wanted = pa.scalar(bytes.fromhex(Query("id", id_).value), pa.binary(ID_BYTES))
    members: list[Member] = []
    files = [file.path for file in opened.corpus.manifest.removals]
    looked, more = 0, False
    for path in files:
        if deadline.has_passed or more:
            break
        looked += 1
        with opened.corpus.parquet(path) as file:
            for batch in file.iter_batches(BATCH, use_threads=False):
                mask = pc.equal(batch.column("kept_id"), wanted).to_numpy(zero_copy_only=False)
                rows = batch.take(pa.array(np.flatnonzero(mask))).to_pylist()
                members += map(member_of, rows[: MEMBERS - len(members)])
                more = more or len(rows) > MEMBERS - len(members)
    shown = [each for each in members if not taken_down(opened.corpus, [each.doc])]
    return Cluster(id_, kept, shown, looked, len(files), more)


def member_of(row: dict[str, Any]) -> Member:
    """A row of removals/."""
    doc = Doc(row["id"].hex(), row["url"], row["source"], row["origin"])
    return Member(doc, row["reason"], row["scope"], row["similarity"])


def compare_pair(run: LookedAt, opened: Opened, kept: Kept, member: Member) -> Pair:
    """The texts of both. The removed one's record is read again, so that its text is the one that a later stage lost,
    or that would have been published. Raises as `Texts`."""
    with run.judging():
        lost = opened.texts.lost(member.doc)
    if not lost.text:
        return Pair(member, kept, None, lost.problem or "the removed document has no text to show")
    ended = lost.decisions[-1] if lost.decisions else None
    if ended and ended.outcome == "dropped" and ended.stage in opened.withheld:
        return Pair(member, kept, None, f"{ended.stage} drops the removed document: its text is not shown")
    one, other = cut_view("", lost.text), cut_view("", opened.texts.kept(kept).text)
    cut = max(len(lost.text), len(opened.texts.kept(kept).text)) > CHARACTERS
    return Pair(member, kept, differences(one.text, other.text), cut=cut)
