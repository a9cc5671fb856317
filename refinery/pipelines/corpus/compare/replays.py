"""Records whose rule no file names, judged again: a sample is read at its origins, and the stages say what drops them.

Only the sample is known; what it says of all of them is a share with an interval (Wilson 1927, 95 %).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

from refinery.pipelines.corpus.compare.joining.fates import Kind
from refinery.pipelines.corpus.compare.joining.listing import Entry
from refinery.pipelines.corpus.compare.joining.side import Side
from refinery.pipelines.corpus.replay.replay import NoReplay, Replayer
from refinery.pipelines.recipe.load_recipe import recorded_recipe
from refinery.transforms.core.data_text.plain_yaml import RecipeError
from refinery.transforms.core.names import OVER_TARGET, TARGET_STAGE

Z = 1.959964  # of 95 %
PASSES = "passes"  # every rule that judges a document alone keeps it


@dataclass(frozen=True)
class RuleShare:
    """What a sample says of a rule. outcome: dropped, dead or passes. records: of the sample. low, high: documents of
    all of them, with 95 %."""

    stage: str
    outcome: str
    reason: str
    records: int
    low: int
    high: int

    @property
    def words(self) -> str:
        """ "dropped by heuristics: gopher-too-few-words"."""
        if self.outcome == PASSES:
            target = f", so it was lost to {self.stage}: {self.reason}" if self.stage else ""
            return f"kept by every rule that judges single documents{target}"
        return f"{'failed in' if self.outcome == 'dead' else 'dropped by'} {self.stage}: {self.reason}"


@dataclass(frozen=True)
class Replays:
    """documents: of which the sample is. judged: records of the sample that could be read again. rules: most records
    first. failures: why others could not be, with their number. by_id: id in hexadecimal -> its rule in words."""

    documents: int
    judged: int
    rules: tuple[RuleShare, ...]
    failures: tuple[tuple[str, int], ...]
    by_id: Mapping[str, str]


def replays(
    side: Side, kind: Kind, entries: Sequence[Entry], documents: int, moved: Mapping[str, str], recipe: str
) -> Replays:
    """What the run at `side` decides about these records of the other corpus, all of one kind of fate. moved: path
    there -> path here. recipe: a file, needed where the run has stages of its own. Never raises for a record: what
    cannot be read is counted."""
    found: Counter[tuple[str, str, str]] = Counter()
    failures: Counter[str] = Counter()
    answers: dict[str, tuple[str, str, str]] = {}
    replayer = None
    try:
        inputs = [each for each in side.run["inputs"] if is_input(each)] if side.knows_inputs else None
        replayer = Replayer(recorded_recipe(side.prefix, side.manifest.recipe, recipe), inputs, measure=False)
    except RecipeError as error:
        said = str(error).replace("--recipe", f"--recipe-{side.label.lower()}")
        failures[f"its recipe cannot be used: {said}"] += len(entries)
    for entry in entries if replayer else ():
        doc = entry.a or entry.b
        if doc is None or replayer is None:
            continue
        path, at, offset = doc.origin.rpartition("@")
        try:
            last = replayer.replay(f"{moved.get(path, path)}{at}{offset}").last
        except NoReplay as error:
            failures[str(error).partition(doc.origin)[2].lstrip(": ") or _general(str(error), path)] += 1
        except Exception as error:  # noqa: BLE001 - models and lists of another machine fail in any way
            failures[f"{type(error).__name__}: {error}"] += 1
        else:
            rule = PASSES, "", ""
            if last.outcome in ("dropped", "dead"):
                rule = last.outcome, last.stage, last.reason.partition(":")[0]
            elif kind is Kind.PASSED and doc.source in side.cut_sources:  # nothing else is left
                rule = PASSES, TARGET_STAGE, OVER_TARGET
            answers[doc.id] = rule
            found[rule] += 1
    judged = found.total()
    rules = {rule: _rule(rule, records, judged, documents) for rule, records in found.items()}
    ordered = sorted(rules.values(), key=lambda each: (-each.records, each.outcome, each.stage, each.reason))
    listed = sorted(failures.items(), key=lambda each: (-each[1], each[0]))
    by_id = {id_: rules[rule].words for id_, rule in answers.items()}
    return Replays(documents, judged, tuple(ordered), tuple(listed), by_id)


def is_input(entry: Any) -> bool:
    """Whether an entry of `_run.json` says what a file was; anybody may have written it."""
    kinds = {"source": str, "path": str, "size": int, "digest": str}
    return isinstance(entry, Mapping) and all(isinstance(entry.get(name), kind) for name, kind in kinds.items())


def _general(message: str, path: str) -> str:
    """A message without the file's name, so that equal ones are counted together."""
    return message.replace(repr(path), "its file").replace(path, "its file")


def _rule(rule: tuple[str, str, str], records: int, judged: int, documents: int) -> RuleShare:
    outcome, stage, reason = rule
    low, high = wilson(records, judged)
    if judged >= documents:
        return RuleShare(stage, outcome, reason, records, records, records)
    least, most = max(records, round(low * documents)), min(documents - judged + records, round(high * documents))
    return RuleShare(stage, outcome, reason, records, min(least, most), max(least, most))


def wilson(records: int, judged: int) -> tuple[float, float]:
    """The interval of a share, of which `records` of `judged` were seen.

    >>> wilson(0, 10)[0]
    0.0
    """
    part, square = records / judged, Z * Z / judged
    middle, half = part + square / 2, Z * sqrt(part * (1 - part) / judged + square / (4 * judged))
    return max(0.0, (middle - half) / (1 + square)), min(1.0, (middle + half) / (1 + square))
