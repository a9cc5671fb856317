"""What is recorded of dropped documents: some of each reason, their languages, and the scores that decided.

Of each stage and reason the EXAMPLES documents with the smallest hashes are kept, without their texts. The smallest of
all are among the smallest of any part, so parts merge in any order to the same ones, however the work was cut.
"""

import base64
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any

import orjson

from refinery.transforms.core.answers import Answer, answer_of
from refinery.transforms.core.document import Document, Drop, Scalar, hash64
from refinery.transforms.core.exchange.records import side_output_record
from refinery.transforms.core.lane import AnyStage
from refinery.transforms.core.measured_rules import Alone, Rule, read_alone, rules_alone
from refinery.transforms.core.params import Params
from refinery.transforms.core.safe_text import printable
from refinery.transforms.redaction.redact_address import redact_address
from refinery.transforms.statistics.bins import Bins, merge_bins, read_bins
from refinery.transforms.statistics.keyed import Keyed, add_numbers, counts
from refinery.transforms.statistics.tally import MAX_UNPACKED, MAX_VALUE, MOST, merge_groups

KIND = "dropped"  # of side-output records, and the key of reports
EXAMPLES = 20  # documents of each reason
LIMITS = 8  # thresholds of a score: one a language, say; the smallest are kept
MAX_ADDRESS, MAX_ORIGIN, MAX_FOUND = 500, 2000, 200  # characters
MAX_NAME = 200  # characters of the name of a value
MOST_VALUES = 64  # of a document
MOST_NAMES = 64  # of a stage, numbers that are counted: those with the least hashes
EXACT = 1 << 53  # up to here every whole number is a float, too
DIGITS = 6  # behind the point: values that are found by halving are no closer
MAX_MEASURED = 1 << 18  # characters of a text whose rules are measured, at 20 to 35 questions each

Reason = tuple[str, str]  # stage, reason
Value = tuple[str, Scalar, float | None]  # name, what was measured, threshold


def dropped_hash(stage: str, reason: str, source: str, origin: str, id_: bytes = b"") -> int:
    """The number by which examples are chosen: uniform, and the same on every run. id_: of a document; b"" before there
    is a text."""
    return hash64("dropped", stage, reason, source, origin, id_)


@dataclass(frozen=True, slots=True)
class Example:
    """A dropped document. size: UTF-8 bytes of its text, or bytes of its content. found: what the stage found, by name.
    values: what was measured of it, beside the thresholds."""

    source: str
    url: str
    origin: str
    size: int
    found: str = ""
    values: tuple[Value, ...] = ()

    @classmethod
    def of(
        cls, source: str, url: str, origin: str, size: int, found: str = "", values: Sequence[Value] = ()
    ) -> "Example":
        """One whose texts are fit to be published: bounded, without lone surrogates and secrets in addresses."""
        address = redact_address(url)[:MAX_ADDRESS]
        return cls(source, address, printable(origin)[:MAX_ORIGIN], size, printable(found)[:MAX_FOUND], fit(values))

    def plain(self) -> list[Any]:
        """As JSON knows it."""
        return [self.source, self.url, self.origin, self.size, self.found, [list(each) for each in self.values]]


def fit(values: Iterable[Value]) -> tuple[Value, ...]:
    """What was measured, as it is published: bounded and rounded. A user's own stage may state anything."""
    return tuple(
        (fit_name(name), _fit_value(value), fit_number(limit)) for name, value, limit in islice(values, MOST_VALUES)
    )


def fit_name(name: object) -> str:
    """The name of a value, as JSON can hold it."""
    return printable(str(name)[:MAX_NAME])


def fit_number(number: object) -> float | None:
    """A number up to MOST; None for any other, NaN and infinities among them."""
    return float(number) if isinstance(number, (int, float)) and -MOST < number < MOST else None


def _fit_value(value: object) -> Scalar:
    if isinstance(value, str):
        return printable(value[:MAX_VALUE])
    number = fit_number(value)
    if number is None:
        return f"not a number below {MOST:g}" if isinstance(value, (int, float)) else type(value).__name__[:MAX_VALUE]
    return int(number) if isinstance(value, int) and abs(number) <= EXACT else round(number, DIGITS)


class Least:
    """The EXAMPLES smallest of the numbers that were offered. Memory: these numbers alone."""

    def __init__(self) -> None:
        self.numbers: set[int] = set()
        self.largest = -1

    def takes(self, number: int) -> bool:
        """Whether it is one of the smallest so far; it is remembered then. True for one that is known."""
        if len(self.numbers) < EXAMPLES:
            self.numbers.add(number)
            self.largest = max(self.largest, number)
        elif number < self.largest and number not in self.numbers:
            self.numbers.remove(self.largest)
            self.numbers.add(number)
            self.largest = max(self.numbers)
        return number in self.numbers


