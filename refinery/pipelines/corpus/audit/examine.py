"""Records of an input file against what is published of them: every chosen one must have the fate that its record has.

A published row is claimed by the record that it is about. What nobody claims was not made of any record.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from refinery.pipelines.corpus.audit.expected import Expected, Judge, different_fields
from refinery.pipelines.corpus.audit.outcome import (
    DECISION,
    FIELDS,
    INVENTED,
    MISSING,
    TEXT,
    TOKENS,
    Finding,
    Later,
    Outcome,
)
from refinery.pipelines.corpus.audit.recorded import AuditedRun
from refinery.pipelines.corpus.audit.removals import Spill, features_of
from refinery.pipelines.corpus.audit.sample import (
    DEAD,
    KEPT,
    POISON,
    REJECTED,
    REMOVED,
    TAKEN,
    Buckets,
    Row,
    Sample,
    file_of,
)
from refinery.pipelines.corpus.audit.takedowns import REJECT_GONE, WORDS, believed, stage_of_taken
from refinery.pipelines.corpus.audit.texts import PUBLISHED_TEXT, SHA256, digest_of
from refinery.pipelines.published.shard_tokens import corpus_tokenizer, read_tokens, without_ends
from refinery.transforms.core.address.normalise import address_hash
from refinery.transforms.core.answers import Damaged, Skipped
from refinery.transforms.core.document import Document, RawDocument, content_size
from refinery.transforms.core.safe_text import printable
from refinery.transforms.dedup.records.rank import rank_key
from refinery.transforms.read.plan import ReadTask
from refinery.transforms.read.sources import POISON_FILE, POISON_RECORD, read_task
from refinery.transforms.tokenize.tokenizer import Tokenizer
from refinery.transforms.write.targets import slice_of


class Examiner:
    """Examines input files. last_slices: of sources with a target, the last slice that the corpus has of them."""

    def __init__(
        self, run: AuditedRun, sample: Sample, buckets: Buckets, last_slices: Mapping[str, int], spill: Spill
    ) -> None:
        self.spill = spill
        self.run, self.sample, self.buckets, self.last_slices = run, sample, buckets, last_slices
        self.judge = Judge(run)
        self.facts = run.recipe.source_facts()
        self.targets = run.recipe.targets()
        self.believed = believed(run.store, run.manifest)

    @cached_property
    def tokenizer(self) -> Tokenizer:
        return corpus_tokenizer(self.run.corpus)

    def file(self, task: ReadTask) -> Outcome:
        """All records of a task. Raises OSError where it cannot be read."""
        key = file_of({"source": task.source, "origin": task.origin(0)}, self.buckets.earlier)
        rows: dict[str, list[Row]] = {}
        for row in self.buckets.of_file(key):
            rows.setdefault(row["origin"], []).append(row)
        dead = [row for many in rows.values() for row in many if row["kind"] == DEAD]
        poison = tuple(row["origin"] for row in dead if row["error"] == POISON_RECORD)
        task = replace(task, poison=any(row["error"] == POISON_FILE for row in dead), poison_records=poison)
        outcome = Outcome(task.source)
        for record in read_task(task, self.run.recipe.limits):
            count_record(outcome, record)
            if self.sample.has(task.source, record.origin) or getattr(record, "error", "") in POISON:
                self.record(record, task.source, rows.get(printable(record.origin), []), outcome)
        return outcome

    def record(self, record: RawDocument | Skipped | Damaged, source: str, rows: list[Row], outcome: Outcome) -> None:
        """One record: claims the published row that it explains, or says what differs."""
        cleaned = self.judge.clean(record, source)
        if isinstance(cleaned, Expected):
            self.settle(cleaned, rows, outcome, "")
            return
        id_ = cleaned.id.hex()
        if (row := claim(rows, REMOVED, lambda row: row["id"] == id_)) or (row := claim(rows, REMOVED)):
            outcome.claimed.append(row["number"])
            self.removal(cleaned, row, outcome)
            return
        published = next((row for row in rows if row["kind"] == KEPT), None)
        if published is None and (row := claim(rows, TAKEN, lambda row: row["id"] == id_)):
            outcome.claimed.append(row["number"])
            self.taken(cleaned, row, outcome)
            return
        if published is None:
            outcome.later.append(Later(id_, address_hash(cleaned.url), source, printable(cleaned.origin)))
        self.settle(self.judge.finish(cleaned, published), rows, outcome, id_, cleaned)

    def settle(
        self, expected: Expected, rows: list[Row], outcome: Outcome, id_: str, doc: Document | None = None
    ) -> None:
        """Compare the fate of a document that is not a copy."""
        source, origin = expected.row["source"], expected.row["origin"]
        if expected.kind != KEPT:
            outcome.lose(source, expected.row["stage"], expected.why, expected.size)
        row = claim(rows, expected.kind)
        if row is None:
            other = next(iter(rows), None)
            if other is None and not expected.listed:
                outcome.agreed["dropped, not in the sample of rejects/"] += 1
            elif other is None and expected.kind == REJECTED and self.believed.took_reject(expected.row):
                outcome.undecided[REJECT_GONE] += 1
            elif expected.kind == KEPT and other is None and self._cut_at_target(source, id_):
                outcome.agreed["cut at the target of its source"] += 1
            elif doc is not None and self.judge.may_be_cut(origin, other):
                outcome.undecided[CUT] += 1
                if other is not None:
                    rows.remove(other)
                    outcome.claimed.append(other["number"])
            elif other is None:
                outcome.differ(Finding(MISSING, source, origin, id_, expected.words, "nothing"))
            else:
                rows.remove(other)
                outcome.claimed.append(other["number"])
                outcome.differ(Finding(DECISION, source, origin, id_, expected.words, words_of(other)))
            return
        outcome.claimed.append(row["number"])
        finding = self._compare(expected, row, id_)
        if finding and expected.kind == KEPT and self.judge.cuts and self._is_part(expected, row):
            outcome.agreed["in the corpus, a part of the text that its record gives"] += 1
        elif finding and doc is not None and self.judge.may_be_cut(origin, row) and not self._can_compare(expected):
            outcome.undecided[CUT] += 1
        elif finding:
            outcome.differ(finding)
        else:
            outcome.agreed[AGREED[expected.kind]] += 1
        if not expected.listed:
            outcome.notes["rejects that the sample of the recipe does not ask for"] += 1

    def _compare(self, expected: Expected, row: Row, id_: str) -> Finding | None:
        where = (expected.row["source"], expected.row["origin"], id_)
        if names := different_fields(expected.row, row):
            there = ", ".join(f"{name} {expected.row[name]!r:.80}" for name in names[:5])
            here = ", ".join(f"{name} {row.get(name)!r:.80}" for name in names[:5])
            what = FIELDS if expected.kind == KEPT else DECISION
            return Finding(what, *where, there, here)
        if expected.tokens is None:
            return None
        if not self.run.manifest.has_tokens:
            is_same = digest_of(expected.tokens.tobytes()) == row.get(SHA256)
            return None if is_same else Finding(TEXT, *where, f"{len(expected.tokens)} bytes", "a text of other bytes")
        found = self.tokens(row)
        if np.array_equal(expected.tokens, found):
            return None
        place = first_difference(expected.tokens, found)
        return Finding(TOKENS, *where, f"{len(expected.tokens)} tokens", f"{len(found)}, another one at {place}")

    def tokens(self, row: Row) -> Any:
        """The tokens of a kept document in its shard."""
        start, count = row["token_offset"], row["token_count"]
        shard = self.run.shards[row["shard"]]
        if start < 0 or start + count > shard.tokens:
            return np.empty(0, np.int64)
        return read_tokens(self.run.corpus, shard, start, start + count)

    def _is_part(self, expected: Expected, row: Row) -> bool:
        """Whether the published text is what is left of the expected one where parts are cut out, and all else about
        the document that no cut can change is equal."""
        fixed = {name: expected.row[name] for name in self.judge.fixed}
        if different_fields(fixed, row) or not self._has_text:
            return False
        text = row.get(PUBLISHED_TEXT)
        if text is None:
            text = self.tokenizer.decode(without_ends(self.run.manifest, self.tokens(row)).tolist())
        words = iter(expected.text.split())
        return all(word in words for word in text.split())

    def _can_compare(self, expected: Expected) -> bool:
        """Whether a text of which something was cut can be compared with the one that its record gives."""
        return expected.kind == KEPT and self._has_text

    @property
    def _has_text(self) -> bool:
        """Whether the texts of kept documents are known."""
        return not self.run.manifest.has_tokens or self.tokenizer.lossless

    def _cut_at_target(self, source: str, id_: str) -> bool:
        """Whether the source's target explains that a kept document is not there: all kept ones have earlier slices, or
        the same."""
        if source not in self.targets or not id_:
            return False
        return slice_of(bytes.fromhex(id_)) > self.last_slices.get(source, -1)

    def taken(self, doc: Document, row: Row, outcome: Outcome) -> None:
        """A document that a takedown lists: where it was in a shard, it must have been what its record gives."""
        own: dict[str, Any] = {"url": doc.url, "source": doc.source, "origin": printable(doc.origin)}
        if row["was"] == KEPT:
            expected = self.judge.finish(doc, None)
            if expected.kind != KEPT and not self.judge.cuts:
                where = doc.source, own["origin"], row["id"]
                outcome.differ(Finding(DECISION, *where, expected.words, words_of(row)))
                return
            if expected.tokens is not None and not self.judge.cuts:
                own |= {"text_bytes": expected.row["text_bytes"]}
                own |= {"token_count": len(expected.tokens)} if self.run.manifest.has_tokens else {}
        if names := [name for name in own if own[name] != row[name]]:
            there, here = (", ".join(f"{name} {each[name]!r:.80}" for name in names) for each in (own, row))
            outcome.differ(Finding(FIELDS, doc.source, own["origin"], row["id"], there, f"taken out, {here}"))
            return
        outcome.taken[doc.source, stage_of_taken(row), row["why"]] += 1
        outcome.agreed[f"taken out by takedown {row['shard']}: {WORDS.get(row['why'], row['why'])}"] += 1

    def removal(self, doc: Document, row: Row, outcome: Outcome) -> None:
        """What the removed document says itself; of its survivor only what is needed to compare them later."""
        own = {"id": doc.id.hex(), "url": doc.url, "source": doc.source, "origin": printable(doc.origin)}
        if names := different_fields(own, row):
            there, here = (", ".join(f"{name} {each[name]!r:.80}" for name in names) for each in (own, row))
            outcome.differ(Finding(FIELDS, doc.source, own["origin"], own["id"], there, f"removed, {here}"))
            return
        rank = rank_key(doc, self.facts[doc.source].priority, self.run.recipe.rank)
        features = features_of(doc.text, row, self.run)
        outcome.removals.append({**row, "rank": rank.hex(), "features": self.spill.add(features)})


CUT = "its text depends on what was cut of it"
AGREED = {KEPT: "in the corpus", REJECTED: "dropped, in rejects/", DEAD: "failed"}


def claim(rows: list[Row], kind: str, fits: Any = lambda row: True) -> Row | None:
    """Take the first row of that kind out of the list."""
    found = next((row for row in rows if row["kind"] == kind and fits(row)), None)
    if found is not None:
        rows.remove(found)
    return found


def words_of(row: Mapping[str, Any]) -> str:
    """What a published row says of a document."""
    if row["kind"] == KEPT:
        return f"in the corpus, {row['shard']}"
    if row["kind"] == REMOVED:
        return f"removed: {row['reason']}"
    if row["kind"] == TAKEN:
        return f"taken out by takedown {row['shard']}, {row['request']}"
    return f"{row['kind']} at {row['stage']}: {row['reason'] if row['kind'] == REJECTED else row['error']}"


def first_difference(one: Any, other: Any) -> int:
    """The first place at which two lists of tokens differ."""
    length = min(len(one), len(other))
    places = np.flatnonzero(np.asarray(one[:length]) != np.asarray(other[:length]))
    return int(places[0]) if len(places) else length


def count_record(outcome: Outcome, record: RawDocument | Skipped | Damaged) -> None:
    """As the reader's counters count it."""
    if isinstance(record, RawDocument):
        outcome.count("kept", "", content_size(record))
    elif isinstance(record, Skipped):
        outcome.count("dropped", record.reason, record.size)
    else:
        outcome.count("dead", record.error, record.size or len(record.data))


def unclaimed(rows: Iterable[Row], claimed: set[int]) -> Iterable[Finding]:
    """A finding for every chosen row that no record explains."""
    for row in rows:
        if row["number"] not in claimed:
            yield Finding(INVENTED, row["source"], row["origin"], row.get("id", ""), "no such document", words_of(row))