class Dropped:
    """Sums over dropped documents. examples: reason -> hash -> document. categories: of each stage, by name. scores:
    the same, numbers that the stage measured. limits: the thresholds of these."""

    def __init__(self) -> None:
        self.examples: dict[Reason, dict[int, list[Any]]] = {}
        self.categories: dict[str, dict[str, Keyed[list[int]]]] = {}
        self.scores: dict[str, dict[str, Keyed[Bins]]] = {}
        self.limits: dict[str, dict[str, set[float]]] = {}

    def put(self, stage: str, reason: str, number: int, example: Example) -> None:
        """Keep a document as one of a reason's examples, if it is among the smallest."""
        _keep(self.examples.setdefault((stage, reason), {}), {number: example.plain()})

    def count(self, stage: str, size: int, categories: Mapping[str, str], drop: Drop) -> None:
        """Count a document of that size: by its categories, and what the stage measured of it."""
        groups = self.categories.setdefault(stage, {})
        for name, value in categories.items():
            if name not in groups:
                groups[name] = counts()
            add_numbers(groups[name].at(printable(value[:MAX_VALUE])), (1, size, 0))
        for name, number in drop.measured.items():
            if isinstance(number, (int, float)) and -MOST < number < MOST:
                scores, known = self.scores.setdefault(stage, {}), fit_name(name)
                if known not in scores:
                    scores[known] = Keyed(Bins, merge_bins)
                scores[known].at("").add(number)
        for name, limit in drop.limits.items():
            if (allowed := fit_number(limit)) is not None:
                self._limit(stage, fit_name(name), (allowed,))
        self._trim(stage, 2 * MOST_NAMES)

    def _trim(self, stage: str, most: int = MOST_NAMES) -> None:
        """Of more than `most` names leave MOST_NAMES. The least of all are among the least of any part, so no part
        leaves them out."""
        for named in (self.scores.get(stage, {}), self.limits.get(stage, {})):
            if len(named) > most:
                for name in sorted(named, key=lambda name: (hash64("statistics", name), name))[MOST_NAMES:]:
                    del named[name]

    def _limit(self, stage: str, name: str, limits: Iterable[float]) -> None:
        known = self.limits.setdefault(stage, {}).setdefault(name, set())
        known.update(limits)
        if len(known) > LIMITS:
            known.intersection_update(sorted(known)[:LIMITS])

    def merge(self, other: "Dropped") -> None:
        """Add what another one has."""
        for key, rows in other.examples.items():
            _keep(self.examples.setdefault(key, {}), rows)
        for stage, groups in other.categories.items():
            merge_groups(self.categories.setdefault(stage, {}), groups, counts)
        for stage, scores in other.scores.items():
            merge_groups(self.scores.setdefault(stage, {}), scores, partial(Keyed, Bins, merge_bins))
        for stage, named in other.limits.items():
            for name, limits in named.items():
                self._limit(stage, name, limits)
        for stage in {*other.scores, *other.limits}:
            self._trim(stage)

    def pack(self) -> str:
        """As text, for reports: base64 of compressed JSON; `unpack_dropped` is the inverse."""
        for stage in {*self.scores, *self.limits}:
            self._trim(stage)
        plain = {
            "examples": [
                [*key, [[f"{number:016x}", *row] for number, row in sorted(rows.items())]]
                for key, rows in sorted(self.examples.items())
            ],
            "categories": {
                stage: {name: keyed.plain() for name, keyed in sorted(groups.items())}
                for stage, groups in sorted(self.categories.items())
            },
            "scores": {
                stage: {name: keyed.plain(Bins.plain) for name, keyed in sorted(scores.items())}
                for stage, scores in sorted(self.scores.items())
            },
            "limits": {
                stage: {name: sorted(limits) for name, limits in sorted(named.items())}
                for stage, named in sorted(self.limits.items())
            },
        }
        return base64.b64encode(zlib.compress(orjson.dumps(plain), 1)).decode()

    def record(self) -> bytes:
        """The side-output record."""
        return side_output_record(KIND, dropped=self.pack())


def _keep(rows: dict[int, list[Any]], more: Mapping[int, list[Any]]) -> None:
    rows.update(more)
    if len(rows) > EXAMPLES:
        for number in sorted(rows)[EXAMPLES:]:
            del rows[number]


def unpack_dropped(packed: str) -> Dropped:
    """Inverse of `Dropped.pack`. Raises ValueError for what it never makes."""
    inflate = zlib.decompressobj()
    try:
        data = inflate.decompress(base64.b64decode(packed, validate=True), MAX_UNPACKED)
    except zlib.error as error:
        raise ValueError(f"dropped documents: nothing packed ({error})") from None
    if inflate.unconsumed_tail:
        raise ValueError(f"dropped documents: more than {MAX_UNPACKED} bytes found")
    plain, found = orjson.loads(data), Dropped()
    found.examples = {
        (stage, reason): {int(number, 16): row for number, *row in rows} for stage, reason, rows in plain["examples"]
    }
    found.categories = {
        stage: {name: counts().read(keyed) for name, keyed in groups.items()}
        for stage, groups in plain["categories"].items()
    }
    found.scores = {
        stage: {name: Keyed(Bins, merge_bins).read(keyed, read_bins) for name, keyed in scores.items()}
        for stage, scores in plain["scores"].items()
    }
    found.limits = {
        stage: {name: set(limits) for name, limits in named.items()} for stage, named in plain["limits"].items()
    }
    return found


class MergeDropped:
    """Adds up records of the kind "dropped", in any order: a Merger of the report."""

    def __init__(self) -> None:
        self.total = Dropped()

    def add_record(self, fields: Mapping[str, Any]) -> None:
        """Add what `Dropped.record` made."""
        self.total.merge(unpack_dropped(fields["dropped"]))

    def result(self) -> str:
        """The sum, packed, as reports hold it."""
        return self.total.pack()


def merge_dropped(reports: Iterable[Mapping[str, Any]]) -> str | None:
    """The sum of what several jobs' reports hold under KIND; None if one of them is of a run that did not record it."""
    merged = MergeDropped()
    for report in reports:
        if KIND not in report:
            return None
        merged.add_record(report)
    return merged.result()


@dataclass
class DropRecorder:
    """Records what one stage drops: a `Recorder` of `PerDocument` and `PerFile`. stage: None for a reader. categories:
    names of notes by which documents are counted. resource: what the stage prepared, set by the combinator.

    Only a document that is among the smallest which this process saw is looked at more closely: of n documents about
    20 (1 + ln(n / 20)). One of the smallest of all always is, whatever bundles were lost and repeated before. Memory:
    of each reason EXAMPLES documents of at most MAX_MEASURED characters until the bundle ends.
    """

    stage: AnyStage | None = None
    params: Params | None = None
    categories: tuple[str, ...] = ()
    resource: Any = None
    known: dict[str, Least] = field(default_factory=dict)
    rules: dict[str, list[tuple[Rule, Alone]]] = field(default_factory=dict)  # of reasons, as they were asked for

    def start(self) -> None:
        """Begin a bundle."""
        self.bundle: Dropped | None = None
        self.waiting: dict[Reason, dict[int, Any]] = {}  # documents whose rules are to be measured

    def record(self) -> bytes | None:
        """The side-output record of a bundle; None if nothing was dropped."""
        if self.bundle is None:
            return None
        for key, docs in self.waiting.items():
            for number, doc in docs.items():
                if (row := self.bundle.examples[key].get(number)) is not None:
                    row[-1] = [list(each) for each in fit(self._measured(key[1], doc))]
        return self.bundle.record()

    def add(self, stage: str, source: str, url: str, origin: str, size: int, answer: Answer, doc: Any = None) -> None:
        """A document that the stage dropped. doc: None for a record that no document was made of. Never raises for
        what it holds."""
        drop = answer.result
        if self.bundle is None:
            self.bundle = Dropped()
        noted = {**doc.meta, **drop.measured} if isinstance(doc, Document) else drop.measured
        words = {name: str(noted[name]) for name in self.categories if isinstance(noted.get(name), str)}
        self.bundle.count(stage, size, words, drop)
        number = dropped_hash(stage, drop.reason, source, origin, doc.id if isinstance(doc, Document) else b"")
        if self.known.setdefault(drop.reason, Least()).takes(number):
            found = answer.detail or ("" if drop.measured else answer.summary)
            values: list[Value] = [
                (name, "none" if value is None else value, drop.limits.get(name))
                for name, value in drop.measured.items()
            ]
            if answer.series:
                values.append((answer.series, answer.value, None))
            self.bundle.put(stage, drop.reason, number, Example.of(source, url, origin, size, found, values))
            if not values and self._is_measured(doc):
                self._wait((stage, drop.reason), number, doc)

    def _is_measured(self, doc: Any) -> bool:
        """Whether the stage can be asked again what its rules make of the document."""
        can = self.stage is not None and self.stage.judge is not None and self.params is not None
        text = doc.text if isinstance(doc, Document) else getattr(doc, "content", "")
        return can and self.resource is None and len(text) <= MAX_MEASURED

    def _wait(self, key: Reason, number: int, doc: Any) -> None:
        """Measure the document at the end of the bundle, if it is one of the examples then."""
        docs = self.waiting.setdefault(key, {})
        docs[number] = doc
        if self.bundle is not None:
            for other in [other for other in docs if other not in self.bundle.examples[key]]:
                del docs[other]

    def _measured(self, reason: str, doc: Any) -> list[Value]:
        """The thresholds at which the answer of a reason's rules turns, beside those of the recipe."""
        if self.stage is None or self.params is None:
            return []
        if reason not in self.rules:
            self.rules[reason] = rules_alone(self.stage, self.params, reason)
        judge = partial(self._judge, self.stage.judge, doc)
        found = (read_alone(rule, alone, judge, DIGITS) for rule, alone in self.rules[reason])
        return [(each.rule.key, each.value, float(each.rule.threshold)) for each in found if each.value is not None]

    @staticmethod
    def _judge(judge: Any, doc: Any, params: Params) -> Answer:
        return answer_of(judge(doc, params=params))
